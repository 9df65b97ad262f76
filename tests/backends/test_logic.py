from __future__ import annotations

import pytest

from forestc.backends.logic import Lookup, below, compared
from forestc.backends.verilog import core as verilog
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
    """Builds a netlist of two ports with `build`."""
    builder = NetlistBuilder("cells")
    a, b = (builder.input(Port(f"x{index}", "word", index), word) for index in range(2))
    builder.output(score_port(0), build(builder, a, b))
    return builder.build()


def test_a_table_of_more_bits_than_a_number_of_hls_holds_is_refused():
    with pytest.raises(InternalError, match=r"a table of 256 places; the most are 64"):
        verilog.emit(cells(WordType(4, False), lambda b, x, y: b.table([(x, 1), (y, 1)], 30)))
