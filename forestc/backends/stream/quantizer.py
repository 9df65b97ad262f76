"""Writes a Python module that turns raw rows into words, for test benches and for hosts without forestc."""

from __future__ import annotations

from typing import Any

from forestc.backends.hdl import module_name
from forestc.backends.stream.lanes import Lane, LaneLayout
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FLOAT32, Category, Fixed, Ordered, word_range
from forestc.netlist.ir import Netlist
from hdl_templates import render


def file_name(netlist: Netlist) -> str:
    """Returns the module's file name without the suffix."""
    return f"{module_name(netlist)}_words"


def emit(forest: Forest, netlist: Netlist, row: LaneLayout, result: LaneLayout) -> str:
    """Returns the text of the Python module. row, result: the layouts of rows and results in a stream."""
    features = zip(forest.features, row.lanes, strict=True)
    view = {
        "module": module_name(netlist),
        "file": file_name(netlist),
        "columns": forest.columns,
        "typed": any(isinstance(feature.raw, Fixed) for feature in forest.features),
        "features": [ascii(_feature(feature, lane)) for feature, lane in features],
        "outputs": [ascii(_place(lane)) for lane in result.lanes],
        "row_bytes": row.total // 8,
        "result_bytes": result.total // 8,
        "numpy_row": _numpy(row, [lane.field.identifier for lane in row.lanes]),
        "numpy_result": _numpy(result, [lane.field.name for lane in result.lanes]),
    }
    return render("cocotb/words.py.j2", **view)


def _place(lane: Lane) -> dict[str, Any]:
    field = lane.field
    place = {"name": field.name, "offset": field.offset, "bits": field.word.width, "signed": field.word.signed}
    return {**place, "lane": lane.offset}


def _numpy(layout: LaneLayout, names: list[str]) -> str:
    """Returns the argument of `numpy.dtype` for a layout; "" if fields are packed."""
    if not layout.align:
        return ""
    dtype: dict[str, Any] = {
        "names": names,
        "formats": [lane.numpy_format for lane in layout.lanes],
        "offsets": [lane.offset // 8 for lane in layout.lanes],
        "itemsize": layout.total // 8,
    }
    return ascii(dtype)


def _feature(feature: Feature, lane: Lane) -> dict[str, Any]:
    field = lane.field
    number, limits = feature.number, word_range(feature.number, feature.missing)
    common: dict[str, Any] = {
        "name": feature.name,
        "column": feature.column,
        "offset": field.offset,
        "bits": field.word.width,
        "lane": lane.offset,
        "lane_bits": lane.bits,
        "float32": feature.raw == FLOAT32,
        "missing": limits.missing,
        "labels": list(feature.labels),
        "unknown": feature.other_text,
    }
    if isinstance(raw := feature.raw, Fixed):
        span = word_range(raw, False)
        modes = {"rounding": raw.rounding, "wraps": raw.overflow == "AP_WRAP"}
        common["type"] = {"fraction": raw.fraction, "low": span.low, "high": span.high, **modes}
    match number:
        case Fixed(_, fraction):
            return {**common, "kind": "fixed", "fraction": fraction, "low": limits.low, "high": limits.high}
        case Ordered():
            return {**common, "kind": "ordered"}
        case Category(count, rounding):
            return {**common, "kind": "category", "codes": count, "rounding": rounding}
        case _:
            raise AssertionError(f"{number} has no words")
