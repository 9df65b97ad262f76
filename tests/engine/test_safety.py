"""Tests damaged images, and models that change while rows go through, under Verilator: short runs of the benchmark."""

from __future__ import annotations

import numpy as np
import pytest
from engine_safety import CAPACITIES, DAMAGES, damage, damaged, right, run_cases, swaps
from walkers import random_image, read_results

from forestc.backends.engine.image_reader import ImageRefusedError, read_image
from forestc.backends.engine.walking import unpacked_results
from forestc.engine.capacity import MOST_STEPS
from forestc.engine.folder import described


@pytest.mark.parametrize("name", CAPACITIES)
@pytest.mark.parametrize("stall", [0, 5])
def test_damaged_images_are_refused_or_harmless(name, stall, need_tool):
    """No image hangs the engine or gives an unstated answer, and the next good image answers right."""
    need_tool("verilator")
    figures = damage(name, 140, stall)
    assert right(figures), figures
    assert figures["refused"] > 70 and figures["accepted"] > 20


def test_each_kind_of_damage_is_read_with_and_without_a_crc_that_fits():
    capacity = CAPACITIES["two banks"]
    good = random_image(capacity, 3, 3, 5)
    errors = dict[str, set[int]]()
    for number in range(420):
        kind, image = damaged(good, number)
        try:
            read_image(image.tobytes(), described(capacity))
            errors.setdefault(kind, set()).add(0)
        except ImageRefusedError as error:
            errors.setdefault(kind, set()).add(error.error)
    assert set(errors) == set(DAMAGES)
    assert set().union(*errors.values()) == set(range(10))
    assert errors["hostile"] == {0} and {0, 8} <= errors["flipped"] and {4, 8, 9} & errors["cut"]


def test_the_longest_walk_ends_within_the_bound(tmp_path, need_tool):
    """Uses all slots with as many steps as a slot can have: the bound for any image."""
    need_tool("verilator")
    capacity = CAPACITIES["two banks"]
    image = random_image(capacity, 5, capacity.slots, MOST_STEPS)
    random = np.random.default_rng(0)
    columns = random.integers(0, 256, (60, capacity.beats * capacity.lanes))
    shifts = (np.arange(capacity.lanes) * 8).astype(np.uint64)
    lanes = columns.astype(np.uint64).reshape(60, capacity.beats, capacity.lanes) << shifts
    (outcome,) = run_cases(capacity, [(image, np.bitwise_or.reduce(lanes, axis=2))], tmp_path)
    assert outcome.rows == 60 and outcome.results == read_results(capacity, [image], columns)[0]
    slots = read_image(image.tobytes(), described(capacity)).slots
    asked = sum(slot.steps + slot.count for slot in slots)
    # The first row may form a batch of its own; all later batches have six rows.
    assert asked <= capacity.most_clocks and 9 * 6 * asked < outcome.clocks <= 11 * 6 * asked + 200
    assert unpacked_results(capacity, outcome.results).shape == (60, 1 + capacity.outputs)


@pytest.mark.parametrize("stall", [0, 4, 9])
def test_models_change_and_no_row_is_lost_or_mixed(stall, need_tool):
    need_tool("verilator")
    figures = swaps(12_000, 400, stall, seed=stall + 1)
    assert figures["rows"] == 12_000 and figures["mixed"] == 0
    assert figures["swaps"] == figures["turns"] == figures["swaps_wanted"] == 29
    assert figures["rows_that_tell_models_apart"] > 11_000
