"""Tests which design a study recommends."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from forestc.exploration.choice import choice
from forestc.exploration.front import summary, write_front
from forestc.exploration.study import Goal, Score, Study, Trial, open_study, write_request, write_trial
from forestc.report.answer import answer, as_text
from forestc.report.front import front_tables

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


def lost(one, by, error=0.0):
    return replace(one, validation=replace(one.validation, lost=by, lost_error=error))


def test_what_does_not_fit_the_device_is_no_candidate_and_said():
    large, small = trial(2, 8000, 0.76), trial(4, 7000, 0.72)
    one = study(large, small, *FRONT, device="ice40-hx8k")  # The device has 7,680 LUTs.
    assert not one.fits(large) and one.fits(small)
    assert choice(one).best.number == 8 and choice(one).taken.number == 3
    assert all(found.number != 2 for found in (choice(one).taken, choice(one).better))
    rows = {row["trial"]: row["fits"] for row in summary(one)["front"]}
    assert rows[2] is False and rows[8] is True and summary(one)["taken"]["trial"] == 3
    none = study(large, trial(6, 9000, 0.8), device="ice40-hx8k")
    assert said(none)[0].startswith(
        "No design that was tried fits ice40-hx8k (7,680 LUTs). The smallest: trial 2, 8,000 LUTs, 76.0 %"
    )
    assert not any(row["recommended"] for row in summary(none)["front"])
    text = "\n".join(str(part) for part in front_tables(none, summary(none))[1:])
    assert "does not fit: ice40-hx8k has 7,680 LUTs" in text
    assert choice(study(large, *FRONT)).best.number == 2  # Without a device the designs of all devices count.


def test_an_estimate_fits_with_and_without_correction():
    large = replace(trial(2, 8000, 0.76, rung="estimate"), corrected={"lut": 7000.0})
    assert not study(large, device="ice40-hx8k").fits(large)
    small = replace(large, figures={"estimate": {"lut": 7600.0}})
    assert study(small, device="ice40-hx8k").fits(small)
    assert not study(small, device="ice40-hx8k").fits(replace(small, corrected={"lut": 8000.0}))


def test_a_study_that_ended_early_recommends_no_design_because_it_was_built():
    """A synthesized design is recommended only if it is about as accurate as the best estimated one."""
    estimated = trial(2, 500, 0.75, rung="estimate")
    built = [trial(3, 14, 0.60, rung="synthesis"), trial(4, 900, 0.745, rung="synthesis")]
    early = {"unfinished": {"untried": 3}}
    assert choice(study(estimated, built[0], **early)).taken.number == 2
    assert choice(study(estimated, *built, **early)).taken.number == 4
    assert choice(study(estimated, *built)).taken.number == 2


def test_a_tolerance_takes_the_smallest_that_loses_at_most_that_with_errors_counted():
    tried = (lost(FRONT[0], 0.002, 0.004), lost(FRONT[1], 0.004, 0.008), lost(FRONT[2], -0.004, 0.004))
    beside = lost(trial(7, 12, 0.709), 0.004, 0.001)  # The design is not on the front, but surely within the tolerance.
    found = choice(study(UNPRUNED, *tried, tolerance=0.01))
    assert (found.taken.number, found.within) == (3, True)  # 0.004 + 1.25 * 0.008 is 0.014, within the tolerance.
    assert choice(study(UNPRUNED, *tried, beside, tolerance=0.01)).taken.number == 7
    assert choice(study(UNPRUNED, *tried, tolerance=0.02)).taken.number == 5
    assert said(study(*tried, tolerance=0.01))[0].startswith(
        "Smallest that loses at most 1 point of accuracy, a standard error counted: trial 3, 14 LUTs"
    )
    nothing = study(*(lost(one, 0.1) for one in FRONT), tolerance=0.01)
    assert not choice(nothing).within
    assert said(nothing)[0].startswith("No design loses at most 1 point of accuracy")
    trained = study(*FRONT, model=None, train=["xgboost"], tolerance=0.02)  # compared with the best model, 73.4 %
    assert choice(trained).taken.number == 3
    assert choice(replace(trained, asked={**trained.asked, "tolerance": 0.0})).taken.number == 8


def test_of_a_given_model_nothing_larger_than_the_model_as_it_is_is_recommended():
    model = lost(trial(1, 278, 0.992, level=1), 0.0)
    fitted = lost(trial(23, 1853, 1.0, error=0.002), -0.008, 0.004)  # The design is fitted to its validation rows.
    small, near = lost(trial(3, 14, 0.95), 0.042, 0.01), lost(trial(7, 90, 0.988), 0.004, 0.005)
    assert choice(study(model, fitted, small)).taken is model
    assert choice(study(model, fitted, small, near)).taken is near
    worse = lost(replace(model, validation=Score(0.98, 0.01, 400)), 0.012, 0.002)  # -O1 may lose on other rows
    assert choice(study(worse, fitted, small)).taken is worse
    assert said(study(model, fitted, small))[0].startswith(
        "Smallest within a standard error of the model's accuracy, or better: trial 1, 278 LUTs"
    )


def test_the_recommended_design_is_shown_and_marked_also_beside_the_front(tmp_path):
    tried = [lost(one, by, 0.0) for one, by in zip(FRONT, (0.002, 0.02, -0.004), strict=True)]
    beside = lost(trial(7, 12, 0.7), 0.004, 0.001)  # The design has fewer validation rows.
    beaten = replace(tried[1], figures={"placed": {"lut": 9.0, "fmax_mhz": 109.0}})
    one = replace(study(tried[0], beaten, tried[2], beside, tolerance=0.01), folder=tmp_path)
    assert choice(one).taken is beside and beside not in one.front
    rows = {row["trial"]: row["recommended"] for row in summary(one)["front"]}
    assert rows == {5: False, 7: True, 3: False, 8: False}
    write_front(one)
    written = list(csv.DictReader((tmp_path / "front.csv").read_text().splitlines()))
    assert [row["trial"] for row in written if row["recommended"] == "True"] == ["7"]
    (table, *_) = front_tables(one, summary(one))
    assert list(table.columns[-1].cells)[1] == "recommended" and "and the recommended design" in str(table.title)


@pytest.mark.parametrize("measure", ["accuracy", "R squared", "agreement with the model"])
def test_columns_of_tables_are_named_by_what_the_scores_are(measure, tmp_path):
    name = measure.lower().replace(" ", "_")
    scores = {"validation": Score(0.5, 0.1, 9, measure=measure), "test": Score(0.4, 0.2, 8, measure=measure)}
    write_request(tmp_path, study(*FRONT).goals, (), {})
    for one in FRONT:
        write_trial(tmp_path, replace(one, **scores))
    write_front(open_study(tmp_path))
    written = list(csv.DictReader((tmp_path / "front.csv").read_text().splitlines()))
    kept = [written[0][key] for key in (name, f"{name}_se", f"test_{name}", f"test_{name}_se")]
    assert kept == ["0.5", "0.1", "0.4", "0.2"]
    stored = pq.read_table(tmp_path / "study.parquet").column_names
    for names in (list(written[0]), stored):
        assert f"test_{name}_se" in names and (measure == "accuracy" or not any("accuracy" in key for key in names))


def test_whether_the_design_fits_is_said_in_words():
    assert "It fits ice40-hx8k: 14 of 7,680 LUTs." in said(study(*FRONT, device="ice40-hx8k"))[0]
    guessed = trial(2, 14, 0.73, rung="estimate")
    assert "It fits ice40-hx8k: about 14 of 7,680 LUTs." in said(study(guessed, device="ice40-hx8k"))[0]
    assert "fits" not in said(study(*FRONT, device="xcup"))[0]


def test_the_first_reason_of_a_failure_is_said():
    one = study(*FRONT, Trial(9, "failed", reason="prune: no room"), Trial(10, "failed", reason="another"))
    text = " ".join(str(part) for part in front_tables(one, summary(one))[1:])
    assert "2 failed (the first: prune: no room)" in text
