"""
See what fewer bits change
==========================

Quantizing moves thresholds onto a grid and rounds leaves. This example draws the
decision regions of a random forest over two features of the wine data, and those of its
integer forests with formats of 3 and of 5 bits: where the colors differ from the
model's, an input is decided otherwise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import forestc

X, y = load_wine(return_X_y=True)
X = X[:, [0, 6]]  # columns alcohol and flavanoids
model = RandomForestClassifier(20, max_depth=5, random_state=0).fit(X, y)

# %%
# Every point of a fine grid is an input. ``forestc.quantize`` runs passes without
# writing files, and ``forestc.evaluate`` gives the integer forest's decisions.

ends = zip(X.min(axis=0), X.max(axis=0), strict=True)
sides = [np.linspace(low - 0.2, high + 0.2, 240) for low, high in ends]
points = np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1).astype(np.float32)

decided = {"the model": model.predict(points)}
for bits in (5, 3):
    passes = f"quantize-inputs{{input_bits={bits},change=1}},round-leaves{{change=1}},simplify"
    forest = forestc.quantize(model, X, y, passes)
    decided[f"{bits} bits a feature"] = forestc.evaluate(forest, points).index

# %%
# The share of the grid where the decision is another one:

figure, panels = plt.subplots(1, 3, figsize=(9, 3.4), sharex=True, sharey=True)
colors = plt.matplotlib.colors.ListedColormap(["#9ecae1", "#fdd0a2", "#a1d99b"])
for axes, (title, classes) in zip(panels, decided.items(), strict=True):
    changed = np.mean(classes != decided["the model"])
    print(f"{title}: {changed:.1%} of the grid is decided otherwise")
    axes.pcolormesh(*sides, classes.reshape(240, 240), cmap=colors)
    for kind, mark in enumerate("os^"):
        axes.plot(*X[y == kind].T, mark, ms=3, color="#333333", mfc="none", mew=0.7)
    axes.set(title=title, xlabel="alcohol")
    axes.grid(False)
panels[0].set_ylabel("flavanoids")
plt.show()
