"""Implements the pass round-leaves: rounds leaves to integers such that near ties keep their decision if possible."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from forestc.errors import OptionError, opt
from forestc.forest.evaluate import encode_numbers, evaluation_of
from forestc.forest.ir import Forest
from forestc.passes.base import PassResult, already_quantized, need_words, required
from forestc.passes.ladder import Rung
from forestc.passes.leaf_ladder import LeafLadder, taken
from forestc.passes.options import LOSS, MOST_LEAF_BITS, ChangeAllowed, Range, check_options, tried
from forestc.passes.promises import (
    Change,
    EveryPath,
    FewChanges,
    KeepsAllButTies,
    KeepsDecisions,
    Promise,
    ScoresWithin,
    Within,
    most_change,
)
from forestc.passes.quick_evaluation import evaluate_quickly, nodes_reached
from forestc.passes.round_leaves.exact_leaves import whole_votes
from forestc.passes.round_leaves.rounding import (
    RoundedLeaves,
    candidates,
    has_whole_leaves,
    one_sum,
    refuse_sums,
    unseen,
    whole_leaves,
    with_error,
    with_leaves,
)
from forestc.passes.round_leaves.settling import Settling
from forestc.passes.round_leaves.ties import TIE_BITS
from forestc.passes.scorer import Scorer
from forestc.rows.accuracy import LargestError
from forestc.rows.batches import Rows
from forestc.rows.ranges import Ranges, have_rows, made_rows

SEARCHED_LEAF_BITS = 16
SEARCHED_SCORE_BITS = 24
MOST_LADDER_BITS = 8  # bits of leaves that -O2 and -O3 try at most


@dataclass(frozen=True)
class RoundLeaves:
    """Rounds leaves to integers. All generated files compute exactly its result.

    Promises: exact-on-data if no decision of the given rows changes. Otherwise approximate: a change beyond the allowed
    one is refused; with leaf_bits=auto, rows whose decisions change are named instead. With a tolerance approximate:
    held-out rows must meet it. With exact=true, or ranges instead of rows, exact: every input takes the model's own
    path, and the report bounds the error of scores if a bound is known.
    """

    leaf_bits: Annotated[
        int | Literal["auto"],
        Range(1, MOST_LEAF_BITS),
        tried("auto", 1, 2, 3, 4, 5, 6, 7, 8),
        "bits of a leaf; auto: the fewest that keep every decision on the rows (for a regression, an error within "
        "a tenth of the option change). Without rows, auto takes as many bits as keep all sums exact, up to 32. If"
        " the library itself rounds its sums, it takes the fewest that hold all leaves exactly; otherwise 16 to "
        "24, and up to 32 if near ties are decided differently. Near ties are looked for among all combinations of"
        " paths, or, if these are too many, on generated rows.",
    ] = "auto"
    change: ChangeAllowed = 0.01
    tolerance: Annotated[
        float | None,
        LOSS,
        "accuracy (R squared of a regression) that may be lost against the model on held-out rows, including 1.5 "
        "standard errors. leaf_bits=auto then takes the fewest bits within it, or, if there are none, the fewest "
        "that keep the given rows. Without a tolerance, held-out rows choose nothing.",
    ] = None
    scores: Annotated[
        float | None,
        Range(0, 1, "an error above 0 and up to 1, such as 0.001", above=True),
        "largest error of values after the link on the rows: absolute for probabilities (0.001), for other values "
        "as a share of the range of the model's values. leaf_bits=auto then also keeps this. By default leaf bits "
        "are chosen for decisions alone, and probabilities may change much.",
    ] = None
    exact: Annotated[
        bool, "true: choose leaves for every input, even if rows are given; near ties of the rows then count most."
    ] = False
    name: ClassVar[str] = "round-leaves"
    open: ClassVar[bool] = False  # auto is settled by `run` itself

    def __post_init__(self) -> None:
        check_options(self)
        if self.exact and self.needs_scorer:
            raise OptionError(
                "exact=true uses no rows, but tolerance does", where="pass round-leaves", do="remove one of them"
            )

    @property
    def needs_scorer(self) -> bool:
        return self.tolerance is not None

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if source.quantized:
            raise already_quantized(self)
        if not has_whole_leaves(source):
            refuse_sums(source)
        if isinstance(rows, Ranges) and self.needs_scorer:
            raise OptionError(
                "tolerance needs held-out rows, and ranges are given",
                where="pass round-leaves",
                do=f"remove tolerance, or give {opt.rows} and {opt.held_out}",
            )
        if (self.exact or isinstance(rows, Ranges)) and self.scores is not None:
            given = have_rows(rows)
            why, do = (
                ("which exact=true does not use", "use -O1") if given else ("and there are none", f"give {opt.rows}")
            )
            raise OptionError(
                f"leaf bits that keep scores are chosen on rows, {why}",
                where="pass round-leaves",
                do=f"{do}, or a number of leaf_bits: the report then tells the largest error of scores",
            )
        if rows is None and (self.leaf_bits == "auto" or self.scores is not None) and not self.exact:
            raise OptionError(
                "needs rows", where="pass round-leaves", do=f"give {opt.rows}, a number of leaf_bits, or exact=true"
            )

    def run(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """Returns the result of the pass, with the integer forest. Given `Ranges`, every input in these counts. Raises
        ModelError if features are floats or leaves are integers."""
        self.refuse(forest, rows, scorer)
        need_words(self, forest)
        if has_whole_leaves(forest):
            whole = whole_leaves(forest)
            bits = max(int(np.abs(tree.values).max()) for tree in whole.trees).bit_length()
            figures = {"leaf_bits": max(1, bits), "leaves": "exact", "score_bound": 0.0, "decides": forest.decides}
            return PassResult(whole, (EveryPath(False, 0.0),), figures | {"decisions": "all"})
        if self.exact or isinstance(rows, Ranges):
            return self._for_every_input(forest, rows if isinstance(rows, Ranges) else Ranges(), rows)
        summed, auto = one_sum(forest), self.leaf_bits == "auto"
        some = self._candidates(summed)
        tried = self._measured(forest, rows, some)
        fine = self._near(tried)
        best = min(fine, key=lambda trial: (max(trial.change.share, self._goal(forest)), trial.bits))
        most = most_change(self.change, forest)
        if auto and forest.decides and best.change.changed and Settling.applies(forest):
            leaves, _ = Settling(TIE_BITS, MOST_LEAF_BITS, None, rows).leaves(forest, summed)
            (settled,) = self._measured(forest, rows, [(_bits(leaves), leaves)])
            tried.append(settled)
            best = settled if not settled.change.changed or best.change.share > most else best
        promise: Promise = FewChanges(most)
        if forest.decides and best.change.rows and not best.change.changed:
            promise = KeepsDecisions()
        elif auto and forest.decides and best.change.share > most:  # more bits do not help
            margin = math.inf if not summed.single else 2 * with_error(summed, best.leaves).error
            promise = KeepsAllButTies(best.change.changed, margin)
        report: dict[str, Any] = {}
        if self.tolerance is not None:
            fewest = self._within(summed, fine, scorer) if auto else best
            if fewest is not None:
                best, promise = fewest, Within(float(self.tolerance))
                report = {"chosen_on_held_out": len(tried) > 1}
        report = {"leaf_bits": best.bits, "rows": best.change.rows, **best.change.figures, **report}
        promised = () if self.scores is None else (ScoresWithin(self.scores),)
        return PassResult(with_leaves(summed, best.leaves), (promise, *promised), report)

    def _candidates(self, summed: Forest) -> list[tuple[int, RoundedLeaves]]:
        searched = SEARCHED_LEAF_BITS if self.scores is None else SEARCHED_SCORE_BITS
        widths = range(1, searched + 1) if self.leaf_bits == "auto" else [int(self.leaf_bits)]
        return [(width, leaves) for width in widths for leaves in candidates(summed, width)]

    def _goal(self, forest: Forest) -> float:
        return 0.0 if forest.decides else most_change(self.change, forest) / (10 if self.scores is None else 1)

    def _measured(self, forest: Forest, rows: Rows | None, some: list[tuple[int, RoundedLeaves]]) -> list[_Measured]:
        return _measured(forest, rows, some, values=self.scores is not None)

    def _near(self, tried: list[_Measured]) -> list[_Measured]:
        """Returns a list of the roundings that meet the option `scores`; if none does, of the roundings with the least
        error."""
        if self.scores is None or not tried[0].change.rows:
            return tried[:]
        allowed = max(self.scores, min(trial.values.share for trial in tried))
        return [trial for trial in tried if trial.values.share <= allowed]

    def _within(self, summed: Forest, fine: list[_Measured], scorer: Scorer | None) -> _Measured | None:
        limit, scorer = float(self.tolerance or 0.0), required(scorer, self)
        return next((trial for trial in fine if scorer.of(with_leaves(summed, trial.leaves)).within(limit)), None)

    def _for_every_input(self, forest: Forest, ranges: Ranges, rows: Rows | None) -> PassResult:
        """Rounds leaves for every input in the ranges. rows: near ties among these rows get the largest weight."""
        summed, auto = one_sum(forest), self.leaf_bits == "auto"
        widths = TIE_BITS if auto else [int(self.leaf_bits)]
        most = MOST_LEAF_BITS if auto else widths[0]
        leaves, every = unseen(summed, widths[0], most), False
        if Settling.applies(summed) and not leaves.exact:
            leaves, every = Settling(widths, most, ranges, rows).leaves(forest, summed)
        elif summed.decides and not leaves.exact and auto:  # near ties may need more bits
            some = [(width, unseen(summed, width, width)) for width in widths]
            some += [
                (width, replace(other, exact=False)) for width in widths for other in candidates(summed, width)[1:]
            ]
            tried = _measured(forest, made_rows(forest, ranges), some)
            leaves = min(tried, key=lambda trial: trial.change.changed).leaves
        result = with_leaves(summed, leaves)
        exact, error = leaves.exact, leaves.error
        if summed.combine.kind == "vote":
            weights = summed.combine.weights
            exact = (exact or every) and whole_votes(weights, result.scale or 1.0, result.combine.weights)
            every = exact
            error = 0.0 if exact else math.inf  # A changed vote changes the sum by the member's weight.
        report = {
            "leaf_bits": _bits(leaves),
            "leaves": "exact" if exact else "rounded",
            "score_bound": error if math.isfinite(error) else None,
            "decides": forest.decides,
            "decisions": "all" if exact or every else "all but near ties" if forest.decides else None,
        }
        return PassResult(result, (EveryPath(not exact, error, ranges, every),), report)

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> LeafLadder:
        self.refuse(forest, rows, scorer)
        need_words(self, forest)
        summed = one_sum(forest)

        def rounded(bits: int) -> Forest:
            if has_whole_leaves(forest):
                return whole_leaves(forest)
            return with_leaves(summed, candidates(summed, bits)[0])

        return LeafLadder(self, forest, range(1, MOST_LADDER_BITS + 1), rounded, lambda bits: (rounded(bits), {}))

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        return taken(self.tolerance, rung, tried)


def _bits(leaves: RoundedLeaves) -> int:
    return max(1, max((int(values.max(initial=0)) for values in leaves.values), default=0).bit_length())


@dataclass(frozen=True)
class _Measured:
    bits: int
    leaves: RoundedLeaves
    change: Change
    values: LargestError


def _measured(
    forest: Forest, rows: Rows | None, some: list[tuple[int, RoundedLeaves]], *, values: bool = False
) -> list[_Measured]:
    """Measures on the rows how far roundings change the forest. some: pairs (number of leaf bits, rounded leaves)."""
    summed = one_sum(forest)
    after = [with_leaves(summed, leaves) for _, leaves in some]
    tried = [
        _Measured(bits, leaves, Change(forest, result), LargestError(forest, result))
        for (bits, leaves), result in zip(some, after, strict=True)
    ]
    for batch in rows.batches() if rows is not None else ():
        words = encode_numbers(forest, batch.X)
        truth = evaluate_quickly(forest, words)
        nodes = list(nodes_reached(summed, words).T)
        reached = [tree.leaf[node] for tree, node in zip(summed.trees, nodes, strict=True)]
        for result, trial in zip(after, tried, strict=True):
            scores = np.tile(result.bias, (len(words), 1))
            for tree, leaf in zip(result.trees, reached, strict=True):
                scores[:, list(tree.outputs)] += tree.values[leaf]
            answer = evaluation_of(result, truth.leaves, scores)
            trial.change.add(truth, answer)
            if values:
                trial.values.add(truth.values, answer.values)
    return tried
