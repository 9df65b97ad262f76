"""Implements the pass prune-exact: removes nodes and trees if every decision provably stays the same.

Emine et al., Free Lunch in the Forest (AAAI 2025), prune whole trees with the same guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from forestc.algorithms.separation.oracle import Decider
from forestc.errors import ModelError, OptionError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.builder import changed
from forestc.forest.ir import Forest, Tree
from forestc.passes.added_trees import tree_of_nodes
from forestc.passes.base import PassResult
from forestc.passes.options import Range, Seeded, check_options
from forestc.passes.promises import Exact, Promise, SameDecisions
from forestc.passes.prune_exact.cells import cells_of, children, leaf_value
from forestc.passes.prune_exact.merging import Merging
from forestc.passes.scorer import Scorer
from forestc.rows.batches import Rows, count_rows, evenly_spaced
from forestc.rows.encode import encode
from forestc.rows.ranges import have_rows

MOST_SUM = 1 << 40  # limits scores, so that sums of them fit in 64 bits
# Limits the inputs with which the search begins: rows, inputs beside thresholds, random inputs.
MOST_ROWS, MOST_BOUNDARY, MOST_RANDOM = 4000, 6000, 1000
STEPS = 1_000_000  # steps of the search for one unit of the option effort


@dataclass(frozen=True)
class PruneExact(Seeded):
    """Removes trees and nodes where the decision provably stays the same on every possible input. Runs after
    round-leaves.

    Promises: exact for decisions: each change is proved for all inputs; scores may change. Exact if nothing was
    removed.
    """

    effort: Annotated[
        int,
        Range(1, 10**9, "millions of steps, such as 1000"),
        "limit of the search, in millions of steps; a hundred take three to ten seconds. One proof may take a "
        "hundredth of it. The result depends on the steps, not on the clock.",
    ] = 2000
    name: ClassVar[str] = "prune-exact"
    removed: ClassVar[Mapping[str, str]] = {
        "within": "remove it: every change is proved for all inputs",
        "margin": "use prune-splits, which measures the accuracy that is lost on held-out rows",
        "trees": "remove it: subtrees are tried, whole trees among them, the largest first",
        "nodes": "remove it: subtrees are tried, whole trees among them, the largest first",
        "time_limit": "use effort, in millions of steps: the same model then gives the same files anywhere",
    }

    def __post_init__(self) -> None:
        check_options(self)

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if not (source.single and source.decides):
            raise OptionError("prune-exact needs a model that decides on one class", do="remove it from the passes")
        if source.aggregate.kind != "sum":
            raise OptionError(
                f"prune-exact needs a model that adds its trees, and this takes the {source.aggregate.kind}",
                do="remove it from the passes",
            )

    def run(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """Returns the result of the pass, with the pruned forest. Raises OptionError or ModelError for an unsuitable
        forest."""
        if not forest.quantized:
            raise ModelError("prune-exact works on integer forests", do="put quantize-inputs,round-leaves before it")
        self.refuse(forest, rows, scorer)
        if forest.decision.kind == "argmax" and forest.decision.on != "scores":
            raise ModelError("prune-exact: the model decides on values after its link", do="remove it from the passes")
        most = sum(float(np.abs(tree.values).max(initial=0)) for tree in forest.trees) + float(
            np.abs(forest.bias).max()
        )
        if max(most, abs(float(forest.decision.threshold))) > MOST_SUM:
            raise ModelError(
                f"prune-exact: scores up to {most:.3g} are too large", do="use fewer leaf_bits in round-leaves"
            )
        merging = self._start(forest, rows)
        merging.run()
        result, counts = _rebuilt(merging), merging.counts
        state = "effort reached" if counts["unknown"] or counts["skipped"] else "proved"
        touched = any(merging.merged)
        figures = {
            "trees": [len(forest.trees), len(result.trees)],
            "nodes": [forest.n_nodes, result.n_nodes],
            "leaf_bits": [_leaf_bits(forest), _leaf_bits(result)],
            "proof": {
                "state": state,
                "proofs": merging.proofs,
                "changes": counts["same"],
                "refuted": counts["differs"],
                "undecided": counts["unknown"],
                "not_examined": counts["skipped"],
                "steps": merging.taken,
            },
            "scores": "ranking" if touched else "unchanged",
        }
        promise: Promise = SameDecisions(state) if touched else Exact()
        return PassResult(result if touched else forest, (promise,), figures)

    def _start(self, forest: Forest, rows: Rows | None) -> Merging:
        cells = cells_of(forest)
        threshold = int(forest.decision.threshold) if forest.decision.kind == "threshold" else None
        decider = Decider(threshold, forest.decision.ties == "last")
        merging = Merging(forest, cells, decider, self.effort * STEPS, self.seed)
        some = np.zeros((0, len(forest.features)), dtype=np.int64)
        if rows is not None and have_rows(rows):
            given = evenly_spaced(rows, MOST_ROWS, count_rows(rows)).batches()
            some = np.concatenate([some, *(encode(forest, batch.X) for batch in given)])
        size = cells.box[1]
        drawn = np.random.default_rng(self.seed).integers(0, size, (MOST_RANDOM, len(size))).astype(np.int32)
        inputs = [drawn, cells.of_words(some)]
        base = np.concatenate([some, cells.words_of(drawn)])
        inputs += [cells.of_words(words) for words in boundary_inputs(forest, base, self.seed, MOST_BOUNDARY)]
        merging.add(np.unique(np.concatenate(inputs), axis=0))
        return merging


def _leaf_bits(forest: Forest) -> int:
    return max(int((tree.values.max(axis=0) - tree.values.min(axis=0)).max()).bit_length() for tree in forest.trees)


def _rebuilt(merging: Merging) -> Forest:
    """Returns the pruned forest. Constant trees are added to the bias, but at least one tree stays."""
    forest, bias = merging.forest, merging.state.bias.copy()
    trees: list[Tree] = []
    for index, (tree, merged) in enumerate(zip(forest.trees, merging.merged, strict=True)):
        below, value = partial(children, tree, merged), partial(leaf_value, tree, merged)
        if not below(0) and (trees or index + 1 < len(forest.trees)):
            bias[list(tree.outputs)] += value(0)
        else:
            trees.append(tree_of_nodes(tree, 0, below, value, f"tree {index}", quantized=True) if merged else tree)
    return changed(forest, trees=tuple(trees), bias=bias)
