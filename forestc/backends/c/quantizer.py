"""Writes C that turns raw rows into words, with integer arithmetic on the bits of floats. Compiler flags such as
-ffast-math do not change its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never, get_args

from forestc.backends.c.types import FLOATS, FloatType, constant
from forestc.backends.names import c_string, feature_name, plain
from forestc.errors import OptionError, opt
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FLOAT32, Category, Fixed, Float, Ordered, Rounding, word_range


def row_type(forest: Forest, name: str) -> FloatType:
    """Returns the float type of raw rows. For "auto" it is float if the model reads all columns as float32, otherwise
    double."""
    if name == "auto":
        name = "float" if all(feature.raw == FLOAT32 for feature in forest.features) else "double"
    return FLOATS[name]


def quantizer(
    forest: Forest, prefix: str, row: FloatType, target: Callable[[int], str], kind: Callable[[int], str]
) -> dict[str, Any]:
    """Returns the variables of the quantizer's template.
    target: returns the C variable for a feature's word, given the feature's index.
    kind: returns the C type of this variable."""
    writer = _Quantizer(forest, prefix, row)
    lines = [f"{target(k)} = ({kind(k)}){writer.word(f)};" for k, f in enumerate(forest.features)]
    halves = f" && !({row.halves_turned})" if row.halves_turned else ""
    return {
        "row": row,
        "wide": writer.wide,
        "fits": f"{row.fits}{halves}",
        "has_size": row.has_size(prefix, "use_c_quantizer_none_or_float" if row.bits == 64 else "use_c_quantizer_none"),
        "used": writer.used,
        "mantissa": (1 << (row.digits - 1)) - 1,
        "hidden": 1 << (row.digits - 1),
        "infinity": row.infinity,
        "sign": 1 << (row.bits - 1),
        "bias": row.exponent + row.digits - 2,
        "lines": lines or ["(void)row;", f"{target(0)} = 0;"],
    }


def code_functions(forest: Forest, prefix: str, raw: bool = False) -> list[dict[str, Any]]:
    """Returns the template variables of C functions that look up a category's code by its name. raw: True if x holds
    raw columns."""
    functions = []
    for index, feature in enumerate(forest.features):
        if not feature.labels or not isinstance(feature.number, Category):
            continue
        span = word_range(feature.number, feature.missing)
        codes = {label: code for code, label in enumerate(feature.labels)}
        coded = feature.labels[: feature.number.count]
        names = [_name(label) if codes[label] == code else "0" for code, label in enumerate(coded)]
        functions.append(
            {
                "name": f"{prefix}_{feature_name(index, feature.name)}_code",
                "names": names,
                "unknown": span.high,
                "absent": span.high if raw else span.top,
                "missing": feature.missing and not raw,
                "index": index,
            }
        )
    return functions


def hash_functions(forest: Forest, prefix: str) -> list[dict[str, Any]]:
    """Returns the template variables of C functions that look up a category's code by hashes of its members."""
    by_column = {hashed.column: hashed for hashed in forest.hashed}
    functions = []
    for index, feature in enumerate(forest.features):
        if (hashed := by_column.get(feature.column)) is None:
            continue
        parameters: dict[tuple[int, float], tuple[str, str]] = {}  # name and meaning, by column and border
        steps = []
        for member in hashed.members:
            name, number = plain(member.name or f"column {member.column}"), member.kind == "from"
            key = member.column, member.value if number else 0.0
            missing = f", {int(member.missing)} if it is missing"
            meaning = f"1 if {name} >= {member.value!r}, else 0{missing}" if number else f"the hash of {name}"
            parameter, _ = parameters.setdefault(key, (f"{'from' if number else 'hash'}{len(parameters)}", meaning))
            steps.append(f"{parameter} == ({constant(int(member.value))})" if member.kind == "is" else parameter)
        code_bytes = 1 if hashed.count <= 1 << 8 else 2
        functions.append(
            {
                "name": f"{prefix}_{feature_name(index, feature.name)}_code",
                "parameters": list(parameters.values()),
                "steps": steps,
                "table": [f"0x{key:016X}" for key in hashed.hashes],
                "codes": hashed.codes,
                "code_bits": 8 * code_bytes,
                "bytes": len(hashed.hashes) * (8 + code_bytes),
                "unknown": hashed.count,
            }
        )
    return functions


def _name(label: str) -> str:
    """Returns a category's name as a C string; "0" if that is impossible."""
    try:
        label.encode("utf-8")
    except UnicodeEncodeError:
        return "0"
    return "0" if "\0" in label else c_string(label)


class _Quantizer:
    """Writer of C expressions for words. used: the C helper functions that they call."""

    def __init__(self, forest: Forest, prefix: str, row: FloatType) -> None:
        self.prefix = prefix
        self.row = row
        spans = [word_range(f.number, f.missing) for f in forest.features]
        small = all(span.low >= -(1 << 31) and span.top < 1 << 31 for span in spans)
        self.wide = 32 if small and row.bits == 32 else 64
        self.used: set[str] = set()

    def word(self, feature: Feature) -> str:
        number, narrow = feature.number, feature.raw == FLOAT32
        span = word_range(number, feature.missing)
        if isinstance(feature.raw, Fixed):
            return self._typed(feature, feature.raw)
        match number:
            case Fixed(_, fraction):
                limits = f"{fraction}, {self._size(-span.low)}, {self._size(span.high)}, {constant(span.top)}"
                return self._call("fixed", self._bits(feature, self.row.bits, narrow), limits)
            case Category(count, rounding):
                which = {"none": "code", "floor": "code_floor", "trunc": "code_trunc"}[rounding]
                self.used.add("fixed")
                limits = f"{self._size(count)}, {constant(span.top)}"
                return self._call(which, self._bits(feature, self.row.bits, narrow), limits)
            case Ordered(bits):
                return self._call(f"key{bits}", self._bits(feature, bits, narrow), "")
            case Float():
                raise OptionError(
                    f"{number} has no words", where="the C header's inputs", do="quantize the forest first"
                )
            case _:
                assert_never(number)

    def _typed(self, feature: Feature, raw: Fixed) -> str:
        """Returns C for the word of a value that is first rounded to a fixed-point type."""
        number, span, own = feature.number, word_range(feature.number, feature.missing), word_range(raw, False)
        if not isinstance(number, Fixed) or not 0 <= (drop := raw.fraction - number.fraction) < 63:
            raise OptionError(
                f"{feature.name!r} is rounded to {raw}, and a word of {number} is no part of it",
                where="the C header's inputs",
                do=f"use {opt.c_quantizer:none}, or let the passes choose its format",
            )
        self.used.add("typed")
        modes = f"{get_args(Rounding).index(raw.rounding)}, {int(raw.overflow == 'AP_WRAP')}"
        ends = ", ".join(f"INT64_C({value})" for value in (own.low, own.high, span.low, span.high, span.top))
        return self._call("typed", self._bits(feature, 64, False), f"{raw.fraction}, {modes}, {drop}, {ends}")

    def _bits(self, feature: Feature, width: int, narrow: bool) -> str:
        """Returns C for the bit pattern of a feature's float, after the rounding that the model applies."""
        text, bits = f"{self.prefix}_row_bits(&row[{feature.column}])", self.row.bits
        if bits == 64 and (narrow or width == 32):
            text, bits = self._call("narrowed", text, ""), 32
        return self._call("widened", text, "") if bits < width else text

    def _size(self, value: int) -> str:
        return f"UINT{self.wide}_C({value})"

    def _call(self, name: str, bits: str, more: str) -> str:
        self.used.add(name)
        return f"{self.prefix}_{name}({bits}{', ' if more else ''}{more})"
