"""Writes packages and instantiation templates for designs in VHDL or SystemVerilog that use the core. A package packs
rows into x and unpacks y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forestc.backends.base import Artifact, Core, shared
from forestc.backends.hdl import module_name
from forestc.backends.ports import Field, input_fields, output_fields, result_meaning, width_of
from forestc.backends.vhdl.core import part, type_name
from forestc.netlist.ir import BIT, Netlist
from forestc.netlist.ports import Port
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source


@dataclass(frozen=True)
class Member:
    """A member of a record in the packages: one feature or result."""

    name: str
    note: str
    vhdl_type: str
    sv_type: str
    placed: str  # VHDL for the member's bits in the core's port
    read: str  # VHDL for these bits in the member's type
    written: str  # VHDL for the member as bits


def emit(netlist: Netlist) -> dict[str, tuple[str, str]]:
    """Returns {role: (file name, text)} of the packages and templates."""
    module = module_name(netlist)
    inputs = input_fields(netlist) or [Field(Port("unused", title="unused"), 0, BIT)]
    outputs = output_fields(netlist)
    view = {
        "module": module,
        "clocked": bool(netlist.latency),
        "clocking": netlist.clocking,
        "x_bits": width_of(inputs),
        "y_bits": width_of(outputs),
        "row": [_member(field, field.identifier, "x", "row", field.port.meaning or "a word") for field in inputs],
        "result": [_member(field, f"y_{field.name}", "y", "result", result_meaning(field)) for field in outputs],
    }
    return {
        "vhdl_package": (f"{module}_pkg.vhd", render("vhdl/package.vhd.j2", **view)),
        "sv_package": (f"{module}_pkg.sv", render("verilog/package.sv.j2", **view)),
        "vhdl_instance": (f"{module}.vho", render("vhdl/instance.vho.j2", **view)),
        "verilog_instance": (f"{module}.veo", render("verilog/instance.veo.j2", **view)),
    }


def artifacts(source: Source, _: Sequence[Artifact], cores: Sequence[Core]) -> list[Artifact]:
    files = emit(source.netlist)
    return [file for core in cores for file in shared(core, cores, tuple(files), files)]


def _member(field: Field, name: str, port: str, record: str, note: str) -> Member:
    word, at, top = field.word, field.offset, field.offset + field.word.width - 1
    single = word.width == 1
    return Member(
        name=name,
        note=note,
        vhdl_type=type_name(word),
        sv_type=f"logic{' signed' * word.signed}{'' if single else f' [{word.width - 1}:0]'}",
        placed=f"{port}({at})" if single else f"{port}({top} downto {at})",
        read=part(word, port, at),
        written=f"{record}.{name}" if single else f"std_logic_vector({record}.{name})",
    )
