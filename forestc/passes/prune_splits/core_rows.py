"""Holds the rows whose decisions prune-splits must keep: it works on a core, which wrongly decided rows join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.splits.kept_decisions import Decided, slacks
from forestc.algorithms.splits.leaf_fitting import integer_scores
from forestc.algorithms.splits.mending_trees import MendingTree, added_by
from forestc.algorithms.splits.pruning import Pruned
from forestc.algorithms.splits.reached_leaves import leaves_on
from forestc.algorithms.splits.state import Outcomes, Shape
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.batches import Rows
from forestc.rows.encode import encode

Codes: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.int64]

# bytes of coded rows kept in memory; if there are more, each look at all rows reads and codes them again
MOST_CODES = 1 << 30
# A look at all rows ends after max(LEAST_ADDED, rows of the core // SHARE_ADDED) wrongly decided rows.
LEAST_ADDED, SHARE_ADDED = 256, 4


@dataclass(frozen=True)
class CodedRows:
    """All rows, coded in batches. forest: its decisions are kept. coded: turns encoded words into conditions' codes."""

    forest: Forest
    rows: Rows
    coded: Callable[[NDArray[Any]], Outcomes]

    def batches(self) -> Iterable[tuple[Codes, Labels]]:
        """Returns the codes and the forest's decisions of all rows, batch by batch."""
        return self._read() if self._in_memory is None else self._in_memory

    @cached_property
    def _in_memory(self) -> list[tuple[Codes, Labels]] | None:
        """All coded rows; None if they take too much memory."""
        parts, size = [], 0
        for code, label in self._read():
            size += code.nbytes + label.nbytes
            if size > MOST_CODES:
                return None
            parts.append((code, label))
        return parts

    def _read(self) -> Iterator[tuple[Codes, Labels]]:
        for batch in self.rows.batches():
            words = encode(self.forest, batch.X)
            yield self.coded(words).code, evaluate_quickly(self.forest, words).index


@dataclass
class CoreRows:
    """The core: rows on which prune-splits keeps decisions. It grows in place. outcomes: of all conditions on the core.
    label: (rows,) the forest's decisions. all_rows: the rows from which more join the core; None if it holds all."""

    outcomes: Outcomes
    label: Labels
    all_rows: CodedRows | None

    def violated(self, shape: Shape, pruned: Pruned, added: tuple[MendingTree, ...], last: bool) -> float:
        """Looks for rows that the trees decide otherwise than the forest, and adds them to the core. Returns their
        share of the rows looked at; the look ends early if enough were found. last: as in `Decided`."""
        if self.all_rows is None:
            return 0.0
        wrong: list[tuple[Codes, Labels]] = []
        room, seen = max(LEAST_ADDED, len(self.label) // SHARE_ADDED), 0
        for code, label in self.all_rows.batches():
            outcomes = self.outcomes._replace(code=code)
            leaf = leaves_on(shape, pruned.state, outcomes)
            scores = integer_scores(leaf, shape.start, pruned.value, shape.outputs, pruned.bias)
            for tree in added:
                scores[:, tree.output] += added_by(tree, outcomes)
            violated = np.flatnonzero(slacks(Decided(label, scores, last)) < 0)[:room]
            if len(violated):
                wrong.append((code[violated], label[violated]))
                room -= len(violated)
            if room <= 0:
                seen += int(violated[-1]) + 1
                break
            seen += len(label)
        if wrong:
            core = self.outcomes.code, self.label
            code, self.label = (np.concatenate(parts) for parts in zip(core, *wrong, strict=True))
            self.outcomes = self.outcomes._replace(code=code)
        return sum(len(label) for _, label in wrong) / max(1, seen)
