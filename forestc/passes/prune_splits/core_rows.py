"""Holds the core: the rows on which prune-splits works. Rows outside the core may join it if pruned trees decide them
wrongly."""

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
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.batches import Rows

Codes: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.int64]

# Limits the bytes of coded rows that stay in memory.
MOST_CODES = 1 << 30
# Reading stops after max(LEAST_ADDED, core rows // SHARE_ADDED) wrongly decided rows.
LEAST_ADDED, SHARE_ADDED = 256, 4


@dataclass(frozen=True)
class CodedRows:
    """All rows, as codes of the conditions' outcomes, with the forest's decisions; read in batches."""

    forest: Forest
    rows: Rows
    coded: Callable[[NDArray[Any]], Outcomes]  # turns encoded rows into codes of the conditions' outcomes

    def batches(self) -> Iterable[tuple[Codes, Labels]]:
        """Returns the batches of all rows, each as (codes, the forest's decisions)."""
        return self._read() if self._in_memory is None else self._in_memory

    @cached_property
    def _in_memory(self) -> list[tuple[Codes, Labels]] | None:
        """All coded rows; None if they need more than MOST_CODES bytes."""
        parts, size = [], 0
        for code, label in self._read():
            size += code.nbytes + label.nbytes
            if size > MOST_CODES:
                return None
            parts.append((code, label))
        return parts

    def _read(self) -> Iterator[tuple[Codes, Labels]]:
        for batch in self.rows.batches():
            words = encode_numbers(self.forest, batch.X)
            yield self.coded(words).code, evaluate_quickly(self.forest, words).index


@dataclass
class CoreRows:
    """The rows on which prune-splits must keep decisions; more rows may join them."""

    outcomes: Outcomes  # outcomes of all conditions on the core rows
    label: Labels  # (core rows,) the forest's decisions
    all_rows: CodedRows | None  # rows that may join the core; None if the core has all

    def violated(self, shape: Shape, pruned: Pruned, added: tuple[MendingTree, ...], last: bool) -> float:
        """Adds rows that the pruned trees decide wrongly to these rows, up to a limit. Returns their share of the rows
        read.
        last: True if the last class wins ties."""
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
