"""The Netlist: logic as a flat array of cells in topological order.

A net is the index of the cell that drives it. Nets 0 and 1 are the one-bit constants 0 and 1. A net is a word of
`width` bits, unsigned or in two's complement (`signed`). A cell reads only nets with smaller numbers, so there are no
loops. All paths from inputs to an output pass the same number of registers.

| cell     | reads            | value                                                      |
|----------|------------------|------------------------------------------------------------|
| Const    |                  | `value`                                                    |
| Input    |                  | the word of that input port                                |
| Less     | a                | 1 if a < threshold, by a's own signedness                  |
| InSet    | a                | 1 if a is one of `members`                                 |
| Not      | a                | 2^width - 1 - a: every bit inverted (unsigned a, its width) |
| And, Or  | a, b             | conjunction, disjunction          (one-bit nets)           |
| Mux      | select, a, b     | a if select is 1, else b          (a, b of one type)       |
| Add      | operands         | their sum; wide enough that it never wraps                 |
| Table    | words            | `constant` + factor * word of each        (unsigned words) |
| Shift    | a                | 2a: a shifted left by one bit             (unsigned a)     |
| Extend   | a                | a, in a wider word of `width` bits        (unsigned a)     |
| Slice    | a                | the `width` bits of a from bit `low` on      (unsigned a)  |
| Compare  | a, b             | 1 if a < b                        (a, b of one type)       |
| Register | a                | a, one clock earlier; the netlist's `clocking` says more   |
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar, assert_never, cast

from forestc.netlist.ports import PLAIN, Clocking, Port

Net: TypeAlias = int
FALSE: Net = 0
TRUE: Net = 1


class Const(NamedTuple):
    value: int
    width: int
    signed: bool


class Input(NamedTuple):
    port: Port
    width: int
    signed: bool


class Less(NamedTuple):
    a: Net
    threshold: int


class InSet(NamedTuple):
    a: Net
    members: tuple[int, ...]


class Not(NamedTuple):
    a: Net
    width: int = 1


class And(NamedTuple):
    a: Net
    b: Net


class Or(NamedTuple):
    a: Net
    b: Net


class Mux(NamedTuple):
    select: Net
    a: Net
    b: Net


class Add(NamedTuple):
    operands: tuple[Net, ...]
    width: int
    signed: bool


class Table(NamedTuple):
    """A weighted sum of words plus a constant, by look-up: the joined bits of all words index a table for each bit of
    the sum."""

    words: tuple[tuple[Net, int], ...]  # (net, factor) pairs; the first net has the lowest index bits
    constant: int
    width: int


class Shift(NamedTuple):
    a: Net


class Extend(NamedTuple):
    a: Net
    width: int


class Slice(NamedTuple):
    a: Net
    low: int
    width: int


class Compare(NamedTuple):
    a: Net
    b: Net


class Register(NamedTuple):
    a: Net


Cell: TypeAlias = (
    Const | Input | Less | InSet | Not | And | Or | Mux | Add | Table | Shift | Extend | Slice | Compare | Register
)
CellT = TypeVar("CellT", bound=Cell)
Gate: TypeAlias = And | Or
SumCell: TypeAlias = Add | Table | Shift | Extend
LinearCell: TypeAlias = SumCell | Const | Register


class WordType(NamedTuple):
    width: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1


BIT = WordType(1, False)


class Origin(NamedTuple):
    """The tree and the node of the forest from which a cell comes; -1 if it comes from none."""

    tree: int = -1
    node: int = -1


@dataclass(frozen=True)
class Netlist:
    """A flat array of cells, with a type and an origin for each net, and output ports."""

    name: str
    cells: tuple[Cell, ...]
    types: tuple[WordType, ...]
    origins: tuple[Origin, ...]
    outputs: tuple[tuple[Port, Net], ...]  # output ports with their nets, in port order
    latency: int  # registers on every path from an input to an output
    title: str = ""  # describes the model in generated files
    clocking: Clocking = PLAIN  # of all registers

    def __repr__(self) -> str:
        ports = f"{len(self.inputs):,} inputs, {len(self.outputs):,} outputs"
        return f"<Netlist {self.name!r:.80}: {len(self.cells):,} cells, {ports}, {self.latency} cycles>"

    @property
    def inputs(self) -> tuple[tuple[Net, Input], ...]:
        return tuple((net, cell) for net, cell in enumerate(self.cells) if isinstance(cell, Input))


# Counts the leading fields of a cell that are nets; Add and Table hold tuples of nets, and a Slice one net.
NETS: Mapping[type[Any], int] = {
    Const: 0, Input: 0, Less: 1, InSet: 1, Not: 1, And: 2, Or: 2, Mux: 3, Shift: 1, Extend: 1, Compare: 2, Register: 1,
}  # fmt: skip
# Maps And, Or and Compare to Python operators, for integers, arrays or signals.
OPERATORS: Mapping[type[Any], Callable[[Any, Any], Any]] = {
    And: operator.and_, Or: operator.or_, Compare: operator.lt,
}  # fmt: skip


def reads(cell: Cell) -> tuple[Net, ...]:
    if isinstance(cell, Add):
        return cell.operands
    if isinstance(cell, Table):
        return tuple([a for a, _ in cell.words])
    return (cell.a,) if isinstance(cell, Slice) else cast("tuple[Net, ...]", cell[: NETS[type(cell)]])


def rename(cell: CellT, renamed: Sequence[Net] | Mapping[Net, Net]) -> CellT:
    """Returns the cell with the nets that it reads renumbered. renamed: the new number of each net."""
    if isinstance(cell, Add):
        return cell._replace(operands=tuple([renamed[a] for a in cell.operands]))
    if isinstance(cell, Table):
        return cell._replace(words=tuple([(renamed[a], factor) for a, factor in cell.words]))
    if isinstance(cell, Slice):
        return cell._replace(a=renamed[cell.a])
    kind: Any = type(cell)
    count, fields = NETS[kind], cast("tuple[Any, ...]", cell)
    return cast("CellT", kind(*[renamed[a] for a in fields[:count]], *fields[count:]))


class Linear(NamedTuple):
    """A weighted sum: each net times its factor, plus a constant."""

    terms: tuple[tuple[Net, int], ...]
    constant: int = 0


def linear(cell: LinearCell) -> Linear:
    """Returns a cell's value as a weighted sum of the nets it reads. A register's value is the net it reads."""
    match cell:
        case Const(value):
            return Linear((), value)
        case Add(operands):
            return Linear(tuple((a, 1) for a in operands))
        case Table(words, constant):
            return Linear(words, constant)
        case Shift(a):
            return Linear(((a, 2),))
        case Extend(a) | Register(a):
            return Linear(((a, 1),))
        case _:
            assert_never(cell)


def behind_registers(netlist: Netlist, net: Net) -> Cell:
    """Returns the cell that computes a net's value, skipping registers."""
    cell = netlist.cells[net]
    while isinstance(cell, Register):
        cell = netlist.cells[cell.a]
    return cell


def compares_sum(netlist: Netlist, cell: Less) -> bool:
    """Returns True if the compared word comes from neither an input nor a table. Backends write such a comparison as a
    subtraction, so synthesis makes a carry chain."""
    return not isinstance(behind_registers(netlist, cell.a), Input | Table)


def result_type(cell: Cell, types: list[WordType] | tuple[WordType, ...]) -> WordType:
    """Returns the type of the net that a cell drives. types: the types of all earlier nets."""
    if isinstance(cell, Gate):
        return BIT
    match cell:
        case Mux(_, a, _) | Register(a):
            return types[a]
        case Less() | InSet() | Compare():
            return BIT
        case Const(_, width, signed) | Input(_, width, signed) | Add(_, width, signed):
            return WordType(width, signed)
        case Table(_, _, width) | Not(_, width) | Extend(_, width) | Slice(_, _, width):
            return WordType(width, False)
        case Shift(a):
            return WordType(types[a].width + 1, False)
        case _:
            assert_never(cell)


def evaluate(cell: Cell, values: tuple[int, ...]) -> int:
    """Returns the value of a combinational cell, and so defines the cell's meaning. values: the values of the nets in
    `reads`, in that order."""
    if isinstance(cell, Gate | Compare):
        return int(OPERATORS[type(cell)](*values))
    if isinstance(cell, SumCell):
        terms, constant = linear(cell)
        return constant + sum(factor * value for (_, factor), value in zip(terms, values, strict=True))
    match cell:
        case Const(value):
            return value
        case Less(_, threshold):
            return int(values[0] < threshold)
        case InSet(_, members):
            return int(values[0] in members)
        case Not(_, width):
            return (1 << width) - 1 - values[0]
        case Slice(_, low, width):
            return values[0] >> low & ((1 << width) - 1)
        case Mux():
            return values[1] if values[0] else values[2]
        case Input() | Register():
            raise ValueError(f"{type(cell).__name__} has no value of its own")
        case _:
            assert_never(cell)
