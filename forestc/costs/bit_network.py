"""Turns a netlist into functions of one bit (bit-blasting), merges equal ones, and covers them by LUTs. Results of
carry chains become leaves."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable
from typing import TypeAlias, assert_never

from forestc.costs.devices import Luts
from forestc.costs.lut_cover import Cut, Mapper
from forestc.netlist import ir
from forestc.netlist.ir import Net, Netlist, behind_registers, compares_sum, reads

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


def _length(word: list[int]) -> int:
    return max((position + 1 for position, edge in enumerate(word) if edge), default=0)


class BlastedBits(Bits):
    """The one-bit functions of all words of a netlist. Leaves are bits of input ports, registers and carry chains."""

    def __init__(self, netlist: Netlist, chained: tuple[str, ...], shortest: int) -> None:
        super().__init__()
        self.netlist, self.chained, self.shortest = netlist, chained, shortest
        self.registers: list[int] = []
        self.chains: list[tuple[str, list[int]]] = []  # kind and result edges of each carry chain
        self.terms: dict[Net, list[tuple[list[int], bool]]] = {}  # operands of each sum merged into another sum
        self.starts: list[int] = []  # number of nodes before each cell's own nodes
        self.readers: list[list[Net]] = [[] for _ in netlist.cells]
        for net, cell in enumerate(netlist.cells):
            for a in reads(cell):
                self.readers[a].append(net)
        for _, net in netlist.outputs:
            self.readers[net].append(-1)
        words: list[list[int]] = []
        for net in range(len(netlist.cells)):
            self.starts.append(len(self.nodes))
            words.append(self.word(net, words))
        self.outputs = [edge for _, net in netlist.outputs for edge in words[net]]

    def word(self, net: Net, words: list[list[int]]) -> list[int]:
        cell, (width, _) = self.netlist.cells[net], self.netlist.types[net]
        match cell:
            case ir.Const(value):
                return [value >> position & 1 for position in range(width)]
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
            case ir.Add() | ir.Extend():  # Verilog has Extend as a sum with 0.
                return self.add(net, reads(cell), words)
            case ir.Table(factors, constant):
                bits = [(edge, factor << position) for a, factor in factors for position, edge in enumerate(words[a])]
                return [self.sum_bit(position, constant, tuple(bits)) for position in range(width)]
            case ir.Shift(a):
                return [0, *words[a]]
            case ir.Slice(a, low):
                return words[a][low : low + width]
            case _:
                assert_never(cell)

    def sum_bit(self, position: int, constant: int, bits: tuple[tuple[int, int], ...]) -> int:
        """Builds the bit at `position` of a sum, with multiplexers. The sum is `constant`, plus the factor of each
        (edge, factor) in `bits` if the edge is 1."""
        if not bits:
            return constant >> position & 1
        key = ("sum", position, constant & ((2 << position) - 1), bits)
        if key not in self.edge_of:
            (edge, times), others = bits[-1], bits[:-1]
            self.edge_of[key] = self.mux(
                edge, self.sum_bit(position, constant + times, others), self.sum_bit(position, constant, others)
            )
        return self.edge_of[key]

    def register(self, edge: int) -> int:
        if edge < 2:
            return edge
        key = ("r", edge)
        if key not in self.edge_of:
            self.edge_of[key] = self.leaf(edge)
            self.registers.append(self.edge_of[key])
        return self.edge_of[key]

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
        result, position = 0, 0
        while position < len(word):  # runs of equal bits in the threshold become balanced trees
            ones, run = pattern >> position & 1, [word[position] ^ 1]
            while position + len(run) < len(word) and pattern >> (position + len(run)) & 1 == ones:
                run.append(word[position + len(run)] ^ 1)
            position += len(run)
            merge = self.or_ if ones else self.and_
            while len(run) > 1:
                odd = run[len(run) & ~1 :]
                run = [merge(a, b) for a, b in zip(run[::2], run[1::2], strict=False)] + odd
            result = merge(run[0], result)
        return result

    def compare(self, a: list[int], b: list[int], signed: bool) -> int:
        if "compare" in self.chained and len(a) >= self.shortest:
            return self.chain("compare", len(a), *a, *b)[-1]
        result = 0
        for position, (x, y) in enumerate(zip(a, b, strict=True)):
            if signed and position == len(a) - 1:
                x, y = y, x
            result = self.mux(self.xor(x, y), y, result)
        return result

    def in_set(self, word: list[int], members: tuple[int, ...]) -> int:
        result = 0
        for member in members:
            same = 1
            for position, edge in enumerate(word):
                same = self.and_(same, edge ^ (~member >> position & 1))
            result = self.or_(result, same)
        return result

    def add(self, net: Net, operands: tuple[Net, ...], words: list[list[int]]) -> list[int]:
        """Builds a sum as yosys does, with full adders. Returns an empty list if the sum becomes part of the only sum
        that reads it."""
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

    def add_two(self, a: list[int], b: list[int]) -> list[int]:
        """Builds the sum of two words. The sum's bits are wires below the first position where both words have bits."""
        meet = [position for position, (x, y) in enumerate(zip(a, b, strict=True)) if x and y]
        if not meet:
            return [x | y for x, y in zip(a, b, strict=True)]
        first = meet[0]
        below = [x | y for x, y in zip(a[:first], b[:first], strict=True)]
        longest = max(position for position, pair in enumerate(zip(a, b, strict=True)) if any(pair)) + 1
        if "add" in self.chained and min(_length(a), _length(b)) - first >= self.shortest:
            bits = min(len(a), longest + 1) - first
            results = self.chain("add", bits, *a[first:], *b[first:])
            return below + results + [0] * (len(a) - first - bits)
        carry, total = 0, list(below)
        for x, y in zip(a[first:], b[first:], strict=True):
            total.append(self.xor(self.xor(x, y), carry))
            carry = self.majority(x, y, carry)
        return total


CHAIN_COUNTS = ("pass", "add", "add_bits", "compare", "compare_bits", "less", "less_bits")
PATTERNS = 4096  # bits of a random pattern; functions with equal patterns are merged
# Functions of more than FEW_LEAVES leaves merge only if their pattern has at least OFTEN zeros and ones.
FEW_LEAVES, OFTEN = 10, 8


def _union(sets: list[frozenset[int] | None]) -> frozenset[int] | None:
    members: frozenset[int] = frozenset()
    for part in sets:
        if part is None:
            return None
        members |= part
    return members if len(members) <= FEW_LEAVES else None


class BitNetwork(BlastedBits):
    """A netlist as one-bit functions; equal functions are merged. alive: True for nodes that an output depends on."""

    def __init__(self, netlist: Netlist, chained: tuple[str, ...], shortest: int = 3) -> None:
        super().__init__(netlist, chained, shortest)
        self.alive = self._alive()
        self._merge_equal()
        self.alive = self._alive()

    def chained_counts(self) -> dict[str, float]:
        """Returns a dictionary: the number of used carry chains of each kind, and of their bits. `pass` counts
        comparison results that a register or output reads directly."""
        counts = dict.fromkeys(CHAIN_COUNTS, 0.0)
        comparisons = {edge >> 1 for kind, results in self.chains if kind != "add" for edge in results[-1:]}
        alive = [register >> 1 for register in self.registers if self.alive[register >> 1]]
        ends = {edge >> 1 for register in alive for edge in self.feeds[register]}
        counts["pass"] = len(comparisons & (ends | {edge >> 1 for edge in self.outputs}))
        for kind, results in self.chains:
            used = max((index + 1 for index, edge in enumerate(results) if self.alive[edge >> 1]), default=0)
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
        """Merges nodes with equal or inverse values in a random simulation, as synthesis merges equal functions."""
        draw = random.Random(0)
        every = (1 << PATTERNS) - 1
        values = [0] * len(self.nodes)
        leaves: list[frozenset[int] | None] = [frozenset()] * len(self.nodes)  # None for more than FEW_LEAVES
        edge_of = {0: 0}
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
            new[node] = edge_of.setdefault(value, 2 * node ^ inverted) ^ inverted
        self.outputs = [new[edge >> 1] ^ (edge & 1) for edge in self.outputs]

    def flip_flops(self) -> int:
        return sum(self.alive[edge >> 1] for edge in self.registers)

    def cover(self, kind: Luts) -> dict[int, Cut]:
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
        alive = [edge >> 1 for edge in self.registers if self.alive[edge >> 1]]
        return [edge >> 1 for edge in [*self.outputs, *(edge for node in alive for edge in self.feeds[node])]]

    def cell_of(self, node: int) -> Net:
        """Returns the number of the cell for which a node was first built."""
        return bisect_right(self.starts, node) - 1

    def gates(self, inputs: int) -> int:
        return sum(len(edges) == inputs for node, edges in enumerate(self.nodes) if self.alive[node])
