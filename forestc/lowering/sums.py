"""Sums of words: by adders of two, and of narrow words by tables.

A table of six bits is a LUT for each bit of their sum: where LUTs have six inputs, it takes fewer of them than adders
of two do, and is one level deep. Where a sum is only compared with a threshold, narrow words are added bit by bit, the
bits of one weight together (Wallace's tree with counters of up to six bits, Dadda, Alta Frequenza 34, 1965), until six
bits are left, whose table and the comparison become one LUT.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, FALSE, Net

TABLE_BITS = 6  # inputs of the largest LUTs: bits that a table adds
MANY_BITS = 9  # fewer take fewer LUTs as adders of two
FEW_WORDS = 6
WIDEST, WIDEST_OF_FEW = 3, 2  # bits of the widest words that are added bit by bit, and of fewer than FEW_WORDS
Word: TypeAlias = tuple[Net, int]  # an unsigned net, as wide as its largest value; and that value
Sum: TypeAlias = tuple[Net, int, int]  # a net without its offset, its smallest and largest value


def added(builder: NetlistBuilder, words: Sequence[Word], more: int, counting: bool) -> Sum:
    """The sum of words and of a constant. counting: of many bits each six are counted by a table, and the
    counts added."""
    words = [(net, largest) for net, largest in words if largest]
    bits = [word for word in words if builder.type_of(word[0]) == BIT]
    if counting and len(bits) >= MANY_BITS:
        words = [word for word in words if builder.type_of(word[0]) != BIT]
        words += _counts(builder, bits, 2)
    if more:
        words.append((builder.const(more, width_for(0, more)), more))
    if not words:
        return FALSE, 0, 0
    net, largest = _in_threes(builder, words)
    return net, more, largest


def better_bit_by_bit(largest: Sequence[int]) -> bool:
    """Whether words, by their largest values, are better added bit by bit where their sum is compared with a
    threshold: if they are narrow or many, but not one table."""
    widest = max(largest, default=0).bit_length()
    return widest <= (WIDEST_OF_FEW if len(largest) < FEW_WORDS else WIDEST) and not in_one_table(largest)


def in_one_table(largest: Sequence[int]) -> bool:
    """Whether the bits of all words together are few enough for one table."""
    return sum(most.bit_length() for most in largest) <= TABLE_BITS


def table_of(builder: NetlistBuilder, words: Sequence[tuple[Net, int, int]]) -> Word:
    """The sum of words of at most six bits together, each with its largest value and how often it is added."""
    largest = sum(most * times for _, most, times in words)
    return builder.table([(net, times) for net, _, times in words], largest), largest


def sum_of_bits(builder: NetlistBuilder, bits: Mapping[int, Sequence[Net]]) -> Sum:
    """The sum of bits, by their places: a bit at place p counts 2^p."""
    left = {place: _counts(builder, [(net, 1) for net in nets], 3) for place, nets in sorted(bits.items())}
    if not in_one_table([most for words in left.values() for _, most in words]):
        left = {place: [_narrowest_first(builder, words, tables=True)] for place, words in left.items()}
    if in_one_table([most for words in left.values() for _, most in words]):
        net, largest = table_of(builder, [(net, most, 1 << place) for place, ws in left.items() for net, most in ws])
        return net, 0, largest
    sums = [left.get(place, [(FALSE, 0)])[0] for place in range(max(left) + 1)]
    shift = 1
    while len(sums) > 1:  # neighbors first, so that the adders are few behind one another
        sums = [_shifted_sum(builder, sums[place : place + 2], shift) for place in range(0, len(sums), 2)]
        shift *= 2
    return sums[0][0], 0, sums[0][1]


def _shifted_sum(builder: NetlistBuilder, words: Sequence[Word], shift: int) -> Word:
    """The first word plus the second, if there is one, times two to the `shift`."""
    net, largest = words[-1]
    for _ in range(shift if len(words) > 1 and largest else 0):
        net, largest = builder.shift(net), 2 * largest
    some = [word for word in (*words[:-1], (net, largest)) if word[1]]
    return _in_threes(builder, some) if some else (FALSE, 0)


def _counts(builder: NetlistBuilder, bits: Sequence[Word], least: int) -> list[Word]:
    """The numbers of ones of groups of six bits. least: a smaller group stays as it is."""
    counts: list[Word] = []
    for first in range(0, len(bits), TABLE_BITS):
        some = bits[first : first + TABLE_BITS]
        if len(some) < least:
            counts += some
        else:
            counts.append(_joined(builder, some))
    return counts


def _joined(builder: NetlistBuilder, words: Sequence[Word]) -> Word:
    """The sum of two words by an adder, of more by a table."""
    largest = sum(most for _, most in words)
    if len(words) > 2:
        return builder.table([(net, 1) for net, _ in words], largest), largest
    return builder.add([net for net, _ in words], width_for(0, largest)), largest


def _in_threes(builder: NetlistBuilder, words: Sequence[Word]) -> Word:
    """The sum of words by adders of two, the narrowest first: three words at a time one after the other, then the sums
    of such.

    A LUT of an adder does the last multiplexers of one of its operands as well, which is a tree more often than where
    all words are added in pairs.
    """
    sums, narrowest = [], sorted(words, key=lambda word: word[1])
    for first in range(0, len(words), 3):
        net, largest = narrowest[first]
        for other, most in narrowest[first + 1 : first + 3]:
            largest += most
            net = builder.add((net, other), width_for(0, largest))
        sums.append((net, largest))
    return _narrowest_first(builder, sums, tables=False)


def _narrowest_first(builder: NetlistBuilder, words: Sequence[Word], *, tables: bool) -> Word:
    """The sum of words in the order in which a Huffman code is built, so that few operands pass wide adders.

    tables: as many as a table holds at once, if that are three; else two by an adder.
    """
    heap = [(most, order, net) for order, (net, most) in enumerate(words)]
    heapq.heapify(heap)
    order = len(heap)
    while len(heap) > 1:
        some = [heapq.heappop(heap), heapq.heappop(heap)]
        while tables and heap and in_one_table([most for most, _, _ in [*some, heap[0]]]):
            some.append(heapq.heappop(heap))
        net, largest = _joined(builder, [(net, most) for most, _, net in some])
        heapq.heappush(heap, (largest, order, net))
        order += 1
    largest, _, net = heap[0]
    return net, largest
