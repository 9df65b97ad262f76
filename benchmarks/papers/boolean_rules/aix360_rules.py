"""Learns rules with aix360's BooleanRuleCG, in an interpreter that has it.

    python aix360_rules.py FOLD.npz SEED MARGIN < LABELS

FOLD.npz holds bits (rows, conditions), y, and the rows train and test. LABELS is a JSON list of (feature, relation,
value). A third of the training rows chooses the penalty of a clause and of a condition, by the rule of
benchmarks/boolean_rules.py. Prints test accuracy, complexity, and seconds of the last fit as JSON.
"""

import json
import sys
import time
import warnings

import numpy as np
import pandas as pd
from aix360.algorithms.rbm import BooleanRuleCG
from sklearn.model_selection import StratifiedKFold

PENALTIES = (0.01, 0.005, 0.002, 0.001)  # tries these for clauses and conditions; 0.001 is the default


def learnt(table, y, penalty):
    model = BooleanRuleCG(lambda0=penalty, lambda1=penalty, solver="CLARABEL", silent=True)
    model.fit(table, y)
    return model


def main():
    warnings.filterwarnings("ignore")
    path, seed, margin = sys.argv[1:]
    fold, labels = np.load(path), json.load(sys.stdin)
    names = pd.MultiIndex.from_tuples(list(map(tuple, labels)), names=["feature", "operation", "value"])
    y, train, test = fold["y"].astype(int), fold["train"], fold["test"]
    table = pd.DataFrame(fold["bits"].astype(int), columns=names)

    def part(rows):
        return table.iloc[rows].reset_index(drop=True)

    fit, held = next(StratifiedKFold(3, shuffle=True, random_state=int(seed)).split(train, y[train]))
    fit, held = train[fit], train[held]
    models = [learnt(part(fit), y[fit], penalty) for penalty in PENALTIES]
    means = np.array([(model.predict(part(held)) == y[held]).mean() for model in models])
    error = np.sqrt(means.max() * (1 - means.max()) / len(held))
    penalty = PENALTIES[int(np.flatnonzero(means >= means.max() - float(margin) * error)[0])]
    begin = time.perf_counter()
    model = learnt(part(train), y[train], penalty)
    seconds = time.perf_counter() - begin
    clauses = model.z.loc[:, np.asarray(model.w) > 0.5]
    print(
        json.dumps(
            {
                "accuracy": float((model.predict(part(test)) == y[test]).mean()),
                "complexity": int(clauses.shape[1] + clauses.to_numpy().sum()),
                "seconds": seconds,
            }
        )
    )


if __name__ == "__main__":
    main()
