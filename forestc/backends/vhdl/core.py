"""The VHDL backend: writes a core and its self-checking test bench in VHDL-93."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forestc.backends.base import Artifact, named
from forestc.backends.hdl import CoreWriter, Language
from forestc.backends.ports import Field
from forestc.netlist.ir import Netlist, WordType
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source


def emit(netlist: Netlist) -> dict[str, str]:
    """Returns {file name: text} of the core and its test bench."""
    view = CoreWriter(netlist, VHDL).view()
    return {
        f"{view['module']}.vhd": render("vhdl/core.vhd.j2", **view),
        f"{view['module']}_tb.vhd": render("vhdl/bench.vhd.j2", **view),
    }


def artifacts(source: Source, *_: object) -> list[Artifact]:
    written = named("vhdl", ("vhdl", "vhdl_testbench"), emit(source.netlist))
    return [*written, Artifact("vhdl_vectors", "vhdl/vectors.txt", source.vectors())]


def type_name(word: WordType) -> str:
    """Returns the VHDL type of a word: std_logic for one bit, otherwise signed or unsigned."""
    return "std_logic" if word.width == 1 else f"{_array(word)}({word.width - 1} downto 0)"


def part(word: WordType, port: str, at: int) -> str:
    """Returns VHDL for a word in a packed port. at: the word's lowest bit."""
    return f"{port}({at})" if word.width == 1 else f"{_array(word)}({port}({at + word.width - 1} downto {at}))"


def _array(word: WordType) -> str:
    return "signed" if word.signed else "unsigned"


def _literal(value: int, word: WordType) -> str:
    quote = "'" if word.width == 1 else '"'
    return f"{quote}{value & ((1 << word.width) - 1):0{word.width}b}{quote}"


def _less(a: str, b: str, word: WordType) -> str:
    return f"not {a} and {b}" if word.width == 1 else f"'1' when {a} < {b} else '0'"


def _extended(name: str, narrow: WordType, word: WordType) -> str:
    array = f"unsigned'('0' & {name})" if narrow.width == 1 else name
    wide = array if narrow.width == word.width else f"resize({array}, {word.width})"
    return wide if narrow.signed == word.signed else f"{_array(word)}({wide})"


def _looked_up(tables: list[str], words: list[str]) -> str:
    # `to_integer` needs an array, so a single bit is extended by '0'.
    index = " & ".join(words if len(words) > 1 else ["'0'", *words])
    return " & ".join(f"{table}(to_integer(unsigned'({index})))" for table in tables)


def _zero(word: WordType) -> str:
    return "'0'" if word.width == 1 else "(others => '0')"


def _result(field: Field | None, port: str, name: str, word: WordType) -> str:
    if field is None:
        return f"{port} <= {name};"
    if word.width == 1:
        return f"y({field.offset}) <= {name};"
    value = name if name.startswith('"') else f"std_logic_vector({name})"
    return f"y({field.offset + word.width - 1} downto {field.offset}) <= {value};"


VHDL = Language(
    comment="--",
    cells=lambda spelling: spelling.vhdl,
    bit="{0}({1})",
    slice="{0}({1} downto {2})",
    operators=("not ", "and", "or"),
    test=("{} = {}", " or ", "'1' when {} else '0'"),
    test_bit=("not {}", "{}"),
    literal=_literal,
    part=lambda word, at: part(word, "x", at),
    less=_less,
    extended=_extended,
    table=lambda name, size, values: f'constant {name} : std_logic_vector({size - 1} downto 0) := "{values:0{size}b}";',
    looked_up=_looked_up,
    net=lambda name, word, value: (f"signal {name} : {type_name(word)};", f"{name} <= {value};"),
    register=lambda name, word: f"signal {name} : {type_name(word)} := {_zero(word)};",
    zero=_zero,
    result=_result,
)
