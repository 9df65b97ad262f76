"""prune-splits: turns splits that the rows hardly need into leaves, rewires the other splits and fits the leaves.

Each split has a cost in LUTs of a device family: its comparator, shared among the splits that read it, and its
multiplexer; for a whole tree also its adder. A split is removed if the loss on the rows rises by less than the price of
its cost (`forestc.algorithms.split_pruning`). In between, each split gets the condition of the forest with the least
loss, where sharing an existing comparator costs nothing (`forestc.algorithms.split_rewiring`), and the leaves are
fitted again, so that a few bits are enough.

Each row is used together with copies in which a tenth of the values come from other rows of its class. Without them
pruning overfits a small number of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.leaf_fitting import Trees
from forestc.algorithms.split_pruning import Pruned, Splits, prune
from forestc.algorithms.split_state import Outcomes
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import Below, Condition, Member
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import word_range
from forestc.parameters import Choice, Parameter, Real
from forestc.passes.base import PassResult
from forestc.passes.judge import Judge
from forestc.passes.mixed_rows import rows_to_fit
from forestc.passes.option_rules import FLAG, SHARE, Rule, check_options, is_number, one_of, whole
from forestc.passes.promises import Exact, KeepsDecisions, Promise, Within
from forestc.passes.quantize.fit_leaves import MOST_LEAVES, outputs_follow, zero_of
from forestc.passes.tree_costs import comparator_cost
from forestc.rows.batches import Rows
from forestc.rows.encode import evaluate
from forestc.rows.ranges import have_rows

MOST_OUTCOMES = 1 << 28  # most rows times feature columns; beyond it, fewer copies, then fewer rows are used
PRICES = np.geomspace(0.02, 34, 18)  # prices of a LUT that are tried, in units of the loss of one row
EITHER = "accuracy-or-decisions"
GIVE_UP = 4  # the search ends after so many successive prices that lose too much


_RULES = {
    "keep": one_of("accuracy", "decisions", EITHER),
    "tolerance": SHARE,
    "price": Rule(
        lambda value: value == "auto" or (is_number(value) and 0 < value < 1e6),
        "use auto or a number above 0, such as 0.1",
    ),
    "leaf_bits": whole(1, 16).or_("same", "auto", do="use same, auto or 1 to 16"),
    "rewire": FLAG,
    "copies": whole(0, 100),
    "mix": SHARE,
    "seed": whole(0, do="use a whole number from 0 on"),
}


@dataclass(frozen=True)
class PruneSplits:
    """Turns splits that the rows hardly need into leaves and fits the rest to the rows: fewer LUTs. After quantize.

    Promises: approximate: judged on held-out rows, and refused beyond the tolerance; exact if no smaller forest is
    within it, as all splits then stay. With keep=decisions exact-on-data.

    keep: accuracy (on held-out rows, within the tolerance), decisions (of all rows, exact-on-data), or
    accuracy-or-decisions: decisions if no smaller forest keeps the accuracy.
    tolerance: the accuracy that may be lost against the model on held-out rows, including one standard error.
    price: auto (the highest that keep allows), or the loss that a LUT is worth, in units of the loss of one row.
    leaf_bits: same (as many as the leaves have), a number of bits, or auto: 1, or same if no smaller forest is found.
    rewire: whether splits may take the conditions of other splits of the forest.
    copies: number of copies of each row with mixed values.
    mix: share of a copy's values that come from other rows of its class.
    seed: of the random mixing.
    cost: what is minimised: the LUTs of a device family (lut6, xcup, ecp5, ice40), or of C bytes of flash or
    instructions; of a processor as in flash-avr or instructions-cortex-m0plus.
    """

    keep: str = "accuracy"
    tolerance: float = 0.01
    price: float | str = "auto"
    leaf_bits: int | str = "same"
    rewire: bool = True
    copies: int = 8
    mix: float = 0.1
    seed: int = 0
    cost: str = DEFAULT_COST
    name: ClassVar[str] = "prune-splits"
    space: ClassVar[tuple[Parameter, ...]] = (
        Real("price", 0.02, 30.0, log=True, approximate=True),
        Choice("leaf_bits", (1, 2, 3, "same"), approximate=True),
        Choice("rewire", (True, False), approximate=True),
        Choice("copies", (0, 2, 8), approximate=True),
        Choice("mix", (0.05, 0.1, 0.2), when={"copies": (2, 8)}, approximate=True),
    )

    def __post_init__(self) -> None:
        check_options(self, _RULES)
        prices(self.cost)  # raises for an unknown family
        if self.keep == EITHER and self.price != "auto":
            raise OptionError(
                f"prune-splits: keep={EITHER} searches the price", do="remove price, or use keep=accuracy"
            )

    def refuse(self, source: Forest, rows: Rows | None, judge: Judge | None) -> None:
        if source.parts or not source.decides:
            raise OptionError("prune-splits needs a model that decides on one class", do="remove it from the passes")
        if source.aggregate.kind != "sum":
            raise OptionError("prune-splits needs a sum of trees", do="remove it from the passes")
        if not outputs_follow(source):
            raise OptionError("prune-splits: the outputs of a tree are not consecutive", do="remove it from the passes")
        if not have_rows(rows):
            raise OptionError(
                "prune-splits needs rows: they say which splits are needed",
                do="give --rows, or remove it from the passes",
            )
        if self.keep != "decisions" and judge is None:
            raise OptionError("prune-splits needs held-out rows", do="give --held-out FILE or 0.2, or keep=decisions")

    def run(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> PassResult:
        """Promises `Within`, with keep=decisions `KeepsDecisions`; `Exact` if nothing was pruned. Raises OptionError,
        or ModelError for a forest that is not quantised."""
        if not forest.quantised:
            raise ModelError("prune-splits works on integer forests", do="put quantize before it")
        self.refuse(forest, rows, judge)
        assert rows is not None
        for keep in ("accuracy", "decisions") if self.keep == EITHER else (self.keep,):
            for bits in (1, "same") if self.leaf_bits == "auto" else (self.leaf_bits,):
                result = replace(self, keep=keep, leaf_bits=bits)._pruned(forest, rows, judge)
                if result.report["price"] is not None:
                    return result
        return result  # nothing was found

    def _pruned(self, forest: Forest, rows: Rows, judge: Judge | None) -> PassResult:
        """`run` for one keep and one leaf_bits; the forest unchanged if nothing smaller keeps what it must."""
        ensemble = _Ensemble(forest, self, rows)
        if self.keep == "decisions":
            best, tried = self._keeping_decisions(forest, ensemble, rows)
            promise: Promise = KeepsDecisions()
        else:
            assert judge is not None
            best, tried = self._keeping_accuracy(ensemble, judge)
            promise = Exact() if best is None else Within(float(self.tolerance))
        result = forest if best is None else ensemble.rebuilt(best)
        report = {
            "splits": [len(ensemble.splits.tree), len(ensemble.splits.tree) if best is None else best.splits],
            "cost": [round(ensemble.cost), round(ensemble.cost if best is None else best.cost)],
            "price": None if best is None else round(best.price, 4),
            "rows": ensemble.rows,
            "copies": ensemble.copies,
            "rewired": 0 if best is None else int((best.condition != ensemble.splits.condition).sum()),
            "scores": _scores_are(forest, best is not None),
            "chosen_on_held_out": self.keep == "accuracy" and tried > 1,
        }
        return PassResult(result, (promise,), report)

    def _prices(self) -> NDArray[np.float64]:
        if self.price == "auto":
            return PRICES
        below = [price for price in PRICES.tolist() if price < float(self.price)]
        return np.array([*below, float(self.price)])

    def _keeping_decisions(self, forest: Forest, ensemble: _Ensemble, rows: Rows) -> tuple[Pruned | None, int]:
        """The cheapest ensemble found that decides every row as the forest does, or None; and the number tried."""
        best, missed, tried = None, 0, 0
        for found in ensemble.path(self._prices()):
            tried += 1
            if _changes_no_decision(forest, ensemble.rebuilt(found), rows):
                best, missed = found if best is None or found.cost < best.cost else best, 0
            elif (missed := missed + 1) == GIVE_UP and best is not None:
                break
        return best, tried

    def _keeping_accuracy(self, ensemble: _Ensemble, judge: Judge) -> tuple[Pruned | None, int]:
        """The ensemble at the given price, or the cheapest within the tolerance, or None; and the number tried."""
        best, missed, tried = None, 0, 0
        found = None
        for found in ensemble.path(self._prices()):
            tried += 1
            if self.price != "auto":
                continue
            if judge.of(ensemble.rebuilt(found)).within(self.tolerance):
                best, missed = found if best is None or found.cost < best.cost else best, 0
            elif (missed := missed + 1) == GIVE_UP and (best is not None or tried > len(PRICES) // 2):
                break
        return (best, tried) if self.price == "auto" else (found, 1)


def _scores_are(forest: Forest, pruned: bool) -> str:
    """What scores mean: unchanged; log_odds; or ranking, where only their order among the classes has a meaning."""
    if not pruned:
        return "unchanged"
    return "log_odds" if _odds(forest) else "ranking"


def _odds(forest: Forest) -> bool:
    """Whether its link turns log odds into probabilities: fitted leaves add up to log odds."""
    return forest.link.kind in ("sigmoid", "logistic", "softmax") and forest.link.slope == 1.0


def _changes_no_decision(before: Forest, after: Forest, rows: Rows) -> bool:
    return all(
        bool((evaluate(before, batch.X).index == evaluate(after, batch.X).index).all()) for batch in rows.batches()
    )


class _Ensemble:
    """A forest as arrays for the pruning: leaves from left to right, the rows' leaves, splits with their costs."""

    def __init__(self, forest: Forest, options: PruneSplits, rows: Rows) -> None:
        self.forest = forest
        self.slots = [_leaves_in_order(tree) for tree in forest.trees]
        found = [
            (index, first, middle, last, size, int(places[node]))
            for index, (places, (_, inner)) in enumerate(zip(forest.conditions.places, self.slots, strict=True))
            for node, first, middle, last, size in inner
        ]
        # conditions that any split may take come first, and of these the most frequent
        used = Counter(place for *_, place in found)
        condition_at = {place: forest.conditions[place] for place in used}
        order = sorted(used, key=lambda place: (not _plain(forest, condition_at[place]), -used[place]))
        self.conditions = [condition_at[place] for place in order]
        number = {place: rank for rank, place in enumerate(order)}
        table = np.array([(*split, number[place]) for *split, place in found], dtype=np.int64).reshape(-1, 6)
        tree_of, first, middle, last, size, condition = (table[:, column].copy() for column in range(6))
        unit = prices(options.cost)
        cost = np.array([comparator_cost(forest, condition, unit) for condition in self.conditions], dtype=np.float64)
        widths = [len(tree.outputs) for tree in forest.trees]
        values = [tree.values[tree.leaf[nodes]] for tree, (nodes, _) in zip(forest.trees, self.slots, strict=True)]
        present = max((int(leaves.max() - leaves.min()).bit_length() for leaves in values), default=1)
        bits = min(max(1, present), 16) if options.leaf_bits == "same" else int(options.leaf_bits)
        self.largest = (1 << bits) - 1
        share = bits if unit.per_bit else 1 / max(1.0, float(np.mean(widths)))  # of each output
        self.splits = Splits(tree_of, first, middle, last, size, condition, cost, unit.split * share, unit.tree * share)
        alive = sum(width for tree, width in zip(forest.trees, widths, strict=True) if tree.size > 1)
        nodes = sum(width * len(tree.inner) for tree, width in zip(forest.trees, widths, strict=True))
        self.cost = float(cost.sum() + self.splits.node * nodes + self.splits.sum * alive)
        # Leaves are counted from their tree's smallest, up to the largest allowed; fitting finds the biases.
        values = [leaves - leaves.min(axis=0) for leaves in values]
        factor = min(1.0, self.largest / max([1, *(int(leaves.max()) for leaves in values)]))
        values = [np.floor(leaves * factor + 0.5).astype(np.int64) for leaves in values]
        columns = _columns(forest, self.conditions)
        most = min(MOST_LEAVES // max(1, len(forest.trees)), MOST_OUTCOMES // max(1, len(columns)))
        drawn = rows_to_fit(
            forest, rows, most, own_labels=options.keep == "decisions",
            copies=options.copies, mix=options.mix, seed=options.seed,
        )  # fmt: skip
        words, self.label, self.rows, self.copies = drawn.words, drawn.label, drawn.rows, drawn.copies
        leaf = np.empty((len(forest.trees), len(words)), dtype=np.int32)
        for index, (tree, (leaves, _)) in enumerate(zip(forest.trees, self.slots, strict=True)):
            slot = np.zeros(tree.size, dtype=np.int32)
            slot[leaves] = np.arange(len(leaves))
            leaf[index] = slot[leaf_nodes(forest, tree, words)]
        if options.rewire and self.conditions and _plain(forest, self.conditions[0]):
            self.splits = replace(self.splits, outcomes=_outcomes(forest, self.conditions, columns, words))
        self.trees = Trees.of(leaf, values, [tree.outputs for tree in forest.trees])
        self.zero = zero_of(forest.decision)
        self.bias = np.zeros(forest.n_outputs, dtype=np.int64)
        if forest.n_outputs == 1:  # half of the trees vote for each class, until fitting finds better biases
            self.bias -= int(self.largest * len(forest.trees)) // 2

    def path(self, prices: NDArray[np.float64]) -> Iterator[Pruned]:
        """Yields the pruned ensemble at one price after the other."""
        scale = len(self.label) / self.rows  # copies count as rows; rows that are not used do not
        pruned = prune(
            self.trees, self.bias, self.label, self.largest, self.splits, prices * scale, copies_per_row=self.copies + 1
        )
        for price, found in zip(prices.tolist(), pruned, strict=True):
            yield replace(found, price=price)

    def rebuilt(self, found: Pruned) -> Forest:
        """The forest with the pruned ensemble's conditions and leaves; `simplify` removes what became redundant."""
        trees = []
        begin = 0
        for index, (tree, (nodes, inner)) in enumerate(zip(self.forest.trees, self.slots, strict=True)):
            leaf = np.full(tree.size, LEAF, dtype=tree.leaf.dtype)
            leaf[nodes] = np.arange(len(nodes))
            values = found.value[self.trees.start[index] : self.trees.start[index + 1]].reshape(-1, len(tree.outputs))
            feature, threshold = tree.feature.copy(), tree.threshold.copy()
            left, right = tree.left.copy(), tree.right.copy()
            for place, (node, *_) in enumerate(inner, begin):
                new = self.conditions[found.condition[place]]
                if isinstance(new.test, Below) and _plain(self.forest, new):
                    feature[node], threshold[node] = new.feature, new.test.threshold
                if found.flipped[place]:
                    left[node], right[node] = right[node], left[node]
            here = slice(begin, begin := begin + len(inner))
            rewired = not np.array_equal(found.condition[here], self.splits.condition[here])
            trees.append(
                changed_tree(
                    tree, values=values.astype(tree.values.dtype), leaf=leaf, feature=feature, threshold=threshold,
                    left=left, right=right, cover=None if rewired else tree.cover,
                )
            )  # fmt: skip
        scale = found.unit if _odds(self.forest) else self.forest.scale
        return changed(self.forest, trees=tuple(trees), bias=found.bias + self.zero, scale=scale)


def _leaves_in_order(tree: Tree) -> tuple[list[int], list[tuple[int, int, int, int, int]]]:
    """The leaf nodes from left to right; and for each inner node, children first: the node, its first leaf, the first
    leaf of its right side, one past its last leaf, and the number of inner nodes of its subtree, itself included."""
    leaves: list[int] = []
    inner: list[tuple[int, int, int, int, int]] = []
    begun: dict[int, tuple[int, int]] = {}  # first leaf, inner nodes before
    middle: dict[int, int] = {}
    stack = [(0, "down")]
    while stack:
        node, way = stack.pop()
        if way == "middle":
            middle[node] = len(leaves)
        elif way == "up":
            first, before = begun[node]
            inner.append((node, first, middle[node], len(leaves), len(inner) - before + 1))
        elif tree.left[node] == LEAF:
            leaves.append(node)
        else:
            begun[node] = len(leaves), len(inner)
            stack += [(node, "up"), (int(tree.right[node]), "down"), (node, "middle"), (int(tree.left[node]), "down")]
    return leaves, inner


def _plain(forest: Forest, condition: Condition) -> bool:
    """Whether other splits may take it: a threshold on a feature that is never missing."""
    feature = forest.features[condition.feature]
    return isinstance(condition.test, Below) and word_range(feature.number, feature.missing).missing is None


def _columns(forest: Forest, conditions: Sequence[Condition]) -> list[list[int]]:
    """The conditions of each column of codes: all plain ones of a feature, thresholds ascending, or a single other."""
    plain: dict[int, list[tuple[Member, int]]] = {}
    others = []
    for place, condition in enumerate(conditions):
        if isinstance(condition.test, Below) and _plain(forest, condition):
            plain.setdefault(condition.feature, []).append((condition.test.threshold, place))
        else:
            others.append([place])
    return [[place for _, place in sorted(cuts)] for cuts in plain.values()] + others


def _outcomes(
    forest: Forest, conditions: Sequence[Condition], columns: Sequence[list[int]], words: NDArray[np.int64]
) -> Outcomes:
    """The outcomes of all conditions on all rows. A row's code in a column is the number of its conditions that the row
    fails, which are those with the lowest thresholds."""
    takes_missing, missing_word = missing_words(forest)
    most = max(map(len, columns))
    code = np.zeros((len(words), len(columns)), dtype=np.uint8 if most < 256 else np.int32)
    column, cut = (np.empty(len(conditions), dtype=np.int64) for _ in range(2))
    for number, places in enumerate(columns):
        for rank, place in enumerate(places):
            condition = conditions[place]
            x = words[:, condition.feature]
            absent = takes_missing[condition.feature] & (x == missing_word[condition.feature])
            code[:, number] += ~condition.sends_left(x, absent)
            column[place], cut[place] = number, rank + 1
    begins = np.concatenate([[0], np.cumsum([len(places) + 1 for places in columns])]).astype(np.int64)
    return Outcomes(code, column, cut, begins, sum(_plain(forest, condition) for condition in conditions))
