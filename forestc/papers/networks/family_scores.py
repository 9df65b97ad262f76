"""Computes BDeu scores of families (a child with its parents), in natural logarithms (Heckerman, Geiger and Chickering
1995).

A score is term(family) - term(parents). A term sums log gamma(count + prior) - log gamma(prior) over configurations.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bytes, Floats, Ints, Words
from forestc.papers.bit_words import popcount
from forestc.system.compiled import compiled

MOST_CELLS = 1 << 16  # configurations of a scored set at most, unless all columns are binary
MOST_CACHED = 1 << 22  # entries of each thread's cache at most, 16 bytes each
BLOCK = 64  # words of rows in memory at a time, for the ANDs
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


class FamilyScorer(NamedTuple):
    """Rows prepared for counting, with a cache of set values and working memory for one thread."""

    states: Ints  # (columns,)
    words: Words  # (columns, words) if all columns are binary, else (columns, 0)
    multiplicity: Ints  # (words,) number of rows that one bit counts for
    valid: Words  # (words,) bits that stand for a row
    cells: Bytes  # (columns, distinct rows) if not all columns are binary, else (columns, 0)
    weight: Ints  # (distinct rows,) number of equal rows
    rises: Floats  # log gamma(n + prior) - log gamma(prior), by size and n
    ess: float
    rows: int
    keys: Words  # keys of the cached sets
    values: Floats
    ands: Words  # (2**size, BLOCK) room for counting
    counts: Ints  # room for the counts of a set
    members: Ints  # room for a sorted set


def make_scorer(bits: Bytes, states: Ints, largest: int, ess: float) -> FamilyScorer:
    """Returns a scorer of families of columns.
    bits: (rows, columns) the state of each value. states: (columns,) number of states. largest: most members of a set
    to be scored."""
    distinct, weight = distinct_rows(bits)
    binary = bool((states <= 2).all())
    columns = bits.shape[1]
    if binary:
        words, multiplicity, valid = packed(distinct, weight)
        rises = np.array([_rise(ess / 2.0**size, len(bits)) for size in range(largest + 1)])
        cells = np.zeros((columns, 0), np.uint8)
    else:
        words, multiplicity, valid = np.zeros((columns, 0), np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint64)
        rises = np.zeros((1, 1))
        cells = np.ascontiguousarray(distinct.T)
    sets = sum(math.comb(columns, size) for size in range(1, largest + 1))
    capacity = 1 << min(MOST_CACHED, max(1024, 4 * sets)).bit_length() - 1
    return FamilyScorer(
        np.asarray(states, np.int64), words, multiplicity, valid, cells, weight, rises, ess, len(bits),
        np.full(capacity, EMPTY), np.zeros(capacity),
        np.zeros((1 << largest if binary else 1, BLOCK), np.uint64),
        np.zeros(1 << largest if binary else MOST_CELLS, np.int64), np.zeros(largest + 1, np.int64),
    )  # fmt: skip


def for_thread(scorer: FamilyScorer, capacity: int | None = None) -> FamilyScorer:
    """Returns a scorer of the same rows for another thread. capacity: number of cache entries, a power of two."""
    size = capacity or len(scorer.keys)
    return scorer._replace(
        keys=np.full(size, EMPTY),
        values=np.zeros(size),
        ands=np.zeros_like(scorer.ands),
        counts=np.zeros_like(scorer.counts),
        members=np.zeros_like(scorer.members),
    )


def distinct_rows(bits: Bytes) -> tuple[Bytes, Ints]:
    packed_rows = np.ascontiguousarray(np.packbits(bits, axis=1) if bits.max(initial=0) <= 1 else bits)
    raw = packed_rows.view(np.dtype((np.void, packed_rows.shape[1]))).ravel()
    _, first, count = np.unique(raw, return_index=True, return_counts=True)
    return bits[first], count.astype(np.int64)


def packed(distinct: Bytes, weight: Ints) -> tuple[Words, Ints, Words]:
    """Packs distinct rows into words. Returns three arrays: the columns as words, the number of rows that a bit of each
    word counts for, and masks of the bits in use."""
    parts: list[Words] = []
    multiplicity: list[int] = []
    for digit in range(int(weight.max()).bit_length()):
        chosen = distinct[(weight >> digit) & 1 == 1]
        if not len(chosen):
            continue
        with_ones = np.hstack([chosen, np.ones((len(chosen), 1), np.uint8)])
        words = -(-len(chosen) // 64)
        room = np.zeros((with_ones.shape[1], 64 * words), np.uint8)
        room[:, : len(chosen)] = with_ones.T
        parts.append(np.packbits(room, axis=1, bitorder="little").view(np.uint64))
        multiplicity += [1 << digit] * words
    joined = np.hstack(parts)
    return np.ascontiguousarray(joined[:-1]), np.array(multiplicity, np.int64), joined[-1].copy()


def _rise(prior: float, rows: int) -> Floats:
    """Returns log gamma(n + prior) - log gamma(prior) for n = 0 .. rows."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(rows) + prior))])


@compiled()
def _binary_value(scorer: FamilyScorer, members: Ints, size: int) -> float:
    """Returns the BDeu term of a set of binary columns, by inclusion and exclusion."""
    counts, ands = scorer.counts, scorer.ands
    cells = 1 << size
    counts[:cells] = 0
    total = len(scorer.multiplicity)
    for begin in range(0, total, BLOCK):
        length = min(BLOCK, total - begin)
        multiplicity = scorer.multiplicity[begin : begin + length]
        ands[0, :length] = scorer.valid[begin : begin + length]
        for bit in range(size):
            column = scorer.words[members[bit], begin : begin + length]
            half = 1 << bit
            for subset in range(half):
                source, target = ands[subset], ands[half + subset]
                count = 0
                for word in range(length):
                    both = source[word] & column[word]
                    target[word] = both
                    count += np.int64(popcount(both)) * multiplicity[word]
                counts[half + subset] += count
    counts[0] = scorer.rows
    for bit in range(size):
        half = 1 << bit
        for subset in range(cells):
            if not subset & half:
                counts[subset] -= counts[subset | half]
    value = 0.0
    rise = scorer.rises[size]
    for cell in range(cells):
        value += rise[counts[cell]]
    return value


@compiled()
def _general_value(scorer: FamilyScorer, members: Ints, size: int) -> float:
    configurations = 1
    for index in range(size):
        configurations *= scorer.states[members[index]]
        if configurations > MOST_CELLS:
            return -np.inf
    counts = scorer.counts
    counts[:configurations] = 0
    for row in range(len(scorer.weight)):
        cell = 0
        for index in range(size):
            cell = cell * scorer.states[members[index]] + scorer.cells[members[index], row]
        counts[cell] += scorer.weight[row]
    prior = scorer.ess / configurations
    base, value = math.lgamma(prior), 0.0
    for cell in range(configurations):
        if counts[cell]:
            value += math.lgamma(counts[cell] + prior) - base
    return value


@compiled()
def _counted_value(scorer: FamilyScorer, members: Ints, size: int) -> float:
    """Returns the BDeu term of a set of columns; the counts stay in the scorer."""
    binary = len(scorer.multiplicity) > 0
    return float(_binary_value(scorer, members, size) if binary else _general_value(scorer, members, size))


@compiled()
def set_value(scorer: FamilyScorer, members: Ints, size: int) -> float:
    """Returns the BDeu term of a set of columns: the first `size` members, which must ascend."""
    if size == 0:  # the only configuration has all rows
        return math.lgamma(scorer.rows + scorer.ess) - math.lgamma(scorer.ess)
    n = np.uint64(len(scorer.states) + 1)
    key = np.uint64(0)
    for index in range(size):
        key = key * n + np.uint64(members[index] + 1)
    # A new value overwrites another one in its slot, which bounds the memory.
    slot = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (len(scorer.keys) - 1)
    if scorer.keys[slot] == key:
        return float(scorer.values[slot])
    value = _counted_value(scorer, members, size)
    scorer.keys[slot] = key
    scorer.values[slot] = value
    return float(value)


@compiled()
def family_score(scorer: FamilyScorer, child: int, parents: Ints, count: int) -> float:
    """Returns the BDeu score of a child with its first `count` parents, in any order."""
    members = scorer.members
    for index in range(count):
        at = index
        while at > 0 and members[at - 1] > parents[index]:
            members[at] = members[at - 1]
            at -= 1
        members[at] = parents[index]
    without = set_value(scorer, members, count)
    at = count
    while at > 0 and members[at - 1] > child:
        members[at] = members[at - 1]
        at -= 1
    members[at] = child
    value = set_value(scorer, members, count + 1)
    return float(value if value == -np.inf else value - without)


@compiled()
def best_partners(scorer: FamilyScorer, first: int, past: int, partners: Ints, gains: Floats) -> None:
    """Writes for each column first .. past - 1 the columns with the most gain as its only parent, the best first, and
    their gains."""
    n, most = partners.shape
    alone = np.zeros(n)
    pair = np.zeros(2, np.int64)
    nothing = set_value(scorer, pair, 0)
    for column in range(n):
        pair[0] = column
        alone[column] = set_value(scorer, pair, 1)
    for column in range(first, past):
        gains[column] = -np.inf
        for other in range(n):
            if other == column:
                continue
            pair[0], pair[1] = min(column, other), max(column, other)
            value = _counted_value(scorer, pair, 2)
            value += nothing - alone[column] - alone[other]
            if value <= gains[column, most - 1]:
                continue
            at = most - 1
            while at > 0 and gains[column, at - 1] < value:
                gains[column, at] = gains[column, at - 1]
                partners[column, at] = partners[column, at - 1]
                at -= 1
            gains[column, at] = value
            partners[column, at] = other


@compiled()
def _observed(scorer: FamilyScorer, members: Ints, size: int) -> int:
    """Returns the number of configurations that occur; 0 if too many are possible."""
    _counted_value(scorer, members, size)
    cells = 1
    for index in range(size):
        cells *= scorer.states[members[index]]
        if cells > MOST_CELLS:
            return 0
    occurring = 0
    for cell in range(cells):
        occurring += scorer.counts[cell] > 0
    return occurring


def useful_parent_sets(scorer: FamilyScorer, child: int, most: int) -> list[tuple[tuple[int, ...], float]]:
    """Returns the sets of up to `most` parents that an optimal network may need, with their scores, the best first
    (pruned as by de Campos and Ji 2011)."""
    others = [column for column in range(len(scorer.states)) if column != child]
    first_row = -math.log(int(scorer.states[child]))
    best: dict[tuple[int, ...], float] = {}  # best score of each set and its subsets
    useful: list[tuple[tuple[int, ...], float]] = []
    room = np.zeros(most + 1, np.int64)
    for size in range(most + 1):
        for parents in combinations(others, size):
            subsets = [parents[:at] + parents[at + 1 :] for at in range(size)]
            if not all(subset in best for subset in subsets):
                continue  # no superset of some subset can be useful
            room[:size] = parents
            score = float(family_score(scorer, child, room, size))
            below = max((best[subset] for subset in subsets), default=-math.inf)
            if score > below + 1e-9 * max(1.0, abs(score)):
                useful.append((parents, score))
            top = max(score, below)
            if size == most or first_row * _observed(scorer, room, size) > top:
                best[parents] = top
    return sorted(useful, key=lambda pair: (-pair[1], pair[0]))
