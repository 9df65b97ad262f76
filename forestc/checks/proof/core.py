"""A core's Verilog as data (registers, wires with their expressions, and outputs), its text, and its simulation, clock
by clock, to find an output that differs from the forest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from forestc.backends.ports import Field, input_fields, output_fields, packed_bytes, unpacked, width_of
from forestc.backends.vectors import expected
from forestc.checks.proof.whole import TRIED, trial_words
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist, WordType
from forestc.netlist.ports import PLAIN, Clocking, Port, Reset


class Literal(NamedTuple):
    value: int
    width: int


Word: TypeAlias = "str | Literal"


class Choose(NamedTuple):
    select: str
    a: Word
    b: Word


class Addend(NamedTuple):
    """An operand of a sum: a word, extended by further bits above its highest bit."""

    word: Word
    more: int = 0  # number of bits in front of the word
    sign: int = -1  # index of the bit copied to the front; -1 for zeros


class Addition(NamedTuple):
    """A sum; its operands have the width of the result."""

    operands: tuple[Addend, ...]


class Comparison(NamedTuple):
    a: Word
    b: Word
    signed: bool


class Membership(NamedTuple):
    """A test that is 1 if the word `a` equals one of the members."""

    a: str
    members: tuple[Literal, ...]


class Chain(NamedTuple):
    """Bits joined by one-bit operators, with parentheses to the right: bits[0] op (bits[1] op (...))."""

    bits: tuple[tuple[bool, str, int], ...]  # (inverted, name, index) of each; -1 for a one-bit name
    operators: str


class Inverted(NamedTuple):
    name: str


class Slice(NamedTuple):
    """Bits `high` to `low` of the input port x, or of a wire."""

    high: int
    low: int
    name: str = "x"


EDGES: Mapping[Reset, str] = {
    "none": "posedge clk", "sync": "posedge clk", "async": "posedge clk or posedge rst",
}  # fmt: skip
Expression: TypeAlias = Choose | Addition | Comparison | Membership | Chain | Inverted | Slice


@dataclass
class Core:
    """A Verilog module, read from its file."""

    name: str
    clocked: bool
    x_bits: int
    y_bits: int
    clocking: Clocking = PLAIN
    widths: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)  # name of the word that each register takes
    wires: dict[str, Expression] = field(default_factory=dict)  # expressions by name; each reads only earlier wires
    results: dict[tuple[int, int], Word] = field(default_factory=dict)  # word on bits (high, low) of the port y
    out_valid: str = ""

    def text(self) -> str:
        inputs = [f"input wire {name}" for name in ("clk", *self.clocking.ports, "in_valid")]
        ports = [
            *(["output wire out_valid", *inputs] if self.clocked else []),
            f"input wire [{self.x_bits - 1}:0] x",
            f"output wire [{self.y_bits - 1}:0] y",
        ]
        lines = [f"module {self.name} ({', '.join(ports)});"]
        lines += [f"reg [{self.widths[name] - 1}:0] {name};" for name in self.registers]
        lines += [f"wire [{self.widths[name] - 1}:0] {name} = {_printed(what)};" for name, what in self.wires.items()]
        for name, source in self.registers.items():
            lines.append(f"initial {name} = {self.widths[name]}'d0;")
            reset = f"if (rst) {name} <= {self.widths[name]}'d0; else " * (self.clocking.reset != "none")
            enable = "if (en) " * self.clocking.enable
            lines.append(f"always @({EDGES[self.clocking.reset]}) {reset}{enable}{name} <= {source};")
        lines += [f"assign y[{high}:{low}] = {word_text(what)};" for (high, low), what in self.results.items()]
        lines += [f"assign out_valid = {self.out_valid};"] if self.clocked else []
        return "\n".join([*lines, "endmodule", ""])


def word_text(word: Word) -> str:
    return f"{word.width}'d{word.value}" if isinstance(word, Literal) else word


def _printed(what: Expression) -> str:
    match what:
        case Choose(select, a, b):
            return f"{select} ? {word_text(a)} : {word_text(b)}"
        case Addition(operands):
            return " + ".join(_operand(operand) for operand in operands)
        case Comparison(a, b, signed):
            return (
                f"$signed({word_text(a)}) < $signed({word_text(b)})" if signed else f"{word_text(a)} < {word_text(b)}"
            )
        case Membership(a, members):
            return " | ".join(f"({a} == {word_text(member)})" for member in members)
        case Chain(bits, operators):
            names = [f"{'~' * no}{name}{f'[{index}]' if index >= 0 else ''}" for no, name, index in bits]
            opened = "".join(f"{name} {op} (" for name, op in zip(names[:-1], operators, strict=True))
            return f"{opened}{names[-1]}{')' * len(operators)}"
        case Inverted(name):
            return f"~{name}"
        case Slice(high, low, name):
            return f"{name}[{high}:{low}]" + (f" + {high - low + 1}'d0" if name != "x" else "")


def _operand(operand: Addend) -> str:
    word, more, sign = operand
    if not more:
        return word_text(word)
    return f"{{{{{more}{{{word}[{sign}]}}}}, {word}}}" if sign >= 0 else f"{{{more}'d0, {word}}}"


# An array with a word's value in each simulated sequence of inputs. Words have at most 64 bits.
Patterns: TypeAlias = NDArray[np.uint64]
AFTER = 3  # clocks simulated from the first result on, if no port halts the core
DRIVEN = {"in_valid": 0.5, "rst": 0.05, "en": 0.75}  # share of ones on each port, if the core has it
NO_ROW = -1  # stands for a stage without a row since the start or the reset
BITS = np.uint64(1)  # masks the lowest bit


def wrong_cycle(core: Core, forest: Forest, netlist: Netlist, tried: int = TRIED) -> str | None:
    """Compares a core's ports and simulated outputs with the netlist and the forest. Returns the first difference as
    text; None if none was found."""
    outputs = output_fields(netlist)
    if core.clocked != bool(netlist.latency):
        return "it has a clock, and the netlist has none" if core.clocked else "it has no clock"
    if (core.x_bits, core.y_bits) != (max(1, width_of(input_fields(netlist))), width_of(outputs)):
        return f"its ports have {core.x_bits} and {core.y_bits} bits"
    if core.clocking != netlist.clocking:
        has, should = (" and ".join(one.clocking.words) or "no reset" for one in (core, netlist))
        return f"its registers have {has}, should have {should}"
    latency = netlist.latency
    random = np.random.default_rng(0)
    pool = np.concatenate(list(trial_words(forest, tried)))
    clocks = (latency + AFTER) * (2 if netlist.clocking.ports else 1) if latency else 1
    rows = pool if not latency else pool[random.integers(0, len(pool), tried)]
    reference = expected(forest, netlist, rows)
    orders = [random.permutation(len(rows)) for _ in range(clocks)]
    driven = [
        {name: (random.random(len(rows)) < share).astype(np.uint64) for name, share in DRIVEN.items()}
        for _ in range(clocks)
    ]
    flight = np.full((latency + 1, len(rows)), NO_ROW)  # the row at the inputs and behind each stage of registers
    valid = np.zeros((latency + 1, len(rows)), dtype=np.uint64)
    steps = zip(orders, driven, run_core(core, netlist, [rows[order] for order in orders], driven), strict=True)
    for clock, (order, ports, (y, out_valid)) in enumerate(steps):
        reset = (netlist.clocking.reset != "none") & (ports["rst"] == 1)
        if netlist.clocking.reset == "async":
            flight[:, reset], valid[:, reset] = NO_ROW, 0
        flight[0], valid[0] = order, ports["in_valid"]
        if latency and (wrong := np.flatnonzero(out_valid != valid[-1])).size:
            return f"out_valid is {int(out_valid[wrong[0]])} at clock {clock}, should be {int(valid[-1, wrong[0]])}"
        due, got = flight[-1], unpacked(outputs, y)
        if (rows_wrong := np.flatnonzero((due != NO_ROW) & (got != reference[due]).any(axis=1))).size:
            first = int(rows_wrong[0])
            where = ", ".join(f"x{k}={value}" for k, value in enumerate(rows[due[first]].tolist()))
            return f"it gives {got[first].tolist()} where the forest gives {reference[due[first]].tolist()}, at {where}"
        moves = (ports["en"] == 1) | (not netlist.clocking.enable)
        flight[1:, moves], valid[1:, moves] = flight[:-1, moves], valid[:-1, moves]
        flight[:, reset], valid[:, reset] = NO_ROW, 0
    return None


def run_core(
    core: Core, netlist: Netlist, words: list[NDArray[np.int64]], driven: list[dict[str, Patterns]]
) -> Iterator[tuple[NDArray[np.uint32], Patterns]]:
    """Simulates a core. Yields (y, out_valid) for each clock, y packed into 32-bit words.
    words: inputs (sequences, features) for each clock. driven: in_valid and, if the core has them, rst and en."""
    count = len(words[0])
    state = {name: np.zeros(count, dtype=np.uint64) for name in core.registers}
    fields = [Field(Port(""), low, WordType(high - low + 1, False)) for high, low in core.results]
    zero, clocking = np.uint64(0), core.clocking
    for rows, now in zip(words, driven, strict=True):
        x = packed_bytes(input_fields(netlist), rows)
        if clocking.reset == "async":
            state = {name: np.where(now["rst"] == 1, zero, word) for name, word in state.items()}
        values = {**state, **now}
        for name, what in core.wires.items():
            values[name] = _evaluated(core, what, values, x)
        results = [_word(word, values, count) for word in core.results.values()]
        y = packed_bytes(fields, np.stack(results, axis=1).view(np.int64))
        yield y, values[core.out_valid] if core.clocked else now["in_valid"]
        taken = {name: values[source] for name, source in core.registers.items()}
        if clocking.enable:
            taken = {name: np.where(now["en"] == 1, word, state[name]) for name, word in taken.items()}
        if clocking.reset != "none":
            taken = {name: np.where(now["rst"] == 1, zero, word) for name, word in taken.items()}
        state = taken


def _word(word: Word, values: Mapping[str, Patterns], count: int) -> Patterns:
    return np.full(count, word.value, dtype=np.uint64) if isinstance(word, Literal) else values[word]


def _evaluated(core: Core, what: Expression, values: Mapping[str, Patterns], x: NDArray[np.uint32]) -> Patterns:
    count = len(x)

    def width(word: Word) -> int:
        return word.width if isinstance(word, Literal) else core.widths.get(word, 1)

    match what:
        case Slice(high, low, name) if name != "x":
            return values[name] >> np.uint64(low) & np.uint64((1 << high - low + 1) - 1)
        case Slice(high, low):
            sliced = unpacked([Field(Port(""), low, WordType(high - low + 1, False))], x)[:, 0]
            return np.ascontiguousarray(sliced).view(np.uint64)
        case Chain(bits, operators):
            values_of_bits = [
                (values[name] if index < 0 else values[name] >> np.uint64(index) & BITS) ^ np.uint64(no)
                for no, name, index in bits
            ]
            total = values_of_bits[-1]
            for addend, operator in zip(values_of_bits[-2::-1], operators[::-1], strict=True):
                total = addend & total if operator == "&" else addend | total
            return total
        case Inverted(name):
            return values[name] ^ np.uint64((1 << width(name)) - 1)
        case Choose(select, a, b):
            return np.where(values[select] == 1, _word(a, values, count), _word(b, values, count))
        case Comparison(a, b, signed):
            flip = np.uint64(1 << (width(a) - 1)) if signed else np.uint64(0)
            return ((_word(a, values, count) ^ flip) < (_word(b, values, count) ^ flip)).astype(np.uint64)
        case Membership(a, members):
            return np.isin(values[a], np.array([m.value for m in members], dtype=np.uint64)).astype(np.uint64)
        case Addition(operands):
            total = np.zeros(count, dtype=np.uint64)
            bits_wide = width(operands[0].word) + operands[0].more
            mask = np.uint64((1 << bits_wide) - 1)
            for word, more, sign in operands:
                addend = _word(word, values, count)
                if more and sign >= 0:
                    front = np.uint64(((1 << more) - 1) << width(word))
                    addend = np.where(addend >> np.uint64(sign) & BITS == 1, addend | front, addend)
                total = total + addend & mask
            return total
        case _:
            assert_never(what)
