"""Rounds the leaves of a forest, or of each of its member models (parts), to integers.

A part whose probabilities are averaged may get curves: tables from integer scores to rounded probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import decide, link_values
from forestc.forest.ir import Aggregate, Decision, Forest, Link, Part, Tree
from forestc.passes.combinations import constant_answer
from forestc.passes.options import MOST_LEAF_BITS
from forestc.passes.round_leaves.exact_leaves import common_steps, leaf_grid, score_error

MOST_SCORE_BITS = 60
MOST_VOTES = 1 << 20
# Ignores differences below this share of a score; float32 rounds by more, 2^-24.
NEGLIGIBLE = 2.0**-30
# Lists the links from one score to one probability that a table can replace.
CURVED = ("identity", "sigmoid", "logistic", "interpolated")
# Lists the links that give probabilities to be averaged.
AVERAGED = (*CURVED, "softmax", "shares")
FINER = 4  # limits the step of leaves that need no curve, in curve steps
# Curves have MORE_CURVE_BITS more bits than leaves, at most MOST_CURVE_BITS in all.
MORE_CURVE_BITS, MOST_CURVE_BITS = 2, 10


@dataclass(frozen=True)
class RoundedLeaves:
    """Integer leaves of every tree, with the bias and the decision for them."""

    values: list[NDArray[np.int64]]  # for each tree (leaves, outputs of the tree)
    outputs: list[tuple[int, ...]]
    bias: NDArray[np.int64]
    scale: float  # the score is (bias + sum of leaves) * scale
    decision: Decision
    parts: tuple[Part, ...] = ()
    exact: bool = False  # True if every input is decided as by the model
    error: float = math.inf  # bound of a score's error for any input; infinite if not known
    weights: tuple[float, ...] | None = None  # integer weights of the parts; None to derive them from the model's
    link: Link | None = None  # link after the parts are combined; None to keep the model's


def refuse_sums(forest: Forest) -> None:
    """Raises ModelError for a forest with answers that sums of integer leaves can't give."""
    if forest.combine.kind == "average":
        for index, part in enumerate(forest.parts):
            if not (_one_mean(forest) or _all_curved(forest)) and not _averageable(forest, part):
                raise ModelError(
                    f"a mean of values after a link {part.link.kind} is read but not compiled",
                    where=f"part {index}",
                    do="vote with voting='hard'",
                )
    elif not forest.single and not all(part.classes for part in forest.parts) and forest.combine.kind != "median":
        raise ModelError(
            "parts that are regressions are read but not compiled yet", where="the model", do="train them apart"
        )
    for part in forest.parts:
        if part.aggregate.kind != "sum":
            raise ModelError(
                f"the aggregate {part.aggregate.kind} is read but not compiled yet",
                where="the model",
                do="use a sum or mean",
            )


def has_whole_leaves(forest: Forest) -> bool:
    """Returns True if the forest takes the largest or smallest of leaves that are whole numbers, as rules do, or adds
    leaves of a number type."""
    if forest.aggregate.kind == "typed":
        return True
    if not forest.single or forest.adds or np.any(forest.bias) or forest.aggregate.divisor != 1:
        return False
    numbers = np.concatenate([tree.values.ravel() for tree in forest.trees] or [np.zeros(0)])
    return bool((numbers == np.rint(numbers)).all() and np.abs(numbers).max(initial=0) < 2**MOST_LEAF_BITS)


def whole_leaves(forest: Forest) -> Forest:
    """Converts a forest that meets `has_whole_leaves` to a forest of integers."""
    if forest.aggregate.score is not None:
        fraction = forest.aggregate.score.fraction
        steps = [np.ldexp(tree.values, fraction).astype(np.int64) for tree in forest.trees]
        trees = tuple(changed_tree(tree, values=own) for tree, own in zip(forest.trees, steps, strict=True))
        bias = np.ldexp(forest.bias, fraction).astype(np.int64)
        return changed(forest, trees=trees, bias=bias, scale=math.ldexp(1.0, -fraction))
    trees = tuple(changed_tree(tree, values=tree.values.astype(np.int64)) for tree in forest.trees)
    decision = replace(forest.decision, threshold=math.ceil(forest.decision.threshold))
    # The largest or smallest value of one tree is their sum, which proofs follow more easily.
    lone = not forest.decides and [tree.outputs for tree in trees] == [(k,) for k in range(forest.n_outputs)]
    aggregate = Aggregate() if lone else forest.aggregate
    bias = np.zeros(forest.n_outputs, np.int64)
    return changed(forest, trees=trees, bias=bias, aggregate=aggregate, scale=1.0, decision=decision)


def _one_mean(forest: Forest) -> bool:
    """Returns True if a single sum of leaves can give the mean of all member models."""
    return all(part.link == Link() and part.decision.kind != "threshold" for part in forest.parts)


def _all_curved(forest: Forest) -> bool:
    """Returns True if tables can turn each part's score into a probability of two classes."""
    return all(part.link.kind in CURVED and _two_classes(part) for part in forest.parts)


def _averageable(forest: Forest, part: Part) -> bool:
    curved = [curve.kind in CURVED for curve in part.link.each]
    wide = part.width == len(forest.classes) and part.link.kind in AVERAGED and part.link.slope > 0 and all(curved)
    return wide or (part.decision.kind == "threshold" and part.width == 1 and part.link.kind in CURVED)


def _two_classes(part: Part) -> bool:
    """Returns True if a member model has a threshold, or two classes and no link."""
    return part.decision.kind == "threshold" or (len(part.classes) == 2 and part.link == Link())


def one_sum(forest: Forest) -> Forest:
    """Returns averaged member models (parts) as one sum of trees. If nothing is averaged, or one sum can't give the
    mean, returns the forest unchanged."""
    if forest.combine.kind != "average":
        return forest
    answer = constant_answer(forest)
    if answer is not None:
        return _constant_sum(forest, answer.scores[0].astype(np.float64))
    first = forest.parts[0]
    if len(forest.parts) == 1 and first.link.kind == "softmax":
        own = {"aggregate": first.aggregate, "link": first.link, "decision": replace(forest.decision, on="values")}
        return changed(forest, parts=(), **own)
    return _mean_of_parts(forest) if _one_mean(forest) else forest


def _constant_sum(forest: Forest, scores: NDArray[np.float64]) -> Forest:
    """Returns a forest that has these scores (classes,) for every input."""
    trees = [
        changed_tree(tree, values=np.zeros((len(tree.values), 1)), outputs=(index % len(scores),))
        for index, tree in enumerate(forest.trees)
    ]
    sums: dict[str, Any] = {"aggregate": Aggregate(), "parts": ()}
    return changed(forest, trees=tuple(trees), n_outputs=len(scores), bias=scores, **sums)


def _mean_of_parts(forest: Forest) -> Forest:
    """Returns a forest that computes the mean of member models as one sum of weighted leaves."""
    weights, width = forest.weights, forest.parts[0].width
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
    mean = Aggregate(divisor=sum(weights))  # The mean divides as the library does, and its bias is part of the sum.
    return changed(forest, trees=tuple(trees), n_outputs=width, bias=bias, aggregate=mean, parts=())


def one_output(forest: Forest) -> Forest:
    """Returns the forest with one output if it chooses between probabilities p and 1 - p; any other forest is returned
    unchanged."""
    two = forest.n_outputs == 2 and forest.decision.kind == "argmax" and not forest.bias.any()
    two &= forest.decision.ties == "first"
    if not two or any(tree.outputs != (0, 1) for tree in forest.trees):
        return forest
    if not all(np.allclose(tree.values.sum(axis=1), 1.0, rtol=0, atol=1e-9) for tree in forest.trees):
        return forest
    # On a tie argmax takes class 0, so class 1 needs more than a half.
    above_half = float(np.nextafter(0.5, 1.0)) * len(forest.trees) / forest.aggregate.divisor
    trees = tuple(changed_tree(tree, values=tree.values[:, 1:], outputs=(0,)) for tree in forest.trees)
    return replace(
        forest,
        trees=trees,
        n_outputs=1,
        bias=np.zeros(1),
        decision=Decision("threshold", above_half),
    )


def candidates(forest: Forest, bits: int) -> list[RoundedLeaves]:
    """Returns a list of one or two ways to round the forest's leaves to `bits` bits."""
    if forest.single:
        return [_round_single(forest, bits)]
    match forest.combine.kind:
        case "average":
            return _round_curves(forest, bits) if _all_curved(forest) else [_round_means(forest, bits)]
        case "median":
            return [_round_together(forest, bits)]
        case _:
            return [round_parts(forest, bits)]


def unseen(forest: Forest, bits: int, most: int) -> RoundedLeaves:
    """Rounds leaves without rows: to exact integers if `most` bits suffice, otherwise to `bits` bits. For averages and
    medians, always to `bits` bits."""
    if forest.single:
        return _round_unseen(forest, bits, most)
    if forest.combine.kind in ("average", "median"):
        return replace(candidates(forest, bits)[0], exact=False, error=math.inf)
    return round_parts(forest, bits, lambda part, own: _round_unseen(part, own, most))


def _round_single(forest: Forest, bits: int) -> RoundedLeaves:
    return as_constant(forest, round_leaves(one_output(forest), bits))


def _round_unseen(model: Forest, bits: int, most: int) -> RoundedLeaves:
    forest = one_output(model)
    grid = leaf_grid(model, forest)
    if grid is None or grid.bits > most:
        return on_steps(model, bits)[0] if model.classes else with_error(model, _round_single(model, bits))
    leaves = replace(round_leaves(forest, grid.bits, grid.step), decision=grid.decision)
    return with_error(model, leaves, exact=True)


def as_constant(model: Forest, leaves: RoundedLeaves) -> RoundedLeaves:
    """Returns leaves that give the answer of a constant model. For any other model, returns `leaves` unchanged."""
    answer = constant_answer(model)
    if answer is None:
        return leaves
    bias, decision, index = leaves.bias, leaves.decision, int(answer.index[0])
    score, reached = float(answer.scores[0, -1]), int(bias[-1])
    if decision.kind == "none":
        off = abs(reached * leaves.scale - score) > NEGLIGIBLE * abs(score)
        exact = len(bias) == 1 and off and reached * score > 0
        return replace(leaves, scale=score / reached) if exact else leaves
    if decide(decision, bias[np.newaxis], bias[np.newaxis])[0] == index:
        return leaves
    if decision.kind == "threshold":
        return replace(leaves, decision=replace(decision, threshold=reached + 1 - index))
    raised = bias.copy()
    raised[index] = bias.max() + 1
    return replace(leaves, bias=raised)


def with_error(model: Forest, leaves: RoundedLeaves, exact: bool = False) -> RoundedLeaves:
    """Returns the leaves with a bound of the scores' rounding error. model: a forest without member models (parts).
    exact: True if only the division by `divisor` rounds."""
    forest = one_output(model)
    error = score_error(model, forest, leaves.values, leaves.bias, leaves.scale * forest.aggregate.divisor, exact)
    return replace(leaves, exact=exact, error=error)


def on_steps(model: Forest, bits: int) -> tuple[RoundedLeaves, bool]:
    """Rounds each leaf to the nearest multiple of one step. Returns the leaves, and True if all were nearly multiples
    before. model: a forest without member models (parts)."""
    forest = one_output(model)
    count = forest.aggregate.divisor
    lows = [_low(tree) for tree in forest.trees]
    start = forest.bias * (1.0 if forest.aggregate.bias_first else count)
    reach, spread = float(np.abs(start).max()), 0.0
    for tree, low in zip(forest.trees, lows, strict=True):
        reach += float(np.abs(tree.values).max())
        spread = max(spread, float((tree.values - low).max()))
    most = ((1 << bits) - 2) / spread if spread else 0.0
    if bits == 1 or not spread > reach * NEGLIGIBLE or not reach * most < 1 << MOST_SCORE_BITS:
        return with_error(model, _round_single(model, bits)), False
    steps, lie = common_steps(forest, most)
    lowest = [np.rint(low * steps).astype(np.int64) for low in lows]
    values = [
        np.rint(tree.values * steps).astype(np.int64) - low for tree, low in zip(forest.trees, lowest, strict=True)
    ]
    bias = np.rint(start * steps).astype(np.int64)
    decision = forest.decision
    if forest.n_outputs < model.n_outputs:  # Class 1 needs a sum of more than half of the trees.
        decision = Decision("threshold", math.floor(Fraction(steps) * len(forest.trees) / 2) + 1)
    elif decision.kind == "threshold":  # The rounded bias is on both sides, so that its rounding cancels.
        needed = Fraction(steps) * (Fraction(float(decision.threshold)) * Fraction(count) - Fraction(float(start[-1])))
        on_step = lie and abs(needed - round(needed)) < NEGLIGIBLE
        decision = Decision("threshold", (round(needed) if on_step else math.ceil(needed)) + int(bias[-1]))
    elif decision.kind == "argmax":
        decision = Decision("argmax", 0, "scores", decision.ties)
    for tree, least in zip(forest.trees, lowest, strict=True):
        bias[list(tree.outputs)] += least
    outputs = [tree.outputs for tree in forest.trees]
    return with_error(model, RoundedLeaves(values, outputs, bias, 1.0 / (steps * count), decision)), lie


def round_leaves(forest: Forest, bits: int, step: float | None = None) -> RoundedLeaves:
    """Returns integer leaves of `bits` bits, counted from each tree's smallest. Raises ModelError if biases are too
    large for integers. step: replaces the step that `bits` implies."""
    lows = [_low(tree) for tree in forest.trees]
    reaches = [float((tree.values - low).max(initial=0.0)) for tree, low in zip(forest.trees, lows, strict=True)]
    spread = max(reaches, default=0.0)  # a part of a forest may have no trees
    offset = np.zeros(forest.n_outputs)
    for tree, low in zip(forest.trees, lows, strict=True):
        offset[list(tree.outputs)] += low
    count = forest.aggregate.divisor
    start = offset + forest.bias * (1.0 if forest.aggregate.bias_first else count)
    # If all trees are nearly constant, the starting scores of the outputs give the step.
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
            f"biases are {float(np.abs(start).max()):.3g} steps of {step:.3g}: too large for integers",
            where="pass round-leaves",
            do="look for a leaf or base score that is far larger than all others",
        )
    bias = np.rint(start).astype(np.int64)
    decision = forest.decision
    if decision.kind == "threshold":
        # The rounded bias is on both sides of the comparison, so its rounding cancels.
        needed = math.ceil(float(decision.threshold) * count / step - start[-1])  # the last of two scores decides
        decision = Decision("threshold", needed + int(bias[-1]))
    elif decision.kind == "argmax":
        decision = Decision("argmax", 0, "scores", decision.ties)
    return RoundedLeaves(values, [tree.outputs for tree in forest.trees], bias, step / count, decision)


def round_parts(
    forest: Forest, bits: int, round_part: Callable[[Forest, int], RoundedLeaves] = _round_single
) -> RoundedLeaves:
    """Rounds each member model (part) alone, with its own bias, scale and decision."""
    exact, error = True, 0.0
    values: list[list[NDArray[np.int64]]] = [[] for _ in forest.trees]
    outputs: list[list[int]] = [[] for _ in forest.trees]
    parts: list[Part] = []
    biases: list[NDArray[np.int64]] = []
    start = 0
    for part in forest.parts:
        chosen = forest.trees_of(part)
        trees = []
        # A tree may feed several member models; only outputs of this one are taken.
        for tree in (forest.trees[index] for index in chosen):
            here = [column for column, output in enumerate(tree.outputs) if part.start <= output < part.stop]
            fed = tuple(tree.outputs[column] - part.start for column in here)
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
    return RoundedLeaves(joined, fed_by, np.concatenate(biases), 1.0, forest.decision, tuple(parts), exact, error)


def _round_together(forest: Forest, bits: int) -> RoundedLeaves:
    """Rounds all member models with one step, because their scores are compared."""
    divisors = np.ones(forest.n_outputs)
    for part in forest.parts:
        divisors[part.start : part.stop] = part.aggregate.divisor
    trees = tuple(changed_tree(tree, values=tree.values / divisors[list(tree.outputs)]) for tree in forest.trees)
    bias = np.concatenate([
        forest.bias[part.start : part.stop] / (part.aggregate.divisor if part.aggregate.bias_first else 1.0)
        for part in forest.parts
    ])  # fmt: skip
    rounded = round_leaves(replace(forest, trees=trees, bias=bias, parts=(), aggregate=Aggregate()), bits)
    parts = [replace(part, aggregate=Aggregate(), scale=rounded.scale) for part in forest.parts]
    return replace(rounded, parts=tuple(parts), decision=forest.decision)


def _round_curves(forest: Forest, bits: int) -> list[RoundedLeaves]:
    """Rounds member models of two classes, each with a table (curve) from scores to probabilities. Returns two
    candidates with different thresholds."""
    rounded = round_parts(forest, bits)
    steps = (1 << min(bits + MORE_CURVE_BITS, MOST_CURVE_BITS)) - 1
    parts = tuple(
        replace(part, curves=(_curve(rounded, part, part.start, part.link, steps),), link=Link())
        for part in rounded.parts
    )
    weights, _ = _integer_weights(forest.combine.weights)
    weight = int(sum(weights)) or len(parts)
    half, last = steps * weight // 2, forest.decision.ties == "last"
    least = -(-steps * weight // 2) if last else half + 1
    apart = weight // 2 + 1 if not last else -(weight // 2 + 1)
    return [
        replace(rounded, parts=parts, scale=1.0 / (steps * weight), decision=Decision("threshold", least + more))
        for more in (0, apart)
    ]


def _round_means(forest: Forest, bits: int) -> RoundedLeaves:
    steps = (1 << min(bits + MORE_CURVE_BITS, MOST_CURVE_BITS)) - 1
    counts = [_scores_as_values(part) for part in forest.parts]

    def round_part(alone: Forest, bits: int) -> RoundedLeaves:
        count = _scores_as_values(alone.as_part)
        return round_leaves(alone, bits, FINER * alone.aggregate.divisor / (steps * count) if count else None)

    rounded = round_parts(forest, bits, round_part)
    shares = Link("shares", each=(Link(),) * len(forest.classes))
    alone = len(forest.parts) == 1  # Without other parts, the steps of a curve decide as probabilities do.
    links = {"softmax": Link("softmax"), "shares": Link() if alone else shares}
    parts = tuple(
        part if count else replace(part, curves=_curves(rounded, part, steps), link=links.get(part.link.kind, Link()))
        for part, count in zip(rounded.parts, counts, strict=True)
    )
    own, _ = _integer_weights(forest.combine.weights)
    own = own or (1.0,) * len(parts)
    unit = max(FINER, *counts) // FINER
    weights = tuple(
        weight * (unit * FINER // count if count else unit) for weight, count in zip(own, counts, strict=True)
    )
    return replace(
        rounded,
        parts=parts,
        scale=1.0 / (steps * unit * sum(own)),
        decision=Decision("argmax", 0, "scores", forest.decision.ties),
        weights=weights,
        link=shares if alone else None,
    )


def _scores_as_values(part: Part) -> int:
    if part.link != Link() or part.decision.kind == "threshold":
        return 0
    return max(FINER, 1 << math.ceil(math.log2(max(1.0, part.aggregate.divisor))))


def _curves(leaves: RoundedLeaves, part: Part, steps: int) -> tuple[tuple[int, ...], ...]:
    if part.link.kind == "softmax":
        return (_curve(leaves, part, None, Link("exp", part.link.slope), steps),)
    links = part.link.each or (part.link,) * part.width
    return tuple(_curve(leaves, part, part.start + index, link, steps) for index, link in enumerate(links))


def _curve(leaves: RoundedLeaves, part: Part, output: int | None, link: Link, steps: int) -> tuple[int, ...]:
    """Returns for k = 1 to `steps` the least score with a probability that rounds to k / `steps` or more."""
    low, high = (np.array(leaves.bias, dtype=np.int64) for _ in range(2))
    for values, outputs in zip(leaves.values, leaves.outputs, strict=True):
        low[list(outputs)] += values.min(axis=0)
        high[list(outputs)] += values.max(axis=0)
    own = slice(part.start, part.stop)
    least, most = (low[output], high[output]) if output is not None else (low[own].min() - high[own].max(), np.int64(0))

    def step_of(scores: NDArray[np.int64]) -> NDArray[np.int64]:
        shown = link_values(scores * part.scale, link)
        return np.asarray(np.floor(np.clip(shown, 0.0, 1.0) * steps + 0.5), dtype=np.int64)

    if step_of(np.array([most]))[0] < step_of(np.array([least]))[0]:
        raise ModelError(
            "a probability falls where its score rises",
            where="the model's calibration",
            do="use a calibration that rises",
        )
    targets = np.arange(1, steps + 1)
    # Bisection keeps step_of(below) < targets <= step_of(above).
    below, above = np.full(steps, least - 1), np.full(steps, most + 1)
    while (above - below > 1).any():
        middle = below + (above - below) // 2
        reached = step_of(middle) >= targets
        above, below = np.where(reached, middle, above), np.where(reached, below, middle)
    return tuple(above.tolist())


def _integer_weights(weights: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
    """Returns the weights of votes as whole numbers, rounded if necessary, and the weight that 1 stands for."""
    if not weights:
        return (), 1.0
    exact = [Fraction(weight).limit_denominator(1000) for weight in weights]
    if all(float(fraction) == weight for fraction, weight in zip(exact, weights, strict=True)):
        common = math.lcm(*(fraction.denominator for fraction in exact))
        integers = [int(fraction * common) for fraction in exact]
        if max(integers) <= MOST_VOTES:
            divisor = math.gcd(*integers) or 1
            return tuple(float(w // divisor) for w in integers), divisor / common
    return tuple(float(round(1000 * (weight / max(weights)))) for weight in weights), max(weights) / 1000


def _low(tree: Tree) -> NDArray[np.float64]:
    return np.asarray(tree.values.min(axis=0), dtype=np.float64)


def with_leaves(forest: Forest, leaves: RoundedLeaves) -> Forest:
    """Returns the integer forest with the rounded leaves. forest: a result of `one_sum`."""
    vote = bool(leaves.parts) and forest.combine.kind == "vote"
    weights, worth = _integer_weights(forest.combine.weights if leaves.parts else ())
    weights = weights if leaves.weights is None else leaves.weights
    link = leaves.link or forest.link
    trees = tuple(
        changed_tree(tree, values=values, outputs=outputs)
        for tree, values, outputs in zip(forest.trees, leaves.values, leaves.outputs, strict=True)
    )
    return changed(
        forest,
        trees=trees,
        n_outputs=len(leaves.bias),
        bias=leaves.bias,
        scale=worth if vote else leaves.scale,
        decision=leaves.decision,
        aggregate=Aggregate(),
        link=Link() if link.kind == "softmax" and len(leaves.bias) == 1 and not leaves.parts else link,
        parts=leaves.parts,
        combine=replace(forest.combine, weights=weights),
    )
