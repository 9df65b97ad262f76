"""Parses the expressions in a core's Verilog; accepts only the forms that forestc writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from forestc.checks.proof.core import (
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
    OutsideError,
    Slice,
    Word,
    word_text,
)

MOST_ADDED = 6  # bits that the table of a small sum adds at most
NUMBER = r"(?:0|[1-9]\d{0,8})"
WIRE = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cn]\d+|sum\d+)"
NAME = r"(?:x\d+(?:_[A-Za-z0-9_]+)?|[cnr]\d+|sum\d+)"
_LITERAL = rf"{NUMBER}'(?:d\d{{1,40}}|h[0-9a-f]{{1,40}})"
WORD = rf"(?:{NAME}|{_LITERAL})"
_BIT = rf"~?{NAME}(?:\[{NUMBER}\])?"


def _widened(word: Word, bits: int, width: int) -> Addend:
    return Addend(word._replace(width=width)) if isinstance(word, Literal) else Addend(word, width - bits)


def added_words(text: str) -> tuple[list[tuple[int, int]], int]:
    """Parses the end of a table's name: _2_3x5_PLUS7 gives the words (2, 1) and (3, 5) as (bits, factor), and the
    constant 7."""
    words, _, constant = text[1:].partition("_PLUS")
    parts = (word.partition("x") for word in words.split("_"))
    return [(int(bits), int(times or 1)) for bits, _, times in parts], int(constant or 0)


def sum_of(words: list[tuple[int, int]], number: int) -> int:
    """Divides `number` into words, the first from the lowest bits, and returns the sum of all words times their
    factors. words: (bits, factor) pairs."""
    total = 0
    for bits, times in words:
        total += times * (number % (1 << bits))
        number >>= bits
    return total


class ExpressionReader:
    """Reads the expressions of a core."""

    core: Core

    def __init__(self) -> None:
        self.at = 0  # index of the current line
        self.tables: set[tuple[str, int]] = set()  # (shape, bit of the sum) of each table so far

    def fail(self, why: str) -> NoReturn:
        raise OutsideError(self.at + 1, why)

    def width(self, word: Word) -> int:
        if isinstance(word, Literal):
            return word.width
        if word == "in_valid" and self.core.clocked:
            return 1
        if word not in self.core.widths:
            self.fail(f"{word} is not declared above")
        return self.core.widths[word]

    def need(self, word: Word, width: int) -> None:
        if self.width(word) != width:
            self.fail(f"{word_text(word)} has {self.width(word)} bits where {width} are needed")

    def need_range(self, name: str) -> None:
        """Raises OutsideError for a name of one bit: Verilog selects bits only of names declared with a range."""
        if self.width(name) == 1:
            self.fail(f"{name} is a single bit, of which none is selected")

    def word(self, text: str) -> Word:
        width, mark, digits = text.partition("'")
        if not mark:
            return text
        value = int(digits[1:], 16 if digits[0] == "h" else 10)
        if int(width) < 1 or value >> int(width):
            self.fail(f"{text} does not fit its width")
        return Literal(value, int(width))

    def expression(self, text: str, width: int) -> Expression:
        for form, read in _FORMS:
            if match := form.fullmatch(text):
                return read(self, match, width)
        self.fail("no known expression")

    def slice(self, match: re.Match[str], width: int) -> Expression:
        high, low = int(match[1]), int(match[2])
        if not high < self.core.x_bits or high - low + 1 != width:
            self.fail(f"x[{high}:{low}] does not fit")
        return Slice(high, low)

    def inverted(self, match: re.Match[str], width: int) -> Expression:
        self.need(match[1], width)
        return Inverted(match[1])

    def chain(self, match: re.Match[str], width: int) -> Expression:
        text = match[0]
        operators = "".join(re.findall(r" ([&|]) ", text))
        if text.count("(") != text.count(")") or (operators and text.count("(") != len(operators) - 1):
            self.fail("parentheses that do not close")
        bits = []
        for no, name, position in re.findall(rf"(~?)({NAME})(?:\[({NUMBER})\])?", text):
            if position and not int(position) < self.width(name):
                self.fail(f"{name}[{position}] is not there")
            if position:
                self.need_range(name)
            else:
                self.need(name, 1)
            bits.append((bool(no), name, int(position) if position else -1))
        if width != 1:
            self.fail(f"one bit where {width} are needed")
        return Chain(tuple(bits), operators)

    def choose(self, match: re.Match[str], width: int) -> Expression:
        a, b = self.word(match[2]), self.word(match[3])
        self.need(match[1], 1)
        self.need(a, width)
        self.need(b, width)
        return Choose(match[1], a, b)

    def below(self, match: re.Match[str], width: int) -> Expression:
        a, b = self.word(match["a"]), self.word(match["b"])
        self.need(b, self.width(a))
        if width != 1:
            self.fail(f"one bit where {width} are needed")
        return Comparison(a, b, match[0].startswith("$signed"))

    def one_of(self, match: re.Match[str], width: int) -> Expression:
        names = set(re.findall(rf"\(({NAME}) == ", match[0]))
        members = [self.word(text) for text in re.findall(rf"== ({_LITERAL})\)", match[0])]
        if len(names) != 1 or width != 1:
            self.fail("no test of one word against others")
        (name,) = names
        for member in members:
            self.need(member, self.width(name))
        return Membership(name, tuple(member for member in members if isinstance(member, Literal)))

    def sum(self, match: re.Match[str], width: int) -> Expression:
        operands = []
        for part in match[0].split(" + "):
            parts = _OPERAND.fullmatch(part)
            assert parts is not None
            word = self.word(parts["zeros_of"] or parts["signed"] or part)
            more, sign = int(parts["zeros"] or parts["copies"] or 0), -1
            if parts["signed"]:
                sign = int(parts["sign"])
                if parts["bit_of"] != word or sign != self.width(word) - 1:
                    self.fail(f"{part} does not repeat the sign")
                self.need_range(parts["signed"])
            if (parts["zeros"] or parts["copies"]) and not more:
                self.fail("no bits in front of a word")
            self.need(word, width - more)
            operands.append(Addend(word, more, sign))
        return Addition(tuple(operands))

    def small_sum(self, match: re.Match[str], width: int) -> Expression:
        """Parses a sum whose bits are looked up in tables, all at the same index."""
        bits_read = re.findall(r"SUM([_x\dPLUS]+)_BIT(\d+)\[\{([^}]*)\}\]", match[0])
        shapes, positions = {words for words, _, _ in bits_read}, [int(position) for _, position, _ in bits_read]
        indices = {index for _, _, index in bits_read}
        if len(indices) > 1 or len(shapes) > 1 or positions != list(range(width - 1, -1, -1)):
            self.fail("no small sum")
        (shape,), (index,) = shapes, indices
        names, (words, constant) = index.split(", "), added_words(shape)
        if len(names) != len(words) or not all((shape, position) in self.tables for position in positions):
            self.fail("no table for this small sum")
        operands: list[Addend] = []
        for name, (bits, times) in zip(reversed(names), words, strict=True):
            word = self.word(name)
            self.need(word, bits)
            if bits > width:
                self.fail("a sum narrower than a word")
            operands += [_widened(word, bits, width)] * times
        if constant.bit_length() > width:
            self.fail("a sum narrower than its constant")
        return Addition((*operands, *([Addend(Literal(constant, width))] if constant else [])))

    def doubled(self, match: re.Match[str], width: int) -> Expression:
        self.need(match[1], width - 1)
        return Addition((Addend(match[1], 1), Addend(match[1], 1)))


ADDED = r"(?:_[1-9](?:x[1-9]\d{0,2})?){1,6}(?:_PLUS[1-9]\d{0,8})?"
_ADDED_BIT = rf"SUM{ADDED}_BIT{NUMBER}\[\{{{WORD}(?:, {WORD})*\}}\]"
_OPERAND = re.compile(
    rf"{WORD}|\{{(?P<zeros>{NUMBER})'d0, (?P<zeros_of>{NAME})\}}"
    rf"|\{{\{{(?P<copies>{NUMBER})\{{(?P<bit_of>{NAME})\[(?P<sign>{NUMBER})\]\}}\}}, (?P<signed>{NAME})\}}"
)
_PLAIN_OPERAND = re.sub(r"\?P<\w+>", "?:", _OPERAND.pattern)
_FORMS: tuple[tuple[re.Pattern[str], Callable[[ExpressionReader, re.Match[str], int], Expression]], ...] = (
    (re.compile(rf"x\[({NUMBER}):({NUMBER})\]"), ExpressionReader.slice),
    (re.compile(rf"~({NAME})"), ExpressionReader.inverted),
    (re.compile(rf"(?:{_BIT} [&|] \()*(?:{_BIT} [&|] )?{_BIT}\)*"), ExpressionReader.chain),
    (re.compile(rf"({NAME}) \? ({WORD}) : ({WORD})"), ExpressionReader.choose),
    (re.compile(rf"(?P<a>{WORD}) < (?P<b>{WORD})"), ExpressionReader.below),
    (re.compile(rf"\$signed\((?P<a>{WORD})\) < \$signed\((?P<b>{WORD})\)"), ExpressionReader.below),
    (re.compile(rf"\({NAME} == {_LITERAL}\)(?: \| \({NAME} == {_LITERAL}\))*"), ExpressionReader.one_of),
    (re.compile(rf"\{{{_ADDED_BIT}(?:, {_ADDED_BIT})+\}}"), ExpressionReader.small_sum),
    (re.compile(rf"\{{({NAME}), 1'd0\}}"), ExpressionReader.doubled),
    (re.compile(rf"(?:{_PLAIN_OPERAND})(?: \+ (?:{_PLAIN_OPERAND}))+"), ExpressionReader.sum),
)
