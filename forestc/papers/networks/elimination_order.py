"""Finds orders for eliminating the variables of a graph. Eliminating a variable joins its remaining neighbors; the
order's width is the largest number of neighbors joined at once."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations

from forestc.errors import ModelError

MOST_WIDTH = 20  # variables of a separator at most


def moral_graph(parents: Sequence[Sequence[int]]) -> list[set[int]]:
    """Returns each variable's neighbors in the moral graph of a Bayesian network: parents, children, and other parents
    of its children."""
    neighbors: list[set[int]] = [set() for _ in parents]
    for child, parents_of in enumerate(parents):
        family = {child, *parents_of}
        for member in family:
            neighbors[member] |= family - {member}
    return neighbors


def min_fill_order(neighbors: Sequence[set[int]]) -> tuple[int, ...]:
    """Returns an elimination order that takes the variable with the fewest missing edges among its neighbors next.
    Raises ModelError if the width is above 20."""
    graph = [set(around) for around in neighbors]
    keys = [_fill(graph, variable) for variable in range(len(graph))]
    heap = [(key, variable) for variable, key in enumerate(keys)]
    heapify(heap)
    remaining, order = set(range(len(graph))), []
    while heap:
        key, variable = heappop(heap)
        if variable not in remaining or keys[variable] != key:
            continue  # an outdated entry
        around = graph[variable]
        if len(around) > MOST_WIDTH:
            raise too_wide(len(around))
        remaining.remove(variable)
        order.append(variable)
        changed = set(around)
        for a, b in combinations(sorted(around), 2):
            if b not in graph[a]:
                changed |= graph[a] & graph[b]  # each has one pair fewer to join
                graph[a].add(b)
                graph[b].add(a)
        for other in around:
            graph[other].remove(variable)
        for other in changed - {variable}:
            keys[other] = _fill(graph, other)
            heappush(heap, (keys[other], other))
    return tuple(order)


def _fill(graph: Sequence[set[int]], variable: int) -> tuple[int, int]:
    around = graph[variable]
    if len(around) > MOST_WIDTH:
        return len(graph) ** 2, len(around)
    joined = sum(len(graph[other] & around) for other in around)
    return (len(around) * (len(around) - 1) - joined) // 2, len(around)


def separators(neighbors: Sequence[set[int]], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Returns for each position of the order the later positions joined with it when its variable is eliminated. Raises
    ModelError if a position has more than 20."""
    position = [0] * len(order)
    for k, variable in enumerate(order):
        position[variable] = k
    inherited: list[set[int]] = [set() for _ in order]
    scopes = []
    for k, variable in enumerate(order):
        later = inherited[k] | {position[other] for other in neighbors[variable] if position[other] > k}
        if len(later) > MOST_WIDTH:
            raise too_wide(len(later))
        scopes.append(tuple(sorted(later)))
        if later:
            inherited[scopes[-1][0]] |= later - {scopes[-1][0]}
    return tuple(scopes)


def too_wide(width: int) -> ModelError:
    return ModelError(
        f"it has width {width}, at most {MOST_WIDTH} is possible",
        where="order",
        do="learn a network of smaller treewidth",
    )
