"""Implements the pass fit-leaves: fits all integer leaves together to the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.splits.leaf_fitting import Trees, fit_leaves
from forestc.algorithms.splits.pruning import steepest_for
from forestc.errors import OptionError, opt
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Decision, Forest
from forestc.passes.base import PassResult, already_quantized, need_words
from forestc.passes.ladder import AtGivenSettings, Rung
from forestc.passes.leaf_ladder import LeafLadder, taken
from forestc.passes.options import DEFAULT_TOLERANCE, MOST_LEAF_BITS, Range, Tolerance, check_options, tried
from forestc.passes.quick_evaluation import answers_to, nodes_reached
from forestc.passes.round_leaves.rounding import RoundedLeaves, one_output, refuse_sums, round_leaves, with_leaves
from forestc.passes.scorer import Scorer
from forestc.rows.accuracy import truth_of_batch
from forestc.rows.batches import Rows, count_rows
from forestc.rows.ranges import have_rows

MOST_FITTED_BITS = 4  # bits of leaves that leaf_bits=auto tries at most
MOST_LEAVES = 1 << 26  # rows times trees in memory at most; beyond that, fewer rows are used


@dataclass(frozen=True)
class FittingRows:
    """Rows to which leaves are fitted."""

    leaf: NDArray[np.int32]  # (trees, rows) the leaf that each row reaches in each tree
    label: NDArray[np.int64]  # (rows,) the right class


def outputs_follow(forest: Forest) -> bool:
    """Returns True if the outputs of each tree are consecutive, as fitting requires."""
    return all(tree.outputs == tuple(range(tree.outputs[0], tree.outputs[-1] + 1)) for tree in forest.trees)


def zero_of(decision: Decision) -> int:
    """Returns the lowest score that decides for class 1 if a threshold decides; otherwise 0."""
    return int(decision.threshold) if decision.kind == "threshold" else 0


def fitting_rows(forest: Forest, rows: Rows) -> FittingRows:
    """Returns the rows to which leaves are fitted. The forest's decision replaces a missing label. Raises OptionError
    for a forest that fitting does not support."""
    if not (forest.single and forest.decides):
        raise OptionError(
            "needs a model that decides on one class", where="pass fit-leaves", do="take round-leaves instead"
        )
    if not outputs_follow(forest):
        raise OptionError(
            "needs trees with consecutive outputs", where="pass fit-leaves", do="take round-leaves instead"
        )
    stride = max(1, -(-count_rows(rows) * len(forest.trees) // MOST_LEAVES))
    leaves, labels, first = [], [], 0
    for batch in rows.batches():
        chosen = np.arange(-first % stride, len(batch.X), stride)
        first += len(batch.X)
        nodes = nodes_reached(forest, encode_numbers(forest, batch.X[chosen])).T
        reached = [tree.leaf[own] for tree, own in zip(forest.trees, nodes, strict=True)]
        leaves.append(np.stack(reached).astype(np.int32))
        truth = truth_of_batch(batch, np.full(len(batch.X), -1))[chosen]
        unknown = truth < 0  # These rows have no label, or a label that is not a class.
        if unknown.any():
            truth = np.where(unknown, answers_to(forest, batch.X[chosen]), truth)
        labels.append(truth.astype(np.int64))
    return FittingRows(np.concatenate(leaves, axis=1), np.concatenate(labels))


def fitted(
    values: list[NDArray[np.int64]],
    outputs: list[tuple[int, ...]],
    bias: NDArray[np.int64],
    decision: Decision,
    bits: int,
    on: FittingRows,
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Fits leaves of `bits` bits and biases, starting from rounded leaves. Returns the leaves and the biases.
    values: for each tree (leaves, outputs)."""
    trees, zero, largest = Trees.of(on.leaf, values, outputs), zero_of(decision), (1 << bits) - 1
    steepest = steepest_for(trees, bias - zero, on.label, largest)
    fitted_leaves, moved = fit_leaves(trees, bias - zero, on.label, largest, steepest)
    parts = np.split(fitted_leaves, trees.start[1:-1])
    return [part.reshape(own.shape) for part, own in zip(parts, values, strict=True)], moved + zero


@dataclass(frozen=True)
class FitLeaves(AtGivenSettings):
    """Fits all integer leaves together to the classes of the rows: one or two bits are often enough.

    Promises: approximate: scored on held-out rows, and refused beyond the tolerance.
    """

    leaf_bits: Annotated[
        int | Literal["auto"],
        Range(1, MOST_LEAF_BITS),
        tried("auto", 1, 2, 3, 4, 5, 6, 7, 8),
        "bits of a leaf; auto: the fewest, up to 4, within the tolerance.",
    ] = "auto"
    tolerance: Tolerance = DEFAULT_TOLERANCE
    name: ClassVar[str] = "fit-leaves"
    needs_scorer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def open(self) -> bool:
        return self.leaf_bits == "auto"

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if source.quantized:
            raise already_quantized(self)
        if not have_rows(rows):
            raise OptionError(
                "needs rows to fit leaves to",
                where="pass fit-leaves",
                do=f"give {opt.rows}, or take round-leaves instead",
            )
        refuse_sums(source)

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> LeafLadder:
        self.refuse(forest, rows, scorer)
        assert rows is not None
        need_words(self, forest)
        on = cache(lambda: fitting_rows(forest, rows))

        def rounded(bits: int) -> RoundedLeaves:
            return round_leaves(one_output(forest), bits)

        def fit(bits: int) -> tuple[Forest, dict[str, Any]]:
            start = rounded(bits)
            values, bias = fitted(start.values, start.outputs, start.bias, start.decision, bits, on())
            result = with_leaves(forest, replace(start, values=values, bias=bias))
            constant = sum(int(len(np.unique(tree.values, axis=0)) == 1) for tree in result.trees)
            return result, {"rows": len(on().label), "constant_trees": constant}

        most = range(1, MOST_FITTED_BITS + 1)
        return LeafLadder(self, forest, most, lambda bits: with_leaves(forest, rounded(bits)), fit)

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        return taken(self.tolerance, rung, tried)
