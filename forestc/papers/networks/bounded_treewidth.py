"""Learns Bayesian networks of bounded treewidth with a high BDeu score from rows (Nie, Maua, de Campos and Ji, Advances
in Learning Bayesian Networks of Bounded Treewidth, 2014)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from threading import Event
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Bytes, Ints
from forestc.algorithms.covers.column_generation import Progress, SearchState
from forestc.errors import OptionError, RowsError
from forestc.papers.networks.bayesian_network import MOST_STATES, BayesianNetwork, counted
from forestc.papers.networks.exact import MOST_VARIABLES, Outlook, prove
from forestc.papers.networks.family_scores import FamilyScorer, family_score, make_scorer
from forestc.papers.networks.runs import NetworkProof, ScoredNetwork
from forestc.papers.networks.search import search

Method = Literal["auto", "search", "exact"]

MOST_COLUMNS = 8192  # columns of a table of rows at most
SEARCH_SHARE = 0.2  # share of the time limit reserved for search around a proof
PROBE = 0.05  # share of the time limit before "auto" may give up a proof
PROOF_SHARE = 0.5  # share of the time limit after which "auto" gives up any proof
FIRST_SEARCH = 0.3  # seconds of search before a proof at most
PROOF_WORK = 3e10  # steps of a proof without a time limit; see `prove`


@dataclass(frozen=True, kw_only=True)
class NetworkSearch:
    """Limits of a network, and options of the search for it. Raises OptionError for a value out of range."""

    treewidth: int
    max_parents: int = 3
    ess: float = 1.0  # equivalent sample size of the BDeu score
    method: Method = "auto"  # "exact" tries to prove the optimum; "auto" gives up hopeless proofs
    time_limit: float = 60.0  # seconds
    samples: int | None = None  # number of runs of the search, instead of a time
    seed: int = 0

    def __post_init__(self) -> None:
        if self.treewidth < 1:
            raise OptionError(f"{self.treewidth}", where="treewidth", do="allow at least 1")
        if self.max_parents < 0:
            raise OptionError(f"{self.max_parents}", where="max_parents", do="allow at least 0")
        if not (self.ess > 0 and math.isfinite(self.ess)):
            raise OptionError(f"{self.ess}", where="ess", do="use an equivalent sample size above 0")
        if self.method not in get_args(Method):
            raise OptionError(f"{self.method!r} is unknown", where="method", do="use auto, search or exact")
        if not self.time_limit > 0:
            raise OptionError(f"{self.time_limit}", where="time_limit", do="use seconds above 0")
        if self.samples is None and math.isinf(self.time_limit):
            raise OptionError("neither is given", where="time_limit and samples", do="give one of the limits")
        if self.samples is not None and self.samples < 1:
            raise OptionError(f"{self.samples}", where="samples", do="use at least 1")


def learn(
    bits: NDArray[np.integer] | Bits,
    options: NetworkSearch,
    *,
    states: Sequence[int] | None = None,
    start: Sequence[Sequence[int]] = (),
    progress: Progress | None = None,
) -> BayesianNetwork:
    """Returns the network of highest BDeu score found for bits, (rows, columns) states from 0 on. Ctrl-C ends the
    search early.

    states: number of states of each column; by default its largest state plus one.
    start: parents of each column in a first network, ignored beyond the limits.

    Raises RowsError for invalid rows, OptionError for impossible options.
    """
    cells, sizes = checked(bits, states)
    n = cells.shape[1]
    k, most = min(options.treewidth, n - 1), min(options.max_parents, options.treewidth, n - 1)
    if most * math.log2(n + 1) + math.log2(n + 1) > 63:  # the key of a set has 64 bits
        raise OptionError(f"{options.max_parents} for {n:,} columns", where="max_parents", do="allow fewer")
    if n > MOST_VARIABLES:  # nothing can be proved
        if options.method == "exact":
            raise OptionError(
                f"exact for {n} columns", where="method", do=f"use search, or at most {MOST_VARIABLES} columns"
            )
        options = replace(options, method="search")
    _compile(options.method)
    begin = time.monotonic()

    def tell(network: ScoredNetwork, bound: float = math.inf) -> None:
        if progress is not None:
            proved = f", at most {bound:,.2f}" if math.isfinite(bound) else ""
            text = f"score {network.score:,.2f}{proved} after {time.monotonic() - begin:.0f} s"
            progress(SearchState(text, network.score, bound if proved else None))

    scorer = make_scorer(cells, sizes, most + 1, options.ess)
    fits = len(start) == n and all(len(family) <= most for family in start)
    solved = _solved(scorer, k, most, options, begin + options.time_limit, tell, start if fits else ())
    return network_of(solved.found, cells, sizes, options.ess, solved.bound)


@cache
def _compile(method: Method) -> None:
    """Compiles the functions in advance, so that compiling does not count against the time limit."""
    cells = np.array([[0, 0, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0]], np.uint8)
    scorer = make_scorer(cells, np.full(4, 2), 2, 1.0)
    quick = NetworkSearch(treewidth=1, method=method, samples=1)
    _solved(scorer, 1, 1, quick, time.monotonic() + 0.01, lambda _network, _bound: None)


def _solved(
    scorer: FamilyScorer,
    k: int,
    most: int,
    options: NetworkSearch,
    end: float,
    tell: Callable[[ScoredNetwork, float], None],
    begin_with: Sequence[Sequence[int]] = (),
) -> NetworkProof:
    """Returns the best network found, with an upper bound on all scores, possibly infinite."""
    n, method, samples, seed = len(scorer.states), options.method, options.samples, options.seed

    def better(network: ScoredNetwork) -> None:
        tell(network, math.inf)

    if most == 0 or n == 1:
        room = np.zeros(1, np.int64)
        score = sum(float(family_score(scorer, child, room, 0)) for child in range(n))
        return NetworkProof(ScoredNetwork(score, ((),) * n, tuple(range(n))), score, 0)
    start = time.monotonic()
    first = end - start
    if method != "search":
        first = min(SEARCH_SHARE * first, FIRST_SEARCH)
    stop = Event()
    network = search(
        scorer, k, most, end=start + first, samples=samples, seed=seed, better=better, stop=stop, start=begin_with
    )
    if method == "search" or stop.is_set():
        return NetworkProof(network, math.inf, 0)
    last = SEARCH_SHARE * (end - start) if samples is None else 0.0  # seconds for another search
    most_work = math.inf if math.isfinite(end) else PROOF_WORK
    until, outlook = end - last, None
    if method == "auto" and samples is None:
        until = start + PROOF_SHARE * (end - start)
        outlook = Outlook(start + PROBE * (end - start), until)
    proof = prove(scorer, k, most, network, end=until, better=tell, outlook=outlook, most_work=most_work)
    if proof.found.score < proof.bound and time.monotonic() < end and samples is None:
        again = search(scorer, k, most, end=end, seed=seed + 1, better=better)
        return proof._replace(found=max(proof.found, again))
    return proof


def network_of(best: ScoredNetwork, cells: Bytes, sizes: Ints, ess: float, bound: float) -> BayesianNetwork:
    """Returns the network with the counts of the rows, its score and the bound."""
    network = counted(cells, best.parents, sizes.tolist(), ess, best.order)
    optimal = best.score >= bound - 1e-9 * max(1.0, abs(bound))
    return replace(network, score=best.score, bound=bound, optimal=optimal)


def checked(bits: NDArray[np.integer] | Bits, states: Sequence[int] | None) -> tuple[Bytes, Ints]:
    """Returns the rows as bytes and the number of states of each column. Raises RowsError for invalid rows, OptionError
    for invalid numbers of states."""
    table = np.asarray(bits)
    if table.ndim != 2 or not table.size:
        raise RowsError(f"it has shape {table.shape}", where="table", do="pass rows x columns")
    if table.dtype.kind == "f" and np.isnan(table).any():
        column = int(np.flatnonzero(np.isnan(table).any(axis=0))[0])
        raise RowsError("a value is missing", where=f"column {column}", do="give missing values a state of their own")
    if table.dtype.kind not in "biuf" or (table.dtype.kind == "f" and (table != np.floor(table)).any()):
        raise RowsError(f"values of type {table.dtype} are no whole numbers", where="table", do="number the states")
    if table.min() < 0 or table.max() >= MOST_STATES:
        raise RowsError(
            f"values from {table.min()} to {table.max()} are no states from 0 to {MOST_STATES - 1}",
            where="table",
            do="number the states from 0, or bin the column",
        )
    if table.shape[1] > MOST_COLUMNS:
        raise RowsError(
            f"it has {table.shape[1]:,} columns", where="table", do=f"choose at most {MOST_COLUMNS:,} columns"
        )
    cells = np.ascontiguousarray(table, dtype=np.uint8)
    seen = np.maximum(2, cells.max(axis=0).astype(np.int64) + 1)
    if states is None:
        return cells, seen
    sizes = np.asarray(states, dtype=np.int64)
    if sizes.shape != seen.shape:
        raise OptionError(
            f"{sizes.size} numbers for {len(seen)} columns", where="states", do="give one for each column"
        )
    wrong = (sizes > MOST_STATES) | (sizes <= cells.max(axis=0))
    for column in np.flatnonzero(wrong).tolist():
        raise OptionError(
            f"{sizes[column]} states, and the column shows {int(cells[:, column].max())}",
            where=f"column {column}",
            do="allow more",
        )
    return cells, sizes
