"""Which design a study recommends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forestc.exploration.choice import choice
from forestc.exploration.study import Goal, Score, Study, Trial
from forestc.report.answer import answer, as_text

LUT, ACCURACY, FMAX = Goal("lut", False, "LUTs"), Goal("accuracy", True), Goal("fmax_mhz", True, "MHz")


def trial(number, lut, accuracy, error=0.01, test=None, rung="placed", **options):
    tested = None if test is None else Score(test, 0.02, 100)
    figures = {rung: {"lut": float(lut), "fmax_mhz": 100.0 + lut}}
    return Trial(number, "complete", options, figures, {}, Score(accuracy, error, 400), tested)


def study(*trials, goals=(LUT, ACCURACY), **asked):
    return Study(Path("study"), goals, (), {"model": "model.json", **asked}, trials)


UNPRUNED = trial(1, 6268, 0.730, test=0.724, rung="synthesis", level=1)
FRONT = (trial(3, 14, 0.728, test=0.717), trial(5, 9, 0.71, test=0.70), trial(8, 33, 0.734, test=0.731))


def said(one):
    found = answer(one)
    return [" ".join(map(as_text, part)) for part in (found.first, found.beside)]


def test_the_smallest_within_a_standard_error_of_the_best_and_what_it_saves():
    first, beside = said(study(UNPRUNED, *FRONT))
    assert first == (
        "Smallest within a standard error of the best: trial 3, 14 LUTs, 72.8 % (test 71.7 %). "
        "The model as it is (-O1, trial 1): 6,268 LUTs, 73.0 % (test 72.4 %). 448 times smaller."
    )
    assert beside == (
        "Next smaller: trial 5, 9 LUTs, 71.0 % (test 70.0 %). "
        "Next more accurate: trial 8, 33 LUTs, 73.4 % (test 73.1 %)."
    )


def test_one_standard_error_is_that_of_the_best():
    best = replace(FRONT[2], validation=Score(0.734, 0.03, 400))
    found = choice(study(UNPRUNED, *FRONT[:2], best))
    assert (found.best.number, found.taken.number, found.smaller, found.better.number) == (8, 5, None, 3)
    assert choice(study(UNPRUNED, *FRONT[:2], replace(best, validation=Score(0.734, 0.001, 400)))).taken.number == 8


def test_estimates_are_about_and_the_unpruned_model_may_be_the_answer():
    guessed = replace(UNPRUNED, figures={"estimate": {"lut": 6000.0}}, corrected={"lut": 6268.0})
    assert "trial 1): about 6,268 LUTs" in said(study(guessed, *FRONT))[0]
    alone = said(study(UNPRUNED))
    assert alone[0].endswith("(test 72.4 %). It is the model as it is (-O1).") and alone[1] == ""
    trained = said(study(UNPRUNED, *FRONT, model=None, train=["xgboost"]))[0]
    assert "A model without pruning (-O1, trial 1): 6,268 LUTs" in trained


def test_goals_that_are_to_be_high_and_designs_of_no_lut():
    assert said(study(*FRONT, goals=(FMAX, ACCURACY)))[0].startswith(
        "Highest fmax within a standard error of the best: trial 8, 133 MHz, 73.4 %"
    )
    wires = said(study(UNPRUNED, trial(2, 0, 0.73), goals=(LUT, ACCURACY)))[0]
    assert "trial 2, 0 LUTs" in wires and "times smaller" not in wires
    assert choice(study()) is None and answer(study(Trial(0, "failed"))) is None


@pytest.mark.parametrize(("lut", "times"), [(6000, ""), (3000, "2.1 times smaller"), (300, "21 times smaller")])
def test_how_many_times_smaller(lut, times):
    first = said(study(UNPRUNED, trial(3, lut, 0.73)))[0]
    assert first.endswith(f"%). {times}." if times else "(test 72.4 %).")
