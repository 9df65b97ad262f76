"""Runs searches for networks in all threads and keeps the best result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import NamedTuple

from forestc.algorithms.arrays import Ints
from forestc.algorithms.networks.family_scores import FamilyScorer, for_thread
from forestc.system.compiled import threads


class ScoredNetwork(NamedTuple):
    """A network's structure and score. score: BDeu, natural log. parents: of each column, ascending. order: an
    elimination order of the moral graph within the treewidth."""

    score: float
    parents: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]


class NetworkProof(NamedTuple):
    """Result of `prove`. found: the best network. bound: no network of the treewidth scores more. nodes: searched."""

    found: ScoredNetwork
    bound: float
    nodes: int


def found_in(parents: Ints, sizes: Ints, score: float, order: Ints) -> ScoredNetwork:
    """Returns a network from arrays. parents: (n, most); in row i, the first sizes[i] entries count."""
    rows = zip(parents.tolist(), sizes.tolist(), strict=True)
    return ScoredNetwork(score, tuple(tuple(sorted(row[:size])) for row, size in rows), tuple(order.tolist()))


class Runs:
    """State that the runs of a search share: the rows, the time to stop, and the best network so far. end: a time of
    time.monotonic(). better: called with each better network."""

    def __init__(self, scorer: FamilyScorer, end: float, better: Callable[[ScoredNetwork], None] | None) -> None:
        self.end = end
        self.stop = Event()
        self.best = ScoredNetwork(-math.inf, (), ())
        self.threads = max(1, threads())
        self._spare = [scorer, *(for_thread(scorer) for _ in range(self.threads - 1))]
        self._better = better
        self._lock = Lock()

    def take_in(self, network: ScoredNetwork) -> None:
        """Keeps a network if it is better. Which of several equal ones it keeps does not depend on the order of
        runs."""
        with self._lock:
            if network > self.best:
                risen = network.score > self.best.score
                self.best = network
                if risen and self._better is not None:
                    self._better(network)

    def run(self, jobs: Sequence[Callable[[FamilyScorer], None]]) -> ScoredNetwork:
        """Runs jobs in threads, each with a scorer of its own, and returns the best network. Ctrl-C ends them early."""

        def with_scorer(job: Callable[[FamilyScorer], None]) -> None:
            scorer = self._spare.pop()
            try:
                if not self.stop.is_set():
                    job(scorer)
            finally:
                self._spare.append(scorer)

        with ThreadPoolExecutor(self.threads) as pool:
            waiting = [pool.submit(with_scorer, job) for job in jobs]
            try:
                for future in waiting:
                    future.result()
            except KeyboardInterrupt:  # the best so far is an answer, too
                self.stop.set()
        return self.best
