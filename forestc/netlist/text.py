"""Prints and parses the netlist's text form, one cell per line (docs/reference/netlist-text.md).

    netlist "bc" "1 trees, 3 nodes"
    %2 = input "x0" : u8  word 0 "age" "u8: floor(value), saturated to 0..255; 17.0 becomes 17"
    %3 = less %2, 90 : u1  @0.7
    %4 = mux %3, %0, %1 : u1  @0.7
    output "label" = %4  label 0

Nets 0 and 1 are implied. `u8` and `s8` are word types; `@tree.node` is the origin. The first line may end with
`  reset sync` or `  reset async`, then `  enable`.
"""

from __future__ import annotations

import json
import re
from typing import cast, get_args

from forestc.errors import ModelError
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Netlist, Origin, WordType, result_type
from forestc.netlist.ports import Clocking, Port, PortKind, Reset
from forestc.netlist.verify import latencies, verify


def print_netlist(netlist: Netlist) -> str:
    title, clocking = f" {json.dumps(netlist.title)}" * bool(netlist.title), netlist.clocking
    reset = f"  reset {clocking.reset}" * (clocking.reset != "none")
    lines = [f"netlist {json.dumps(netlist.name)}{title}{reset}{'  enable' * clocking.enable}"]
    for net, cell in enumerate(netlist.cells):
        if net < 2:
            continue
        word, origin = netlist.types[net], netlist.origins[net]
        at = f"  @{origin.tree}.{origin.node}" if origin != Origin() else ""
        port = _port_text(cell.port) if isinstance(cell, ir.Input) else ""
        lines.append(f"%{net} = {_cell_text(cell)} : {'s' if word.signed else 'u'}{word.width}{at}{port}")
    lines += [f"output {json.dumps(port.name)} = %{net}{_port_text(port)}" for port, net in netlist.outputs]
    return "\n".join(lines) + "\n"


def _port_text(port: Port) -> str:
    if port == Port(port.name):
        return ""
    texts = f" {json.dumps(port.title)} {json.dumps(port.meaning)}" if port.title or port.meaning else ""
    return f"  {port.kind} {port.index}{texts}"


def _cell_text(cell: Cell) -> str:
    match cell:
        case ir.Const(value):
            return f"const {value}"
        case ir.Input(port):
            return f"input {json.dumps(port.name)}"
        case ir.Less(a, threshold):
            return f"less %{a}, {threshold}"
        case ir.InSet(a, members):
            return f"in_set %{a}, {', '.join(map(str, members))}"
        case ir.Slice(a, low):
            return f"slice %{a}, {low}"
        case ir.Table(words, constant):
            return f"table {constant}, {', '.join(f'{factor} %{a}' for a, factor in words)}"
        case _:
            return f"{operation(type(cell))} {', '.join(f'%{a}' for a in ir.reads(cell))}"


def operation(kind: type[Cell]) -> str:
    """Returns the name of a type of cell in the text form, such as in_set for InSet."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


_OF_NETS = {operation(kind): kind for kind in (*get_args(ir.Gate), ir.Mux, ir.Shift, ir.Compare, ir.Register)}
_TEXT = r'"(?:[^"\\]|\\.)*"'
_PORT = rf"(?:  (?P<kind>{'|'.join(get_args(PortKind))}) (?P<index>\d+)(?: (?P<title>{_TEXT}) (?P<meaning>{_TEXT}))?)?"
_HEAD = re.compile(
    rf"netlist (?P<name>{_TEXT})(?: (?P<title>{_TEXT}))?(?:  reset (?P<reset>sync|async))?(?P<enable>  enable)?"
)
_LINE = re.compile(
    rf"%(?P<net>\d+) = (?P<op>\w+) (?P<args>{_TEXT}|[-%\d, ]+) : (?P<sign>[us])(?P<width>\d+)"
    rf"(?:  @(?P<tree>-?\d+)\.(?P<node>-?\d+))?{_PORT}"
)
_OUTPUT = re.compile(rf"output (?P<name>{_TEXT}) = %(?P<net>\d+){_PORT}")


def parse_netlist(text: str) -> Netlist:
    """Parses a netlist's text form. Raises ModelError if the text cannot be read, InternalError if the netlist breaks a
    rule."""
    lines = text.splitlines()
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if not head:
        raise ModelError("not a netlist", where="line 1", do='begin with: netlist "name"')
    cells: list[Cell] = [ir.Const(0, 1, False), ir.Const(1, 1, False)]
    types = [WordType(1, False), WordType(1, False)]
    origins = [Origin(), Origin()]
    outputs: list[tuple[Port, int]] = []
    for number, line in enumerate(lines[1:], 2):
        if match := _OUTPUT.fullmatch(line):
            outputs.append((_parse_port(match["name"], match), int(match["net"])))
            continue
        match = _LINE.fullmatch(line)
        if not match or int(match["net"]) != len(cells):
            raise ModelError(
                f"can't read {line[:60]!r}",
                where=f"line {number}",
                do="correct the line; docs/reference/netlist-text.md describes it",
            )
        word = WordType(int(match["width"]), match["sign"] == "s")
        cell = _parse_cell(match, word)
        if cell is None:
            raise ModelError(
                f"unknown cell {line[:60]!r}",
                where=f"line {number}",
                do="correct the line; docs/reference/netlist-text.md describes it",
            )
        cells.append(cell)
        types.append(word)
        origins.append(Origin(int(match["tree"]), int(match["node"])) if match["tree"] else Origin())
        if max((a for a in _nets(match["args"])), default=0) >= len(cells) - 1:
            raise ModelError(
                f"reads a net that is not above it: {line[:60]!r}",
                where=f"line {number}",
                do="correct the line; docs/reference/netlist-text.md describes it",
            )
        if result_type(cell, types) != word:
            raise ModelError(
                f"wrong type in {line[:60]!r}",
                where=f"line {number}",
                do="correct the line; docs/reference/netlist-text.md describes it",
            )
    delays = latencies(cells)
    bad = [net for _, net in outputs if net >= len(cells)]
    if bad:
        raise ModelError(
            f"output of a net that does not exist: %{bad[0]}", where="the outputs", do="correct the number of the net"
        )
    latency = max([0, *(delays[net] for _, net in outputs)])
    name, title = _string(head["name"]), _string(head["title"])
    clocking = Clocking(cast("Reset", head["reset"] or "none"), bool(head["enable"]))
    netlist = Netlist(name, tuple(cells), tuple(types), tuple(origins), tuple(outputs), latency, title, clocking)
    verify(netlist)
    return netlist


def _nets(args: str) -> list[int]:
    return [] if args.startswith('"') else [int(net) for net in re.findall(r"%(\d+)", args)]


def _string(text: str | None) -> str:
    try:
        return "" if text is None else str(json.loads(text))
    except ValueError:
        raise ModelError(
            f"a text is not JSON: {text!r:.60}", where="the netlist", do="write it in double quotes, as in JSON"
        ) from None


def _parse_port(name: str, match: re.Match[str]) -> Port:
    texts = _string(match["title"]), _string(match["meaning"])
    return Port(_string(name), cast("PortKind", match["kind"] or "word"), int(match["index"] or 0), *texts)


def _parse_cell(match: re.Match[str], word: WordType) -> Cell | None:
    op, args = match["op"], match["args"]
    if op == "input":
        return ir.Input(_parse_port(args, match), word.width, word.signed) if args.startswith('"') else None
    nets = _nets(args)
    plain = [int(value) for value in re.findall(r"(?<![%\d])-?\d+", args)]
    match op, nets, plain:
        case "const", [], [value]:
            return ir.Const(value, word.width, word.signed)
        case "less", [a], [threshold]:
            return ir.Less(a, threshold)
        case "in_set", [a], [_, *_]:
            return ir.InSet(a, tuple(plain))
        case "not", [a], []:
            return ir.Not(a, word.width)
        case "extend", [a], []:
            return ir.Extend(a, word.width)
        case "slice", [a], [low]:
            return ir.Slice(a, low, word.width)
        case "add", [_, _, *_], []:
            return ir.Add(tuple(nets), word.width, word.signed)
        case "table", [_, *_], [constant, *factors] if len(factors) == len(nets):
            return ir.Table(tuple(zip(nets, factors, strict=True)), constant, word.width)
        case _:
            kind = _OF_NETS.get(op)
            return None if kind is None or plain or len(nets) != ir.NETS[kind] else kind(*nets)
