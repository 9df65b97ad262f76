from __future__ import annotations

import pytest
from random_forests import random_forest

from forestc.lowering.timing import DELAYS, Timing, pipelined, shortest_stages, stages_of
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import BIT, FALSE, Const, WordType, reads
from forestc.netlist.ports import Port


@pytest.mark.parametrize("target", list(DELAYS))
@pytest.mark.parametrize("latency", [1, 2, 3, 6])
def test_stages_are_as_short_as_they_can_be(target, latency):
    """No division into stages from the inputs on has a stage shorter by a hundredth."""
    netlist = lower(random_forest(4, True, "vector"), LoweringOptions(outputs="both"))
    timing = Timing(netlist, DELAYS[target])
    stages = shortest_stages(timing, latency)
    for net, cell in enumerate(netlist.cells):
        below = [a for a in reads(cell) if not isinstance(netlist.cells[a], Const)]
        assert all(stages.stage[a] <= stages.stage[net] for a in below)
    ends = [net for _, net in netlist.outputs]
    assert max(stages.stage[ends]) < latency
    shorter = timing.placed(max(stages.at) * 0.99)
    assert max(stages.at) == pytest.approx(max(stages.own)) or max(shorter.stage[ends]) >= latency


def chain(conditions, name="chain"):
    """Makes a netlist that depends on this many one-bit ports, with a multiplexer for each except the first."""
    builder = NetlistBuilder(name)
    ports = [builder.input(Port(f"x{index}"), BIT) for index in range(conditions)]
    net = ports[0]
    for index, select in enumerate(ports[1:]):
        net = builder.mux(select, builder.not_(net), net if index % 2 else FALSE)
    builder.output(Port("label"), net)
    return builder.build()


@pytest.mark.parametrize(("conditions", "levels"), [(2, 1), (6, 1), (7, 2), (11, 2), (12, 3)])
def test_multiplexers_of_six_conditions_are_one_level(conditions, levels):
    netlist = chain(conditions)
    (stage,) = stages_of(netlist, DELAYS["lut6"])
    assert len(stage.path) == levels
    assert stage.delay == pytest.approx(sum(delay for _, delay in stage.path))


def test_a_register_is_a_level_of_its_own():
    """A register fits between two levels of eleven conditions; one cell reads its output."""
    netlist, places = pipelined(chain(11), 2, DELAYS["lut6"])
    assert [len(stage.path) for stage in stages_of(netlist, DELAYS["lut6"])] == [1, 1]
    assert len(places) == len(chain(11).cells)
    six, _ = pipelined(chain(6), 2, DELAYS["lut6"])
    assert [len(stage.path) for stage in stages_of(six, DELAYS["lut6"])] == [1, 0]  # beyond the table of delays


def test_low_bits_that_a_threshold_does_not_need_take_no_time():
    def delay(threshold, signed=False):
        builder = NetlistBuilder("less")
        builder.output(Port("label"), builder.less(builder.input(Port("x0"), WordType(8, signed)), threshold))
        return stages_of(builder.build(), DELAYS["ecp5"])[0].delay

    assert delay(128) < delay(4) < delay(2) == delay(129)  # Six bits are one LUT, seven and eight are two.
    assert delay(128) == delay(0, signed=True)  # Only one bit is read.


def test_comparisons_are_absorbed_with_all_the_bits_that_they_read():
    """Two comparisons of three bits and a gate are one LUT; two of four bits are not."""

    def levels(threshold):
        builder = NetlistBuilder("pair")
        less = [builder.less(builder.input(Port(f"x{index}"), WordType(4, False)), threshold) for index in range(2)]
        builder.output(Port("label"), builder.and_(*less))
        return len(stages_of(builder.build(), DELAYS["lut6"])[0].path)

    assert (levels(6), levels(5)) == (1, 2)
