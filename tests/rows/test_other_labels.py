"""Tests that labels other than the model's classes are refused before any long step begins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.commands.report import report
from forestc.errors import RowsError
from forestc.rows.given import rows_from
from forestc.rows.labels import LabelReader


@pytest.fixture(scope="module")
def iris():
    """Returns a forest, its rows, and labels 0, 1, 2."""
    X, y = load_iris(return_X_y=True)
    return RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y), X, y


def refused(labels: object, classes: tuple[object, ...]) -> str:
    counts = pd.Series(labels, dtype=object).value_counts().to_dict()
    try:
        LabelReader((classes,), "the rows").refuse_others([counts])
    except RowsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1, 2, 3, 4, 5, 6, 7], tuple(range(7))),
        ([1, 2, 2, 3, 5, 7], tuple(range(7))),  # Some classes have no row.
        (["1", "2"], (0, 1)),
        ([0, 1], (1, 2)),
        ([-1] + [1] * 40, (0, 1)),
        ([0, 1], ("no", "yes")),
        ([True, False], ("no", "yes")),
        (["no", "yes"], (0, 1)),
        (["no"] * 9 + ["maybe"], ("no", "yes")),
        ([0.5, 1.5], (0, 1)),
        (["A", "B", "c"], ("a", "b", "c")),
        (list(range(10)), (0, 1)),  # Most rows have a label that is no class.
    ],
)
def test_other_labels_are_refused(labels, classes):
    assert "classes=" in refused(labels, classes)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1, 2], tuple(range(7))),
        ([3.0, 0.0], tuple(range(7))),
        (["0.0", "1.0", "1"], (0, 1)),
        ([True, False], (0, 1)),
        ([0, 1, 1, 1, 2], (0, 1)),  # All classes occur, and a few rows have another one.
        ([0, 1, 2, 9], tuple(range(7))),
        (["a", "b", "b", "d"], ("a", "b", "c", "e", "f")),
        ([1, 2.5, "x"], ()),  # values
    ],
)
def test_the_models_own_labels_and_a_few_others_stay(labels, classes):
    assert not refused(labels, classes)


def test_the_names_to_give_are_said():
    assert "are the classes plus 1" in refused(range(1, 8), tuple(range(7)))
    assert "classes=1,2,3,4,5,6,7 to rename" in refused(range(1, 8), tuple(range(7)))
    assert "classes=0,1 to rename" in refused([0, 1], (1, 2))


def test_every_kind_of_rows_is_looked_at_when_it_is_opened(tmp_path, iris):
    model, X, y = iris
    forest = forestc.load(model)
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])]).assign(kind=y + 1)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    np.savez(tmp_path / "rows.npz", X=X, y=y + 1)
    given = [
        (X, y + 1), (frame, "kind"), (str(tmp_path / "rows.csv"), "kind"), (str(tmp_path / "rows.parquet"), "kind"),
        (str(tmp_path / "rows.npz"), "y"),
    ]  # fmt: skip
    for rows, label in given:
        with pytest.raises(RowsError, match=r"the classes plus 1.*classes=1,2,3"):
            rows_from(rows, forest, label)
    renamed = forestc.quantize(forest, X, y)
    assert renamed.classes == forest.classes


def test_held_out_rows_and_checks_refuse_them_too(tmp_path, iris):
    model, X, y = iris
    with pytest.raises(RowsError, match="the classes plus 1"):
        forestc.compile(model, X, tmp_path / "o", label=y, held_out=(X, y + 1), targets="c")
    design = forestc.compile(model, X, tmp_path / "o", label=y, targets="c").design
    with pytest.raises(RowsError, match="the classes plus 1"):
        forestc.check(design, X, label=y + 1)
    with pytest.raises(RowsError, match="the classes plus 1"):
        report(design.folder, tmp_path / "page.html", rows=X, label=y + 1)
    with pytest.raises(RowsError, match="the classes plus 1"):
        forestc.explore(model, X, label=y + 1, out=tmp_path / "study", cpu="cortex-m4")
    assert not (tmp_path / "study").exists() and not (tmp_path / "page.html").exists()
