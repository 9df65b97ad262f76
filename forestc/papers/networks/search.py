"""Searches for a Bayesian network of bounded treewidth and high score, by annealing over its arcs.

A chordal graph of treewidth at most k around the moral graph shows that the treewidth is small enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Floats, Ints, Words
from forestc.papers.networks.elimination import Room, complete, eliminates, has, make_room, neighbors, put, take
from forestc.papers.networks.family_scores import FamilyScorer, best_partners, family_score, for_thread
from forestc.papers.networks.growth import grow
from forestc.papers.networks.random_words import draw, seeded
from forestc.papers.networks.runs import Runs, ScoredNetwork, found_in
from forestc.system.compiled import compiled, share_out

MOST_PARTNERS = 30  # columns of highest gain that are candidates for new parents
HOT_SHARE = 0.3  # multiplies the median gain of best partners into the first temperature
PARTNER_SHARE = 0.5  # share of the time limit for the choice of candidate parents at most
COLD = 0.1  # ends annealing at this temperature, in nats
SHARES = (0.02, 0.08, 0.3, 0.6)  # shares of the time limit for the successive runs of a thread
# Limits the moves of a run, per column and in all, if `samples` is given.
STEPS_A_COLUMN, MOST_STEPS = 20_000, 4_000_000
FEW_STEPS = 2000  # anneals only a grown network if fewer moves per column are possible
WARM_MOVES = 20_000  # moves of the run from a given network
WARM_SHARE = 0.03  # scales the first temperature of a run from a grown network
SLICE, SLICE_SECONDS = 2000, 0.01  # moves (at most) and seconds (about) between two looks at the clock
FROM_CHORDAL = 0.5  # share of new parents drawn from neighbors in the chordal graph


class AnnealingState(NamedTuple):
    """The state of annealing: a network, its graphs, and working memory."""

    parents: Ints  # (n, most parents)
    sizes: Ints  # (n,) numbers of parents
    scores: Floats  # (n,) scores of the families
    times: NDArray[np.int16]  # (n, n) number of families that an edge belongs to
    moral: Words  # (n, words) rows of the adjacency matrix as bits
    chordal: Words  # (n, words) a supergraph of treewidth at most k
    order: Ints  # (n,) elimination order behind the chordal graph
    best_parents: Ints
    best_sizes: Ints
    best_order: Ints
    best_score: Floats  # (1,)
    random: Words  # (1,) the state of the random numbers
    room: Room
    seen: Ints  # (n,) marks of the search for a cycle
    stack: Ints
    family: Ints  # (2, most parents) parents after a move


def make_state(n: int, most: int, random: Words) -> AnnealingState:
    """Returns the state of a network without arcs; the families' scores are not yet set."""
    words = -(-n // 64)
    return AnnealingState(
        np.zeros((n, most), np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros((n, n), np.int16),
        np.zeros((n, words), np.uint64), np.zeros((n, words), np.uint64), np.arange(n), np.zeros((n, most), np.int64),
        np.zeros(n, np.int64), np.arange(n), np.full(1, -math.inf), random, make_room(n), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.zeros((2, most), np.int64),
    )  # fmt: skip


@compiled()
def _join(state: AnnealingState, u: int, v: int) -> bool:
    """Adds one more family to edge u-v. Returns True for new edges outside the chordal graph."""
    state.times[u, v] += 1
    state.times[v, u] += 1
    if state.times[u, v] > 1:
        return False
    put(state.moral, u, v)
    return not has(state.chordal, u, v)


@compiled()
def _part(state: AnnealingState, u: int, v: int) -> None:
    state.times[u, v] -= 1
    state.times[v, u] -= 1
    if state.times[u, v] == 0:
        take(state.moral, u, v)


@compiled()
def _add_family(state: AnnealingState, child: int, parents: Ints, count: int) -> bool:
    """Adds a family's edges; returns True if the chordal graph lacks one."""
    outside = False
    for index in range(count):
        if _join(state, child, parents[index]):
            outside = True
        for before in range(index):
            if _join(state, parents[before], parents[index]):
                outside = True
    return outside


@compiled()
def _drop_family(state: AnnealingState, child: int, parents: Ints, count: int) -> None:
    for index in range(count):
        _part(state, child, parents[index])
        for before in range(index):
            _part(state, parents[before], parents[index])


@compiled()
def _reaches(state: AnnealingState, ancestor: int, start: int, besides: int) -> bool:
    """Returns True if `ancestor` is `start` or its ancestor, ignoring `ancestor`'s arc to `besides`."""
    seen, stack = state.seen, state.stack
    seen[:] = 0
    stack[0] = start
    seen[start] = 1
    top = 1
    while top > 0:
        top -= 1
        v = stack[top]
        if v == ancestor:
            return True
        for index in range(state.sizes[v]):
            parent = state.parents[v, index]
            if v == besides and parent == ancestor:
                continue
            if not seen[parent]:
                seen[parent] = 1
                stack[top] = parent
                top += 1
    return False


@compiled()
def _set_family(state: AnnealingState, child: int, parents: Ints, count: int) -> None:
    state.parents[child, :count] = parents[:count]
    state.sizes[child] = count


@compiled()
def restart(scorer: FamilyScorer, state: AnnealingState, parents: Ints, count: Ints, k: int) -> bool:
    """Sets the annealing state to a network. Returns False if no elimination order of width at most k was found."""
    state.times[:] = 0
    state.moral[:] = np.uint64(0)
    state.chordal[:] = np.uint64(0)
    for child in range(len(count)):
        _set_family(state, child, parents[child], count[child])
        state.scores[child] = family_score(scorer, child, parents[child], count[child])
        _add_family(state, child, parents[child], count[child])
    if not eliminates(state.moral, k, state.room):
        return False
    complete(state.room, state.chordal)
    state.order[:] = state.room.order
    return True


@compiled()
def keep_best(state: AnnealingState) -> None:
    total = state.scores.sum()
    if total > state.best_score[0]:
        state.best_score[0] = total
        state.best_parents[:] = state.parents
        state.best_sizes[:] = state.sizes
        state.best_order[:] = state.order


@compiled()
def _without(parents: Ints, count: int, gone: int, family: Ints) -> int:
    size = 0
    for index in range(count):
        if index != gone:
            family[size] = parents[index]
            size += 1
    return size


@compiled()
def anneal(
    scorer: FamilyScorer, state: AnnealingState, k: int, partners: Ints, steps: int, hot: float, cold: float
) -> None:
    """Tries `steps` random moves while the temperature falls from `hot` to `cold`, in nats. partners: (n, m) candidate
    parents of each column."""
    n, most = state.parents.shape
    most = min(most, k)
    random, family, near = state.random, state.family, state.room.near
    cooling = math.exp(math.log(cold / hot) / max(1, steps))
    temperature = hot
    total = state.scores.sum()
    for _ in range(steps):
        temperature *= cooling
        child = int(draw(random) * n)
        count = state.sizes[child]
        kind = draw(random)
        fresh, gone = -1, -1  # new parent, and index of the parent removed; -1 for none
        turned = False
        if kind < 0.55 or count == 0:
            if draw(random) < FROM_CHORDAL:
                around = neighbors(state.chordal, child, near)
                if around == 0:
                    continue
                fresh = near[int(draw(random) * around)]
            else:
                fresh = partners[child, int(draw(random) * partners.shape[1])]
            if count == most or (count > 0 and kind < 0.3):
                gone = int(draw(random) * count)
        else:
            gone = int(draw(random) * count)
            turned = kind > 0.75
        if (state.parents[child, :count] == fresh).any():
            continue
        size = _without(state.parents[child], count, gone, family[0])
        if fresh >= 0:
            family[0, size] = fresh
            size += 1
        score = family_score(scorer, child, family[0], size)
        gain = score - state.scores[child]
        other, other_size, other_score = -1, 0, 0.0
        if turned:
            other = state.parents[child, gone]
            gone_too = int(draw(random) * most) if state.sizes[other] == most else -1
            other_size = _without(state.parents[other], state.sizes[other], gone_too, family[1])
            family[1, other_size] = child
            other_size += 1
            other_score = family_score(scorer, other, family[1], other_size)
            gain += other_score - state.scores[other]
        if gain < 0.0 and gain < temperature * math.log(draw(random)):
            continue
        if fresh >= 0 and _reaches(state, child, fresh, -1):
            continue
        if turned and _reaches(state, other, child, child):
            continue
        _drop_family(state, child, state.parents[child], count)
        outside = _add_family(state, child, family[0], size)
        if turned:
            _drop_family(state, other, state.parents[other], state.sizes[other])
            if _add_family(state, other, family[1], other_size):
                outside = True
        if outside:
            if eliminates(state.moral, k, state.room):
                complete(state.room, state.chordal)
                state.order[:] = state.room.order
            else:
                _drop_family(state, child, family[0], size)
                _add_family(state, child, state.parents[child], count)
                if turned:
                    _drop_family(state, other, family[1], other_size)
                    _add_family(state, other, state.parents[other], state.sizes[other])
                continue
        _set_family(state, child, family[0], size)
        state.scores[child] = score
        if turned:
            _set_family(state, other, family[1], other_size)
            state.scores[other] = other_score
        total += gain
        if total > state.best_score[0] + 1e-9:
            keep_best(state)
            total = state.scores.sum()


class AnnealingPlan(NamedTuple):
    """Parameters of annealing."""

    k: int  # largest treewidth
    most: int  # largest number of parents of a column
    partners: Ints  # (n, m) columns that gain most with each column
    gains: Floats  # (n, m) gains of the partners
    hot: float  # first temperature, in nats
    seed: int
    start: Sequence[Sequence[int]]


def search(
    scorer: FamilyScorer,
    k: int,
    most: int,
    *,
    end: float,
    samples: int | None = None,
    seed: int = 0,
    better: Callable[[ScoredNetwork], None] | None = None,
    stop: Event | None = None,
    start: Sequence[Sequence[int]] = (),
) -> ScoredNetwork:
    """Returns the best network found, of treewidth at most k and with at most `most` parents per column.

    end: time of time.monotonic().
    samples: number of repeatable runs, instead of `end`.
    stop: ends the search when set, as Ctrl-C does.
    start: parents of each column in a first network, ignored beyond the treewidth.
    """
    runs = Runs(scorer, end, better, stop)
    n = len(scorer.states)
    partners = (np.arange(n)[:, None] + np.arange(1, min(n - 1, MOST_PARTNERS) + 1)) % n
    gains = np.zeros(partners.shape)
    begin = time.monotonic()

    def choose(first: int, past: int) -> None:
        # If time runs out, later columns keep arbitrary partners.
        if samples is not None or time.monotonic() <= begin + PARTNER_SHARE * (end - begin):
            best_partners(for_thread(scorer, 1024), first, past, partners, gains)

    share_out(n, choose)
    hot = max(1.0, HOT_SHARE * float(np.median(gains[:, 0])))
    plan = AnnealingPlan(k, most, partners, gains, hot, seed, start)
    if start:
        _warm_run(runs, plan, scorer)
    if samples is not None:
        return runs.run([partial(_counted_run, runs, plan, sample) for sample in range(samples)])
    return runs.run([partial(_timed_runs, runs, plan, lane) for lane in range(runs.threads)])


def _temperature(hot: float, done: float) -> float:
    return float(hot * (COLD / hot) ** done)


def _grown(scorer: FamilyScorer, state: AnnealingState, plan: AnnealingPlan) -> None:
    """Sets the state to a network from `grow`, or to one without arcs."""
    parents, sizes = np.zeros_like(state.parents), np.zeros_like(state.sizes)
    grow(scorer, plan.k, plan.partners, plan.gains, state.random, parents, sizes)
    if restart(scorer, state, parents, sizes, plan.k):
        keep_best(state)
    else:  # the search for an elimination order is a heuristic
        _from_scratch(scorer, state, plan.k)


def _warm_run(runs: Runs, plan: AnnealingPlan, scorer: FamilyScorer) -> None:
    """Improves the network to begin with by a short run from a low temperature."""
    n = len(scorer.states)
    state = make_state(n, plan.most, seeded(plan.seed))
    parents, sizes = np.zeros_like(state.parents), np.zeros_like(state.sizes)
    for child, family in enumerate(plan.start):
        parents[child, : len(family)] = family
        sizes[child] = len(family)
    if restart(scorer, state, parents, sizes, plan.k):
        keep_best(state)
        anneal(scorer, state, plan.k, plan.partners, WARM_MOVES, max(1.0, WARM_SHARE * plan.hot), COLD)
        runs.take_in(found_in(state.best_parents, state.best_sizes, float(state.best_score[0]), state.best_order))


def _from_scratch(scorer: FamilyScorer, state: AnnealingState, k: int) -> None:
    restart(scorer, state, np.zeros_like(state.parents), np.zeros_like(state.sizes), k)
    keep_best(state)


def _counted_run(runs: Runs, plan: AnnealingPlan, sample: int, scorer: FamilyScorer) -> None:
    n = len(scorer.states)
    state = make_state(n, plan.most, seeded(plan.seed, sample))
    steps = min(STEPS_A_COLUMN * n, MOST_STEPS)
    hot = plan.hot
    if steps < FEW_STEPS * n:
        _grown(scorer, state, plan)
        hot = max(1.0, WARM_SHARE * hot)
    else:
        _from_scratch(scorer, state, plan.k)
    slices = max(1, steps // SLICE)
    for at in range(slices):
        if runs.stop.is_set():
            break
        warm, cool = _temperature(hot, at / slices), _temperature(hot, (at + 1) / slices)
        anneal(scorer, state, plan.k, plan.partners, SLICE, warm, cool)
    runs.take_in(found_in(state.best_parents, state.best_sizes, float(state.best_score[0]), state.best_order))


def _timed_runs(runs: Runs, plan: AnnealingPlan, lane: int, scorer: FamilyScorer) -> None:
    """Runs annealing for the remaining time, first from a grown network."""
    n = len(scorer.states)
    state = make_state(n, plan.most, seeded(plan.seed, lane))
    _grown(scorer, state, plan)
    remaining = runs.end - time.monotonic()
    warm = max(1.0, WARM_SHARE * plan.hot)
    moves = _timed_run(runs, plan, scorer, state, SHARES[0] * remaining, warm)
    if moves / SHARES[0] < FEW_STEPS * n:
        _timed_run(runs, plan, scorer, state, runs.end - time.monotonic(), warm)
        return
    for share in SHARES[1:]:
        _from_scratch(scorer, state, plan.k)
        _timed_run(runs, plan, scorer, state, min(share * remaining, runs.end - time.monotonic()), plan.hot)


def _timed_run(
    runs: Runs, plan: AnnealingPlan, scorer: FamilyScorer, state: AnnealingState, seconds: float, hot: float
) -> int:
    begin = now = time.monotonic()
    moves, steps = 0, SLICE // 20
    while now < begin + seconds and not runs.stop.is_set():
        temperature = _temperature(hot, (now - begin) / seconds)
        anneal(scorer, state, plan.k, plan.partners, steps, temperature, temperature)
        moves += steps
        took = time.monotonic() - now
        now += took
        steps = max(10, min(SLICE, int(steps * SLICE_SECONDS / max(took, 1e-6))))
    runs.take_in(found_in(state.best_parents, state.best_sizes, float(state.best_score[0]), state.best_order))
    return moves
