"""Finds small sets of rows that no selection decides rightly: two rows of positive gain and two of negative gain.

A selection gives the first two more than 2 L votes together, so at least 2 L + 2, and the others at most 2 L. So the
four rows conflict if no selection gives the first two more than one vote above the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Int32s, Words
from forestc.algorithms.members.selection_run import SelectionRun
from forestc.algorithms.members.vote_patterns import Patterns
from forestc.system.compiled import compiled

MOST_ROWS = 320  # rows of each sign that are compared; the hardest ones come first
MOST_QUADS = 300_000  # stops after this many sets
ROOM = 20_000  # sets found in one call of the kernel, at most


def quads(patterns: Patterns, running: SelectionRun) -> NDArray[np.int64]:
    """Returns sets of four rows, (sets, 4), without conflicting pairs among them. A row is an index of a pattern."""
    votes = patterns.votes.T.astype(np.uint8)
    count = votes.sum(axis=1, dtype=np.int64)
    positive, negative = (np.flatnonzero(sign * patterns.gain > 0) for sign in (1, -1))
    positive = positive[np.argsort(count[positive], kind="stable")][:MOST_ROWS]
    negative = negative[np.argsort(-count[negative], kind="stable")][:MOST_ROWS]
    pairs = votes[positive].astype(np.float32) @ (1 - votes[negative].astype(np.float32)).T == 0
    p, n = _packed_words(votes[positive]), _packed_words(votes[negative])
    sets, size = [], 0
    room = np.empty((ROOM, 4), dtype=np.int32)
    for first in range(len(p)):
        if size > MOST_QUADS or not running.left:
            break
        new = int(_conflicting(first, p, n, pairs, room))
        some = room[: min(new, ROOM)]
        sets.append(
            np.stack([positive[some[:, 0]], positive[some[:, 1]], negative[some[:, 2]], negative[some[:, 3]]], axis=1)
        )
        size += len(some)
    return np.concatenate(sets) if sets else np.zeros((0, 4), dtype=np.int64)


def _packed_words(votes: NDArray[np.uint8]) -> Words:
    packed = np.packbits(votes, axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)


@compiled()
def _bits_set(word: int) -> Any:
    x = np.uint64(word)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled()
def _conflicting(a: int, p: Words, n: Words, pairs: Bits, room: Int32s) -> Any:
    """Writes the sets with the positive row `a` and later ones to `room`; returns their number."""
    count = 0
    for b in range(a + 1, len(p)):
        for c in range(len(n)):
            if pairs[a, c] or pairs[b, c]:
                continue
            for d in range(c + 1, len(n)):
                if pairs[a, d] or pairs[b, d]:
                    continue
                excess = np.uint64(0)
                for w in range(p.shape[1]):
                    excess += _bits_set((p[a, w] | p[b, w]) & ~(n[c, w] | n[d, w]))
                    excess += _bits_set((p[a, w] & p[b, w]) & ~(n[c, w] & n[d, w]))
                    if excess > np.uint64(1):
                        break
                if excess <= np.uint64(1):
                    if count < len(room):
                        room[count, 0], room[count, 1], room[count, 2], room[count, 3] = a, b, c, d
                    count += 1
    return count
