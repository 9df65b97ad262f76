"""One-bit logic: equal gates are shared, and constants are folded. A plane is one bit of all simulated vectors. A
literal is a plane or its inverse, as the number `2 * plane + inverted`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeAlias

Plane: TypeAlias = int
Literal: TypeAlias = int
ZERO: Literal = 0
ONE: Literal = 1
ONES_PLANE: Plane = 1  # follows the plane of zeros


class Op(IntEnum):
    """The operation of a gate on its operand planes a, b, c, ..."""

    SOURCE = 0  # written by the kernel: input ranks and bits, registers, constants
    AND = 1  # a & b
    AND_NOT = 2  # ~a & b
    NOR = 3  # ~a & ~b
    OR = 4  # a | b
    OR_NOT = 5  # ~a | b
    NAND = 6  # ~a | ~b
    XOR = 7  # a ^ b
    NOT = 8  # ~a
    MUX = 9  # b if a else c
    MUX_NOT_B = 10  # ~b if a else c
    MUX_NOT_C = 11  # b if a else ~c
    MUX_NOT_BC = 12  # ~b if a else ~c
    XOR3 = 13  # a ^ b ^ c
    MAJORITY = 14  # at least two of a, b, c
    MAJORITY_NOT = 15  # at least two of ~a, b, c
    MUX4 = 16  # (d if b else e) if a else (f if c else g)


_OPS = tuple(Op)  # replaces Op(number), as indexing a tuple is far faster


class Gates:
    """A growing list of gates. A method that adds a gate returns the literal of its result."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.operands: list[tuple[Plane, ...]] = []
        self.owners: list[int] = []
        self.owner = 0
        self._known: dict[tuple[int, ...], Literal] = {}
        self.source()  # zeros
        self.source()  # ones

    def source(self) -> Literal:
        self.ops.append(Op.SOURCE)
        self.operands.append(())
        self.owners.append(self.owner)
        return 2 * len(self.ops) - 2

    def is_gate(self, literal: Literal) -> bool:
        """Returns True unless the literal is a constant or a source."""
        return self.ops[literal >> 1] != Op.SOURCE

    def _gate(self, op: Op, *operands: Plane) -> Literal:
        key = (op, *operands)
        literal = self._known.get(key)
        if literal is None:
            literal = self._known[key] = 2 * len(self.ops)
            self.ops.append(op)
            self.operands.append(operands)
            self.owners.append(self.owner)
        return literal

    def _pair(self, op: Op, a: Literal, b: Literal, absorbing: Literal) -> Literal:
        """Returns an AND or OR of two literals. absorbing: the constant that alone decides the result."""
        if a > b:
            a, b = b, a
        if a <= ONE:
            return a if a == absorbing else b
        if a ^ b <= 1:
            return a if a == b else absorbing
        if b & 1 and not a & 1:  # the variant of the gate with the same inversions of a and b
            a, b = b, a
        return self._gate(_OPS[op + (a & 1) + (b & 1)], a >> 1, b >> 1)

    def and_(self, a: Literal, b: Literal) -> Literal:
        return self._pair(Op.AND, a, b, ZERO)

    def or_(self, a: Literal, b: Literal) -> Literal:
        return self._pair(Op.OR, a, b, ONE)

    def xor(self, a: Literal, b: Literal) -> Literal:
        if a > b:
            a, b = b, a
        if a <= ONE or a ^ b <= 1:
            return a ^ b
        return self._gate(Op.XOR, a >> 1, b >> 1) ^ (a ^ b) & 1

    def mux(self, select: Literal, a: Literal, b: Literal) -> Literal:
        if select & 1:
            select, a, b = select ^ 1, b, a
        if select == ZERO or a == b:
            return b
        if a >> 1 == select >> 1:  # this arm only matters if select is 1, so it is constant
            a = select ^ a ^ 1
        if b >> 1 == select >> 1:
            b = select ^ b
        if a <= ONE:
            return self.or_(select, b) if a else self.and_(select ^ 1, b)
        if b <= ONE:
            return self.or_(select ^ 1, a) if b else self.and_(select, a)
        if a ^ b == 1:
            return self.xor(select, b)
        return self._gate(_OPS[Op.MUX + (a & 1) + 2 * (b & 1)], select >> 1, a >> 1, b >> 1)

    def mux4(
        self,
        selects: tuple[Literal, Literal, Literal],
        first: tuple[Literal, Literal],
        second: tuple[Literal, Literal],
    ) -> Literal:
        """Returns mux(s, mux(t, *first), mux(u, *second)) as one gate, for the selects (s, t, u)."""
        s, t, u = selects
        if s & 1:
            s, t, u, first, second = s ^ 1, u, t, second, first
        if t & 1:
            t, first = t ^ 1, first[::-1]
        if u & 1:
            u, second = u ^ 1, second[::-1]
        return self._gate(Op.MUX4, *map(self._upright, (s, t, u, *first, *second)))

    def _upright(self, literal: Literal) -> Plane:
        """Returns a plane with the literal's value; a NOT gate is added for an inverse."""
        if literal == ONE:
            return ONES_PLANE
        plane = literal >> 1
        return self._gate(Op.NOT, plane) >> 1 if literal & 1 else plane

    def xor3(self, a: Literal, b: Literal, c: Literal) -> Literal:
        a, b, c = sorted((a, b, c))
        if a <= ONE:
            return self.xor(b, c) ^ a
        if a ^ b <= 1 or b ^ c <= 1:
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
        # The majority of three inverses is the inverse of the majority.
        flip = int((a & 1) + (b & 1) + (c & 1) >= 2)
        a, b, c = sorted((a ^ flip, b ^ flip, c ^ flip), key=lambda literal: (~literal & 1, literal))
        return self._gate(Op.MAJORITY_NOT if a & 1 else Op.MAJORITY, a >> 1, b >> 1, c >> 1) ^ flip

    def any(self, literals: Iterable[Literal]) -> Literal:
        result = ZERO
        for literal in literals:
            result = self.or_(result, literal)
        return result

    def less(self, a: Sequence[Literal], b: Sequence[Literal], signed: bool) -> Literal:
        """Returns a literal that is 1 if a < b, for words of equal width, lowest bit first."""
        if signed:
            a, b = (*a[:-1], a[-1] ^ 1), (*b[:-1], b[-1] ^ 1)
        result = ZERO
        for x, y in zip(a, b, strict=True):
            result = self.majority(x ^ 1, y, result)
        return result

    def add(self, words: Iterable[tuple[Sequence[Literal], bool]], width: int) -> list[Literal]:
        """Returns the sum modulo 2**width, lowest bit first. words: pairs (bits, True if signed), one per addend."""
        columns: list[deque[Literal]] = [deque() for _ in range(width + 1)]
        constant = 0
        for planes, signed in words:
            top = len(planes) - 1
            while signed and top and planes[top] == planes[top - 1]:
                top -= 1
            for k in range(min(top + 1, width)):
                literal = planes[k]
                if signed and k == top:  # a sign bit s weighs -2**k, and -s = (1 - s) - 1
                    literal ^= 1
                    constant -= 1 << k
                if literal <= ONE:
                    constant += literal << k
                else:
                    columns[k].append(literal)
        for k in range(width):
            if constant >> k & 1:
                columns[k].appendleft(ONE)
        return [self._reduce(columns[k], columns[k + 1]) for k in range(width)]

    def _reduce(self, column: deque[Literal], carries: deque[Literal]) -> Literal:
        while len(column) > 1:
            a, b = column.popleft(), column.popleft()
            c = column.popleft() if column else ZERO
            column.append(self.xor3(a, b, c))
            carry = self.majority(a, b, c)
            if carry != ZERO:
                carries.append(carry)
        return column[0] if column else ZERO
