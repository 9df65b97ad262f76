"""The largest or smallest of the trees' values, and the class that such scores decide.

Values are counted from where the score starts: no largest value is below the largest of the trees' smallest leaves. If
the trees have one value beside it, as clauses of a rule do, each tree becomes a bit, an AND of its conditions, and
their extreme an OR. Scores of two values each decide in an order of priority, without a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from forestc.errors import ModelError
from forestc.forest.extremes import start_and_steps
from forestc.forest.ir import LEAF, Decision, Forest
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, FALSE, Net, WordType

T = TypeVar("T")


class TreeLowering(Protocol):
    """What is needed of the lowering of a forest. offsets: what is added to each output's word."""

    forest: Forest
    builder: NetlistBuilder
    offsets: list[int]

    def mux_tree(self, index: int, values: Sequence[int], word: WordType) -> Net: ...


@dataclass(frozen=True)
class Extreme:
    """A score: a net without its offset, its smallest and largest value. bit: of a score of at most two values, the net
    that is 1 where the score is `then`, else it is `otherwise`; None for other scores."""

    score: tuple[Net, int, int]
    bit: Net | None
    then: int
    otherwise: int


def balanced(items: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Nets, or pairs of them, joined two at a time, in as few levels as can be."""
    items = list(items)
    while len(items) > 1:
        items = [join(a, b) for a, b in zip(items[::2], items[1::2], strict=False)] + items[len(items) & ~1 :]
    return items[0]


def largest_of(builder: NetlistBuilder, words: Sequence[Net]) -> Net:
    """The largest of words of one type."""
    return balanced(words, lambda a, b: builder.mux(builder.compare(a, b), b, a))


def refuse_extremes_of_parts(forest: Forest) -> None:
    """Raises ModelError for parts that take the largest or smallest value of their trees."""
    for index, part in enumerate(() if forest.single else forest.parts):
        if part.aggregate.kind != "sum":
            raise ModelError(
                f"part {index} takes the {part.aggregate.kind} of its trees, which is not compiled for parts",
                do="use a sum or mean",
            )


def extreme_of(lowering: TreeLowering, output: int) -> Extreme:
    """The extreme of the trees that feed an output; adds its offset to those of the lowering."""
    builder, forest = lowering.builder, lowering.forest
    start, steps = start_and_steps(forest, output)
    sign = 1 if forest.aggregate.kind == "max" else -1
    first = start + lowering.offsets[output]
    used = {index: forest.trees[index].leaf[forest.trees[index].left == LEAF] for index in steps}
    distinct = sorted({int(value) for index, values in steps.items() for value in values[used[index]]} - {0})
    largest = distinct[-1] if distinct else 0
    word = width_for(0, largest)
    bit: Net | None = FALSE
    if not distinct:
        net = FALSE
    elif len(distinct) == 1:
        bits = [lowering.mux_tree(index, (values > 0).astype(int).tolist(), BIT) for index, values in steps.items()]
        bit = balanced(bits, builder.or_)
        net = bit if word == BIT else builder.mux(bit, builder.const(largest, word), builder.const(0, word))
    else:
        bit = None
        words = [lowering.mux_tree(index, values.tolist(), word) for index, values in steps.items()]
        net = largest_of(builder, words)
    if sign > 0:
        lowering.offsets[output] += start
        return Extreme((net, 0, largest), bit, first + largest, first)
    lowering.offsets[output] += start - word.high  # a word less than its highest is the word inverted
    return Extreme((builder.not_(net), word.high - largest, word.high), bit, first - largest, first)


def prioritized(builder: NetlistBuilder, decision: Decision, scores: Sequence[Extreme]) -> Net | None:
    """The index of the largest of scores of two values each: the first in the order of all these values that is taken.
    None if it is no argmax or a score has more values."""
    if decision.kind != "argmax" or any(score.bit is None for score in scores):
        return None
    sign = -1 if decision.ties == "last" else 1
    values = [(value, index) for index, score in enumerate(scores) for value in {score.then, score.otherwise}]
    order = sorted(values, key=lambda pair: (-pair[0], sign * pair[1]))
    conditions: list[tuple[Net, int]] = []
    for value, index in order:
        score = scores[index]
        if value == min(score.then, score.otherwise):  # the larger one, which comes earlier, is not taken
            break
        bit = score.bit if score.bit is not None else FALSE
        conditions.append((bit if value == score.then else builder.not_(bit), index))
    word = width_for(0, len(scores) - 1)
    label = builder.const(index, word)
    for bit, other in reversed(conditions):
        label = builder.mux(bit, builder.const(other, word), label)
    return label
