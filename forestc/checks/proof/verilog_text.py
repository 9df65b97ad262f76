"""Strict readers of Verilog: of a core's file, and of the module `step` in an engine's file.

Tools differ over macros, races, loops and implicit widths, so a reader accepts none of these, only the forms that
forestc writes. yosys gets the text that `Core.text` prints, or the module of the step alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, NoReturn

from forestc.backends.hdl import SENTENCES
from forestc.backends.names import RESERVED
from forestc.checks.proof.core import (
    EDGES,
    Addend,
    Addition,
    Chain,
    Choose,
    Comparison,
    Core,
    Expression,
    Inverted,
    Literal,
    Membership,
    Slice,
    Word,
    word_text,
)
from forestc.engine.capacity import Capacity
from forestc.engine.verilog import emit
from forestc.netlist.ports import Clocking

MOST_ADDED = 6  # bits that the table of a small sum adds at most
MOST_BITS = 64  # bits that a word of a core has at most
_NUMBER = r"(?:0|[1-9]\d{0,8})"
_RANGE = rf"(?:\[(?P<high>{_NUMBER}):0\] )?"
_TOKEN = re.compile(
    rf"(?P<literal>[1-9]\d{{0,3}}'[bdh][0-9a-fA-F]{{1,40}})(?!\w)|(?P<number>{_NUMBER})(?![\w'])"
    r"|(?P<name>\$signed|[A-Za-z_]\w*)"
)
_BASES = {"b": 2, "d": 10, "h": 16}


class OutsideError(Exception):
    """Raised for a line of Verilog that the strict readers do not accept."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line} is outside the Verilog that the proof reads ({why})")


class _Text(NamedTuple):
    """A text and its tokens: names, literals and numbers. shape: the text with the kind of each token in its place, a
    letter: `l` for literals, `i` for numbers, `n` for names, and further kinds of names in a core."""

    text: str
    shape: str
    tokens: list[str]


class _Reader:
    """Reads lines of Verilog. widths: bits of each declared name."""

    def __init__(self, data: bytes) -> None:
        self.at = 0  # index of the current line
        self.widths: dict[str, int] = {}
        for line in data.split(b"\n"):
            if not all(32 <= byte < 127 for byte in line):
                self.fail("a character that is not printable ASCII")
            self.at += 1
        self.lines = data.decode("ascii").split("\n")
        if self.lines.pop():
            self.at -= 1
            self.fail("the last line does not end")
        self.at = 0

    def fail(self, why: str) -> NoReturn:
        raise OutsideError(self.at + 1, why)

    def kind(self, name: str) -> str:
        """Returns the kind of a name: a letter, or $ if it is not expected."""
        return "$" if name == "$signed" else "n"

    def read(self, text: str) -> _Text:
        tokens: list[str] = []

        def letter(match: re.Match[str]) -> str:
            tokens.append(match[0])
            return "l" if match["literal"] else "i" if match["number"] else self.kind(match[0])

        return _Text(text, _TOKEN.sub(letter, text), tokens)

    def word(self, token: str) -> Word:
        width, mark, digits = token.partition("'")
        if not mark:
            return token
        try:
            value = int(digits[1:], _BASES[digits[0]])
        except ValueError:
            self.fail(f"{token} is no number")
        if value >> int(width):
            self.fail(f"{token} does not fit its width")
        return Literal(value, int(width))

    def declare(self, name: str, high: str | None) -> None:
        if name in self.widths:
            self.fail(f"a second {name}")
        self.widths[name] = 1 if high is None else int(high) + 1

    def width(self, word: Word) -> int:
        if isinstance(word, Literal):
            return word.width
        if word not in self.widths:
            self.fail(f"{word} is not declared above")
        return self.widths[word]

    def select(self, name: str, high: str, low: str) -> None:
        """Raises OutsideError unless the bits are there. Verilog selects bits only of names declared with a range."""
        if self.width(name) == 1:
            self.fail(f"{name} is a single bit, of which none is selected")
        if not int(low) <= int(high) < self.width(name):
            self.fail(f"{name}[{high}:{low}] is not there")


_WIRE_NAME = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cn]\d+|sum\d+)"
_NAME = rf"(?:{_WIRE_NAME}|r\d+)"
_NAMES = re.compile(_NAME)
_ADDED = r"(?:_[1-9](?:x[1-9]\d{0,2})?){1,6}(?:_PLUS[1-9]\d{0,8})?"
_TABLE_NAME = re.compile(rf"SUM({_ADDED})_BIT({_NUMBER})")
_NOTE = rf"(?:  // {_NAME} < -?\d+(?:, tree \d+, node \d+)?)?"
_SENTENCES = "|".join(f" {re.escape(line)}" for line in sorted(SENTENCES))
_COMMENTS = re.compile(
    r"//(?: Module \w+: \d+ trees, \d+ nodes"
    r"| Written by forestc; change the model and compile again rather than this file\."
    r"| Verilog-2005, no vendor primitives\. Latency \d+ cycle\(s\), initiation interval 1\."
    r"| x, \d+ bits: the features' words| y, \d+ bits: the results"
    rf"|   \[\d+:\d+\] \w+: [ -~]*|   none: the result is constant|{_SENTENCES})?"
)
_TABLE = re.compile(
    rf"    localparam \[(?P<high>{_NUMBER}):0\] SUM(?P<words>{_ADDED})_BIT(?P<place>{_NUMBER})"
    rf" = (?P<bits>{_NUMBER})'h(?P<value>[0-9a-f]{{1,16}});"
)
_REGISTER = re.compile(rf"    reg {_RANGE}(?P<name>r\d+);")
_DECLARED = re.compile(rf"    wire {_RANGE}(?P<name>{_WIRE_NAME}) = (?P<what>[^;/]+);{_NOTE}")
_PART = rf"{_NAME}(?:\[{_NUMBER}:{_NUMBER}\])?"
_UNUSED = re.compile(rf"    wire unused = &\{{1'b0, (?P<names>x|{_PART}(?:, {_PART})*)\}};")
_UPDATE = re.compile(rf"        (?P<name>r\d+) <= (?P<source>{_NAME}|in_valid);")
_RESULT = re.compile(rf"    assign y\[(?P<high>{_NUMBER}):(?P<low>{_NUMBER})\] = (?P<word>[^;]+);")


def read_core(data: bytes) -> Core:
    """Reads a core from a file's bytes. Raises OutsideError if a line is not accepted."""
    return _CoreReader(data).file()


def _added_words(text: str) -> tuple[list[tuple[int, int]], int]:
    """Parses the end of a table's name: _2_3x5_PLUS7 gives the words (2, 1) and (3, 5) as (bits, factor), and the
    constant 7."""
    words, _, constant = text[1:].partition("_PLUS")
    parts = (word.partition("x") for word in words.split("_"))
    return [(int(bits), int(times or 1)) for bits, _, times in parts], int(constant or 0)


def _sum_of(words: list[tuple[int, int]], number: int) -> int:
    """Divides `number` into words, the first from the lowest bits, and returns the sum of all words times their
    factors. words: (bits, factor) pairs."""
    total = 0
    for bits, times in words:
        total += times * (number % (1 << bits))
        number >>= bits
    return total


class _CoreReader(_Reader):
    """Reads a core's file. Kinds of names: `n` for wires and registers, `t` for tables, `s` for $signed, and `x`."""

    core: Core

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.tables: set[tuple[str, int]] = set()  # (shape, bit of the sum) of each table so far

    def kind(self, name: str) -> str:
        if _NAMES.fullmatch(name):
            return "n"
        return {"x": "x", "$signed": "s"}.get(name) or ("t" if _TABLE_NAME.fullmatch(name) else "$")

    def next(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def take(self, *expected: str) -> None:
        for line in expected:
            if self.next() != line:
                self.fail(f"{line.strip() or 'an empty line'!r} is expected")
            self.at += 1

    def took(self, line: str) -> bool:
        """Returns True, and goes on, if this is the next line."""
        found = self.next() == line
        self.at += found
        return found

    def matching(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        while match := pattern.fullmatch(self.next()):
            yield match
            self.at += 1

    def file(self) -> Core:
        while _COMMENTS.fullmatch(self.next()):
            self.at += 1
        self.take("`default_nettype none")
        if not (match := re.fullmatch(r"module (\w+) \(", self.next())):
            self.fail("the module is expected")
        self.at += 1
        clocked = self.took("    input  wire clk,")
        reset, enable = (clocked and self.took(f"    input  wire {name},") for name in ("rst", "en"))
        if clocked:
            self.take("    input  wire in_valid,", "    output wire out_valid,")
        x_bits, y_bits = self.port("input  wire", "x", ","), self.port("output wire", "y", "")
        clocking = Clocking("sync" if reset else "none", enable)  # `registers` tells sync from async
        self.core = Core(match[1], clocked, x_bits, y_bits, clocking, self.widths)
        self.take(");")
        self.declarations()
        if clocked:
            self.registers()
        self.take("")
        self.results()
        self.take("endmodule", "`default_nettype wire")
        if self.at < len(self.lines):
            self.fail("the file should end here")
        return self.core

    def port(self, kind: str, name: str, end: str) -> int:
        match = re.fullmatch(rf"    {kind} \[({_NUMBER}):0\] {name}{end}", self.next())
        if not match:
            self.fail(f"the port {name} is expected")
        self.at += 1
        return int(match[1]) + 1

    def declarations(self) -> None:
        for match in self.matching(_TABLE):
            position, (words, constant) = int(match["place"]), _added_words(match["words"])
            bits = sum(width for width, _ in words)
            if not 0 < bits <= MOST_ADDED or int(match["high"]) + 1 != 1 << bits or int(match["bits"]) != 1 << bits:
                self.fail("no table of a small sum")
            value = int(match["value"], 16)
            right = (
                value >> number & 1 == constant + _sum_of(words, number) >> position & 1 for number in range(1 << bits)
            )
            if value >> (1 << bits) or not all(right):
                self.fail(f"the table does not hold bit {position} of the sum")
            if (match["words"], position) in self.tables:
                self.fail(f"a second SUM{match['words']}_BIT{position}")
            self.tables.add((match["words"], position))
        for match in self.matching(_REGISTER):
            self.declare(match["name"], match["high"])
            self.core.registers[match["name"]] = ""
        if self.core.registers and not self.core.clocked:
            self.fail("registers without a clock")
        for match in self.matching(_DECLARED):
            what = self.expression(match["what"], 1 if match["high"] is None else int(match["high"]) + 1)
            self.declare(match["name"], match["high"])
            self.core.wires[match["name"]] = what
        if unused := _UNUSED.fullmatch(self.next()):
            for part in unused["names"].split(", "):
                name, _, span = part.partition("[")
                high, _, low = span.rstrip("]").partition(":")
                if span:
                    self.select(name, high, low)
                elif name != "x":
                    self.width(name)
            self.at += 1
        if self.next():
            self.fail("no known declaration")

    def declare(self, name: str, high: str | None) -> None:
        super().declare(name, high)
        if high == "0":
            self.fail("a single bit has no range")
        if self.widths[name] > MOST_BITS:
            self.fail(f"more than {MOST_BITS} bits")

    def registers(self) -> None:
        self.take("", "    initial begin")
        for name in self.core.registers:
            self.take(f"        {name} = {self.widths[name]}'d0;")
        self.take("    end")
        clocking = self.core.clocking
        enable = " if (en)" * clocking.enable
        if clocking.reset == "none":
            self.take(f"    always @({EDGES['none']}){enable} begin")
        else:
            if self.next() == f"    always @({EDGES['async']}) if (rst) begin":
                self.core.clocking = replace(clocking, reset="async")
            self.take(f"    always @({EDGES[self.core.clocking.reset]}) if (rst) begin")
            self.take(*(f"        {name} <= {self.widths[name]}'d0;" for name in self.core.registers))
            self.take(f"    end else{enable} begin")
        for name in self.core.registers:
            match = _UPDATE.fullmatch(self.next())
            if not match or match["name"] != name:
                self.fail(f"the next word of {name} is expected")
            self.need(match["source"], self.widths[name])
            self.core.registers[name] = match["source"]
            self.at += 1
        self.take("    end")

    def results(self) -> None:
        free = 0
        for match in self.matching(_RESULT):
            high, low = int(match["high"]), int(match["low"])
            if low != free or not low <= high < self.core.y_bits:
                self.fail(f"y[{high}:{low}] does not follow the result before it")
            _, shape, tokens = self.read(match["word"])
            if shape not in ("n", "l"):
                break
            self.core.results[high, low] = self.needed(tokens[0], high - low + 1)
            free = high + 1
        if free != self.core.y_bits:
            self.fail(f"y[{free}] has no result")
        if self.core.clocked:
            valid = re.fullmatch(rf"    assign out_valid = ({_NAME});", self.next())
            if not valid:
                self.fail("out_valid is expected")
            self.need(valid[1], 1)
            self.core.out_valid = valid[1]
            self.at += 1

    def width(self, word: Word) -> int:
        return 1 if word == "in_valid" and self.core.clocked else super().width(word)

    def need(self, word: Word, width: int) -> None:
        if self.width(word) != width:
            self.fail(f"{word_text(word)} has {self.width(word)} bits where {width} are needed")

    def needed(self, token: str, width: int) -> Word:
        word = self.word(token)
        self.need(word, width)
        return word

    def one_bit(self, width: int) -> None:
        if width != 1:
            self.fail(f"one bit where {width} are needed")

    def expression(self, text: str, width: int) -> Expression:
        read = self.read(text)
        for form, parse in _FORMS:
            if form.fullmatch(read.shape):
                return parse(self, read, width)
        self.fail("no known expression")

    def slice(self, read: _Text, width: int) -> Expression:
        high, low = map(int, read.tokens[1:])
        if not high < self.core.x_bits or high - low + 1 != width:
            self.fail(f"{read.text} does not fit")
        return Slice(high, low)

    def part(self, read: _Text, width: int) -> Expression:
        name, high, low, zero = read.tokens
        self.select(name, high, low)
        if int(high) - int(low) + 1 != width or self.word(zero) != Literal(0, width):
            self.fail(f"{read.text} does not fit")
        return Slice(int(high), int(low), name)

    def inverted(self, read: _Text, width: int) -> Expression:
        (name,) = read.tokens
        self.need(name, width)
        return Inverted(name)

    def chain(self, read: _Text, width: int) -> Expression:
        _, shape, tokens = read
        operators = "".join(re.findall("[&|]", shape))
        if shape.count("(") != shape.count(")") or (operators and shape.count("(") != len(operators) - 1):
            self.fail("parentheses that do not close")
        left, bits = iter(tokens), []
        for no, selected in re.findall(r"(~?)n(\[i\])?", shape):
            name, position = next(left), next(left) if selected else ""
            if position:
                self.select(name, position, position)
            else:
                self.need(name, 1)
            bits.append((bool(no), name, int(position or -1)))
        self.one_bit(width)
        return Chain(tuple(bits), operators)

    def choose(self, read: _Text, width: int) -> Expression:
        select, a, b = read.tokens
        self.need(select, 1)
        return Choose(select, self.needed(a, width), self.needed(b, width))

    def below(self, read: _Text, width: int) -> Expression:
        signed = read.shape.startswith("s")
        a, b = (self.word(token) for token in read.tokens[signed :: 1 + signed])
        self.need(b, self.width(a))
        self.one_bit(width)
        return Comparison(a, b, signed)

    def one_of(self, read: _Text, width: int) -> Expression:
        name, members = read.tokens[0], [self.word(token) for token in read.tokens[1::2]]
        if set(read.tokens[::2]) != {name}:
            self.fail("no test of one word against others")
        self.one_bit(width)
        for member in members:
            self.need(member, self.width(name))
        return Membership(name, tuple(member for member in members if isinstance(member, Literal)))

    def sum(self, read: _Text, width: int) -> Expression:
        left, operands = iter(read.tokens), []
        for shape in read.shape.split(" + "):
            first, more, sign = next(left), 0, -1
            if shape == "{l, n}":
                zeros = self.word(first)
                first = next(left)
                if not isinstance(zeros, Literal) or zeros.value:
                    self.fail("no zeros in front of a word")
                more = zeros.width
            elif shape != "n" and shape != "l":
                more, repeated, position, first = int(first), next(left), next(left), next(left)
                sign = int(position)
                if repeated != first or sign != self.width(first) - 1:
                    self.fail(f"{first} does not repeat its sign")
                self.select(first, position, position)
                if not more:
                    self.fail("no bits in front of a word")
            operands.append(Addend(self.needed(first, width - more), more, sign))
        return Addition(tuple(operands))

    def small_sum(self, read: _Text, width: int) -> Expression:
        """Parses a sum whose bits are looked up in tables, all at the same index."""
        looked_up = re.findall(r"SUM([_x\dPLUS]+)_BIT(\d+)\[\{([^}]*)\}\]", read.text)
        shapes, indices = {words for words, _, _ in looked_up}, {index for _, _, index in looked_up}
        positions = [int(position) for _, position, _ in looked_up]
        if len(indices) > 1 or len(shapes) > 1 or positions != list(range(width - 1, -1, -1)):
            self.fail("no small sum")
        (shape,), (index,) = shapes, indices
        tokens, (words, constant) = index.split(", "), _added_words(shape)
        if len(tokens) != len(words) or not all((shape, position) in self.tables for position in positions):
            self.fail("no table for this small sum")
        operands: list[Addend] = []
        for token, (bits, times) in zip(reversed(tokens), words, strict=True):
            word = self.needed(token, bits)
            if bits > width:
                self.fail("a sum narrower than a word")
            addend = Addend(word._replace(width=width)) if isinstance(word, Literal) else Addend(word, width - bits)
            operands += [addend] * times
        if constant.bit_length() > width:
            self.fail("a sum narrower than its constant")
        return Addition((*operands, *([Addend(Literal(constant, width))] if constant else [])))

    def doubled(self, read: _Text, width: int) -> Expression:
        name, zero = read.tokens
        if zero != "1'd0":
            self.fail("no word times 2")
        self.need(name, width - 1)
        return Addition((Addend(name, 1), Addend(name, 1)))


_BIT = r"~?n(?:\[i\])?"
_LOOKED_UP = r"t\[\{[nl](?:, [nl])*\}\]"
_OPERAND = r"(?:[nl]|\{l, n\}|\{\{i\{n\[i\]\}\}, n\})"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[_CoreReader, _Text, int], Expression]], ...] = (
    (re.compile(r"x\[i:i\]"), _CoreReader.slice),
    (re.compile(r"n\[i:i\] \+ l"), _CoreReader.part),
    (re.compile(r"~n"), _CoreReader.inverted),
    (re.compile(rf"(?:{_BIT} [&|] \()*(?:{_BIT} [&|] )?{_BIT}\)*"), _CoreReader.chain),
    (re.compile(r"n \? [nl] : [nl]"), _CoreReader.choose),
    (re.compile(r"[nl] < [nl]|s\([nl]\) < s\([nl]\)"), _CoreReader.below),
    (re.compile(r"\(n == l\)(?: \| \(n == l\))*"), _CoreReader.one_of),
    (re.compile(rf"\{{{_LOOKED_UP}(?:, {_LOOKED_UP})+\}}"), _CoreReader.small_sum),
    (re.compile(r"\{n, l\}"), _CoreReader.doubled),
    (re.compile(rf"{_OPERAND}(?: \+ {_OPERAND})+"), _CoreReader.sum),
)

_COMMENT = re.compile(r"//.*")
_ATTRIBUTE = re.compile(r"\(\*(?!\)).*?\*\)")  # matches an attribute (* ... *), but not the event list @(*)
_BEGIN, _END = "`default_nettype none", "`default_nettype wire"
_PORT = re.compile(r"([(,]\s*)\.(?=\w+\s*\()")  # matches the dot before a port's name in an instance
_ENGINE_LINE = re.compile(r"(?:[nli\s]|/(?!\*)|[-!%&()*+,:;<=>?@\[\]^{|}~])*")  # shape of a line of an engine
_DECLARED_PORT = re.compile(rf"    (?:input  wire|output wire(?: signed)?) {_RANGE}(?P<name>\w+),?")
_CONSTANTS = re.compile(rf"    localparam {_RANGE}(?P<constants>[^;]+);")
_WIRE = re.compile(rf"    wire {_RANGE}(?P<name>\w+) = (?P<what>[^;]+);")
_ASSIGN = re.compile(r"    assign (?P<name>next|value) = (?P<what>[^;]+);")
_SELECTED = r"n(?:\[i(?::i)?\]|\[n\[i:i\]\])?"
_STEP_EXPRESSION = re.compile(rf"(?:\s|l|{_SELECTED}|&&|\|\||[=!<>]=|[-?:&|!~<>+^(){{}},])*")


def read_step(data: bytes, capacity: Capacity) -> str:
    """Checks an engine's Verilog and returns the module of its step alone. Raises OutsideError if a line is not
    accepted."""
    return _StepReader(data).module(f"{capacity.name}_step", emit(capacity))


class _StepReader(_Reader):
    """Reads an engine's file, which may have only comments, attributes and keywords that forestc writes. The module of
    the step may hold only ports, constants, wires and assignments."""

    def module(self, name: str, own: str) -> str:
        code = self.code(own)
        starts = [index for index, line in enumerate(code) if line == f"module {name} ("]
        if len(starts) != 1:
            self.fail(f"one module {name} is expected")
        (start,) = starts
        end = next((index for index in range(start, len(code)) if code[index] == "endmodule"), len(code) - 1)
        self.at = start
        self.step(code[start + 1 : end])
        return "\n".join([_BEGIN, *code[start:end], "endmodule", ""])

    def code(self, own: str) -> list[str]:
        """Strips comments and attributes from lines. Raises OutsideError for comments, attributes and keywords that
        forestc's text `own` lacks, and for misplaced lines."""
        comments = {_form(comment) for comment in _COMMENT.findall(own)}
        bare = _COMMENT.sub("", own)
        attributes, words = set(_ATTRIBUTE.findall(bare)), set(re.findall(r"[A-Za-z_]\w*", bare))
        code, modules, directives = list[str](), set[str](), list[str]()
        opened = ""  # "(" or "," at the end of the line before, which a port may follow
        for number, line in enumerate(self.lines):
            self.at = number
            if (comment := _COMMENT.search(line)) and _form(comment[0]) not in comments:
                self.fail(f"a comment that forestc does not write: {comment[0]}")
            line = _COMMENT.sub("", line).rstrip()
            for attribute in _ATTRIBUTE.findall(line):
                if attribute not in attributes:
                    self.fail(f"an attribute that forestc does not write: {attribute}")
            line = _ATTRIBUTE.sub("", line)
            code.append(line)
            if line.startswith("`") or (line and not directives):
                directives.append(line)
                if directives not in ([_BEGIN], [_BEGIN, _END]):
                    self.fail(f"{line} is not expected")
                continue
            if line and len(directives) > 1:
                self.fail("the file should end here")
            if module := re.search(r"\bmodule\s+(\w+)", line):
                if module[1] in modules:
                    self.fail(f"a second module {module[1]}")
                modules.add(module[1])
            self.tokens(_PORT.sub(r"\1", opened + line), words)
            if line.strip():
                opened = line.strip()[-1] if line.strip()[-1] in "(," else ""
        if directives != [_BEGIN, _END]:
            self.fail(f"{_END} is expected")
        return code

    def tokens(self, line: str, words: set[str]) -> None:
        """Raises OutsideError for unexpected characters, and for keywords outside of `words`."""
        _, shape, tokens = self.read(line)
        if not _ENGINE_LINE.fullmatch(shape):
            self.fail(f"{line.strip()} has a character that is not expected")
        for token in tokens:
            if token not in words and token.lower() in RESERVED:
                self.fail(f"the keyword {token}")
            self.word(token)

    def step(self, lines: list[str]) -> None:
        ports, assigned = True, set[str]()
        for line in lines:
            self.at += 1
            if ports:
                if match := _DECLARED_PORT.fullmatch(line):
                    self.declare(match["name"], match["high"])
                elif line == ");":
                    ports = False
                else:
                    self.fail("a port is expected")
            elif match := _CONSTANTS.fullmatch(line):
                _, shape, tokens = self.read(match["constants"])
                if not re.fullmatch("n = l(?:, n = l)*", shape):
                    self.fail("constants are expected")
                for name in tokens[::2]:
                    self.declare(name, match["high"])
            elif match := _WIRE.fullmatch(line):
                self.expression(match["what"])
                self.declare(match["name"], match["high"])
            elif match := _ASSIGN.fullmatch(line):
                self.expression(match["what"])
                if match["name"] in assigned:
                    self.fail(f"a second {match['name']}")
                assigned.add(match["name"])
            else:
                self.fail("no known line of a step")
        if ports or assigned != {"next", "value"}:
            self.fail("a result is missing")

    def expression(self, text: str) -> None:
        _, shape, tokens = self.read(text)
        if not _STEP_EXPRESSION.fullmatch(shape):
            self.fail(f"{text} is not expected")
        left = iter(tokens)
        for part in re.findall(rf"l|{_SELECTED}", shape):
            name, *ends = [next(left) for _ in re.findall("[nli]", part)]
            if part == "l":
                continue
            if name in ("next", "value"):
                self.fail(f"{name} is a result")
            width = self.width(name)
            if len(ends) == 3:  # the bit of a word whose number is in bits of another
                self.select(*ends)
                if 1 << (int(ends[1]) - int(ends[2]) + 1) != width:
                    self.fail(f"{name} may have no such bit")
            elif ends:
                self.select(name, ends[0], ends[-1])


def _form(comment: str) -> str:
    return re.sub(r"\d+", "0", comment)
