"""Implements the pass prune-splits: turns unneeded splits into leaves.

A split is removed if the loss then rises by less than the split's cost times a price. Splits may also exchange
conditions (`forestc.algorithms.splits.rewiring`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

import numpy as np

from forestc.algorithms.splits.pruning import Start
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest, Link
from forestc.passes.base import Memory, Pass, PassResult, accepted, print_pass
from forestc.passes.fit_leaves.fit_leaves import outputs_follow
from forestc.passes.ladder import AtGivenSettings, Branch, Rung, as_given
from forestc.passes.options import (
    SHARE,
    Copies,
    Mix,
    Range,
    Seeded,
    Tolerance,
    check_options,
    tried,
    tried_from,
)  # fmt: skip
from forestc.passes.promises import Exact, KeepsDecisions, Promise, Within
from forestc.passes.prune_splits.ensemble import SmallerEnsemble, SplitEnsemble, has_odds
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows

FULL_SEARCH = 1 << 21  # samples times trees; beyond that, fewer prices are tried
# Lists prices of a unit of `cost`; 1 is the loss of one wrong row. Higher prices remove more splits.
PRICES = tuple(float(f"{price:.3g}") for price in np.geomspace(0.02, 34, 18))
EITHER = "accuracy-or-decisions"
MOST_STEP = 4  # tries at least every fourth of PRICES, unless stride is larger
FURTHER = 5.7  # stops above this many times the last price that kept all decisions
GIVE_UP = 4  # stops after this many failing prices in a row, if all are tried
Bits: TypeAlias = int | Literal["same", "auto"]
SEARCHED_BITS: tuple[Bits, ...] = (1, 2, 3, "same")  # tries these for leaf_bits=auto
BITS_OF_VALUES: tuple[Bits, ...] = (3, 4, 6, 8, "same")  # tries these for leaf_bits=auto of a regression


@dataclass(frozen=True)
class PruneSplits(Seeded, AtGivenSettings):
    """Turns splits that the rows hardly need into leaves and fits the rest to the rows: fewer LUTs. Runs after
    round-leaves.

    Promises: approximate: scored on held-out rows, and refused beyond the tolerance; exact if the forest stays. With
    keep=decisions exact-on-data.
    """

    keep: Annotated[
        Literal["accuracy", "decisions", "accuracy-or-decisions"],
        "what the pruned forest must keep. accuracy: the accuracy on held-out rows, within the tolerance; "
        "decisions: every decision of the given rows; accuracy-or-decisions: decisions if no smaller forest "
        "keeps the accuracy.",
    ] = "accuracy"
    tolerance: Tolerance = 0.01
    price: Annotated[
        float | Literal["auto"],
        Range(0, 1e6, "a number", below=True),
        tried_from(0.02, 30.0, log=True),
        "loss that saving one LUT may cost, in units of the loss of one wrongly decided row; a higher price "
        "removes more splits. auto: tries several prices and takes the cheapest forest that the option keep "
        "allows.",
    ] = "auto"
    stride: Annotated[
        int,
        Range(1, 6),
        "tries only every n-th price; a larger number is faster.",
    ] = 1
    leaf_bits: Annotated[
        Bits,
        Range(1, 16),
        tried(1, 2, 3, "same"),
        "bits of a leaf; same: as many bits as before; auto: the cheapest of 1, 2, 3 and same.",
    ] = "auto"
    mended: Annotated[
        float,
        SHARE,
        "with keep=decisions: largest share of the rows whose decision pruning changes and small added "
        "trees then restore; 0: no tree is added.",
    ] = 0.02
    rewire: Annotated[
        bool,
        tried(True, False),
        "true: a split may take the condition of another split of the forest, which costs no comparator.",
    ] = True
    copies: Annotated[Copies, tried(0, 2, 8)] = 8
    mix: Annotated[Mix, tried(0.05, 0.1, 0.2, when={"copies": (2, 8)})] = 0.1
    cost: Annotated[
        str,
        "cost to minimize: LUTs of a device family (lut6, xcup, ecp5, ice40, gw1n, gw2a, machxo, nexus, gatemate), "
        "or flash or instructions of C, also for one processor as in flash-avr or instructions-cortex-m0plus.",
    ] = DEFAULT_COST
    name: ClassVar[str] = "prune-splits"

    def __post_init__(self) -> None:
        check_options(self)
        prices(self.cost)  # raises OptionError for an unknown family
        if self.price == 0 and self.keep != "decisions":
            raise OptionError("price=0", where="pass prune-splits", do="use a number above 0, auto, or keep=decisions")
        if self.keep == EITHER and self.price != "auto":
            raise OptionError(
                f"keep={EITHER} searches the price", where="pass prune-splits", do="remove price, or use keep=accuracy"
            )

    @property
    def needs_scorer(self) -> bool:
        return self.keep != "decisions"

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if not source.single:
            raise OptionError(
                "needs a model that decides on one class", where="pass prune-splits", do="remove it from the passes"
            )
        if not source.decides and self.keep == "decisions":
            raise OptionError(
                "a regression has no decisions to keep",
                where="pass prune-splits",
                do=f"use keep=accuracy, whose tolerance is of R squared, and give {opt.held_out}",
            )
        if not source.decides and source.link != Link():
            raise OptionError(
                f"takes no regression with the link {source.link.kind}",
                where="pass prune-splits",
                do="remove it from the passes",
            )
        if source.aggregate.kind != "sum":
            raise OptionError("needs a sum of trees", where="pass prune-splits", do="remove it from the passes")
        if not outputs_follow(source):
            raise OptionError(
                "the outputs of a tree are not consecutive", where="pass prune-splits", do="remove it from the passes"
            )
        if not have_rows(rows):
            raise OptionError(
                "needs rows: they say which splits are needed",
                where="pass prune-splits",
                do=f"give {opt.rows}, or remove it from the passes",
            )

    def run_remembering(self, forest: Forest, rows: Rows | None, memory: Memory) -> PassResult:
        """Runs the pass, starting from arrays in `memory` if any fit."""
        return as_given(self, forest, PruningLadder(forest, accepted(self, forest, rows, None), self, memory))

    @property
    def open(self) -> bool:
        return self.keep != "accuracy" or "auto" in (self.price, self.leaf_bits)

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        promise: Promise = KeepsDecisions() if self.keep == "decisions" else Within(float(self.tolerance))
        return PassResult(rung.forest, (promise,), self.counted(rung.report, tried))

    def counted(self, report: dict[str, Any], tried: int) -> dict[str, Any]:
        return report | {"tried": tried, "chosen_on_held_out": self.keep != "decisions" and tried > 1}

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PruningLadder:
        return PruningLadder(forest, accepted(self, forest, rows, scorer), self)


class PruningLadder:
    """The settings of prune-splits for one forest: prices from low to high for each number of leaf bits."""

    def __init__(self, forest: Forest, rows: Rows, options: PruneSplits, memory: Memory | None = None) -> None:
        self.either = options.keep == EITHER
        self.options = replace(options, keep="accuracy") if self.either else options
        self.forest, self.memory = forest, memory
        self.own = SplitEnsemble(
            forest, rows, prices(options.cost), rewire=options.rewire, keeps=options.keep == "decisions",
            copies=options.copies, mix=options.mix, seed=options.seed,
        )  # fmt: skip

    def branches(self) -> list[Branch]:
        options, ensemble = self.options, self.own
        searched = SEARCHED_BITS if ensemble.forest.decides else BITS_OF_VALUES
        bits: list[Bits] = [options.leaf_bits]
        if options.leaf_bits == "auto":
            bits = [bits for bits in searched if bits == "same" or int(bits) < ensemble.bits]
        if options.keep == "accuracy" and options.price != "auto":
            return [Branch((replace(options, leaf_bits=count),), grows=True) for count in bits]
        prices = self._prices()
        give_up = -(-GIVE_UP * len(prices) // len(PRICES))
        unpruned = options.keep == "decisions" and options.price != 0
        return [
            Branch(
                tuple(
                    replace(options, leaf_bits=count, price=price)
                    for price in [*([0.0] if unpruned and ensemble.of_bits(count).as_given() else []), *prices]
                ),
                give_up=give_up,
                at_least=0 if options.keep == "decisions" else len(prices) // 2,
                alone=options.keep == "decisions",
            )
            for count in bits
        ]

    def _prices(self) -> list[float]:
        """Returns a list of the prices to try, ascending; a shorter one for many rows and trees."""
        often = -(-self.own.trees.leaf.size // FULL_SEARCH)
        step, first = max(self.options.stride, min(MOST_STEP, often)), 0
        # Low prices are skipped, because decisions that higher prices change can be corrected.
        if self.options.keep == "decisions":
            step, first = max(self.options.stride, min(MOST_STEP, 2 * often)), 3
        prices = list(PRICES[max(first, step - 1) :: step])
        if self.options.price == "auto":
            return prices
        last = float(self.options.price)
        return [*(price for price in prices if price < last), last]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        settings = cast(Sequence[PruneSplits], steps)
        bits = settings[0].leaf_bits
        if self.options.keep == "accuracy" and self.options.price != "auto":
            yield self._at_price(settings[0])
            return
        ensemble = self.own.of_bits(bits)
        if self.options.keep == "accuracy":
            path = ensemble.path(np.array([float(step.price) for step in settings]))
            for step, pruned in zip(settings, path, strict=True):
                yield self._rung(step, SmallerEnsemble(ensemble, pruned))
            return
        path = ensemble.path(np.array([float(step.price) for step in settings if step.price]))
        best: SmallerEnsemble | None = None
        last = lowest = min((float(step.price) for step in settings if step.price), default=0.0)
        for step in settings:
            price, any_found = float(step.price), False
            for start in (next(path),) if price else ensemble.as_given():
                bound = self.own.cost if best is None else best.cost
                smaller = ensemble.keeping_decisions(start, self.options.mended, bound)
                if smaller is not None:
                    last, any_found = max(price, lowest), True  # the last price at which all decisions were kept
                    best = smaller if smaller.cost < bound else best
            if best is not None and price > FURTHER * last:
                return
            yield self._rung(step, best)
            if self.options.stride > 1 and price == lowest and not any_found:
                return  # With stride > 1 the search ends here, because higher prices change more decisions.

    def _rung(self, step: PruneSplits, smaller: SmallerEnsemble | None) -> Rung:
        if smaller is None:
            return Rung(step, self.own.cost, lambda: self.forest, self.unchanged, smaller=False)
        report = self.unchanged | {
            "splits": [self.unchanged["splits"][0], smaller.splits],
            "cost": [round(self.own.cost), round(smaller.cost)],
            "price": round(smaller.pruned.price, 4),
            "leaf_bits": smaller.ensemble.bits,
            "rewired": int((smaller.pruned.condition != self.own.splits.condition).sum()),
            "added_trees": len(smaller.added),
            "mended": smaller.mended,
            "scores": _scores_are(self.forest, True),
        }
        return Rung(step, smaller.cost, smaller.forest, report)

    @property
    def unchanged(self) -> dict[str, Any]:
        splits, cost = len(self.own.splits.tree), round(self.own.cost)
        return {
            "splits": [splits, splits], "cost": [cost, cost], "price": None, "leaf_bits": None, "rows": self.own.rows,
            "copies": self.own.copies, "rewired": 0, "added_trees": 0, "mended": 0,
            "scores": _scores_are(self.forest, False),
        }  # fmt: skip

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult | PruneSplits:
        """Returns what to do if no setting is good: take the scored result of least loss at a given price, or run the
        pass with keep=decisions, or keep the forest."""
        options = self.options
        if options.price != "auto" and losses:
            return options.result(self.forest, min(losses, key=lambda scored: scored[1].lost)[0], tried)
        if self.either and self.forest.decides:
            return replace(options, keep="decisions")
        promise: Promise = KeepsDecisions() if options.keep == "decisions" else Exact()
        return PassResult(self.forest, (promise,), options.counted(self.unchanged, tried))

    def _at_price(self, last: PruneSplits) -> Rung:
        """Returns the setting `last` with its forest (a rung). The forest is pruned at lower prices first."""
        way = [replace(last, price=price) for price in self._prices()]
        ensemble, memory = self.own.of_bits(last.leaf_bits), self.memory
        first, start = 0 if memory is None else len(way) - 1, None
        while memory is not None and first > 0 and start is None:
            arrays = memory.recall(print_pass(way[first - 1]))
            start = None if arrays is None else ensemble.start_of(arrays)
            first -= start is None
        path = ensemble.path(np.array([float(step.price) for step in way[first:]]), start)
        for step, pruned in zip(way[first:], path, strict=True):
            if memory is not None and step is not way[-1]:
                memory.remember(print_pass(step), {name: getattr(pruned, name) for name in Start._fields})
        return self._rung(last, SmallerEnsemble(ensemble, pruned))


def _scores_are(forest: Forest, pruned: bool) -> str:
    """Returns the meaning of scores after pruning: "unchanged", "log_odds", or "ranking" (only their order counts)."""
    if not pruned or not forest.decides:
        return "unchanged"
    return "log_odds" if has_odds(forest) else "ranking"
