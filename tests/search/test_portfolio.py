"""The search of levels 2 and 3 on passes whose settings are made up: what is tried, judged and taken."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest

from forestc.errors import OptionError
from forestc.forest.builder import changed, changed_tree, make_forest, make_tree
from forestc.forest.ir import Aggregate, Decision, Feature, Link
from forestc.forest.numbers import Fixed
from forestc.passes.base import PassResult
from forestc.passes.ladder import Branch, Rung
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows
from forestc.search.cross_validation import Fold
from forestc.search.portfolio import SIMPLIFY, Family, LevelSearch, Stop
from forestc.search.settle import climb, settled
from forestc.search.sizes import Size
from forestc.system.deadline import LateError, before

made: list[tuple[str, int]] = []  # the model and the setting of each rung that was made


def stump(name, threshold):
    """x < threshold: class 0, else class 1."""
    number = Fixed(8)
    tree = make_tree(
        where="tree 0", feature=[0, -1, -1], threshold=[threshold, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
        values=[[0], [1]], outputs=(0,), quantized=True,
    )  # fmt: skip
    return make_forest(
        name=name, features=(Feature("x", number, 0, False, number),), columns=1, trees=[tree], n_outputs=1,
        bias=np.zeros(1, dtype=np.int64),
        aggregate=Aggregate(), link=Link(), decision=Decision("threshold", 1), classes=(0, 1), scale=1.0,
    )  # fmt: skip


@dataclass(frozen=True)
class Moving:
    """Moves the threshold of the stump by `by`, of the settings `among`; each costs 10 - by."""

    among: tuple[int, ...] = ()
    by: int = 0
    grows: bool = False
    branches: tuple[Branch, ...] = ()  # instead of one of `among`; of their steps `by` counts
    tolerance: float = 0.01
    name = "moving"
    space = ()
    open = needs_scorer = True

    def run(self, forest, rows, scorer=None):
        raise AssertionError("settings are made by the ladder")

    def ladder(self, forest, rows, scorer=None):
        return MovingLadder(self, forest)

    def result(self, forest, rung, tried):
        return PassResult(rung.forest, (), {"tried": tried})


@dataclass
class MovingLadder:
    step: Moving
    forest: object = field(repr=False)

    def branches(self):
        if self.step.branches and not self.step.among:
            return self.step.branches
        steps = tuple(replace(self.step, by=by) for by in self.step.among)
        return [Branch(steps, grows=self.step.grows, give_up=2)]

    def rungs(self, steps):
        for step in steps:
            made.append((self.forest.name, step.by))
            tree = self.forest.trees[0]
            moved = changed_tree(tree, threshold=tree.threshold + np.array([step.by, 0, 0]))
            yield Rung(step, 10.0 - step.by, partial(changed, self.forest, trees=(moved,)))

    def otherwise(self, losses, tried):
        """The settings of the branches are tried where none of `among` is good."""
        if self.step.among and self.step.branches:
            return replace(self.step, among=())
        return PassResult(self.forest, (), {"tried": tried, "lost": [loss.lost for _, loss in losses]})


def search_of(step, *, folds=3, tolerance=0.065, stop=None):
    """Rows 0 .. 99 of class x >= 50; a threshold moved by n decides n rows wrongly."""
    made.clear()
    X = np.arange(100.0)[:, None]
    y = (X[:, 0] >= 50).astype(np.int64)
    model, rows = stump("model", 50), ArrayRows(X, y)
    own = []
    for fold in range(folds):
        judged = np.arange(100) % folds == fold
        copy = stump(f"fold {fold}", 50)
        own.append(Fold(copy, ArrayRows(X[~judged], y[~judged]), Scorer(copy, ArrayRows(X[judged], y[judged]))))
    size = Size(lambda forest: float(100 - forest.trees[0].threshold[0]), "LUTs", "lut6")
    search = LevelSearch(model, rows, tuple(own), size, tolerance, stop or Stop(2))
    search.plain("paths kept", (SIMPLIFY,))
    search.climb(Family("moved", (), step))
    return search


def test_a_branch_that_shrinks_ends_behind_settings_that_lose_too_much():
    search = search_of(Moving((1, 2, 3, 6, 7, 8, 9)))
    tried = {trial.passes[0].by: trial.good for trial in search.trials[1:]}
    assert tried == {1: True, 2: True, 3: True, 6: False, 7: False}
    best = search.smallest()
    assert best.passes[0].by == 3 and best.size == 47
    assert best.loss.lost == pytest.approx(0.03) and best.loss.rows == 100


def test_folds_stand_for_all_rows_with_a_larger_error():
    """The variance of a share, times 1 + judged rows / rows of a fold's fit; a fold of the model itself stands for
    nothing else."""
    variance = 0.03 * 0.97 / 99
    loss = search_of(Moving((3,))).trials[1].loss
    assert loss.error == pytest.approx(math.sqrt(variance * (1 + 100 / 66)))
    model, rows = stump("model", 50), ArrayRows(np.arange(100.0)[:, None], (np.arange(100) >= 50).astype(np.int64))
    search = LevelSearch(
        model, rows, (Fold(model, rows, Scorer(model, rows)),), Size(lambda _: 1.0, "LUTs", "lut6"), 0.065
    )
    search.climb(Family("moved", (), Moving((3,))))
    assert search.trials[0].loss.error == pytest.approx(math.sqrt(variance))


def test_a_branch_that_grows_ends_at_the_first_that_is_good_and_races_over_the_folds():
    search = search_of(Moving((30, 20, 2, 1), grows=True))
    assert [trial.passes[0].by for trial in search.trials[1:] if trial.good] == [2]
    # what loses too much on the first fold is not made of the others
    assert [by for name, by in made if name == "fold 0"] == [30, 20, 2]
    assert [by for name, by in made if name == "fold 1"] == [2] == [by for name, by in made if name == "fold 2"]
    assert not [by for name, by in made if name == "model"]  # nor any of the model, until its size is wanted
    assert search.smallest().size == 48
    assert [by for name, by in made if name == "model"] == [2]


def test_what_is_much_larger_than_the_best_is_not_judged():
    search = search_of(Moving((3,)))
    before = len(search.trials)
    search.climb(Family("others", (), Moving((-40, -30, -20))))
    assert len(search.trials) == before
    assert search.trials[-1].family == "moved"


def test_settings_whose_costs_are_known_to_be_much_larger_are_not_made():
    search = search_of(Moving((3,)))  # which costs 7
    steps = tuple(Moving(by=by) for by in (-40, -1, 1, 2))
    made.clear()
    search.climb(Family("others", (), Moving(branches=(Branch(steps, costs=(50.0, 11.0, 9.0, 8.0)),))))
    assert {by for _, by in made} == {1, 2} and search.trials[-1].passes[0].by == 2
    made.clear()
    search.climb(Family("larger", (), Moving(branches=(Branch(steps[:2], costs=(50.0, 11.0)),))))
    assert not made and "not scored" in search.refused["larger"]


@pytest.mark.parametrize("alone", [False, True])
def test_behind_a_branch_that_loses_too_much_the_next_is_tried_where_it_keeps_more(alone):
    much, little = (Branch((Moving(by=by),), give_up=1, alone=alone) for by in (9, 3))
    search = search_of(Moving((1,)))
    search.climb(Family("others", (), Moving(branches=(much, little))))
    assert [trial.passes[0].by for trial in search.trials[2:]] == ([9, 3] if alone else [9])
    assert search.smallest().passes[0].by == (3 if alone else 1)


def test_no_setting_is_tried_behind_the_time():
    search = search_of(Moving((1,)))
    ended = threading.Event()

    def climb():
        try:
            search.climb(Family("late", (), Moving((1, 2, 3))))
        finally:
            ended.set()

    with pytest.raises(LateError):
        before(time.monotonic() - 1, climb)
    assert ended.wait(10) and all(trial.family != "late" for trial in search.trials)
    assert math.isinf(Stop(2).seconds) and math.isinf(Stop(2).until)


def test_where_no_time_is_left_for_sizes_the_smallest_known_is_taken():
    search = search_of(Moving((1, 2, 3)))
    plain = search.trials[0]
    good = [trial for trial in search.trials if trial.good and trial is not plain]
    for trial in search.trials:
        vars(trial).pop("size", None)
    assert search.choose(sure=False, measure=False).trial is min(good, key=lambda trial: trial.cost)
    assert not any(trial.measured for trial in search.trials)


def test_without_anything_good_the_first_is_taken_and_refusals_are_kept():
    search = search_of(Moving((40, 41)))
    assert search.smallest() is search.trials[0]

    @dataclass(frozen=True)
    class Refused(Moving):
        def ladder(self, forest, rows, scorer=None):
            raise OptionError("no such forests", where="here", do="try others")

    search.climb(Family("refused", (), Refused()))
    assert search.refused == {"refused": "no such forests"}


def test_what_is_taken_is_the_cheapest_that_is_good():
    tried = []

    def best_of(settings, most_by, others=math.inf):
        def scored(branch, best):
            for number, rung in enumerate(ladder.rungs(branch.steps)):
                if branch.grows and rung.cost >= best:
                    return
                tried.append(rung.step.by)
                yield number, rung, rung.step.by <= most_by

        tried.clear()
        ladder = MovingLadder(settings, stump("model", 50))
        best = climb(ladder.branches(), scored, lambda: others)
        return None if best is None else best.step.by

    assert best_of(Moving((1, 2, 3, 6, 7, 8, 9)), 3) == 3 and tried == [1, 2, 3, 6, 7]
    assert best_of(Moving((1, 2)), 0) is None and tried == [1, 2]
    assert best_of(Moving((9, 5, 2), grows=True), 5) == 5 and tried == [9, 5]
    branches = tuple(
        Branch((Moving(by=by),), grows=grows) for by, grows in ((3, True), (1, True), (1, False), (5, False))
    )
    assert best_of(Moving(branches=branches), 5) == 3 and tried == [3, 1]  # 1 costs 9, more than 1.25 times 7
    assert best_of(Moving(branches=branches[2:]), 5) == 5 and tried == [1, 5]
    assert best_of(Moving(branches=branches[2:]), 5, others=6.0) == 1 and tried == [1]


def test_a_pass_that_grows_tries_nothing_at_the_cost_from_which_its_forests_are_useless():
    forest, scorer = stump("model", 50), Scorer(stump("model", 50), ArrayRows(np.arange(100.0)[:, None]))
    steps = tuple(Moving(by=by) for by in (9, 5, 2))
    settings = Moving(branches=(Branch(steps, grows=True, most=4.0),), tolerance=0.075)
    result = settled(settings, forest, scorer.held_out, scorer)
    assert result.report["tried"] == 2 and result.forest is forest  # of by=9 and, not scored, by=5


def test_open_settings_are_settled_on_the_judges_rows():
    X = np.arange(100.0)[:, None]
    forest, y = stump("model", 50), (X[:, 0] >= 50).astype(np.int64)
    scorer = Scorer(forest, ArrayRows(X, y))

    def moved(step, scorer=scorer):
        result = settled(step, forest, ArrayRows(X, y), scorer)
        return int(result.forest.trees[0].threshold[0]) - 50, result.report

    step = Moving((1, 2, 3, 6, 7), tolerance=0.055)
    assert moved(step) == (2, {"tried": 4})  # of 3, 0.03 is lost, with an error of 0.017
    lost = [pytest.approx(by / 100) for by in step.among[:2]]  # the branch gives up after two
    assert moved(replace(step, tolerance=0.0)) == (0, {"tried": 2, "lost": lost})
    instead = replace(step, tolerance=0.015, among=(9,), branches=(Branch((Moving(by=0),)),))
    assert moved(instead) == (0, {"tried": 1})
    with pytest.raises(OptionError, match="moving: needs held-out rows"):
        moved(step, None)
