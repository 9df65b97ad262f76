"""What a search may try: every value that a pass names makes a valid pass, and a choice becomes the passes it says."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from models import trained

from forestc import load
from forestc.costs.prices import prices
from forestc.errors import OptionError
from forestc.exploration.goals import goals_of, limits_of
from forestc.exploration.request import ExploreRequest
from forestc.exploration.space import LEAF_PASS, SHRINK, compile_space, passes_of, spelt, starts
from forestc.exploration.study import Goal, Limit
from forestc.fields.parameters import Choice, Whole, used
from forestc.passes import PASSES
from forestc.passes.base import parse_passes
from forestc.passes.options import space_of
from forestc.rows.batches import ArrayRows
from forestc.training import TRAINERS, Task


def values_of(one):
    if isinstance(one, Choice):
        return one.values
    if isinstance(one, Whole):
        return range(one.low, one.high + 1, one.step)
    return (one.low, (one.low * one.high) ** 0.5 if one.log else (one.low + one.high) / 2, one.high)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_every_value_of_every_space_makes_a_valid_pass(name):
    step = PASSES[name]
    known = {option.name for option in fields(step)}
    for place, one in enumerate(space_of(step)):
        assert one.name in known and set(one.when or {}) <= {other.name for other in space_of(step)[:place]}
        for value in values_of(one):
            step(**{one.name: value, **{other: allowed[0] for other, allowed in (one.when or {}).items()}})


def test_random_choices_of_the_spaces_are_accepted():
    """A pass with options that exclude each other refuses to be made."""
    random = np.random.default_rng(0)
    for step in PASSES.values():
        for _ in range(200):
            chosen = {}
            for one in space_of(step):
                if used(one, chosen):
                    some = values_of(one)
                    chosen[one.name] = some[int(random.integers(len(some)))]
            assert step(**chosen)


def space_for(kind="xgboost-binary", **more):
    model, X, y = trained(kind)
    forest = load(model)
    asked = ExploreRequest(model, goals=goals_of(None, "xcup", None), rows=X, device="xcup", **more)
    half = len(X) // 2
    return compile_space(asked, forest, ArrayRows(X[:half], y[:half]), ArrayRows(X[half:], y[half:])), asked


@pytest.mark.parametrize("trainer", TRAINERS)
def test_no_option_of_training_has_the_name_of_one_of_compilation(trainer):
    _, X, y = trained("xgboost-binary")
    task = Task(X, y, tuple(f"x{column}" for column in range(X.shape[1])), 2, prices("lut6"))
    assert not {one.name for one in TRAINERS[trainer].space(task)} & {one.name for one in space_for()[0]}


def test_a_choice_is_the_passes_that_it_says():
    space, asked = space_for()
    ways = next(one for one in space if one.name == SHRINK).values
    assert set(ways) == {
        "prune-splits",
        "prune-trees",
        "prune-trees+prune-splits",
        "regrow-trees",
        "extract-rules",
        "none",
    }
    for start in starts(space):
        output = spelt(start, asked)
        if "level" in start:
            assert output == {"level": start["level"]}
            continue
        passes = passes_of(start, asked)
        assert passes == parse_passes(output["passes"], PASSES)
        assert [step.name for step in passes][1:4] == ["share-thresholds", "quantize-inputs", "round-leaves"]
    assert {"level": 2} in starts(space)


def test_passes_that_refuse_the_model_are_not_tried():
    space, _ = space_for("boosting-regression")
    ways = next(one for one in space if one.name == SHRINK).values
    assert "prune-splits" in ways and "extract-rules" not in ways
    assert not [
        one for one in space if one.name.startswith("extract-rules.") or one.name in (LEAF_PASS, "fit-leaves.leaf_bits")
    ]


def test_rules_of_many_classes_are_not_tried():
    space, _ = space_for("xgboost-multi")
    assert "extract-rules" not in next(one for one in space if one.name == SHRINK).values


def test_the_first_designs_are_quick_and_levels_that_search_come_behind_the_ladders():
    first = starts(space_for()[0])
    assert [start.get("regrow-trees.trees") for start in first[:5]] == [3, None, 6, 12, 25]
    assert [start["level"] for start in first if "level" in start] == [1, 2, 3, 0] and first[-3]["level"] == 2
    prices = [start["prune-splits.price"] for start in first if start.get(SHRINK) == "prune-splits"]
    assert prices == sorted(prices, reverse=True) and len(prices) == 8


def test_goals_and_limits_by_the_names_that_users_write():
    assert goals_of("luts,accuracy", "xcup", None) == (Goal("lut", False, "LUTs"), Goal("accuracy", True))
    assert limits_of(["fmax>=150", " lut <= 1e3"], "xcup", None) == (
        Limit("fmax_mhz", True, 150.0), Limit("lut", False, 1000.0),
    )  # fmt: skip
    assert limits_of([Limit("luts", False, 900.0)], "xcup", None) == (Limit("lut", False, 900.0),)


@pytest.mark.parametrize(
    ("goals", "limits", "device", "cpu", "says"),
    [
        ("lutz,accuracy", (), "xcup", None, "unknown goal 'lutz'"),
        ("lut,lut", (), "xcup", None, "name one figure twice"),
        ("accuracy", (), "xcup", None, "one goal alone"),
        ("flash,accuracy", (), "xcup", None, "goals=: flash is a figure of a processor"),
        (None, ("lut<300",), "xcup", None, "can't read the limit 'lut<300'"),
        (None, ("lut<=many",), "xcup", None, "can't read the limit"),
        (None, ("accuracy>=95",), "xcup", None, "accuracy is a share, at most 1: accuracy>=95"),
        (None, ("lut<=1e999",), "xcup", None, "can't read the limit"),
        (None, (Limit("lut", False, float("nan")),), "xcup", None, "the limit of lut is no number"),
        (None, ("speed>=1",), "xcup", None, "unknown limit 'speed'"),
        (None, (), "ecp6", None, "no estimates for 'ecp6'"),
        (None, (), None, "z80", "cpu=: unknown processor 'z80'"),
    ],
)
def test_what_can_not_be_asked_is_named(goals, limits, device, cpu, says):
    with pytest.raises(OptionError) as caught:
        wanted = goals_of(goals, device, cpu)
        limits = limits_of(limits, device, cpu)
        ExploreRequest("model.json", "rows.csv", goals=wanted, limits=limits, device=device, cpu=cpu)
    assert says in caught.value.args[0]
