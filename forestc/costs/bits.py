"""A network of one-bit functions: ANDs, XORs and multiplexers. Equal nodes are built once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

Edge: TypeAlias = int  # 2 * node, plus 1 if inverted; node 0 is the constant 0
_LEAF: tuple[Edge, ...] = ()


class Bits:
    """A network of one-bit functions."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Edge, ...]] = [_LEAF]  # fan-in edges: 2 for AND or XOR, 3 for a multiplexer
        self.feeds: dict[int, tuple[Edge, ...]] = {}  # edges that each leaf depends on
        self.xors: set[int] = set()  # nodes that are XORs
        self.edge_of: dict[tuple[Hashable, ...], Edge] = {}  # edges by the key of their function

    def leaf(self, *feeds: int) -> int:
        self.nodes.append(_LEAF)
        self.feeds[len(self.nodes) - 1] = feeds
        return 2 * len(self.nodes) - 2

    def node(self, key: tuple[Hashable, ...], edges: tuple[int, ...]) -> int:
        edge = self.edge_of.get(key)
        if edge is None:
            self.nodes.append(edges)
            edge = self.edge_of[key] = 2 * len(self.nodes) - 2
            if key[0] == "^":
                self.xors.add(edge >> 1)
        return edge

    def and_(self, a: int, b: int) -> int:
        if a > b:
            a, b = b, a
        if a == 0 or a ^ b == 1:
            return 0
        if a in (1, b):
            return b
        return self.node(("&", a, b), (a, b))

    def or_(self, a: int, b: int) -> int:
        return self.and_(a ^ 1, b ^ 1) ^ 1

    def mux(self, select: int, a: int, b: int) -> int:
        if select & 1:
            select, a, b = select ^ 1, b, a
        if a == b or select == 0:
            return b
        if a < 2 or a >> 1 == select >> 1:
            return self.or_(select, b) if a in (1, select) else self.and_(select ^ 1, b)
        if b < 2 or b >> 1 == select >> 1:
            return self.and_(select, a) if b in (0, select) else self.or_(select ^ 1, a)
        if a ^ b == 1:
            low, high = sorted((select, b & ~1))
            return self.node(("^", low, high), (low, high)) ^ (b & 1)
        inverted = a & 1
        return self.node(("?", select, a ^ inverted, b ^ inverted), (select, a ^ inverted, b ^ inverted)) ^ inverted

    def xor(self, a: int, b: int) -> int:
        return self.mux(a, b ^ 1, b)

    def majority(self, a: int, b: int, c: int) -> int:
        return self.mux(self.xor(a, b), c, a)
