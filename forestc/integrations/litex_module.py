"""Turns a compiled design into a module of LiteX, with streams or registers."""

from __future__ import annotations

from functools import reduce
from operator import add, and_, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forestc.backends.logic import lookup_of, steps
from forestc.backends.names import net_name
from forestc.backends.ports import Field, input_fields, output_fields
from forestc.errors import MissingExtraError
from forestc.manifest.design import Design, open_design
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Net, Netlist, WordType

if TYPE_CHECKING:
    from litex.gen import LiteXModule
    from migen import Signal


def litex_module(design: Design | str | Path, *, csrs: bool = False) -> Any:
    """Returns a design as a LiteXModule with the streams `sink` and `source`. Raises ForestcError if the folder can't
    be read. csrs: True for registers instead of streams."""
    opened = design if isinstance(design, Design) else open_design(design)
    try:
        import litex.gen  # noqa: F401
    except ImportError:
        raise MissingExtraError("LiteX", "litex") from None
    module = streamed(opened.netlist)
    return _registers(module, opened.netlist, str(opened.manifest["hash"])) if csrs else module


def streamed(netlist: Netlist) -> Any:
    """Returns the LiteXModule of a netlist, with the streams `sink` and `source`."""
    from litex.gen import LiteXModule
    from litex.soc.interconnect.stream import Endpoint
    from migen import If, Mux, Signal

    module = LiteXModule()
    module.sink, module.source = sink, source = (
        Endpoint(_layout(input_fields(netlist))),
        Endpoint(_layout(output_fields(netlist))),
    )
    held_valid = Signal()  # 1 while a result waits to be taken
    run = Signal()  # 1 if the whole pipeline moves
    words = {field.identifier: getattr(sink, field.identifier) for field in input_fields(netlist)}
    module.core, results = core(netlist, words | {"in_valid": sink.valid}, run)
    results["out_valid"] = results.get("out_valid", sink.valid)
    for name in ("first", "last"):
        results[name] = getattr(sink, name)
        for _ in range(netlist.latency):
            later = Signal()
            module.sync += If(run, later.eq(results[name]))
            results[name] = later
    done = results.pop("out_valid")
    module.comb += [run.eq(~held_valid), sink.ready.eq(run), source.valid.eq(held_valid | done)]
    holds = []
    for name, value in results.items():
        held = Signal.like(getattr(source, name))
        holds.append(held.eq(value))
        module.comb += getattr(source, name).eq(Mux(held_valid, held, value))
    module.sync += If(held_valid, held_valid.eq(~source.ready)).Else(*holds, held_valid.eq(done & ~source.ready))
    return module


def _registers(inner: LiteXModule, netlist: Netlist, design_hash: str) -> Any:
    from litex.gen import LiteXModule
    from litex.soc.interconnect.csr import CSR, CSRStatus, CSRStorage
    from migen import If, Signal

    module = LiteXModule()
    module.stream = inner
    waiting = Signal()  # 1 while a row waits to be taken
    module.start, module.done = (
        CSR(name="start"),
        CSRStatus(name="done", description="1: the results are of the last row."),
    )
    module.identity = CSRStatus(
        32, reset=int(design_hash[:8], 16), name="identity", description="Of the design's hash."
    )
    module.comb += [
        inner.sink.valid.eq(waiting),
        inner.sink.first.eq(1),
        inner.sink.last.eq(1),
        inner.source.ready.eq(1),
    ]
    for field in input_fields(netlist):
        word = CSRStorage(field.word.width, name=field.identifier, description=field.port.meaning or "A word.")
        setattr(module, field.identifier, word)
        module.comb += getattr(inner.sink, field.identifier).eq(word.storage)
    taken = []
    for field in output_fields(netlist):
        status = CSRStatus(field.word.width, name=field.name, description="A result.")
        setattr(module, field.name, status)
        taken.append(status.status.eq(getattr(inner.source, field.name)))
    module.sync += [
        If(inner.sink.ready, waiting.eq(0)),
        If(inner.source.valid, *taken, module.done.status.eq(1)),
        If(module.start.re, waiting.eq(1), module.done.status.eq(0)),
    ]
    return module


def core(netlist: Netlist, words: dict[str, Any], run: object) -> tuple[Any, dict[str, Any]]:
    """Returns the logic as a Migen module, and its outputs as {port: signal}.
    words: inputs as {port: signal}.
    run: 1 to let registers take new values."""
    from migen import Constant, If, Module, Signal

    logic, nets, updates = Module(), [], []
    resets: set[Net] = set()  # registers of in_valid are reset in any case, others if the netlist has a reset
    every = netlist.clocking.reset != "none"
    for net, cell in enumerate(netlist.cells):
        word = netlist.types[net]
        shape = (word.width, word.signed)
        match cell:
            case ir.Const(value):
                nets.append(Constant(value, shape))
            case ir.Input(port):
                nets.append(words[net_name(net, cell)])
                if port.kind == "valid":
                    resets.add(net)
            case ir.Register(a):
                if a in resets or every:
                    resets.add(net)
                nets.append(Signal(shape, name=net_name(net, cell), reset_less=net not in resets))
                updates.append(nets[net].eq(nets[a]))
            case _:
                nets.append(Signal(shape, name=net_name(net, cell)))
                logic.comb += nets[net].eq(_value(cell, nets, netlist))
    if updates:
        logic.sync += If(run, *updates)
    return logic, {port.name: nets[net] for port, net in netlist.outputs}


def _value(cell: Cell, nets: list[Any], netlist: Netlist) -> Any:
    from migen import Array, Cat, Constant, Mux

    match cell:
        case ir.Less(a, threshold):
            summed = ir.compares_sum(netlist, cell)
            return nets[a] < threshold if summed else _below(nets[a], netlist.types[a], threshold)
        case ir.InSet(a, members):
            return reduce(or_, (nets[a] == member for member in members))
        case ir.Not(a):
            return ~nets[a]
        case ir.Mux(select, a, b):
            return Mux(nets[select], nets[a], nets[b])
        case ir.Add(operands):
            return reduce(add, (nets[a] for a in operands))
        case ir.Table(words):
            lookup = lookup_of(cell, netlist.types)
            bits = [lookup.values(position) for position in range(cell.width)]
            sums = [
                sum((bit >> index & 1) << position for position, bit in enumerate(bits)) for index in range(lookup.size)
            ]
            return Array(Constant(value, cell.width) for value in sums)[Cat(*(nets[a] for a, _ in words))]
        case ir.Shift(a):
            return Cat(Constant(0, 1), nets[a])
        case ir.Extend(a):
            return nets[a]
        case ir.Slice(a, low, width):
            return nets[a][low : low + width]
        case _:
            return ir.OPERATORS[type(cell)](*(nets[a] for a in ir.reads(cell)))


def _below(net: Signal, word: WordType, threshold: int) -> Any:
    value = None
    for index, inverted, operator in steps(word, threshold):
        bit = ~net[index] if inverted else net[index]
        value = bit if value is None else (or_ if operator else and_)(bit, value)
    return value


def _layout(fields: list[Field]) -> list[tuple[str, tuple[int, bool]]]:
    return [(field.identifier, (field.word.width, field.word.signed)) for field in fields] or [("unused", (1, False))]
