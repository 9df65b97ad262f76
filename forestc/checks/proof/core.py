"""A core's Verilog as data: registers, wires with their expressions, and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class OutsideError(Exception):
    """Raised for a line of Verilog that the strict readers do not accept."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line} is outside the Verilog that the proof reads ({why})")


def accepted_lines(data: bytes) -> list[str]:
    """Returns the lines of a file. Raises OutsideError unless all are printable ASCII and end."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if not all(32 <= byte < 127 for byte in line):
            raise OutsideError(number, "a character that is not printable ASCII")
    lines = data.decode("ascii").split("\n")
    if lines.pop():
        raise OutsideError(len(lines) + 1, "the last line does not end")
    return lines


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
    """Bits `high` to `low` of the input port x."""

    high: int
    low: int


Expression: TypeAlias = Choose | Addition | Comparison | Membership | Chain | Inverted | Slice


@dataclass
class Core:
    """A Verilog module, read from its file."""

    name: str
    clocked: bool
    x_bits: int
    y_bits: int
    widths: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)  # name of the word that each register takes
    wires: dict[str, Expression] = field(default_factory=dict)  # expressions by name; each reads only earlier wires
    results: dict[tuple[int, int], Word] = field(default_factory=dict)  # word on bits (high, low) of the port y
    out_valid: str = ""

    def text(self) -> str:
        clocked = ["input wire clk", "input wire in_valid", "output wire out_valid"] if self.clocked else []
        ports = [*clocked, f"input wire [{self.x_bits - 1}:0] x", f"output wire [{self.y_bits - 1}:0] y"]
        lines = [f"module {self.name} ({', '.join(ports)});"]
        lines += [f"reg [{self.widths[name] - 1}:0] {name};" for name in self.registers]
        lines += [f"wire [{self.widths[name] - 1}:0] {name} = {_printed(what)};" for name, what in self.wires.items()]
        for name, source in self.registers.items():
            lines.append(f"initial {name} = {self.widths[name]}'d0;")
            lines.append(f"always @(posedge clk) {name} <= {source};")
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
        case Slice(high, low):
            return f"x[{high}:{low}]"


def _operand(operand: Addend) -> str:
    word, more, sign = operand
    if not more:
        return word_text(word)
    return f"{{{{{more}{{{word}[{sign}]}}}}, {word}}}" if sign >= 0 else f"{{{more}'d0, {word}}}"
