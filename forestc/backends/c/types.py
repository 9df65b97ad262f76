"""C types and constants for the numbers of a forest: integers, and floats that are compared by their bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from forestc.backends.names import feature_name
from forestc.errors import OptionError
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import Category, Float, word_range

_SIZES = (8, 16, 32, 64)  # bits of the integers of stdint.h


def int_type(low: int, high: int) -> str:
    """The smallest stdint type for low..high."""
    for size in _SIZES:
        if low >= 0 and high < 1 << size:
            return f"uint{size}_t"
        if low < 0 and -(1 << (size - 1)) <= low and high < 1 << (size - 1):
            return f"int{size}_t"
    raise OptionError(f"no C integer holds {low}..{high}")


def size_of(kind: str) -> int:
    """The bytes of a stdint type."""
    return int("".join(filter(str.isdigit, kind))) // 8


def word_type(forest: Forest) -> str:
    """The C type that holds every feature's words."""
    spans = [word_range(f.number, f.missing) for f in forest.features]
    return int_type(min((s.low for s in spans), default=0), max((s.top for s in spans), default=1))


def members(forest: Forest) -> list[tuple[str, str]]:
    """Names and types of the struct's members; C has no empty struct."""
    typed = []
    for index, feature in enumerate(forest.features):
        span = word_range(feature.number, feature.missing)
        typed.append((feature_name(index, feature.name), int_type(span.low, span.top)))
    return typed or [("none", "uint8_t")]


@lru_cache(maxsize=4)  # estimates ask for every tree
def score_type(forest: Forest) -> str:
    """The C type of scores: signed, the narrowest that holds every partial sum, in any order of the trees."""
    bounds = sums_of if forest.adds else reach_of
    low, high = zip(*(bounds(forest, k) for k in range(forest.n_outputs)), strict=True)
    least, most = min(0, *low), max(0, *high)
    reach = max(-least, most)
    if forest.combine.kind == "vote":
        most = max(most, int(sum(forest.combine.weights)), len(forest.parts))
    elif forest.combine.kind == "average":  # a cut may lie one beyond all scores
        mean = [forest.steps if part.curves else reach for part in forest.parts]
        wide = any(part.link.kind == "softmax" for part in forest.parts)  # it compares differences of scores
        total = sum(weight * reached for weight, reached in zip(forest.integer_weights, mean, strict=True))
        most = max((reach << wide) + 1, total)
        least = -most
    return int_type(min(least, -1), most)


def sums_of(forest: Forest, output: int) -> tuple[int, int]:
    """Bounds of every sum of the bias of an output and leaves of some of its trees, each of which may be left out."""
    used = [{0, *leaves_of(tree, output)} for tree in forest.trees if output in tree.outputs]
    bias = int(forest.bias[output])
    return min(0, bias) + sum(map(min, used)), max(0, bias) + sum(map(max, used))


def leaves_of(tree: Tree, output: int) -> set[int]:
    """The values that leaves of a tree have for one of its outputs."""
    return set(tree.values[tree.leaf[tree.left == LEAF], tree.outputs.index(output)].tolist())


def reach_of(forest: Forest, output: int) -> tuple[int, int]:
    """Bounds of a score: the smallest and largest sum, or extreme, of the trees that feed it."""
    used = [leaves_of(tree, output) for tree in forest.trees if output in tree.outputs]
    bias = int(forest.bias[output])
    if forest.adds:
        return bias + sum(map(min, used)), bias + sum(map(max, used))
    joined = max if forest.aggregate.kind == "max" else min
    return bias + joined(map(min, used)), bias + joined(map(max, used))


def label_type(forest: Forest) -> str:
    """The C type of a class index: it holds the number of classes of any prediction target, as loops count up to it."""
    return int_type(0, max(len(part.classes) for part in forest.targets))


def constant(value: int) -> str:
    """An integer constant whose type fits its value on every target, 16-bit ints included."""
    if -(1 << 15) < value < 1 << 15:
        return str(value)
    if -(1 << 31) < value < 1 << 31:
        return f"INT32_C({value})"
    if 0 <= value < 1 << 32:
        return f"UINT32_C({value})"
    return f"(INT64_C({value + 1}) - 1)" if value == -(1 << 63) else f"INT64_C({value})"


def compared(value: int, kind: str) -> str:
    """A constant to compare with a word of this type: unsigned with unsigned, and no wider than the word, for compilers
    that warn (MISRA C 10.4) and processors of 8 bits."""
    if kind in ("uint8_t", "uint16_t"):
        return f"{value}u"
    return f"{kind[:-2].upper()}_C({value})" if kind in ("uint32_t", "uint64_t") else constant(value)


@dataclass(frozen=True)
class FloatType:
    """A float type of C, with the bit pattern of IEEE 754 if `fits` holds."""

    name: str
    bits: int
    digits: int
    exponent: int
    macro: str

    @property
    def infinity(self) -> int:
        """The bit pattern of infinity."""
        return (1 << (self.bits - 1)) - (1 << (self.digits - 1))

    @property
    def fits(self) -> str:
        """The preprocessor condition that the type is this float; a double of avr-gcc has 32 bits."""
        m = self.macro
        return (
            f"FLT_RADIX == 2 && {m}_MANT_DIG == {self.digits} && {m}_MIN_EXP == {3 - self.exponent} && "
            f"{m}_MAX_EXP == {self.exponent}"
        )

    @property
    def halves_turned(self) -> str:
        """The condition that its halves are in the opposite order to those of integers; "" for 32 bits."""
        turned = "defined(__FLOAT_WORD_ORDER__) && __FLOAT_WORD_ORDER__ != __BYTE_ORDER__"
        return turned if self.bits == 64 else ""

    def has_size(self, prefix: str, way_out: str) -> str:
        """A declaration that fails to compile if the macros of <float.h> do not match the type's size."""
        size = f"sizeof({self.name}) == sizeof(int{self.bits}_t)"
        return asserted(prefix, size, f"{self.name}_has_{self.bits}_bits_else_{way_out}")


def asserted(prefix: str, condition: str, name: str) -> str:
    """A declaration that fails to compile, and tells the name, if the condition does not hold."""
    return f"{prefix.upper()}_ASSERT({condition}, {prefix}_{name});"


FLOATS = {
    "float": FloatType("float", 32, 24, 128, "FLT"),
    "double": FloatType("double", 64, 53, 1024, "DBL"),
}


def float_inputs(forest: Forest) -> FloatType:
    """The float type of all features' raw values. Raises OptionError if they differ, and for categories."""
    for feature in (forest.features[index] for index in forest.features_used()):
        if isinstance(feature.number, Category):
            raise OptionError(f"--c-inputs float can't take the category {feature.name!r}", do="use --c-inputs words")
    kinds = {f.raw for f in forest.features}
    if len(kinds) > 1 or not all(isinstance(kind, Float) for kind in kinds):
        raise OptionError("--c-inputs float needs features of one float type", do="use --c-inputs words")
    return FLOATS["double"] if Float(64) in kinds else FLOATS["float"]
