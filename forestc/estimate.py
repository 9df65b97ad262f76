"""What a design will take on a device, told from its netlist before any synthesis.

Flip-flops and latency follow from the netlist. LUTs: the logic between registers and adders is written as one-bit
functions, equal ones as one, and covered greedily with K-input LUTs; adders and comparisons count by their bits. What
each of these costs was fitted on real runs, and so was what the cells of the slowest path cost in time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from forestc.backends.ports import VALID_PORTS
from forestc.design import Design
from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import (
    Add,
    And,
    Bits,
    Compare,
    Const,
    Input,
    InSet,
    Join,
    Less,
    Lookup,
    Mux,
    Net,
    Netlist,
    Not,
    Or,
    Register,
    reads,
)

SHOWN = ("xcup", "ecp5-85k", "ice40-hx8k")
MOST_CELLS = 60_000
MOST_STAGES = 24  # tried for a wanted clock
FASTEST_NS = 1.5  # of a design that is wires alone
WIDE, LATE = ("ecp5",), 5  # where several LUTs are joined to larger ones for speed, behind so many
INPUTS = {"lut6": 6, "xcup": 6, "ecp5": 4, "ice40": 4}  # of a LUT
CHAINED = {  # what goes on carry chains, where it is wider than two bits
    "lut6": (),
    "xcup": ("add", "compare"),
    "ecp5": ("add", "compare", "less"),
    "ice40": ("add", "compare", "less"),
}
# logic, fast: LUTs that cover the one-bit functions, by two rules; late: those far behind a register; mux, gate: those
# functions of three and two inputs; pass: results of chains that logic does not take; the others: bits and numbers of
# what goes on carry chains
LUT_FEATURES = (
    "logic",
    "fast",
    "late",
    "mux",
    "gate",
    "pass",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "less",
    "less_bits",
)
PATH_FEATURES = (
    "one",
    "less",
    "less_bits",
    "mux",
    "logic",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "fan_out",
    "size",
)

# Fitted by benchmarks/estimates.py --write.
# begin of what it writes
LUT_COSTS: Mapping[str, Mapping[str, float]] = {
    "lut6": {
        "logic": 0.8125,
        "fast": 0.0,
        "late": 0.0,
        "mux": 0.0,
        "gate": 0.0672,
        "pass": 0.0,
        "add": 0.0,
        "add_bits": 0.0,
        "compare": 0.0,
        "compare_bits": 0.0,
        "less": 0.0,
        "less_bits": 0.0,
    },
    "xcup": {
        "logic": 0.0,
        "fast": 0.1978,
        "late": 0.0,
        "mux": 0.5844,
        "gate": 0.2406,
        "pass": 0.0,
        "add": 2.5742,
        "add_bits": 0.4144,
        "compare": 0.0,
        "compare_bits": 0.6017,
        "less": 0.0,
        "less_bits": 0.0,
    },
    "ecp5": {
        "logic": 0.0,
        "fast": 0.7754,
        "late": 2.2871,
        "mux": 0.104,
        "gate": 0.0,
        "pass": 0.7879,
        "add": 0.0,
        "add_bits": 0.0,
        "compare": 3.1224,
        "compare_bits": 0.0,
        "less": 0.5518,
        "less_bits": 0.0,
    },
    "ice40": {
        "logic": 0.0,
        "fast": 0.9217,
        "late": 0.0,
        "mux": 0.0,
        "gate": 0.0,
        "pass": 0.9993,
        "add": 0.0,
        "add_bits": 0.7433,
        "compare": 1.5923,
        "compare_bits": 0.003,
        "less": 0.0,
        "less_bits": 0.0104,
    },
}
PATH_COSTS_NS: Mapping[str, Mapping[str, float]] = {
    "ecp5-85k": {
        "one": 0.0005,
        "less": 0.0004,
        "less_bits": 0.1765,
        "mux": 0.7931,
        "logic": 0.2806,
        "add": 0.1881,
        "add_bits": 0.1942,
        "compare": 0.0002,
        "compare_bits": 0.2515,
        "fan_out": 0.0,
        "size": 0.2999,
    },
    "ice40-hx8k": {
        "one": 0.0005,
        "less": 0.3014,
        "less_bits": 0.2195,
        "mux": 0.6281,
        "logic": 0.1714,
        "add": 0.5922,
        "add_bits": 0.1648,
        "compare": 0.0002,
        "compare_bits": 0.3095,
        "fan_out": 0.0319,
        "size": 0.2466,
    },
}
ERRORS: Mapping[str, float] = {
    "lut6": 0.068,
    "xcup": 0.073,
    "ecp5": 0.094,
    "ice40": 0.063,
    "ecp5-85k": 0.093,
    "ice40-hx8k": 0.079,
}
# end of what it writes


def family_of(device: str) -> str:
    """The target whose LUTs a device has. Raises OptionError if there are no estimates for it."""
    family = device.partition("-")[0]
    if family not in INPUTS:
        raise OptionError(f"no estimates for {device!r}", do=f"known: {', '.join([*INPUTS, *PATH_COSTS_NS])}")
    return family


def estimate(design: Design | Netlist, device: str) -> dict[str, Any]:
    """lut, ff, latency_cycles, and fmax_mhz (None where nothing is placed) of a design on a device of `forestc synth`.

    lut_error, fmax_error: the median error of such an estimate, as a share, measured on designs that were not fitted
    on. Between registers on all ports, as `synth` tells Fmax. Time is linear in the netlist. Raises OptionError.
    """
    netlist = design.netlist if isinstance(design, Design) else design
    family = family_of(device)
    cells = lut_features(netlist, family)
    lut = sum(LUT_COSTS[family][name] * cells[name] for name in LUT_FEATURES)
    placed = next((name for name in PATH_COSTS_NS if name.partition("-")[0] == family and device != family), None)
    fmax = None
    if placed is not None:
        path = path_features(netlist, PATH_COSTS_NS[placed], lut)
        period = sum(PATH_COSTS_NS[placed][name] * path[name] for name in PATH_FEATURES)
        fmax = round(1000 / max(period, FASTEST_NS), 1)
    return {
        "device": device,
        "lut": round(lut),
        "ff": round(cells["ff"]),
        "latency_cycles": netlist.latency,
        "fmax_mhz": fmax,
        "lut_error": ERRORS[family],
        "fmax_error": None if placed is None else ERRORS[placed],
    }


def estimates(netlist: Netlist, device: str | None = None) -> list[dict[str, Any]]:
    """Of the device, and of `SHOWN` ones; none of a netlist so large that compiling would take far longer."""
    if len(netlist.cells) > MOST_CELLS:
        return []
    known = device is not None and device.partition("-")[0] in INPUTS
    return [estimate(netlist, name) for name in dict.fromkeys([*([device] if known and device else []), *SHOWN])]


def latency_for(forest: Forest, options: LoweringOptions, clock_mhz: float, device: str) -> int:
    """The fewest clock cycles with which a device runs at a clock, by the estimate. Raises OptionError where none
    does, or where nothing is placed on the device."""
    best = 0.0
    for latency in range(1, MOST_STAGES + 1):
        fmax = estimate(lower(forest, replace(options, latency=latency)), device)["fmax_mhz"]
        if fmax is None:
            raise OptionError(f"no clock is told of {device}", do=f"use one of {', '.join(PATH_COSTS_NS)}")
        if fmax >= clock_mhz:
            return latency
        best = max(best, fmax)
    raise OptionError(
        f"no latency up to {MOST_STAGES} reaches {clock_mhz:g} MHz", do=f"the estimate ends at {best:.0f} MHz"
    )


def lut_features(netlist: Netlist, family: str) -> dict[str, float]:
    """What LUTs and flip-flops are counted from: `LUT_FEATURES` and ff."""
    bits = _OneBit(netlist, CHAINED[family])
    inputs = INPUTS[family]
    return {
        **bits.chained_counts(),
        "logic": bits.covered(inputs),
        "fast": bits.covered(inputs, fast=True),
        "late": bits.covered(inputs, fast=True, after=LATE) if family in WIDE else 0,
        "mux": bits.gates(3),
        "gate": bits.gates(2),
        "ff": bits.flip_flops(),
    }


_LEAF: tuple[int, ...] = ()


def _length(word: list[int]) -> int:
    """Without the zeros above."""
    return max((place + 1 for place, edge in enumerate(word) if edge), default=0)


@dataclass
class _OneBit:
    """A netlist as functions of one bit.

    An edge is 2 * node + 1 if inverted; node 0 is the constant 0. A node is its fan-in edges: none for what comes
    out of a port, register, adder or comparison (`feeds` has what goes in), two for an AND or XOR, three for a MUX.
    """

    netlist: Netlist
    chained: tuple[str, ...]
    nodes: list[tuple[int, ...]] = field(default_factory=lambda: [_LEAF])
    known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    feeds: dict[int, tuple[int, ...]] = field(default_factory=dict)  # of a leaf: the edges behind it
    registers: list[int] = field(default_factory=list)
    chains: list[tuple[str, list[int]]] = field(default_factory=list)  # kind, its results
    terms: dict[Net, list[tuple[list[int], bool]]] = field(default_factory=dict)  # of sums that go into one sum alone

    def __post_init__(self) -> None:
        self.readers: list[list[Net]] = [[] for _ in self.netlist.cells]
        for net, cell in enumerate(self.netlist.cells):
            for a in reads(cell):
                self.readers[a].append(net)
        for _, net in self.netlist.outputs:
            self.readers[net].append(-1)
        words: list[list[int]] = []
        for net in range(len(self.netlist.cells)):
            words.append(self.word(net, words))
        self.outputs = [edge for _, net in self.netlist.outputs for edge in words[net]]
        self.alive = self._alive()

    def leaf(self, *feeds: int) -> int:
        self.nodes.append(_LEAF)
        self.feeds[len(self.nodes) - 1] = feeds
        return 2 * len(self.nodes) - 2

    def node(self, key: tuple[Any, ...], edges: tuple[int, ...]) -> int:
        made = self.known.get(key)
        if made is None:
            self.nodes.append(edges)
            made = self.known[key] = 2 * len(self.nodes) - 2
        return made

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
        """a if select, else b."""
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
                chained = "less" in self.chained and not of_a_feature(self.netlist, a)
                return [self.less(words[a], threshold, self.netlist.types[a].signed, chained)]
            case InSet(a, members):
                return [self.in_set(words[a], members)]
            case Not(a):
                return [words[a][0] ^ 1]
            case And(a, b):
                return [self.and_(words[a][0], words[b][0])]
            case Or(a, b):
                return [self.or_(words[a][0], words[b][0])]
            case Mux(select, a, b):
                return [self.mux(words[select][0], x, y) for x, y in zip(words[a], words[b], strict=True)]
            case Compare(a, b):
                return [self.compare(words[a], words[b], self.netlist.types[a].signed)]
            case Add(operands):
                return self.add(net, operands, words)
            case Bits(a, low, width):
                return words[a][low : low + width]
            case Join(parts):
                return [edge for part in parts for edge in words[part]]
            case Lookup(inputs, table):
                return [self.lookup([words[a][0] for a in inputs], table)]
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
        made = [self.leaf(*feeds) for _ in range(bits)]
        self.chains.append((kind, made))
        return made

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
        """1 if a < b, from the lowest bit up."""
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

    def lookup(self, inputs: list[int], table: int) -> int:
        if not inputs:
            return table & 1
        half = 1 << (len(inputs) - 1)
        low, high = table & ((1 << half) - 1), table >> half
        return self.mux(inputs[-1], self.lookup(inputs[:-1], high), self.lookup(inputs[:-1], low))

    def add(self, net: Net, operands: tuple[Net, ...], words: list[list[int]]) -> list[int]:
        """As yosys does it: sums of sums become one, full adders make two words of three, a carry chain adds two."""
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
            if reader >= 0 and isinstance(self.netlist.cells[reader], Add):
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
        return self.two(*queue) if len(queue) == 2 else queue[0]

    def majority(self, a: int, b: int, c: int) -> int:
        return self.mux(self.xor(a, b), c, a)

    def two(self, a: list[int], b: list[int]) -> list[int]:
        """The sum of two words: wires where only one of them has bits, below and above."""
        meet = [place for place, (x, y) in enumerate(zip(a, b, strict=True)) if x and y]
        if not meet:
            return [x | y for x, y in zip(a, b, strict=True)]
        first = meet[0]
        below = [x | y for x, y in zip(a[:first], b[:first], strict=True)]
        longest = max(place for place, pair in enumerate(zip(a, b, strict=True)) if any(pair)) + 1
        if "add" in self.chained and min(_length(a), _length(b)) - first > 2:
            bits = min(len(a), longest + 1) - first
            made = self.chain("add", bits, *a[first:], *b[first:])
            return below + made + [0] * (len(a) - first - bits)
        carry, total = 0, list(below)
        for x, y in zip(a[first:], b[first:], strict=True):
            total.append(self.xor(self.xor(x, y), carry))
            carry = self.majority(x, y, carry)
        return total

    def chained_counts(self) -> dict[str, float]:
        """What is on chains, up to the highest result that is used."""
        counts = dict.fromkeys(LUT_FEATURES, 0.0)
        told = {edge >> 1 for kind, made in self.chains if kind != "add" for edge in made[-1:]}
        alive = [register >> 1 for register in self.registers if self.alive[register >> 1]]
        ends = {edge >> 1 for register in alive for edge in self.feeds[register]}
        counts["pass"] = len(told & (ends | {edge >> 1 for edge in self.outputs}))
        for kind, made in self.chains:
            used = max((place + 1 for place, edge in enumerate(made) if self.alive[edge >> 1]), default=0)
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

    def flip_flops(self) -> int:
        return sum(self.alive[edge >> 1] for edge in self.registers)

    def covered(self, inputs: int, fast: bool = False, after: int = 0) -> int:
        """LUTs of so many inputs, each grown greedily over what feeds it: first over what feeds nothing else, or if
        `fast` over what comes last, as synthesis does for speed. after: those alone that so many LUTs lie before."""
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
        needed = bytearray(len(self.nodes))
        count, todo = 0, [node for node in wanted if self.nodes[node]]
        while todo:
            node = todo.pop()
            if not needed[node]:
                needed[node] = 1
                count += level[node] > after
                todo += [below for below in leaves[node] if self.nodes[below]]
        return count

    def gates(self, inputs: int) -> int:
        """Nodes with so many inputs."""
        return sum(len(edges) == inputs for node, edges in enumerate(self.nodes) if self.alive[node])


def path_features(netlist: Netlist, costs: Mapping[str, float], luts: float) -> dict[str, float]:
    """`PATH_FEATURES` of the path between registers that is slowest by these costs (ns each)."""
    fan_out = [0] * len(netlist.cells)
    for cell in netlist.cells:
        for net in reads(cell):
            fan_out[net] += 1
    own: list[dict[str, float]] = []
    arrival: list[float] = []
    before: list[Net] = []
    worst, end = -1.0, -1
    for net, cell in enumerate(netlist.cells):
        last = max(reads(cell), key=lambda a: arrival[a], default=-1)
        if isinstance(cell, Register) or last < 0:
            if last >= 0 and arrival[last] > worst:
                worst, end = arrival[last], last
            own.append({"fan_out": math.log2(1 + fan_out[net])})
            arrival.append(costs["fan_out"] * own[-1]["fan_out"])
            before.append(-1)
            continue
        here = _step(netlist, net)
        if here:
            here["fan_out"] = math.log2(1 + fan_out[net])
        own.append(here)
        arrival.append(arrival[last] + sum(costs[name] * amount for name, amount in here.items()))
        before.append(last)
    for name, net in netlist.outputs:
        if name not in VALID_PORTS and arrival[net] > worst:
            worst, end = arrival[net], net
    total = dict.fromkeys(PATH_FEATURES, 0.0) | {"one": 1.0, "size": math.log2(1 + luts)}
    while end >= 0:
        for name, amount in own[end].items():
            total[name] += amount
        end = before[end]
    return total


def _step(netlist: Netlist, net: Net) -> dict[str, float]:
    """What a combinational cell adds to a path."""
    cell = netlist.cells[net]
    match cell:
        case Less(a) | InSet(a):
            return {"less": 1.0, "less_bits": float(netlist.types[a].width)}
        case Mux():
            return {"mux": 1.0}
        case And() | Or() | Lookup():
            return {"logic": 1.0}
        case Compare(a, _):
            return {"compare": 1.0, "compare_bits": float(netlist.types[a].width)}
        case Add(operands, width):
            plain = sum(not (isinstance(c := netlist.cells[a], Const) and c.value == 0) for a in operands)
            return {"add": 1.0, "add_bits": float(width)} if plain > 1 else {}
        case _:
            return {}


def of_a_feature(netlist: Netlist, net: Net) -> bool:
    """Whether a net is a feature's word, perhaps later: its comparators are logic, those of sums carry chains."""
    cell = netlist.cells[net]
    while isinstance(cell, Register):
        cell = netlist.cells[cell.a]
    return isinstance(cell, Input)
