from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forestc.errors import InternalError, ModelError
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist import ir
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, FALSE, TRUE, LinearCell, Origin, WordType, evaluate, linear, reads
from forestc.netlist.ports import Port
from forestc.netlist.text import parse_netlist, print_netlist
from forestc.netlist.verify import verify

CASES = Path(__file__).parents[1] / "cases"
BYTE = WordType(8, False)


@pytest.fixture
def builder():
    return NetlistBuilder("t")


def test_equal_cells_are_one_cell(builder):
    x = builder.input(Port("x"), BYTE)
    assert builder.less(x, 9) == builder.less(x, 9, Origin(3, 4))
    assert builder.less(x, 9) != builder.less(x, 10)
    a, b = builder.less(x, 9), builder.less(x, 10)
    assert builder.and_(a, b) == builder.and_(b, a)


def test_rules_of_the_builder(builder):
    x, y = builder.input(Port("x"), BYTE), builder.input(Port("y"), BYTE)
    a, b = builder.less(x, 9), builder.less(y, 9)
    assert (builder.less(x, 0), builder.less(x, 256)) == (FALSE, TRUE)
    assert builder.not_(builder.not_(a)) == a
    assert (builder.and_(a, FALSE), builder.and_(a, TRUE), builder.and_(a, a)) == (FALSE, a, a)
    assert (builder.or_(a, FALSE), builder.or_(a, TRUE), builder.or_(a, a)) == (a, TRUE, a)
    assert (builder.mux(a, x, x), builder.mux(TRUE, x, y), builder.mux(FALSE, x, y)) == (x, x, y)
    assert builder.mux(a, TRUE, FALSE) == a
    assert builder.mux(a, FALSE, TRUE) == builder.not_(a)
    assert builder.mux(a, b, FALSE) == builder.and_(a, b)
    assert builder.mux(a, TRUE, b) == builder.or_(a, b)
    assert builder.in_set(x, [999]) == FALSE
    assert builder.compare(x, x) == FALSE
    assert builder.register(TRUE) == TRUE
    assert builder.less(builder.input(Port("bit"), BIT), 1) == builder.not_(builder.input(Port("bit"), BIT))
    assert builder.not_(builder.not_(x)) == x and builder.type_of(builder.not_(x)) == BYTE
    assert builder.not_(builder.const(5, BYTE)) == builder.const(250, BYTE)


def test_sums_without_an_adder(builder):
    x, a, b = (builder.input(Port(name), word) for name, word in (("x", BYTE), ("a", BIT), ("b", BIT)))
    two, three = builder.const(2, WordType(2, False)), builder.const(3, WordType(2, False))
    assert builder.add((x, x), WordType(9, False)) == builder.shift(x)
    assert builder.add((x, x), WordType(10, False)) != builder.shift(x)  # The type has a bit that it does not need.
    assert (builder.shift(two), builder.extend(x, BYTE)) == (builder.const(4, WordType(3, False)), x)
    assert builder.extend(three, BYTE) == builder.const(3, BYTE)
    table = builder.table([(a, 1), (b, 1), (a, 2), (two, 3), (FALSE, 1)], 100)
    assert builder.cell_of(table) == ir.Table(((a, 3), (b, 1)), 6, 4)
    assert builder.type_of(builder.table([(a, 3), (b, 1)], 3)).width == 2  # as wide as values that occur
    assert builder.table([(a, 1)], 1) == a
    assert builder.table([(two, 2), (TRUE, 1)], 5) == builder.const(5, WordType(3, False))


SUMS = """\
netlist "sums"
%2 = input "x" : u3
%3 = input "y" : u2
%4 = table 3, 1 %2, 2 %3 : u5
%5 = shift %2 : u4
%6 = extend %5 : u5
output "a" = %4
output "b" = %6
"""


def test_sums_without_an_adder_print_and_parse():
    netlist = parse_netlist(SUMS)
    assert netlist.cells[4:] == (ir.Table(((2, 1), (3, 2)), 3, 5), ir.Shift(2), ir.Extend(5, 5))
    assert print_netlist(netlist) == SUMS


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1 %2, 2 %3", "1 %2, 2 %2", "words are none, repeated or signed"),
        ("1 %2, 2 %3", "1 %2, 0 %3", "a factor below 1"),
        ("3, 1 %2", "-3, 1 %2", "a constant below 0"),
        ("%3 : u5", "%3 : u6", "holds at most 16"),
        ("3, 1 %2, 2 %3", "3, 1 %2, %3", "unknown cell"),
        ('"x" : u3', '"x" : s3', "operand is signed|signed"),
        ("extend %5 : u5", "extend %5 : u4", "is not narrower"),
    ],
)
def test_broken_sums_are_found(old, new, message):
    assert old in SUMS
    with pytest.raises((ModelError, InternalError), match=message):
        parse_netlist(SUMS.replace(old, new, 1))


def test_cells_nobody_reads_are_left_out_but_ports_stay(builder):
    x, _ = builder.input(Port("x"), BYTE), builder.input(Port("y"), BYTE)
    builder.less(x, 3)
    builder.output(Port("out"), builder.less(x, 5))
    netlist = builder.build()
    assert [cell for cell in netlist.cells if isinstance(cell, ir.Less)] == [ir.Less(2, 5)]
    assert [cell.port.name for _, cell in netlist.inputs] == ["x", "y"]


@pytest.mark.parametrize(
    ("cell", "values", "result"),
    [
        (ir.Const(5, 8, False), (), 5),
        (ir.Less(2, 7), (6,), 1),
        (ir.Less(2, 7), (7,), 0),
        (ir.InSet(2, (1, 4)), (4,), 1),
        (ir.InSet(2, (1, 4)), (2,), 0),
        (ir.Not(2), (1,), 0),
        (ir.Not(2, 5), (6,), 25),
        (ir.And(2, 3), (1, 0), 0),
        (ir.Or(2, 3), (1, 0), 1),
        (ir.Mux(2, 3, 4), (1, 10, 20), 10),
        (ir.Mux(2, 3, 4), (0, 10, 20), 20),
        (ir.Add((2, 3, 4), 9, True), (1, -2, 3), 2),
        (ir.Table(((2, 1), (3, 4)), 5, 4), (1, 2), 14),
        (ir.Shift(2), (5,), 10),
        (ir.Extend(2, 3), (5,), 5),
        (ir.Slice(2, 1, 3), (29,), 6),
        (ir.Compare(2, 3), (1, 2), 1),
        (ir.Compare(2, 3), (2, 2), 0),
    ],
)
def test_what_cells_mean(cell, values, result):
    assert evaluate(cell, values) == result
    assert len(reads(cell)) == len(values)
    if isinstance(cell, LinearCell):
        terms, constant = linear(cell)
        held = dict(zip(reads(cell), values, strict=True))
        assert constant + sum(factor * held[a] for a, factor in terms) == result


@pytest.mark.parametrize(
    ("low", "high", "width", "signed"),
    [
        (0, 0, 1, False),
        (0, 255, 8, False),
        (-1, 0, 2, True),
        (-1, -1, 2, True),
        (-128, 127, 8, True),
        (-129, 0, 9, True),
        (-3, 200, 9, True),
    ],
)
def test_narrowest_words(low, high, width, signed):
    assert width_for(low, high) == WordType(width, signed)


def small():
    return lower(parse_forest((CASES / "small.forest").read_text()), LoweringOptions(latency=2, outputs="both"))


def test_netlists_print_and_parse_back_the_same(golden):
    netlist = small()
    text = print_netlist(netlist)
    assert parse_netlist(text) == netlist
    golden("small.netlist", text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("netlist ", "nutlist ", "not a netlist"),
        ("less %2, 90", "less %99, 90", "reads a net that is not above it|can't read"),
        ("less %2, 90", "lesser %2, 90", "unknown cell"),
        ("less %2, 90", "less %2", "unknown cell|can't read"),
        ("less %2, 90 : u1", "less %2, 90 : u2", "wrong type"),
        ("less %2, 90", "less %2, 900", "decides nothing"),
        ("output ", "%99 = ", "can't read"),
        ('netlist "', 'netlist "\\x', "a text is not JSON"),
    ],
)
def test_damaged_text_is_refused(old, new, message):
    text = print_netlist(small())
    assert old in text
    with pytest.raises((ModelError, InternalError), match=message):
        parse_netlist(text.replace(old, new, 1))


def broken(change):
    builder = NetlistBuilder("t")
    x, y = builder.input(Port("x"), BYTE), builder.input(Port("y"), BYTE)
    a = builder.less(x, 9)
    total = builder.add((x, y), WordType(9, False))
    builder.output(Port("a"), builder.register(a))
    builder.output(Port("s"), builder.register(total))
    netlist = builder.build()
    return replace(netlist, **change(netlist))


def swap(net, cell):
    return lambda netlist: {"cells": (*netlist.cells[:net], cell, *netlist.cells[net + 1 :])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap(0, ir.Const(1, 1, False)), "nets 0 and 1 are not the one-bit constants"),
        (swap(4, ir.Less(5, 9)), "net 4 .Less..*|reads a net that is not below it"),
        (swap(4, ir.Not(2)), "netlist t, net 4.*operand is not one bit"),
        (swap(4, ir.Not(2, 9)), "netlist t, net 4.*operand is not 9 unsigned bits"),
        (swap(3, ir.Input(Port("x"), 8, False)), "second input named 'x'"),
        (swap(5, ir.Add((2, 3), 7, False)), "narrower than an operand"),
        (swap(5, ir.Add((2,), 9, False)), "fewer than two operands"),
        (swap(6, ir.And(4, 4)), "comes after 0 cycles|differ|output 'a'"),
        (lambda n: {"outputs": ()}, "has no output"),
        (lambda n: {"outputs": ((Port("a"), 6), (Port("a", index=1), 7))}, "two outputs of one name"),
        (lambda n: {"outputs": ((Port("a"), 6), (Port("s"), 5))}, "comes after 0 cycles, not the netlist's 1"),
        (lambda n: {"types": (*n.types[:-1], BIT)}, "has type"),
    ],
)
def test_broken_netlists_are_found(change, message):
    with pytest.raises(InternalError, match=message):
        verify(broken(change))


def test_paths_of_different_latency_are_found(builder):
    x, y = builder.input(Port("x"), BIT), builder.input(Port("y"), BIT)
    builder.output(Port("o"), builder.and_(builder.register(x), y))
    with pytest.raises(InternalError, match=r"reads nets of different latencies: \[0, 1\] cycles"):
        builder.build()
