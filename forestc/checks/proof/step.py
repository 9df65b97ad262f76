"""Proves that the module `step` of an engine's Verilog equals the definition in `forestc.backends.engine.image_reader`.

A strict reader (`verilog_text`) takes the module from the file. yosys turns it into AND gates and inverters, and
bitwuzla compares them with the definition.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forestc.backends.engine.image_reader import EngineShape, stepped
from forestc.checks.proof.parts import ProofPart, UnprovedError
from forestc.checks.proof.solver import Term, Terms
from forestc.checks.proof.verilog_text import OutsideError, read_step
from forestc.engine.capacity import Capacity
from forestc.errors import ToolError
from forestc.toolchain.yosys import run_yosys

_SCRIPT = """
read_verilog step.v
hierarchy -check -top {top}
proc
flatten
check -assert
opt_clean
techmap
opt_clean
aigmap
clean
write_json step.json
"""


class StepTerms(Terms):
    """The operations that `stepped` needs."""

    def free(self, name: str, width: int) -> Term:
        return self.terms.mk_const(self.terms.mk_bv_sort(width), name)

    def resized(self, word: Term, width: int) -> Term:
        own = word.sort().bv_size()
        if own > width:
            return self.make(self.kind.BV_EXTRACT, [word], [width - 1, 0])
        return self.make(self.kind.BV_ZERO_EXTEND, [word], [width - own]) if own < width else word

    def bits(self, word: Term, low: int, count: int) -> Term:
        return self.make(self.kind.BV_EXTRACT, [word], [low + count - 1, low])

    def equal(self, word: Term, value: int) -> Term:
        return self.same(word, self.constant(value, word.sort().bv_size()))

    def same(self, a: Term, b: Term) -> Term:
        return self.make(self.kind.EQUAL, [a, b])

    def below(self, a: Term, b: Term) -> Term:
        return self.make(self.kind.BV_ULT, [a, b])

    def bit(self, word: Term, index: Term) -> Term:
        shifted = self.make(self.kind.BV_SHR, [word, self.resized(index, word.sort().bv_size())])
        return self.equal(self.bits(shifted, 0, 1), 1)

    def both(self, a: Term, b: Term) -> Term:
        return self.make(self.kind.AND, [a, b])

    def plus(self, a: Term, b: Term | int, width: int) -> Term:
        other = self.constant(b, width) if isinstance(b, int) else self.resized(b, width)
        return self.make(self.kind.BV_ADD, [self.resized(a, width), other])

    def choose(self, condition: Term, a: Term, b: Term | int) -> Term:
        other = self.constant(b, a.sort().bv_size()) if isinstance(b, int) else b
        return self.make(self.kind.ITE, [condition, a, other])

    def decide(self, condition: Term, a: Term, b: Term) -> Term:
        return self.make(self.kind.ITE, [condition, a, b])


def prove_step(shape: EngineShape, source: bytes, capacity: Capacity, part: ProofPart, native: bool = False) -> None:
    """Proves the module `step` in an engine's Verilog equal to its definition; counts the proved outputs in `part`.
    source: the Verilog. Raises UnprovedError, TimeoutError or ToolError."""
    try:
        step = read_step(source, capacity)
    except OutsideError as error:
        raise UnprovedError(str(error)) from None
    on = StepTerms()
    widths = {"node": shape.node, "x": shape.word, "address": shape.address, "emit": 1, "target": shape.output}
    free = {port: on.free(port, width) for port, width in widths.items()}
    gives = on.equal(free["emit"], 1)
    definitions = stepped(shape, on, free["node"], free["x"], free["address"], gives, free["target"])
    got = _gates(
        on, _module(step, f"{capacity.name}_step", native), free, {"next": shape.address, "value": shape.value}
    )
    for port, definition in zip(("next", "value"), definitions, strict=True):
        if (model := on.model([on.make(on.kind.DISTINCT, [got[port], definition])], free)) is not None:
            where = ", ".join(f"{word}={value:#x}" for word, value in model.items())
            raise UnprovedError(f"the module gives another {port} than the definition, at {where}", wrong=True)
        part.proved += 1


def _module(step: str, top: str, native: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="forestc-prove-") as scratch:
        folder = Path(scratch)
        (folder / "step.v").write_text(step)
        try:
            run_yosys(_SCRIPT.format(top=top), folder, native=native, writes=["step.json"])
        except ToolError as error:
            if "check -assert" in error.what or "ERROR" in error.what:
                raise UnprovedError(f"yosys does not read the Verilog: {error.what[-200:]}") from None
            raise
        try:
            module: dict[str, Any] = json.loads((folder / "step.json").read_text())["modules"][top]
            return {"ports": dict(module["ports"]), "cells": dict(module["cells"])}
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise ToolError(
                f"yosys's netlist of the step can't be read ({error})", where="proof of the engine's step"
            ) from None


def _gates(
    on: StepTerms, module: dict[str, Any], free: Mapping[str, Term], outputs: Mapping[str, int]
) -> dict[str, Term]:
    """Returns the module's outputs as terms. Raises UnprovedError for unexpected ports, cells or loops."""
    ports = {name: (port["direction"], len(port["bits"])) for name, port in module["ports"].items()}
    expected = {name: ("input", term.sort().bv_size()) for name, term in free.items()}
    expected |= {name: ("output", width) for name, width in outputs.items()}
    if ports != expected:
        raise UnprovedError(f"the module's ports are {sorted(ports.items())}", wrong=True)
    nets: dict[Any, Term] = {"0": on.constant(0, 1), "1": on.constant(1, 1)}
    for name, term in free.items():
        for index, net in enumerate(module["ports"][name]["bits"]):
            nets[net] = on.bits(term, index, 1)
    driver: dict[Any, tuple[str, list[Any]]] = {}
    for cell in module["cells"].values():
        ends = {port: bits[0] for port, bits in cell["connections"].items()}
        if cell["type"] not in ("$_AND_", "$_NOT_"):
            raise UnprovedError(f"the module has a cell {cell['type']}")
        driver[ends["Y"]] = cell["type"], [ends[port] for port in ("A", "B") if port in ends]
    stack = [net for port in outputs for net in module["ports"][port]["bits"]]
    while stack:
        net = stack[-1]
        if net in nets:
            stack.pop()
        elif net not in driver:
            raise UnprovedError("the module has a bit that nothing drives")
        elif waiting := [read for read in driver[net][1] if read not in nets]:
            if len(stack) > 4 * len(driver) + 1000:
                raise UnprovedError("the module's gates feed one another")
            stack += waiting
        else:
            kind, reads = driver[net]
            terms = [nets[read] for read in reads]
            nets[net] = on.make(on.kind.BV_AND if kind == "$_AND_" else on.kind.BV_NOT, terms)
    results = {}
    for port in outputs:
        word = None
        for net in module["ports"][port]["bits"]:
            word = nets[net] if word is None else on.make(on.kind.BV_CONCAT, [nets[net], word])
        results[port] = word
    return results
