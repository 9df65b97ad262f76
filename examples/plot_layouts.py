"""
Choose how the C is laid out
============================

The same forest can be written as branches, as a table of nodes, or in other layouts:
more bytes of flash, or more instructions. ``compile(..., targets="c", cpu=...)``
builds and runs each for a processor and takes the one that suits; this example plots them for
three forests of the handwritten digits on a Cortex-M4.
"""

import tempfile

import matplotlib.pyplot as plt
from demo import split_digits
from sklearn.ensemble import RandomForestClassifier

import forestc

X, _, y, _ = split_digits()

found = {}
for trees in (5, 10, 20):
    model = RandomForestClassifier(trees, max_depth=6, random_state=0).fit(X, y)
    done = forestc.compile(model, X, tempfile.mkdtemp(), label=y, targets="c", cpu="cortex-m4")
    found[trees] = done.figures["firmware"]
    print(f"{trees} trees: {found[trees]['layout']} is taken")

# %%
# Down and left is better. ``c_layout=`` names another layout; ``flash=`` and
# ``instructions=`` set a budget that the design must keep.

figure, axes = plt.subplots()
for mark, (trees, firmware) in zip("os^", found.items(), strict=True):
    layouts = firmware["layouts"]
    points = {name: (each["mean"], each["flash"]) for name, each in layouts.items()}
    axes.plot(*zip(*points.values(), strict=True), mark, label=f"{trees} trees")
    for name, point in points.items():
        axes.annotate(name, point, xytext=(5, 3), textcoords="offset points", fontsize=8.5)
axes.set(xlim=(0, None), ylim=(0, None))
axes.set(xlabel="instructions of an average row", ylabel="flash, bytes")
axes.legend(frameon=False)
plt.show()
