"""prune-trees: keeps the trees of an ensemble that the rows need, by ensemble selection.

The trees are chosen by local search (`algorithms.members.search`) for the weight of the rows decided rightly, at
less and less hardware; of all choices the cheapest within the tolerance on held-out rows is taken. For two classes the
threshold of the decision is chosen along with the trees; a regression gets the scale and the offset with the least
squared error. If the rows are those that the trees were drawn from, each tree is judged by the rows that it was not
trained on; else each row is used with mixed copies. The program for votes is that of M. A. Mendes Bastos, H. Brandao
and C. Arbex Valle, "Ensemble pruning via an integer programming approach with diversity constraints", INOC 2024;
probabilities, sums of boosting, several classes, regression and hardware go beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.members import program as member_program
from forestc.algorithms.members import vote_bounds
from forestc.algorithms.members.least_squares import refit
from forestc.algorithms.members.search import Effort, Found, search
from forestc.algorithms.members.selection import Weights, diversity_of
from forestc.algorithms.members.vote_patterns import Limits, Patterns
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ForestcError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import Forest, Link
from forestc.parameters import Choice, Parameter, Real
from forestc.passes.base import Pass, PassResult, accepted
from forestc.passes.fit_leaves.fit_leaves import FittingRows, fitted, outputs_follow
from forestc.passes.judge import Judge, Loss
from forestc.passes.ladder import AtGivenSettings, Branch, Rung
from forestc.passes.mixed_rows import RowsToFit, rows_to_fit
from forestc.passes.option_rules import FLAG, PRICE, SEED, SHARE, TOLERANCE, Rule, check_options, is_number, whole
from forestc.passes.promises import Exact, Within
from forestc.passes.prune_trees.selectable import Selectable, differences, selectable, two_classes
from forestc.passes.share_thresholds.drawn_rows import drawn_rows
from forestc.passes.tree_costs import UNITS, bill_of, leaf_bits
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows

# shares of the forest's hardware that are tried, one after the other
SHARES = tuple(float(f"{share:.3g}") for share in np.geomspace(0.85, 0.02, 15))
GIVE_UP = 8  # successive choices that lose too much after which the search ends
MOST_VALUES = 1 << 23  # samples times trees times scores; beyond it, fewer copies, then fewer rows are used
SCANS = 8  # of all moves, for each tree, at most
WORK, STARTS = 2e8, 4  # samples times trees times scans at each price; starts of the search at a price

_POSITIVE = whole(1).or_(None, do="use a whole number from 1 on")
_RULES = {
    "tolerance": TOLERANCE,
    "weights": Rule(
        lambda value: (
            value in ("accuracy", "balanced")
            or (isinstance(value, list | tuple) and len(value) == 4 and all(map(is_number, value)))
        ),
        "use accuracy, balanced, or four numbers: of true positives, false negatives, true and false positives",
    ),
    "price": PRICE,
    "share": Rule(
        lambda value: value == "auto" or (is_number(value) and 0 < value <= 1), "use auto or a share up to 1"
    ),
    **{f"most_{unit}": _POSITIVE for unit in UNITS},
    "tau": SHARE,
    "gamma": SHARE,
    "times": whole(1, 16),
    "refit": FLAG,
    "seconds": Rule(lambda value: is_number(value) and 0 <= value < 1e6, "use a number of seconds"),
    "copies": whole(0, 100),
    "mix": SHARE,
    "seed": SEED,
}


@dataclass(frozen=True)
class PruneTrees(AtGivenSettings):
    """Keeps the trees that the rows need and sets the decision's threshold or the regression's scale to them.

    Promises: approximate: judged on held-out rows, and refused beyond the tolerance; exact if no choice of fewer trees
    is within it, as all trees then stay.

    tolerance: the accuracy (R squared) that may be lost against the model on held-out rows, including a standard
    error.
    weights: what is maximized on the rows: accuracy; balanced, the mean of the classes' accuracies; or of two classes
    four numbers, the worth of a true positive, false negative, true negative and false positive.
    price: auto (as little hardware as the tolerance allows), or what a unit of `cost` is worth, in units of a row
    decided rightly (of a regression, of its share of R squared).
    cost: what the price is of: LUTs of a device family (lut6, xcup, ecp5, ice40), flash or instructions of C (of a
    processor as in flash-avr), trees, nodes or comparators.
    most_trees: the most trees that are kept; null for no limit.
    most_nodes: the most nodes with a condition.
    most_comparators: the most distinct conditions.
    most_luts: the most LUTs, by the prices of `cost`.
    tau: the least diversity of each tree from the other trees kept (of two classes; pairwise failure crediting).
    gamma: the least mean diversity.
    share: of the forest's hardware that is kept at most, found by keeping less and less; auto: the least that the
    tolerance allows.
    times: how often a tree may count at most; above 1, leaves are multiplied and need more bits.
    refit: whether the leaves of the trees kept are fitted to the rows again.
    seconds: for HiGHS to better and bound the choice, of votes of two classes without a price of its own; results then
    depend on the machine's speed.
    copies: number of copies of each row with mixed values.
    mix: share of a copy's values that come from other rows of its class.
    seed: of the search and the mixing.
    """

    tolerance: float = 0.01
    weights: str | tuple[float, ...] = "accuracy"
    price: float | str = "auto"
    share: float | str = "auto"
    cost: str = DEFAULT_COST
    most_trees: int | None = None
    most_nodes: int | None = None
    most_comparators: int | None = None
    most_luts: int | None = None
    tau: float = 0.0
    gamma: float = 0.0
    times: int = 1
    refit: bool = False
    seconds: float = 0
    copies: int = 8
    mix: float = 0.1
    seed: int = 0
    name: ClassVar[str] = "prune-trees"
    needs_judge: ClassVar[bool] = True
    space: ClassVar[tuple[Parameter, ...]] = (
        Real("price", 0.003, 30.0, log=True, approximate=True),
        Choice("times", (1, 3), approximate=True),
        Choice("refit", (False, True), approximate=True),
    )

    def __post_init__(self) -> None:
        check_options(self, _RULES)
        if self.cost not in UNITS:
            prices(self.cost)  # raises for an unknown family
        if not isinstance(self.weights, str):
            object.__setattr__(self, "weights", tuple(self.weights))

    def refuse(self, source: Forest, rows: Rows | None, judge: Judge | None) -> None:
        if source.parts or source.aggregate.kind != "sum" or (not source.decides and source.n_outputs != 1):
            raise OptionError(
                "prune-trees needs a sum of trees that decides on one class or gives one value",
                do="remove it from the passes",
            )
        if not source.decides and source.link != Link():
            raise OptionError("prune-trees: a link follows the sum of the trees", do="remove it from the passes")
        if not outputs_follow(source):
            raise OptionError("prune-trees: the outputs of a tree are not consecutive", do="remove it from the passes")
        for option, value in (("tau", self.tau), ("gamma", self.gamma), ("seconds", self.seconds)):
            if value and not two_classes(source):
                raise OptionError(f"prune-trees: {option} is for two classes", do=f"remove {option}")
        if self.seconds and self.times > 1:
            raise OptionError("prune-trees: seconds is for trees that count once", do="remove seconds or times")
        if isinstance(self.weights, tuple) and not two_classes(source):
            raise OptionError("prune-trees: four weights are for two classes", do="use accuracy or balanced")
        if not have_rows(rows):
            raise OptionError("prune-trees needs rows", do="give --rows, or remove it from the passes")

    @property
    def open(self) -> bool:
        return self.share == "auto"

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """As `Laddered` has it."""
        report = _totals(forest, rung.forest) | rung.report | {"chosen_on_held_out": tried > 1}
        return PassResult(rung.forest, (Within(float(self.tolerance)),), report)

    def ladder(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> SelectingLadder:
        """Raises OptionError, also for limits that contradict one another."""
        return SelectingLadder(forest, accepted(self, forest, rows, judge), self)


def _without_constants(forest: Forest) -> Forest:
    """The forest with trees of a single leaf in the bias, if any tree is larger."""
    constant = [tree for tree in forest.trees if tree.size == 1]
    if not constant or len(constant) == len(forest.trees):
        return forest
    bias = forest.bias.copy()
    for tree in constant:
        bias[list(tree.outputs)] += tree.values[0]
    return changed(forest, trees=tuple(tree for tree in forest.trees if tree.size > 1), bias=bias)


def _totals(before: Forest, after: Forest) -> dict[str, Any]:
    """What both forests take, in each unit."""
    return {
        unit: [round(bill_of(forest, unit).of(np.ones(len(forest.trees), dtype=bool))) for forest in (before, after)]
        for unit in UNITS
    }


class SelectingLadder:
    """Choices of a forest's trees, of less and less hardware."""

    def __init__(self, whole: Forest, rows: Rows, options: PruneTrees) -> None:
        forest = _without_constants(whole)
        self.options, self.forest, self.whole = options, forest, whole
        classes = max(1, forest.n_outputs if forest.decides and not two_classes(forest) else 1)
        most = max(1, MOST_VALUES // max(1, len(forest.trees) * classes))
        trained = _trained_on(forest, rows, most)
        self.chosen_on = "rows" if trained is None else "rows not trained on"
        copies = 0 if trained is not None or not forest.decides else options.copies
        self.sample = rows_to_fit(forest, rows, most, copies=copies, mix=options.mix, seed=options.seed)
        self.rows = len(self.sample.label) / (self.sample.copies + 1)
        self.trees: Selectable = selectable(
            forest, self.sample, _row_weights(self.sample, forest, options), trained, options.times
        )
        limits = {unit: getattr(options, f"most_{unit}") for unit in UNITS}
        self.limited = any(limit is not None for limit in limits.values())
        family = options.cost if options.cost not in UNITS else DEFAULT_COST
        self.priced = bill_of(forest, "luts" if options.cost not in UNITS else options.cost, family=family)
        bills = [
            bill_of(forest, unit, float(limit), family=family)
            for unit, limit in limits.items()
            if limit is not None and unit != "trees"
        ]
        for bill in bills:
            least = float(min(bill.of(np.eye(len(forest.trees), dtype=bool)[k]) for k in range(len(forest.trees))))
            if least > bill.most:
                raise OptionError(
                    f"prune-trees: most_{bill.name}={bill.most:g}, and the smallest tree takes {least:.4g}",
                    do=f"raise most_{bill.name}",
                )
        self.diversity = None
        if options.tau or options.gamma:
            votes = differences(forest, self.trees.leaf[:, : self.sample.rows])
            middle = (votes.max(axis=1, keepdims=True) + votes.min(axis=1, keepdims=True)) / 2
            y = self.sample.label[: votes.shape[1]].astype(np.uint8)
            self.diversity = diversity_of(
                (votes > middle).T.astype(np.uint8), y, options.tau, options.gamma, limits["trees"]
            )
        self.most = len(forest.trees) if limits["trees"] is None else limits["trees"]
        self.bills = (self.priced, *bills)
        self.bound: float | None = None

    def cost(self, choice: Found) -> float:
        return self.priced.of(choice.times > 0)

    def branches(self) -> list[Branch]:
        """Less and less of the forest's hardware; or the given share or price."""
        options = self.options
        if options.price != "auto" or options.share != "auto":
            return [Branch((options,))]
        whole = self.priced.of(np.ones(len(self.forest.trees), dtype=bool))
        costs = tuple(share * whole for share in SHARES)
        return [Branch(tuple(replace(options, share=share) for share in SHARES), give_up=GIVE_UP, costs=costs)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """Each from the one before; at a given share, the last on the way there."""
        options = self.options
        if options.price != "auto" or options.share == "auto":
            yield from self._each(steps)
            return
        shares = [*(share for share in SHARES if share > float(options.share)), options.share]
        yield from list(self._each([replace(options, share=share) for share in shares]))[-1:]

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        """All trees. Raises OptionError if the user asked for fewer."""
        if losses and (self.limited or self.options.price != "auto"):
            _, loss = losses[-1]
            raise OptionError(
                f"prune-trees: of {loss.measure} {loss.lost:.4f} with a standard error of {loss.error:.4f} is lost on "
                f"held-out rows; tolerance={self.options.tolerance:g}",
                do="raise the tolerance, loosen the limits, or remove the price",
            )
        report = _totals(self.whole, self.whole) | {"chosen_on": self.chosen_on, "chosen_on_held_out": tried > 1}
        return PassResult(self.whole, (Exact(),), report)

    def _each(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        options, whole_cost = self.options, self.priced.of(np.ones(len(self.forest.trees), dtype=bool))
        times = np.ones(len(self.forest.trees), dtype=np.int64)
        priced = options.price != "auto"
        for step in cast(Sequence[PruneTrees], steps):
            share = 1.0 if priced else float(step.share)
            at_most = replace(self.priced, most=min(self.priced.most, share * whole_cost))
            price = float(options.price) if priced else 0.0
            limits = Limits(self.most, self.diversity, (at_most, *self.bills[1:]), price)
            choice = search(
                self.trees.task, limits, Effort(STARTS if priced else 1, SCANS, WORK), begin=times, seed=options.seed,
                most_times=options.times, few=priced,
            )  # fmt: skip
            if choice is None:
                if times.all() and (self.limited or self.diversity is not None):
                    raise OptionError("prune-trees: no trees keep all limits", do="loosen most_..., tau or gamma")
                return  # nothing as small
            if self.options.seconds and isinstance(self.trees.task, Patterns):
                choice = self._solved(self.trees.task, limits, choice)
            times = choice.times
            report: dict[str, Any] = {"chosen_on": self.chosen_on}
            if self.bound is not None:
                report |= {"value": choice.gained, "bound": self.bound}
            yield Rung(step, self.cost(choice), partial(self.rebuilt, choice), report)

    def _solved(self, task: Patterns, limits: Limits, choice: Found) -> Found:
        """The choice after HiGHS tried to better it without a price, at no more hardware."""
        at_most = replace(self.priced, most=self.cost(choice))
        most = Limits(limits.most, limits.diversity, (at_most, *limits.bills[1:]))
        half = float(self.options.seconds) / 2
        cuts = vote_bounds.bound(task, half) if int(task.votes.max(initial=0)) <= 1 else None
        solved = member_program.solve(task, most, choice, () if cuts is None else cuts.sets, half, self.options.seed)
        self.bound = solved.bound if cuts is None else min(cuts.value, solved.bound)
        return solved.found

    def rebuilt(self, choice: Found) -> Forest:
        """The forest of a choice, its leaves fitted again if wanted."""
        after = self.trees.rebuilt(choice.times)
        if not self.options.refit or not after.trees:
            return after
        leaf = self.trees.leaf[np.flatnonzero(choice.times)]
        if not after.decides:
            assert after.scale is not None
            target = self.sample.label.ravel().astype(np.float64) / after.scale
            fitted_values = refit(leaf, [tree.values[:, 0] for tree in after.trees], float(after.bias[0]), target)
            return _with_values(after, [leaves[:, None] for leaves in fitted_values], after.bias)
        low = [tree.values.min(axis=0) for tree in after.trees]
        values = [tree.values - least for tree, least in zip(after.trees, low, strict=True)]
        bias = after.bias.copy()
        for tree, least in zip(after.trees, low, strict=True):
            bias[list(tree.outputs)] += least
        bits = max(leaf_bits(tree.values) for tree in after.trees)
        on = FittingRows(leaf, self.sample.label.astype(np.int64))
        return _with_values(
            after, *fitted(values, [tree.outputs for tree in after.trees], bias, after.decision, bits, on)
        )


def _with_values(forest: Forest, values: list[NDArray[np.int64]], bias: NDArray[np.int64]) -> Forest:
    trees = tuple(changed_tree(tree, values=leaves) for tree, leaves in zip(forest.trees, values, strict=True))
    return changed(forest, trees=trees, bias=bias)


def _trained_on(forest: Forest, rows: Rows, most: int) -> NDArray[np.bool_] | None:
    """(trees, rows) which trees were trained on which rows; None if the rows are not those that the source drew from,
    or every n-th of them is used."""
    try:
        drawn = drawn_rows(forest, rows)
    except ForestcError:
        return None
    return drawn > 0 if drawn.shape[1] <= most else None


def _row_weights(sample: RowsToFit, forest: Forest, options: PruneTrees) -> NDArray[np.float64]:
    """(samples,) as `selectable` takes them; all samples of a row together count once."""
    if not forest.decides:
        return np.ones(len(sample.label))
    label = sample.label.astype(np.int64)
    count = np.bincount(label, minlength=len(forest.classes))
    if (missing := np.flatnonzero(count == 0)).size and options.weights != "accuracy":
        raise OptionError(
            f"prune-trees: no row is of class {forest.classes[int(missing[0])]}",
            do="give rows of it, or weights=accuracy",
        )
    worth = np.ones(len(label))
    if options.weights == "balanced":
        worth = (len(label) / (len(count) * np.maximum(count, 1)))[label]
    if two_classes(forest):
        named = Weights(*options.weights) if isinstance(options.weights, tuple) else Weights()
        positive = named.true_positive - named.false_negative
        negative = named.false_positive - named.true_negative
        worth = worth * np.where(label == 1, positive, negative)
    return np.asarray(worth / (sample.copies + 1), dtype=np.float64)
