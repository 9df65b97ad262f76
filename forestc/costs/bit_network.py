"""A netlist bit-blasted into ANDs, XORs and muxes of single bits, equal ones merged, and its cover by LUTs."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Any, assert_never

from forestc.costs.devices import Luts
from forestc.costs.lut_cover import Cut, Mapper
from forestc.netlist import ir
from forestc.netlist.ir import Net, Netlist, behind_registers, compares_sum, reads

CHAIN_COUNTS = ("pass", "add", "add_bits", "compare", "compare_bits", "less", "less_bits")
PATTERNS = 4096  # random values of the comparisons on which functions are compared
# functions of more leaves are compared only if both of their values appear so often
FEW_LEAVES, OFTEN = 10, 8
_LEAF: tuple[int, ...] = ()


def _union(sets: list[frozenset[int] | None]) -> frozenset[int] | None:
    """The union of sets; None if it has more than FEW_LEAVES members."""
    members: frozenset[int] = frozenset()
    for part in sets:
        if part is None:
            return None
        members |= part
    return members if len(members) <= FEW_LEAVES else None


def _length(word: list[int]) -> int:
    """The length of a word without its leading constant zeros."""
    return max((place + 1 for place, edge in enumerate(word) if edge), default=0)


@dataclass
class BitNetwork:
    """A netlist as a network of one-bit functions.

    An edge is 2 * node, plus 1 if inverted; node 0 is the constant 0. A node is the tuple of its fan-in edges: two for
    an AND or XOR, three for a MUX, none for a leaf: a bit of a port, register, adder or comparison. `feeds` holds the
    edges that a leaf depends on. chained: the kinds of cells that are built as carry chains, and shortest the bits of
    the shortest chains.
    """

    netlist: Netlist
    chained: tuple[str, ...]
    shortest: int = 3
    nodes: list[tuple[int, ...]] = field(default_factory=lambda: [_LEAF])
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    feeds: dict[int, tuple[int, ...]] = field(default_factory=dict)  # leaf to the edges it depends on
    registers: list[int] = field(default_factory=list)
    chains: list[tuple[str, list[int]]] = field(default_factory=list)  # kind and result edges
    terms: dict[Net, list[tuple[list[int], bool]]] = field(default_factory=dict)  # of sums read by one other sum only
    xors: set[int] = field(default_factory=set)
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
        self._merge_equal()
        self.alive = self._alive()

    def leaf(self, *feeds: int) -> int:
        self.nodes.append(_LEAF)
        self.feeds[len(self.nodes) - 1] = feeds
        return 2 * len(self.nodes) - 2

    def node(self, key: tuple[Any, ...], edges: tuple[int, ...]) -> int:
        edge = self.known.get(key)
        if edge is None:
            self.nodes.append(edges)
            edge = self.known[key] = 2 * len(self.nodes) - 2
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
            case ir.Const(value):
                return [value >> place & 1 for place in range(width)]
            case ir.Input():
                return [self.leaf() for _ in range(width)]
            case ir.Register(a):
                return [self.register(edge) for edge in words[a]]
            case ir.Less(a, threshold):
                chained = "less" in self.chained and compares_sum(self.netlist, cell)
                return [self.less(words[a], threshold, self.netlist.types[a].signed, chained)]
            case ir.InSet(a, members):
                return [self.in_set(words[a], members)]
            case ir.Not(a):
                return [edge ^ 1 for edge in words[a]]
            case ir.And(a, b):
                return [self.and_(words[a][0], words[b][0])]
            case ir.Or(a, b):
                return [self.or_(words[a][0], words[b][0])]
            case ir.Mux(select, a, b):
                return [self.mux(words[select][0], x, y) for x, y in zip(words[a], words[b], strict=True)]
            case ir.Compare(a, b):
                return [self.compare(words[a], words[b], self.netlist.types[a].signed)]
            case ir.Add() | ir.Extend():  # which Verilog has as a sum with 0
                return self.add(net, reads(cell), words)
            case ir.Table(factors, constant):
                bits = [(edge, factor << place) for a, factor in factors for place, edge in enumerate(words[a])]
                return [self.sum_bit(place, constant, tuple(bits)) for place in range(width)]
            case ir.Shift(a):
                return [0, *words[a]]
            case _:
                assert_never(cell)

    def sum_bit(self, place: int, constant: int, bits: tuple[tuple[int, int], ...]) -> int:
        """A bit of a constant plus bits, each times a number, as multiplexers with the bits as selects."""
        if not bits:
            return constant >> place & 1
        key = ("sum", place, constant & ((2 << place) - 1), bits)
        if key not in self.known:
            (edge, times), others = bits[-1], bits[:-1]
            self.known[key] = self.mux(
                edge, self.sum_bit(place, constant + times, others), self.sum_bit(place, constant, others)
            )
        return self.known[key]

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
        if chained and len(word) - zeros >= self.shortest:
            below = self.chain("less", len(word) - zeros, *word[zeros:])[-1]
            if not signed:
                return below
            return self.and_(word[-1], below) if threshold < 0 else self.or_(word[-1], below)
        pattern = threshold & ((1 << len(word)) - 1)
        if signed:
            word, pattern = [*word[:-1], word[-1] ^ 1], pattern ^ (1 << (len(word) - 1))
        result, place = 0, 0
        while place < len(word):  # bits that face equal bits of the threshold, as a balanced tree
            ones, run = pattern >> place & 1, [word[place] ^ 1]
            while place + len(run) < len(word) and pattern >> (place + len(run)) & 1 == ones:
                run.append(word[place + len(run)] ^ 1)
            place += len(run)
            merge = self.or_ if ones else self.and_
            while len(run) > 1:
                odd = run[len(run) & ~1 :]
                run = [merge(a, b) for a, b in zip(run[::2], run[1::2], strict=False)] + odd
            result = merge(run[0], result)
        return result

    def compare(self, a: list[int], b: list[int], signed: bool) -> int:
        """1 if a < b, computed from the lowest bit up."""
        if "compare" in self.chained and len(a) >= self.shortest:
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
            if reader >= 0 and isinstance(self.netlist.cells[reader], ir.Add | ir.Extend):
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
        if "add" in self.chained and min(_length(a), _length(b)) - first >= self.shortest:
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

    def _merge_equal(self) -> None:
        """Merges nodes that are equal, or each other's inverse, as synthesis does which sweeps logic: equal for all
        random values of the leaves and of the features' comparisons. Functions that are nearly constant on these differ
        perhaps on others, unless they have few leaves."""
        draw = random.Random(0)
        every = (1 << PATTERNS) - 1
        values = [0] * len(self.nodes)
        leaves: list[frozenset[int] | None] = [frozenset()] * len(self.nodes)  # None: more than FEW_LEAVES
        known = {0: 0}
        new = [2 * node for node in range(len(self.nodes))]
        for node, edges in enumerate(self.nodes):
            if node == 0 or not self.alive[node]:
                continue
            read = tuple([new[edge >> 1] ^ (edge & 1) for edge in edges or self.feeds.get(node, ())])
            if not edges:
                if read:
                    self.feeds[node] = read
                values[node], leaves[node] = draw.getrandbits(PATTERNS), frozenset((node,))
                continue
            self.nodes[node] = read
            cell = self.netlist.cells[self.cell_of(node)]
            if isinstance(cell, ir.Less | ir.InSet) and isinstance(behind_registers(self.netlist, cell.a), ir.Input):
                values[node], leaves[node] = draw.getrandbits(PATTERNS), frozenset((node,))
                continue
            bits = [values[edge >> 1] ^ (every if edge & 1 else 0) for edge in read]
            if len(bits) == 3:
                value = bits[0] & bits[1] | bits[2] & ~bits[0]
            else:
                value = bits[0] ^ bits[1] if node in self.xors else bits[0] & bits[1]
            values[node] = value
            leaves[node] = _union([leaves[edge >> 1] for edge in read])
            inverted = value & 1
            if inverted:
                value ^= every
            rarely = min(value.bit_count(), PATTERNS - value.bit_count()) < OFTEN
            if rarely and leaves[node] is None:
                continue
            new[node] = known.setdefault(value, 2 * node ^ inverted) ^ inverted
        self.outputs = [new[edge >> 1] ^ (edge & 1) for edge in self.outputs]

    def flip_flops(self) -> int:
        return sum(self.alive[edge >> 1] for edge in self.registers)

    def cover(self, kind: Luts) -> dict[int, Cut]:
        """The LUTs that cover the logic between ports and registers, as `Mapper.cover` gives them. Time O(nodes)."""
        registers = {edge >> 1 for edge in self.registers}
        fan_ins = [
            tuple([edge >> 1 for edge in edges]) if alive else ()
            for edges, alive in zip(self.nodes, self.alive, strict=True)
        ]
        boxes = {
            node: tuple([edge >> 1 for edge in edges])
            for node, edges in self.feeds.items()
            if edges and self.alive[node] and node not in registers
        }
        return Mapper(fan_ins, boxes, self.roots(), kind).cover()

    def roots(self) -> list[int]:
        """The nodes that outputs and registers hold."""
        alive = [edge >> 1 for edge in self.registers if self.alive[edge >> 1]]
        return [edge >> 1 for edge in [*self.outputs, *(edge for node in alive for edge in self.feeds[node])]]

    def cell_of(self, node: int) -> Net:
        """The cell for which a node was first made."""
        return bisect_right(self.starts, node) - 1

    def gates(self, inputs: int) -> int:
        """The number of nodes with `inputs` fan-in edges."""
        return sum(len(edges) == inputs for node, edges in enumerate(self.nodes) if self.alive[node])
