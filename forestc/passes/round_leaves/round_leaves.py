"""round-leaves: rounds the leaves of a forest on words to integers, and settles near ties.

Everything downstream equals the evaluator of its result bit for bit. It promises exact-on-data if no decision of the
given rows changes; else approximate, measured, and refused beyond what is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from forestc.errors import ModelError, OptionError
from forestc.forest.evaluate import decide, judged, score_range
from forestc.forest.ir import Forest
from forestc.parameters import Choice, Parameter
from forestc.passes.base import PassResult, need_words, required
from forestc.passes.judge import Judge
from forestc.passes.ladder import Rung
from forestc.passes.leaf_ladder import LeafLadder, taken
from forestc.passes.option_rules import CHANGE, FLAG, TOLERANCE, Rule, check_options, is_number, whole
from forestc.passes.promises import (
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
    Leaves,
    candidates,
    one_sum,
    refuse_sums,
    unseen,
    with_error,
    with_leaves,
)
from forestc.passes.round_leaves.settling import Settling
from forestc.passes.round_leaves.ties import TIE_BITS
from forestc.rows.accuracy import LargestError
from forestc.rows.batches import Rows
from forestc.rows.encode import encode
from forestc.rows.made_rows import made_rows
from forestc.rows.ranges import Ranges, have_rows

MOST_LEAF_BITS = 32
SEARCHED_LEAF_BITS = 16
SEARCHED_SCORE_BITS = 24
MOST_LADDER_BITS = 8  # of leaves that the search of a level tries

_RULES = {
    "leaf_bits": whole(1, MOST_LEAF_BITS).or_("auto", do=f"use auto or 1 to {MOST_LEAF_BITS}"),
    "change": CHANGE,
    "tolerance": TOLERANCE.or_(None),
    "scores": Rule(
        lambda value: value is None or (is_number(value) and 0 < value <= 1),
        "use an error above 0 and up to 1, such as 0.001",
    ),
    "exact": FLAG,
}


@dataclass(frozen=True)
class RoundLeaves:
    """Turns leaves into integers, each rounded alone. All generated files compute exactly its result.

    Promises: exact-on-data if no decision of the given rows changes; else approximate: measured, and refused beyond
    what is allowed, or with leaf_bits=auto the rows named that no integer leaves were found for. Without rows exact: if
    leaves must be rounded, scores stay within a bound that is reported, and decisions change only within twice that
    bound of a tie.

    leaf_bits: auto (the fewest that keep every decision on the rows; for regression, the error within a tenth of
    change), or a number of bits per leaf. Without rows auto takes as many as keep all sums exact, up to 32; if the
    library itself rounds its sums, the fewest on which all leaves lie; 16 to 24 if those do not, and up to 32 if ties
    are decided differently: of all combinations of paths, or where these are too many of generated rows.
    change: largest share of decisions, or for regression largest error over the range of scores, that may change on
    the given rows, by words and leaves together. It is not used if a tolerance applies. auto: no decision, and 0.01 of
    a regression's range.
    tolerance: the accuracy (R squared of a regression) that may be lost against the model on held-out rows, including
    a standard error; leaf_bits=auto is then the fewest within it, or, if there are none, the fewest that keep the
    given rows. Without it nothing is judged.
    scores: largest error on the rows of the values after the link: for probabilities absolute (0.001), for others as a
    share of the range of the model's values on the rows. leaf_bits=auto is then the fewest that also keep this. By
    default leaf bits are chosen for decisions alone, and probabilities may change much.
    exact: choose leaves for every input, as without rows, even if rows are given, whose ties come first then.
    """

    leaf_bits: int | str = "auto"
    change: float | str = 0.01
    tolerance: float | None = None
    scores: float | None = None
    exact: bool = False
    name: ClassVar[str] = "round-leaves"
    space: ClassVar[tuple[Parameter, ...]] = (Choice("leaf_bits", ("auto", 1, 2, 3, 4, 5, 6, 7, 8), approximate=True),)
    open: ClassVar[bool] = False  # `run` itself chooses the bits

    def __post_init__(self) -> None:
        check_options(self, _RULES)
        if self.exact and self.needs_judge:
            raise OptionError("round-leaves: exact=true uses no rows, but tolerance does", do="remove one of them")

    @property
    def needs_judge(self) -> bool:
        """Whether its result is judged on held-out rows."""
        return self.tolerance is not None

    def refuse(self, source: Forest, rows: Rows | None, judge: Judge | None) -> None:
        """As `Refusing` has it."""
        if source.quantized:
            raise ModelError("the forest is already quantized", do="remove round-leaves from the passes")
        refuse_sums(source)
        if isinstance(rows, Ranges) and self.needs_judge:
            raise OptionError("round-leaves{tolerance} needs held-out rows, and there are none", do="remove it")
        if (self.exact or isinstance(rows, Ranges)) and self.scores is not None:
            why = "which exact=true does not use" if have_rows(rows) else "and there are none"
            raise OptionError(
                f"leaf bits that keep scores are chosen on rows, {why}",
                do="give --rows, or round-leaves{leaf_bits=24} and the like, which reports the largest error of scores",
            )
        if rows is None and (self.leaf_bits == "auto" or self.scores is not None) and not self.exact:
            raise OptionError("round-leaves needs rows", do="give rows, a number of leaf_bits, or exact=true")

    def run(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> PassResult:
        """The integer forest. With `Ranges` instead of rows it is exact for every input in them; with None, leaf_bits
        must be a number. Raises OptionError, or ModelError for a forest of floats or one that is already quantized."""
        self.refuse(forest, rows, judge)
        need_words(self, forest)
        if self.exact or isinstance(rows, Ranges):
            return self._for_every_input(forest, rows if isinstance(rows, Ranges) else Ranges(), rows)
        searched = SEARCHED_LEAF_BITS if self.scores is None else SEARCHED_SCORE_BITS
        whole, auto = one_sum(forest), self.leaf_bits == "auto"
        widths = range(1, searched + 1) if auto else [int(self.leaf_bits)]
        some = [(width, leaves) for width in widths for leaves in candidates(whole, width)]
        tried = _Tried.of(forest, rows, [leaves for _, leaves in some], values=self.scores is not None)
        tried = replace(tried, bits=[width for width, _ in some])
        fine = list(range(len(some)))
        if self.scores is not None and tried.rows:
            allowed = max(self.scores, min(tried.values))  # if scores can't be kept, the pipeline raises
            fine = [c for c in fine if tried.values[c] <= allowed]
        most, bits = most_change(self.change, forest), tried.bits
        # no decision may change for fewer bits; of values a tenth of `change`, or all of it if `scores` limits errors
        goal = 0.0 if forest.decides else most / (10 if self.scores is None else 1)
        best = min(fine, key=lambda c: (max(tried.change[c], goal), bits[c]))
        if auto and forest.decides and tried.changed[best] and Settling.applies(forest):
            settling = Settling(TIE_BITS, MOST_LEAF_BITS, None, rows)
            tried = tried.joined(_Tried.of(forest, rows, [settling.leaves(forest, whole)[0]], self.scores is not None))
            if not tried.changed[-1] or tried.change[best] > most:
                best = len(tried.leaves) - 1
        promise: Promise = FewChanges(most)
        if forest.decides and tried.rows and not tried.changed[best]:
            promise = KeepsDecisions()
        elif auto and forest.decides and tried.change[best] > most:  # more bits can't help
            margin = math.inf if whole.parts else 2 * with_error(whole, tried.leaves[best]).error
            promise = KeepsAllButTies(tried.changed[best], margin)
        if self.tolerance is not None:
            limit, fewest = float(self.tolerance), best
            if auto:
                judge = required(judge, self)
                within = (c for c in fine if judge.of(with_leaves(whole, tried.leaves[c])).within(limit))
                fewest = next(within, len(tried.leaves))
            if fewest < len(tried.leaves):
                best, promise = fewest, Within(limit)
        report: dict[str, Any] = {"leaf_bits": tried.bits[best], "rows": tried.rows}
        report |= (
            {"decisions_changed": tried.changed[best]} if forest.decides else {"largest_error": tried.change[best]}
        )
        if isinstance(promise, Within):
            report["chosen_on_held_out"] = len(tried.leaves) > 1
        kept = () if self.scores is None else (ScoresWithin(self.scores),)
        return PassResult(with_leaves(whole, tried.leaves[best]), (promise, *kept), report)

    def _for_every_input(self, forest: Forest, ranges: Ranges, rows: Rows | None) -> PassResult:
        """Unrounded leaves where possible; else leaves that decide ties as the model does, on all combinations of paths
        if there are few. rows: whose ties come first."""
        whole, auto = one_sum(forest), self.leaf_bits == "auto"
        widths = TIE_BITS if auto else [int(self.leaf_bits)]
        most = MOST_LEAF_BITS if auto else widths[0]
        leaves, every = unseen(whole, widths[0], most), False
        if Settling.applies(whole) and not leaves.exact:
            leaves, every = Settling(widths, most, ranges, rows).leaves(forest, whole)
        elif whole.decides and not leaves.exact and auto:  # more bits, if near ties need them
            some = [unseen(whole, width, width) for width in widths]
            some += [replace(leaves, exact=False) for width in widths for leaves in candidates(whole, width)[1:]]
            changed = _Tried.of(forest, made_rows(forest, ranges), some).changed
            leaves = some[changed.index(min(changed))]
        result = with_leaves(whole, leaves)
        exact, error = leaves.exact, leaves.error
        if whole.parts and whole.combine.kind == "vote":
            weights = whole.combine.weights
            exact = (exact or every) and whole_votes(weights, result.scale or 1.0, result.combine.weights)
            every = exact
            error = 0.0 if exact else math.inf  # a changed vote changes the sum by the member's weight
        report = {
            "leaf_bits": _bits(leaves),
            "leaves": "exact" if exact else "rounded",
            "score_bound": error if math.isfinite(error) else None,
            "decides": forest.decides,
            "decisions": "all" if exact or every else "all but near ties" if forest.decides else None,
        }
        return PassResult(result, (EveryPath(not exact, error, ranges, every),), report)

    def ladder(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> LeafLadder:
        """As `Laddered` has it: the numbers of leaf bits, ascending."""
        self.refuse(forest, rows, judge)
        need_words(self, forest)
        whole = one_sum(forest)

        def rounded(bits: int) -> Forest:
            return with_leaves(whole, candidates(whole, bits)[0])

        return LeafLadder(self, forest, range(1, MOST_LADDER_BITS + 1), rounded, lambda bits: (rounded(bits), {}))

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """As `Laddered` has it."""
        return taken(self.tolerance, rung, tried)


def _bits(leaves: Leaves) -> int:
    return max(1, max((int(values.max(initial=0)) for values in leaves.values), default=0).bit_length())


@dataclass(frozen=True)
class _Tried:
    """Integer leaves, and what each of them changes on the rows.

    change: share of the rows whose decision changes, or the largest error over the range of scores. changed: number of
    these rows. values: `LargestError` after the link, if measured.
    """

    leaves: list[Leaves]
    bits: list[int]
    change: list[float]
    changed: list[int]
    values: list[float]
    rows: int

    @staticmethod
    def of(forest: Forest, rows: Rows | None, leaves: list[Leaves], values: bool = False) -> _Tried:
        """Measures all in one pass over the rows. values: also measure values after the link."""
        whole = one_sum(forest)
        changed, errors, total_rows = [0] * len(leaves), [0.0] * len(leaves), 0
        low, high = math.inf, -math.inf
        finished = [with_leaves(whole, one) for one in leaves] if whole.parts or values else []
        moved = [LargestError(forest, largest) for largest in finished]
        for batch in rows.batches() if rows is not None else ():
            words = encode(forest, batch.X)
            truth = evaluate_quickly(forest, words)
            nodes = list(nodes_reached(whole, words).T)
            reached = [tree.leaf[node] for tree, node in zip(whole.trees, nodes, strict=True)]
            total_rows += len(words)
            low, high = min(low, float(truth.scores.min())), max(high, float(truth.scores.max()))
            for place, one in enumerate(leaves):
                scores = np.tile(one.bias, (len(words), 1))
                for tree_values, outputs, leaf in zip(one.values, one.outputs, reached, strict=True):
                    scores[:, list(outputs)] += tree_values[leaf]
                answer = judged(finished[place], truth.leaves, scores) if finished else None
                if values and answer is not None:
                    moved[place].add(truth.values, answer.values)
                total = scores if answer is None or not one.parts else answer.scores
                if not forest.decides:
                    errors[place] = max(errors[place], float(np.abs(total * one.scale - truth.scores).max()))
                    continue
                index = answer.index if answer is not None and one.parts else decide(one.decision, scores, scores)
                differs = index.reshape(len(words), -1) != truth.index.reshape(len(words), -1)
                changed[place] += int(differs.any(axis=1).sum())
        spread = score_range(low, high) if total_rows else math.nan
        shares = [count / (total_rows or math.nan) for count in changed]
        change = shares if forest.decides else [error / spread for error in errors]
        return _Tried(
            leaves, [_bits(one) for one in leaves], change, changed, [each.share for each in moved], total_rows
        )

    def joined(self, other: _Tried) -> _Tried:
        """These and others, measured on the same rows."""
        return _Tried(
            self.leaves + other.leaves,
            self.bits + other.bits,
            self.change + other.change,
            self.changed + other.changed,
            self.values + other.values,
            self.rows,
        )
