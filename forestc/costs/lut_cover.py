"""Covers a network of small functions by LUTs, with priority cuts (Mishchenko, Cho, Chatterjee and Brayton, ICCAD
2007).

A cut of a node is a set of nodes that a LUT rooted there can read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.costs.devices import Luts
from forestc.system.compiled import compiled

MOST_CUTS = 3  # limits the cuts of a node, beside the node itself
MOST_FAN_INS = 3
ROUNDING = 1e-9  # absorbs differences between sums of delays
Cut: TypeAlias = frozenset[int]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class _Network(NamedTuple):
    """The network to be covered, as arrays."""

    fan_ins: Ints  # (nodes, MOST_FAN_INS), -1 if there are fewer
    boxed: NDArray[np.bool_]  # (nodes,) True for a result of a carry chain
    box: Ints  # nodes that the chain of node n reads: box[begins[n]:begins[n + 1]]
    begins: Ints
    areas: Floats  # area of a LUT by its number of inputs
    delays: Floats  # delays of a LUT by its number of inputs
    chain: float  # delay of a carry chain


class _Cuts(NamedTuple):
    """Arrays with the best cut of each node."""

    best: Ints  # (nodes, inputs) node numbers, filled up with -1
    size: Ints  # (nodes,) number of nodes in the cut
    ready: Floats  # (nodes,) time when the LUT's result is ready


@dataclass(frozen=True)
class Mapper:
    """A network of small functions to be covered by LUTs."""

    fan_ins: Sequence[tuple[int, ...]]  # lower nodes that each node reads; empty for a leaf
    boxes: Mapping[int, tuple[int, ...]]  # nodes that a carry chain reads, by each result
    roots: Sequence[int]  # nodes that outputs and registers need
    kind: Luts

    def cover(self) -> dict[int, Cut]:
        """Returns a dictionary from the root node of each LUT to the nodes that it reads, the highest root first."""
        uses = self._uses()
        cuts = _priority_cuts(self.network, uses, np.empty(0))
        last = max((float(cuts.ready[root]) for root in self.roots), default=0.0) + self.kind.slack
        roots = np.array(self.roots, dtype=np.int64)
        latest, needed = _needed(self.network, cuts, roots, last)
        counted = np.bincount(cuts.best[needed & (cuts.size > 0)].ravel() + 1, minlength=len(uses) + 1)[1:]
        counted += np.bincount(roots, minlength=len(uses))
        read = [node for chain in set(self.boxes.values()) for node in chain]
        counted += np.bincount(np.array(read, dtype=np.int64), minlength=len(uses))
        cuts = _priority_cuts(self.network, (uses + 2 * counted) / 3, latest)
        _, needed = _needed(self.network, cuts, roots, last)
        luts = np.flatnonzero(needed & (cuts.size > 0))[::-1].tolist()
        return {node: frozenset(cuts.best[node, : cuts.size[node]].tolist()) for node in luts}

    @cached_property
    def network(self) -> _Network:
        count, inputs = len(self.fan_ins), len(self.kind.areas) - 1
        fan_ins = np.full((count, MOST_FAN_INS), -1, dtype=np.int64)
        for node, below in enumerate(self.fan_ins):
            fan_ins[node, : len(below)] = below
        sizes = np.array([len(self.boxes.get(node, ())) for node in range(count)], dtype=np.int64)
        boxed = np.array([node in self.boxes for node in range(count)], dtype=np.bool_)
        box = np.array([a for node in range(count) for a in self.boxes.get(node, ())], dtype=np.int64)
        delays = np.ones((inputs + 1, inputs))
        for size, own in enumerate(self.kind.delays):
            delays[size, : len(own)] = own
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return _Network(fan_ins, boxed, box, begins, np.array(self.kind.areas, float), delays, self.kind.chain)

    def _uses(self) -> Floats:
        """Returns an array: how often each node is a root, or is read by a needed node or a carry chain."""
        uses = [0.0] * len(self.fan_ins)
        chains: set[tuple[int, ...]] = set()
        for root in self.roots:
            uses[root] += 1
        for node in range(len(self.fan_ins) - 1, -1, -1):
            read = self.fan_ins[node]
            # All results of a chain read the same.
            if uses[node] and node in self.boxes and self.boxes[node] not in chains:
                read = self.boxes[node]
                chains.add(read)
            if uses[node]:
                for below in read:
                    uses[below] += 1
        return np.array(uses)


@compiled()
def _merged(first: Ints, first_size: int, second: Ints, second_size: int, out: Ints) -> int:
    """Writes the ascending union of two cuts to `out`. Returns the union's size; -1 if too large."""
    i = j = size = 0
    while i < first_size or j < second_size:
        if size == len(out):
            return -1
        if j == second_size or (i < first_size and first[i] <= second[j]):
            if j < second_size and first[i] == second[j]:
                j += 1
            out[size] = first[i]
            i += 1
        else:
            out[size] = second[j]
            j += 1
        size += 1
    return size


# The functions below loop over entries, as numba takes seconds to compile slices and sorts.


@compiled()
def _copy(cut: Ints, size: int, out: Ints) -> None:
    for index in range(size):
        out[index] = cut[index]


@compiled()
def _same(cut: Ints, other: Ints, size: int) -> bool:
    for index in range(size):  # noqa: SIM110, numba compiles no generators
        if cut[index] != other[index]:
            return False
    return True


@compiled()
def _by_arrival(cut: Ints, size: int, ready: Floats, order: Ints) -> None:
    """Fills `order` with the indices into a cut. The node that is ready last comes first."""
    for index in range(size):
        at, when = index, ready[cut[index]]
        while at > 0 and ready[cut[order[at - 1]]] < when:
            order[at] = order[at - 1]
            at -= 1
        order[at] = index


@compiled(lambda network, *_: 65 * len(network.fan_ins))
def _priority_cuts(network: _Network, uses: Floats, latest: Floats) -> _Cuts:
    """Returns each used node's best cut. latest: required times, within which area is minimized; if empty, delay is
    minimized."""
    count, inputs = len(network.fan_ins), len(network.areas) - 1
    most = (MOST_CUTS + 1) ** MOST_FAN_INS
    node_cuts = np.empty((count, MOST_CUTS + 1, inputs), np.int64)
    node_cut_sizes = np.zeros((count, MOST_CUTS + 1), np.int64)
    numbers = np.zeros(count, np.int64)  # number of cuts of each node
    best, size = np.full((count, inputs), -1, np.int64), np.zeros(count, np.int64)
    ready, flow = np.zeros(count), np.zeros(count)
    pools, pool_sizes = np.empty((2, most, inputs), np.int64), np.zeros((2, most), np.int64)
    late, area, when = np.zeros(most), np.zeros(most), np.zeros(most)
    order = np.zeros(inputs, np.int64)
    for node in range(count):
        below = network.fan_ins[node]
        if below[0] < 0 or uses[node] == 0:
            node_cuts[node, 0, 0], node_cut_sizes[node, 0], numbers[node] = node, 1, 1
            if network.boxed[node]:
                for index in range(network.begins[node], network.begins[node + 1]):
                    ready[node] = max(ready[node], ready[network.box[index]])
                ready[node] += network.chain
            continue
        at, pooled = 0, numbers[below[0]]
        for cut in range(pooled):
            pool_sizes[0, cut] = node_cut_sizes[below[0], cut]
            _copy(node_cuts[below[0], cut], pool_sizes[0, cut], pools[0, cut])
        for fan_in in range(1, MOST_FAN_INS):
            a = below[fan_in]
            if a < 0:
                break
            merged = 0
            for first in range(pooled):
                for second in range(numbers[a]):
                    joined = pools[1 - at, merged]
                    length = _merged(
                        pools[at, first], pool_sizes[at, first], node_cuts[a, second], node_cut_sizes[a, second], joined
                    )
                    duplicate = length < 0
                    for other in range(merged):
                        if not duplicate and pool_sizes[1 - at, other] == length:
                            duplicate = _same(pools[1 - at, other], joined, length)
                    if not duplicate:
                        pool_sizes[1 - at, merged] = length
                        merged += 1
            at, pooled = 1 - at, merged
        due = latest[node] + ROUNDING if len(latest) else 0.0
        for cut in range(pooled):
            length, nodes = pool_sizes[at, cut], pools[at, cut]
            area[cut] = network.areas[length]
            for index in range(length):
                area[cut] += flow[nodes[index]]
            _by_arrival(nodes, length, ready, order)
            when[cut] = 0.0
            for index in range(length):
                when[cut] = max(when[cut], network.delays[length, index] + ready[nodes[order[index]]])
            late[cut] = max(0.0, when[cut] - due)
        for rank in range(min(MOST_CUTS, pooled)):
            chosen = -1
            for cut in range(pooled):
                if pool_sizes[at, cut] > 0 and (
                    chosen < 0
                    or (late[cut], area[cut], pool_sizes[at, cut])
                    < (late[chosen], area[chosen], pool_sizes[at, chosen])
                ):
                    chosen = cut
            length = pool_sizes[at, chosen]
            node_cut_sizes[node, rank] = length
            _copy(pools[at, chosen], length, node_cuts[node, rank])
            if rank == 0:
                size[node], ready[node] = length, when[chosen]
                _copy(pools[at, chosen], length, best[node])
                flow[node] = area[chosen] / max(1.0, uses[node])
            pool_sizes[at, chosen] = 0  # marks the cut as taken
            numbers[node] = rank + 1
        node_cuts[node, numbers[node], 0], node_cut_sizes[node, numbers[node]] = node, 1
        numbers[node] += 1
    return _Cuts(best, size, ready)


@compiled(lambda network, *_: 3 * len(network.fan_ins))
def _needed(network: _Network, cuts: _Cuts, roots: Ints, last: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Returns two arrays (nodes,): the required time, and True if a LUT cover needs the node. last: the roots' required
    time."""
    count = len(network.fan_ins)
    latest, needed = np.full(count, last), np.zeros(count, np.bool_)
    order = np.zeros(cuts.best.shape[1], np.int64)
    for index in range(len(roots)):
        needed[roots[index]] = True
    for node in range(count - 1, -1, -1):  # a node comes after its fan-in
        if not needed[node]:
            continue
        if network.boxed[node]:
            for index in range(network.begins[node], network.begins[node + 1]):
                a = network.box[index]
                needed[a] = True
                latest[a] = min(latest[a], latest[node] - network.chain)
        elif cuts.size[node]:
            cut, size = cuts.best[node], cuts.size[node]
            _by_arrival(cut, size, cuts.ready, order)
            for index in range(size):
                a = cut[order[index]]
                needed[a] = True
                latest[a] = min(latest[a], latest[node] - network.delays[size, index])
    return latest, needed
