"""Sums and comparisons of narrow words in lookups of up to six inputs, without carry chains.

A sum of many bits is a matter of columns: of up to six bits of one weight a 6:3 counter makes three, one of each
weight from theirs up, in three lookups, where full adders would take eight. Constants cost nothing: a counter's table
takes them in. What is left when six bits or fewer decide is one lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import FALSE, LOOKUP_INPUTS, TRUE, Net


def table_of(inputs: int, holds: Callable[[int], bool]) -> int:
    """The table of a lookup that is 1 where `holds` of its inputs, read as a number."""
    return sum(1 << row for row in range(1 << inputs) if holds(row))


def columns_of(builder: NetlistBuilder, words: Sequence[Net], constant: int = 0) -> tuple[list[list[Net]], int]:
    """The bits of unsigned words by weight, and the constant, to which constant words add."""
    columns: list[list[Net]] = []
    for word in words:
        for place in range(builder.type_of(word).width):
            while len(columns) <= place:
                columns.append([])
            bit = builder.bits(word, place, 1)
            if bit == TRUE:
                constant += 1 << place
            elif bit != FALSE:
                columns[place].append(bit)
    return columns, constant


def total(builder: NetlistBuilder, words: Sequence[Net], largest: int, constant: int = 0) -> Net:
    """words plus a constant >= 0, whose sum is at most `largest`: a word just wide enough."""
    columns, constant = columns_of(builder, words, constant)
    bits: list[Net] = []
    place, carried = 0, constant
    width = max(1, largest.bit_length())
    while place < width:
        while len(columns) <= place + 2:
            columns.append([])
        column = columns[place]
        one, carried = carried & 1, carried >> 1
        while len(column) + one > 1:
            taken, columns[place] = column[:LOOKUP_INPUTS], column[LOOKUP_INPUTS:]
            column = columns[place]
            for rise, net in enumerate(counted(builder, taken, one)):
                if place + rise < width and net != FALSE:
                    columns[place + rise].append(net)
            one = 0
        bits.append(column[0] if column else one)
        place += 1
    return builder.join(bits)


def counted(builder: NetlistBuilder, bits: Sequence[Net], one: int = 0) -> list[Net]:
    """How many of up to six bits are 1, plus `one`: single bits, the lowest first."""
    width = (len(bits) + one).bit_length()
    counts = [row.bit_count() + one for row in range(1 << len(bits))]
    return [
        builder.lookup(bits, sum((count >> place & 1) << row for row, count in enumerate(counts)))
        for place in range(width)
    ]


def at_least(builder: NetlistBuilder, words: Sequence[Net], threshold: int) -> Net:
    """1 where the sum of the words reaches a threshold."""
    columns, constant = columns_of(builder, words)
    threshold -= constant
    while sum(map(len, columns)) > LOOKUP_INPUTS:
        # the fullest column first: a counter of six gives back three
        place = max(range(len(columns)), key=lambda k: (min(len(columns[k]), LOOKUP_INPUTS), -k))
        column = columns[place]
        if len(column) < 3:
            break
        taken, columns[place] = column[:LOOKUP_INPUTS], column[LOOKUP_INPUTS:]
        for rise, net in enumerate(counted(builder, taken)):
            while len(columns) <= place + rise:
                columns.append([])
            columns[place + rise].append(net)
    # from the lowest weight up: does what lies below reach its part of the threshold?
    weighed = [(net, place) for place, column in enumerate(columns) for net in column]
    if len(weighed) <= LOOKUP_INPUTS:
        return builder.lookup(
            [net for net, _ in weighed],
            table_of(
                len(weighed), lambda row: sum((row >> i & 1) << p for i, (_, p) in enumerate(weighed)) >= threshold
            ),
        )
    word = total(builder, words, sum((1 << builder.type_of(w).width) - 1 for w in words))
    return builder.not_(builder.less(word, threshold + constant))


def below(builder: NetlistBuilder, a: Net, b: Net) -> Net:
    """1 where a < b, unsigned words of equal width: three bits of each in the first lookup, two in each further one."""
    width = builder.type_of(a).width
    done = min(3, width)
    result = _compared(builder, a, b, 0, done, None)
    while done < width:
        step = min(2, width - done)
        result = _compared(builder, a, b, done, step, result)
        done += step
    return result


def _compared(builder: NetlistBuilder, a: Net, b: Net, low: int, count: int, before: Net | None) -> Net:
    bits = [builder.bits(word, low + k, 1) for word in (a, b) for k in range(count)]
    mask = (1 << count) - 1

    def holds(row: int) -> bool:
        x, y = row & mask, row >> count & mask
        return x < y or (x == y and bool(row >> 2 * count & 1))

    if before is not None:
        return builder.lookup([*bits, before], table_of(2 * count + 1, holds))
    return builder.lookup(bits, table_of(2 * count, holds))
