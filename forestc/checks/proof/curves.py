"""Proves that nets hold step functions of scores, the quantized form of link functions."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forestc.checks.proof.evidence import Evidence, Form
from forestc.checks.proof.parts import UnprovedError
from forestc.errors import InternalError
from forestc.lowering.draft import Operand
from forestc.netlist.ir import Const, Net, WordType
from hw_sim import evaluate_from

MOST_VALUES = 1 << 17  # tries each value if a score has fewer; otherwise the solver decides
SOME_VALUES = 1 << 12  # limits the values of a score tried at once


@dataclass(frozen=True)
class Argument:
    """The argument of a step function, from `low` to `high`."""

    low: int
    high: int
    more: Mapping[Net, int]  # by net: the constant that it holds beyond the argument


def prove_step_function(
    evidence: Evidence, operand: Operand, where: str, curve: Sequence[int], step: tuple[int, int], score: Form
) -> int:
    """Proves that `operand` holds step[0] * level + step[1]. The level is the number of entries of `curve` not above
    the score. Returns the operand's largest value. Raises UnprovedError or TimeoutError."""
    low, high = evidence.span(score)
    more = {} if isinstance(operand, Const) else {
        net: form[1] - score[1] for form, net in evidence.sums_below(operand, {score[0]})
    }  # fmt: skip
    return prove_curve(evidence, operand, where, curve, step, Argument(low, high, more))


def prove_curve(
    evidence: Evidence, operand: Operand, where: str, curve: Sequence[int], step: tuple[int, int], free: Argument
) -> int:
    """Proves that `operand` holds step[0] * level + step[1] for each value of the argument `free`. The level is the
    number of entries of `curve` not above the argument. Returns the operand's largest value. Raises UnprovedError or
    TimeoutError."""
    few = free.high - free.low < MOST_VALUES
    wrong = (_wrong_value if few else _wrong_by_solver)(evidence, operand, curve, step, free)
    if wrong:
        raise UnprovedError(f"{where} differs at {wrong}{evidence.absent_note()}")
    return max(step[1] + step[0] * bisect_right(curve, end) for end in (free.low, free.high))


def _wrong_value(
    evidence: Evidence, operand: Operand, curve: Sequence[int], step: tuple[int, int], free: Argument
) -> str:
    for start in range(free.low, free.high + 1, SOME_VALUES):
        values = np.arange(start, min(start + SOME_VALUES, free.high + 1))
        level = step[1] + step[0] * np.searchsorted(np.array(curve), values, side="right")
        free_nets = {net: values + more for net, more in free.more.items()}
        try:
            if isinstance(operand, Const):
                held = np.full(len(values), operand.value)
            else:
                held = evaluate_from(evidence.netlist, operand, free_nets, len(values))
        except (KeyError, InternalError) as error:
            return f"a net that is not of its score alone ({error})"
        wrong = np.flatnonzero(held != level)
        if len(wrong):
            return f"score={values[wrong[0]]}"
    return ""


def _wrong_by_solver(
    evidence: Evidence, operand: Operand, curve: Sequence[int], step: tuple[int, int], free: Argument
) -> str:
    solver = evidence.solver()
    width = max(abs(free.low), abs(free.high), len(curve) * abs(step[0])).bit_length() + 3
    word = solver.word("score", WordType(width, True), free.low, free.high)
    cuts = {
        net: solver.low_bits(solver.plus(word, more, width), evidence.netlist.types[net].width)
        for net, more in free.more.items()
    }
    level = solver.constant(step[1], width)
    for cut, times in Counter(curve).items():
        if cut > free.high:
            continue
        if cut > free.low:
            below = solver.less(word, solver.constant(cut, width), True)
            more = solver.choose(below, 0, times * step[0], WordType(width, True))
        else:
            more = solver.constant(times * step[0], width)
        level = solver.make(solver.kind.BV_ADD, [level, more])
    got = solver.resized(solver.operand(operand, cuts), evidence.type_of(operand), width)
    wrong = solver.differ(got, level)
    return "" if wrong is None else solver.described(wrong)
