"""Runs searches for networks in several threads and keeps the best result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import NamedTuple

from forestc.algorithms.arrays import Ints
from forestc.papers.networks.family_scores import FamilyScorer, for_thread
from forestc.system.compiled import threads


class ScoredNetwork(NamedTuple):
    """A network's structure and BDeu score."""

    score: float  # BDeu score, a natural logarithm
    parents: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]  # elimination order of the moral graph


class NetworkProof(NamedTuple):
    """The best network found, with a bound on all networks."""

    found: ScoredNetwork
    bound: float  # upper bound on the score of any network within the limits
    nodes: int  # number of branches solved


def found_in(parents: Ints, sizes: Ints, score: float, order: Ints) -> ScoredNetwork:
    rows = zip(parents.tolist(), sizes.tolist(), strict=True)
    return ScoredNetwork(score, tuple(tuple(sorted(row[:size])) for row, size in rows), tuple(order.tolist()))


class Runs:
    """State shared by the runs of a search; `end` is a time of time.monotonic(), and Ctrl-C sets `stop`."""

    def __init__(
        self,
        scorer: FamilyScorer,
        end: float,
        better: Callable[[ScoredNetwork], None] | None,
        stop: Event | None = None,
    ) -> None:
        self.end = end
        self.stop = stop or Event()
        self.best = ScoredNetwork(-math.inf, (), ())
        self.threads = max(1, threads())
        self._spare = [scorer, *(for_thread(scorer) for _ in range(self.threads - 1))]
        self._better = better
        self._lock = Lock()

    def take_in(self, network: ScoredNetwork) -> None:
        """Records a network if it is better than the best so far. Ties are broken by structure, so that results are
        repeatable."""
        with self._lock:
            if network > self.best:
                risen = network.score > self.best.score
                self.best = network
                if risen and self._better is not None:
                    self._better(network)

    def run(self, jobs: Sequence[Callable[[FamilyScorer], None]]) -> ScoredNetwork:
        """Runs jobs in threads and returns the best network. Ctrl-C ends the jobs early."""

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
            except BaseException:
                self.stop.set()
                raise
        return self.best
