"""Evaluates netlists cell by cell, on columns of words. It compiles nothing, and so suits few vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import InternalError, RowsError
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, SumCell, linear, reads

Column: TypeAlias = NDArray[Any]  # int64, or int16 for small constants, or bool for nets of one bit


def evaluate(netlist: Netlist, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the output words (vectors, outputs). Registers are treated as wires.
    words: (vectors, inputs), int64, in port order.

    Raises RowsError for an input word out of range.
    """
    if words.shape[1:] != (len(netlist.inputs),):
        raise RowsError(f"they have shape {words.shape}", where="words", do=f"give (vectors, {len(netlist.inputs)})")
    columns = {net: words[:, index] for index, (net, _) in enumerate(netlist.inputs)}
    last = {read: net for net, cell in enumerate(netlist.cells) for read in reads(cell)}
    output_nets = {net for _, net in netlist.outputs}
    held: dict[Net, Column] = {}
    for net, cell in enumerate(netlist.cells):
        column = columns[net] if isinstance(cell, ir.Input) else value_of(cell, held, len(words))
        if isinstance(cell, ir.Input | SumCell | ir.Const):
            _check(netlist, net, column)
        held[net] = column
        for read in set(reads(cell)):
            if last[read] == net and read not in output_nets:
                del held[read]
    outputs = [held[net] for _, net in netlist.outputs]
    return np.stack(outputs, axis=1).astype(np.int64) if outputs else np.zeros((len(words), 0), np.int64)


def evaluate_from(netlist: Netlist, net: Net, given: Mapping[Net, Column], vectors: int) -> Column:
    """Returns the words of one net (vectors,), with registers as wires.
    given: known words, by net.

    Raises KeyError if the words of an input port are missing.
    """
    held: dict[Net, Column] = dict(given)
    stack = [net]
    while stack:
        at = stack[-1]
        cell = netlist.cells[at]
        missing = [read for read in reads(cell) if read not in held] if at not in held else []
        if missing:
            stack += missing
            continue
        if at not in held:
            if isinstance(cell, ir.Input):
                raise KeyError(cell.port.name)
            held[at] = value_of(cell, held, vectors)
            if isinstance(cell, SumCell | ir.Const):
                _check(netlist, at, held[at])
        stack.pop()
    return held[net].astype(np.int64)


def value_of(cell: Cell, held: dict[Net, Column], vectors: int) -> Column:
    """Returns the words that a cell computes. held: words of the nets that it reads."""
    if isinstance(cell, SumCell):
        terms, constant = linear(cell)
        total = np.full(vectors, constant, np.int64)
        for a, factor in terms:
            total += np.int64(factor) * held[a]
        return total
    match cell:
        case ir.Const(value):
            return np.full(vectors, value, np.int16 if -1 << 15 <= value < 1 << 15 else np.int64)
        case ir.Less(a, threshold):
            return held[a] < threshold
        case ir.InSet(a, members):
            return np.isin(held[a], list(members))
        case ir.Not(a, width):
            return held[a] == 0 if width == 1 else np.int64((1 << width) - 1) - held[a]
        case ir.Slice(a, low, width):
            return held[a].astype(np.int64) >> low & ((1 << width) - 1)
        case ir.Mux(select, a, b):
            return _multiplexed(held[select], held[a], held[b])
        case ir.Register(a):
            return held[a]
        case _:
            column: Column = ir.OPERATORS[type(cell)](*(held[a] for a in reads(cell)))
            return column


def _multiplexed(select: Column, a: Column, b: Column) -> Column:
    """Returns `np.where(select, a, b)` by bit operations, which are faster than branches on mixed columns."""
    change = a ^ b
    mask = select if change.dtype == np.bool_ else np.negative(select.astype(change.dtype))
    return np.asarray(b ^ (change & mask))


def _check(netlist: Netlist, net: Net, column: Column) -> None:
    word, cell = netlist.types[net], netlist.cells[net]
    if word.width > 64 or (word.width == 64 and not word.signed):
        raise InternalError(f"a net of {word.width} bits", where=f"netlist {netlist.name}", do="use the Simulator")
    wrong = np.flatnonzero((column < word.low) | (column > word.high))
    if not wrong.size:
        return
    vector, value = int(wrong[0]), int(column[wrong[0]])
    if isinstance(cell, ir.Input):
        message = f"port {cell.port.name!r} holds {value}, outside {word.low} to {word.high}"
        raise RowsError(message, where=f"vector {vector}", do="give words within the range of their port")
    where = f"netlist {netlist.name}, vector {vector}"
    raise InternalError("a sum does not fit its word", where=where)
