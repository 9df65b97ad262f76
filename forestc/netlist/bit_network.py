"""A netlist bit-blasted into ANDs, XORs and muxes of single bits, structurally hashed, and its cover by LUTs."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from forestc.netlist.ir import (
    Add,
    And,
    Compare,
    Const,
    Input,
    InSet,
    Less,
    Mux,
    Net,
    Netlist,
    Not,
    Or,
    Register,
    compared_bitwise,
    reads,
    small_sum,
)

CHAIN_COUNTS = ("pass", "add", "add_bits", "compare", "compare_bits", "less", "less_bits")
TABLE_NODES = 8  # functions of fewer nodes are covered as they are: that is what costs were fitted on
_LEAF: tuple[int, ...] = ()
Cover: TypeAlias = tuple[list[frozenset[int]], list[int], list[int]]


def _length(word: list[int]) -> int:
    """The length of a word without its leading constant zeros."""
    return max((place + 1 for place, edge in enumerate(word) if edge), default=0)


@dataclass
class BitNetwork:
    """A netlist as a network of one-bit functions.

    An edge is 2 * node, plus 1 if inverted; node 0 is the constant 0. A node is the tuple of its fan-in edges: two for
    an AND or XOR, three for a MUX, all bits for a bit of a small sum, none for a leaf: a bit of a port, register, adder
    or comparison. `feeds` holds the edges that a leaf depends on. chained: the kinds of cells that are built as carry
    chains. table_inputs: large functions of at most so many conditions, as trees are that were grown as tables, are
    leaves too, listed in `tables`; 0 for none.
    """

    netlist: Netlist
    chained: tuple[str, ...]
    table_inputs: int = 0
    nodes: list[tuple[int, ...]] = field(default_factory=lambda: [_LEAF])
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    feeds: dict[int, tuple[int, ...]] = field(default_factory=dict)  # leaf to the edges it depends on
    registers: list[int] = field(default_factory=list)
    chains: list[tuple[str, list[int]]] = field(default_factory=list)  # kind and result edges
    terms: dict[Net, list[tuple[list[int], bool]]] = field(default_factory=dict)  # of sums read by one other sum only
    tables: list[int] = field(default_factory=list)  # the nodes that stand for them
    covers: dict[tuple[int, bool], Cover] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)  # for each cell, the number of nodes before its own

    def __post_init__(self) -> None:
        self.readers: list[list[Net]] = [[] for _ in self.netlist.cells]
        for net, cell in enumerate(self.netlist.cells):
            for a in reads(cell):
                self.readers[a].append(net)
        for _, net in self.netlist.outputs:
            self.readers[net].append(-1)
        words: list[list[int]] = []
        for net in range(len(self.netlist.cells)):
            self.starts.append(len(self.nodes))
            words.append(self.word(net, words))
        self.outputs = [edge for _, net in self.netlist.outputs for edge in words[net]]
        self.alive = self._alive()
        if self.table_inputs:
            self._join_tables()
            self.alive = self._alive()
            self.tables = [node for node in self.tables if self.alive[node]]

    def leaf(self, *feeds: int) -> int:
        self.nodes.append(_LEAF)
        self.feeds[len(self.nodes) - 1] = feeds
        return 2 * len(self.nodes) - 2

    def node(self, key: tuple[Any, ...], edges: tuple[int, ...]) -> int:
        edge = self.known.get(key)
        if edge is None:
            self.nodes.append(edges)
            edge = self.known[key] = 2 * len(self.nodes) - 2
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
        """a if select is 1, else b."""
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

    def word(self, net: Net, words: list[list[int]]) -> list[int]:
        """The edges of a net's bits, lowest first."""
        cell, (width, _) = self.netlist.cells[net], self.netlist.types[net]
        match cell:
            case Const(value):
                return [value >> place & 1 for place in range(width)]
            case Input():
                return [self.leaf() for _ in range(width)]
            case Register(a):
                return [self.register(edge) for edge in words[a]]
            case Less(a, threshold):
                chained = "less" in self.chained and not compared_bitwise(self.netlist, a)
                return [self.less(words[a], threshold, self.netlist.types[a].signed, chained)]
            case InSet(a, members):
                return [self.in_set(words[a], members)]
            case Not(a):
                return [edge ^ 1 for edge in words[a]]
            case And(a, b):
                return [self.and_(words[a][0], words[b][0])]
            case Or(a, b):
                return [self.or_(words[a][0], words[b][0])]
            case Mux(select, a, b):
                return [self.mux(words[select][0], x, y) for x, y in zip(words[a], words[b], strict=True)]
            case Compare(a, b):
                return [self.compare(words[a], words[b], self.netlist.types[a].signed)]
            case Add() if added := small_sum(self.netlist, net):
                shape = tuple((self.netlist.types[a].width, times) for a, times in added.words)
                bits = tuple(edge for a, _ in added.words for edge in words[a])
                return [self.node((f"sum{place}", shape, added.constant, *bits), bits) for place in range(width)]
            case Add((a, b)) if a == b and width == len(words[a]) + 1:
                return [0, *words[a]]
            case Add(operands):
                return self.add(net, operands, words)
            case _:
                assert_never(cell)

    def register(self, edge: int) -> int:
        if edge < 2:
            return edge
        key = ("r", edge)
        if key not in self.known:
            self.known[key] = self.leaf(edge)
            self.registers.append(self.known[key])
        return self.known[key]

    def xor(self, a: int, b: int) -> int:
        return self.mux(a, b ^ 1, b)

    def chain(self, kind: str, bits: int, *feeds: int) -> list[int]:
        results = [self.leaf(*feeds) for _ in range(bits)]
        self.chains.append((kind, results))
        return results

    def less(self, word: list[int], threshold: int, signed: bool, chained: bool) -> int:
        zeros = (threshold & -threshold).bit_length() - 1 if threshold else 0
        if chained and len(word) - zeros > 2:
            below = self.chain("less", len(word) - zeros, *word[zeros:])[-1]
            if not signed:
                return below
            return self.and_(word[-1], below) if threshold < 0 else self.or_(word[-1], below)
        pattern = threshold & ((1 << len(word)) - 1)
        return self.compare(word, [pattern >> place & 1 for place in range(len(word))], signed)

    def compare(self, a: list[int], b: list[int], signed: bool) -> int:
        """1 if a < b, computed from the lowest bit up."""
        constant = all(edge < 2 for edge in b)
        if "compare" in self.chained and len(a) > 2 and not constant:
            return self.chain("compare", len(a), *a, *b)[-1]
        result = 0
        for place, (x, y) in enumerate(zip(a, b, strict=True)):
            if signed and place == len(a) - 1:
                x, y = y, x
            result = self.mux(self.xor(x, y), y, result)
        return result

    def in_set(self, word: list[int], members: tuple[int, ...]) -> int:
        result = 0
        for member in members:
            same = 1
            for place, edge in enumerate(word):
                same = self.and_(same, edge ^ (~member >> place & 1))
            result = self.or_(result, same)
        return result

    def add(self, net: Net, operands: tuple[Net, ...], words: list[list[int]]) -> list[int]:
        """A sum as yosys builds it: nested sums are merged, full adders reduce three words to two (a carry-save tree),
        and a carry chain adds the last two."""
        width = self.netlist.types[net].width
        terms = [
            term
            for a in operands
            for term in self.terms.get(a, [(words[a], self.netlist.types[a].signed)])
            if any(term[0])
        ]
        most = sum((1 << len(word)) - 1 for word, _ in terms)
        if len(terms) > 1 and most < 1 << width and len(self.readers[net]) == 1:
            reader = self.readers[net][0]
            if reader >= 0 and isinstance(self.netlist.cells[reader], Add) and not small_sum(self.netlist, reader):
                self.terms[net] = terms
                return []
        queue = deque(word[:width] + [word[-1] if signed else 0] * (width - len(word)) for word, signed in terms)
        while len(queue) > 2:
            a, b, c = queue.popleft(), queue.popleft(), queue.popleft()
            queue.append([self.xor(self.xor(x, y), z) for x, y, z in zip(a, b, c, strict=True)])
            carries = [self.majority(x, y, z) for x, y, z in zip(a, b, c, strict=True)]
            queue.append([0, *carries[:-1]])
        if not queue:
            return [0] * width
        return self.add_two(*queue) if len(queue) == 2 else queue[0]

    def majority(self, a: int, b: int, c: int) -> int:
        return self.mux(self.xor(a, b), c, a)

    def add_two(self, a: list[int], b: list[int]) -> list[int]:
        """The sum of two words; the bits below the first place where both have one are wires."""
        meet = [place for place, (x, y) in enumerate(zip(a, b, strict=True)) if x and y]
        if not meet:
            return [x | y for x, y in zip(a, b, strict=True)]
        first = meet[0]
        below = [x | y for x, y in zip(a[:first], b[:first], strict=True)]
        longest = max(place for place, pair in enumerate(zip(a, b, strict=True)) if any(pair)) + 1
        if "add" in self.chained and min(_length(a), _length(b)) - first > 2:
            bits = min(len(a), longest + 1) - first
            results = self.chain("add", bits, *a[first:], *b[first:])
            return below + results + [0] * (len(a) - first - bits)
        carry, total = 0, list(below)
        for x, y in zip(a[first:], b[first:], strict=True):
            total.append(self.xor(self.xor(x, y), carry))
            carry = self.majority(x, y, carry)
        return total

    def chained_counts(self) -> dict[str, float]:
        """The number of carry chains and of their bits by kind, each chain up to its highest used result. pass:
        comparison results that a register or an output reads directly."""
        counts = dict.fromkeys(CHAIN_COUNTS, 0.0)
        comparisons = {edge >> 1 for kind, results in self.chains if kind != "add" for edge in results[-1:]}
        alive = [register >> 1 for register in self.registers if self.alive[register >> 1]]
        ends = {edge >> 1 for register in alive for edge in self.feeds[register]}
        counts["pass"] = len(comparisons & (ends | {edge >> 1 for edge in self.outputs}))
        for kind, results in self.chains:
            used = max((place + 1 for place, edge in enumerate(results) if self.alive[edge >> 1]), default=0)
            counts[kind] += used > 0
            counts[f"{kind}_bits"] += used
        return counts

    def _alive(self) -> list[bool]:
        alive = [False] * len(self.nodes)
        alive[0] = True
        todo = [edge >> 1 for edge in self.outputs]
        while todo:
            node = todo.pop()
            if not alive[node]:
                alive[node] = True
                todo += [edge >> 1 for edge in self.nodes[node] or self.feeds.get(node, ())]
        return alive

    def _join_tables(self) -> None:
        """Turns functions of few conditions into leaves. Conditions are what multiplexers and gates of the netlist
        read that is none of these itself."""
        support: dict[int, frozenset[int]] = {}  # of each multiplexer and gate the conditions; none if too many
        below: dict[int, int] = {}  # multiplexers and gates up to each, those on two paths twice
        read = {edge >> 1 for edge in self.outputs}  # by others than multiplexers and gates of few conditions
        for node, edges in enumerate(self.nodes):
            if not self.alive[node]:
                continue
            fed = [edge >> 1 for edge in edges]
            read.update(edge >> 1 for edge in self.feeds.get(node, ()))
            if not edges or not isinstance(self.netlist.cells[self.cell_of(node)], Mux | And | Or):
                read.update(fed)
                continue
            conditions = frozenset[int]().union(*(support.get(a, (a,)) for a in fed))
            few = len(conditions) <= self.table_inputs and all(support.get(a, True) for a in fed)
            support[node] = conditions if few else frozenset()
            below[node] = 1 + sum(below.get(a, 0) for a in fed)
            if not few:
                read.update(fed)
        for node in sorted(read):
            if support.get(node) and below[node] >= TABLE_NODES:
                self.nodes[node] = _LEAF
                self.feeds[node] = tuple(2 * a for a in sorted(support[node]))
                self.tables.append(node)

    def in_tables(self, inputs: int) -> dict[int, int]:
        """The LUTs of `inputs` inputs that each table takes: twice as many for each further condition."""
        return {node: 1 << max(0, len(self.feeds[node]) - inputs) for node in self.tables}

    def flip_flops(self) -> int:
        return sum(self.alive[edge >> 1] for edge in self.registers)

    def covered(self, inputs: int, fast: bool = False, after: int = 0) -> int:
        """The number of LUTs with `inputs` inputs that cover the network. after: count only LUTs at a greater depth."""
        leaves, level, wanted = self._cover(inputs, fast)
        return sum(level[node] > after for node in self._required(leaves, level, wanted))

    def critical(self, inputs: int, single: int) -> int:
        """The size of the LUTs without slack in a cover by LUTs of up to `inputs` inputs, counted in LUTs of `single`
        inputs: one for a LUT of up to `single` inputs, doubled for each further input."""
        leaves, level, wanted = self._cover(inputs, fast=True)
        latest = self._required(leaves, level, wanted)
        return sum(1 << max(0, len(leaves[node]) - single) for node, last in latest.items() if last == level[node])

    def levels(self, inputs: int) -> int:
        """The depth of the network, between registers or chains, in LUTs with `inputs` inputs."""
        _, level, wanted = self._cover(inputs, fast=True)
        return max((level[node] for node in wanted), default=0)

    def _cover(self, inputs: int, fast: bool) -> Cover:
        """`_greedy_cover`, cached."""
        if (inputs, fast) not in self.covers:
            self.covers[inputs, fast] = self._greedy_cover(inputs, fast)
        return self.covers[inputs, fast]

    def _greedy_cover(self, inputs: int, fast: bool) -> Cover:
        """For each node the nodes that a LUT rooted there reads, and its depth in LUTs; and the nodes that must be the
        root of a LUT. A LUT absorbs its fan-in greedily: first nodes with no other reader, or, if `fast`, the deepest
        ones, as synthesis for speed does."""
        uses = [0] * len(self.nodes)
        wanted = [edge >> 1 for edge in self.outputs]
        for node, edges in enumerate(self.nodes):
            if self.alive[node]:
                for edge in edges:
                    uses[edge >> 1] += 1
                wanted += [edge >> 1 for edge in self.feeds.get(node, ())]
        for node in wanted:
            uses[node] += 1
        leaves: list[frozenset[int]] = [frozenset()] * len(self.nodes)
        level = [0] * len(self.nodes)
        for node, edges in enumerate(self.nodes):
            if not edges or not self.alive[node]:
                continue
            fed = {edge >> 1 for edge in edges}
            if fast:
                order = sorted(fed, key=lambda n: (-level[n], len(leaves[n])))
            else:
                order = sorted(fed, key=lambda n: (uses[n] > 1, len(leaves[n])))
            for below in order:
                if self.nodes[below]:
                    grown = (fed - {below}) | leaves[below]
                    if len(grown) <= inputs:
                        fed = grown
                    elif fast:
                        break
            leaves[node] = frozenset(fed)
            level[node] = 1 + max(level[below] for below in fed)
        return leaves, level, [node for node in wanted if self.nodes[node]]

    def _required(self, leaves: list[frozenset[int]], level: list[int], wanted: list[int]) -> dict[int, int]:
        """The roots of the LUTs that are needed, each with its latest level that keeps the depth."""
        deepest = max((level[node] for node in wanted), default=0)
        latest = dict.fromkeys(wanted, deepest)
        for node in range(len(self.nodes) - 1, -1, -1):  # a node comes after its fan-in
            if node in latest:
                for below in leaves[node]:
                    if self.nodes[below]:
                        latest[below] = min(latest.get(below, deepest), latest[node] - 1)
        return latest

    def lut_roots(self, inputs: int) -> list[int]:
        """The nodes at which the LUTs of `covered` end."""
        leaves, level, wanted = self._cover(inputs, fast=False)
        return list(self._required(leaves, level, wanted))

    def cell_of(self, node: int) -> Net:
        """The cell for which a node was first made."""
        return bisect_right(self.starts, node) - 1

    def gates(self, inputs: int) -> int:
        """The number of nodes with `inputs` fan-in edges."""
        return sum(len(edges) == inputs for node, edges in enumerate(self.nodes) if self.alive[node])
