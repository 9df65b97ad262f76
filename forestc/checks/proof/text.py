"""A strict reader of a core's Verilog: accepts only the forms that forestc writes.

Tools differ over macros, races, loops and implicit widths, so it accepts none of these. yosys gets the text that
`Core.text` prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forestc.checks.proof.core import Core, accepted_lines
from forestc.checks.proof.expressions import (
    ADDED,
    MOST_ADDED,
    NAME,
    NUMBER,
    WIRE,
    WORD,
    ExpressionReader,
    added_words,
    sum_of,
)

MOST_BITS = 64  # bits that a word has at most
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
_NOTE = rf"  // {NAME} < -?\d+(?:, tree \d+, node \d+)?"


def read_core(data: bytes) -> Core:
    """Reads a core from a file's bytes. Raises OutsideError if a line is not accepted."""
    return _CoreReader(accepted_lines(data)).read()


class _CoreReader(ExpressionReader):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def next(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def take(self, *expected: str) -> None:
        for line in expected:
            if self.next() != line:
                self.fail(f"{line.strip() or 'an empty line'!r} is expected")
            self.at += 1

    def matching(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        while match := pattern.fullmatch(self.next()):
            yield match
            self.at += 1

    def read(self) -> Core:
        while any(form.fullmatch(self.next()) for form in _COMMENTS):
            self.at += 1
        self.take("`default_nettype none")
        if not (match := re.fullmatch(r"module (\w+) \(", self.next())):
            self.fail("the module is expected")
        self.at += 1
        clocked = self.next() == "    input  wire clk,"
        if clocked:
            self.take("    input  wire clk,", "    input  wire in_valid,", "    output wire out_valid,")
        self.core = Core(match[1], clocked, self.port("input  wire", "x", ","), self.port("output wire", "y", ""))
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
        match = re.fullmatch(rf"    {kind} \[({NUMBER}):0\] {name}{end}", self.next())
        if not match:
            self.fail(f"the port {name} is expected")
        self.at += 1
        return int(match[1]) + 1

    def declarations(self) -> None:
        for match in self.matching(_TABLE):
            position, (words, constant) = int(match["place"]), added_words(match["words"])
            bits = sum(width for width, _ in words)
            if not 0 < bits <= MOST_ADDED or int(match["high"]) + 1 != 1 << bits or int(match["bits"]) != 1 << bits:
                self.fail("no table of a small sum")
            value = int(match["value"], 16)
            right = (
                value >> number & 1 == constant + sum_of(words, number) >> position & 1 for number in range(1 << bits)
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
                if name != "x" and not 0 <= int(low or 0) <= int(high or 0) < self.width(name):
                    self.fail(f"{part} is not there")
                if span:
                    self.need_range(name)
            self.at += 1
        if self.next():
            self.fail("no known declaration")

    def declare(self, name: str, high: str | None) -> None:
        if name in self.core.widths:
            self.fail(f"a second {name}")
        if high == "0":
            self.fail("a single bit has no range")
        self.core.widths[name] = 1 if high is None else int(high) + 1
        if self.core.widths[name] > MOST_BITS:
            self.fail(f"more than {MOST_BITS} bits")

    def registers(self) -> None:
        self.take("", "    initial begin")
        for name in self.core.registers:
            self.take(f"        {name} = {self.core.widths[name]}'d0;")
        self.take("    end", "    always @(posedge clk) begin")
        for name in self.core.registers:
            match = _UPDATE.fullmatch(self.next())
            if not match or match["name"] != name:
                self.fail(f"the next word of {name} is expected")
            self.need(match["source"], self.core.widths[name])
            self.core.registers[name] = match["source"]
            self.at += 1
        self.take("    end")

    def results(self) -> None:
        free = 0
        for match in self.matching(_RESULT):
            high, low = int(match["high"]), int(match["low"])
            if low != free or not low <= high < self.core.y_bits:
                self.fail(f"y[{high}:{low}] does not follow the result before it")
            word = self.word(match["word"])
            self.need(word, high - low + 1)
            self.core.results[high, low] = word
            free = high + 1
        if free != self.core.y_bits:
            self.fail(f"y[{free}] has no result")
        if self.core.clocked:
            valid = re.fullmatch(rf"    assign out_valid = ({NAME});", self.next())
            if not valid:
                self.fail("out_valid is expected")
            self.need(valid[1], 1)
            self.core.out_valid = valid[1]
            self.at += 1


_TABLE = re.compile(
    rf"    localparam \[(?P<high>{NUMBER}):0\] SUM(?P<words>{ADDED})_BIT(?P<place>{NUMBER})"
    rf" = (?P<bits>{NUMBER})'h(?P<value>[0-9a-f]{{1,16}});"
)
_REGISTER = re.compile(rf"    reg (?:\[(?P<high>{NUMBER}):0\] )?(?P<name>r\d+);")
_DECLARED = re.compile(rf"    wire (?:\[(?P<high>{NUMBER}):0\] )?(?P<name>{WIRE}) = (?P<what>[^;/]+);(?:{_NOTE})?")
_PART = rf"{NAME}(?:\[{NUMBER}:{NUMBER}\])?"
_UNUSED = re.compile(rf"    wire unused = &\{{1'b0, (?P<names>x|{_PART}(?:, {_PART})*)\}};")
_UPDATE = re.compile(rf"        (?P<name>r\d+) <= (?P<source>{NAME}|in_valid);")
_RESULT = re.compile(rf"    assign y\[(?P<high>{NUMBER}):(?P<low>{NUMBER})\] = (?P<word>{WORD});")
