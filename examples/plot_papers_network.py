"""
Learn a Bayesian network of bounded treewidth
=============================================

``BoundedTreewidthNetwork`` learns which columns of a table depend on each other. The
treewidth is bounded, so that exact queries stay quick. This example learns a network of
the breast cancer data and draws it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import KBinsDiscretizer

from forestc.papers import BoundedTreewidthNetwork

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform").set_output(transform="pandas")
table = bins.fit_transform(X.iloc[:, :8]).assign(benign=y)
model = BoundedTreewidthNetwork(treewidth=2, n_runs=1, random_state=0).fit(table)

# %%
# Queries are conditional probabilities, here of a benign tumor by its mean radius: small,
# middle or large.

for state in range(3):
    print(state, round(float(model.probability({"benign": 1}, given={"mean radius": state})), 3))

# %%
# An arrow leads from a parent to its child.

names = list(table.columns)
angles = np.linspace(0, 2 * np.pi, len(names), endpoint=False) + np.pi / 2
places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
figure, axes = plt.subplots(figsize=(6.4, 5))
boxes = []
for name, at in zip(names, places, strict=True):
    style = {"boxstyle": "round", "fc": "#D55E00" if name == "benign" else "#0072B2", "ec": "none"}
    text = axes.text(*at, name.replace(" ", "\n"), ha="center", va="center", color="white", fontsize=9, bbox=style)
    boxes.append(text.get_bbox_patch())
for parent, child in model.edges_:
    arrow = {"arrowstyle": "-|>", "color": "#777777", "patchA": boxes[parent], "patchB": boxes[child]}
    axes.annotate("", places[child], places[parent], arrowprops=arrow | {"shrinkA": 2, "shrinkB": 2})
axes.set(xlim=(-1.3, 1.3), ylim=(-1.25, 1.25), title=f"Treewidth {model.treewidth_}, BDeu score {model.score_:.0f}")
axes.set_axis_off()
plt.show()
