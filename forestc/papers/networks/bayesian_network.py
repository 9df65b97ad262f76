"""Bayesian networks over columns of few states, stored as counts.

Probabilities are posterior means under the BDeu prior (Buntine 1991, Heckerman et al. 1995), so none is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, nan, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bytes, Floats, Int32s, Ints
from forestc.errors import ModelError, OptionError, RowsError
from forestc.papers.networks.elimination_order import min_fill_order, moral_graph, separators

MOST_STATES = 256  # states of a variable at most, as rows hold states in uint8
MOST_CELLS = 2**22  # cells of all tables together at most
MOST_COUNT = 2**53  # limits counts: float64 holds them exactly up to here
_BATCH = 8192  # rows that `log_likelihood` takes at a time


@dataclass(frozen=True, eq=False)
class BayesianNetwork:
    """A Bayesian network: its structure and its counts. Raises ModelError for an invalid structure, counts or order."""

    states: tuple[int, ...]  # number of states of each variable
    parents: tuple[tuple[int, ...], ...]  # parents of each variable, ascending
    tables: tuple[Ints, ...] = field(repr=False)  # counts, (product of the parents' states, states)
    ess: float = 1.0  # equivalent sample size of the prior
    score: float = nan  # BDeu score of the structure on the rows
    bound: float = inf  # upper bound on the score of any network within the search's limits
    optimal: bool = False  # True if the score is proved to be the best
    order: tuple[int, ...] = ()  # elimination order; `min_fill_order` replaces an empty one

    def __post_init__(self) -> None:
        check_ess(self.ess)
        object.__setattr__(self, "states", tuple(map(int, self.states)))
        object.__setattr__(self, "parents", tuple(tuple(map(int, family)) for family in self.parents))
        object.__setattr__(self, "order", tuple(map(int, self.order)))
        check_structure(self.states, self.parents)
        if len(self.tables) != len(self.states):
            raise ModelError(
                f"{len(self.tables)} for {len(self.states)} variables",
                where="tables",
                do="give one table for each variable",
            )
        tables = tuple(self._checked(i) for i in range(len(self.states)))
        object.__setattr__(self, "tables", tables)
        if not self.order:
            object.__setattr__(self, "order", min_fill_order(moral_graph(self.parents)))
        if sorted(self.order) != list(range(len(self.states))):
            raise ModelError(
                "it does not name every variable once",
                where="order",
                do="leave it empty to have an elimination order found",
            )
        _ = self.separators

    def _checked(self, i: int) -> Ints:
        table = np.array(self.tables[i])
        shape = table_shape(self.states, self.parents, i)
        if table.shape != shape:
            raise ModelError(
                f"the table has shape {table.shape} instead of {shape}",
                where=f"variable {i}",
                do="give a table of the states of the parents, then of the variable",
            )
        if table.dtype.kind not in "iu" or table.min() < 0 or table.max() > MOST_COUNT:
            raise ModelError(
                "the table has cells that are not counts (0 to 2^53)",
                where=f"variable {i}",
                do="give whole numbers from 0 to 2^53",
            )
        table = table.astype(np.int64)
        table.setflags(write=False)
        return table

    @cached_property
    def separators(self) -> tuple[tuple[int, ...], ...]:
        """For each position of the order, the later positions joined with it when its variable is eliminated."""
        return separators(moral_graph(self.parents), self.order)

    @property
    def treewidth(self) -> int:
        """Width of the order, an upper bound on the treewidth of the moral graph."""
        return max(map(len, self.separators))

    def probabilities(self, i: int) -> Floats:
        """Returns P(x[i] | parents), (configurations of the parents, states): (count + ess / (q r)) / (row total + ess
        / q) for shape (q, r)."""
        table = self.tables[i]
        q, r = table.shape
        shares: Floats = (table + self.ess / (q * r)) / (table.sum(axis=1, keepdims=True) + self.ess / q)
        return shares

    def log_likelihood(self, rows: NDArray[Any]) -> Floats:
        """Returns the natural logarithm of the probability of each row, (rows,). Raises RowsError for rows that are not
        states."""
        rows = checked_rows(rows, self.states)
        logs = [np.log(self.probabilities(i)).ravel() for i in range(len(self.states))]
        total = np.zeros(len(rows))
        for first in range(0, len(rows), _BATCH):
            columns = np.ascontiguousarray(rows[first : first + _BATCH].T)
            for i, table in enumerate(logs):
                total[first : first + _BATCH] += table[_cells(columns, self.states, self.parents[i], i)]
        return total

    def with_least_count(self, m: int) -> BayesianNetwork:
        """Returns the network with counts below m replaced by 0. This is no promise of privacy: other tables may reveal
        a hidden count."""
        if m < 0:
            raise OptionError(f"{m} is negative", where="least_count", do="use 0 to keep all counts")
        return replace(self, tables=tuple(np.where(table < m, 0, table) for table in self.tables))


def conditional(network: BayesianNetwork, rows: NDArray[Any], column: int) -> Floats:
    """Returns (rows, states) the probabilities of a column's states given all other columns of a row."""
    changed, logs = rows.copy(), []
    for state in range(network.states[column]):
        changed[:, column] = state
        logs.append(network.log_likelihood(changed))
    shares = np.exp(np.stack(logs, axis=1) - np.max(logs, axis=0)[:, None])
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def counted(
    bits: Bytes,
    parents: Sequence[Sequence[int]],
    states: Sequence[int],
    ess: float = 1.0,
    order: Sequence[int] = (),
) -> BayesianNetwork:
    """Returns the network of a given structure with the counts of rows, (rows, variables). Raises RowsError for invalid
    rows, ModelError for an invalid structure."""
    sizes, structure = tuple(map(int, states)), tuple(tuple(sorted(map(int, family))) for family in parents)
    check_structure(sizes, structure)
    columns = np.ascontiguousarray(checked_rows(bits, sizes).T)
    tables = []
    for i in range(len(sizes)):
        shape = table_shape(sizes, structure, i)
        cells = _cells(columns, sizes, structure[i], i)
        tables.append(np.bincount(cells, minlength=prod(shape)).astype(np.int64).reshape(shape))
    return BayesianNetwork(sizes, structure, tuple(tables), ess, order=tuple(map(int, order)))


def _cells(columns: Bytes, states: Sequence[int], parents: Sequence[int], i: int) -> Int32s:
    """Returns the index of each row's cell in variable i's table."""
    cell = np.zeros(columns.shape[1], dtype=np.int32)
    for variable in (*parents, i):
        cell *= states[variable]
        cell += columns[variable]
    return cell


def table_shape(states: Sequence[int], parents: Sequence[Sequence[int]], i: int) -> tuple[int, int]:
    """Returns the shape of variable i's table: (configurations of the parents, states)."""
    return prod(states[parent] for parent in parents[i]), states[i]


def checked_rows(rows: NDArray[Any], states: Sequence[int]) -> Bytes:
    """Returns the rows as uint8. Raises RowsError if they are not states of the variables."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != len(states):
        raise RowsError(
            f"they have shape {rows.shape}, and the network has {len(states)} variables",
            where="rows",
            do="give an array (rows, variables) of states",
        )
    if rows.dtype.kind not in "biuf" or (rows.dtype.kind == "f" and (rows != np.floor(rows)).any()):
        raise RowsError(f"states of type {rows.dtype} are no whole numbers", where="rows", do="number the states")
    if len(rows):
        wrong = np.flatnonzero((rows.max(axis=0) >= np.array(states)) | (rows.min(axis=0) < 0))
        if len(wrong):
            i = int(wrong[0])
            row = int(np.flatnonzero((rows[:, i] >= states[i]) | (rows[:, i] < 0))[0])
            raise RowsError(
                f"state {rows[row, i]:.0f} of {states[i]}",
                where=f"row {row}, variable {i}",
                do="give states from 0 on, below the variable's number",
            )
    return rows.astype(np.uint8, copy=False)


def check_ess(ess: float) -> None:
    """Raises ModelError unless the equivalent sample size is from 1e-30 to 1e30."""
    if not (isfinite(ess) and 1e-30 <= ess <= 1e30):  # so that no quotient of it underflows
        raise ModelError(f"{ess} is not a positive number", where="ess", do="use 1")


def check_structure(states: Sequence[int], parents: Sequence[Sequence[int]]) -> None:
    """Raises ModelError unless the parents ascend and make an acyclic network of at most `MOST_CELLS` table cells."""
    if not states:
        raise ModelError(
            "a network needs at least one variable", where="states", do="give the number of states of each variable"
        )
    if len(parents) != len(states):
        raise ModelError(
            f"{len(parents)} for {len(states)} variables",
            where="parents",
            do="give the parents of each variable",
        )
    for i, r in enumerate(states):
        if not 1 <= r <= MOST_STATES:
            raise ModelError(
                f"{r} states, possible are 1 to {MOST_STATES}",
                where=f"variable {i}",
                do=f"give 1 to {MOST_STATES} states",
            )
    total = 0
    for i, family in enumerate(parents):
        if list(family) != sorted(set(family)):
            raise ModelError(
                f"parents {list(family)} are not increasing", where=f"variable {i}", do="sort them, each once"
            )
        if i in family or (family and not 0 <= family[0] <= family[-1] < len(states)):
            raise ModelError(
                f"parents {list(family)} are not other variables of the network",
                where=f"variable {i}",
                do="give the indices of other variables",
            )
        total += prod(table_shape(states, parents, i))
        if total > MOST_CELLS:
            raise ModelError(
                f"the tables have more than {MOST_CELLS} cells", where=f"variable {i}", do="allow fewer parents"
            )
    _check_acyclic(parents)


def _check_acyclic(parents: Sequence[Sequence[int]]) -> None:
    waiting = [len(family) for family in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, family in enumerate(parents):
        for parent in family:
            children[parent].append(child)
    ready = [i for i, count in enumerate(waiting) if not count]
    for i in ready:
        for child in children[i]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if len(ready) < len(parents):
        cycle = [next(i for i, count in enumerate(waiting) if count)]
        while cycle.count(cycle[-1]) < 2:  # every variable left has a parent that is left
            cycle.append(next(parent for parent in parents[cycle[-1]] if waiting[parent]))
        cycle = cycle[cycle.index(cycle[-1]) :][::-1]
        raise ModelError(
            f"the parents make a cycle: {' -> '.join(map(str, cycle[:20]))}",
            where=f"variable {cycle[0]}",
            do="remove one of these parents",
        )
