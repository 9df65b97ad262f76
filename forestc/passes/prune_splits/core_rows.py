"""The rows whose decisions prune-splits keeps: a core on which it works, and all of them, on which it looks for others
that belong to the core."""

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

MOST_CODES = 1 << 30  # bytes of coded rows in memory; beyond it, all rows are read and coded again for each look
# violated rows after which a look at all rows ends: the larger of a number and of the core divided by another
LEAST_ADDED, SHARE_ADDED = 256, 4


@dataclass(frozen=True)
class CodedRows:
    """All rows. forest: whose decisions are kept. coded: what encoded words are as codes of the conditions."""

    forest: Forest
    rows: Rows
    coded: Callable[[NDArray[Any]], Outcomes]

    def batches(self) -> Iterable[tuple[Codes, Labels]]:
        """The codes and labels of all rows."""
        return self._read() if self._in_memory is None else self._in_memory

    @cached_property
    def _in_memory(self) -> list[tuple[Codes, Labels]] | None:
        """None if all rows take too much memory."""
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
    """The core: outcomes of all conditions on its rows, and label: (rows,) the class that each decides. all_rows: where
    further ones are looked for, None if the core is all of them; the core grows in place otherwise."""

    outcomes: Outcomes
    label: Labels
    all_rows: CodedRows | None

    def violated(self, shape: Shape, pruned: Pruned, added: tuple[MendingTree, ...], last: bool) -> float:
        """The share of the rows looked at that trees decide otherwise: of all rows, or of the first with as many as may
        join the core, which they do. last: as in `Decided`."""
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
