"""Tests estimates before synthesis: exact where they must be, near where they were fitted, cheap."""

from __future__ import annotations

import os
from collections import Counter
from functools import reduce

import numpy as np
import pytest
from models import trained
from random_forests import random_forest
from sklearn.base import clone
from steps import calls_of
from thinned import only

import forestc
from forestc.commands.synth import synth
from forestc.costs import estimate as module
from forestc.costs.devices import DEVICES, ECP5, FAMILIES
from forestc.costs.estimate import Mapped, estimate, estimates, lut_range
from forestc.forest.builder import changed
from forestc.lowering.sums import sum_of_bits
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import Add, Less, WordType
from forestc.netlist.ports import Port
from forestc.toolchain.packaged import find_command


def netlist_of(kind, latency, passes=None):
    model, X, y = trained(kind)
    return lower(forestc.quantize(model, X, y, passes), LoweringOptions(latency=latency))


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    model, X, y = trained("xgboost-binary")
    model = clone(model).set_params(n_estimators=6).fit(X, y)
    out = tmp_path_factory.mktemp("estimate") / "out"
    return forestc.compile(model, X, out, label=y, latency=2, targets=["verilog"], name="m").design


@pytest.mark.parametrize("device", only(["xcup", "ice40-hx8k", "ecp5-85k"], 2))
def test_near_what_synthesis_finds(design, device):
    if find_command("yosys") is None and not os.environ.get("FORESTC_REQUIRE_TOOLS"):
        pytest.skip("yosys is not installed")
    output = synth(design, device)
    expected = output["estimate"]
    assert expected == estimate(design.netlist, device)
    low, high = expected["lut_range"]
    assert low < expected["lut"] < high
    assert 0.7 < expected["lut"] / output["lut"] < 1.4
    # An UltraScale+ implements a shift register as one LUT instead of several flip-flops.
    assert expected["ff"] == output["ff"] if device != "xcup" else expected["ff"] >= output["ff"]
    if output["fmax_mhz"]:
        assert 0.6 < expected["fmax_mhz"] / output["fmax_mhz"] < 1.6


def lut_features(netlist, family):
    return Mapped.of(netlist, family).lut_features()


def test_more_logic_takes_more_and_more_registers_are_faster():
    small, large = (netlist_of("xgboost-binary", 0, f"simplify,round-leaves{{leaf_bits={b},change=1}}") for b in (1, 8))
    staged = netlist_of("xgboost-binary", 4, "simplify,round-leaves{leaf_bits=8,change=1}")
    for device in ("lut6", "xcup", "ecp5-25k", "ice40-up5k"):
        assert estimate(small, device)["lut"] < estimate(large, device)["lut"]
        assert estimate(large, device)["ff"] == 0 < estimate(staged, device)["ff"]
    plain, fast = estimate(large, "ecp5-85k"), estimate(staged, "ecp5-85k")
    assert plain["fmax_mhz"] < fast["fmax_mhz"] and fast["latency_cycles"] == 4
    assert estimate(large, "lut6")["fmax_mhz"] is None


def test_one_bit_functions_are_counted_once_and_covered():
    builder = NetlistBuilder("n")
    word = [builder.input(Port(f"x{i}"), WordType(1, False)) for i in range(8)]
    wide = word[0]
    for bit in word[1:]:
        wide = builder.and_(wide, bit)
    builder.output(Port("y"), wide)
    netlist = builder.build()
    found = {family: lut_features(netlist, FAMILIES[family])["lut"] for family in ("lut6", "ice40")}
    assert found == {"lut6": 2, "ice40": 3}  # An AND of 8 inputs takes LUTs of 6 and 3 inputs, or of 4, 4 and 2.
    builder = NetlistBuilder("n")
    a, b = (builder.input(Port(name), WordType(8, False)) for name in ("x0", "x1"))
    builder.output(Port("y"), builder.add((a, b), width_for(0, 510)))
    chained = lut_features(builder.build(), ECP5)
    assert (chained["add"], chained["add_bits"], chained["lut"]) == (1, 9, 0)


def table(conditions):
    """Makes a netlist with a multiplexer for each value of this many bits, over random constants."""
    builder, random = NetlistBuilder("table"), np.random.default_rng(0)
    nets = [int(bit) for bit in random.integers(0, 2, 1 << conditions)]
    for place in range(conditions):
        bit = builder.input(Port(f"x{place}"), WordType(1, False))
        nets = [a if a == b else builder.mux(bit, a, b) for a, b in zip(nets[::2], nets[1::2], strict=True)]
    builder.output(Port("y"), nets[0])
    return builder.build()


def test_a_function_of_six_conditions_is_a_table():
    counts = {name: lut_features(table(6), FAMILIES[name])["lut"] for name in ("lut6", "xcup", "ecp5")}
    assert counts == {"lut6": 1, "xcup": 1, "ecp5": 4}
    assert estimate(table(6), "lut6")["lut"] <= 3
    assert lut_features(table(7), FAMILIES["lut6"])["lut"] <= 3  # Two tables and a multiplexer are enough.


@pytest.mark.parametrize("counted", [{0: 13, 1: 1}, {0: 30, 1: 1}, {0: 9, 2: 3}])
def test_a_sum_that_a_table_reads_is_counted(counted):
    builder = NetlistBuilder("n")
    bits = {}
    for place, count in counted.items():
        words = [builder.input(Port(f"x{place}_{i}"), WordType(13, False)) for i in range(count)]
        bits[place] = [builder.less(word, 4097 + 2 * i) for i, word in enumerate(words)]
    builder.output(Port("y"), sum_of_bits(builder, bits)[0])
    netlist = builder.build()
    inputs = 13 * sum(counted.values())  # The thresholds are odd, so comparisons read all bits.
    for device in DEVICES:
        lut_inputs = DEVICES[device].family.lut_inputs
        assert estimate(netlist, device)["lut"] >= (inputs - 1) / (lut_inputs + 1)


@pytest.mark.parametrize("seed", range(8))
def test_no_estimate_is_below_what_reads_all_bits(seed):
    netlist = lower(random_forest(seed, True), LoweringOptions(latency=seed % 2))
    for device in DEVICES:
        mapped = Mapped.of(netlist, DEVICES[device].family)
        assert mapped.fewest_luts() <= mapped.lut_features()["lut"]
        assert mapped.fewest_luts() <= estimate(netlist, device)["lut"]
    builder = NetlistBuilder("n")
    words = [builder.input(Port(f"x{place}"), WordType(1, False)) for place in range(36)]
    builder.output(Port("y"), reduce(builder.and_, words))
    counts = {name: Mapped.of(builder.build(), FAMILIES[name]).fewest_luts() for name in FAMILIES}
    # The counts are (36 - 1) divided by 5, 7, 5 and 3, rounded up.
    fours = dict.fromkeys(("ice40", "gw1n", "gw2a", "machxo", "gatemate"), 12)
    assert counts == {"lut6": 7, "xcup": 5, "ecp5": 7, "nexus": 7, **fours}


def test_ranges_of_small_designs_are_wider():
    assert lut_range(100, 0.8, 1.25, 0) == (79, 126)
    assert lut_range(4, 0.8, 1.25, 0) == (2, 6) and lut_range(4, 0.8, 1.25, 3) == (3, 6)


def test_a_constant_result():
    builder = NetlistBuilder("n")
    builder.output(Port("y"), 1)
    output = estimate(builder.build(), "ecp5-85k")
    assert (output["lut"], output["ff"]) == (0, 0) and output["fmax_mhz"] > 100


@pytest.mark.parametrize("seed", range(12))
def test_any_forest_can_be_estimated(seed):
    for latency in (0, 3):
        netlist = lower(random_forest(seed, True), LoweringOptions(latency=latency, outputs="scores"))
        kinds = Counter(type(cell) for cell in netlist.cells)
        output = estimates(netlist, "lut6")
        assert [one["device"] for one in output] == ["lut6", "xcup", "ecp5-85k", "ice40-hx8k"]
        assert all(one["lut"] >= 0 and (one["fmax_mhz"] or 1) > 0 for one in output)
        assert output[0]["lut"] > 0 or not kinds[Less] + kinds[Add]


def test_steps_are_linear_in_the_cells_and_large_netlists_are_left_out(monkeypatch):
    model, X, y = trained("forest-multi")
    forest = forestc.quantize(model, X, y)
    netlists = [lower(changed(forest, trees=forest.trees[:count])) for count in (2, len(forest.trees))]
    few, many = (calls_of(lambda own=own: estimate(own, "ecp5-85k")) / len(own.cells) for own in netlists)
    assert len(netlists[1].cells) > 2.5 * len(netlists[0].cells) and many < 1.3 * few
    monkeypatch.setattr(module, "MOST_CELLS", 100)
    assert estimates(netlists[1]) == []
