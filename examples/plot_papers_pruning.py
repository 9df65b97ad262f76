"""
Prune an ensemble, with a proof of how good it is
=================================================

``PrunedEnsemble`` chooses members of a forest and the number of votes from which they
decide. This example allows from 1 to 12 members and plots the best accuracy found on
the rows that choose, its bound, and the accuracy on other rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from forestc.papers import PrunedEnsemble

X, y = load_digits(return_X_y=True)
X_train, X_other, y_train, y_other = train_test_split(X, y % 2 == 1, test_size=0.6, random_state=0)
X_choose, X_test, y_choose, y_test = train_test_split(X_other, y_other, test_size=0.7, random_state=0)
forest = RandomForestClassifier(30, max_depth=5, random_state=0).fit(X_train, y_train)

# %%
# The forest is trained, so all rows given choose. The integer program bounds the accuracy
# of every choice; ``effort`` limits its work.

proved = PrunedEnsemble(FrozenEstimator(forest), effort=0.01, random_state=0).fit(X_choose, y_choose)
print(f"{len(proved.members_)} members, more than {proved.threshold_} votes decide")
print(f"{100 * proved.objective_:.1f} % found, at most {100 * proved.bound_:.1f} % possible")

# %%
# ``method="search"`` leaves out the program. Each search begins with the members of the
# one before.

sizes, found, tested = (1, 2, 3, 4, 6, 8, 10, 12), [], []
pruned = PrunedEnsemble(FrozenEstimator(forest), method="search", effort=0.1, warm_start=True, random_state=0)
for size in sizes:
    pruned.set_params(max_members=size).fit(X_choose, y_choose)
    found.append(100 * pruned.objective_)
    tested.append(100 * pruned.score(X_test, y_test))

# %%
# Twelve members decide nearly as well as all 30 trees.

figure, axes = plt.subplots()
axes.axhline(100 * proved.bound_, color="#009E73", ls=":", label="bound for any number")
axes.plot(sizes, found, "o-", label="found, choosing rows")
axes.plot(sizes, tested, "s--", label="other rows")
whole = 100 * forest.score(X_test, y_test)
axes.axhline(whole, color="#777777", ls="--", lw=1)
axes.text(6.2, whole + 0.1, "the forest, other rows", color="#777777")
axes.set(xlabel="most members", ylabel="accuracy, %", title="Odd against even digits")
axes.legend(frameon=False, loc="lower right")
plt.show()
