"""Builds scores that are the largest or smallest value of the trees, and the class with the largest of these scores.

A score with at most two values is a bit: the OR of one bit per tree. The argmax of such scores needs no comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forestc.errors import ModelError
from forestc.forest.extremes import start_and_steps
from forestc.forest.ir import LEAF, Decision, Forest
from forestc.lowering.decision import largest_of
from forestc.lowering.draft import Draft
from forestc.lowering.sums import Sum, balanced
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, FALSE, Net


@dataclass(frozen=True)
class Extreme:
    """A score that is the largest or smallest of the trees' values."""

    score: Sum
    bit: Net | None  # 1 for `then`, 0 for `otherwise`; None if more values occur
    then: int
    otherwise: int


def refuse_extremes_of_parts(forest: Forest) -> None:
    """Raises ModelError if one of several member models (parts) takes the largest or smallest value of its trees."""
    for index, part in enumerate(() if forest.single else forest.parts):
        if part.aggregate.kind != "sum":
            raise ModelError(
                f"part {index} takes the {part.aggregate.kind} of its trees, which is not compiled for parts",
                where="the model",
                do="use a sum or mean",
            )


def extreme_of(draft: Draft, output: int) -> Extreme:
    """Builds an output's score as the largest or smallest value of its trees, whichever the forest takes."""
    builder, forest = draft.builder, draft.forest
    start, steps = start_and_steps(forest, output)
    first = start + int(forest.bias[output])
    used = {index: forest.trees[index].leaf[forest.trees[index].left == LEAF] for index in steps}
    distinct = sorted({int(value) for index, values in steps.items() for value in values[used[index]]} - {0})
    largest = distinct[-1] if distinct else 0
    word = width_for(0, largest)
    bit: Net | None = FALSE
    if not distinct:
        net = FALSE
    elif len(distinct) == 1:
        bits = [draft.mux_tree(index, (values > 0).astype(int).tolist(), BIT) for index, values in steps.items()]
        bit = balanced(bits, builder.or_)
        net = bit if word == BIT else builder.mux(bit, builder.const(largest, word), builder.const(0, word))
    else:
        bit = None
        words = [draft.mux_tree(index, values.tolist(), word) for index, values in steps.items()]
        net = largest_of(builder, words)
    if forest.aggregate.kind == "max":
        return Extreme(Sum(net, 0, largest, first), bit, first + largest, first)
    # Inverting a word subtracts it from its highest value.
    score = Sum(builder.not_(net), word.high - largest, word.high, first - word.high)
    return Extreme(score, bit, first - largest, first)


def prioritized(builder: NetlistBuilder, decision: Decision, scores: Sequence[Extreme]) -> Net | None:
    """Builds the index of the largest of two-valued scores from their bits. Returns None for another decision, or if a
    score has more values."""
    if decision.kind != "argmax" or any(score.bit is None for score in scores):
        return None
    sign = -1 if decision.ties == "last" else 1
    values = [(value, index) for index, score in enumerate(scores) for value in {score.then, score.otherwise}]
    order = sorted(values, key=lambda pair: (-pair[0], sign * pair[1]))
    conditions: list[tuple[Net, int]] = []
    for value, index in order:
        score = scores[index]
        # If no earlier condition holds, this score has its smaller value, and no score is larger.
        if value == min(score.then, score.otherwise):
            break
        bit = score.bit if score.bit is not None else FALSE
        conditions.append((bit if value == score.then else builder.not_(bit), index))
    word = width_for(0, len(scores) - 1)
    label = builder.const(index, word)
    for bit, other in reversed(conditions):
        label = builder.mux(bit, builder.const(other, word), label)
    return label
