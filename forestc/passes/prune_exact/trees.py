"""Removes trees: keeps the cheapest that decide a growing set of inputs as the model does, until a choice is proved.

The cutting planes of Emine et al., Free Lunch in the Forest (AAAI 2025): an integer program chooses trees and
a shift of each score; the separation oracle proves the choice, or gives an input that it decides differently.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.separation.oracle import Ensemble
from forestc.algorithms.separation.tree_selection import select
from forestc.passes.prune_exact.cells import Edits, drawn
from forestc.passes.prune_exact.working import Working

FIRST_INPUTS, MORE_INPUTS = 60, 40  # inputs of the first program, and those added in each round
MOST_ROUNDS = 80  # of cutting planes, each a program and a proof
STAGE = 3  # times the share of one proof that all programs and proofs may take together


@dataclass(frozen=True)
class Selection:
    """state: same (trees were removed, or none can be: proved), or unknown (a limit was reached, all trees stay).
    smallest: whether no choice has fewer splits. kept: (trees,) of 0 and 1."""

    state: str
    smallest: bool
    kept: NDArray[np.int64]


def remove_trees(working: Working, share: float) -> Selection:
    """Removes trees where this is proved. share: of the effort and the time, for one program or proof."""
    count = len(working.forest.trees)
    ones = np.ones(count, dtype=np.int64)
    cost = np.array([1 + tree.splits[0] for tree in working.drawn], dtype=np.float64)
    effort = working.effort
    last_step, stage = effort.taken + STAGE * share * effort.steps, effort.share(STAGE * share)
    chosen = _closest(working)
    if not len(chosen) or (working.decider.threshold is None and len(working.state.bias) == 1):
        return Selection("same", False, ones)  # nothing is decided: merging nodes will find that
    for _ in range(MOST_ROUNDS):
        if effort.is_over() or effort.taken > last_step or stage.seconds < 0:
            break
        allowed = effort.share(share)
        limits = allowed.steps, min(allowed.seconds, stage.seconds)
        selected, taken = select(*_demands(working, chosen), cost, _reach(working), *limits)
        effort.taken += taken
        if selected is None:
            break
        kept, shift, optimal = selected
        if kept.all():
            if not optimal:
                break
            return Selection("same", True, ones)
        after = _without(working, kept, shift)
        wrong = _wrong(working, after, kept)
        if len(wrong):
            chosen = np.union1d(chosen, wrong[:MORE_INPUTS])
            continue
        known = len(working.pool.cells)
        state = working.proved(after, [working.cells.box], share)
        if state == "same":
            _take(working, after, kept)
            return Selection(state, optimal, kept)
        if state == "unknown":
            break
        chosen = np.union1d(chosen, np.arange(known, len(working.pool.cells)))
    effort.late |= stage.timed or stage.seconds < 0
    return Selection("unknown", False, ones)


def _closest(working: Working) -> NDArray[np.int64]:
    """The inputs of the pool whose decisions are closest."""
    scores = working.pool.scores
    if working.decider.threshold is not None:
        margin = np.abs(scores[:, -1] - working.decider.threshold)
    elif scores.shape[1] == 1:
        margin = np.zeros(len(scores), dtype=np.int64)
    else:
        largest = np.partition(scores, -2, axis=1)
        margin = largest[:, -1] - largest[:, -2]
    return np.sort(np.argsort(margin, kind="stable")[:FIRST_INPUTS])


def _demands(
    working: Working, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """What the decisions of inputs demand of trees and shifts, see `select`."""
    pool, state = working.pool, working.state
    values = np.stack([tree.value[at[chosen]] for tree, at in zip(state.trees, pool.place, strict=True)], axis=1)
    trees, shifts, least = [], [], []
    for kind in np.unique(pool.classes[chosen]).tolist():
        factors, constants = working.decider.demands(kind, len(state.bias), False)
        leaves = values[pool.classes[chosen] == kind]
        for row, constant in zip(factors, constants.tolist(), strict=True):
            trees.append(leaves @ row)
            shifts.append(np.tile(row, (len(leaves), 1)))
            least.append(np.full(len(leaves), -constant - int(row @ state.bias)))
    return np.concatenate(trees), np.concatenate(shifts), np.concatenate(least)


def _reach(working: Working) -> int:
    """The largest sum of all trees."""
    return int(sum(np.abs(tree.value).max(initial=0) for tree in working.state.trees))


def _without(working: Working, kept: NDArray[np.int64], shift: NDArray[np.int64]) -> Ensemble:
    """The kept trees; one that is removed is a single leaf of nothing."""
    trees = list(working.state.trees)
    for index in np.flatnonzero(kept == 0).tolist():
        trees[index] = drawn(working.forest, working.cells, index, _removed(working, index)).boxes
    return Ensemble(tuple(trees), working.state.bias + shift)


def _removed(working: Working, index: int) -> Edits:
    nothing = np.zeros(len(working.forest.trees[index].outputs), dtype=np.int64)
    return replace(working.edits[index], leaf={0: nothing})


def _wrong(working: Working, after: Ensemble, kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """The inputs of the pool that would be decided differently."""
    pool = working.pool
    scores = np.tile(after.bias, (len(pool.cells), 1))
    for index in np.flatnonzero(kept).tolist():
        scores += working.state.trees[index].value[pool.place[index]]
    return np.flatnonzero(working.decider.classes(scores) != pool.classes)


def _take(working: Working, after: Ensemble, kept: NDArray[np.int64]) -> None:
    working.pool.scores += after.bias - working.state.bias
    working.state = replace(working.state, bias=after.bias)
    for index in np.flatnonzero(kept == 0).tolist():
        working.accept(index, _removed(working, index))
