"""A strict reader of the core's Verilog, which accepts exactly the forms that forestc writes.

Tools differ in how they read Verilog: commands in comments, attributes, macros, races, loops, implicit widths. So the
proof accepts only the lines below, each of which has the same meaning in every tool:

| line                                | rules                                                                        |
|-------------------------------------|------------------------------------------------------------------------------|
| comments of the head                | the wordings that forestc writes                                             |
| the two directives `default_nettype | first and last line of the code                                              |
| module and ports                    | one module, its ports in one order                                           |
| localparam of small sums            | the tables of words of at most six bits, once each, which hold their sums    |
| reg, and wire with its expression   | every name once; an expression reads names above it, at equal widths, and    |
|                                     | selects bits only of names that are declared with a range                    |
| initial and always                  | one of each: every register starts at 0 and takes one name at each clock edge |
| assign                              | every bit of y once, and out_valid                                           |

The result is a `Core`. `Core.text` prints it again, and yosys gets that text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, TypeAlias

MOST_BITS = 64  # of a word
MOST_ADDED = 6  # bits that a table adds
_NUMBER = r"(?:0|[1-9]\d{0,8})"
_WIRE = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cn]\d+|sum\d+)"
_NAME = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cnr]\d+|sum\d+)"
_LITERAL = rf"{_NUMBER}'(?:d\d{{1,40}}|h[0-9a-f]{{1,40}})"
_WORD = rf"(?:{_NAME}|{_LITERAL})"
_BIT = rf"~?{_NAME}(?:\[{_NUMBER}\])?"
_COMMENTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"//",
        r"// Module \w+: \d+ trees, \d+ nodes",
        r"// Written by forestc; change the model and compile again rather than this file\.",
        r"// Verilog-2005, no vendor primitives\. Latency \d+ cycle\(s\), initiation interval 1\.",
        r"// x, \d+ bits: the features' words",
        r"// y, \d+ bits: the results",
        r"//   \[\d+:\d+\] \w+: [ -~]*",
        r"//   none: the result is constant",
    )
)
_NOTE = rf"  // {_NAME} < -?\d+(?:, tree \d+, node \d+)?"


class OutsideError(Exception):
    """A line is outside the Verilog that the proof reads."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line} is outside the Verilog that the proof reads ({why})")


class Literal(NamedTuple):
    value: int
    width: int


Word: TypeAlias = "str | Literal"


class Choose(NamedTuple):
    """select ? a : b"""

    select: str
    a: Word
    b: Word


class Operand(NamedTuple):
    """A word of a sum, extended by `more` bits: copies of its bit `sign`, or zeros if that is -1."""

    word: Word
    more: int = 0
    sign: int = -1


class Addition(NamedTuple):
    """Operands at the width of the result."""

    operands: tuple[Operand, ...]


class Comparison(NamedTuple):
    """a < b, of words of one width"""

    a: Word
    b: Word
    signed: bool


class Membership(NamedTuple):
    """Whether a word equals one of the members."""

    a: str
    members: tuple[Literal, ...]


class Chain(NamedTuple):
    """bit op (bit op (... bit)): each bit is (inverted, name, place); a place of -1 is the whole one-bit word."""

    bits: tuple[tuple[bool, str, int], ...]
    operators: str


class Inverted(NamedTuple):
    """The bitwise complement of a word."""

    name: str


class Slice(NamedTuple):
    """Bits of the input x."""

    high: int
    low: int


Expression: TypeAlias = Choose | Addition | Comparison | Membership | Chain | Inverted | Slice


@dataclass
class Core:
    """A module as read. wires: in the order of the file; each reads only wires above it and registers."""

    name: str
    clocked: bool
    x_bits: int
    y_bits: int
    widths: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)  # name -> the name of its next value
    wires: dict[str, Expression] = field(default_factory=dict)
    results: dict[tuple[int, int], Word] = field(default_factory=dict)  # (high, low) of y
    out_valid: str = ""

    def text(self) -> str:
        """The module printed as Verilog."""
        clocked = ["input wire clk", "input wire in_valid", "output wire out_valid"] if self.clocked else []
        ports = [*clocked, f"input wire [{self.x_bits - 1}:0] x", f"output wire [{self.y_bits - 1}:0] y"]
        lines = [f"module {self.name} ({', '.join(ports)});"]
        lines += [f"reg [{self.widths[name] - 1}:0] {name};" for name in self.registers]
        lines += [f"wire [{self.widths[name] - 1}:0] {name} = {_printed(what)};" for name, what in self.wires.items()]
        for name, source in self.registers.items():
            lines.append(f"initial {name} = {self.widths[name]}'d0;")
            lines.append(f"always @(posedge clk) {name} <= {source};")
        lines += [f"assign y[{high}:{low}] = {_word(what)};" for (high, low), what in self.results.items()]
        lines += [f"assign out_valid = {self.out_valid};"] if self.clocked else []
        return "\n".join([*lines, "endmodule", ""])


def _word(word: Word) -> str:
    return f"{word.width}'d{word.value}" if isinstance(word, Literal) else word


def _printed(what: Expression) -> str:
    match what:
        case Choose(select, a, b):
            return f"{select} ? {_word(a)} : {_word(b)}"
        case Addition(operands):
            return " + ".join(_operand(operand) for operand in operands)
        case Comparison(a, b, signed):
            return f"$signed({_word(a)}) < $signed({_word(b)})" if signed else f"{_word(a)} < {_word(b)}"
        case Membership(a, members):
            return " | ".join(f"({a} == {_word(member)})" for member in members)
        case Chain(bits, operators):
            names = [f"{'~' * no}{name}{f'[{place}]' if place >= 0 else ''}" for no, name, place in bits]
            opened = "".join(f"{name} {op} (" for name, op in zip(names[:-1], operators, strict=True))
            return f"{opened}{names[-1]}{')' * len(operators)}"
        case Inverted(name):
            return f"~{name}"
        case Slice(high, low):
            return f"x[{high}:{low}]"


def _operand(operand: Operand) -> str:
    word, more, sign = operand
    if not more:
        return _word(word)
    return f"{{{{{more}{{{word}[{sign}]}}}}, {word}}}" if sign >= 0 else f"{{{more}'d0, {word}}}"


def _widened(word: Word, bits: int, width: int) -> Operand:
    """A word of `bits` bits as an operand of a sum of `width` bits."""
    return Operand(word._replace(width=width)) if isinstance(word, Literal) else Operand(word, width - bits)


def _added(text: str) -> tuple[list[tuple[int, int]], int]:
    """The words of a small sum from the name of its tables, of each its bits and how often it is added; and the
    constant."""
    words, _, constant = text[1:].partition("_PLUS")
    parts = (word.partition("x") for word in words.split("_"))
    return [(int(bits), int(times or 1)) for bits, _, times in parts], int(constant or 0)


def _sum_of(words: list[tuple[int, int]], number: int) -> int:
    """The sum of the words that a number spells, the first in its lowest bits."""
    total = 0
    for bits, times in words:
        total += times * (number % (1 << bits))
        number >>= bits
    return total


def read_core(data: bytes) -> Core:
    """Reads the core from a file's bytes. Raises OutsideError for the first line that is not accepted."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if not all(32 <= byte < 127 for byte in line):
            raise OutsideError(number, "a character that is not printable ASCII")
    lines = data.decode("ascii").split("\n")
    if lines.pop():
        raise OutsideError(len(lines) + 1, "the last line does not end")
    return _CoreReader(lines).core()


class _CoreReader:
    def __init__(self, lines: list[str]) -> None:
        self.lines, self.at = lines, 0
        self.tables: set[tuple[str, int]] = set()  # (words, place) of the small sums that are declared

    def fail(self, why: str) -> NoReturn:
        raise OutsideError(self.at + 1, why)

    def next(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def take(self, *wanted: str) -> None:
        """Reads these lines, which must match word for word."""
        for line in wanted:
            if self.next() != line:
                self.fail(f"{line.strip() or 'an empty line'!r} is expected")
            self.at += 1

    def matching(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Yields the following lines that match a pattern, and moves past each."""
        while match := pattern.fullmatch(self.next()):
            yield match
            self.at += 1

    def core(self) -> Core:
        while any(form.fullmatch(self.next()) for form in _COMMENTS):
            self.at += 1
        self.take("`default_nettype none")
        if not (match := re.fullmatch(r"module (\w+) \(", self.next())):
            self.fail("the module is expected")
        self.at += 1
        clocked = self.next() == "    input  wire clk,"
        if clocked:
            self.take("    input  wire clk,", "    input  wire in_valid,", "    output wire out_valid,")
        core = Core(match[1], clocked, self.port("input  wire", "x", ","), self.port("output wire", "y", ""))
        self.take(");")
        self.declarations(core)
        if clocked:
            self.registers(core)
        self.take("")
        self.results(core)
        self.take("endmodule", "`default_nettype wire")
        if self.at < len(self.lines):
            self.fail("the file should end here")
        return core

    def port(self, kind: str, name: str, end: str) -> int:
        match = re.fullmatch(rf"    {kind} \[({_NUMBER}):0\] {name}{end}", self.next())
        if not match:
            self.fail(f"the port {name} is expected")
        self.at += 1
        return int(match[1]) + 1

    # ---- declarations -----------------------------------------------------------------------------------

    def declarations(self, core: Core) -> None:
        for match in self.matching(_TABLE):
            place, (words, constant) = int(match["place"]), _added(match["words"])
            bits = sum(width for width, _ in words)
            if not 0 < bits <= MOST_ADDED or int(match["high"]) + 1 != 1 << bits or int(match["bits"]) != 1 << bits:
                self.fail("no table of a small sum")
            value = int(match["value"], 16)
            right = (
                value >> number & 1 == constant + _sum_of(words, number) >> place & 1 for number in range(1 << bits)
            )
            if value >> (1 << bits) or not all(right):
                self.fail(f"the table does not hold bit {place} of the sum")
            if (match["words"], place) in self.tables:
                self.fail(f"a second SUM{match['words']}_BIT{place}")
            self.tables.add((match["words"], place))
        for match in self.matching(_REGISTER):
            self.declare(core, match["name"], match["high"])
            core.registers[match["name"]] = ""
        if core.registers and not core.clocked:
            self.fail("registers without a clock")
        for match in self.matching(_DECLARED):
            what = self.expression(core, match["what"], 1 if match["high"] is None else int(match["high"]) + 1)
            self.declare(core, match["name"], match["high"])
            core.wires[match["name"]] = what
        if unused := _UNUSED.fullmatch(self.next()):
            for part in unused["names"].split(", "):
                name, _, span = part.partition("[")
                high, _, low = span.rstrip("]").partition(":")
                if name != "x" and not 0 <= int(low or 0) <= int(high or 0) < self.width(core, name):
                    self.fail(f"{part} is not there")
                if span:
                    self.need_range(core, name)
            self.at += 1
        if self.next():
            self.fail("no known declaration")

    def declare(self, core: Core, name: str, high: str | None) -> None:
        if name in core.widths:
            self.fail(f"a second {name}")
        if high == "0":
            self.fail("a single bit has no range")
        core.widths[name] = 1 if high is None else int(high) + 1
        if core.widths[name] > MOST_BITS:
            self.fail(f"more than {MOST_BITS} bits")

    def width(self, core: Core, word: Word) -> int:
        if isinstance(word, Literal):
            return word.width
        if word == "in_valid" and core.clocked:
            return 1
        if word not in core.widths:
            self.fail(f"{word} is not declared above")
        return core.widths[word]

    def need(self, core: Core, word: Word, width: int) -> None:
        if self.width(core, word) != width:
            self.fail(f"{_word(word)} has {self.width(core, word)} bits where {width} are needed")

    def need_range(self, core: Core, name: str) -> None:
        """Verilog selects bits only of nets that are declared with a range, which nets of one bit are not."""
        if self.width(core, name) == 1:
            self.fail(f"{name} is a single bit, of which none is selected")

    def word(self, text: str) -> Word:
        """A name, or a literal that fits its width."""
        width, mark, digits = text.partition("'")
        if not mark:
            return text
        value = int(digits[1:], 16 if digits[0] == "h" else 10)
        if int(width) < 1 or value >> int(width):
            self.fail(f"{text} does not fit its width")
        return Literal(value, int(width))

    # ---- expressions ------------------------------------------------------------------------------------

    def expression(self, core: Core, text: str, width: int) -> Expression:
        """The expression of a wire of `width` bits."""
        for form, read in _FORMS:
            if match := form.fullmatch(text):
                return read(self, core, match, width)
        self.fail("no known expression")

    def slice(self, core: Core, match: re.Match[str], width: int) -> Expression:
        high, low = int(match[1]), int(match[2])
        if not high < core.x_bits or high - low + 1 != width:
            self.fail(f"x[{high}:{low}] does not fit")
        return Slice(high, low)

    def inverted(self, core: Core, match: re.Match[str], width: int) -> Expression:
        self.need(core, match[1], width)
        return Inverted(match[1])

    def chain(self, core: Core, match: re.Match[str], width: int) -> Expression:
        text = match[0]
        operators = "".join(re.findall(r" ([&|]) ", text))
        if text.count("(") != text.count(")") or (operators and text.count("(") != len(operators) - 1):
            self.fail("parentheses that do not close")
        bits = []
        for no, name, place in re.findall(rf"(~?)({_NAME})(?:\[({_NUMBER})\])?", text):
            if place and not int(place) < self.width(core, name):
                self.fail(f"{name}[{place}] is not there")
            if place:
                self.need_range(core, name)
            else:
                self.need(core, name, 1)
            bits.append((bool(no), name, int(place) if place else -1))
        if width != 1:
            self.fail(f"one bit where {width} are needed")
        return Chain(tuple(bits), operators)

    def choose(self, core: Core, match: re.Match[str], width: int) -> Expression:
        a, b = self.word(match[2]), self.word(match[3])
        self.need(core, match[1], 1)
        self.need(core, a, width)
        self.need(core, b, width)
        return Choose(match[1], a, b)

    def below(self, core: Core, match: re.Match[str], width: int) -> Expression:
        a, b = self.word(match["a"]), self.word(match["b"])
        self.need(core, b, self.width(core, a))
        if width != 1:
            self.fail(f"one bit where {width} are needed")
        return Comparison(a, b, match[0].startswith("$signed"))

    def one_of(self, core: Core, match: re.Match[str], width: int) -> Expression:
        names = set(re.findall(rf"\(({_NAME}) == ", match[0]))
        members = [self.word(text) for text in re.findall(rf"== ({_LITERAL})\)", match[0])]
        if len(names) != 1 or width != 1:
            self.fail("no test of one word against others")
        (name,) = names
        for member in members:
            self.need(core, member, self.width(core, name))
        return Membership(name, tuple(member for member in members if isinstance(member, Literal)))

    def sum(self, core: Core, match: re.Match[str], width: int) -> Expression:
        operands = []
        for part in match[0].split(" + "):
            parts = _OPERAND.fullmatch(part)
            assert parts is not None
            word = self.word(parts["zeros_of"] or parts["signed"] or part)
            more, sign = int(parts["zeros"] or parts["copies"] or 0), -1
            if parts["signed"]:
                sign = int(parts["sign"])
                if parts["bit_of"] != word or sign != self.width(core, word) - 1:
                    self.fail(f"{part} does not repeat the sign")
                self.need_range(core, parts["signed"])
            if (parts["zeros"] or parts["copies"]) and not more:
                self.fail("no bits in front of a word")
            self.need(core, word, width - more)
            operands.append(Operand(word, more, sign))
        return Addition(tuple(operands))

    def small_sum(self, core: Core, match: re.Match[str], width: int) -> Expression:
        """Bits from tables of one small sum, all at the same place: the sum of the words that spell the place."""
        bits_read = re.findall(r"SUM([_x\dPLUS]+)_BIT(\d+)\[\{([^}]*)\}\]", match[0])
        shapes, places = {words for words, _, _ in bits_read}, [int(place) for _, place, _ in bits_read]
        indices = {index for _, _, index in bits_read}
        if len(indices) > 1 or len(shapes) > 1 or places != list(range(width - 1, -1, -1)):
            self.fail("no small sum")
        (shape,), (index,) = shapes, indices
        names, (words, constant) = index.split(", "), _added(shape)
        if len(names) != len(words) or not all((shape, place) in self.tables for place in places):
            self.fail("no table for this small sum")
        operands: list[Operand] = []
        for name, (bits, times) in zip(reversed(names), words, strict=True):
            word = self.word(name)
            self.need(core, word, bits)
            if bits > width:
                self.fail("a sum narrower than a word")
            operands += [_widened(word, bits, width)] * times
        if constant.bit_length() > width:
            self.fail("a sum narrower than its constant")
        return Addition((*operands, *([Operand(Literal(constant, width))] if constant else [])))

    def doubled(self, core: Core, match: re.Match[str], width: int) -> Expression:
        self.need(core, match[1], width - 1)
        return Addition((Operand(match[1], 1), Operand(match[1], 1)))

    # ---- registers and results --------------------------------------------------------------------------

    def registers(self, core: Core) -> None:
        self.take("", "    initial begin")
        for name in core.registers:
            self.take(f"        {name} = {core.widths[name]}'d0;")
        self.take("    end", "    always @(posedge clk) begin")
        for name in core.registers:
            match = _UPDATE.fullmatch(self.next())
            if not match or match["name"] != name:
                self.fail(f"the next word of {name} is expected")
            self.need(core, match["source"], core.widths[name])
            core.registers[name] = match["source"]
            self.at += 1
        self.take("    end")

    def results(self, core: Core) -> None:
        free = 0
        for match in self.matching(_RESULT):
            high, low = int(match["high"]), int(match["low"])
            if low != free or not low <= high < core.y_bits:
                self.fail(f"y[{high}:{low}] does not follow the result before it")
            word = self.word(match["word"])
            self.need(core, word, high - low + 1)
            core.results[high, low] = word
            free = high + 1
        if free != core.y_bits:
            self.fail(f"y[{free}] has no result")
        if core.clocked:
            valid = re.fullmatch(rf"    assign out_valid = ({_NAME});", self.next())
            if not valid:
                self.fail("out_valid is expected")
            self.need(core, valid[1], 1)
            core.out_valid = valid[1]
            self.at += 1


_ADDED = r"(?:_[1-9](?:x[1-9]\d{0,2})?){1,6}(?:_PLUS[1-9]\d{0,8})?"
_TABLE = re.compile(
    rf"    localparam \[(?P<high>{_NUMBER}):0\] SUM(?P<words>{_ADDED})_BIT(?P<place>{_NUMBER})"
    rf" = (?P<bits>{_NUMBER})'h(?P<value>[0-9a-f]{{1,16}});"
)
_ADDED_BIT = rf"SUM{_ADDED}_BIT{_NUMBER}\[\{{{_WORD}(?:, {_WORD})*\}}\]"
_REGISTER = re.compile(rf"    reg (?:\[(?P<high>{_NUMBER}):0\] )?(?P<name>r\d+);")
_DECLARED = re.compile(rf"    wire (?:\[(?P<high>{_NUMBER}):0\] )?(?P<name>{_WIRE}) = (?P<what>[^;/]+);(?:{_NOTE})?")
_PART = rf"{_NAME}(?:\[{_NUMBER}:{_NUMBER}\])?"
_UNUSED = re.compile(rf"    wire unused = &\{{1'b0, (?P<names>x|{_PART}(?:, {_PART})*)\}};")
_UPDATE = re.compile(rf"        (?P<name>r\d+) <= (?P<source>{_NAME}|in_valid);")
_RESULT = re.compile(rf"    assign y\[(?P<high>{_NUMBER}):(?P<low>{_NUMBER})\] = (?P<word>{_WORD});")
_OPERAND = re.compile(
    rf"{_WORD}|\{{(?P<zeros>{_NUMBER})'d0, (?P<zeros_of>{_NAME})\}}"
    rf"|\{{\{{(?P<copies>{_NUMBER})\{{(?P<bit_of>{_NAME})\[(?P<sign>{_NUMBER})\]\}}\}}, (?P<signed>{_NAME})\}}"
)
_PLAIN_OPERAND = re.sub(r"\?P<\w+>", "?:", _OPERAND.pattern)
_FORMS: tuple[tuple[re.Pattern[str], Callable[[_CoreReader, Core, re.Match[str], int], Expression]], ...] = (
    (re.compile(rf"x\[({_NUMBER}):({_NUMBER})\]"), _CoreReader.slice),
    (re.compile(rf"~({_NAME})"), _CoreReader.inverted),
    (re.compile(rf"(?:{_BIT} [&|] \()*(?:{_BIT} [&|] )?{_BIT}\)*"), _CoreReader.chain),
    (re.compile(rf"({_NAME}) \? ({_WORD}) : ({_WORD})"), _CoreReader.choose),
    (re.compile(rf"(?P<a>{_WORD}) < (?P<b>{_WORD})"), _CoreReader.below),
    (re.compile(rf"\$signed\((?P<a>{_WORD})\) < \$signed\((?P<b>{_WORD})\)"), _CoreReader.below),
    (re.compile(rf"\({_NAME} == {_LITERAL}\)(?: \| \({_NAME} == {_LITERAL}\))*"), _CoreReader.one_of),
    (re.compile(rf"\{{{_ADDED_BIT}(?:, {_ADDED_BIT})+\}}"), _CoreReader.small_sum),
    (re.compile(rf"\{{({_NAME}), 1'd0\}}"), _CoreReader.doubled),
    (re.compile(rf"(?:{_PLAIN_OPERAND})(?: \+ (?:{_PLAIN_OPERAND}))+"), _CoreReader.sum),
)
