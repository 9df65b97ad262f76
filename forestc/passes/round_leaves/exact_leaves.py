"""Finds integer leaves that equal the model's own, and bounds the error of scores if leaves are rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import decide, finish_scores, link_values
from forestc.forest.ir import Decision, Forest

DIGITS = {"float32": 24, "float64": 53}
SPARE = 3  # bits of precision kept free for a division of sums
MOST_SUMS = 1 << 16  # tests the link on fewer sums than this, to compare their order
MOST_DENOMINATOR = 512
MOST_RATIOS = 1 << 13  # tests at most this many values for common denominators
FINE = 16  # divides the limit of a denominator that only some leaves have


@dataclass(frozen=True)
class Grid:
    """A step that divides all leaves and biases; integers can then replace them exactly."""

    step: float  # a power of two
    bits: int  # bits of a leaf, counted from the lowest of its tree
    decision: Decision  # the model's decision, for sums counted in steps


def leaf_grid(model: Forest, forest: Forest) -> Grid | None:
    """Returns a grid on which integer leaves decide every input as the model does; None if none is found. forest:
    result of `one_output` for the model."""
    step = _step(model)
    if step is None:
        return None
    digits = DIGITS[model.aggregate.precision] - SPARE * (model.aggregate.divisor != 1.0)
    reach = np.abs(model.bias)
    for tree in model.trees:
        reach[list(tree.outputs)] += np.abs(tree.values).max(axis=0)
    if not _decides_on_sums(model, step, float(reach.max())):
        return None
    if not (reach / step < 2.0**digits).all() or (model.aggregate.divisor != 1.0 and model.bias.any()):
        return None
    two_in_one = forest.n_outputs < model.n_outputs
    if two_in_one and any((tree.values.sum(axis=1) != 1.0).any() for tree in model.trees):
        return None
    decision = _two_classes(len(model.trees), step) if two_in_one else _decision(model, step)
    spans = [float((tree.values - tree.values.min(axis=0)).max(initial=0.0)) for tree in forest.trees]
    return None if decision is None else Grid(step, max(1, int(max(spans, default=0.0) / step).bit_length()), decision)


def _decides_on_sums(model: Forest, step: float, reach: float) -> bool:
    """Returns True if deciding by the sums gives the same class as deciding after the link."""
    link, divisor = model.link, model.aggregate.divisor
    if model.decision.kind != "argmax" or model.decision.on == "scores" or link.kind == "identity":
        return True
    if link.kind == "softmax":  # softmax: the largest sum gives exp(0) = 1, the next at most exp(-least)
        least = step / divisor * link.slope
        return not link.intercept and least > 2.0 ** (SPARE + 1 - DIGITS[model.aggregate.precision])
    if link.kind not in ("sigmoid", "logistic", "exp") or not 2 * reach / step < MOST_SUMS:
        return False
    sums = (np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step).astype(model.aggregate.precision)
    return bool((np.diff(link_values(sums / sums.dtype.type(divisor), link)) > 0).all())


def _step(model: Forest) -> float | None:
    """Returns the largest power of two that divides all leaves and biases; None if some are infinite or too precise."""
    values = np.concatenate([tree.values.ravel() for tree in model.trees] + [model.bias]).astype(np.float64)
    if not np.isfinite(values).all() or (values.astype(model.aggregate.precision) != values).any():
        return None
    values = values[values != 0]
    if not len(values):
        return 1.0
    fraction, exponent = np.frexp(values)
    significand = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    lowest = np.log2((significand & -significand).astype(np.float64)).astype(np.int64)
    return math.ldexp(1.0, int((exponent - 53 + lowest).min()))


def _two_classes(trees: int, step: float) -> Decision:
    """Returns a decision that takes class 1 if its sum exceeds half the number of trees."""
    return Decision("threshold", math.floor(trees / (2 * step)) + 1)


def _decision(model: Forest, step: float) -> Decision | None:
    """Returns the model's decision, restated for sums that are counted in steps; None if that is impossible."""
    if model.decision.kind == "none":
        return model.decision
    if model.decision.kind == "argmax":
        return Decision("argmax", 0, "scores", model.decision.ties)
    if model.n_outputs != 1:
        return None
    start = float(model.decision.threshold) * model.aggregate.divisor / step
    if not abs(start) < 2.0**52:
        return None
    sums = math.ceil(start) + np.arange(-3, 4)
    total = (sums * step).astype(model.aggregate.precision)[:, np.newaxis]
    scores = finish_scores(replace(model, bias=np.zeros(1)), model.as_part, total)  # the bias is part of the sums
    above = decide(model.decision, scores, scores) == 1
    if above.all() or not above.any():
        return None
    return Decision("threshold", int(sums[int(np.argmax(above))]))


def score_error(
    model: Forest,
    forest: Forest,
    leaves: Sequence[NDArray[np.int64]],
    bias: NDArray[np.int64],
    step: float,
    exact: bool,
) -> float:
    """Returns a bound of the error of every score, for any input.
    leaves: for each tree (leaves, outputs), in steps above its lowest value.
    bias: (outputs,) in steps.
    exact: True if only the division by `divisor` rounds."""
    divisor = abs(forest.aggregate.divisor)
    least, most, reach = (np.zeros(forest.n_outputs) for _ in range(3))
    start = forest.bias * (1.0 if forest.aggregate.bias_first else forest.aggregate.divisor)
    least += start - bias * step
    most += start - bias * step
    for tree, steps in zip(forest.trees, leaves, strict=True):
        outputs = list(tree.outputs)
        off = tree.values - steps * step  # each tree's lowest value is in the bias
        least[outputs] += off.min(axis=0)
        most[outputs] += off.max(axis=0)
        reach[outputs] += np.abs(tree.values).max(axis=0)
    error = np.maximum(np.abs(least), np.abs(most))
    reach += np.abs(start)
    digit = 2.0 ** (1 - DIGITS[forest.aggregate.precision])
    if exact:
        return float((reach / divisor).max(initial=0.0)) * digit * (math.frexp(divisor)[0] != 0.5)
    if forest.n_outputs < model.n_outputs:  # the two probabilities add up to 1 except for rounding
        error += sum(float(np.abs(tree.values.sum(axis=1) - 1.0).max()) for tree in model.trees)
    error += digit * (len(forest.trees) + 4) * reach
    return float((error / divisor).max(initial=0.0))


def common_steps(forest: Forest, most: float) -> tuple[float, bool]:
    """Returns the number of steps per unit of score, at most `most`, and True if all leaves and biases are nearly
    multiples of a step."""
    parts = [tree.values.ravel() for tree in forest.trees] + [forest.bias]
    values = np.unique(np.concatenate(parts).astype(np.float64))
    slack = 2.0 ** (4 - DIGITS[forest.aggregate.precision])
    stride = -(-len(values) // MOST_RATIOS)
    values, common, all_lie = values[::stride], 1, stride == 1
    for denominator in range(1, MOST_DENOMINATOR + 1):
        if not len(values):
            break
        scaled = values * denominator
        ratios = np.abs(scaled - np.rint(scaled)) <= slack * np.maximum(1.0, np.abs(scaled))
        if not ratios.any():
            continue
        values = values[~ratios]
        joined = math.lcm(common, denominator)
        if joined <= (most if all_lie else most / FINE):
            common = joined
        else:
            all_lie = False
    if all_lie and not len(values):
        return float(common), True
    while common > most / FINE and common % 2 == 0:
        common //= 2
    if common > most / FINE:
        common = 1
    return (float(common * (most // common)) if most >= 1 else most), False


def whole_votes(weights: tuple[float, ...], worth: float, integers: tuple[float, ...]) -> bool:
    """Returns True if the weights are exactly `integers` times `worth`, and `worth` is a power of two."""
    dyadic = math.frexp(worth)[0] == 0.5
    return dyadic and all(w * worth == weight for w, weight in zip(integers, weights, strict=True))
