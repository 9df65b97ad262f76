"""Proves the best Bayesian network of bounded treewidth for few variables, by branch and bound.

Each bound comes from dynamic programming over subsets (Silander and Myllymaki 2006), which ignores the treewidth.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from forestc.algorithms.arrays import Floats, Ints
from forestc.papers.bit_words import popcount
from forestc.papers.networks.elimination_order import moral_graph
from forestc.papers.networks.family_scores import FamilyScorer, useful_parent_sets
from forestc.papers.networks.runs import NetworkProof, ScoredNetwork
from forestc.system.compiled import compiled

MOST_VARIABLES = 20  # variables of a proof at most, for arrays over all subsets


class Families(NamedTuple):
    """The parent sets that an optimal network may need."""

    masks: Ints  # bit masks of parents, by variable; the best set first
    scores: Floats
    first: Ints  # (n + 1,) index of each variable's first set


class Space(NamedTuple):
    """Working memory over all subsets of the variables, (2**n,) each."""

    best: Floats  # score of the best network over the subset
    last: Ints  # index of the last variable's family in this network
    seen: Ints
    stack: Ints  # subsets to visit


def make_space(n: int) -> Space:
    return Space(np.zeros(1 << n), *(np.zeros(1 << n, np.int64) for _ in range(3)))


def make_families(scorer: FamilyScorer, most: int) -> Families:
    masks: list[int] = []
    scores: list[float] = []
    first = [0]
    for child in range(len(scorer.states)):
        for parents, score in useful_parent_sets(scorer, child, most):
            masks.append(sum(1 << parent for parent in parents))
            scores.append(score)
        first.append(len(masks))
    return Families(np.array(masks, np.int64), np.array(scores), np.array(first, np.int64))


@compiled()
def _may_be(family: int, forbidden: Ints) -> bool:
    """Returns True if no edge within a family (a bit mask) is forbidden."""
    for v in range(len(forbidden)):  # noqa: SIM110, numba compiles no generators
        if family >> v & 1 and forbidden[v] & family:
            return False
    return True


@compiled()
def relax(families: Families, forbidden: Ints, space: Space, chosen: Ints) -> float:
    """Returns the best score of a network of any treewidth whose moral graph lacks the forbidden edges. Writes each
    variable's family index to `chosen`."""
    n = len(forbidden)
    masks, scores, first = families
    allowed = np.zeros(len(masks), np.int64)  # indices of allowed families; each variable's begin at first[child]
    ends = np.zeros(n, np.int64)
    for child in range(n):
        end = first[child]
        for at in range(first[child], first[child + 1]):
            if _may_be(masks[at] | 1 << child, forbidden):
                allowed[end] = at
                end += 1
        ends[child] = end
    best, last = space.best, space.last
    best[0] = 0.0
    for subset in range(1, 1 << n):
        top, family = -np.inf, -1
        for child in range(n):
            if subset >> child & 1:
                rest = subset ^ 1 << child
                for index in range(first[child], ends[child]):
                    at = allowed[index]
                    if masks[at] & ~rest == 0:
                        if best[rest] + scores[at] > top:
                            top, family = best[rest] + scores[at], at
                        break
        best[subset], last[subset] = top, family
    subset = (1 << n) - 1
    while subset:
        at = last[subset]
        child = 0
        while not first[child] <= at < first[child + 1]:
            child += 1
        chosen[child] = at
        subset ^= 1 << child
    return float(best[(1 << n) - 1])


@compiled()
def treewidth_at_most(graph: Ints, k: int, space: Space, mark: int) -> bool:
    """Returns True if the graph's treewidth is at most k, exactly. graph: (n,) bit masks of neighbors. mark: a number
    not used with `space` before."""
    n = len(graph)
    later = np.zeros(n, np.int64)  # neighbors, also through eliminated vertices
    space.stack[0] = 0
    space.seen[0] = mark
    top = 1
    while top:
        top -= 1
        gone = space.stack[top]
        if n - _count(gone) <= k + 1:
            return True
        for v in range(n):
            if not gone >> v & 1:
                later[v] = _reached(graph, v, gone)
        safe = -1
        for v in range(n):
            if not gone >> v & 1 and _count(later[v]) <= k:
                total, most = 0, 0  # missing edges among the neighbors: in all (twice), most at one
                for u in range(n):
                    if later[v] >> u & 1:
                        lacking = _count(later[v] & ~later[u]) - 1
                        total += lacking
                        most = max(most, lacking)
                if total == 2 * most:  # a clique, or one but for a single vertex
                    safe = v
                    break
        for v in range(n):
            if gone >> v & 1 or _count(later[v]) > k or (safe >= 0 and v != safe):
                continue
            following = gone | 1 << v
            if space.seen[following] != mark:
                space.seen[following] = mark
                space.stack[top] = following
                top += 1
    return False


@compiled()
def _count(mask: int) -> int:
    return int(popcount(np.uint64(mask)))


@compiled()
def _reached(graph: Ints, v: int, gone: int) -> int:
    """Returns v's neighbors (a bit mask) after the vertices in `gone` are eliminated."""
    near, inside = graph[v] & ~gone, graph[v] & gone
    seen = inside
    while inside:
        u = _count((inside & -inside) - 1)
        inside &= inside - 1
        near |= graph[u] & ~gone
        fresh = graph[u] & gone & ~seen
        seen |= fresh
        inside |= fresh
    return int(near & ~(1 << v))


@compiled()
def blame(
    families: Families, chosen: Ints, required: Ints, forbidden: Ints, k: int, space: Space, mark: int, edges: Ints
) -> int:
    """Writes to `edges` a minimal set of moral edges that, with the required edges, makes the treewidth exceed k.
    Returns their number; -1 if the treewidth of the moral graph is at most k."""
    n = len(chosen)
    masks, scores, first = families
    graph = required.copy()
    loss = np.zeros((n, n))
    moral = np.zeros(n, np.int64)
    for child in range(n):
        family = masks[chosen[child]] | 1 << child
        for u in range(n):
            if not family >> u & 1:
                continue
            moral[u] |= family & ~(1 << u)
            for v in range(u):
                if family >> v & 1:
                    pair = 1 << u | 1 << v
                    for at in range(chosen[child], first[child + 1]):
                        without = masks[at] | 1 << child
                        if without & pair != pair and _may_be(without, forbidden):
                            loss[u, v] += scores[chosen[child]] - scores[at]
                            break
    if treewidth_at_most(moral, k, space, mark):
        return -1
    count = 0
    for u in range(n):
        graph[u] |= moral[u]
        for v in range(u):
            if moral[u] >> v & 1 and not required[u] >> v & 1:
                edges[count, 0], edges[count, 1] = u, v
                at = count
                while at and loss[edges[at - 1, 0], edges[at - 1, 1]] < loss[u, v]:
                    edges[at, 0], edges[at, 1] = edges[at - 1, 0], edges[at - 1, 1]
                    edges[at - 1, 0], edges[at - 1, 1] = u, v
                    at -= 1
                count += 1
    remaining = count
    # Removes each edge, the cheapest first, if the rest still exceeds treewidth k.
    for at in range(count - 1, -1, -1):
        u, v = edges[at]
        graph[u] &= ~(1 << v)
        graph[v] &= ~(1 << u)
        mark += 1
        if treewidth_at_most(graph, k, space, mark):
            graph[u] |= 1 << v
            graph[v] |= 1 << u
        else:
            remaining -= 1
            edges[at, 0] = -1
    filled = 0
    for at in range(count):
        if edges[at, 0] >= 0:
            edges[filled] = edges[at]
            filled += 1
    return remaining


class Outlook:
    """A linear forecast of whether a proof will end in time."""

    def __init__(self, first: float, end: float) -> None:
        self.first, self.end = first, end
        self.begin: tuple[float, float] | None = None  # time and bound

    def in_reach(self, now: float, bound: float, best: float) -> bool:
        """Returns True if the proof may end in time. best: score to which the bound must fall."""
        self.begin = self.begin or (now, bound)
        begin, top = self.begin
        return now < self.first or (bound - best) * (now - begin) <= (top - bound) * (self.end - now)


def prove(
    scorer: FamilyScorer,
    k: int,
    most: int,
    start: ScoredNetwork,
    *,
    end: float,
    better: Callable[[ScoredNetwork, float], None] | None = None,
    outlook: Outlook | None = None,
    most_work: float = math.inf,
) -> NetworkProof:
    """Returns the best network of treewidth at most k. If the proof does not finish in time, before Ctrl-C or in
    `most_work` steps (branches times parent sets times subsets of the variables), the result is the best network found
    with an upper bound on all scores."""
    n = len(scorer.states)
    families = make_families(scorer, most)
    space = make_space(n)
    most_nodes = max(1.0, most_work / (len(families.masks) << n))
    chosen, edges = np.zeros(n, np.int64), np.zeros((n * n, 2), np.int64)
    none = np.zeros(n, np.int64)
    best, mark, nodes = start, 0, 0
    slack = 1e-9 * max(1.0, abs(start.score))  # rounding of sums
    bound = relax(families, none, space, chosen)
    waiting: list[tuple[float, int, Ints, Ints, Ints]] = [(-bound, 0, none, none, chosen.copy())]
    negative, reported = -bound, time.monotonic()
    try:
        while waiting and time.monotonic() < end and nodes < most_nodes:
            negative, _, forbidden, required, families_of = heapq.heappop(waiting)
            if -negative <= best.score + slack:
                return NetworkProof(best, best.score, nodes)
            if better is not None and time.monotonic() > reported + 1:
                reported = time.monotonic()
                better(best, -negative)
            mark += n * n + 1
            count = blame(families, families_of, required, forbidden, k, space, mark, edges)
            if count < 0:
                parents = _parents(families, families_of)
                best = ScoredNetwork(-negative, parents, elimination_order(parents, k))
                if better is not None:
                    better(best, -negative)
                return NetworkProof(best, best.score, nodes)
            required = required.copy()
            # Each branch forbids one of these edges and requires the edges before it.
            for u, v in edges[:count].tolist():
                if outlook is not None and not outlook.in_reach(time.monotonic(), -negative, best.score):
                    return NetworkProof(best, -negative, nodes)
                without = forbidden.copy()
                without[u] |= 1 << v
                without[v] |= 1 << u
                score = relax(families, without, space, chosen)
                nodes += 1
                if score > best.score + slack:
                    heapq.heappush(waiting, (-score, nodes, without, required.copy(), chosen.copy()))
                if time.monotonic() > end:  # puts the node back unchanged, for its bound
                    heapq.heappush(waiting, (negative, nodes, forbidden, required, families_of))
                    break
                required[u] |= 1 << v
                required[v] |= 1 << u
                mark += n * n + 1
                if not treewidth_at_most(required, k, space, mark):
                    break
    except KeyboardInterrupt:  # the branches that wait are no better than the last one
        return NetworkProof(best, max(-negative, best.score), nodes)
    bound = -waiting[0][0] if waiting else best.score
    return NetworkProof(best, max(bound, best.score), nodes)


def elimination_order(parents: Sequence[Sequence[int]], k: int) -> tuple[int, ...]:
    """Returns an elimination order of width at most k for a small moral graph of treewidth at most k."""
    n = len(parents)
    graph = np.array([sum(1 << u for u in around) for around in moral_graph(parents)], np.int64)
    space = make_space(n)
    order: list[int] = []
    while len(order) < n:
        for v in range(n):
            near = int(graph[v])
            if v in order or _count(near) > k:
                continue
            after = graph.copy()
            for u in range(n):
                if near >> u & 1:
                    after[u] = (after[u] | near) & ~(1 << u) & ~(1 << v)
            after[v] = 0
            if treewidth_at_most(after, k, space, 1 + len(order) * n + v):
                order.append(v)
                graph = after
                break
    return tuple(order)


def _parents(families: Families, chosen: Ints) -> tuple[tuple[int, ...], ...]:
    masks = families.masks[chosen].tolist()
    return tuple(tuple(v for v in range(len(chosen)) if mask >> v & 1) for mask in masks)
