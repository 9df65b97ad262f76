"""quantize: turns features, thresholds and leaves into integers.

Everything downstream equals the evaluator of its result bit for bit. It promises exact-on-data if no decision of the
given rows changes; else approximate, measured, and refused beyond what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from forestc.costs.prices import prices
from forestc.errors import ModelError, OptionError
from forestc.forest.evaluate import decide, judged, score_range
from forestc.forest.ir import Forest
from forestc.forest.numbers import parse_number_type, word_bits
from forestc.passes.base import PassResult, required
from forestc.passes.judge import Judge
from forestc.passes.ladder import Rung, as_given
from forestc.passes.options import DEFAULT_TOLERANCE, LOSS, SHARE, Range, check_options, tried
from forestc.passes.promises import (
    Change,
    EveryPath,
    FewChanges,
    KeepsAllButTies,
    KeepsDecisions,
    KeepsPaths,
    Promise,
    ScoresWithin,
    Within,
)
from forestc.passes.quantize.exact_formats import choose_exact, given_exactly
from forestc.passes.quantize.exact_leaves import whole_votes
from forestc.passes.quantize.fit_leaves import FittingLadder
from forestc.passes.quantize.formats import Format, choose, given, parse_formats
from forestc.passes.quantize.leaf_ladder import LeafLadder
from forestc.passes.quantize.narrow_words import Narrowing, word_widths
from forestc.passes.quantize.rounding import (
    Leaves,
    candidates,
    one_sum,
    refuse_sums,
    unseen,
    with_error,
    with_leaves,
    with_words,
)
from forestc.passes.quantize.settling import Settling
from forestc.passes.quantize.ties import TIE_BITS
from forestc.passes.quick_evaluation import evaluate_quickly, nodes_reached
from forestc.passes.share_thresholds.observation import observe
from forestc.rows.accuracy import LargestError
from forestc.rows.batches import Rows
from forestc.rows.encode import encode
from forestc.rows.made_rows import made_rows
from forestc.rows.ranges import Ranges, have_rows

MOST_LEAF_BITS = 32
SEARCHED_LEAF_BITS = 16
SEARCHED_SCORE_BITS = 24
MOST_FITTED_BITS = 4  # tried by leaf_bits=auto where leaves are fitted
MOST_ROUNDED_BITS = 8  # tried by a search where leaves are rounded
CHANGE = 0.01  # of a regression's scores, over their range


@dataclass(frozen=True)
class Quantize:
    """Turns features, thresholds and leaves into integers. All generated files compute exactly its result.

    Promises: exact-on-data if no decision of the given rows changes; else approximate: measured, and refused beyond
    what is allowed, or with leaf_bits=auto the rows named that no integer leaves were found for. Without rows exact:
    every input in the ranges takes the model's own path, and if leaves must be rounded, scores stay within a bound
    that is reported, and decisions change only within twice that bound of a tie.
    """

    input: Annotated[
        Literal["auto", "fixed", "ordered"],
        "auto (integers as they are; else fixed point with the fewest bits that change no row's path; else ordered), "
        "fixed, or ordered (the float's order-preserving key: always exact, widest). Without rows auto and fixed take "
        "the fewest bits that change no input's path.",
    ] = "auto"
    input_bits: Annotated[
        int | Literal["auto"], Range(1, 62), tried("auto", 2, 3, 4, 5, 6, 8, 10), "auto, or the most bits of a feature."
    ] = "auto"
    leaf_bits: Annotated[
        int | Literal["auto"],
        Range(1, MOST_LEAF_BITS),
        tried("auto", 1, 2, 3, 4, 5, 6, 7, 8),
        "auto (the fewest that keep every decision on the rows; for regression, the error within a tenth of change), "
        "or a number of bits per leaf. Without rows auto takes as many as keep all sums exact, up to 32; if the "
        "library itself rounds its sums, the fewest on which all leaves lie; 16 to 24 if those do not, and up to 32 if "
        "ties are decided differently: of all combinations of paths, or where these are too many of generated rows.",
    ] = "auto"
    missing: Annotated[
        Literal["auto", "always", "never"],
        "auto (a feature accepts missing values if the rows have some; without rows, as ranges and model say), always, "
        "or never. auto is always where `compile` was asked for missing=always.",
    ] = "auto"
    change: Annotated[
        float | Literal["auto"],
        SHARE,
        "largest share of decisions, or for regression largest error over the range of scores, that may change on the "
        "given rows. It is not used if a tolerance applies. auto: no decision, and 0.01 of a regression's range.",
    ] = 0.01
    tolerance: Annotated[
        float | None,
        LOSS,
        "the accuracy (R squared of a regression) that may be lost against the model on held-out rows, including a "
        "standard error; leaf_bits=auto is then the fewest within it, or, if there are none, the fewest that keep the "
        "given rows. Without it nothing is judged, but with fit it is 0.01.",
    ] = None
    fit: Annotated[
        bool,
        tried(False, True),
        "fit all leaves together to the classes of the rows, instead of rounding each alone: one or two bits are often "
        "enough. leaf_bits=auto is then the fewest, up to 4, within the tolerance.",
    ] = False
    noise: Annotated[
        float,
        SHARE,
        tried(0.0, 0.1, when={"fit": (True,)}),
        "with fit, each row is joined by a copy whose values move, by this standard deviation in ranks (0.1 is a tenth "
        "of the rows), so that leaves fit fewer single rows.",
    ] = 0.0
    formats: Annotated[
        Mapping[str, str] | None, '{feature name: type} for features with a fixed type, such as {"age": "uint8"}.'
    ] = None
    scores: Annotated[
        float | None,
        Range(0, 1, "an error above 0 and up to 1, such as 0.001", above=True),
        "largest error on the rows of the values after the link: for probabilities absolute (0.001), for others as a "
        "share of the range of the model's values on the rows. leaf_bits=auto is then the fewest that also keep this. "
        "By default leaf bits are chosen for decisions alone, and probabilities may change much.",
    ] = None
    exact: Annotated[
        bool,
        "choose words and leaves for every input, as without rows, even if rows are given, whose ties come first then.",
    ] = False
    cost: Annotated[
        str | None,
        "lut6, ecp5, flash, instructions-cortex-m0plus and the like, as for prune-splits: words of features are made "
        "narrower than paths allow (for C down to a byte or two), as long as change, or the tolerance, permits.",
    ] = None
    name: ClassVar[str] = "quantize"

    def __post_init__(self) -> None:
        check_options(self)
        if self.noise and not self.fit:
            raise OptionError("quantize: noise is for leaves that are fitted", do="add fit=true, or remove noise")
        if self.exact and self.needs_judge:
            raise OptionError("quantize: exact=true uses no rows, but fit and tolerance do", do="remove one of them")
        if self.cost is not None:
            prices(self.cost)  # raises for an unknown cost
            if self.exact or self.input != "auto" or self.scores is not None:
                raise OptionError(
                    "quantize: cost rounds thresholds, which exact, scores, and an input other than auto do not allow",
                    do="remove one of them",
                )
        if self.scores is not None and self.fit:
            raise OptionError(
                "quantize: leaves that are fitted to classes can't keep scores", do="remove fit or scores"
            )

    def refuse(self, source: Forest, rows: Rows | None, judge: Judge | None) -> None:
        if source.quantized:
            raise ModelError("the forest is already quantized", do="remove quantize from the passes")
        refuse_sums(source)
        if isinstance(rows, Ranges) and self.fit:
            raise OptionError("quantize{fit=true} needs rows to fit leaves to", do="give --rows, or remove fit")
        if (rows is None or isinstance(rows, Ranges)) and self.cost is not None:
            raise OptionError("quantize{cost} rounds thresholds where rows allow it", do="give rows, or remove cost")
        if isinstance(rows, Ranges) and self.tolerance is not None:
            raise OptionError("quantize{tolerance} needs held-out rows, and there are none", do="remove it")
        if (self.exact or isinstance(rows, Ranges)) and self.scores is not None:
            why = "which exact=true does not use" if have_rows(rows) else "and there are none"
            raise OptionError(
                f"leaf bits that keep scores are chosen on rows, {why}",
                do="give --rows, or quantize{leaf_bits=24} and the like, which reports the largest error of scores",
            )
        chosen = self.leaf_bits == "auto" or self.input != "ordered" or self.scores is not None
        if rows is None and chosen and not self.exact:
            raise OptionError("quantize needs rows", do="give rows, or input=ordered and a number of leaf_bits")

    @property
    def needs_judge(self) -> bool:
        """Whether its result is judged on held-out rows."""
        return self.fit or self.tolerance is not None

    @property
    def open(self) -> bool:
        """Whether the options leave leaves to choose that are fitted."""
        return self.fit and (self.leaf_bits == "auto" or self.cost is not None)

    def run(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> PassResult:
        """The integer forest. With `Ranges` instead of rows it is exact for every input in them; with None, input must
        be ordered and leaf_bits a number.

        Raises OptionError, or ModelError for a forest that is already quantized.
        """
        if self.fit:
            return as_given(self, forest, self.ladder(forest, rows, judge))
        self.refuse(forest, rows, judge)
        source, forest = forest, one_sum(forest)
        if self.exact or isinstance(rows, Ranges):
            return self._unseen(source, forest, rows if isinstance(rows, Ranges) else Ranges(), rows)
        shaped, formats, missing = self._words(source, forest, rows, judge)
        searched = SEARCHED_LEAF_BITS if self.scores is None else SEARCHED_SCORE_BITS
        widths = range(1, searched + 1) if self.leaf_bits == "auto" else [int(self.leaf_bits)]
        tried = [(width, leaves) for width in widths for leaves in candidates(forest, width)]
        bits, leaves_tried = [width for width, _ in tried], [leaves for _, leaves in tried]
        measured = _measure(source, shaped, leaves_tried, rows, values=self.scores is not None)
        fine = list(range(len(leaves_tried)))
        if self.scores is not None and measured.rows:
            allowed = max(self.scores, min(measured.values))  # if scores can't be kept, the pipeline raises
            fine = [c for c in fine if measured.values[c] <= allowed]
        best = min(fine, key=lambda c: (max(measured.change[c], self._goal(forest)), bits[c]))
        ties_left = forest.decides and self.leaf_bits == "auto" and not measured.paths_changed
        if ties_left and measured.changed[best] and Settling.applies(forest):
            leaves_tried.append(Settling(TIE_BITS, MOST_LEAF_BITS, None, rows, shaped).leaves(source, forest)[0])
            bits.append(max(1, max(int(values.max(initial=0)) for values in leaves_tried[-1].values).bit_length()))
            measured = _measure(source, shaped, leaves_tried, rows, values=self.scores is not None)
            if not measured.changed[-1] or measured.change[best] > self._most(forest):
                best = len(leaves_tried) - 1
        change, kept = measured.change[best], measured.rows > 0
        promises: list[Promise] = [FewChanges(self._most(forest))]
        if ties_left and change > self._most(forest):  # more bits can't help
            margin = math.inf if not forest.single else 2 * with_error(forest, leaves_tried[best]).error
            promises = [KeepsAllButTies(measured.changed[best], margin)]
        if measured.rows and not measured.paths_changed:
            promises.append(KeepsPaths(decisions=False))
        if forest.decides and kept and change == 0:
            promises = [KeepsDecisions() if measured.paths_changed else KeepsPaths()]
        if self.tolerance is not None:
            limit, fewest = float(self.tolerance), best
            if self.leaf_bits == "auto":
                judge = required(judge, self)
                within = (c for c in fine if judge.of(with_leaves(shaped, leaves_tried[c])).within(limit))
                fewest = next(within, len(leaves_tried))
            if fewest < len(leaves_tried):
                best, promises = fewest, [Within(limit), *promises[1:]]
        result, change = with_leaves(shaped, leaves_tried[best]), measured.change[best]
        report = {
            "leaf_bits": bits[best],
            **_inputs_report(forest, formats, missing),
            "rows": measured.rows,
            "paths_changed": measured.paths_changed,
            "decisions_changed" if forest.decides else "largest_error": (
                measured.changed[best] if forest.decides else change
            ),
        }
        if isinstance(promises[0], Within):
            report["chosen_on_held_out"] = len(leaves_tried) > 1
        if self.scores is not None:
            promises.append(ScoresWithin(self.scores))
        return PassResult(result, tuple(promises), report)

    def ladder(self, forest: Forest, rows: Rows | None, judge: Judge | None = None) -> LeafLadder:
        """The numbers of leaf bits, ascending."""
        self.refuse(forest, rows, judge)
        assert rows is not None
        whole = one_sum(forest)
        shaped, formats, missing = self._words(forest, whole, rows, judge)
        most = MOST_FITTED_BITS if self.fit else MOST_ROUNDED_BITS
        bits = range(1, most + 1) if self.leaf_bits == "auto" else [int(self.leaf_bits)]
        settings = tuple((count, replace(self, leaf_bits=count)) for count in bits)
        words = _paths(forest, shaped, rows)
        if self.fit:
            return FittingLadder(forest, shaped, rows, words, settings, self.noise)
        return LeafLadder(forest, shaped, rows, {**_inputs_report(whole, formats, missing), **words}, settings)

    def _words(
        self, source: Forest, forest: Forest, rows: Rows | None, judge: Judge | None
    ) -> tuple[Forest, list[Format], list[bool]]:
        """The forest with integer thresholds; the format of each feature, and whether its values may be missing."""
        freedoms = observe(forest, rows)
        requested = parse_formats(self.formats, forest)
        most = None if self.input_bits == "auto" else int(self.input_bits)
        missing, formats = [], []
        for feature, freedom in zip(forest.features, freedoms, strict=True):
            seen = freedom.missing if rows is not None else feature.missing
            missing.append(feature.missing and (self.missing == "always" or (self.missing == "auto" and seen)))
            if feature.name in requested:
                formats.append(given(parse_number_type(requested[feature.name]), missing[-1], freedom))
            else:
                formats.append(choose(feature.number, feature.raw, missing[-1], freedom, self.input, most))
        if self.cost is not None:
            assert rows is not None
            tried_bits = SEARCHED_LEAF_BITS if self.leaf_bits == "auto" else int(self.leaf_bits)
            near = _near_enough(source, rows, judge, self.tolerance, self._most(source))
            free = [index for index, feature in enumerate(forest.features) if feature.name not in requested]
            narrowing = Narrowing(forest, freedoms, missing, tried_bits, near)
            formats = narrowing.run(formats, word_widths(self.cost), free)
        return with_words(forest, formats, missing), formats, missing

    def _unseen(self, source: Forest, forest: Forest, ranges: Ranges, rows: Rows | None) -> PassResult:
        """Words that keep every value on its side of every threshold, and unrounded leaves where possible; else leaves
        that decide ties as the model does, on all combinations of paths if there are few. rows: whose ties come
        first."""
        requested = parse_formats(self.formats, forest)
        most_bits = None if self.input_bits == "auto" else int(self.input_bits)
        missing, formats = [], []
        for index, feature in enumerate(forest.features):
            t, values = forest.conditions.thresholds(index), ranges.of(feature)
            always = self.missing == "always" or forest.always_missing
            takes = feature.missing if always else values.takes_missing(feature)
            missing.append(takes and self.missing != "never")
            if feature.name in requested:
                number = parse_number_type(requested[feature.name])
                formats.append(given_exactly(feature, number, missing[-1], t, values))
            else:
                formats.append(choose_exact(feature, missing[-1], t, values, self.input, most_bits))
        shaped = with_words(forest, formats, missing)
        auto = self.leaf_bits == "auto"
        widths = TIE_BITS if auto else [int(self.leaf_bits)]
        most = MOST_LEAF_BITS if auto else widths[0]
        leaves, every = unseen(forest, widths[0], most), False
        if Settling.applies(forest) and not leaves.exact:
            leaves, every = Settling(widths, most, ranges, rows, shaped).leaves(source, forest)
        elif forest.decides and not leaves.exact and auto:  # more bits, if near ties need them
            tried = [unseen(forest, width, width) for width in widths]
            tried += [replace(leaves, exact=False) for width in widths for leaves in candidates(forest, width)[1:]]
            changed = _measure(source, shaped, tried, made_rows(source, ranges, (shaped,)), values=False).changed
            leaves = tried[changed.index(min(changed))]
        result = with_leaves(shaped, leaves)
        exact, error = leaves.exact, leaves.error
        if forest.combine.kind == "vote":
            weights = forest.combine.weights
            exact = (exact or every) and whole_votes(weights, result.scale or 1.0, result.combine.weights)
            every = exact
            error = 0.0 if exact else math.inf  # a changed vote changes the sum by the member's weight
        spans = [int(values.max(initial=0)) for values in leaves.values]
        report = {
            "leaf_bits": max(1, max(spans, default=0).bit_length()),
            "leaves": "exact" if exact else "rounded",
            "score_bound": error if math.isfinite(error) else None,
            "decides": forest.decides,
            "decisions": "all" if exact or every else "all but near ties" if forest.decides else None,
            **_inputs_report(forest, formats, missing),
        }
        return PassResult(result, (EveryPath(not exact, error, ranges, every),), report)

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """As `Laddered` has it."""
        limit = DEFAULT_TOLERANCE if self.tolerance is None else float(self.tolerance)
        bits = sum(word_bits(feature.number) for feature in rung.forest.features)
        report = rung.report | {"input_bits": bits, "chosen_on_held_out": tried > 1}
        paths = (KeepsPaths(decisions=False),) if report.get("paths_changed", 1) == 0 else ()
        return PassResult(rung.forest, (Within(limit), *paths), report)

    def _most(self, forest: Forest) -> float:
        """The option `change` as a number."""
        return (0.0 if forest.decides else CHANGE) if self.change == "auto" else float(self.change)

    def _goal(self, forest: Forest) -> float:
        """The change up to which fewer leaf bits are preferred: none for decisions, a tenth of `change` for values,
        all of it if `scores` limits their error."""
        return 0.0 if forest.decides else self._most(forest) / (10 if self.scores is None else 1)


def _inputs_report(forest: Forest, formats: list[Format], missing: list[bool]) -> dict[str, Any]:
    return {
        "input_bits": sum(word_bits(form.number) for form in formats),
        "inputs": {
            f.name: f"{form.number}, {form.keeps}{', may be missing' * absent}"
            for f, form, absent in zip(forest.features, formats, missing, strict=True)
        },
    }


def _paths(forest: Forest, shaped: Forest, rows: Rows) -> dict[str, Any]:
    """Figures of the words: rows, and the rows that take another path than in the model."""
    kept = _measure(forest, shaped, [], rows, values=False)
    return {"rows": kept.rows, "paths_changed": kept.paths_changed}


def _near_enough(
    source: Forest, rows: Rows, judge: Judge | None, tolerance: float | None, change: float
) -> Callable[[Forest], bool]:
    """Whether a forest loses no more than the tolerance on held-out rows; without a tolerance, whether no more than
    this share of what is decided on the rows changes."""
    if tolerance is not None:
        assert judge is not None
        return lambda forest: judge.of(forest).within(tolerance)
    batches = [(batch.X, evaluate_quickly(source, encode(source, batch.X))) for batch in rows.batches()]

    def near(forest: Forest) -> bool:
        changed = Change(source, forest)
        for X, truth in batches:
            changed.add(truth, evaluate_quickly(forest, encode(forest, X)))
        return changed.share <= change

    return near


@dataclass(frozen=True)
class _Measured:
    """change[c]: share of rows whose decision candidate c changes, or its largest error over the range of scores.
    changed[c]: number of these rows. values[c]: its `LargestError` after the link, if measured."""

    change: list[float]
    changed: list[int]
    paths_changed: int
    rows: int
    values: list[float]


def _measure(forest: Forest, shaped: Forest, candidates: list[Leaves], rows: Rows | None, *, values: bool) -> _Measured:
    """What each candidate changes on the rows, in one pass over them. values: also measure values after the link."""
    changed_rows = [0] * len(candidates)
    errors = [0.0] * len(candidates)
    paths = total_rows = 0
    low, high = math.inf, -math.inf
    finished = [with_leaves(shaped, leaves) for leaves in candidates] if values or not forest.single else []
    moved = [LargestError(forest, largest) for largest in finished]
    for batch in rows.batches() if rows is not None else ():
        truth = evaluate_quickly(forest, encode(forest, batch.X))
        words = encode(shaped, batch.X)
        nodes = list(nodes_reached(shaped, words).T)
        reached = [tree.leaf[node] for tree, node in zip(shaped.trees, nodes, strict=True)]
        ids = np.stack([tree.ids[node] for tree, node in zip(shaped.trees, nodes, strict=True)], axis=1)
        paths += int((ids != truth.leaves).any(axis=1).sum())
        total_rows += len(words)
        low, high = min(low, float(truth.scores.min())), max(high, float(truth.scores.max()))
        for place, leaves in enumerate(candidates):
            scores = np.tile(leaves.bias, (len(words), 1))
            for tree_values, outputs, leaf in zip(leaves.values, leaves.outputs, reached, strict=True):
                scores[:, list(outputs)] += tree_values[leaf]
            if values:
                moved[place].add(truth.values, judged(finished[place], ids, scores).values)
            if not forest.decides:
                total = judged(finished[place], ids, scores).scores if leaves.parts else scores
                error = np.abs(total * leaves.scale - truth.scores).max()
                errors[place] = max(errors[place], float(error))
                continue
            if leaves.parts:
                index = judged(finished[place], ids, scores).index.reshape(len(words), -1)
                changed_rows[place] += int((index != truth.index.reshape(len(words), -1)).any(axis=1).sum())
            else:
                index = decide(leaves.decision, scores, scores)
                changed_rows[place] += int((index != truth.index).sum())
    if not total_rows:
        return _Measured([math.nan] * len(candidates), changed_rows, 0, 0, [])
    spread = score_range(low, high)
    change = [count / total_rows for count in changed_rows] if forest.decides else [e / spread for e in errors]
    return _Measured(change, changed_rows, paths, total_rows, [largest.share for largest in moved])
