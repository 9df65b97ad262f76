"""Grows a first network of bounded treewidth for many columns, one column at a time.

Each column takes its parents from a clique of a k-tree (Scanagatta, Corani, de Campos and Zaffalon 2016).
"""

from __future__ import annotations

import numpy as np

from forestc.algorithms.arrays import Floats, Ints, Words
from forestc.papers.networks.family_scores import FamilyScorer, family_score
from forestc.papers.networks.random_words import draw
from forestc.system.compiled import compiled

LOOK = 32  # cliques of the k-tree (bags) tried for one column at most
NOISE = 0.2  # multiplies gains by random factors from 0.9 to 1.1, so that starts differ


@compiled()
def _choose(
    scorer: FamilyScorer, child: int, bag: Ints, size: int, most: int, chosen: Ints, trial: Ints
) -> tuple[float, int]:
    """Writes parents from a clique to `chosen` while the score rises; returns (score, number of parents)."""
    count = 0
    score = family_score(scorer, child, chosen, 0)
    while count < min(most, size):
        trial[:count] = chosen[:count]
        best = -1
        for index in range(size):
            used = False
            for earlier in range(count):
                if chosen[earlier] == bag[index]:
                    used = True
            if used:
                continue
            trial[count] = bag[index]
            value = family_score(scorer, child, trial, count + 1)
            if value > score:
                score, best = value, bag[index]
        if best < 0:
            break
        chosen[count] = best
        count += 1
    return score, count


@compiled()
def grow(
    scorer: FamilyScorer, k: int, partners: Ints, gains: Floats, random: Words, parents: Ints, sizes: Ints
) -> None:
    """Writes the parents of each column, for a network of treewidth at most k. partners: (n, m) columns that gain most
    with each column."""
    n, most = parents.shape
    most = min(most, k)
    # Each column adds one bag: `bags` holds its members, `lengths` their number.
    bags, lengths = np.zeros((n, k + 1), np.int64), np.zeros(n, np.int64)
    recent, seen = np.zeros((n, LOOK), np.int64), np.zeros(n, np.int64)  # latest bags that hold a column
    added, partner = np.zeros(n, np.bool_), np.full(n, -1)
    gain = np.full(n, -np.inf)
    chosen, trial, best_parents = (
        np.zeros(most + 1, np.int64),
        np.zeros(most + 1, np.int64),
        np.zeros(most + 1, np.int64),
    )
    gain[int(draw(random) * n)] = 0.0
    for _ in range(n):
        child = -1
        for v in range(n):
            if not added[v] and (child < 0 or gain[v] > gain[child]):
                child = v
        added[child] = True
        length = 0
        if partner[child] >= 0:
            top, source, count = -np.inf, -1, 0
            near = partner[child]
            for at in range(min(LOOK, seen[near])):
                bag = recent[near, at]
                score, taken = _choose(scorer, child, bags[bag], lengths[bag], most, chosen, trial)
                if score > top:
                    top, source, count = score, bag, taken
                    best_parents[:taken] = chosen[:taken]
            parents[child, :count] = best_parents[:count]
            sizes[child] = count
            length = lengths[source]
            bags[child, :length] = bags[source, :length]
            if length == k + 1:  # the bag is full: a member that is no parent leaves
                out = int(draw(random) * length)
                while True:
                    is_parent = False
                    for at in range(count):
                        if best_parents[at] == bags[child, out]:
                            is_parent = True
                    if not is_parent:
                        break
                    out = (out + 1) % length
                length -= 1
                bags[child, out] = bags[child, length]
        bags[child, length] = child
        lengths[child] = length + 1
        for at in range(length + 1):
            v = bags[child, at]
            recent[v, seen[v] % LOOK] = child
            seen[v] += 1
        for at in range(partners.shape[1]):
            other = partners[child, at]
            worth = gains[child, at] * (1.0 + NOISE * (draw(random) - 0.5))
            if not added[other] and worth > gain[other]:
                gain[other], partner[other] = worth, child
