"""Holds the methods of Nie, Maua, de Campos and Ji (2014) that forestc does not use: both versions of their Algorithm
1, which samples k-trees, and their program (6)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from papers.bounded_treewidth.k_tree_sampling import LARGEST_EXACT, sample
from papers.bounded_treewidth.program import MOST_COLUMNS, solve

from forestc.errors import OptionError
from forestc.papers.networks.bayesian_network import BayesianNetwork
from forestc.papers.networks.bounded_treewidth import NetworkSearch, checked, network_of
from forestc.papers.networks.family_scores import make_scorer
from forestc.papers.networks.search import search

SEARCH_SHARE = 0.2  # share of the time limit for the search, before the program is solved
Method = Literal["version-1", "version-2", "program"]


def learn_by(
    method: Method, bits: NDArray[Any], options: NetworkSearch, states: Sequence[int] | None = None
) -> BayesianNetwork:
    """Learns a network by a method of the paper. The other arguments are those of `bounded_treewidth.learn`. Raises
    OptionError for version-1 above treewidth LARGEST_EXACT, and for the program with more than MOST_COLUMNS columns."""
    cells, sizes = checked(bits, states)
    n = len(sizes)
    k = min(options.treewidth, n - 1)
    most, ess, samples, seed = min(options.max_parents, k), options.ess, options.samples, options.seed
    if method == "program" and n > MOST_COLUMNS:
        raise OptionError(f"the program for {n} columns", where=f"at most {MOST_COLUMNS}", do="choose fewer columns")
    if method == "version-1" and k > LARGEST_EXACT:
        raise OptionError(f"version-1 for treewidth {k}", where=f"at most {LARGEST_EXACT}", do="use version-2")
    scorer = make_scorer(cells, sizes, most + 1, ess)
    begin = time.monotonic()
    if method != "program":
        version = 1 if method == "version-1" else 2
        network = sample(scorer, k, most, version, end=begin + options.time_limit, samples=samples, seed=seed)
        return network_of(network, cells, sizes, ess, math.inf)
    start = search(scorer, k, most, end=begin + SEARCH_SHARE * options.time_limit, samples=samples, seed=seed)
    proof = solve(scorer, k, most, start, end=begin + options.time_limit, seed=seed)
    return network_of(proof.found, cells, sizes, ess, proof.bound)


def compile_methods() -> None:
    """Compiles the functions of Algorithm 1 on a few rows, before anything is timed."""
    cells = np.array([[0, 0, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0]], np.uint8)
    for version in (1, 2):
        sample(make_scorer(cells, np.full(4, 2), 2, 1.0), 1, 1, version, end=math.inf, samples=1)
