"""Tests networks of bits: they keep the netlist's meaning, and their covers by LUTs are complete and of least depth."""

from __future__ import annotations

import numpy as np
import pytest
from random_forests import random_forest

from forestc.costs.bit_network import BitNetwork
from forestc.costs.devices import ECP5, FAMILIES, Luts
from forestc.costs.lut_cover import Mapper
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import Input, WordType
from forestc.netlist.ports import Port
from hw_sim import Simulator


def evaluated(bits, words):
    """Evaluates a network without chains or registers; returns the outputs' words. words: of each input port,
    (rows,)."""
    values = {0: np.zeros(len(next(iter(words.values()))), dtype=np.int64)}

    def of(edge):
        return values[edge >> 1] ^ (edge & 1)

    for net, cell in enumerate(bits.netlist.cells):
        for place in range(cell.width if isinstance(cell, Input) else 0):
            values[bits.starts[net] + place] = words[cell.port.name] >> place & 1
    for node, edges in enumerate(bits.nodes):
        if edges and bits.alive[node]:
            first, *others = map(of, edges)
            if len(others) == 2:
                values[node] = np.where(first, *others)
            else:
                values[node] = first ^ others[0] if node in bits.xors else first & others[0]
    found, place = {}, 0
    for port, net in bits.netlist.outputs:
        width = bits.netlist.types[net].width
        found[port.name] = sum(of(edge) << i for i, edge in enumerate(bits.outputs[place : place + width]))
        place += width
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_network_of_bits_equals_its_netlist(seed):
    netlist = lower(random_forest(seed, True), LoweringOptions(outputs="scores"))
    random = np.random.default_rng(seed)
    types = {cell.port.name: netlist.types[net] for net, cell in netlist.inputs}
    words = {name: random.integers(word.low, word.high + 1, 500) for name, word in types.items()}
    if not words:
        return
    found, expected = evaluated(BitNetwork(netlist, ()), words), Simulator(netlist).run(words)
    for column, (port, net) in enumerate(netlist.outputs):
        mask = (1 << netlist.types[net].width) - 1
        assert np.array_equal(found[port.name], expected[:, column] & mask)


def conjunction(bits):
    """Makes a netlist: an AND of this many inputs, one after the other."""
    builder = NetlistBuilder("n")
    words = [builder.input(Port(f"x{place}"), WordType(1, False)) for place in range(bits)]
    wide = words[0]
    for word in words[1:]:
        wide = builder.and_(wide, word)
    builder.output(Port("y"), wide)
    return builder.build()


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("seed", range(6))
def test_covers_are_whole(family, seed):
    bits = BitNetwork(lower(random_forest(seed, True), LoweringOptions(latency=seed % 3)), family.chained)
    luts = bits.cover(family.luts)
    chains = {edge >> 1 for _, results in bits.chains for edge in results}
    reached, todo = set(), set(bits.roots())
    while todo:
        node = todo.pop()
        reached.add(node)
        read = luts[node] if bits.nodes[node] else ()
        assert len(read) < len(family.luts.areas)
        todo |= set(read) - reached
        if node in chains:
            todo |= {edge >> 1 for edge in bits.feeds[node]} - reached
    assert set(luts) == {node for node in reached if bits.nodes[node]}
    for root, read in luts.items():  # The inputs of a LUT must cut its root off from the leaves.
        below, seen = [root], set()
        while below:
            node = below.pop()
            assert bits.nodes[node]
            more = {edge >> 1 for edge in bits.nodes[node]} - read - seen - {0}
            seen |= more
            below += more


def test_slack_saves_area_and_delays_make_luts_larger():
    ands = BitNetwork(conjunction(16), ())
    assert len(ands.cover(Luts((0, 1, 1, 1, 1)))) == 5
    wide = Luts((0, 1, 1, 1, 1, 2, 4), ECP5.luts.delays)
    largest = [max(map(len, ands.cover(wide._replace(slack=slack)).values())) for slack in (0.0, 9.0)]
    assert largest[0] > 4 == largest[1]


def test_a_rare_function_of_many_leaves_is_no_constant():
    """Uses a function that is 0 for all random values, like a constant; a contradiction of few leaves is one."""
    assert len(BitNetwork(conjunction(24), ()).cover(Luts((0, 1, 1, 1, 1)))) == 8
    builder = NetlistBuilder("n")
    a, b = (builder.input(Port(name), WordType(1, False)) for name in ("x0", "x1"))
    builder.output(Port("y"), builder.and_(builder.and_(a, b), builder.mux(a, builder.not_(b), a)))
    bits = BitNetwork(builder.build(), ())
    assert bits.outputs == [0] and not bits.cover(Luts((0, 1, 1, 1, 1)))


def test_results_of_chains_wait_for_what_they_read():
    fan_ins = [(), (), (), (0, 1), (), (2, 4)]
    cover = Mapper(fan_ins, {4: (3,)}, [5], Luts((0, 1, 1))).cover()
    assert cover == {5: {2, 4}, 3: {0, 1}}
