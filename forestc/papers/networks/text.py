"""Prints a Bayesian network as text, and parses the text back to the same network.

    bayesian-network 1
    ess 1.0
    score -5231.25
    bound inf
    optimal no
    order 1 0
    0 states 2 parents: 812 88
    1 states 2 parents 0: 812 -2 88

A variable's counts follow the colon; `-k` stands for k zeros. Zeros at the end are omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from forestc.algorithms.arrays import Ints
from forestc.errors import ModelError
from forestc.papers.networks.bayesian_network import (
    MOST_COUNT,
    BayesianNetwork,
    check_ess,
    check_structure,
    table_shape,
)
from forestc.papers.networks.elimination_order import MOST_WIDTH

VERSION = 1  # identifies the version of the text form
MOST_VARIABLES = 2**16  # variables of a text at most

_FLOAT = r"-?(?:\d[-+.\de]{0,30}|inf)|nan"
_HEADER = {
    "ess": re.compile(rf"ess ({_FLOAT})", re.ASCII),
    "score": re.compile(rf"score ({_FLOAT})", re.ASCII),
    "bound": re.compile(rf"bound ({_FLOAT})", re.ASCII),
    "optimal": re.compile(r"optimal (yes|no)"),
    "order": re.compile(r"order((?: \d{1,5})+)", re.ASCII),
}
_VARIABLE = re.compile(
    rf"(\d{{1,5}}) states (\d{{1,3}}) parents((?: \d{{1,5}}){{0,{MOST_WIDTH}}}):((?: -?[1-9]\d{{0,15}})*)", re.ASCII
)


LINE = "correct the line, or write the network again with `write`"


def printed(network: BayesianNetwork) -> str:
    return "".join(f"{line}\n" for line in _lines(network))


def _lines(network: BayesianNetwork) -> Iterator[str]:
    yield f"bayesian-network {VERSION}"
    yield f"ess {float(network.ess)!r}"
    yield f"score {float(network.score)!r}"
    yield f"bound {float(network.bound)!r}"
    yield f"optimal {'yes' if network.optimal else 'no'}"
    yield " ".join(["order", *map(str, network.order)])
    for i, (r, parents, table) in enumerate(zip(network.states, network.parents, network.tables, strict=True)):
        yield " ".join([f"{i} states {r} parents", *map(str, parents)]) + ":" + _cells(table)


def _cells(table: Ints) -> str:
    words: list[int] = []
    for zero, group in groupby(np.trim_zeros(table.ravel(), "b").tolist(), key=lambda count: count == 0):
        counts = list(group)
        words += [-len(counts)] if zero else counts
    return "".join(f" {word}" for word in words)


def graphviz(network: BayesianNetwork, names: Sequence[str]) -> str:
    """Returns a picture of the network in Graphviz's language. names: of the columns."""
    nodes = ['"' + str(name).replace("\\", "\\\\").replace('"', '\\"') + '"' for name in names]
    arcs = [f"  {nodes[parent]} -> {nodes[i]};" for i, family in enumerate(network.parents) for parent in family]
    return "\n".join(["digraph network {", *(f"  {node};" for node in nodes), *arcs, "}"]) + "\n"


def parsed(text: str) -> BayesianNetwork:
    """Returns the network of a text. Raises ModelError for an invalid text. Untrusted text is safe: sizes are checked
    before memory is allocated."""
    lines = text.splitlines()
    if not lines or lines[0] != f"bayesian-network {VERSION}":
        raise ModelError(
            f"the text does not start with 'bayesian-network {VERSION}'",
            where="line 1",
            do="give the text of a Bayesian network, written by this version of forestc",
        )
    header = {}
    for number, (word, pattern) in enumerate(_HEADER.items(), start=2):
        line = lines[number - 1] if number <= len(lines) else ""
        match = pattern.fullmatch(line)
        if not match:
            raise ModelError(f"expected {word}, found {line[:60]!r}", where=f"line {number}", do=LINE)
        header[word] = match[1]
    floats = {word: _number(header[word], number) for number, word in enumerate(("ess", "score", "bound"), start=2)}
    check_ess(floats["ess"])
    order = tuple(map(int, header["order"].split()))
    first = len(_HEADER) + 2  # the line of variable 0
    if len(order) > MOST_VARIABLES or len(lines) - first + 1 != len(order):
        raise ModelError(
            f"{len(lines) - first + 1} variables instead of the {len(order)} of the order", where="line 6", do=LINE
        )
    states, parents, counts = [], [], []
    for i, line in enumerate(lines[first - 1 :]):
        match = _VARIABLE.fullmatch(line)
        if not match or int(match[1]) != i:
            raise ModelError(f"expected variable {i}, found {line[:60]!r}", where=f"line {first + i}", do=LINE)
        states.append(int(match[2]))
        parents.append(tuple(map(int, match[3].split())))
        counts.append(match[4])
    check_structure(states, parents)
    tables = tuple(_table(counts[i], table_shape(states, parents, i), f"line {first + i}") for i in range(len(states)))
    return BayesianNetwork(
        tuple(states),
        tuple(parents),
        tables,
        ess=floats["ess"],
        score=floats["score"],
        bound=floats["bound"],
        optimal=header["optimal"] == "yes",
        order=order,
    )


def _number(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{text!r} is not a number", where=f"line {line}", do=LINE) from None


def _table(text: str, shape: Sequence[int], where: str) -> Ints:
    table = np.zeros(shape, dtype=np.int64)
    cells, at = table.reshape(-1), 0
    for word in map(int, text.split()):
        if at + max(-word, 1) > len(cells):
            raise ModelError(f"more counts than the {len(cells)} cells of the table", where=where, do=LINE)
        if word > MOST_COUNT:
            raise ModelError(f"the count {word} is above 2^53", where=where, do=LINE)
        if word > 0:
            cells[at] = word
        at += max(-word, 1)
    return table
