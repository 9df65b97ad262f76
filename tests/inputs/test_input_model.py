"""Tests the input model: its content, the rows that it draws, and its probabilities of comparators."""

import numpy as np
import pytest
from input_models import CONSTANT, MIXED, NUMBERS, mixed_rows

from forestc.errors import ModelError, OptionError, RowsError
from forestc.inputs.learn import independent_log_likelihood, learned
from forestc.inputs.text import parsed, printed
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode


@pytest.fixture(scope="module")
def rows():
    return mixed_rows(4000, 1)


@pytest.fixture(scope="module")
def model(rows):
    return learned(MIXED, ArrayRows(rows, size=700), samples=2)


def test_what_is_kept_of_the_columns(model, rows):
    size, whole, kind, gap = model.inputs
    assert size.cuts == tuple(float(cut) for cut in MIXED.conditions.thresholds(0))
    assert (size.least, size.largest, size.whole, size.missing) == (rows[:, 0].min(), rows[:, 0].max(), False, None)
    assert (whole.least, whole.largest, whole.whole) == (0, 19, True)
    assert kind.codes == tuple(np.bincount(rows[:, 3].astype(int), minlength=7).tolist())
    assert gap.missing == np.isnan(rows[:, 4]).sum() > 0
    assert model.rows_seen == 4000 and model.comparators == model.kept == len(MIXED.conditions.comparators)


def test_drawn_rows_keep_ranges_whole_numbers_categories_and_missing_values(model, rows):
    drawn = model.rows(5000, seed=3)
    assert drawn.shape == (5000, 5) and not drawn[:, 1].any()  # Column 1 is not read.
    for column in (0, 2, 4):
        assert np.nanmin(drawn[:, column]) >= np.nanmin(rows[:, column])
        assert np.nanmax(drawn[:, column]) <= np.nanmax(rows[:, column])
    assert (drawn[:, 2] == np.floor(drawn[:, 2])).all() and len(np.unique(drawn[:, 2])) == 20
    assert (drawn[:, 0] == drawn[:, 0].astype(np.float32)).all()
    assert set(np.unique(drawn[:, 3])) == set(range(6))
    assert np.isnan(drawn[:, 4]).mean() == pytest.approx(np.isnan(rows[:, 4]).mean(), abs=0.02)
    assert np.array_equal(drawn, model.rows(5000, seed=3), equal_nan=True)
    assert not np.array_equal(drawn, model.rows(5000, seed=4), equal_nan=True)


def test_drawn_rows_follow_the_distribution(model, rows):
    """Compares each comparator's share, and the joint shares of two dependent columns."""
    drawn = model.rows(20_000)
    for each in model.inputs[:2]:
        for cut in each.cuts:
            assert (drawn[:, each.column] < cut).mean() == pytest.approx((rows[:, each.column] < cut).mean(), abs=0.02)
    assert (drawn[:, 3] == 2).mean() == pytest.approx((rows[:, 3] == 2).mean(), abs=0.02)
    both = ((rows[:, 0] < 0.3) & (rows[:, 2] < 5)).mean()
    assert abs(both - (rows[:, 0] < 0.3).mean() * (rows[:, 2] < 5).mean()) > 0.05  # The columns depend on each other.
    assert ((drawn[:, 0] < 0.3) & (drawn[:, 2] < 5)).mean() == pytest.approx(both, abs=0.025)


def test_held_out_bits_are_more_likely_than_if_they_were_independent(model, rows):
    fresh = mixed_rows(1000, 2)
    found = model.log_likelihood(fresh).mean()
    assert found > independent_log_likelihood(model, rows, fresh) + 1


def test_states_tell_every_comparator_of_a_row(model, rows):
    """Draws rows again from the states of given rows: both lie on the same side of every comparator."""
    again = model.raw_rows(model.values(model.encoded(rows), np.random.default_rng(0)))
    table = MIXED.conditions
    before, after = encode(MIXED, rows), encode(MIXED, again)
    for place in range(len(table)):
        feature = int(table.feature[place])
        sides = [
            table[place].sends_left(np.nan_to_num(words[:, feature]), np.isnan(words[:, feature]))
            for words in (before, after)
        ]
        assert np.array_equal(*sides)


def test_evidence_is_what_the_cuts_tell_of_a_span(model):
    size = model.inputs[0]
    states = size.encoded(np.linspace(size.least, size.largest, 2001))
    values = np.linspace(size.least, size.largest, 2001).astype(np.float32)
    for low, high in [(size.cuts[1], size.cuts[4]), (-np.inf, size.cuts[2]), (size.cuts[3], np.inf)]:
        fits = np.ones(len(values), dtype=bool)
        for variable, allowed in size.literals(low, high).items():
            fits &= np.isin(states[:, variable], allowed)
        assert np.array_equal(fits, (values >= low) & (values < high))


def test_text_form_parses_back_to_the_same_model(model):
    text = printed(model)
    assert text.startswith("forestc-inputs 1\n# Counts and ranges")
    again = parsed(text)
    assert printed(again) == text and again.inputs == model.inputs
    assert np.array_equal(again.rows(50, 7), model.rows(50, 7), equal_nan=True)


def test_the_same_samples_and_seed_give_the_same_file(rows):
    texts = {printed(learned(MIXED, ArrayRows(rows, size=size), samples=1, seed=5)) for size in (4000, 999)}
    assert len(texts) == 1


def test_least_count(model):
    withheld = model.with_least_count(50)
    assert all(count == 0 or count >= 50 for table in withheld.network.tables for count in table.ravel())
    assert all(count == 0 or count >= 50 for each in withheld.inputs for count in each.codes)
    assert parsed(printed(withheld)).rows(10).shape == (10, 5)
    with pytest.raises(OptionError, match="negative"):
        model.with_least_count(-1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("forestc-inputs 1", "forestc-inputs 2"),
        ('"columns": 4', '"columns": 5'),
        ('"columns": 4', '"columns": 1000000000000'),
        ('"raw": "float32"', '"raw": "int7"'),
        ('"anchors": [', '"anchors": [999999, '),
        ('"cuts": [', '"cuts": [1e999, '),
        ('"whole": true', '"whole": 1'),
        ('"column": 0', '"column": 7'),
        ('"groups": [[', '"groups": [[99, '),
        ("bayesian-network 1", "bayesian-network 9"),
        ('{"model"', '[{"model"'),
    ],
)
def test_damaged_text_is_refused(model, old, new):
    text = printed(model)
    assert old in text
    with pytest.raises(ModelError):
        parsed(text.replace(old, new, 1))


def test_other_models_columns_are_refused(model):
    with pytest.raises(RowsError, match="learn"):
        model.of(NUMBERS)


def test_one_row_and_no_comparators():
    one = learned(MIXED, ArrayRows(mixed_rows(1, 0)), samples=1)
    assert one.rows(20).shape == (20, 5)
    with pytest.raises(ModelError, match="compares nothing"):
        learned(CONSTANT, ArrayRows(mixed_rows(5, 0)), samples=1)
