"""Writes C that turns raw rows into words, with integer arithmetic on the bits of floats. Compiler flags such as
-ffast-math do not change its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, get_args

from forestc.backends.c.tables import FlashTables
from forestc.backends.c.types import FLOATS, FloatType, constant, int_type
from forestc.backends.names import c_string, feature_name, plain
from forestc.errors import OptionError, opt
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FLOAT32, Category, Fixed, Float, Ordered, Rounding, word_range

LOOPED = 8  # words from which a loop over tables is smaller than a call for each


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
    writer, flash = _Quantizer(forest, prefix, row), FlashTables(prefix)
    words = [writer.word(f) for f in forest.features]
    alike = len({word.text for word in words}) == 1 and target(0) == "x[0]" and len(words) >= LOOPED
    if alike:
        lines = _looped(words, kind(0), flash)
    else:
        lines = [f"{target(k)} = ({kind(k)}){word.unrolled};" for k, word in enumerate(words)]
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
        "tables": flash.text,
        "lines": lines or ["(void)row;", f"{target(0)} = 0;"],
    }


@dataclass(frozen=True)
class _Word:
    """A C expression for a feature's word."""

    text: str  # with {0}, {1}, ... for its numbers
    numbers: tuple[tuple[int, str], ...]  # (value, its constant in C)

    @property
    def unrolled(self) -> str:
        return self.text.format(*(written for _, written in self.numbers))


def _looped(words: Sequence[_Word], kind: str, flash: FlashTables) -> list[str]:
    """Returns C that computes words of one text by a loop over tables of their numbers. kind: C type of words."""
    reads = []
    for number, entries in enumerate(zip(*(word.numbers for word in words), strict=True)):
        values, written = [value for value, _ in entries], entries[0][1]
        if number == 0 and values == list(range(len(words))):
            written = "k"
        elif len(set(values)) > 1:
            low = 0 if entries[0][1].startswith("UINT") or number == 0 else -1
            flash.add(f"row_{number}", values, int_type(min(low, *values), max(values)))
            written = flash.read(f"row_{number}", "k")
        reads.append(written)
    index = int_type(0, len(words))
    call = words[0].text.format(*reads)
    return [f"{index} k;", f"for (k = 0u; k < {len(words)}u; k++) {{", f"    x[k] = ({kind}){call};", "}"]


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
            steps.append(
                f"({parameter} == {constant(int(member.value))}) ? 1 : 0" if member.kind == "is" else parameter
            )
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


def _plain(value: int) -> tuple[int, str]:
    return value, constant(value)


class _Quantizer:
    """Writer of C expressions for words. used: the C helper functions that they call."""

    def __init__(self, forest: Forest, prefix: str, row: FloatType) -> None:
        self.prefix = prefix
        self.row = row
        spans = [word_range(f.number, f.missing) for f in forest.features]
        small = all(span.low >= -(1 << 31) and span.top < 1 << 31 for span in spans)
        self.wide = 32 if small and row.bits == 32 else 64
        self.used: set[str] = set()

    def word(self, feature: Feature) -> _Word:
        number, narrow = feature.number, feature.raw == FLOAT32
        span = word_range(number, feature.missing)
        if isinstance(feature.raw, Fixed):
            return self._typed(feature, feature.raw)
        match number:
            case Fixed(_, fraction):
                limits = [(fraction, str(fraction)), self._size(-span.low), self._size(span.high), _plain(span.top)]
                return self._word("fixed", feature, self.row.bits, narrow, limits)
            case Category(count, rounding):
                which = {"none": "code", "floor": "code_floor", "trunc": "code_trunc"}[rounding]
                self.used.add("fixed")
                return self._word(which, feature, self.row.bits, narrow, [self._size(count), _plain(span.top)])
            case Ordered(bits):
                return self._word(f"key{bits}", feature, bits, narrow, [])
            case Float():
                raise OptionError(
                    f"{number} has no words", where="the C header's inputs", do="quantize the forest first"
                )
            case _:
                assert_never(number)

    def _typed(self, feature: Feature, raw: Fixed) -> _Word:
        """Returns C for the word of a value that is first rounded to a fixed-point type."""
        number, span, own = feature.number, word_range(feature.number, feature.missing), word_range(raw, False)
        if not isinstance(number, Fixed) or not 0 <= (drop := raw.fraction - number.fraction) < 63:
            raise OptionError(
                f"{feature.name!r} is rounded to {raw}, and a word of {number} is no part of it",
                where="the C header's inputs",
                do=f"use {opt.c_quantizer:none}, or let the passes choose its format",
            )
        self.used.add("typed")
        modes = (raw.fraction, get_args(Rounding).index(raw.rounding), int(raw.overflow == "AP_WRAP"))
        ends = [(value, f"INT64_C({value})") for value in (own.low, own.high, span.low, span.high, span.top)]
        numbers = [*((value, str(value)) for value in modes), (drop, f"UINT8_C({drop})"), *ends]
        return self._word("typed", feature, 64, False, numbers)

    def _word(self, name: str, feature: Feature, width: int, narrow: bool, numbers: Sequence[tuple[int, str]]) -> _Word:
        """Returns a call of a helper function with the bits of a feature's float and further numbers."""
        more = ", ".join(f"{{{place}}}" for place in range(1, len(numbers) + 1))
        text = self._call(name, self._bits(width, narrow), more)
        return _Word(text, ((feature.column, str(feature.column)), *numbers))

    def _bits(self, width: int, narrow: bool) -> str:
        """Returns C for the bit pattern of the float of column {0}, after the rounding that the model applies."""
        text, bits = f"{self.prefix}_row_bits(&row[{{0}}])", self.row.bits
        if bits == 64 and (narrow or width == 32):
            text, bits = self._call("narrowed", text, ""), 32
        return self._call("widened", text, "") if bits < width else text

    def _size(self, value: int) -> tuple[int, str]:
        return value, f"UINT{self.wide}_C({value})"

    def _call(self, name: str, bits: str, more: str) -> str:
        self.used.add(name)
        return f"{self.prefix}_{name}({bits}{', ' if more else ''}{more})"
