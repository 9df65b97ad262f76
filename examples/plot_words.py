"""
Find how many bits the inputs need
==================================

Each feature becomes an integer word, and each distinct threshold on it one comparator
of that width. This example gives all features of the handwritten digits at most 2, 3
and 4 bits and plots the accuracy on test rows against the bits of all comparators.

Left alone, ``quantize-inputs`` takes the fewest bits for each feature that keep every
path of the given rows.
"""

import tempfile

import matplotlib.pyplot as plt
from demo import split_digits
from sklearn.ensemble import RandomForestClassifier

import forestc

X_train, X_test, y_train, y_test = split_digits()
model = RandomForestClassifier(10, max_depth=6, random_state=0).fit(X_train, y_train)

# %%
# ``passes=`` lists the passes by name, with their options. ``change=1`` lets any number
# of decisions change; by default a pass is refused if it changes more than 1 % of the
# decisions on the given rows.

limits, bits, accuracy = ["2", "3", "4", "auto"], [], []
for most in limits:
    passes = f"quantize-inputs{{input_bits={most},change=1}},round-leaves{{change=1}},simplify"
    out = tempfile.mkdtemp()
    done = forestc.compile(model, X_train, out, label=y_train, passes=passes, targets="c")
    bits.append(done.figures["comparator_bits"])
    accuracy.append(100 * (done.design.predict(X_test) == y_test).mean())
    print(f"at most {most} bits: {bits[-1]} comparator bits, {accuracy[-1]:.1f} % right")

# %%
# The pixels are whole numbers from 0 to 16. Four bits read them nearly as well as the
# model does; three do not.

figure, axes = plt.subplots()
axes.plot(bits, accuracy, "o-")
for label, x, y in zip(limits, bits, accuracy, strict=True):
    axes.annotate(label, (x, y), xytext=(-4, -18), textcoords="offset points")
whole = 100 * model.score(X_test, y_test)
axes.axhline(whole, color="#777777", ls="--", lw=1)
axes.text(bits[0], whole - 1, "the model", va="top", color="#777777")
axes.set(xlabel="bits of all comparators", ylabel="accuracy on test rows, %", ylim=(0, 100))
axes.set_title("Accuracy by the most bits of a pixel")
plt.show()
