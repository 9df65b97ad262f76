"""Implements the pass regrow-trees: replaces the forest by a smaller ensemble, grown by boosting with prices for
hardware.

For LUTs all nodes of a level share one condition, so that a tree is a lookup table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np

from forestc.algorithms.boosting.boost import Boosted, integer_bias
from forestc.algorithms.boosting.trees import Growth
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult, accepted
from forestc.passes.grown_trees import constant_tree, leaf_unit, sum_of_trees
from forestc.passes.ladder import AtGivenSettings, Branch, Rung
from forestc.passes.mixed_rows import rows_to_fit
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
from forestc.passes.promises import Exact, Within
from forestc.passes.regrow_trees.candidates import grower_of
from forestc.passes.scorer import Loss, Scorer
from forestc.passes.tree_costs import bill_of
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows

LEAVES = 16  # leaves of a tree for processors at most
# Lists the numbers of trees that are tried for each score, in this order.
TREES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 110, 150)
# Lists prices of a unit of `cost`; 1 is the loss of one row. Higher prices shrink trees.
PRICES = (3.0, 1.0, 0.3)
BITS = {True: (1, 2), False: (4,)}  # bits of leaves that are tried, for classes and for a regression
READ = 100  # columns that a tree may read at most, drawn for each tree
MOST_CODES = 1 << 21  # rows times columns of a tree at most; beyond that, fewer rows are used
MOST_COPIED = 1 << 20  # rows and copies, times columns of a tree, at most
ENDED = 0.7  # ends a sequence if fewer than this share of the trees is grown
CANDIDATE = 30  # steps of work to weigh one candidate in one node
WORK = 2e10  # steps of work at most, of some nanoseconds each


@dataclass(frozen=True)
class RegrowTrees(Seeded, AtGivenSettings):
    """Grows a smaller ensemble in the forest's place, from cheap conditions. Runs after round-leaves.

    Promises: approximate: scored on held-out rows, and refused beyond the tolerance; exact if the forest stays.
    """

    tolerance: Tolerance = 0.01
    trees: Annotated[
        int | Literal["auto"],
        Range(1, 1000),
        tried_from(1, 100, log=True),
        "trees for each score at most (one score for each class, if there are more than two); auto: the smallest "
        "ensemble within the tolerance.",
    ] = "auto"
    price: Annotated[
        float | Literal["auto"],
        Range(0, 1e6, "a number, such as 0.5", below=True),
        tried_from(0.03, 10.0, log=True),
        "loss that a LUT must save, in units of the loss of one row; auto: 3, 1 and 0.3 are tried.",
    ] = "auto"
    leaf_bits: Annotated[
        int | Literal["auto"],
        Range(1, 8),
        tried(1, 2, 3),
        "bits of a leaf; auto: 1 and 2 are tried, or 4 for a regression.",
    ] = "auto"
    depth: Annotated[
        int, Range(1, 6), tried_from(3, 6), "depth of a tree at most: conditions from its root to a leaf."
    ] = 6
    sweeps: Annotated[
        int, Range(0, 20), tried(0, 2, 4), "how often each tree is grown again while the others stay."
    ] = 2
    copies: Annotated[Copies, tried(0, 3, 8)] = 3
    mix: Mix = 0.1
    noise: Annotated[
        float,
        SHARE,
        tried(0.0, 0.05, 0.1, when={"copies": (3, 8)}),
        "how far the values of copies move, as a standard deviation in ranks: 0.1 is a tenth of the rows.",
    ] = 0.0
    cost: Annotated[
        str,
        "cost that trees pay for: LUTs of a device family (lut6, xcup, ecp5, ice40, gw1n, gw2a, machxo, nexus, "
        "gatemate), or flash or instructions of C, also for one processor as in flash-avr or "
        "instructions-cortex-m0plus.",
    ] = DEFAULT_COST
    name: ClassVar[str] = "regrow-trees"
    needs_scorer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if self.noise and not self.copies:
            raise OptionError("noise is for the copies of rows", where="pass regrow-trees", do="give copies=1 or more")
        prices(self.cost)  # raises OptionError for an unknown family

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        remove = "remove it from the passes"
        if len(source.targets) > 1:
            raise OptionError("needs a model of one target", where="pass regrow-trees", do=remove)
        if not source.decides and (source.n_scores > 1 or source.link.kind == "order"):
            raise OptionError(
                "needs a model that decides, or returns a single value", where="pass regrow-trees", do=remove
            )
        if len(source.classes) == 1:
            raise OptionError("needs a model of two classes or more", where="pass regrow-trees", do=remove)
        if not have_rows(rows):
            raise OptionError(
                "needs rows: it learns from them", where="pass regrow-trees", do=f"give {opt.rows}, or {remove}"
            )

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        return PassResult(rung.forest, (Within(float(self.tolerance)),), rung.report | _chosen(tried))

    @property
    def open(self) -> bool:
        return "auto" in (self.trees, self.price, self.leaf_bits)

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> GrowingLadder:
        return GrowingLadder(forest, accepted(self, forest, rows, scorer), self)


def _chosen(tried: int) -> dict[str, Any]:
    return {"tried": tried, "chosen_on_held_out": tried > 1}


class GrowingLadder:
    """The settings of regrow-trees for one forest: growing numbers of trees, for each price and number of leaf bits."""

    def __init__(self, forest: Forest, rows: Rows, options: RegrowTrees) -> None:
        self.forest, self.options, self.work, self.most_work = forest, options, 0.0, WORK
        read = max(1, min(READ, len(forest.features)))
        drawn = rows_to_fit(
            forest, rows, MOST_CODES // read, most_copied=MOST_COPIED // read,
            copies=options.copies, mix=options.mix, noise=options.noise, seed=options.seed,
        )  # fmt: skip
        label = np.asarray(drawn.label, dtype=np.float64).reshape(len(drawn.words), -1)[:, 0]
        self.grower = grower_of(forest, drawn.words, label, prices(options.cost))
        self.rows = drawn.rows
        self.before = bill_of(forest, "luts", family=options.cost).of(np.ones(len(forest.trees), dtype=bool))
        self.unchanged: dict[str, Any] = {
            "trees": [len(forest.trees)] * 2, "cost": [round(self.before)] * 2, "price": None, "leaf_bits": None,
            "rows": drawn.rows, "copies": drawn.copies, "scores": "unchanged",
        }  # fmt: skip

    def branches(self) -> list[Branch]:
        options, decides = self.options, self.forest.decides
        return [
            Branch(
                tuple(
                    replace(options, leaf_bits=int(bits), price=price, trees=int(trees))
                    for trees in _values(options.trees, TREES)
                ),
                grows=True,
                most=self.before,
            )
            for bits, price in product(_values(options.leaf_bits, BITS[decides]), _values(options.price, PRICES))
        ]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        for step in cast(Sequence[RegrowTrees], steps):
            growth = self._growth(step)
            work = self._steps(growth)
            if self.work and self.work + work > self.most_work:
                return
            self.work += work
            grown = self.grower.grown(growth)
            report = self.unchanged | {
                "trees": [self.unchanged["trees"][0], len(grown.trees)],
                "cost": [round(self.before), round(grown.spent)],
                "price": round(growth.price * self.rows, 4),
                "leaf_bits": growth.leaf_bits,
                "scores": "log_odds" if self.forest.decides else "values",
            }
            last = len(grown.trees) < ENDED * growth.rounds * self.grower.outputs
            yield Rung(step, grown.spent, partial(self.rebuilt, grown, growth), report, last)

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        return PassResult(self.forest, (Exact(),), self.unchanged | _chosen(tried))

    def _steps(self, growth: Growth) -> float:
        """Estimates the number of steps of work in which all trees are grown."""
        candidates = sum(map(len, self.grower.conditions))
        level = self.grower.cuts.codes.size + CANDIDATE * candidates * (1 << growth.depth) / growth.depth
        return growth.sampled * growth.depth * level * growth.rounds * self.grower.outputs * (1 + growth.sweeps)

    def rebuilt(self, grown: Boosted, growth: Growth) -> Forest:
        top = (1 << growth.leaf_bits) - 1
        trees = [
            self.grower.tree(
                tree, np.rint(tree.value / growth.unit + top / 2).astype(np.int64), f"tree {index}", quantized=True
            )
            for index, tree in enumerate(grown.trees)
        ]
        return sum_of_trees(
            integer_bias(grown, growth), name=self.forest.name, features=self.forest.features,
            columns=self.forest.columns, trees=trees or [constant_tree(quantized=True)], classes=self.forest.classes,
            scale=growth.unit, provenance=self.forest.provenance, carried=self.forest.carried,
            hashed=self.forest.hashed,
        )  # fmt: skip

    def _growth(self, step: RegrowTrees) -> Growth:
        """Returns the settings of boosting. With more trees, leaf values are closer together."""
        trees, bits, prices = int(step.trees), int(step.leaf_bits), self.grower.prices
        unit = 2 * min(1.0, 2 / math.sqrt(trees)) / (1 << bits)
        if not self.forest.decides:
            unit = leaf_unit(unit, self.grower.label)
        return Growth(
            rounds=trees,
            depth=step.depth if prices.firmware else min(step.depth, prices.lut_inputs),
            leaves=LEAVES,
            symmetric=not prices.firmware,
            leaf_bits=bits,
            unit=unit,
            price=float(step.price) / self.rows,
            sampled=min(1.0, READ / max(1, len(self.grower.conditions))),
            sweeps=step.sweeps,
            seed=step.seed,
        )


def _values(option: float | str, tried: Sequence[float]) -> tuple[float, ...]:
    return tuple(tried) if isinstance(option, str) else (option,)
