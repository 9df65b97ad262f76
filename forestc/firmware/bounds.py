"""Bounds the instructions of the C layout `nodes` for any input, from the basic blocks that some inputs run.

One loop walks all trees, and each split on a path is one turn of it. The turns cut a call into segments: before the
first turn, a turn, from one tree to the next, and after the last turn. In a segment a block runs once or, in an inner
loop, as often as that loop turns. The longest paths of all trees bound the number of turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def bound_of_walks(
    traces: Sequence[NDArray[np.int64]], turns: NDArray[np.int64], most_turns: int, trees: int, most_added: int
) -> int | None:
    """Returns the most instructions of any input; None if the loop is not found.

    traces: the blocks of each call, (blocks, 3): start, end and instructions.
    turns: (calls,), the splits on the paths of each call.
    most_turns: the splits on the longest paths of all trees.
    most_added: the most scores that a leaf adds to.
    """
    counts = [Counter(trace[:, 0].tolist()) for trace in traces]
    runs = {start: np.array([own[start] for own in counts]) for start in set().union(*counts)}
    # Blocks that run equally often for all inputs stand outside of the loop, unless all inputs turn it equally often.
    constant = {start for start, own in runs.items() if (own == own[0]).all() and (own != turns).any()}
    # A compiler may write a walk's first turn apart from the loop.
    apart = {start: turns - own for start, own in runs.items() if start not in constant}
    loop = [start for start, left in apart.items() if (left == left[0]).all()]
    if not loop:
        return None
    head = min(loop, key=lambda start: (int(apart[start][0]), start))
    blocks = {start: (end, size) for trace in traces for start, end, size in np.unique(trace, axis=0).tolist()}
    segments: dict[str, list[Counter[int]]] = {"first": [], "turn": [], "next": [], "last": []}
    for trace in traces:
        starts = trace[:, 0].tolist()
        cuts = [place for place, start in enumerate(starts) if start == head]
        segments["first"].append(Counter(starts[: cuts[0]]))
        segments["last"].append(Counter(starts[cuts[-1] :]))
        for begin, stop in pairwise(cuts):
            own = Counter(starts[begin:stop])
            segments["turn" if constant.isdisjoint(own) else "next"].append(own)
    most = {name: _most(own, blocks, most_added if name in ("next", "last") else 0) for name, own in segments.items()}
    between = trees - 1 if segments["next"] else 0
    rest = max(0, most_turns - int(apart[head][0]) - 1 - between)
    return most["first"] + most["last"] + between * most["next"] + rest * most["turn"]


def _most(segments: Sequence[Counter[int]], blocks: Mapping[int, tuple[int, int]], inner: int) -> int:
    """Returns the most instructions of a segment.
    blocks: {start: (end, instructions)}.
    inner: turns of its inner loop if the input decides their number."""
    different = [Counter(dict(own)) for own in {tuple(sorted(own.items())) for own in segments}]
    highest: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    for own in different:
        highest |= own
        ends |= Counter(end for start in own.elements() for end in blocks[start][:1])
    repeated, total, once = max(inner, max(highest.values(), default=0)), 0, dict[int, int]()
    for start, most in highest.items():
        end, size = blocks[start]
        if ends[end] == 1:  # Blocks with one end overlap: they are one block that is entered at different places.
            once[end] = max(once.get(end, 0), size)
        elif most > 1 and any(own[start] != most for own in different):
            total += size * repeated
        else:
            total += size * most
    return total + sum(once.values())
