"""Builds sums of trees and of other words, with adders of two operands and with tables for narrow words.

Leaves are counted from each tree's smallest, so that words are unsigned. The sum of the smallest leaves is an offset,
which becomes a constant at the end, or part of the decision's threshold.

A table that adds six bits is one LUT for each bit of the sum. If LUTs have six inputs, tables take fewer of them than
adders, and are one level deep. If a sum is only compared with a threshold, narrow words are added bit by bit, the bits
of one weight together (Wallace's tree with counters of up to six bits, Dadda, Alta Frequenza 34, 1965). Once six bits
are left, their table and the comparison become one LUT.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import count
from typing import NamedTuple, TypeAlias, TypeVar

from forestc.forest.ir import LEAF
from forestc.lowering.draft import Draft
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, FALSE, Const, Net

TABLE_BITS = 6  # bits that a table adds: the inputs of the largest LUTs
MANY_BITS = 9  # bits of a sum from which tables count them; fewer bits take fewer LUTs in adders of two
FEW_WORDS = 6
# bits of the widest word in a sum added bit by bit: of FEW_WORDS words or more, and of fewer
WIDEST, WIDEST_OF_FEW = 3, 2
T = TypeVar("T")
Word: TypeAlias = tuple[Net, int]  # an unsigned net, as wide as its largest value; and that value
# index of a tree, values of its rows of leaves, counted from its smallest leaf, and the largest of them
Leaves: TypeAlias = tuple[int, list[int], int]


class Sum(NamedTuple):
    """A net, its smallest and largest value, and an offset that is not yet added."""

    net: Net
    low: int
    high: int
    offset: int = 0


def balanced(items: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Joins items two at a time until one is left, with as few levels of joins as possible. Returns it."""
    items = list(items)
    while len(items) > 1:
        items = [join(a, b) for a, b in zip(items[::2], items[1::2], strict=False)] + items[len(items) & ~1 :]
    return items[0]


def sums_of(draft: Draft, alone: bool) -> list[Sum]:
    """Builds each output's sum of the trees that feed it. alone: True if only the decisions read the sums."""
    forest = draft.forest
    compared: set[int] = set()  # outputs with sums that are read by the comparison with a threshold alone
    if alone and draft.counting and forest.combine.kind in ("each", "vote"):
        for part in forest.parts:
            if part.decision.kind == "threshold":
                compared |= set(range(part.start, part.stop))
    sums = []
    for output in range(forest.n_outputs):
        trees, offset = _leaves(draft, output)
        summed = _compared_sum if output in compared else _plain_sum
        sums.append(summed(draft, output, trees)._replace(offset=offset))
    return sums


def _leaves(draft: Draft, output: int) -> tuple[list[Leaves], int]:
    """Returns the trees of an output, and its offset: the bias plus the trees' smallest leaves."""
    trees, offset = [], int(draft.forest.bias[output])
    for index, tree in enumerate(draft.forest.trees):
        if output in tree.outputs:
            rows = tree.values[:, tree.outputs.index(output)]
            used = rows[tree.leaf[tree.left == LEAF]]
            smallest, largest = int(used.min()), int(used.max())
            offset += smallest
            trees.append((index, (rows - smallest).tolist(), largest - smallest))
    return trees, offset


def _words(draft: Draft, output: int, trees: Sequence[Leaves]) -> list[Word]:
    words = []
    for index, rows, largest in trees:
        net = draft.mux_tree(index, rows, width_for(0, largest))
        draft.trees[index, output] = draft.operand_of(net)
        words.append((net, largest))
    return words


def _bits(draft: Draft, output: int, trees: Sequence[Leaves]) -> dict[int, list[Net]]:
    """Builds the trees of an output bit by bit. Returns the nets by their position: a net at position p counts 2^p."""
    bits: dict[int, list[Net]] = {}
    for index, rows, largest in trees:
        nets = [
            draft.mux_tree(index, [row >> position & 1 for row in rows], BIT)
            for position in range(largest.bit_length())
        ]
        draft.trees[index, output] = tuple(draft.operand_of(net) for net in nets) or Const(0, 1, False)
        for position, net in enumerate(nets):
            if net != FALSE:
                bits.setdefault(position, []).append(net)
    return bits


def _plain_sum(draft: Draft, output: int, trees: Sequence[Leaves]) -> Sum:
    return added(draft, _words(draft, output, trees))


def _compared_sum(draft: Draft, output: int, trees: Sequence[Leaves]) -> Sum:
    """Builds a sum of trees that only a comparison with a threshold reads."""
    largest = [most for *_, most in trees if most]
    if len(largest) > 1 and _better_bit_by_bit(largest):
        return sum_of_bits(draft.builder, _bits(draft, output, trees))
    words = [word for word in _words(draft, output, trees) if word[1]]
    if len(words) > 1 and _in_one_table(largest):
        net, most = _table_of(draft.builder, [(net, most, 1) for net, most in words])
        return Sum(net, 0, most)
    return added(draft, words)


def plus(draft: Draft, total: Sum, offset: int) -> Sum:
    """Builds a sum's net plus `offset`. The result has no offset left to add."""
    net, low, high, _ = total
    if offset == 0:
        return Sum(net, low, high)
    if low == high:
        return Sum(draft.number(low + offset), low + offset, low + offset)
    low, high = low + offset, high + offset
    # The sum must be no narrower than its operands.
    word = width_for(min(low, offset, 0), max(high, offset, high - offset))
    return Sum(draft.builder.add((net, draft.number(offset)), word), low, high)


def added(draft: Draft, words: Sequence[Word]) -> Sum:
    """Builds the sum of words. If LUTs have six inputs and there are many one-bit words, tables count six of these
    each, and the counts are added."""
    builder = draft.builder
    words = [(net, largest) for net, largest in words if largest]
    bits = [word for word in words if builder.type_of(word[0]) == BIT]
    if draft.counting and len(bits) >= MANY_BITS:
        words = [word for word in words if builder.type_of(word[0]) != BIT]
        words += _counts(builder, bits, 2)
    if not words:
        return Sum(FALSE, 0, 0)
    net, largest = _in_threes(builder, words)
    return Sum(net, 0, largest)


def _better_bit_by_bit(largest: Sequence[int]) -> bool:
    """Returns True if a sum compared with a threshold is better added bit by bit: its words are narrow, and too many
    for one table. largest: the largest value of each word."""
    widest = max(largest, default=0).bit_length()
    return widest <= (WIDEST_OF_FEW if len(largest) < FEW_WORDS else WIDEST) and not _in_one_table(largest)


def _in_one_table(largest: Sequence[int]) -> bool:
    """Returns True if the bits of all words together fit one table. largest: the largest value of each word."""
    return sum(most.bit_length() for most in largest) <= TABLE_BITS


def _table_of(builder: NetlistBuilder, words: Sequence[tuple[Net, int, int]]) -> Word:
    """Builds the sum of words of at most six bits together. words: (net, largest value, times it is added)."""
    largest = sum(most * times for _, most, times in words)
    return builder.table([(net, times) for net, _, times in words], largest), largest


def sum_of_bits(builder: NetlistBuilder, bits: Mapping[int, Sequence[Net]]) -> Sum:
    """Builds the sum of bits by their position: a bit at position p counts 2^p."""
    left = {position: _counts(builder, [(net, 1) for net in nets], 3) for position, nets in sorted(bits.items())}
    if not _in_one_table([most for words in left.values() for _, most in words]):
        left = {position: [_narrowest_first(builder, words, tables=True)] for position, words in left.items()}
    if _in_one_table([most for words in left.values() for _, most in words]):
        net, largest = _table_of(
            builder, [(net, most, 1 << position) for position, ws in left.items() for net, most in ws]
        )
        return Sum(net, 0, largest)
    sums = [left.get(position, [(FALSE, 0)])[0] for position in range(max(left) + 1)]
    shift = 1
    while len(sums) > 1:  # neighbors first, so that few adders follow one another
        sums = [_shifted_sum(builder, sums[position : position + 2], shift) for position in range(0, len(sums), 2)]
        shift *= 2
    return Sum(sums[0][0], 0, sums[0][1])


def _shifted_sum(builder: NetlistBuilder, words: Sequence[Word], shift: int) -> Word:
    """Builds first + second * 2^shift of two words; a single word stays as it is."""
    net, largest = words[-1]
    for _ in range(shift if len(words) > 1 and largest else 0):
        net, largest = builder.shift(net), 2 * largest
    some = [word for word in (*words[:-1], (net, largest)) if word[1]]
    return _narrowest_first(builder, some) if some else (FALSE, 0)


def _counts(builder: NetlistBuilder, bits: Sequence[Word], least: int) -> list[Word]:
    """Builds the number of ones in each group of six bits. least: a smaller group stays as it is."""
    counts: list[Word] = []
    for first in range(0, len(bits), TABLE_BITS):
        some = bits[first : first + TABLE_BITS]
        if len(some) < least:
            counts += some
        else:
            counts.append(_joined(builder, some))
    return counts


def _joined(builder: NetlistBuilder, words: Sequence[Word]) -> Word:
    """Builds the sum of two words with an adder, of more with a table."""
    if len(words) > 2:
        return _table_of(builder, [(net, most, 1) for net, most in words])
    largest = sum(most for _, most in words)
    return builder.add([net for net, _ in words], width_for(0, largest)), largest


def _narrowest_first(builder: NetlistBuilder, words: Sequence[Word], *, tables: bool = False) -> Word:
    """Builds the sum of words in the order of a Huffman code, the narrowest first, so that few operands pass wide
    adders. tables: add three or more words with one table if they fit; otherwise two with an adder."""
    heap = [(most, order, net) for order, (net, most) in enumerate(words)]
    heapq.heapify(heap)
    for order in count(len(words)):
        if len(heap) == 1:
            break
        some = [heapq.heappop(heap), heapq.heappop(heap)]
        while tables and heap and _in_one_table([most for most, *_ in (*some, heap[0])]):
            some.append(heapq.heappop(heap))
        net, largest = _joined(builder, [(net, most) for most, _, net in some])
        heapq.heappush(heap, (largest, order, net))
    largest, _, net = heap[0]
    return net, largest


def _in_threes(builder: NetlistBuilder, words: Sequence[Word]) -> Word:
    """Builds the sum of words with adders of two, narrowest words first: three words one after the other, then these
    sums. The LUT of an adder can also do the last multiplexers of one operand. That operand is a tree more often than
    if all words were added in pairs."""
    words = sorted(words, key=lambda word: word[1])
    threes = [words[at : at + 3] for at in range(0, len(words), 3)]
    return _narrowest_first(builder, [reduce(lambda a, b: _joined(builder, (a, b)), some) for some in threes])
