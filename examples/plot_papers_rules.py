"""
Read a classifier as a rule
===========================

``BooleanRuleClassifier`` learns an OR of ANDs by column generation. This example limits
the complexity of the rule, its clauses plus conditions, from 2 to 16, and plots the
accuracy on the training rows and on rows that were held out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from forestc.papers import BooleanRuleClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# With ``warm_start=True`` each fit begins with the clauses of the one before.

limits, complexity, accuracy = (2, 4, 6, 10, 16), [], []
model = BooleanRuleClassifier(max_iter=2, warm_start=True, random_state=0)
for limit in limits:
    model.set_params(complexity=limit).fit(X_train, y_train)
    complexity.append(model.complexity_)
    accuracy.append([100 * model.score(X_train, y_train), 100 * model.score(X_test, y_test)])
    if limit == 4:
        print(model.export_text())

# %%
# Training accuracy rises with the complexity. The held-out rows tell where to stop.

figure, axes = plt.subplots()
train, test = zip(*accuracy, strict=True)
axes.plot(complexity, train, "o-", label="training rows")
axes.plot(complexity, test, "s--", label="held-out rows")
axes.set(xlabel="clauses plus conditions of the rule", ylabel="accuracy, %")
axes.set_title("Rules for the breast cancer data")
axes.legend(frameon=False, loc="center right")
plt.show()
