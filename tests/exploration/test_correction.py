from __future__ import annotations

import pytest

from forestc.exploration.correction import corrected, corrections
from forestc.exploration.front import equals
from forestc.exploration.study import Goal, Score, Study, Trial


def trial(number, lut, measured=None, accuracy=0.9, error=0.01):
    figures = {"estimate": {"lut": lut}} | ({} if measured is None else {"synthesis": {"lut": measured}})
    return Trial(number, "complete", figures=figures, validation=Score(accuracy, error, 100))


def test_a_few_measured_designs_correct_by_a_factor_and_many_by_a_line():
    few = corrections([trial(0, 100.0, 80.0), trial(1, 7.0)])["lut"]
    assert few.designs == 1 and few.of(100.0) == pytest.approx(80.0) and few.of(10.0) == pytest.approx(8.0)
    sizes = [2.0**k for k in range(3, 12)] * 3
    many = corrections([trial(k, size, 3 * size**0.8) for k, size in enumerate(sizes)])["lut"]
    assert many.slope == pytest.approx(0.8, abs=0.02) and many.of(500.0) == pytest.approx(3 * 500**0.8, rel=0.05)


def test_a_correction_keeps_the_order_of_estimates():
    odd = corrections([trial(0, 10.0, 900.0), trial(1, 1000.0, 5.0)])["lut"]
    assert odd.of(10.0) < odd.of(20.0) < odd.of(1000.0)


def test_figures_come_from_the_highest_rung_and_else_are_corrected():
    known = corrections([trial(0, 100.0, 50.0)])
    assert corrected(trial(1, 40.0), known).figure("lut") == pytest.approx(20.0)
    assert corrected(trial(0, 100.0, 50.0), known).figure("lut") == 50.0
    assert corrections([trial(1, 40.0)]) == {}


def test_points_within_a_standard_error_are_equal_to_the_smaller(tmp_path):
    goals = (Goal("lut", False), Goal("accuracy", True))
    trials = (trial(0, 10.0, accuracy=0.90), trial(1, 20.0, accuracy=0.905), trial(2, 30.0, accuracy=0.95))
    study = Study(tmp_path, goals, (), {}, trials)
    assert [each.number for each in study.front] == [0, 1, 2]
    assert equals(study) == {1: 0}
