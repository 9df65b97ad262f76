"""A strict reader of an engine's Verilog: extracts the module of the step.

It accepts only comments, attributes and keywords that forestc writes. The module may hold only ports, constants, wires
and assignments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from forestc.backends.names import RESERVED
from forestc.checks.proof.core import OutsideError, accepted_lines
from forestc.engine.capacity import Capacity
from forestc.engine.verilog import emit

_COMMENT = re.compile(r"//.*")
_ATTRIBUTE = re.compile(r"\(\*(?!\)).*?\*\)")  # matches an attribute (* ... *), but not the event list @(*)
_BEGIN, _END = "`default_nettype none", "`default_nettype wire"
_NUMBER = r"(?:0|[1-9]\d{0,5})"
_LITERAL = re.compile(r"(\d{1,4})'([bdh])([0-9a-fA-F]{1,40})")
_BASES = {"b": 2, "d": 10, "h": 16}
_WORD = re.compile(r"[A-Za-z_]\w*")
_OTHERS = re.compile(rf"\s+|{_NUMBER}(?![\w'])|/(?!\*)|[-!%&()*+,:;<=>?@\[\]^{{|}}~]")
_PORT = re.compile(r"([(,]\s*)\.(?=\w+\s*\()")  # matches the dot before a port's name in an instance
_RANGE = rf"\[({_NUMBER}):0\] "
_DECLARED_PORT = re.compile(rf"    (?:input  wire|output wire(?: signed)?) (?:{_RANGE})?(\w+),?")
_CONSTANTS = re.compile(rf"    localparam {_RANGE}(\w+ = {_LITERAL.pattern}(?:, \w+ = {_LITERAL.pattern})*);")
_WIRE = re.compile(rf"    wire (?:{_RANGE})?(\w+) = ([^;]+);")
_ASSIGN = re.compile(r"    assign (next|value) = ([^;]+);")
_TOKENS = re.compile(
    rf"\s+|(?P<literal>{_LITERAL.pattern})"
    rf"|(?P<name>[A-Za-z_]\w*)(?:\[(?:(?P<high>{_NUMBER})(?::(?P<low>{_NUMBER}))?"
    rf"|(?P<by>[A-Za-z_]\w*)\[(?P<by_high>{_NUMBER}):(?P<by_low>{_NUMBER})\])\])?"
    r"|&&|\|\||[=!<>]=|[-?:&|!~<>+^(){},]"
)


def read_step(data: bytes, capacity: Capacity) -> str:
    """Checks an engine's Verilog and returns the module of its step alone. Raises OutsideError if a line is not
    accepted."""
    lines = accepted_lines(data)
    own = emit(capacity)
    code = _code(lines, own)
    name = f"{capacity.name}_step"
    starts = [index for index, line in enumerate(code) if line == f"module {name} ("]
    if len(starts) != 1:
        raise OutsideError(len(lines), f"one module {name} is expected")
    end = next((index for index in range(starts[0], len(code)) if code[index] == "endmodule"), len(code) - 1)
    _Step(starts[0]).read(code[starts[0] + 1 : end])
    return "\n".join([_BEGIN, *code[starts[0] : end], "endmodule", ""])


def _code(lines: list[str], own: str) -> list[str]:
    """Strips comments and attributes from lines. Raises OutsideError for comments and attributes that forestc's text
    `own` lacks, and for misplaced lines."""
    comments = {_form(comment) for comment in _COMMENT.findall(own)}
    bare = _COMMENT.sub("", own)
    attributes, words = set(_ATTRIBUTE.findall(bare)), set(_WORD.findall(bare))
    code, modules, directives = list[str](), set[str](), list[str]()
    opened = ""  # "(" or "," at the end of the line before, which a port may follow
    for number, line in enumerate(lines, 1):
        if (comment := _COMMENT.search(line)) and _form(comment[0]) not in comments:
            raise OutsideError(number, f"a comment that forestc does not write: {comment[0]}")
        line = _COMMENT.sub("", line).rstrip()
        for attribute in _ATTRIBUTE.findall(line):
            if attribute not in attributes:
                raise OutsideError(number, f"an attribute that forestc does not write: {attribute}")
        line = _ATTRIBUTE.sub("", line)
        code.append(line)
        if line.startswith("`") or (line and not directives):
            directives.append(line)
            if directives not in ([_BEGIN], [_BEGIN, _END]):
                raise OutsideError(number, f"{line} is not expected")
            continue
        if line and len(directives) > 1:
            raise OutsideError(number, "the file should end here")
        if module := re.search(r"\bmodule\s+(\w+)", line):
            if module[1] in modules:
                raise OutsideError(number, f"a second module {module[1]}")
            modules.add(module[1])
        _tokens(number, opened + line, words)
        if line.strip():
            opened = line.strip()[-1] if line.strip()[-1] in "(," else ""
    if directives != [_BEGIN, _END]:
        raise OutsideError(len(lines), f"{_END} is expected")
    return code


def _form(comment: str) -> str:
    return re.sub(r"\d+", "0", comment)


def _tokens(number: int, line: str, words: set[str]) -> None:
    """Raises OutsideError for unexpected characters, and for keywords outside of `words`."""
    line = _PORT.sub(r"\1", line)
    at = 0
    while at < len(line):
        if literal := _LITERAL.match(line, at):
            _literal(number, *literal.groups())
        match = literal or _WORD.match(line, at) or _OTHERS.match(line, at)
        if match is None:
            raise OutsideError(number, f"{line[at:][:20]!r} is not expected")
        if match.re is _WORD and match[0] not in words and match[0].lower() in RESERVED:
            raise OutsideError(number, f"the keyword {match[0]}")
        at = match.end()


def _literal(number: int, width: str, base: str, digits: str) -> int:
    try:
        value = int(digits, _BASES[base])
    except ValueError:
        raise OutsideError(number, f"{width}'{base}{digits} is no number") from None
    if int(width) == 0 or value >> int(width):
        raise OutsideError(number, f"{width}'{base}{digits} does not fit its width")
    return int(width)


@dataclass
class _Step:
    """Checks the lines of the step's module. at: index of the current line in the file."""

    at: int
    widths: dict[str, int] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)

    def fail(self, why: str) -> NoReturn:
        raise OutsideError(self.at + 1, why)

    def read(self, lines: list[str]) -> None:
        ports = True
        for line in lines:
            self.at += 1
            if ports:
                if match := _DECLARED_PORT.fullmatch(line):
                    self.declare(match[2], match[1])
                elif line == ");":
                    ports = False
                else:
                    self.fail("a port is expected")
            elif match := _CONSTANTS.fullmatch(line):
                for name in re.findall(r"(\w+) = ", match[2]):
                    self.declare(name, match[1])
            elif match := _WIRE.fullmatch(line):
                self.expression(match[3])
                self.declare(match[2], match[1])
            elif match := _ASSIGN.fullmatch(line):
                self.expression(match[2])
                if match[1] in self.assigned:
                    self.fail(f"a second {match[1]}")
                self.assigned.add(match[1])
            else:
                self.fail("no known line of a step")
        if ports or self.assigned != {"next", "value"}:
            self.fail("a result is missing")

    def declare(self, name: str, high: str | None) -> None:
        if name in self.widths:
            self.fail(f"a second {name}")
        self.widths[name] = 1 if high is None else int(high) + 1

    def expression(self, text: str) -> None:
        at = 0
        while at < len(text):
            match = _TOKENS.match(text, at)
            if match is None:
                self.fail(f"{text[at:][:20]!r} is not expected")
            at = match.end()
            name = match["name"]
            if name is None:
                continue
            if name in ("next", "value"):
                self.fail(f"{name} is a result")
            width = self.width(name)
            if match["high"] is not None:
                self.inside(name, match["high"], match["low"] or match["high"])
            if match["by"] is not None:
                self.inside(match["by"], match["by_high"], match["by_low"])
                if 1 << (int(match["by_high"]) - int(match["by_low"]) + 1) != width:
                    self.fail(f"{match[0]} may choose a bit that is not there")

    def width(self, name: str) -> int:
        if name not in self.widths:
            self.fail(f"{name} is not declared above")
        return self.widths[name]

    def inside(self, name: str, high: str, low: str) -> None:
        if not int(low) <= int(high) < self.width(name) or self.width(name) == 1:
            self.fail(f"{name}[{high}:{low}] is not there")
