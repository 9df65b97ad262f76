"""The netlist's text form: one cell a line, printed and parsed back to the same netlist.

    netlist "bc"
    %2 = input "x0" : u8
    %3 = less %2, 90 : u1  @0.7
    %4 = mux %3, %0, %1 : u1  @0.7
    output "label" = %4

Nets 0 and 1 are implied. `u8` and `s8` are word types; `@tree.node` is the origin.
"""

from __future__ import annotations

import json
import re
from typing import assert_never

from forestc.errors import ModelError
from forestc.netlist.ir import (
    Add,
    And,
    Cell,
    Compare,
    Const,
    Input,
    InSet,
    Less,
    Mux,
    Netlist,
    Not,
    Or,
    Origin,
    Register,
    WordType,
    result_type,
)
from forestc.netlist.verify import latencies, verify


def print_netlist(netlist: Netlist) -> str:
    """The text form, ending in a newline."""
    lines = [f"netlist {json.dumps(netlist.name)}"]
    for net, cell in enumerate(netlist.cells):
        if net < 2:
            continue
        word, origin = netlist.types[net], netlist.origins[net]
        at = f"  @{origin.tree}.{origin.node}" if origin != Origin() else ""
        lines.append(f"%{net} = {_cell_text(cell)} : {'s' if word.signed else 'u'}{word.width}{at}")
    lines += [f"output {json.dumps(name)} = %{net}" for name, net in netlist.outputs]
    return "\n".join(lines) + "\n"


def _cell_text(cell: Cell) -> str:
    match cell:
        case Const(value):
            return f"const {value}"
        case Input(name):
            return f"input {json.dumps(name)}"
        case Less(a, threshold):
            return f"less %{a}, {threshold}"
        case InSet(a, members):
            return f"in_set %{a}, {', '.join(map(str, members))}"
        case Not(a):
            return f"not %{a}"
        case And(a, b):
            return f"and %{a}, %{b}"
        case Or(a, b):
            return f"or %{a}, %{b}"
        case Mux(select, a, b):
            return f"mux %{select}, %{a}, %{b}"
        case Add(operands):
            return f"add {', '.join(f'%{a}' for a in operands)}"
        case Compare(a, b):
            return f"compare %{a}, %{b}"
        case Register(a):
            return f"register %{a}"
        case _:
            assert_never(cell)


_LINE = re.compile(
    r'%(?P<net>\d+) = (?P<op>\w+) (?P<args>"(?:[^"\\]|\\.)*"|[-%\d, ]+) : (?P<sign>[us])(?P<width>\d+)'
    r"(?:  @(?P<tree>-?\d+)\.(?P<node>-?\d+))?"
)
_OUTPUT = re.compile(r'output (?P<name>"(?:[^"\\]|\\.)*") = %(?P<net>\d+)')


def parse_netlist(text: str) -> Netlist:
    """Raises ModelError naming the line for text that `print_netlist` would not write."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("netlist "):
        raise ModelError("not a netlist", where="line 1", do='the first line reads: netlist "name"')
    name = str(json.loads(lines[0][len("netlist ") :]))
    cells: list[Cell] = [Const(0, 1, False), Const(1, 1, False)]
    types = [WordType(1, False), WordType(1, False)]
    origins = [Origin(), Origin()]
    outputs: list[tuple[str, int]] = []
    for number, line in enumerate(lines[1:], 2):
        if match := _OUTPUT.fullmatch(line):
            outputs.append((str(json.loads(match["name"])), int(match["net"])))
            continue
        match = _LINE.fullmatch(line)
        if not match or int(match["net"]) != len(cells):
            raise ModelError(f"can't read {line[:60]!r}", where=f"line {number}")
        word = WordType(int(match["width"]), match["sign"] == "s")
        cell = _parse_cell(match["op"], match["args"], word)
        if cell is None:
            raise ModelError(f"unknown cell {line[:60]!r}", where=f"line {number}")
        cells.append(cell)
        types.append(word)
        origins.append(Origin(int(match["tree"]), int(match["node"])) if match["tree"] else Origin())
        if max((a for a in _nets(match["args"])), default=0) >= len(cells) - 1:
            raise ModelError(f"reads a net that is not above it: {line[:60]!r}", where=f"line {number}")
        if result_type(cell, types) != word:
            raise ModelError(f"wrong type in {line[:60]!r}", where=f"line {number}")
    delays = latencies(cells)
    bad = [net for _, net in outputs if net >= len(cells)]
    if bad:
        raise ModelError(f"output of a net that is not there: %{bad[0]}")
    latency = max([0, *(delays[net] for _, net in outputs)])
    netlist = Netlist(name, tuple(cells), tuple(types), tuple(origins), tuple(outputs), latency)
    verify(netlist)
    return netlist


def _nets(args: str) -> list[int]:
    return [] if args.startswith('"') else [int(net) for net in re.findall(r"%(\d+)", args)]


def _parse_cell(op: str, args: str, word: WordType) -> Cell | None:
    if op == "input":
        return Input(str(json.loads(args)), word.width, word.signed)
    nets = _nets(args)
    plain = [int(value) for value in re.findall(r"(?<![%\d])-?\d+", args)]
    match op, nets, plain:
        case "const", [], [value]:
            return Const(value, word.width, word.signed)
        case "less", [a], [threshold]:
            return Less(a, threshold)
        case "in_set", [a], [_, *_]:
            return InSet(a, tuple(plain))
        case "not", [a], []:
            return Not(a, word.width)
        case "and", [a, b], []:
            return And(a, b)
        case "or", [a, b], []:
            return Or(a, b)
        case "mux", [select, a, b], []:
            return Mux(select, a, b)
        case "add", [_, _, *_], []:
            return Add(tuple(nets), word.width, word.signed)
        case "compare", [a, b], []:
            return Compare(a, b)
        case "register", [a], []:
            return Register(a)
        case _:
            return None
