"""One-bit logic with equal gates shared, inverters free and constants folded away.

A literal is `2 * plane + inverted`; planes are numbered in the order they are made, so a gate's
operands are planes below its own. Plane 0 is the constant 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeAlias

Literal: TypeAlias = int
ZERO: Literal = 0
ONE: Literal = 1


class Op(IntEnum):
    """What a gate computes. SOURCE planes are written from outside: input ranks and bits, registers."""

    SOURCE = 0
    AND = 1  # a & b
    AND_NOT = 2  # ~a & b
    NOR = 3  # ~a & ~b
    OR = 4  # a | b
    OR_NOT = 5  # ~a | b
    NAND = 6  # ~a | ~b
    XOR = 7  # a ^ b
    MUX = 8  # b if a else c
    MUX_NOT_B = 9  # ~b if a else c
    MUX_NOT_C = 10  # b if a else ~c
    MUX_NOT_BC = 11  # ~b if a else ~c
    XOR3 = 12  # a ^ b ^ c
    MAJORITY = 13  # at least two of a, b, c
    MAJORITY_NOT = 14  # at least two of ~a, b, c
    MUX4 = 15


OPS = tuple(Op)


class Gates:
    """Grows a list of gates; every method returns the literal that carries the result."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.operands: list[tuple[int, int, int]] = []  # planes; 0 where an op reads fewer
        self._known: dict[tuple[Op, int, int, int], Literal] = {}
        self.source()  # the constant

    def source(self) -> Literal:
        self.ops.append(Op.SOURCE)
        self.operands.append((0, 0, 0))
        return 2 * len(self.ops) - 2

    def _gate(self, op: Op, a: int, b: int, c: int = 0) -> Literal:
        key = (op, a, b, c)
        literal = self._known.get(key)
        if literal is None:
            literal = 2 * len(self.ops)
            self._known[key] = literal
            self.ops.append(op)
            self.operands.append((a, b, c))
        return literal

    def and_(self, a: Literal, b: Literal) -> Literal:
        if a > b:
            a, b = b, a
        if a <= ONE:
            return b if a else ZERO
        if a ^ b <= 1:
            return a if a == b else ZERO
        return self._pair(Op.AND, a, b)

    def or_(self, a: Literal, b: Literal) -> Literal:
        if a > b:
            a, b = b, a
        if a <= ONE:
            return ONE if a else b
        if a ^ b <= 1:
            return a if a == b else ONE
        return self._pair(Op.OR, a, b)

    def _pair(self, op: int, a: Literal, b: Literal) -> Literal:
        if b & 1 and not a & 1:
            a, b = b, a
        return self._gate(OPS[op + (a & 1) + (b & 1)], a >> 1, b >> 1)

    def xor(self, a: Literal, b: Literal) -> Literal:
        if a > b:
            a, b = b, a
        if a <= ONE:
            return a ^ b
        if a ^ b <= 1:
            return a ^ b
        return self._gate(Op.XOR, a >> 1, b >> 1) ^ (a ^ b) & 1

    def mux(self, select: Literal, a: Literal, b: Literal) -> Literal:
        """a if select is 1, else b."""
        if select & 1:
            select, a, b = select ^ 1, b, a
        if select == ZERO or a == b:
            return b
        if a >> 1 == select >> 1:  # where select is 1, a is known
            a = select ^ a ^ 1
        if b >> 1 == select >> 1:
            b = select ^ b
        if a <= ONE:
            return self.or_(select, b) if a else self.and_(select ^ 1, b)
        if b <= ONE:
            return self.or_(select ^ 1, a) if b else self.and_(select, a)
        if a ^ b == 1:
            return self.xor(select, b)
        return self._gate(OPS[Op.MUX + (a & 1) + 2 * (b & 1)], select >> 1, a >> 1, b >> 1)

    def xor3(self, a: Literal, b: Literal, c: Literal) -> Literal:
        a, b, c = sorted((a, b, c))
        if a <= ONE or a ^ b <= 1:
            return self.xor(a ^ b, c) if a ^ b <= 1 else self.xor(b, c) ^ a
        if b ^ c <= 1:
            return a ^ b ^ c
        return self._gate(Op.XOR3, a >> 1, b >> 1, c >> 1) ^ (a ^ b ^ c) & 1

    def majority(self, a: Literal, b: Literal, c: Literal) -> Literal:
        a, b, c = sorted((a, b, c))
        if a <= ONE:
            return self.or_(b, c) if a else self.and_(b, c)
        if a ^ b <= 1:
            return a if a == b else c
        if b ^ c <= 1:
            return b if b == c else a
        flip = int((a & 1) + (b & 1) + (c & 1) >= 2)
        odd = [literal for literal in (a, b, c) if (literal & 1) != flip]
        if not odd:
            return self._gate(Op.MAJORITY, a >> 1, b >> 1, c >> 1) ^ flip
        first, second = (literal for literal in (a, b, c) if (literal & 1) == flip)
        return self._gate(Op.MAJORITY_NOT, odd[0] >> 1, first >> 1, second >> 1) ^ flip

    def less(self, a: Sequence[Literal], b: Sequence[Literal], signed: bool) -> Literal:
        """1 if a < b, on words of equal width, low plane first."""
        if signed:
            a, b = (*a[:-1], a[-1] ^ 1), (*b[:-1], b[-1] ^ 1)
        result = ZERO
        for x, y in zip(a, b, strict=True):
            result = self.majority(x ^ 1, y, result)
        return result
