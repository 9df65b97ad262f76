"""Builds sums of trees and of other words.

The smallest leaf of each tree is added to a constant offset. If only a threshold reads a sum, narrow words may be added
bit by bit (Wallace's tree, Dadda, Alta Frequenza 34, 1965).
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
from forestc.netlist.ir import BIT, FALSE, Const, Net, WordType

TABLE_BITS = 6  # bits that a table adds: the inputs of the largest LUTs
MANY_BITS = 9  # words of one bit that tables count, at least
FEW_WORDS = 6  # words at least for WIDEST; fewer words have WIDEST_OF_FEW
# Limits the width of words that are added bit by bit: of at least FEW_WORDS words, and of fewer.
WIDEST, WIDEST_OF_FEW = 3, 2
T = TypeVar("T")
Word: TypeAlias = tuple[Net, int]  # an unsigned net and its largest value
# Holds a tree's index, its leaf values minus the smallest one, and the largest of these differences.
Leaves: TypeAlias = tuple[int, list[int], int]


class Sum(NamedTuple):
    """A sum under construction: the value of the net plus `offset`."""

    net: Net
    low: int  # smallest value of the net
    high: int  # largest value of the net
    offset: int = 0


def balanced(items: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Joins neighboring items in pairs, again and again, until one is left, and returns it."""
    items = list(items)
    while len(items) > 1:
        items = [join(a, b) for a, b in zip(items[::2], items[1::2], strict=False)] + items[len(items) & ~1 :]
    return items[0]


def sums_of(draft: Draft, alone: bool) -> list[Sum]:
    """Builds each output's sum of its trees. alone: True if the sums are used for decisions only."""
    forest = draft.forest
    compared: set[int] = set()  # outputs whose sums are only compared with a threshold
    if alone and draft.counting and forest.combine.kind in ("each", "vote"):
        for part in forest.parts:
            if part.decision.kind == "threshold":
                compared |= set(range(part.start, part.stop))
    sums = []
    for output in range(forest.n_outputs):
        trees, offset = leaves_of(draft, output)
        summed = _compared_sum if output in compared else _plain_sum
        sums.append(summed(draft, output, trees)._replace(offset=offset))
    return sums


def leaves_of(draft: Draft, output: int) -> tuple[list[Leaves], int]:
    """Returns the trees that add to an output, and the output's bias plus each tree's smallest leaf value."""
    trees, offset = [], int(draft.forest.bias[output])
    for index, tree in enumerate(draft.forest.trees):
        if output in tree.outputs:
            rows = tree.values[:, tree.outputs.index(output)]
            used = rows[tree.leaf[tree.left == LEAF]]
            smallest, largest = int(used.min()), int(used.max())
            offset += smallest
            trees.append((index, (rows - smallest).tolist(), largest - smallest))
    return trees, offset


def words_of(draft: Draft, output: int, trees: Sequence[Leaves]) -> list[Word]:
    words = []
    for index, rows, largest in trees:
        net = draft.mux_tree(index, rows, width_for(0, largest))
        draft.trees[index, output] = draft.operand_of(net)
        words.append((net, largest))
    return words


def _bits(draft: Draft, output: int, trees: Sequence[Leaves]) -> dict[int, list[Net]]:
    """Builds each bit of the trees' values. Returns lists of nets by bit position."""
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
    return added(draft, words_of(draft, output, trees))


def _compared_sum(draft: Draft, output: int, trees: Sequence[Leaves]) -> Sum:
    largest = [most for *_, most in trees if most]
    if len(largest) > 1 and _better_bit_by_bit(largest):
        return sum_of_bits(draft.builder, _bits(draft, output, trees))
    words = [word for word in words_of(draft, output, trees) if word[1]]
    if len(words) > 1 and _in_one_table(largest):
        net, most = _table_of(draft.builder, [(net, most, 1) for net, most in words])
        return Sum(net, 0, most)
    return added(draft, words)


def plus(draft: Draft, total: Sum, offset: int) -> Sum:
    net, low, high, _ = total
    if offset == 0:
        return Sum(net, low, high)
    if low == high:
        return Sum(draft.number(low + offset), low + offset, low + offset)
    low, high = low + offset, high + offset
    # The word must be no narrower than the two words that are added.
    word, own = width_for(min(low, offset, 0), max(high, offset, high - offset)), draft.builder.type_of(net)
    signed = word.signed or own.signed
    word = WordType(max(word.width, own.width + (signed and not own.signed)), signed)
    return Sum(draft.builder.add((net, draft.number(offset)), word), low, high)


def added(draft: Draft, words: Sequence[Word]) -> Sum:
    """Builds the sum of words. If LUTs have six inputs, tables count the one-bit words, unless they are few."""
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
    """Returns True if words should be added bit by bit: narrow words, too many for one table. largest: each word's
    maximum."""
    widest = max(largest, default=0).bit_length()
    return widest <= (WIDEST_OF_FEW if len(largest) < FEW_WORDS else WIDEST) and not _in_one_table(largest)


def _in_one_table(largest: Sequence[int]) -> bool:
    """Returns True if one table can add all words. largest: each word's maximum."""
    return sum(most.bit_length() for most in largest) <= TABLE_BITS


def _table_of(builder: NetlistBuilder, words: Sequence[tuple[Net, int, int]]) -> Word:
    """Builds a weighted sum with one table. words: triples (net, largest value, factor)."""
    largest = sum(most * times for _, most, times in words)
    return builder.table([(net, times) for net, _, times in words], largest), largest


def sum_of_bits(builder: NetlistBuilder, bits: Mapping[int, Sequence[Net]]) -> Sum:
    """Builds the sum of bits; each net in bits[p] counts 2^p."""
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
    net, largest = words[-1]
    for _ in range(shift if len(words) > 1 and largest else 0):
        net, largest = builder.shift(net), 2 * largest
    some = [word for word in (*words[:-1], (net, largest)) if word[1]]
    return _narrowest_first(builder, some) if some else (FALSE, 0)


def _counts(builder: NetlistBuilder, bits: Sequence[Word], least: int) -> list[Word]:
    """Replaces each group of six bits by the count of its ones; a last group of fewer than `least` bits stays."""
    counts: list[Word] = []
    for first in range(0, len(bits), TABLE_BITS):
        some = bits[first : first + TABLE_BITS]
        if len(some) < least:
            counts += some
        else:
            counts.append(_joined(builder, some))
    return counts


def _joined(builder: NetlistBuilder, words: Sequence[Word]) -> Word:
    if len(words) > 2:
        return _table_of(builder, [(net, most, 1) for net, most in words])
    largest = sum(most for _, most in words)
    return builder.add([net for net, _ in words], width_for(0, largest)), largest


def _narrowest_first(builder: NetlistBuilder, words: Sequence[Word], *, tables: bool = False) -> Word:
    """Adds words, the narrowest first. tables: True to add three or more words at once in a table if they fit."""
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
    """Adds words two at a time: first the words of each group of three, then the groups' sums."""
    words = sorted(words, key=lambda word: word[1])
    # The LUTs of an adder also hold the last multiplexers of a tree that it adds.
    threes = [words[at : at + 3] for at in range(0, len(words), 3)]
    return _narrowest_first(builder, [reduce(lambda a, b: _joined(builder, (a, b)), some) for some in threes])
