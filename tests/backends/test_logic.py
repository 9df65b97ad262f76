from __future__ import annotations

import pytest

from forestc.backends import amaranth, hls, verilog
from forestc.backends.logic import Lookup, below, compared
from forestc.errors import InternalError
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import WordType
from forestc.netlist.ports import Port, score_port


@pytest.mark.parametrize("word", [WordType(1, False), WordType(4, False), WordType(2, True), WordType(4, True)])
def test_a_word_is_compared_bit_by_bit(word):
    for threshold in range(word.low + 1, word.high + 1):
        text = compared(word, threshold, lambda place, inverted: f"{'no' if inverted else 'bits'}[{place}]")
        for x in range(word.low, word.high + 1):
            bits = [x >> place & 1 for place in range(word.width)]
            value = eval(text, {"bits": bits, "no": [1 - bit for bit in bits]})  # noqa: S307  made here
            assert value == (x < threshold), (text, x)


def test_bits_below_the_lowest_1_of_the_threshold_are_not_read():
    assert below("x", WordType(4, False), 12) == "~x[3] | ~x[2]"
    assert below("x", WordType(4, False), 5) == "~x[3] & (~x[2] | (~x[1] & ~x[0]))"
    assert below("x", WordType(4, True), -3) == "x[3] & (~x[2] | (~x[1] & ~x[0]))"


def test_tables_hold_sums():
    lookup = Lookup(((2, 1), (1, 3)), 1)
    sums = [1 + (index & 3) + 3 * (index >> 2) for index in range(8)]
    assert lookup.size == 8
    assert [lookup.values(place) for place in range(3)] == [
        sum((value >> place & 1) << index for index, value in enumerate(sums)) for place in range(3)
    ]


def cells(word, build):
    """A netlist of what `build` makes of two ports."""
    builder = NetlistBuilder("cells")
    a, b = (builder.input(Port(f"x{index}", "word", index), word) for index in range(2))
    builder.output(score_port(0), build(builder, a, b))
    return builder.build()


@pytest.mark.parametrize(
    ("build", "in_verilog", "in_amaranth", "in_hls"),
    [
        (
            lambda b, x, _: b.less(x, 2),
            "wire c4 = ~x0[1];",
            '"c4", unsigned(1), ~x0[1])',
            "c4 = (~x0 >> 1 & 1);",
        ),
        (
            lambda b, x, y: b.less(b.add((x, y), WordType(3, False)), 2),
            "wire c5 = sum4 < 3'd2;",
            '"c5", unsigned(1), sum4 < 2)',
            "c5 = sum4 < 2;",
        ),
        (
            lambda b, x, y: b.table([(x, 1), (y, 1)], 3),
            "sum4 = {SUM_2_2_BIT1[{x1, x0}], SUM_2_2_BIT0[{x1, x0}]};",
            "Cat(Const(0x5a5a, 16).bit_select(Cat(x0, x1), 1), Const(0x936c, 16).bit_select(Cat(x0, x1), 1)))",
            "sum4 = (0x5a5aULL >> (x0 | x1 << 2) & 1) << 0 | (0x936cULL >> (x0 | x1 << 2) & 1) << 1;",
        ),
        (
            lambda b, x, _: b.shift(x),
            "wire [2:0] sum4 = {x0, 1'd0};",
            "Cat(Const(0, 1), x0) + 0)",
            "sum4 = (uint8_t)x0 << 1;",
        ),
        (
            lambda b, x, _: b.extend(x, WordType(5, False)),
            "wire [4:0] sum4 = {3'd0, x0} + 5'd0;",
            '"sum4", unsigned(5), x0 + 0)',
            "sum4 = x0;",
        ),
    ],
)
def test_comparators_and_sums_are_the_same_logic_in_every_language(build, in_verilog, in_amaranth, in_hls):
    netlist = cells(WordType(2, False), build)
    assert in_verilog in verilog.emit(netlist)["cells.v"]
    assert in_amaranth in next(iter(amaranth.emit(netlist).values()))
    body = hls.cpp_body(netlist, "t", "", "", lambda x: x.name, lambda y: y.name)
    assert any(in_hls in line for line in body.statements)


def test_a_table_of_more_bits_than_a_number_of_hls_holds_is_refused():
    with pytest.raises(InternalError, match=r"a table of 256 places; the most are 64"):
        verilog.emit(cells(WordType(4, False), lambda b, x, y: b.table([(x, 1), (y, 1)], 30)))
