"""
Search accuracy against size
============================

``forestc.explore`` tries many settings of the passes and returns the front: the designs
that no other beats both in size and in accuracy. This example searches 16 designs of a
booster of the breast cancer data, by estimates alone, and plots all of them.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from demo import MODELS, split_breast_cancer
from sklearn.model_selection import train_test_split

import forestc

X_train, X_other, y_train, y_other = split_breast_cancer()
X_valid, X_test, y_valid, y_test = train_test_split(X_other, y_other, test_size=0.5, random_state=0)

# %%
# Validation rows score the designs; test rows are read once, at the end, for the front
# alone.

study = forestc.explore(
    MODELS / "breast_cancer.json",
    rows=X_train,
    label=y_train,
    validation=(X_valid, y_valid),
    test=(X_test, y_test),
    device="ecp5-25k",
    goals="lut,accuracy",
    rungs="estimate",
    trials=16,
    jobs=1,
    prove=False,  # saves some seconds; leave it out for a design that you use
    out=Path(tempfile.mkdtemp()) / "study",
)
print(f"{len(study.trials)} trials, {len(study.front)} of them on the front")

# %%
# The bars are standard errors of the validation accuracy. The front is chosen on these
# rows, which flatters it; the test accuracy, of rows that nothing looked at before, is
# the one to believe.

tried = [trial for trial in study.trials if trial.validation and trial.figure("lut")]
front = [trial for trial in tried if trial.on_front]
front.sort(key=lambda trial: trial.figure("lut"))


def columns(trials):
    """LUTs, accuracy in percent, and its standard error."""
    luts = [trial.figure("lut") for trial in trials]
    scores = [trial.validation for trial in trials]
    return (luts, [100 * s.value for s in scores], [100 * s.standard_error for s in scores])


figure, axes = plt.subplots()
axes.plot(*columns(tried)[:2], "o", color="#999999", label="other designs")
luts, accuracy, error = columns(front)
axes.errorbar(luts, accuracy, error, fmt="o-", capsize=3, label="front, validation rows")
axes.plot(luts, [100 * trial.test.value for trial in front], "x", label="front, test rows")
axes.set(xscale="log", xlabel="LUTs, estimated for an ECP5", ylabel="accuracy, %")
axes.legend(frameon=False, loc="lower right")
plt.show()
