"""quantize: from floats to integers, once and for all.

After it every feature, threshold and leaf is an integer, and everything downstream equals the
evaluator bit for bit. Its guarantee is what the rows show: exact-on-data where no decision of the
given rows changes, else approximate, measured, and refused past the tolerance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, OptionError
from forestc.forest.accuracy import Accuracy, LargestError, answers_of, truth_of_batch
from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import decide, encode, evaluate, judged, leaf_nodes, score_range
from forestc.forest.ir import NO_SET, Aggregate, Combine, Decision, Forest, Link, Member, Part, Tree
from forestc.forest.made_rows import made_rows
from forestc.forest.numbers import Category, parse_number_type
from forestc.forest.ranges import Ranges
from forestc.forest.rows import Judged, Rows
from forestc.passes.base import PassResult
from forestc.passes.exact_formats import choose_exact, given_exactly
from forestc.passes.exact_leaves import leaf_grid, score_error, whole_votes
from forestc.passes.fit_leaves import fitted, lesson
from forestc.passes.formats import Format, choose, given, parse_formats, word_bits
from forestc.passes.observation import observe

MOST_LEAF_BITS = 32
SEARCHED_LEAF_BITS = 16
UNSEEN_LEAF_BITS = range(16, 25)
SEARCHED_SCORE_BITS = 24
MOST_FITTED_BITS = 4
MOST_SCORE_BITS = 60
MOST_VOTES = 1 << 20
NEGLIGIBLE = 2.0**-30  # of a score: float32, which most libraries add in, loses less than 2^-24 of it


@dataclass(frozen=True)
class Quantize:
    """From floats to integers: features, thresholds and leaves. Everything that is written equals its result.

    Promises: exact-on-data where no decision of the given rows changes; else approximate: measured, and refused past
    the tolerance. Without rows exact: every input in the ranges takes the model's own path, and where leaves can't be
    kept as they are, scores stay within a bound that is told.

    input: auto (integers as they are; else fixed point with the fewest bits that change no row's path;
    else ordered), fixed, or ordered (the float's order-preserving key: always exact, widest). Without rows auto and
    fixed take the fewest bits that change no input's path.
    input_bits: auto, or at most so many bits a feature.
    formats: {feature name: type} given by hand, such as {"age": "uint8"}.
    leaf_bits: auto (the fewest that keep every decision on the rows; for regression, the error
    within a tenth of the tolerance), or a number of bits a leaf. Without rows as many as keep all sums, up to 32; where
    the library itself rounds its sums 16, or up to 24 if rows made about the thresholds are decided otherwise.
    missing: auto (a feature accepts missing values if the rows have some; without rows, as ranges and model say),
    always, or never.
    tolerance: largest share of decisions, or for regression largest error over the range of
    scores on the rows, that may change; with fit the accuracy that may be lost on rows held out.
    fit: leaves are fitted together on the rows, for their right classes, instead of rounded one by one: one or two
    bits are often enough. leaf_bits=auto are then the fewest, up to 4, within the tolerance.
    scores: largest error on the rows of the values after the link: of a probability as it is (0.001), of anything else
    as a share of the range of the model's own values on the rows. leaf_bits=auto are then the fewest that keep this,
    too. By default leaf bits are chosen for decisions alone, and probabilities may move far.
    """

    input: str = "auto"
    input_bits: int | str = "auto"
    leaf_bits: int | str = "auto"
    missing: str = "auto"
    tolerance: float = 0.01
    fit: bool = False
    formats: Mapping[str, str] | None = None
    scores: float | None = None
    name: ClassVar[str] = "quantize"

    def __post_init__(self) -> None:
        if self.input not in ("auto", "fixed", "ordered"):
            raise OptionError(f"quantize: input={self.input}", do="use auto, fixed or ordered")
        if self.missing not in ("auto", "always", "never"):
            raise OptionError(f"quantize: missing={self.missing}", do="use auto, always or never")
        for option, most in (("input_bits", 62), ("leaf_bits", MOST_LEAF_BITS)):
            value = getattr(self, option)
            if value != "auto" and (not isinstance(value, int) or not 1 <= value <= most):
                raise OptionError(f"quantize: {option}={value}", do=f"use auto or 1 to {most}")
        if not isinstance(self.fit, bool):
            raise OptionError(f"quantize: fit={self.fit}", do="use true or false")
        if not isinstance(self.tolerance, int | float) or not 0 <= self.tolerance <= 1:
            raise OptionError(f"quantize: tolerance={self.tolerance}", do="use a share from 0 to 1")
        given = isinstance(self.scores, int | float) and not isinstance(self.scores, bool)
        if self.scores is not None and not (given and 0 < self.scores <= 1):
            raise OptionError(f"quantize: scores={self.scores}", do="use an error above 0 and up to 1, such as 0.001")
        if self.scores is not None and self.fit:
            raise OptionError(
                "quantize: leaves that are fitted for classes keep no scores", do="leave fit or scores out"
            )

    def refuse(self, source: Forest, rows: Rows | None) -> None:
        if isinstance(rows, Ranges) and self.fit:
            raise OptionError("quantize{fit=true} needs rows, which leaves are fitted to", do="give --rows, or no fit")
        if isinstance(rows, Ranges) and self.scores is not None:
            raise OptionError(
                "leaf bits that keep scores are chosen on rows, and there are none",
                do="give --rows, or quantize{leaf_bits=24} and the like: how far scores may be off is told",
            )

    def run(self, forest: Forest, rows: Rows | None) -> PassResult:
        """The integer forest. With `Ranges` in place of rows, one that is exact for every input in them; with None,
        inputs are ordered and leaf_bits must be a number.

        Raises OptionError, or ModelError for a forest that is quantised already.
        """
        if forest.quantised:
            raise ModelError("the forest is quantised already")
        source, forest = forest, _one_sum(forest)
        if isinstance(rows, Ranges):
            return self._unseen(source, forest, rows)
        if rows is None and (self.leaf_bits == "auto" or self.input != "ordered" or self.scores is not None):
            raise OptionError("quantize needs rows", do="give rows, or input=ordered and a number of leaf_bits")
        if self.fit and not isinstance(rows, Judged):
            raise OptionError(
                "quantize{fit=true} is judged on rows held out, and there are none", do="give --held-out FILE, or 0.2"
            )
        freedoms = observe(forest, rows)
        asked = parse_formats(self.formats, forest)
        most = None if self.input_bits == "auto" else int(self.input_bits)
        missing, formats = [], []
        for feature, freedom in zip(forest.features, freedoms, strict=True):
            seen = freedom.missing if rows is not None else feature.missing
            missing.append(feature.missing and (self.missing == "always" or (self.missing == "auto" and seen)))
            if feature.name in asked:
                formats.append(given(parse_number_type(asked[feature.name]), missing[-1], freedom))
            else:
                formats.append(choose(feature.number, feature.raw, missing[-1], freedom, self.input, most))
        shaped = _with_words(forest, formats, missing)
        searched = SEARCHED_LEAF_BITS if self.scores is None else SEARCHED_SCORE_BITS
        bits = range(1, searched + 1) if self.leaf_bits == "auto" else [int(self.leaf_bits)]
        rounded = _round_parts if forest.parts else _round_whole
        if self.fit and isinstance(rows, Judged):
            return self._fitted(source, forest, shaped, rows, formats)
        candidates = [rounded(forest, b) for b in bits]
        measured = _measure(source, shaped, candidates, rows, values=self.scores is not None)
        fine = list(range(len(candidates)))
        if self.scores is not None and measured.rows:
            allowed = max(self.scores, min(measured.values))  # the pipeline refuses what is past the first
            fine = [c for c in fine if measured.values[c] <= allowed]
        best = min(fine, key=lambda c: (max(measured.change[c], self._goal(forest)), bits[c]))
        result = _with_leaves(shaped, candidates[best])
        change, kept = measured.change[best], measured.rows > 0
        report = {
            "leaf_bits": bits[best],
            **_inputs_told(forest, formats, missing),
            "rows": measured.rows,
            "paths_changed": measured.paths_changed,
            "decisions_changed" if forest.decides else "largest_error": (
                measured.changed[best] if forest.decides else change
            ),
        }
        if forest.decides and kept and change == 0:
            return PassResult(result, "exact-on-data", report, scores=self.scores)
        return PassResult(result, "approximate", report, tolerance=float(self.tolerance), scores=self.scores)

    def _unseen(self, source: Forest, forest: Forest, ranges: Ranges) -> PassResult:
        """Words that tell all thresholds apart for every value, and leaves as they are where that can be."""
        self.refuse(source, ranges)
        asked = parse_formats(self.formats, forest)
        most = None if self.input_bits == "auto" else int(self.input_bits)
        missing, formats = [], []
        for index, feature in enumerate(forest.features):
            t, values = forest.thresholds_of(index), ranges.of(feature)
            takes = feature.missing if self.missing == "always" else values.takes_missing(feature)
            missing.append(takes and self.missing != "never")
            if feature.name in asked:
                number = parse_number_type(asked[feature.name])
                formats.append(given_exactly(feature, number, missing[-1], t, values))
            else:
                formats.append(choose_exact(feature, missing[-1], t, values, self.input, most))
        shaped = _with_words(forest, formats, missing)
        rounded = _round_parts_unseen if forest.parts else _round_unseen
        bits = UNSEEN_LEAF_BITS[0] if self.leaf_bits == "auto" else int(self.leaf_bits)
        leaves = rounded(forest, bits, MOST_LEAF_BITS if self.leaf_bits == "auto" else bits)
        if (
            self.leaf_bits == "auto" and forest.decides and not leaves.exact
        ):  # more, if near ties are found that need it
            candidates = [rounded(forest, b, b) for b in UNSEEN_LEAF_BITS]
            made = made_rows(source, ranges, (shaped,))
            changed = _measure(source, shaped, candidates, made, values=False).changed
            leaves = candidates[changed.index(min(changed))]
        result = _with_leaves(shaped, leaves)
        exact, error = leaves.exact, leaves.error
        if forest.parts and forest.combine.kind == "vote":
            weights = forest.combine.weights
            exact &= whole_votes(weights, result.scale or 1.0, result.combine.weights)
            error = 0.0 if exact else math.inf  # a member's vote that changes sides changes the sum by its weight
        spans = [int(values.max(initial=0)) for values in leaves.values]
        report = {
            "leaf_bits": max(1, max(spans, default=0).bit_length()),
            "leaves": "exact" if exact else "rounded",
            "score_bound": error if math.isfinite(error) else None,
            "decides": forest.decides,
            **_inputs_told(forest, formats, missing),
        }
        keeps = "decisions" if exact else "paths"
        return PassResult(result, "exact", report, keeps=keeps, bound=error)  # type: ignore[arg-type]

    def _fitted(
        self, source: Forest, forest: Forest, shaped: Forest, rows: Judged, formats: list[Format]
    ) -> PassResult:
        on = lesson(source, shaped, rows.rows)
        tried: dict[int, float] = {}
        found: dict[int, Forest] = {}
        before = _held_out_accuracy(source, source, rows.held_out)
        for bits in range(1, MOST_FITTED_BITS + 1) if self.leaf_bits == "auto" else [int(self.leaf_bits)]:
            start = _round_leaves(_one_output(forest), bits)
            values, bias = fitted(start.values, start.outputs, start.bias, start.decision, bits, on)
            found[bits] = _with_leaves(shaped, replace(start, values=values, bias=bias))
            tried[bits] = before - _held_out_accuracy(source, found[bits], rows.held_out)
            if tried[bits] <= self.tolerance:
                break
        best = min(tried, key=lambda bits: (max(tried[bits], self.tolerance), bits))
        report = {
            "leaf_bits": best,
            "input_bits": sum(word_bits(form.number) for form in formats),
            "rows": len(on.label),
            "constant_trees": sum(int(len(np.unique(tree.values, axis=0)) == 1) for tree in found[best].trees),
            "chosen_on_held_out": len(tried) > 1,
        }
        return PassResult(found[best], "approximate", report, tolerance=float(self.tolerance), measure="accuracy")

    def _goal(self, forest: Forest) -> float:
        """A change not worth more leaf bits: none for decisions, a tenth of the tolerance for values; all of it where
        `scores` says how near they are to be."""
        return 0.0 if forest.decides else self.tolerance / (10 if self.scores is None else 1)


def _inputs_told(forest: Forest, formats: list[Format], missing: list[bool]) -> dict[str, Any]:
    return {
        "input_bits": sum(word_bits(form.number) for form in formats),
        "inputs": {
            f.name: f"{form.number}, {form.keeps}{', may be missing' * absent}"
            for f, form, absent in zip(forest.features, formats, missing, strict=True)
        },
    }


def _held_out_accuracy(source: Forest, forest: Forest, rows: Rows) -> float:
    accuracy = Accuracy(source.decides)
    for batch in rows.batches():
        model = answers_of(source, evaluate(source, batch.X))
        said = model if forest is source else answers_of(forest, evaluate(forest, batch.X))
        accuracy.add(said, truth_of_batch(batch, model))
    return accuracy.share or 0.0


def _one_sum(forest: Forest) -> Forest:
    """The forest as sums of leaves that are compared. A mean of parts whose values are their scores is one sum, its
    leaves weighted by their part's share. Raises ModelError for what no sum decides."""
    if forest.combine.kind == "average" and forest.parts:
        if any(part.link != Link() or part.decision.kind == "threshold" for part in forest.parts):
            raise ModelError(
                "a mean of probabilities after a link is read but not compiled yet", do="vote with voting='hard'"
            )
        forest = _mean_of_parts(forest)
    elif forest.combine.kind == "median" and forest.parts:
        raise ModelError("a weighted median is read but not compiled yet", do="compile its trees one by one")
    if not all(part.classes for part in forest.parts):
        raise ModelError("parts that are numbers are read but not compiled yet", do="train them apart")
    for part in forest.parts or (forest.whole,):
        if part.aggregate.kind != "sum":
            raise ModelError(
                f"the aggregate {part.aggregate.kind} is read but not compiled yet", do="use a sum or mean"
            )
    return forest


def _mean_of_parts(forest: Forest) -> Forest:
    weights = forest.combine.weights or (1.0,) * len(forest.parts)
    width = forest.parts[0].stop - forest.parts[0].start
    bias = np.zeros(width)
    trees = []
    for part, weight in zip(forest.parts, weights, strict=True):
        own = forest.bias[part.start : part.stop]
        bias += weight * (own / part.aggregate.divisor if part.aggregate.bias_first else own)
        for tree in forest.trees:
            if part.start <= tree.outputs[0] < part.stop:
                outputs = tuple(output - part.start for output in tree.outputs)
                values = weight * (tree.values / part.aggregate.divisor)
                trees.append(changed_tree(tree, values=values, outputs=outputs))
    mean = Aggregate(divisor=sum(weights))  # of the weighted members, as the library has it; the bias is in the sum
    return changed(forest, trees=tuple(trees), n_outputs=width, bias=bias, aggregate=mean, parts=(), combine=Combine())


@dataclass(frozen=True)
class _Leaves:
    """Integer leaves of every tree, with what they mean: score = (bias + sum) * scale. exact, error: without rows,
    whether every input is decided as before, and how far a score may be off."""

    values: list[NDArray[np.int64]]
    outputs: list[tuple[int, ...]]
    bias: NDArray[np.int64]
    scale: float
    decision: Decision
    parts: tuple[Part, ...] = ()
    exact: bool = False
    error: float = math.inf


@dataclass(frozen=True)
class _Measured:
    """change[c]: share of rows whose decision candidate c changes, or its largest error over the range
    of scores; changed[c]: the same in rows. values[c]: its `LargestError` after the link, where that was asked for."""

    change: list[float]
    changed: list[int]
    paths_changed: int
    rows: int
    values: list[float]


def _one_output(forest: Forest) -> Forest:
    """Two class probabilities that sum to 1 in every leaf are one number: that of class 1."""
    two = forest.n_outputs == 2 and forest.decision.kind == "argmax" and not forest.bias.any()
    two &= forest.decision.ties == "first"
    if not two or any(tree.outputs != (0, 1) for tree in forest.trees):
        return forest
    if not all(np.allclose(tree.values.sum(axis=1), 1.0, rtol=0, atol=1e-9) for tree in forest.trees):
        return forest
    # argmax takes class 0 on a tie, so class 1 needs more than a half
    above_half = float(np.nextafter(0.5, 1.0)) * len(forest.trees) / forest.aggregate.divisor
    trees = tuple(changed_tree(tree, values=tree.values[:, 1:], outputs=(0,)) for tree in forest.trees)
    return replace(
        forest,
        trees=trees,
        n_outputs=1,
        bias=np.zeros(1),
        decision=Decision("threshold", above_half),
    )


def _with_words(forest: Forest, formats: list[Format], missing: list[bool]) -> Forest:
    """Integer features and thresholds; leaves still to come (zeros)."""
    features = tuple(
        replace(feature, number=form.number, missing=absent)
        for feature, form, absent in zip(forest.features, formats, missing, strict=True)
    )
    takes = np.array([*missing, False])
    old = [forest.thresholds_of(index) for index in range(len(features))]
    trees = []
    for tree in forest.trees:
        words = np.zeros(tree.size, dtype=np.int64)
        for index in np.unique(tree.feature[tree.inner]).tolist():
            here = (tree.feature == index) & (tree.set_index == NO_SET)
            words[here] = formats[index].words[np.searchsorted(old[index], tree.threshold[here])]
        places: dict[tuple[int, int], int] = {}  # of a set and a feature: two features may share one set
        sets: list[tuple[Member, ...]] = []
        set_index = np.full(tree.size, NO_SET, dtype=np.int32)
        for node in np.flatnonzero(tree.set_index != NO_SET).tolist():
            chosen, index = int(tree.set_index[node]), int(tree.feature[node])
            if (chosen, index) not in places:
                members = tree.sets[chosen]
                if not isinstance(features[index].number, Category):
                    cuts = formats[index].words[np.searchsorted(old[index], members)]
                    members = tuple(word for word, times in sorted(Counter(cuts.tolist()).items()) if times % 2)
                places[chosen, index] = len(sets)
                sets.append(members)
            set_index[node] = places[chosen, index]
        trees.append(
            changed_tree(
                tree,
                threshold=words,
                sets=tuple(sets),
                set_index=set_index,
                missing_left=tree.missing_left & takes[tree.feature],
                values=np.zeros(tree.values.shape, dtype=np.int64),
            )
        )
    return replace(
        forest,
        features=features,
        trees=tuple(trees),
        bias=np.zeros(forest.n_outputs, dtype=np.int64),
        scale=1.0,
    )


def _round_whole(forest: Forest, bits: int) -> _Leaves:
    return _round_leaves(_one_output(forest), bits)


def _round_unseen(model: Forest, bits: int, most: int) -> _Leaves:
    """Leaves as they are, in the fewest bits, where that is possible in at most so many; else rounded to `bits`."""
    forest = _one_output(model)
    grid = leaf_grid(model, forest)
    exact = grid is not None and grid.bits <= most
    if grid is not None and exact:
        leaves = replace(_round_leaves(forest, grid.bits, grid.step), decision=grid.decision)
    else:
        leaves = _round_leaves(forest, bits)
    error = score_error(model, forest, leaves.values, leaves.bias, leaves.scale * forest.aggregate.divisor, exact)
    return replace(leaves, exact=exact, error=error)


def _round_parts_unseen(forest: Forest, bits: int, most: int) -> _Leaves:
    return _round_parts(forest, bits, lambda part, bits: _round_unseen(part, bits, most))


def _round_leaves(forest: Forest, bits: int, step: float | None = None) -> _Leaves:
    """Leaves as integers of `bits` bits, counted from each tree's smallest; one step for the whole forest.

    What the smallest leaves add up to goes into the bias. A mean becomes a sum by its scale. step: that of leaves which
    are multiples of one.
    """
    lows = [_low(tree) for tree in forest.trees]
    reaches = [float((tree.values - low).max(initial=0.0)) for tree, low in zip(forest.trees, lows, strict=True)]
    spread = max(reaches, default=0.0)  # a part of a forest may have no trees
    offset = np.zeros(forest.n_outputs)
    for tree, low in zip(forest.trees, lows, strict=True):
        offset[list(tree.outputs)] += low
    count = forest.aggregate.divisor
    start = offset + forest.bias * (1.0 if forest.aggregate.bias_first else count)
    # Where every tree is a constant (or as good as one, beside the start), what there is to tell apart lies
    # in the outputs' starts, or is the start itself.
    reach = float(np.abs(start).max())
    ranges = (spread, float(start.max() - start.min()), reach)
    spread = next((r for r in ranges if r > reach * NEGLIGIBLE), 0.0)
    step = step or (spread / ((1 << bits) - 1) if spread > 0 else 1.0)
    values = [
        np.rint((tree.values - low) / step).astype(np.int64) for tree, low in zip(forest.trees, lows, strict=True)
    ]
    start = start / step
    if not (np.abs(start) < 1 << MOST_SCORE_BITS).all():
        raise ModelError(
            f"scores start {float(np.abs(start).max()):.3g} steps of {step:.3g} from zero: too far for integers",
            do="look for a leaf or base score that is far larger than all others",
        )
    bias = np.rint(start).astype(np.int64)
    decision = forest.decision
    if decision.kind == "threshold":
        # The sum of leaves is compared with the exact place of the threshold; the rounding of the
        # bias, which scores need, cancels out of the decision.
        needed = math.ceil(float(decision.threshold) * count / step - start[0])
        decision = Decision("threshold", needed + int(bias[0]))
    elif decision.kind == "argmax":
        decision = Decision("argmax", 0, "scores", decision.ties)
    return _Leaves(values, [tree.outputs for tree in forest.trees], bias, step / count, decision)


def _round_parts(forest: Forest, bits: int, round_part: Callable[[Forest, int], _Leaves] = _round_whole) -> _Leaves:
    """Each part rounded by itself: its own bias, scale and decision."""
    exact, error = True, 0.0
    values: list[list[NDArray[np.int64]]] = [[] for _ in forest.trees]
    outputs: list[list[int]] = [[] for _ in forest.trees]
    parts: list[Part] = []
    biases: list[NDArray[np.int64]] = []
    start = 0
    for part in forest.parts:
        chosen = forest.trees_of(part)
        trees = []
        for tree in (forest.trees[index] for index in chosen):  # of a tree that feeds several, this part's columns
            here = [place for place, output in enumerate(tree.outputs) if part.start <= output < part.stop]
            fed = tuple(tree.outputs[place] - part.start for place in here)
            trees.append(changed_tree(tree, values=tree.values[:, here], outputs=fed))
        alone = replace(
            forest,
            trees=tuple(trees),
            n_outputs=part.stop - part.start,
            bias=forest.bias[part.start : part.stop],
            aggregate=part.aggregate,
            link=part.link,
            decision=part.decision,
            classes=part.classes,
            parts=(),
        )
        rounded = round_part(alone, bits)
        exact, error = exact and rounded.exact, max(error, rounded.error)
        for index, own, fed in zip(chosen, rounded.values, rounded.outputs, strict=True):
            values[index].append(own)
            outputs[index] += [k + start for k in fed]
        stop = start + len(rounded.bias)
        link = Link() if part.link.kind == "softmax" and stop == start + 1 else part.link
        parts.append(Part(start, stop, Aggregate(), link, rounded.decision, part.classes, rounded.scale))
        biases.append(rounded.bias)
        start = stop
    joined = [np.concatenate(own, axis=1) for own in values]
    fed_by = list(map(tuple, outputs))
    return _Leaves(joined, fed_by, np.concatenate(biases), 1.0, forest.decision, tuple(parts), exact, error)


def _whole_weights(weights: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
    """Weights of votes as whole numbers, and what one is worth: the smallest in their proportion where they have one
    up to 1000, else the nearest thousandths of the largest."""
    if not weights:
        return (), 1.0
    exact = [Fraction(weight).limit_denominator(1000) for weight in weights]
    if all(float(fraction) == weight for fraction, weight in zip(exact, weights, strict=True)):
        common = math.lcm(*(fraction.denominator for fraction in exact))
        whole = [int(fraction * common) for fraction in exact]
        if max(whole) <= MOST_VOTES:
            divisor = math.gcd(*whole) or 1
            return tuple(float(w // divisor) for w in whole), divisor / common
    return tuple(float(round(1000 * (weight / max(weights)))) for weight in weights), max(weights) / 1000


def _low(tree: Tree) -> NDArray[np.float64]:
    return np.asarray(tree.values.min(axis=0), dtype=np.float64)


def _with_leaves(shaped: Forest, leaves: _Leaves) -> Forest:
    vote = bool(leaves.parts) and shaped.combine.kind == "vote"
    weights, worth = _whole_weights(shaped.combine.weights)
    trees = tuple(
        changed_tree(tree, values=values, outputs=outputs)
        for tree, values, outputs in zip(shaped.trees, leaves.values, leaves.outputs, strict=True)
    )
    return changed(
        shaped,
        trees=trees,
        n_outputs=len(leaves.bias),
        bias=leaves.bias,
        scale=worth if vote else leaves.scale,
        decision=leaves.decision,
        aggregate=Aggregate(),
        link=Link() if shaped.link.kind == "softmax" and len(leaves.bias) == 1 and not leaves.parts else shaped.link,
        parts=leaves.parts,
        combine=replace(shaped.combine, weights=weights),
    )


def _measure(
    forest: Forest, shaped: Forest, candidates: list[_Leaves], rows: Rows | None, *, values: bool
) -> _Measured:
    """What each candidate changes on the rows: one pass over them for all candidates. values: after the link, too."""
    changed_rows = [0] * len(candidates)
    errors = [0.0] * len(candidates)
    paths = total_rows = 0
    low, high = math.inf, -math.inf
    finished = [_with_leaves(shaped, leaves) for leaves in candidates] if forest.parts or values else []
    moved = [LargestError(forest, one) for one in finished]
    for batch in rows.batches() if rows is not None else ():
        truth = evaluate(forest, batch.X)
        words = encode(shaped, batch.X)
        nodes = [leaf_nodes(shaped, tree, words) for tree in shaped.trees]
        reached = [tree.leaf[node] for tree, node in zip(shaped.trees, nodes, strict=True)]
        ids = np.stack([tree.ids[node] for tree, node in zip(shaped.trees, nodes, strict=True)], axis=1)
        paths += int((ids != truth.leaves).any(axis=1).sum())
        total_rows += len(words)
        low, high = min(low, float(truth.scores.min())), max(high, float(truth.scores.max()))
        for place, leaves in enumerate(candidates):
            scores = np.tile(leaves.bias, (len(words), 1))
            for own, outputs, leaf in zip(leaves.values, leaves.outputs, reached, strict=True):
                scores[:, list(outputs)] += own[leaf]
            if values:
                moved[place].add(truth.values, judged(finished[place], ids, scores).values)
            if not forest.decides:
                error = np.abs(scores * leaves.scale - truth.scores).max()
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
    return _Measured(change, changed_rows, paths, total_rows, [one.share for one in moved])
