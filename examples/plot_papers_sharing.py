"""
Share the thresholds of a forest
================================

``ThresholdSharing`` moves the thresholds of a trained forest so that many become equal,
while the training rows keep their paths. This example draws all thresholds on the petals
of the iris flowers before and after.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from forestc.papers import ThresholdSharing

X, y = load_iris(return_X_y=True)
X = X[:, 2:]
forest = RandomForestClassifier(50, random_state=0).fit(X, y)

# %%
# ``FrozenEstimator`` says that the forest is trained. ``estimator_`` is a forest of
# scikit-learn again.

shared = ThresholdSharing(FrozenEstimator(forest), per_tree_rows=False).fit(X, y)
print(f"{shared.n_conditions_before_} conditions before, {shared.n_conditions_} after")
print("rows with another path:", shared.changed_rows_.sum())

# %%
# Each line is a threshold of at least one node. All flowers keep their leaves, so the
# lines may move between two flowers, not across one that a node sees.


def thresholds(model, feature):
    trees = [member.tree_ for member in model.estimators_]
    return np.unique(np.concatenate([tree.threshold[tree.feature == feature] for tree in trees]))


figure, panels = plt.subplots(1, 2, figsize=(8, 3.8), sharex=True, sharey=True)
for axes, model, title in ((panels[0], forest, "before"), (panels[1], shared.estimator_, "after")):
    for line in thresholds(model, 0):
        axes.axvline(line, color="#777777", lw=0.6)
    for line in thresholds(model, 1):
        axes.axhline(line, color="#777777", lw=0.6)
    for kind, mark in enumerate("os^"):
        axes.plot(*X[y == kind].T, mark, ms=4)
    axes.grid(False)
    axes.set(title=title, xlabel="petal length, cm")
panels[0].set_ylabel("petal width, cm")
plt.show()
