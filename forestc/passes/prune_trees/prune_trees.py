"""Implements the pass prune-trees: keeps the trees that the rows need.

Source of the integer program: M. A. Mendes Bastos, H. Brandao and C. Arbex Valle, "Ensemble pruning via an integer
programming approach with diversity constraints", INOC 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.members.least_squares import refit
from forestc.algorithms.members.search import Effort, MemberChoice, search
from forestc.algorithms.members.vote_patterns import Limits
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ForestcError, OptionError, opt
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import Forest, Link
from forestc.passes.base import Pass, PassResult, accepted
from forestc.passes.fit_leaves.fit_leaves import FittingRows, fitted, outputs_follow
from forestc.passes.ladder import AtGivenSettings, Branch, Rung
from forestc.passes.mixed_rows import RowsToFit, rows_to_fit
from forestc.passes.options import Copies, Mix, Range, Seeded, Tolerance, check_options, tried, tried_from
from forestc.passes.promises import Exact, Within
from forestc.passes.prune_trees.selectable import Selectable, selectable, two_classes
from forestc.passes.scorer import Loss, Scorer
from forestc.passes.share_thresholds.drawn_rows import drawn_rows
from forestc.passes.tree_costs import UNITS, bill_of, leaf_bits
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows

# Lists shares of the forest's hardware that the remaining trees may take; the largest is tried first.
SHARES = tuple(float(f"{share:.3g}") for share in np.geomspace(0.85, 0.02, 15))
GIVE_UP = 8  # stops after this many choices in a row that lose too much
# Limits samples times trees times scores; copied samples are left out first.
MOST_VALUES = 1 << 23
SCANS = 8  # limits the scans of all moves, for each tree
WORK, STARTS = 2e8, 4  # samples times trees times scans at most; number of starts at a given price


@dataclass(frozen=True)
class PruneTrees(Seeded, AtGivenSettings):
    """Keeps the trees that the rows need, and adjusts the decision's threshold or the regression's scale.

    Promises: approximate: scored on held-out rows, and refused beyond the tolerance; exact if all trees stay.
    """

    tolerance: Tolerance = 0.01
    price: Annotated[
        float | Literal["auto"],
        Range(0, 1e6, "a number above 0, such as 0.1", above=True, below=True),
        tried_from(0.003, 30.0, log=True),
        "how many rightly decided rows may be lost to save one unit of `cost` (for a regression, in a row's share of "
        "R squared). auto: as little hardware as the tolerance allows.",
    ] = "auto"
    share: Annotated[
        float | Literal["auto"],
        Range(0, 1, "a share up to 1", above=True),
        "largest share of the forest's hardware that may stay; it is approached in steps. auto: the smallest share"
        " that the tolerance allows.",
    ] = "auto"
    cost: Annotated[
        str,
        "unit of hardware: LUTs of a device family (lut6, xcup, ecp5, ice40, gw1n, gw2a, machxo, nexus, gatemate), "
        "flash or instructions of C (also for one processor, as in flash-avr), trees, nodes or comparators.",
    ] = DEFAULT_COST
    times: Annotated[
        int,
        Range(1, 16),
        tried(1, 3),
        "largest factor by which the leaves of a tree may be multiplied; above 1, leaves need more bits.",
    ] = 1
    refit: Annotated[
        bool, tried(False, True), "true: the leaves of the remaining trees are fitted to the rows again."
    ] = False
    copies: Copies = 8
    mix: Mix = 0.1
    name: ClassVar[str] = "prune-trees"
    needs_scorer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if self.cost not in UNITS:
            prices(self.cost)  # raises OptionError for an unknown family

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if not (source.single and source.adds) or (not source.decides and source.n_outputs != 1):
            raise OptionError(
                "needs a sum of trees that decides on one class or gives one value",
                where="pass prune-trees",
                do="remove it from the passes",
            )
        if not source.decides and source.link != Link():
            raise OptionError(
                "a link follows the sum of the trees", where="pass prune-trees", do="remove it from the passes"
            )
        if not outputs_follow(source):
            raise OptionError(
                "the outputs of a tree are not consecutive", where="pass prune-trees", do="remove it from the passes"
            )
        if not have_rows(rows):
            raise OptionError(
                "needs rows", where="pass prune-trees", do=f"give {opt.rows}, or remove it from the passes"
            )

    @property
    def open(self) -> bool:
        return self.share == "auto"

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        report = _totals(forest, rung.forest) | rung.report | {"chosen_on_held_out": tried > 1}
        return PassResult(rung.forest, (Within(float(self.tolerance)),), report)

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> SelectingLadder:
        return SelectingLadder(forest, accepted(self, forest, rows, scorer), self)


def _without_constants(forest: Forest) -> Forest:
    """Returns the forest with its one-leaf trees added to the bias; unchanged if all trees have one leaf."""
    constant = [tree for tree in forest.trees if tree.size == 1]
    if not constant or len(constant) == len(forest.trees):
        return forest
    bias = forest.bias.copy()
    for tree in constant:
        bias[list(tree.outputs)] += tree.values[0]
    return changed(forest, trees=tuple(tree for tree in forest.trees if tree.size > 1), bias=bias)


def _totals(before: Forest, after: Forest) -> dict[str, Any]:
    return {
        unit: [round(bill_of(forest, unit).of(np.ones(len(forest.trees), dtype=bool))) for forest in (before, after)]
        for unit in UNITS
    }


class SelectingLadder:
    """The settings of prune-trees for one forest: smaller and smaller shares of its hardware."""

    def __init__(self, source: Forest, rows: Rows, options: PruneTrees) -> None:
        forest = _without_constants(source)
        self.options, self.forest, self.source = options, forest, source
        classes = max(1, forest.n_outputs if forest.decides and not two_classes(forest) else 1)
        most = max(1, MOST_VALUES // max(1, len(forest.trees) * classes))
        trained = _trained_on(forest, rows, most)
        self.chosen_on = "rows" if trained is None else "rows not trained on"
        copies = 0 if trained is not None or not forest.decides else options.copies
        self.sample = rows_to_fit(forest, rows, most, copies=copies, mix=options.mix, seed=options.seed)
        self.rows = len(self.sample.label) / (self.sample.copies + 1)
        self.trees: Selectable = selectable(
            forest, self.sample, _row_weights(self.sample, forest), trained, options.times
        )
        if options.cost in UNITS:
            self.priced = bill_of(forest, options.cost, family=DEFAULT_COST)
        else:
            self.priced = bill_of(forest, "luts", family=options.cost)

    def cost(self, choice: MemberChoice) -> float:
        return self.priced.of(choice.times > 0)

    def branches(self) -> list[Branch]:
        """Returns a list with a single sequence of settings: falling shares of the hardware, or only the given share or
        price."""
        options = self.options
        if options.price != "auto" or options.share != "auto":
            return [Branch((options,))]
        total = self.priced.of(np.ones(len(self.forest.trees), dtype=bool))
        costs = tuple(share * total for share in SHARES)
        return [Branch(tuple(replace(options, share=share) for share in SHARES), give_up=GIVE_UP, costs=costs)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """Yields each setting with its forest (a rung). Each selection starts from the one before; for a given share,
        only the last is yielded."""
        options = self.options
        if options.price != "auto" or options.share == "auto":
            yield from self._each(steps)
            return
        shares = [*(share for share in SHARES if share > float(options.share)), options.share]
        yield from list(self._each([replace(options, share=share) for share in shares]))[-1:]

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        """Returns the result if no setting is good: all trees. Raises OptionError if a given price loses too much."""
        if losses and self.options.price != "auto":
            _, loss = losses[-1]
            raise OptionError(
                f"of {loss.measure} {loss.lost:.4f} with a standard error of {loss.error:.4f} is lost on "
                f"held-out rows; tolerance={self.options.tolerance:g}",
                where="pass prune-trees",
                do="raise the tolerance, or remove the price",
            )
        report = _totals(self.source, self.source) | {"chosen_on": self.chosen_on, "chosen_on_held_out": tried > 1}
        return PassResult(self.source, (Exact(),), report)

    def _each(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        options, total = self.options, self.priced.of(np.ones(len(self.forest.trees), dtype=bool))
        times = np.ones(len(self.forest.trees), dtype=np.int64)
        priced = options.price != "auto"
        for step in cast(Sequence[PruneTrees], steps):
            share = 1.0 if priced else float(step.share)
            at_most = replace(self.priced, most=min(self.priced.most, share * total))
            price = float(options.price) if priced else 0.0
            limits = Limits(len(self.forest.trees), None, (at_most,), price, options.times)
            choice = search(
                self.trees.task, limits, Effort(STARTS if priced else 1, SCANS, WORK), begin=times, seed=options.seed,
                few=priced,
            )  # fmt: skip
            if choice is None:
                return  # The search found no selection this small.
            times = choice.times
            yield Rung(step, self.cost(choice), partial(self.rebuilt, choice), {"chosen_on": self.chosen_on})

    def rebuilt(self, choice: MemberChoice) -> Forest:
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
    """Returns an array (trees, rows): True where a row trained a tree. Returns None if this is unknown, or for more
    than `most` rows."""
    try:
        drawn = drawn_rows(forest, rows)
    except ForestcError:
        return None
    return drawn > 0 if drawn.shape[1] <= most else None


def _row_weights(sample: RowsToFit, forest: Forest) -> NDArray[np.float64]:
    """Returns the weights (samples,) for `selectable`. A row and its copies together weigh as much as one row."""
    if not forest.decides:
        return np.ones(len(sample.label))
    worth = np.ones(len(sample.label))
    if two_classes(forest):
        worth = np.where(sample.label.astype(np.int64) == 1, 1.0, -1.0)
    return np.asarray(worth / (sample.copies + 1), dtype=np.float64)
