"""prune-exact: removes trees and nodes where the decision provably stays the same on every possible input.

Functionally identical pruning: Emine et al., Free Lunch in the Forest (AAAI 2025), for trees; here carried on to
nodes. Every change is proved by a separation oracle (`forestc.algorithms.separation.oracle`), which else gives
an input that would be decided differently. On integer forests sums and ties are exact, so that the proofs are, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.separation.oracle import Decider
from forestc.errors import ModelError, OptionError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.builder import changed
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import Category, round_to, to_words
from forestc.parameters import Choice, Parameter, Whole
from forestc.passes.added_trees import tree_of_nodes
from forestc.passes.base import PassResult
from forestc.passes.judge import Judge
from forestc.passes.option_rules import FLAG, SEED, Rule, check_options, is_number, one_of, whole
from forestc.passes.promises import Exact, Promise, SameDecisions, Span
from forestc.passes.prune_exact.cells import Edits, cells_of, children, is_leaf, leaf_value, whole_span
from forestc.passes.prune_exact.nodes import hoist, merge
from forestc.passes.prune_exact.trees import remove_trees
from forestc.passes.prune_exact.working import Effort, Tally, Working
from forestc.rows.batches import Rows
from forestc.rows.encode import encode
from forestc.rows.ranges import Ranges

MOST_SUM = 1 << 40  # of scores: sums of sums must fit 64 bits
MOST_ROWS, MOST_BOUNDARY, MOST_RANDOM = 4000, 6000, 1000  # inputs that reject wrong candidates without a proof
STEPS = 1_000_000  # of the search, in a unit of the option effort
ONE_PROOF, TREES_PROOF = 0.01, 0.1  # share of the effort and the time that one proof may take: of a node, of all trees


_RULES = {
    "within": one_of("everywhere", "ranges"),
    "margin": Rule(lambda value: is_number(value) and 0 <= value < 1e30, "use 0, or a difference of scores above 0"),
    "trees": FLAG,
    "nodes": FLAG,
    "effort": whole(1, 10**9, do="use millions of steps, such as 1000"),
    "time_limit": Rule(
        lambda value: value is None or (is_number(value) and 0 < value < 1e9), "use null or a number of seconds"
    ),
    "seed": SEED,
}


@dataclass(frozen=True)
class PruneExact:
    """Removes trees and nodes where the decision provably stays the same on every possible input. After round-leaves.

    Promises: exact for decisions: each change is proved by branch and bound over all inputs, or is not made; scores may
    change. With within=ranges or a margin it holds for the inputs named there. Exact if nothing was removed.

    within: everywhere (all inputs), or ranges: inputs between the smallest and the largest value that the rows hold of
    each feature, or in the ranges that were given instead of rows; missing where rows are.
    margin: inputs whose two best scores (or score and threshold) are no further apart may be decided differently.
    trees: whether whole trees are removed.
    nodes: whether subtrees become leaves, and splits one of their sides.
    effort: millions of search steps in all; a hundred take three to ten seconds. The result depends on it, not on the
    clock.
    time_limit: further limit in seconds, or null; with it the result depends on the machine. As of the effort, at most
    about a third is spent on the choice of trees, and a hundredth on one change of a node.
    seed: of the random inputs that reject candidates without a proof.
    """

    within: str = "everywhere"
    margin: float = 0
    trees: bool = True
    nodes: bool = True
    effort: int = 2000
    time_limit: float | None = None
    seed: int = 0
    name: ClassVar[str] = "prune-exact"
    space: ClassVar[tuple[Parameter, ...]] = (
        Choice("trees", (True, False)),
        Choice("nodes", (True, False)),
        Whole("effort", 100, 1000, log=True),
    )

    def __post_init__(self) -> None:
        check_options(self, _RULES)

    def refuse(self, source: Forest, rows: Rows | None, judge: Judge | None) -> None:
        if source.parts or not source.decides:
            raise OptionError("prune-exact needs a model that decides on one class", do="remove it from the passes")
        if source.aggregate.kind != "sum":
            raise OptionError(
                f"prune-exact needs a model that adds its trees, and this takes the {source.aggregate.kind}",
                do="remove it from the passes",
            )
        if self.within == "ranges" and rows is None:
            raise OptionError("prune-exact: within=ranges needs rows or ranges", do="give --rows or --ranges")

    def run(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> PassResult:
        """Promises `SameDecisions`; `Exact` if nothing was removed. Raises OptionError, or ModelError for a forest that
        is not quantized, decides on values after a link, or whose sums are too large."""
        if not forest.quantized:
            raise ModelError("prune-exact works on integer forests", do="put quantize-inputs,round-leaves before it")
        self.refuse(forest, rows, judge)
        if forest.decision.kind == "argmax" and forest.decision.on != "scores":
            raise ModelError("prune-exact: the model decides on values after its link", do="remove it from the passes")
        most = sum(float(np.abs(tree.values).max(initial=0)) for tree in forest.trees) + float(
            np.abs(forest.bias).max()
        )
        if max(most, abs(float(forest.decision.threshold))) > MOST_SUM:
            raise ModelError(
                f"prune-exact: scores up to {most:.3g} are too large", do="use fewer leaf_bits in round-leaves"
            )
        working, spans = self._start(forest, rows)
        tally, selected = self._prune(working)
        if tally.unknown:
            working.effort.is_over()
        result = _rebuilt(working)
        given_up = "time limit reached" if working.effort.late else "effort reached"
        state = working.effort.reached or (given_up if tally.unknown else "proved")
        touched = any(edits.leaf or edits.stands for edits in working.edits)
        figures = {
            "trees": [len(forest.trees), len(result.trees)],
            "nodes": [forest.n_nodes, result.n_nodes],
            "leaf_bits": [_leaf_bits(forest), _leaf_bits(result)],
            "proof": {
                "state": state,
                "proofs": working.effort.proofs,
                "changes": tally.same,
                "refuted": tally.differs,
                "undecided": tally.unknown,
                "not_examined": tally.skipped,
                "steps": working.effort.taken,
                **selected,
            },
            "scores": "ranking" if touched else "unchanged",
        }
        promise: Promise = SameDecisions(state, float(self.margin), spans) if touched else Exact()
        return PassResult(result if touched else forest, (promise,), figures)

    def _start(self, forest: Forest, rows: Rows | None) -> tuple[Working, tuple[Span, ...] | None]:
        seconds = float("inf") if self.time_limit is None else self.time_limit
        effort = Effort(self.effort * STEPS, seconds)
        spans, some = _observed(forest, rows, self.within == "ranges")
        known = spans or tuple(whole_span(forest, index) for index in range(len(forest.features)))
        cells = cells_of(forest, known)
        threshold = int(forest.decision.threshold) if forest.decision.kind == "threshold" else None
        decider = Decider(threshold, forest.decision.ties == "last", _steps_of(self.margin, forest.scale or 1.0))
        working = Working(forest, cells, decider, effort, self.seed)
        random = np.random.default_rng(self.seed)
        size = cells.box[1]
        inputs = [random.integers(0, size, (MOST_RANDOM, len(size))).astype(np.int32), cells.of_words(some)]
        base = np.concatenate([some, cells.words_of(inputs[0])])
        inputs += [cells.of_words(words) for words in boundary_inputs(forest, base, self.seed, MOST_BOUNDARY)]
        working.add(np.unique(np.concatenate(inputs), axis=0))
        return working, spans

    def _prune(self, working: Working) -> tuple[Tally, dict[str, Any]]:
        tally, selected = Tally(), {}
        if self.trees:
            selection = remove_trees(working, TREES_PROOF)
            if selection.state != "same" or (selection.kept == 0).any():
                tally.count(selection.state)
            selected = {"fewest_trees": selection.smallest}
        merge(working, tally, ONE_PROOF, roots=self.trees, inner=self.nodes)
        if self.nodes:
            hoist(working, tally, ONE_PROOF)
        return tally, selected


def _steps_of(margin: float, scale: float) -> int:
    """The largest integer difference of scores that is within the margin; -1 without a margin."""
    if not margin:
        return -1
    if margin / scale > 2 * MOST_SUM:  # beyond all scores
        return 2 * MOST_SUM
    steps = int(margin / scale)
    while steps * scale > margin:
        steps -= 1
    while (steps + 1) * scale <= margin:
        steps += 1
    return steps


def _observed(forest: Forest, rows: Rows | None, ranged: bool) -> tuple[tuple[Span, ...] | None, NDArray[np.int64]]:
    """The words of each feature that rows hold, or ranges allow, if asked for; and the words of some rows."""
    parts: list[NDArray[np.int64]] = []
    count = len(forest.features)
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    absent = np.zeros(count, dtype=bool)
    spans = [whole_span(forest, index) for index in range(count)]
    if isinstance(rows, Ranges):
        return (tuple(_span_of(forest, rows, index) for index in range(count)) if ranged else None), _none(count)
    kept = 0
    for batch in rows.batches() if rows is not None else ():
        if not len(batch.X):
            continue
        if kept < MOST_ROWS:
            parts.append(encode(forest, batch.X[: MOST_ROWS - kept]))
            kept += len(parts[-1])
        elif not ranged:
            break
        if ranged:
            words = encode(forest, batch.X)
            whole = np.array([not span.missing for span in spans], dtype=bool)  # empty, too, without features
            known = whole | (words <= np.array([span.high for span in spans]))
            low = np.minimum(low, np.where(known, words, np.iinfo(np.int64).max).min(axis=0))
            high = np.maximum(high, np.where(known, words, np.iinfo(np.int64).min).max(axis=0))
            absent |= ~known.all(axis=0)
    some = np.concatenate([_none(count), *parts])
    if not ranged:
        return None, some
    if not kept:
        raise OptionError("prune-exact: within=ranges needs rows, and there are none", do="give a file with rows")
    for index, feature in enumerate(forest.features):
        if not isinstance(feature.number, Category):
            span, ends = spans[index], (int(low[index]), int(high[index]))
            # a feature that is missing in all rows takes its lowest word besides
            spans[index] = Span(*(ends if ends[0] <= ends[1] else (span.low, span.low)), bool(absent[index]))
    return tuple(spans), some


def _none(features: int) -> NDArray[np.int64]:
    return np.zeros((0, features), dtype=np.int64)


def _span_of(forest: Forest, ranges: Ranges, index: int) -> Span:
    """The words of a feature's range."""
    feature, span = forest.features[index], whole_span(forest, index)
    allowed = ranges.of(feature)
    if isinstance(feature.number, Category):
        return span
    ends = round_to(np.array([allowed.smallest, allowed.largest]), feature.raw)
    low, high = to_words(ends, feature.number, feature.missing).tolist()
    return Span(max(low, span.low), min(high, span.high), allowed.takes_missing(feature))


def _leaf_bits(forest: Forest) -> int:
    """The bits of the widest leaves, counted from their tree's smallest."""
    return max(int((tree.values.max(axis=0) - tree.values.min(axis=0)).max()).bit_length() for tree in forest.trees)


def _rebuilt(working: Working) -> Forest:
    """The forest with its edits. Trees of a single leaf are added to the bias; one tree stays."""
    forest, bias = working.forest, working.state.bias.copy()
    trees: list[Tree] = []
    for index, (tree, edits) in enumerate(zip(forest.trees, working.edits, strict=True)):
        root = edits.place(0)
        if is_leaf(tree, edits, root) and (trees or index + 1 < len(forest.trees)):
            bias[list(tree.outputs)] += leaf_value(tree, edits, root)
        else:
            trees.append(_tree(tree, edits, index))
    return changed(forest, trees=tuple(trees), bias=bias)


def _tree(tree: Tree, edits: Edits, index: int) -> Tree:
    """A tree with its edits."""
    if not (edits.leaf or edits.stands):
        return tree
    kept: list[int] = []
    stack = [edits.place(0)]
    while stack:
        node = stack.pop()
        kept.append(node)
        if not is_leaf(tree, edits, node):
            stack += reversed(children(tree, edits, node))
    place = {node: rank for rank, node in enumerate(kept)}
    leaves = [node for node in kept if is_leaf(tree, edits, node)]
    sides = []
    for node in kept:
        if is_leaf(tree, edits, node):
            sides.append((LEAF, LEAF))
        else:
            left, right = children(tree, edits, node)
            sides.append((place[left], place[right]))
    values = np.array([leaf_value(tree, edits, node) for node in leaves])
    return tree_of_nodes(tree, kept, sides, values, f"tree {index}", quantized=True)
