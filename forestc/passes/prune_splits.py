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
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.decision_keeping import Wanted, keep_decisions
from forestc.algorithms.leaf_fitting import Trees
from forestc.algorithms.mending_trees import MendingTree
from forestc.algorithms.split_pruning import Pruned, Splits, as_given, cost_of, prune
from forestc.algorithms.split_state import Outcomes
from forestc.algorithms.squared_pruning import prune_squared
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import Below, Condition, Member
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import LEAF, Forest, Link, Tree
from forestc.forest.numbers import word_range
from forestc.parameters import Choice, Parameter, Real
from forestc.passes.added_trees import added_tree
from forestc.passes.base import PassResult
from forestc.passes.judge import Judge
from forestc.passes.mixed_rows import rows_to_fit
from forestc.passes.option_rules import FLAG, SHARE, Rule, check_options, is_number, one_of, whole
from forestc.passes.promises import Exact, KeepsDecisions, Promise, Within
from forestc.passes.quantize.fit_leaves import MOST_LEAVES, outputs_follow, zero_of
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.passes.tree_costs import comparator_cost
from forestc.rows.batches import Rows
from forestc.rows.encode import encode
from forestc.rows.ranges import have_rows

FULL_SEARCH = 1 << 21  # samples times trees; with n times as many, every n-th price is tried
MOST_COPIED = 1 << 23  # most samples times trees, copies included; many rows need no copies
MOST_OUTCOMES = 1 << 28  # most rows times feature columns; beyond it, fewer copies, then fewer rows are used
PRICES = np.geomspace(0.02, 34, 18)  # prices of a LUT that are tried, in units of the loss of one row
EITHER = "accuracy-or-decisions"
MOST_STEP = 4
GIVE_UP = 4  # the search ends after so many successive prices that lose too much
SEARCHED_BITS: tuple[int | str, ...] = (1, 2, 3, "same")  # leaf_bits=auto
BITS_OF_VALUES: tuple[int | str, ...] = (3, 4, 6, 8, "same")  # of a regression
WORSE = 1.25  # with more bits than those of a result this much cheaper, the search ends
ADDED_SPLIT = 2.5  # cost of a split of an added tree, in that of another: no two of its leaves are alike


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
    "mended": SHARE,
    "seed": whole(0, do="use a whole number from 0 on"),
}


@dataclass(frozen=True)
class PruneSplits:
    """Turns splits that the rows hardly need into leaves and fits the rest to the rows: fewer LUTs. After quantize.

    Promises: approximate: judged on held-out rows, and refused beyond the tolerance; exact if no smaller forest is
    within it, as all splits then stay. With keep=decisions exact-on-data.

    keep: accuracy (on held-out rows, within the tolerance), decisions (of all rows, exact-on-data), or
    accuracy-or-decisions: decisions if no smaller forest keeps the accuracy.
    tolerance: the accuracy (R squared of a regression) that may be lost against the model on held-out rows, including
    one standard error.
    price: auto (the cheapest that keep allows), or the loss that a LUT is worth, in units of the loss of one row; of a
    regression in units of the variance of one row.
    leaf_bits: same (as many as the leaves have), a number of bits, or auto: the cheapest of 1, 2, 3 and same.
    mended: with keep=decisions the share of rows that small added trees may put right. More makes smaller forests,
    which agree with the model less often on other rows.
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
    leaf_bits: int | str = "auto"
    mended: float = 0.02
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
        if source.parts:
            raise OptionError("prune-splits needs a model that decides on one class", do="remove it from the passes")
        if not source.decides and self.keep == "decisions":
            raise OptionError(
                "prune-splits: a regression has no decisions to keep",
                do="use keep=accuracy, whose tolerance is of R squared, and give --held-out",
            )
        if not source.decides and source.link != Link():
            raise OptionError(
                f"prune-splits takes no regression with the link {source.link.kind}", do="remove it from the passes"
            )
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
        either = ("accuracy", "decisions") if forest.decides else ("accuracy",)
        for keep in either if self.keep == EITHER else (self.keep,):
            result = replace(self, keep=keep)._pruned(forest, rows, judge)
            if result.report["price"] is not None:
                break
        return result

    def _pruned(self, forest: Forest, rows: Rows, judge: Judge | None) -> PassResult:
        """`run` for one keep; the forest unchanged if nothing smaller keeps what it must."""
        own = _Ensemble(forest, replace(self, leaf_bits="same"), rows)
        if self.keep == "decisions":
            best, tried = self._keeping_decisions(own, rows)
            promise: Promise = KeepsDecisions()
        else:
            assert judge is not None
            best, tried = self._keeping_accuracy(own, rows, judge)
            promise = Exact() if best is None else Within(float(self.tolerance))
        splits = len(own.splits.tree)
        report = {
            "splits": [splits, splits if best is None else best.splits],
            "cost": [round(own.cost), round(own.cost if best is None else best.cost)],
            "price": None if best is None else round(best.pruned.price, 4),
            "leaf_bits": None if best is None else best.ensemble.bits,
            "rows": own.rows,
            "copies": own.copies,
            "tried": tried,
            "rewired": 0 if best is None else int((best.pruned.condition != own.splits.condition).sum()),
            "added_trees": 0 if best is None else len(best.added),
            "mended": 0 if best is None else best.mended,
            "scores": _scores_are(forest, best is not None),
            "chosen_on_held_out": self.keep == "accuracy" and tried > 1,
        }
        return PassResult(forest if best is None else best.forest(), (promise,), report)

    def _ensembles(self, own: _Ensemble, rows: Rows) -> Iterator[_Ensemble]:
        """The forest with leaves of each number of bits to be tried, fewest first. own: with as many as it has."""
        searched = SEARCHED_BITS if own.forest.decides else BITS_OF_VALUES
        for bits in searched if self.leaf_bits == "auto" else (self.leaf_bits,):
            if bits == "same":
                yield own
            elif self.leaf_bits != "auto" or int(bits) < own.bits:
                yield own.of_bits(int(bits))

    def _prices(self, own: _Ensemble) -> NDArray[np.float64]:
        """Those to try, ascending: fewer of them where each takes long."""
        often = -(-own.trees.leaf.size // FULL_SEARCH)
        step, first = min(MOST_STEP, often), 0
        if self.keep == "decisions":  # low prices change few decisions, and what higher ones change is mended
            step, first = min(MOST_STEP, 2 * often), 3
        prices = PRICES[max(first, step - 1) :: step]
        if self.price == "auto":
            return prices
        return np.array([*prices[prices < float(self.price)], float(self.price)])

    def _keeping_decisions(self, own: _Ensemble, rows: Rows) -> tuple[_Found | None, int]:
        """The cheapest ensemble found that decides every row as the forest does, or None; and the number tried."""
        best: _Found | None = None
        tried, prices = 0, self._prices(own)
        for ensemble in self._ensembles(own, rows):
            missed, cheapest = 0, np.inf
            for found in chain(ensemble.as_given(), ensemble.path(prices)):
                tried += 1
                kept = ensemble.keeping_decisions(found, self.mended)
                if kept is not None:
                    missed, cheapest = 0, min(cheapest, kept.cost)
                    cheaper = kept.cost < (own.cost if best is None else best.cost)
                    if cheaper and _changes_no_decision(own.forest, kept.forest(), rows):
                        best = kept
                elif (missed := missed + 1) * len(PRICES) >= GIVE_UP * len(prices) and best is not None:
                    break
            if best is not None and cheapest > WORSE * best.cost:
                break
        return best, tried

    def _keeping_accuracy(self, own: _Ensemble, rows: Rows, judge: Judge) -> tuple[_Found | None, int]:
        """The cheapest ensemble within the tolerance, or None; and the number tried. With a price given, those at that
        price alone, and if none is within the tolerance, the one that loses least."""
        best: _Found | None = None
        rank, tried, prices = (True, np.inf), 0, self._prices(own)
        for ensemble in self._ensembles(own, rows):
            missed, cheapest = 0, np.inf
            for number, found in enumerate(ensemble.path(prices)):
                if self.price != "auto" and number < len(prices) - 1:
                    continue
                tried += 1
                here = _Found(ensemble, found)
                loss = judge.of(here.forest())
                good = loss.within(self.tolerance)
                now = (not good, here.cost if good else loss.lost)
                if (good or self.price != "auto") and now < rank:
                    best, rank = here, now
                if good:
                    missed, cheapest = 0, min(cheapest, here.cost)
                    continue
                missed += 1
                if missed * len(PRICES) >= GIVE_UP * len(prices) and (cheapest < np.inf or 2 * number > len(prices)):
                    break
            if best is not None and not rank[0] and cheapest > WORSE * best.cost:
                break
        return best, tried


@dataclass(frozen=True)
class _Found:
    """A smaller ensemble. added: trees beside the pruned ones. mended: rows that these put right."""

    ensemble: _Ensemble
    pruned: Pruned
    added: tuple[MendingTree, ...] = ()
    mended: int = 0

    @property
    def cost(self) -> float:
        return self.pruned.cost

    @property
    def splits(self) -> int:
        return self.pruned.splits + sum(tree.splits for tree in self.added)

    def forest(self) -> Forest:
        return self.ensemble.rebuilt(self.pruned, self.added)


def _scores_are(forest: Forest, pruned: bool) -> str:
    """What scores mean: unchanged, also if pruning changed their values; log_odds; or ranking, where only their order
    among the classes has a meaning."""
    if not pruned or not forest.decides:
        return "unchanged"
    return "log_odds" if _odds(forest) else "ranking"


def _odds(forest: Forest) -> bool:
    """Whether its link turns log odds into probabilities: fitted leaves add up to log odds."""
    return forest.link.kind in ("sigmoid", "logistic", "softmax") and forest.link.slope == 1.0


def _changes_no_decision(before: Forest, after: Forest, rows: Rows) -> bool:
    for batch in rows.batches():
        old, new = (evaluate_quickly(forest, encode(forest, batch.X)).index for forest in (before, after))
        if (old != new).any():
            return False
    return True


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
        self.unit = prices(options.cost)
        cost = np.array([comparator_cost(forest, each, self.unit) for each in self.conditions], dtype=np.float64)
        self.splits = Splits(tree_of, first, middle, last, size, condition, cost, 0.0, 0.0)
        values = [tree.values[tree.leaf[nodes]] for tree, (nodes, _) in zip(forest.trees, self.slots, strict=True)]
        present = max((int(leaves.max() - leaves.min()).bit_length() for leaves in values), default=1)
        self.zero = zero_of(forest.decision)
        self.own_bias = np.asarray(forest.bias, dtype=np.int64) - self.zero
        for tree, leaves in zip(forest.trees, values, strict=True):
            self.own_bias[list(tree.outputs)] += leaves.min(axis=0)
        self.own = [leaves - leaves.min(axis=0) for leaves in values]  # counted from their tree's smallest
        columns = _columns(forest, self.conditions)
        most = min(MOST_LEAVES // max(1, len(forest.trees)), MOST_OUTCOMES // max(1, len(columns)))
        drawn = rows_to_fit(
            forest, rows, most, own_labels=options.keep == "decisions", mix=options.mix, seed=options.seed,
            copies=options.copies if forest.decides else 0,
            most_copied=max(1, MOST_COPIED // max(1, len(forest.trees))),
        )  # fmt: skip
        words, self.label, self.rows, self.copies = drawn.words, drawn.label, drawn.rows, drawn.copies
        leaf = np.empty((len(forest.trees), len(words)), dtype=np.int32)
        for index, (tree, (ends, _)) in enumerate(zip(forest.trees, self.slots, strict=True)):
            slot = np.zeros(tree.size, dtype=np.int32)
            slot[ends] = np.arange(len(ends))
            leaf[index] = slot[leaf_nodes(forest, tree, words)]
        self.outcomes = _outcomes(forest, self.conditions, columns, words) if self.conditions else None
        if options.rewire and self.conditions and _plain(forest, self.conditions[0]):
            self.splits = replace(self.splits, outcomes=self.outcomes)
        self.trees = Trees.of(leaf, self.own, [tree.outputs for tree in forest.trees])
        bits = min(max(1, present), 16) if options.leaf_bits in ("same", "auto") else int(options.leaf_bits)
        self._round(bits)
        widths = [len(tree.outputs) for tree in forest.trees]
        alive = sum(width for tree, width in zip(forest.trees, widths, strict=True) if tree.size > 1)
        nodes = sum(width * len(tree.inner) for tree, width in zip(forest.trees, widths, strict=True))
        self.cost = float(cost.sum() + self.splits.node * nodes + self.splits.sum * alive)

    def _round(self, bits: int) -> None:
        """Rounds the forest's leaves to `bits` bits. Fitting finds the biases."""
        self.bits, self.largest = bits, (1 << bits) - 1
        share = bits if self.unit.per_bit else 1 / max(1.0, float(np.mean(np.diff(self.trees.outputs))))  # of an output
        self.splits = replace(self.splits, node=self.unit.split * share, sum=self.unit.tree * share)
        factor = min(1.0, self.largest / max([1, *(int(leaves.max()) for leaves in self.own)]))
        values = [np.floor(leaves * factor + 0.5).astype(np.int64).ravel() for leaves in self.own]
        self.trees = replace(self.trees, value=np.concatenate(values))
        self.factor = factor  # what a score of the forest is worth in those of the rounded leaves
        self.bias = np.zeros(self.forest.n_outputs, dtype=np.int64)
        if self.forest.n_outputs == 1:  # half of the trees vote for each class, until fitting finds better biases
            self.bias -= int(self.largest * len(self.forest.trees)) // 2

    def of_bits(self, bits: int) -> _Ensemble:
        """The same ensemble with leaves of another number of bits; both share the rows."""
        other = copy(self)
        other._round(bits)
        return other

    def as_given(self) -> list[Pruned]:
        """The forest itself, if leaves need no rounding."""
        if self.factor != 1.0:
            return []
        shape, state = as_given(self.trees, self.splits)
        cost, count = cost_of(shape, state, self.splits), len(self.splits.tree)
        return [
            Pruned(
                state.group, state.value, self.own_bias, state.condition, state.flipped, count, cost,
                price=0.0, loss=0.0, unit=float(self.forest.scale or 1.0), state=state,
            )
        ]  # fmt: skip

    def keeping_decisions(self, found: Pruned, mended: float) -> _Found | None:
        """What was found, changed until it decides all rows as the forest does, with at most this share of the rows put
        right by added trees; None if that can't be done."""
        if self.outcomes is None:
            return None
        rows = len(self.label) // (self.copies + 1)
        split = self.unit.split * ADDED_SPLIT
        last, most = self.forest.decision.ties == "last", int(mended * rows)
        wanted = Wanted(self.label[:rows], last, self.largest, most, split, self.unit.tree, self.unit.per_bit)
        shape, _ = as_given(self.trees, self.splits)
        kept = keep_decisions(self.trees, shape, self.splits, self.outcomes, found, wanted)
        return None if kept is None else _Found(self, kept.pruned, kept.added, kept.mended)

    def path(self, prices: NDArray[np.float64]) -> Iterator[Pruned]:
        """Yields the pruned ensemble at one price after the other."""
        scale = len(self.label) / self.rows  # copies count as rows; rows that are not used do not
        if not self.forest.decides:
            wanted = self.label.reshape(len(self.label), -1) * (self.factor / (self.forest.scale or 1.0))
            row = max(float(((wanted - wanted.mean(axis=0)) ** 2).sum()) / len(wanted), 1e-300)
            pruned = prune_squared(self.trees, self.bias, wanted, self.largest, self.splits, prices * scale * row)
        else:
            copies = self.copies + 1
            pruned = prune(
                self.trees, self.bias, self.label, self.largest, self.splits, prices * scale, copies_per_row=copies
            )
        for price, found in zip(prices.tolist(), pruned, strict=True):
            yield replace(found, price=price)

    def rebuilt(self, found: Pruned, added: Sequence[MendingTree] = ()) -> Forest:
        """The forest with the pruned ensemble's conditions and leaves, and added trees; `simplify` removes what became
        redundant."""
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
        trees += [added_tree(tree, self.conditions, place) for place, tree in enumerate(added, len(trees))]
        scale = self.forest.scale
        if _odds(self.forest):
            scale = found.unit
        elif not self.forest.decides:
            scale = (scale or 1.0) / self.factor
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
