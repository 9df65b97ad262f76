"""Tests which cells lowering makes, in the netlist's text form."""

from __future__ import annotations

import pytest
from forest_texts import head

from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import Less, compares_sum
from forestc.netlist.text import print_netlist

WORDS = ("a uint4", "b uint4")
THREE = head(*WORDS, bias="0 0 0", decision="argmax on scores", classes='["p", "q", "r"]')


def two_classes(threshold):
    return head(*WORDS, decision=f"threshold {threshold} on scores", classes='["no", "yes"]')


def stump(feature, threshold, leaves, output=0):
    below, above = leaves
    return f"tree outputs {output}\n0: {feature} < {threshold} ? 1 : 2\n1: leaf {below}\n2: leaf {above}\n"


def lowered(text, **options):
    """Returns the cells except ports and constants, without their origins."""
    lines = print_netlist(lower(parse_forest(text), LoweringOptions(**options))).splitlines()
    cells = [line.split("  @")[0] for line in lines if line.startswith("%")]
    return [cell for cell in cells if " input " not in cell and " const " not in cell]


def votes(votes_of_a, votes_of_b, threshold=2):
    """Makes two trees of one split each with these numbers of votes."""
    trees = stump(0, 3, (0, votes_of_a)) + stump(1, 5, (0, votes_of_b))
    return two_classes(threshold) + trees


def test_few_bits_that_are_compared_with_a_threshold_are_a_table():
    comparators = ["%4 = less %2, 3 : u1", "%5 = not %4 : u1", "%6 = less %3, 5 : u1", "%7 = not %6 : u1"]
    assert lowered(votes(1, 1)) == [
        *comparators,
        "%8 = table 0, 1 %5, 1 %7 : u2",
        "%9 = less %8, 2 : u1",
        "%10 = not %9 : u1",
    ]
    assert lowered(votes(1, 1), family="ice40")[4] == "%8 = add %5, %7 : u2"  # The family has LUTs of four inputs.
    assert lowered(votes(1, 1), outputs="scores")[4] == "%8 = add %5, %7 : u2"  # an output is not compared


def test_words_of_more_than_six_bits_are_added():
    six, seven = lowered(votes(7, 7)), lowered(votes(7, 15))
    assert sum(" table " in line for line in six) == 1 and not any(" add " in line for line in six)
    assert sum(" add " in line for line in seven) == 1 and not any(" table " in line for line in seven)


def test_a_word_twice_is_shifted():
    twice = stump(0, 3, (0, 9)) * 2
    assert lowered(two_classes(9) + twice) == [
        "%6 = less %2, 3 : u1",
        "%7 = mux %6, %4, %5 : u4",
        "%8 = shift %7 : u5",
        "%9 = less %8, 9 : u1",
        "%10 = not %9 : u1",
    ]


def test_counts_of_higher_places_are_shifted_before_they_are_added():
    many = two_classes(9) + "".join(stump(i % 2, 2 + i, (0, 3)) for i in range(13))
    lines = lowered(many)
    assert sum(" shift " in line for line in lines) == 1
    assert sum(" table " in line for line in lines) == 2  # Both positions share their bits.


def test_scores_of_several_widths_are_extended_to_be_compared():
    trees = stump(0, 3, (0, 1), 0) + stump(1, 5, (0, 3), 1) + stump(0, 7, (0, 9), 2)
    assert lowered(THREE + trees)[6:9] == [
        "%14 = extend %5 : u4",
        "%15 = extend %9 : u4",
        "%18 = compare %14, %15 : u1",
    ]


@pytest.mark.parametrize(("votes_of_b", "chained"), [(1, False), (15, True)])
def test_sums_of_adders_are_compared_on_their_carry_chains(votes_of_b, chained):
    netlist = lower(parse_forest(votes(15, votes_of_b, 8)))
    comparisons = [cell for cell in netlist.cells if isinstance(cell, Less)]
    assert [compares_sum(netlist, cell) for cell in comparisons] == [False, False, chained]
