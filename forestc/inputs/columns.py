"""Describes a column of an input model and the network's variables for it.

For numbers, some cuts (the anchors) divide values into spans. The first variable holds a value's span or "missing";
each other cut has a binary variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestc.forest.numbers import Category, Float, FloatArray, NumberType, round_to, to_words
from forestc.rows.ranges import at_least, next_below

Literals = dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class InputColumn:
    """A column of an input model. `name`, `column`, `named` and `raw` mean the same as in `Feature`."""

    name: str
    column: int
    named: bool
    raw: NumberType
    category: Category | None = None  # number type of a category; None for numbers
    cuts: tuple[float, ...] = ()  # cuts of a number in raw units, ascending
    anchors: tuple[int, ...] = ()  # indices of the cuts at which spans end
    least: float = 0.0  # smallest finite value in the rows; 0 if none
    largest: float = 0.0  # largest finite value in the rows; 0 if none
    whole: bool = False  # True if all finite values were whole numbers
    missing: int | None = None  # number of missing values; None if there were none
    codes: tuple[int, ...] = ()  # number of rows with each code, then with any other code
    groups: tuple[tuple[int, ...], ...] = ()  # codes of each state of a category's variable
    labels: tuple[str, ...] = ()  # texts of a category's codes, if the model has texts

    @property
    def spans(self) -> int:
        """The number of states of the first variable, not counting the state for missing values."""
        return len(self.groups) if self.category else len(self.anchors) + 1

    @property
    def states(self) -> tuple[int, ...]:
        """The number of states of each variable; empty if the column has a single state."""
        first = self.spans + (self.missing is not None)
        return (first, *[2] * len(self.fine)) if first > 1 else ()

    @cached_property
    def fine(self) -> tuple[int, ...]:
        """The indices of the cuts that have a binary variable."""
        return tuple(sorted(set(range(len(self.cuts))) - set(self.anchors)))

    @property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The indices of each binary variable's parents: the first variable and, if it is in the same span, the
        variable of the cut before."""
        before = [0, *self.fine]
        return tuple((0, i) if i and cut == before[i] + 1 else (0,) for i, cut in enumerate(self.fine))

    def encoded(self, values: FloatArray) -> NDArray[np.uint8]:
        """Returns the states (rows, variables) of values (rows,)."""
        if not self.states:
            return np.zeros((len(values), 0), dtype=np.uint8)
        states = np.zeros((len(values), len(self.states)), dtype=np.uint8)
        absent = np.isnan(values)
        if self.category:
            group = np.zeros(self.category.count + 1, dtype=np.uint8)
            for state, codes in enumerate(self.groups):
                group[list(codes)] = state
            states[:, 0] = group[to_words(np.where(absent, 0, values), self.category, False)]
        else:
            cell = self.cell(values)
            states[:, 0] = np.searchsorted(np.array(self.anchors), cell, side="left")
            states[:, 1:] = cell[:, None] <= np.array(self.fine, dtype=np.int64)[None, :]
        states[absent] = 0
        states[absent, 0] = self.states[0] - 1
        return states

    def cell(self, values: FloatArray) -> NDArray[np.int64]:
        """Returns for each value the number of cuts that are <= the value. No value may be missing."""
        return np.searchsorted(np.array(self.cuts), round_to(values, self.raw), side="right")

    def decoded(self, states: NDArray[np.uint8], random: np.random.Generator) -> FloatArray:
        """Returns a random value for each row of states: NaN for missing, a code for a category, a uniform number
        between neighboring cuts for a number."""
        if not self.states:
            return self._somewhere(np.zeros(len(states), dtype=np.int64), random)
        first = states[:, 0].astype(np.int64)
        absent = first >= self.spans
        first = np.where(absent, 0, first)
        if self.category:
            values = self._category(first, random)
        else:
            values = self._somewhere(self._cells(first, states), random)
        return np.where(absent, np.nan, values)

    def contradicted(self, states: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns for each row of drawn states the number of binary variables that contradict the decoded value."""
        if self.category or not self.states:
            return np.zeros(len(states), dtype=np.int64)
        absent = states[:, 0] >= self.spans
        cell = self._cells(np.where(absent, 0, states[:, 0]).astype(np.int64), states)
        expected = (cell[:, None] <= np.array(self.fine, dtype=np.int64)[None, :]) & ~absent[:, None]
        wrong: NDArray[np.int64] = (expected != states[:, 1:]).sum(axis=1)
        return wrong

    def literals(self, low: float, high: float) -> Literals:
        """Returns {variable: its possible states} for low <= x < high, as exactly as the cuts allow; variables without
        entry are free. For a category, x is the code."""
        if not self.states:
            return {}
        if self.category:
            fitting = tuple(s for s, codes in enumerate(self.groups) if any(low <= code < high for code in codes))
            return {0: fitting} if fitting else {}
        cuts = np.array(self.cuts)
        under, over = int(np.searchsorted(cuts, low, "right")) - 1, int(np.searchsorted(cuts, high, "left"))
        first, last = (int(np.searchsorted(np.array(self.anchors), cell)) for cell in (under + 1, over))
        literals: Literals = {0: tuple(range(first, last + 1))}
        position = {cut: i + 1 for i, cut in enumerate(self.fine)}
        if under in position:
            literals[position[under]] = (0,)
        if over in position:
            literals[position[over]] = (1,)
        return literals

    def absent_literals(self) -> Literals:
        """Returns {variable: states possible for a missing value}; an empty dictionary if no training row missed this
        column."""
        return {} if self.missing is None else {0: (self.spans,)}

    def uniform(self, low: float, high: float, random: np.random.Generator) -> float:
        """Returns a random finite value low <= x < high, if there is one, and within the range of the rows if the two
        overlap."""
        a, b = (float(end) for end in self._ends(np.array([low]), np.array([high]))[:, 0])
        return float(self._between(np.array([a]), np.array([b]), random)[0])

    def _cells(self, first: NDArray[np.int64], states: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns (rows,): the interval between neighboring cuts that a row's states stand for, as the index of its
        upper cut."""
        ends = np.array([*self.anchors, len(self.cuts)])
        fine = np.array(self.fine, dtype=np.int64)
        span = np.searchsorted(np.array(self.anchors), fine)
        below = np.zeros((len(states), len(fine) + 1), dtype=bool)
        below[:, :-1] = (states[:, 1:] == 1) & (span == first[:, None])
        below[:, -1] = True
        position = below.argmax(axis=1)
        return np.where(position < len(fine), np.append(fine, 0)[position], ends[first])

    def _category(self, first: NDArray[np.int64], random: np.random.Generator) -> FloatArray:
        values = np.zeros(len(first))
        for state, codes in enumerate(self.groups):
            here = np.flatnonzero(first == state)
            weight = np.array([self.codes[code] for code in codes], dtype=np.float64)
            share = weight / weight.sum() if weight.any() else None
            values[here] = random.choice(np.array(codes), len(here), p=share)
        return values

    def _somewhere(self, cell: NDArray[np.int64], random: np.random.Generator) -> FloatArray:
        if self.category:
            return self._category(cell, random)
        low, high = self._cell_ends
        return self._between(low[cell], high[cell], random)

    @cached_property
    def _cell_ends(self) -> NDArray[np.float64]:
        edges = np.array([-np.inf, *self.cuts, np.inf])
        return self._ends(edges[:-1], edges[1:])

    def _ends(self, low: FloatArray, high: FloatArray) -> NDArray[np.float64]:
        """Returns (2, n): the least and the largest value that rows may hold in [low, high)."""
        most = float(np.finfo(np.float32 if self.raw == Float(32) else np.float64).max)
        a, b = np.clip(at_least(low, self.raw), -most, most), np.clip(next_below(high, self.raw), -most, most)
        if self.whole:
            up, down = np.ceil(a), np.floor(b)
            a, b = np.where(up <= down, up, a), np.where(up <= down, down, b)
        inside = (a <= self.largest) & (b >= self.least)
        near = np.where(b < self.least, b, a)
        return np.stack(
            [np.where(inside, np.maximum(a, self.least), near), np.where(inside, np.minimum(b, self.largest), near)]
        )

    def _between(self, low: FloatArray, high: FloatArray, random: np.random.Generator) -> FloatArray:
        share = random.random(len(low))
        if self.whole:
            steps = np.floor(share * (high / 2 - low / 2 + 0.5) * 2)
            return np.where(low == np.floor(low), np.clip(round_to(low + steps, self.raw), low, high), low)
        return np.clip(round_to(low + (share * high - share * low), self.raw), low, high)
