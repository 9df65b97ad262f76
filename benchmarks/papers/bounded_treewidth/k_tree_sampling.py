"""Samples k-trees uniformly, and within each finds a Bayesian network: Algorithm 1 of Nie et al., both versions.

Version 2 draws an order within the k-tree (Algorithm 2). Each variable takes its best parents among the variables that
come before it in a common clique. Version 1 finds the best network within the k-tree over all orders, by dynamic
programming on its bags (after Korhonen and Parviainen 2013), in time proportional to (k + 1)! 3^k.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import NamedTuple

import numpy as np
from papers.bounded_treewidth.k_trees import decode_into

from forestc.algorithms.arrays import Floats, Ints, Words
from forestc.papers.networks.family_scores import FamilyScorer, family_score
from forestc.papers.networks.random_words import draw, seeded
from forestc.papers.networks.runs import Runs, ScoredNetwork, found_in
from forestc.system.compiled import compiled

SAMPLES_A_RUN = 64  # samples of each run if their total is given; fewer share the work more evenly among threads
LARGEST_EXACT = 6  # limits the treewidth of Version 1, whose time and memory grow with (k + 1)! 3^k


class Best(NamedTuple):
    """The best network found so far; its arrays are changed in place. random: (1,) the state of the random numbers."""

    parents: Ints  # (n, most)
    sizes: Ints  # (n,)
    order: Ints  # (n,) an elimination order of the k-tree
    score: Floats  # (1,)
    random: Words


def make_best(n: int, most: int, random: Words) -> Best:
    return Best(
        np.zeros((n, max(1, most)), np.int64), np.zeros(n, np.int64), np.arange(n), np.full(1, -math.inf), random
    )


@compiled()
def draw_k_tree(n: int, k: int, random: Words, bags: Ints, above: Ints) -> None:
    """Draws a k-tree uniformly, by a uniform code; fills in its bags as `decode_into` does."""
    m = n - k
    chosen = np.arange(n)
    for at in range(k):
        other = at + int(draw(random) * (n - at))
        chosen[at], chosen[other] = chosen[other], chosen[at]
    chosen = np.sort(chosen[:k])
    parent, position = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    for at in range(m - 2):
        code = int(draw(random) * (k * m + 1))
        if code > 0:
            parent[at], position[at] = 1 + (code - 1) // k, (code - 1) % k
    decode_into(n, k, chosen, parent, position, bags, above)


@compiled()
def _improve(
    scorer: FamilyScorer,
    child: int,
    pool: Ints,
    length: int,
    must: int,
    most: int,
    choice: Best,
    family: Ints,
    at: Ints,
) -> None:
    """Replaces the parents of a child by the best ones among the first `length` of the pool, if they score better.
    `family` and `at` are scratch arrays.

    must: a parent in every set that is tried, or -1.
    """
    fixed = 0
    if must >= 0:
        family[0] = must
        fixed = 1
    for size in range(min(most - fixed, length) + 1):
        for position in range(size):
            at[position] = position
        while True:
            for position in range(size):
                family[fixed + position] = pool[at[position]]
            score = family_score(scorer, child, family, fixed + size)
            if score > choice.score[child]:
                choice.score[child] = score
                choice.sizes[child] = fixed + size
                choice.parents[child, : fixed + size] = family[: fixed + size]
            position = size - 1
            while position >= 0 and at[position] == length - size + position:
                position -= 1
            if position < 0:
                break
            at[position] += 1
            for later in range(position + 1, size):
                at[later] = at[later - 1] + 1


@compiled()
def draw_orders(k: int, random: Words, bags: Ints, above: Ints, orders: Ints) -> None:
    """Draws a random order of the vertices of each bag (Algorithm 2). Any two bags order their shared
    vertices alike."""
    for bag in range(len(bags)):
        order = orders[bag]
        if bag == 0:
            order[:] = bags[0]
            for position in range(k, 0, -1):
                other = int(draw(random) * (position + 1))
                order[position], order[other] = order[other], order[position]
            continue
        source = orders[max(0, above[bag])]
        new = bags[bag, 0]
        where = int(draw(random) * (k + 1))
        filled = 0
        for v in source:
            in_bag = False
            for u in bags[bag, 1:]:
                if u == v:
                    in_bag = True
            if in_bag:
                if filled == where:
                    filled += 1
                order[filled] = v
                filled += 1
        order[where] = new


@compiled()
def version_2(scorer: FamilyScorer, k: int, most: int, samples: int, best: Best) -> None:
    """Runs Algorithm 1, Version 2: draws `samples` k-trees with one order each, and updates `best`."""
    n = len(scorer.states)
    m = n - k
    bags, above, orders = np.zeros((m, k + 1), np.int64), np.zeros(m, np.int64), np.zeros((m, k + 1), np.int64)
    family, at = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    sampled = Best(np.zeros_like(best.parents), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), best.random)
    for _ in range(samples):
        draw_k_tree(n, k, best.random, bags, above)
        draw_orders(k, best.random, bags, above, orders)
        sampled.score[:] = -np.inf
        for bag in range(m):
            order = orders[bag]
            new = k + 1
            for position in range(k + 1):
                if bag == 0 or order[position] == bags[bag, 0]:
                    new = min(new, position)
                    _improve(scorer, order[position], order, position, -1, most, sampled, family, at)
                elif position > new and most > 0:
                    # Parent sets without the new vertex were tried in an earlier bag.
                    pool = np.concatenate((order[:new], order[new + 1 : position]))
                    _improve(scorer, order[position], pool, position - 1, bags[bag, 0], most, sampled, family, at)
        _take(sampled, bags, best)


@compiled()
def _take(sampled: Best, bags: Ints, best: Best) -> None:
    """Copies a network found in a k-tree to `best` if it scores better."""
    total = sampled.score.sum()
    if total > best.score[0]:
        best.score[0] = total
        best.parents[:] = sampled.parents
        best.sizes[:] = sampled.sizes
        m = len(bags)
        for bag in range(m):  # The elimination order takes the vertex of the last bag first.
            best.order[m - 1 - bag] = bags[bag, 0]
        best.order[m:] = bags[0, 1:]


def orders_of(k: int) -> Ints:
    """Returns the permutations of 0 .. k - 1 in the order of their ranks: (k!, k)."""
    return np.array(list(permutations(range(k))), np.int64).reshape(math.factorial(k), k)


@compiled()
def _rank(order: Ints, length: int) -> int:
    """Returns the lexicographic rank of a permutation among all of its length."""
    rank = 0
    for position in range(length):
        smaller = 0
        for later in range(position + 1, length):
            if order[later] < order[position]:
                smaller += 1
        rank = rank * (length - position) + smaller
    return rank


@compiled()
def _own_values(scorer: FamilyScorer, bag: Ints, most: int, values: Floats, family: Ints) -> None:
    """Fills values[i, mask]: the best score of member i of a bag with parents that are a subset of the mask."""
    size = len(bag)
    for i in range(size):
        for mask in range(1 << size):
            count = 0
            for position in range(size):
                if mask >> position & 1:
                    if count <= most:
                        family[count] = bag[position]
                    count += 1
            values[i, mask] = -np.inf
            if count <= most and not mask >> i & 1:
                values[i, mask] = family_score(scorer, bag[i], family, count)
        for position in range(size):
            for mask in range(1 << size):
                if mask >> position & 1:
                    values[i, mask] = max(values[i, mask], values[i, mask ^ 1 << position])


class Tables(NamedTuple):
    """The tables of the dynamic programming. Each bag sends its parent bag a message: for each order of their shared
    clique, and each subset of the clique, the best score of the families of that subset and of all vertices below the
    bag."""

    own: Floats  # (bags, k + 1, 2**(k + 1))
    messages: Floats  # (bags, k!, 2**k)
    first: Ints  # (bags,) the first child of a bag, or -1
    next: Ints  # (bags,) the next child of the same bag, or -1
    positions: Ints  # (bags, k) index of each clique member of a bag within its parent bag
    layers: Floats  # (bags + 1, 2**(k + 1)) values of a bag after each of its children is added


@compiled()
def _bag_values(tables: Tables, bag: int, order: Ints, ranks: Ints) -> int:
    """Fills the layers of a bag for one order of its members: for each subset of them, the best score of its families
    together with all vertices below the children added so far. Fills `ranks` with the ranks of the children's cliques
    in this order. Returns the number of children."""
    size = len(order)
    k = size - 1
    layer = tables.layers[0]
    for mask in range(1 << size):
        value = 0.0
        seen = 0
        for i in order:
            if mask >> i & 1:
                value += tables.own[bag, i, seen]
            seen |= 1 << i
        layer[mask] = value
    child = tables.first[bag]
    count = 0
    shared = np.zeros(k, np.int64)
    while child >= 0:
        filled, clique = 0, 0
        for i in order:
            for j in range(k):
                if tables.positions[child, j] == i:
                    shared[filled] = j
                    filled += 1
                    clique |= 1 << i
        ranks[count] = _rank(shared, k)
        message = tables.messages[child, ranks[count]]
        below, layer = tables.layers[count], tables.layers[count + 1]
        for mask in range(1 << size):
            best = below[mask] + message[0]
            part = mask & clique
            given = part
            while given:
                best = max(best, below[mask ^ given] + message[_translated(tables.positions[child], given)])
                given = (given - 1) & part
            layer[mask] = best
        count += 1
        child = tables.next[child]
    return count


@compiled()
def _translated(positions: Ints, mask: int) -> int:
    """Translates a subset of a parent bag's members into a subset of the child's clique."""
    result = 0
    for j in range(len(positions)):
        result |= (mask >> positions[j] & 1) << j
    return result


@compiled()
def version_1(scorer: FamilyScorer, k: int, most: int, samples: int, best: Best, orders: Ints) -> None:
    """Runs Algorithm 1, Version 1: draws `samples` k-trees, and updates `best` with the best network within each.
    orders: `orders_of(k + 1)`."""
    n = len(scorer.states)
    m = n - k
    bags, above = np.zeros((m, k + 1), np.int64), np.zeros(m, np.int64)
    for _ in range(samples):
        draw_k_tree(n, k, best.random, bags, above)
        best_within(scorer, bags, above, most, best, orders)


@compiled()
def best_within(scorer: FamilyScorer, bags: Ints, above: Ints, most: int, best: Best, orders: Ints) -> float:
    """Finds the best network within a k-tree, and copies it to `best` if it scores better. Returns its score."""
    m, size = bags.shape
    k = size - 1
    n = m + k
    family = np.zeros(most + 1, np.int64)
    tables = Tables(
        np.zeros((m, size, 1 << size)),
        np.full((m, len(orders) // size, 1 << k), -np.inf),
        np.full(m, -1),
        np.full(m, -1),
        np.zeros((m, k), np.int64),
        np.zeros((m + 1, 1 << size)),
    )
    for bag in range(m - 1, 0, -1):
        up = max(0, above[bag])
        tables.next[bag] = tables.first[up]
        tables.first[up] = bag
        for j in range(k):
            for position in range(size):
                if bags[up, position] == bags[bag, 1 + j]:
                    tables.positions[bag, j] = position
    ranks, shared = np.zeros(m, np.int64), np.zeros(k, np.int64)
    top, top_order = -np.inf, 0
    for bag in range(m - 1, -1, -1):
        _own_values(scorer, bags[bag], most, tables.own[bag], family)
        for row in range(len(orders)):
            order = orders[row]
            layer = tables.layers[_bag_values(tables, bag, order, ranks)]
            if bag == 0:
                if layer[(1 << size) - 1] > top:
                    top, top_order = layer[(1 << size) - 1], row
                continue
            filled = 0
            for i in order:  # Member 0 is the bag's own vertex, which is not in the parent bag.
                if i > 0:
                    shared[filled] = i
                    filled += 1
            message = tables.messages[bag, _rank(shared, k)]
            for mask in range(1 << k):
                message[mask] = max(message[mask], layer[mask << 1 | 1])
    if top <= best.score[0]:
        return top
    sampled = Best(np.zeros_like(best.parents), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), best.random)
    # The network is read off from the top bag down: each bag gets its order and the subset of families to be placed in
    # it or below it.
    chosen_rank, chosen_mask = np.full(m, -1), np.zeros(m, np.int64)
    rest, at = np.zeros(size, np.int64), np.zeros(most + 1, np.int64)
    for bag in range(m):
        row, mask = top_order, (1 << size) - 1
        if bag > 0:
            mask = chosen_mask[bag] << 1 | 1
            row = _row_of(tables, bag, orders, chosen_rank[bag], mask, ranks, shared)
        order = orders[row]
        count = _bag_values(tables, bag, order, ranks)
        children = np.zeros(count, np.int64)
        child = tables.first[bag]
        for position in range(count):
            children[position] = child
            child = tables.next[child]
        for position in range(count - 1, -1, -1):
            child = children[position]
            goal, message = tables.layers[position + 1, mask], tables.messages[child, ranks[position]]
            clique = 0
            for j in range(k):
                clique |= 1 << tables.positions[child, j]
            part = mask & clique
            given = part
            while tables.layers[position, mask ^ given] + message[_translated(tables.positions[child], given)] < goal:
                given = (given - 1) & part
            chosen_rank[child] = ranks[position]
            chosen_mask[child] = _translated(tables.positions[child], given)
            mask ^= given
        for position in range(size):
            if mask >> order[position] & 1:
                for earlier in range(position):
                    rest[earlier] = bags[bag, order[earlier]]
                child = bags[bag, order[position]]
                sampled.score[child] = -np.inf
                _improve(scorer, child, rest, position, -1, most, sampled, family, at)
    _take(sampled, bags, best)
    return top


@compiled()
def _row_of(tables: Tables, bag: int, orders: Ints, rank: int, mask: int, ranks: Ints, shared: Ints) -> int:
    """Returns the index of the order of a bag that gave its message to its parent bag."""
    k = len(shared)
    goal = tables.messages[bag, rank, mask >> 1]
    for row in range(len(orders)):
        filled = 0
        for i in orders[row]:
            if i > 0:
                shared[filled] = i
                filled += 1
        if _rank(shared, k) == rank and tables.layers[_bag_values(tables, bag, orders[row], ranks), mask] >= goal:
            return row
    return 0  # This line is not reached: the message is the largest of these values.


def sample(
    scorer: FamilyScorer,
    k: int,
    most: int,
    version: int,
    *,
    end: float,
    samples: int | None = None,
    seed: int = 0,
    better: Callable[[ScoredNetwork], None] | None = None,
) -> ScoredNetwork:
    """Returns the best network that Algorithm 1 finds until `end`, or in `samples` k-trees whatever the time.

    k: treewidth, from 1 to n - 1.
    version: 1, for treewidth up to LARGEST_EXACT, or 2.
    end: by time.monotonic().
    better: called with each better network.
    """
    runs = Runs(scorer, end, better)
    kernel, more = (version_1, (orders_of(k + 1),)) if version == 1 else (version_2, ())
    n = len(scorer.states)

    def counted(begin: int, own: FamilyScorer) -> None:
        best = make_best(n, most, seeded(seed, begin))
        kernel(own, k, most, min(SAMPLES_A_RUN, (samples or 0) - begin), best, *more)
        runs.take_in(found_in(best.parents, best.sizes, float(best.score[0]), best.order))

    def timed(lane: int, own: FamilyScorer) -> None:
        best = make_best(n, most, seeded(seed, lane))
        many, last = 1, -math.inf
        while many and not runs.stop.is_set():
            begin = time.monotonic()
            kernel(own, k, most, many, best, *more)
            now = time.monotonic()
            if best.score[0] > last:
                last = float(best.score[0])
                runs.take_in(found_in(best.parents, best.sizes, last, best.order))
            many = min(4 * many, int(many * max(0.0, min(1.0, end - now)) / max(now - begin, 1e-6)))

    if samples is not None:
        return runs.run([partial(counted, begin) for begin in range(0, samples, SAMPLES_A_RUN)])
    return runs.run([partial(timed, lane) for lane in range(runs.threads)])
