"""Tests every way to make a gate, on every combination of literals, against plain integers."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw_sim.gates import ONE, ZERO, Gates, Literal, Op

SOURCES = 3
LANES = range(1 << SOURCES)
# LITERALS lists the constants, and both literals of each source: the sources are the planes 2, 3 and 4.
LITERALS = [ZERO, ONE, *range(4, 4 + 2 * SOURCES)]


def fresh() -> Gates:
    gates = Gates()
    for _ in range(SOURCES):
        gates.source()
    return gates


def choose(select: int, a: int, b: int) -> int:
    return a if select else b


def column(gates: Gates, literal: Literal) -> list[int]:
    """Returns the literal's value for every combination of the sources."""
    values = []
    for lane in LANES:
        planes = [0, 1, *(lane >> k & 1 for k in range(SOURCES))]
        for op, operands in zip(gates.ops[len(planes) :], gates.operands[len(planes) :], strict=True):
            planes.append(evaluate(op, [planes[read] for read in operands]))
        values.append(planes[literal >> 1] ^ literal & 1)
    return values


def evaluate(op: Op, read: list[int]) -> int:
    a, b, c = (*read, 0, 0)[:3]
    na, nb, nc = 1 - a, 1 - b, 1 - c
    match op:
        case Op.AND | Op.AND_NOT | Op.NOR:
            return {Op.AND: a & b, Op.AND_NOT: na & b, Op.NOR: na & nb}[op]
        case Op.OR | Op.OR_NOT | Op.NAND:
            return {Op.OR: a | b, Op.OR_NOT: na | b, Op.NAND: na | nb}[op]
        case Op.XOR | Op.XOR3:
            return a ^ b ^ c
        case Op.NOT:
            return na
        case Op.MUX | Op.MUX_NOT_B | Op.MUX_NOT_C | Op.MUX_NOT_BC:
            return choose(a, nb if op in (Op.MUX_NOT_B, Op.MUX_NOT_BC) else b, nc if op >= Op.MUX_NOT_C else c)
        case Op.MAJORITY | Op.MAJORITY_NOT:
            return int((na if op == Op.MAJORITY_NOT else a) + b + c >= 2)
        case Op.MUX4:
            s, t, u, d, e, f, g = read
            return choose(s, choose(t, d, e), choose(u, f, g))
    raise AssertionError(op)


@pytest.mark.parametrize(
    ("method", "operands", "meaning"),
    [
        ("and_", 2, lambda a, b: a & b),
        ("or_", 2, lambda a, b: a | b),
        ("xor", 2, lambda a, b: a ^ b),
        ("mux", 3, choose),
        ("xor3", 3, lambda a, b, c: a ^ b ^ c),
        ("majority", 3, lambda a, b, c: int(a + b + c >= 2)),
    ],
)
def test_gates_mean_what_they_say(method, operands, meaning) -> None:
    for literals in product(LITERALS, repeat=operands):
        gates = fresh()
        result = getattr(gates, method)(*literals)
        columns = [column(gates, literal) for literal in literals]
        expected = [meaning(*values) for values in zip(*columns, strict=True)]
        assert column(gates, result) == expected, literals
        assert len(gates.ops) <= 2 + SOURCES + 1, "more than one gate"
        known = len(gates.ops)
        assert getattr(gates, method)(*literals) == result
        assert len(gates.ops) == known, "an equal gate made twice"


@given(st.tuples(*[st.sampled_from(LITERALS)] * 7))
def test_mux4_is_three_muxes(literals: tuple[Literal, ...]) -> None:
    s, t, u, a, b, c, d = literals
    gates = fresh()
    fused = gates.mux4((s, t, u), (a, b), (c, d))
    plain = gates.mux(s, gates.mux(t, a, b), gates.mux(u, c, d))
    assert column(gates, fused) == column(gates, plain)


def word_value(planes: list[int], signed: bool) -> int:
    value = sum(bit << k for k, bit in enumerate(planes))
    return value - (1 << len(planes)) if signed and planes[-1] else value


words = st.tuples(st.lists(st.sampled_from(LITERALS), min_size=2, max_size=5), st.booleans())


@given(st.lists(words, min_size=1, max_size=5), st.integers(1, 9))
def test_add_is_the_sum_modulo_its_width(operands: list[tuple[list[Literal], bool]], width: int) -> None:
    gates = fresh()
    total = gates.add(operands, width)
    columns = [column(gates, literal) for literal in range(2 * len(gates.ops))]
    for lane in LANES:
        expected = sum(word_value([columns[p][lane] for p in planes], signed) for planes, signed in operands)
        assert word_value([columns[p][lane] for p in total], False) == expected % (1 << width)


@given(st.lists(st.tuples(*[st.sampled_from(LITERALS)] * 2), min_size=1, max_size=5), st.booleans())
def test_less_compares_words(pairs: list[tuple[Literal, Literal]], signed: bool) -> None:
    gates = fresh()
    a, b = zip(*pairs, strict=True)
    result = gates.less(a, b, signed)
    columns = [column(gates, literal) for literal in range(2 * len(gates.ops))]
    for lane in LANES:
        x, y = (word_value([columns[p][lane] for p in planes], signed) for planes in (a, b))
        assert columns[result][lane] == int(x < y)


def test_adding_constants_takes_no_gates() -> None:
    gates = fresh()
    x = (4, 6, 8)  # The sources form an unsigned word.
    before = len(gates.ops)
    assert gates.add([(x, False), ((ZERO, ZERO), False)], 3) == list(x)
    assert gates.add([((ONE, ZERO), False), ((ONE, ONE), False)], 4) == [ZERO, ZERO, ONE, ZERO]
    assert len(gates.ops) == before
