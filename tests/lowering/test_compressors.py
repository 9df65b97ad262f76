"""Sums and comparisons by lookups equal arithmetic."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from forestc.lowering.compressors import at_least, below, total
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import WordType
from hw_sim import Simulator


def words(random: Random, builder: NetlistBuilder, count: int):
    widths = [random.choice((1, 1, 1, 2, 3, 5)) for _ in range(count)]
    return widths, [builder.input(f"x{k}", WordType(width, False)) for k, width in enumerate(widths)]


@pytest.mark.parametrize("seed", range(12))
def test_totals_and_thresholds(seed):
    random = Random(seed)
    builder = NetlistBuilder("t")
    widths, nets = words(random, builder, random.choice((1, 2, 7, 20)))
    constant = random.randint(0, 9)
    largest = sum((1 << width) - 1 for width in widths) + constant
    builder.output("total", total(builder, nets, largest, constant))
    limits = [random.randint(-1, largest + 1) for _ in range(3)]
    for k, limit in enumerate(limits):
        builder.output(f"reached{k}", at_least(builder, nets, limit))
    inputs = np.random.default_rng(seed).integers(0, 1 << np.array(widths), (500, len(widths)))
    got = Simulator(builder.build()).run(inputs)
    assert np.array_equal(got[:, 0], inputs.sum(axis=1) + constant)
    for k, limit in enumerate(limits):
        assert np.array_equal(got[:, k + 1], inputs.sum(axis=1) >= limit)


@pytest.mark.parametrize("width", range(1, 9))
def test_comparison(width):
    builder = NetlistBuilder("t")
    a, b = (builder.input(name, WordType(width, False)) for name in "ab")
    builder.output("below", below(builder, a, b))
    inputs = np.random.default_rng(width).integers(0, 1 << width, (2000, 2))
    assert np.array_equal(Simulator(builder.build()).run(inputs)[:, 0], inputs[:, 0] < inputs[:, 1])
    assert width_for(0, (1 << width) - 1).width == width
