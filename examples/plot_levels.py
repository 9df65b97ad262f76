"""
Choose how much may change
==========================

A level says what of the model has to stay. ``-O0`` keeps every decision, ``-O1`` every
path of the given rows, ``-O2`` and ``-O3`` the accuracy on other rows, within a
tolerance. This example compiles one model at ``-O0``, ``-O1`` and ``-O2`` and plots its
size against its accuracy on test rows.

The model is the random forest of handwritten digits that comes with forestc, in a skops file.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from demo import MODELS, split_digits

import forestc

X_train, X_test, y_train, y_test = split_digits()

# %%
# ``level=2`` searches: it grows ensembles anew, prunes splits and takes bits from
# leaves. It trains the estimator in the file again on parts of the rows to score each
# setting, so the test rows choose nothing.

luts, accuracy = [], []
for level in (0, 1, 2):
    out = Path(tempfile.mkdtemp())
    done = forestc.compile(MODELS / "digits.skops", X_train, out, label=y_train, level=level)
    estimate = {each["device"]: each["lut"] for each in done.figures["estimate"]}
    luts.append(estimate["xcup"])
    accuracy.append(100 * (done.design.predict(X_test) == y_test).mean())
    print(f"-O{level}: {luts[-1]:,} LUTs, {accuracy[-1]:.1f} % of {len(y_test)} test rows right")

# %%
# The error bars are standard errors: the three designs are about equally good, and the
# last takes a fraction of the logic.

figure, axes = plt.subplots()
axes.errorbar(
    luts,
    accuracy,
    yerr=[(a * (100 - a) / len(y_test)) ** 0.5 for a in accuracy],
    fmt="o-",
    capsize=4,
)
for level, x, y in zip((0, 1, 2), luts, accuracy, strict=True):
    axes.annotate(f"-O{level}", (x, y), xytext=(8, 8), textcoords="offset points")
axes.set(
    xscale="log",
    xlabel="LUTs, estimated for an UltraScale+",
    ylabel="accuracy on test rows, %",
    ylim=(88, 100),
)
plt.show()
