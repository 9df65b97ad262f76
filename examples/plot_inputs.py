"""
Draw rows where the real ones may not go
========================================

An input model is a small text file that holds counts and ranges, learnt where the rows
are. Rows drawn from it test a design elsewhere. This example learns one for a forest of
the iris data and plots the rows drawn beside the real ones.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc

X, y = load_iris(return_X_y=True)
model = RandomForestClassifier(50, max_depth=6, random_state=0).fit(X, y)

# %%
# ``samples=`` searches a fixed number of times, so the same file comes out each time;
# without it the search takes ``seconds=``.

inputs, said = forestc.model_inputs(model, X, samples=20)
print(inputs)
print({name: round(value, 2) for name, value in said["held_out_log_likelihood"].items()})

# %%
# The model knows which thresholds of the forest a row passes, and draws values uniformly
# between two thresholds. The petals of rows drawn depend on each other nearly as those of
# real rows do.

drawn = inputs.rows(len(X), seed=0)
figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True)
for axes, rows, title in ((panels[0], X, "real rows"), (panels[1], drawn, "rows drawn")):
    for kind, mark in enumerate("os^"):
        axes.plot(*rows[model.predict(rows) == kind][:, 2:].T, mark, ms=4, alpha=0.7)
    axes.set(title=title, xlabel="petal length, cm")
panels[0].set_ylabel("petal width, cm")
plt.show()
