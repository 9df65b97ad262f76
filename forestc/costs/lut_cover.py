"""Covers of a network of small functions by LUTs: priority cuts (Mishchenko, Cho, Chatterjee and Brayton, ICCAD 2007).

A cut of a node is a set of nodes that a LUT rooted there can read. Each node keeps the few best of the cuts that those
of its fan-ins merge to: first by when they are ready, then, where there is slack, by area flow, which shares the LUTs
below a cut among their readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from forestc.costs.devices import Luts

KEPT = 3  # cuts of a node, beside the node itself
ROUNDING = 1e-9  # by which sums of delays differ
Cut: TypeAlias = frozenset[int]


@dataclass
class _Cuts:
    """The best cut of each node, when it is ready, and its area flow."""

    best: list[Cut]
    ready: list[float]
    flow: list[float]


@dataclass(frozen=True)
class Mapper:
    """fan_ins: of each node, which are below it; none of a leaf. boxes: of leaves that are results of carry chains what
    these read. roots: nodes that are needed."""

    fan_ins: Sequence[tuple[int, ...]]
    boxes: Mapping[int, tuple[int, ...]]
    roots: Sequence[int]
    kind: Luts

    def cover(self) -> dict[int, Cut]:
        """What each LUT reads, by the root of the LUT, from the last to the first. Time O(nodes)."""
        uses = self._uses()
        cuts = self._cuts(uses, None)
        last = max((cuts.ready[root] for root in self.roots), default=0.0) + self.kind.slack
        latest, luts = self._needed(cuts, last)
        counted = [0.0] * len(self.fan_ins)
        for cut in luts.values():
            for node in cut:
                counted[node] += 1
        for node in self.roots:
            counted[node] += 1
        for read in set(self.boxes.values()):
            for node in read:
                counted[node] += 1
        uses = [(first + 2 * count) / 3 for first, count in zip(uses, counted, strict=True)]
        return self._needed(self._cuts(uses, latest), last)[1]

    def _uses(self) -> list[float]:
        """How many nodes and roots read each node that a root depends on."""
        uses = [0.0] * len(self.fan_ins)
        chains: set[tuple[int, ...]] = set()
        for root in self.roots:
            uses[root] += 1
        for node in range(len(self.fan_ins) - 1, -1, -1):
            read = self.fan_ins[node]
            if (
                uses[node] and node in self.boxes and self.boxes[node] not in chains
            ):  # all results of a chain read the same
                read = self.boxes[node]
                chains.add(read)
            if uses[node]:
                for below in read:
                    uses[below] += 1
        return uses

    def _cuts(self, uses: Sequence[float], latest: Sequence[float] | None) -> _Cuts:
        """latest: when each node must be ready, for the least area; None for the earliest."""
        count, areas, delays = len(self.fan_ins), self.kind.areas, self.kind.delays
        inputs = len(areas) - 1
        cuts = _Cuts([frozenset()] * count, [0.0] * count, [0.0] * count)
        times, flows = cuts.ready, cuts.flow
        kept: list[list[Cut]] = [[]] * count
        for node, below in enumerate(self.fan_ins):
            itself = frozenset((node,))
            if not below or not uses[node]:
                kept[node] = [itself]
                if node in self.boxes:
                    times[node] = self.kind.chain + max((times[a] for a in self.boxes[node]), default=0.0)
                continue
            merged = set(kept[below[0]])
            for a in below[1:]:
                merged = {cut for first in merged for second in kept[a] if len(cut := first | second) <= inputs}
            due = 0.0 if latest is None else latest[node] + ROUNDING
            ranked: list[tuple[float, float, int, int, float, Cut]] = []
            for cut in merged:
                size = len(cut)
                flow, ready = areas[size], 0.0
                for a in cut:
                    flow += flows[a]
                    if times[a] > ready:
                        ready = times[a]
                if delays:
                    arriving = sorted([times[a] for a in cut], reverse=True)
                    ready = max(map(sum, zip(arriving, delays[size], strict=True)))
                else:
                    ready += 1.0
                ranked.append((max(0.0, ready - due), flow, size, len(ranked), ready, cut))
            ranked.sort()
            _, flow, _, _, times[node], cuts.best[node] = ranked[0]
            flows[node] = flow / max(1.0, uses[node])
            kept[node] = [cut for *_, cut in ranked[:KEPT]]
            kept[node].append(itself)
        return cuts

    def _needed(self, cuts: _Cuts, last: float) -> tuple[list[float], dict[int, Cut]]:
        """When each node must be ready at the latest, and the LUTs that are needed."""
        latest = [last] * len(self.fan_ins)
        luts: dict[int, Cut] = {}
        needed = set(self.roots)
        for node in range(len(self.fan_ins) - 1, -1, -1):  # a node comes after its fan-in
            if node not in needed:
                continue
            if node in self.boxes:
                for a in self.boxes[node]:
                    needed.add(a)
                    latest[a] = min(latest[a], latest[node] - self.kind.chain)
            elif self.fan_ins[node]:
                cut = luts[node] = cuts.best[node]
                order = sorted(cut, key=lambda a: -cuts.ready[a])
                pins = self.kind.delays[len(cut)] if self.kind.delays else (1.0,) * len(cut)
                for a, delay in zip(order, pins, strict=True):
                    needed.add(a)
                    latest[a] = min(latest[a], latest[node] - delay)
        return latest, luts
