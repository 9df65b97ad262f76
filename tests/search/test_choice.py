"""Tests that a choice among designs is counted, and what is said of a loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forestc.passes.scorer import Loss, RowErrors
from forestc.search.choice import BLOCKS, Choice, Differences, Evidence, smallest

LIMIT = 0.01


def errors_of(rows, designs, differing=0.1, loss=0.02, seed=0):
    """Draws the errors of a model, right on all rows but a tenth, and of designs that truly lose the same."""
    random = np.random.default_rng(seed)
    model = (random.random(rows) < 0.1).astype(np.float64)
    drawn = random.random((designs, rows))
    worse = np.where(model == 0, drawn < (differing + loss) / 2 / 0.9, drawn >= (differing - loss) / 2 / 0.1)
    return RowErrors(model, np.zeros(rows), True), [model, *worse.astype(np.float64)]


@pytest.mark.parametrize(("rows", "designs"), [(300, 40), (2 * BLOCKS + 7, 5)])
def test_the_optimism_of_a_choice_is_most_of_what_the_chosen_design_hides(rows, designs):
    hidden, counted = [], []
    for seed in range(30):
        baseline, errors = errors_of(rows, designs, seed=seed)
        losses = [baseline.loss(own) for own in errors]
        choice = Choice(losses, [Differences.of(own, baseline) for own in errors], baseline)
        sizes = np.array([100.0, *range(1, designs + 1)])
        chosen = choice.of(sizes, LIMIT, 0.0)
        if chosen:
            hidden.append(0.02 - losses[chosen].lost)
            counted.append(choice.optimism(sizes, LIMIT, 0.0))
    if rows > BLOCKS:  # so many rows that no design looks as good as it is not
        assert not hidden
    else:
        assert 0.3 * np.mean(hidden) < np.mean(counted) < 1.2 * np.mean(hidden)


def test_a_single_design_hides_nothing_and_the_first_is_always_good():
    baseline, errors = errors_of(500, 1)
    losses = [baseline.loss(own) for own in errors]
    choice = Choice(losses[:1], [Differences.of(errors[0], baseline)], baseline)
    assert choice.of(np.array([9.0]), LIMIT, 1.5) == 0 and choice.optimism(np.array([9.0]), LIMIT, 1.5) == 0
    lost, error = np.array([[0.5], [0.0], [0.0], [0.02]]), np.array([[0.0], [0.01], [0.0], [0.0]])
    sizes = np.array([9.0, 1.0, 5.0, 2.0])
    assert [smallest(sizes, lost, error, LIMIT, strict)[0] for strict in (0.0, 1.5)] == [1, 2]
    assert smallest(sizes[[0, 3]], lost[[0, 3]], error[[0, 3]], LIMIT, 1.5)[0] == 0


def test_the_word_follows_from_the_interval_and_no_difference_on_few_rows_shows_nothing():
    baseline, (own, *_) = errors_of(35, 1)
    few = Evidence(baseline.loss(own))
    assert few.loss.error == 0 and few.lost == 0 and few.interval[1] > 0.05
    assert (few.word(LIMIT), few.word(0.06)) == ("measured", "shown")
    baseline, (own, *_) = errors_of(few.enough(LIMIT) + 10, 1)
    assert Evidence(baseline.loss(own)).word(0.011) == "shown"
    assert (
        Evidence(baseline.loss(own), 0.02).word(LIMIT) == "" and Evidence(baseline.loss(own), 0.02).enough(0.02) is None
    )
    assert Evidence(baseline.loss(own), retrained=True).word(LIMIT) == "estimated"


def test_a_loss_of_r_squared_has_no_points():
    loss = Loss(0.3552, 0.0122, 0.0064, 221, "R squared")
    assert f"loses {loss.lost:.4f} of R squared (95 %: " in Evidence(loss).said(0.01)
    assert f"loses {100 * loss.lost:.2f} points of accuracy (" in Evidence(replace(loss, measure="accuracy")).said(0.01)
