"""C types and constants for the numbers of a quantized forest."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.backends.names import feature_name
from forestc.errors import OptionError, opt
from forestc.forest.ir import LEAF, Forest, Part, Tree
from forestc.forest.numbers import Category, Float, word_range

_SIZES = (8, 16, 32, 64)  # bits of the integer types of stdint.h, ascending


def int_type(low: int, high: int) -> str:
    """Returns the smallest stdint type for low .. high, unsigned if possible. Raises OptionError if 64 bits are too
    few."""
    for size in _SIZES:
        if low >= 0 and high < 1 << size:
            return f"uint{size}_t"
        if low < 0 and -(1 << (size - 1)) <= low and high < 1 << (size - 1):
            return f"int{size}_t"
    raise OptionError(
        f"no C integer holds {low}..{high}", where="the C header", do="compile with fewer input bits or leaf bits"
    )


def size_of(kind: str) -> int:
    """Returns the number of bytes of a stdint type such as `int16_t`."""
    return int("".join(filter(str.isdigit, kind))) // 8


def word_type(forest: Forest) -> str:
    """Returns the smallest C type for the words of all features."""
    spans = [word_range(f.number, f.missing) for f in forest.features]
    return int_type(min((s.low for s in spans), default=0), max((s.top for s in spans), default=1))


def members(forest: Forest) -> list[tuple[str, str]]:
    """Returns (name, C type) of each member of the struct of features; at least one, as C has no empty struct."""
    typed = []
    for index, feature in enumerate(forest.features):
        span = word_range(feature.number, feature.missing)
        typed.append((feature_name(index, feature.name), int_type(span.low, span.top)))
    return typed or [("none", "uint8_t")]


def score_type(forest: Forest) -> str:
    """Returns the narrowest signed C type for all scores and partial sums."""
    bounds = sums_of if forest.adds else reach_of
    low, high = zip(*(bounds(forest, k) for k in range(forest.n_outputs)), strict=True)
    least, most = min(0, *low), max(0, *high)
    reach = max(-least, most)
    if forest.combine.kind == "vote":
        most = max(most, int(sum(forest.combine.weights)), len(forest.parts))
    elif forest.combine.kind == "average":  # a threshold may be one above all scores
        mean = [forest.steps if part.curves else reach for part in forest.parts]
        wide = any(part.link.kind == "softmax" for part in forest.parts)  # softmax needs differences of scores
        total = sum(weight * reached for weight, reached in zip(forest.integer_weights, mean, strict=True))
        most = max((reach << wide) + 1, total)
        least = -most
    return int_type(min(least, -1), most)


def sums_of(forest: Forest, output: int) -> tuple[int, int]:
    """Returns bounds (low, high) of one output's partial sums; trees and bias may be added in any order."""
    used = [{0, *leaves_of(tree, output)} for tree in forest.trees if output in tree.outputs]
    bias = int(forest.bias[output])
    return min(0, bias) + sum(map(min, used)), max(0, bias) + sum(map(max, used))


def leaves_of(tree: Tree, output: int) -> set[int]:
    return set(tree.values[tree.leaf[tree.left == LEAF], tree.outputs.index(output)].tolist())


def reach_of(forest: Forest, output: int) -> tuple[int, int]:
    """Returns bounds (low, high) of the score of one output."""
    used = [leaves_of(tree, output) for tree in forest.trees if output in tree.outputs]
    bias = int(forest.bias[output])
    if forest.adds:
        return bias + sum(map(min, used)), bias + sum(map(max, used))
    if forest.aggregate.score is not None:  # the sum of two scores
        span = word_range(forest.aggregate.score, False)
        return 2 * span.low, 2 * span.high
    joined = max if forest.aggregate.kind == "max" else min
    return bias + joined(map(min, used)), bias + joined(map(max, used))


def label_type(forest: Forest) -> str:
    """Returns the C type of a class index. It also holds the number of classes."""
    return int_type(0, max(len(part.classes) for part in forest.targets))


def labels_are_text(part: Part) -> bool:
    """Returns True if the C gives a target's labels as text, and not as numbers."""
    return not all(isinstance(c, int) and abs(c) < 1 << 63 for c in part.classes)


def text_bytes(forest: Forest, pointer: int) -> int:
    """Returns the most bytes of the labels' text and its table, for pointers of this many bytes."""
    labels = [label for part in forest.targets if labels_are_text(part) for label in part.classes]
    return sum(len(str(label).encode("utf-8", "replace")) + 1 + pointer for label in labels)


def constant(value: int) -> str:
    """Returns an integer constant of C, with a type that holds it even if `int` has 16 bits."""
    if -(1 << 15) < value < 1 << 15:
        return str(value)
    if -(1 << 31) < value < 1 << 31:
        return f"INT32_C({value})"
    if 0 <= value < 1 << 32:
        return f"UINT32_C({value})"
    return f"(INT64_C({value + 1}) - 1)" if value == -(1 << 63) else f"INT64_C({value})"


def compared(value: int, kind: str) -> str:
    """Returns a C constant to compare with a word of type `kind`. It is unsigned if the word is (MISRA C 10.4)."""
    if kind in ("uint8_t", "uint16_t"):
        return f"{value}u"
    return f"{kind[:-2].upper()}_C({value})" if kind in ("uint32_t", "uint64_t") else constant(value)


@dataclass(frozen=True)
class FloatType:
    name: str
    bits: int
    digits: int  # bits of the mantissa, with the hidden one
    exponent: int  # the largest exponent, as FLT_MAX_EXP
    macro: str  # prefix of the type's macros in <float.h>

    @property
    def infinity(self) -> int:
        """The bit pattern of infinity."""
        return (1 << (self.bits - 1)) - (1 << (self.digits - 1))

    @property
    def fits(self) -> str:
        """The preprocessor condition that the type has an IEEE 754 format."""
        m = self.macro
        return (
            f"FLT_RADIX == 2 && {m}_MANT_DIG == {self.digits} && {m}_MIN_EXP == {3 - self.exponent} && "
            f"{m}_MAX_EXP == {self.exponent}"
        )

    @property
    def halves_turned(self) -> str:
        """A preprocessor condition: true if doubles have their 32-bit halves in reverse order; "" for float."""
        turned = "defined(__FLOAT_WORD_ORDER__) && __FLOAT_WORD_ORDER__ != __BYTE_ORDER__"
        return turned if self.bits == 64 else ""

    def has_size(self, prefix: str, way_out: str) -> str:
        """Returns a static assertion on the size of the type. way_out: the remedy that the compiler's message names."""
        size = f"sizeof({self.name}) == sizeof(int{self.bits}_t)"
        return asserted(prefix, size, f"{self.name}_has_{self.bits}_bits_else_{way_out}")


def asserted(prefix: str, condition: str, name: str) -> str:
    """Returns a static assertion in C: an array of a negative size if it fails. name: appears in the compiler's
    message."""
    return f"enum {{ {prefix}_{name} = sizeof(char[({condition}) ? 1 : -1]) }};"


FLOATS = {
    "float": FloatType("float", 32, 24, 128, "FLT"),
    "double": FloatType("double", 64, 53, 1024, "DBL"),
}


def float_inputs(forest: Forest) -> FloatType:
    """Returns the one C float type for all features' raw values. Raises OptionError for a used category, or unless all
    features share one float type."""
    for feature in (forest.features[index] for index in forest.features_used()):
        if isinstance(feature.number, Category):
            raise OptionError(
                f"float can't take the category {feature.name!r}", where=opt.c_inputs, do=f"use {opt.c_inputs:words}"
            )
    kinds = {f.raw for f in forest.features}
    if len(kinds) > 1 or not all(isinstance(kind, Float) for kind in kinds):
        raise OptionError("float needs features of one float type", where=opt.c_inputs, do=f"use {opt.c_inputs:words}")
    return FLOATS["double"] if Float(64) in kinds else FLOATS["float"]
