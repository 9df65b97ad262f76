"""Holds functions that train models, as users write them for `forestc.explore`. Worker processes import them
from here."""

from __future__ import annotations

import os
import signal
import time

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from forestc.forest.text import print_forest
from forestc.frontends import load


def rows():
    """Makes a small table: 150 rows of five columns and two classes; and 100 rows more."""
    frame = load_breast_cancer(as_frame=True).frame
    frame = frame[["mean radius", "mean texture", "mean smoothness", "worst area", "worst concavity", "target"]]
    frame.columns = [name.replace(" ", "_") for name in frame.columns]
    return frame.iloc[:150].reset_index(drop=True), frame.iloc[200:300].reset_index(drop=True)


def written(folder, depth=2):
    """Writes the rows and a forest of three trees to a folder; returns the rows to train on."""
    train, test = rows()
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    model = RandomForestClassifier(3, max_depth=depth, random_state=0)
    model.fit(train.drop(columns="target").to_numpy(), train["target"])
    (folder / "model.forest").write_text(print_forest(load(model)))
    return train


def fit(trial):
    train, _ = rows()
    depth = trial.suggest_int("depth", 1, 4)
    kept = train[train.index % 5 != 4]  # Every fifth row is a validation row.
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(
        kept.drop(columns="target").to_numpy(), kept["target"]
    )


def fit_or_fail(trial):
    """Dies in one trial, raises in another, never ends in a third."""
    if trial.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if trial.number == 2:
        raise ValueError("no such depth")
    if trial.number == 3:
        time.sleep(1000)
    return fit(trial)
