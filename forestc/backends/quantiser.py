"""A Python module that makes words of raw rows: for test benches and hosts that have no forestc."""

from __future__ import annotations

from typing import Any

from forestc.backends.ports import Field, input_fields, output_fields
from forestc.backends.verilog import module_name
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FLOAT32, Category, Fixed, Ordered, word_range
from forestc.netlist.ir import Netlist
from hdl_templates import render


def file_name(netlist: Netlist) -> str:
    """The module's, without the suffix."""
    return f"{module_name(netlist)}_words"


def emit(forest: Forest, netlist: Netlist) -> str:
    """The text of the module. Same input, same bytes."""
    features = zip(forest.features, input_fields(netlist), strict=True)
    view = {
        "module": module_name(netlist),
        "file": file_name(netlist),
        "columns": forest.columns,
        "features": [ascii(_feature(feature, field)) for feature, field in features],
        "outputs": [ascii(_place(field)) for field in output_fields(netlist)],
    }
    return render("cocotb/words.py.j2", **view)


def _place(field: Field) -> dict[str, Any]:
    return {"name": field.name, "offset": field.offset, "bits": field.word.width, "signed": field.word.signed}


def _feature(feature: Feature, field: Field) -> dict[str, Any]:
    number, limits = feature.number, word_range(feature.number, feature.missing)
    told = {
        "name": feature.name,
        "column": feature.column,
        "offset": field.offset,
        "bits": field.word.width,
        "float32": feature.raw == FLOAT32,
        "missing": limits.missing,
        "labels": list(feature.labels),
    }
    match number:
        case Fixed(_, fraction):
            return {**told, "kind": "fixed", "fraction": fraction, "low": limits.low, "high": limits.high}
        case Ordered():
            return {**told, "kind": "ordered"}
        case Category(count, rounding):
            return {**told, "kind": "category", "codes": count, "rounding": rounding}
        case _:
            raise AssertionError(f"{number} has no words")
