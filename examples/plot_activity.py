"""
See which inputs keep the logic busy
====================================

A comparator that changes from row to row takes dynamic power; one that seldom changes
takes little. ``forestc.activity`` counts both on rows. This example sums the changes
over the comparators of each pixel of the handwritten digits and draws them as a
picture.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from demo import split_digits
from sklearn.ensemble import RandomForestClassifier

import forestc

X_train, X_test, y_train, _ = split_digits()
model = RandomForestClassifier(10, max_depth=6, random_state=0).fit(X_train, y_train)
done = forestc.compile(model, X_train, tempfile.mkdtemp(), label=y_train, targets="verilog")
activity = forestc.activity(done.design, rows=X_test)

# %%
# Each comparator has the feature that it reads, and how often its bit changes from a
# row to the next.

changes = np.zeros(64)
for comparator in activity["comparators"]:
    changes[int(comparator["feature"].removeprefix("x"))] += comparator["toggle_rate"]
busiest = activity["comparators"][0]
print(f"{len(activity['comparators'])} comparators")
print(f"{busiest['comparator']} changes most: {busiest['toggle_rate']:.2f} times a row")

# %%
# White pixels have no comparator. The busy ones are those where digits differ.

figure, axes = plt.subplots(figsize=(5, 4))
picture = axes.imshow(np.where(changes, changes, np.nan).reshape(8, 8), cmap="viridis_r")
figure.colorbar(picture, label="changes a row, of all comparators of the pixel")
axes.set(xticks=[], yticks=[])
axes.grid(False)
plt.show()
