"""The C backend: one C99 header, layout `branches` (nested ifs, fastest).

Inputs are the features' words, or raw floats compared by their bit patterns as integers: both give
what the quantised evaluator gives, for every input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from forestc.backends.names import c_string, feature_name, identifier, plain
from forestc.backends.words import word_note
from forestc.errors import OptionError
from forestc.forest.ir import LEAF, NO_SET, Feature, Forest, Part, Tree
from forestc.forest.numbers import Category, Float, Ordered, threshold_key, word_range, word_value
from hdl_templates import render

_SIZES = (8, 16, 32, 64)


@dataclass(frozen=True)
class COptions:
    """inputs: `words` takes the quantised features as integers (the manifest says how they are made);
    `float` takes the model's own columns as floats."""

    inputs: Literal["words", "float"] = "words"

    def __post_init__(self) -> None:
        if self.inputs not in ("words", "float"):
            raise OptionError(f"c: inputs={self.inputs}", do="use words or float")


def emit(forest: Forest, options: COptions | None = None) -> dict[str, str]:
    """{relative path: text} of the header. Same input, same bytes.

    Raises OptionError for float inputs where features differ in the float type they are read as.
    """
    options = options or COptions()
    prefix = identifier(forest.name)
    return {f"{prefix}.h": render("c/header.h.j2", **_Header(forest, prefix, options).view())}


def word_type(forest: Forest) -> str:
    """The C type that holds every feature's words."""
    spans = [word_range(f.number, f.missing) for f in forest.features]
    return int_type(min((s.low for s in spans), default=0), max((s.top for s in spans), default=1))


def float_bits(forest: Forest) -> int:
    """32 or 64: the float type of all the features' raw values."""
    kinds = {f.raw for f in forest.features}
    if len(kinds) > 1 or not all(isinstance(kind, Float) for kind in kinds):
        raise OptionError("c: inputs=float needs features of one float type", do="use inputs=words")
    kind = next(iter(kinds), Float(32))
    return kind.bits if isinstance(kind, Float) else 32


def int_type(low: int, high: int) -> str:
    """The smallest stdint type for low..high."""
    for size in _SIZES:
        if low >= 0 and high < 1 << size:
            return f"uint{size}_t"
        if low < 0 and -(1 << (size - 1)) <= low and high < 1 << (size - 1):
            return f"int{size}_t"
    raise OptionError(f"no C integer holds {low}..{high}")


def score_type(forest: Forest) -> str:
    """The C type of scores: signed, at least 16 bits, wide enough for every partial sum."""
    reach = int(np.abs(forest.bias).max())
    for tree in forest.trees:
        reach += int(np.abs(tree.values).max(initial=0))
    if forest.parts and forest.combine.kind == "vote":
        reach = max(reach, int(sum(forest.combine.weights)), len(forest.parts))
    return int_type(-max(reach, 1 << 14), reach)


def label_type(forest: Forest) -> str:
    """The C type of a class index: holds the number of any target's classes, as a loop over them counts up to it."""
    return int_type(0, max(len(part.classes) for part in forest.targets))


def _constant(value: int) -> str:
    """An integer constant whose type fits its value on every target, 16-bit ints included."""
    if -(1 << 15) < value < 1 << 15:
        return str(value)
    if -(1 << 31) < value < 1 << 31:
        return f"INT32_C({value})"
    if 0 <= value < 1 << 32:
        return f"UINT32_C({value})"
    return f"(INT64_C({value + 1}) - 1)" if value == -(1 << 63) else f"INT64_C({value})"


@dataclass(frozen=True)
class _TreeText:
    name: str
    result: str
    extra: str
    body: list[str]


class _Header:
    def __init__(self, forest: Forest, prefix: str, options: COptions) -> None:
        self.forest = forest
        self.prefix = prefix
        self.raw = options.inputs == "float"
        self.bits = float_bits(forest) if self.raw else 0
        self.score = score_type(forest)
        self.width = 0 if self.raw else int(word_type(forest).strip("uint_"))

    def view(self) -> dict[str, object]:
        """Everything the template needs, finished."""
        forest, macro = self.forest, self.prefix.upper()
        varying = [index for index, tree in enumerate(forest.trees) if len(tree.inner)]
        constant = [int(b) for b in forest.bias]
        for tree in forest.trees:
            if not len(tree.inner):
                for place, output in enumerate(tree.outputs):
                    constant[output] += int(tree.values[tree.leaf[0], place])
        vote = bool(forest.parts) and forest.combine.kind == "vote"
        return {
            "prefix": self.prefix,
            "macro": macro,
            "guard": f"FORESTC_{macro}_H",
            "title": f"{len(forest.trees)} trees, {forest.n_nodes} nodes",
            "input_note": (
                f"x: the model's {forest.columns} columns as it was trained with them; those it reads:"
                if self.raw
                else "x: the features' words, in this order:"
            ),
            "input_map": [self._input_note(i, f) for i, f in enumerate(forest.features)] or ["none"],
            "n_inputs": max(1, forest.columns if self.raw else len(forest.features)),
            "n_outputs": forest.n_scores,
            "n_sums": forest.n_outputs if vote else 0,
            "targets": [self._target(index) for index, part in enumerate(forest.targets) if part.classes],
            "several": len(forest.targets) > 1,
            "largest": self._largest() if forest.parts else [],
            "scale": repr(float(forest.scale or 1.0)),
            "places": [
                (f"{macro}_{feature_name(i, f.name).upper()}", f.column if self.raw else i)
                for i, f in enumerate(forest.features)
            ]
            or [(f"{macro}_NONE", 0)],
            "x_type": {32: "float", 64: "double"}[self.bits] if self.raw else word_type(forest),
            "float_checks": self._float_checks() if self.raw else [],
            "helpers": self._helpers() if varying else [],
            "trees": [self.tree(index) for index in varying],
            "score_type": self.score,
            "sums_body": self._sums("sums" if vote else "scores", varying, constant),
            "votes_body": self._votes() if vote else [],
            "label_type": label_type(self.forest),
            "predict_body": self._predict_each() if len(forest.targets) > 1 else self._predict(),
        }

    def _target(self, index: int) -> dict[str, object]:
        """What a target's classes are called."""
        classes = self.forest.targets[index].classes
        text = not all(isinstance(c, int) and abs(c) < 1 << 63 for c in classes)
        return {
            "suffix": f"_{index}" if len(self.forest.targets) > 1 else "",
            "macro": f"_{index}" if len(self.forest.targets) > 1 else "",
            "scale": repr(float(self.forest.targets[index].scale)),
            "text": text,
            "labels": [c_string(str(c)) if text else _constant(int(c)) for c in classes],
        }

    def _largest(self) -> list[str]:
        """A function that finds the largest of some scores, of equals the first or the last."""
        kind, label = self.score, label_type(self.forest)
        return [
            f"static inline {label} {self.prefix}_largest(const {kind} *scores, {label} count, int last)",
            "{",
            f"    {label} best = 0u;",
            f"    {label} k;",
            "    for (k = 1u; k < count; k++) {",
            "        if (scores[k] > scores[best] || (last && scores[k] == scores[best])) {",
            "            best = k;",
            "        }",
            "    }",
            "    return best;",
            "}",
        ]

    def _decided(self, part: Part, scores: str) -> str:
        """The C expression of a part's class index."""
        if part.decision.kind == "argmax":
            last = int(part.decision.ties == "last")
            return f"{self.prefix}_largest({scores} + {part.start}, {part.stop - part.start}u, {last})"
        lowest, highest = self._reach(part)
        threshold = int(part.decision.threshold)
        if threshold <= lowest or threshold > highest:
            return f"{int(threshold <= lowest)}u"
        return f"({label_type(self.forest)})({scores}[{part.start}] >= {_constant(threshold)})"

    def _votes(self) -> list[str]:
        forest = self.forest
        lines = [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);"]
        lines += [f"scores[{k}] = 0;" for k in range(len(forest.classes))]
        for part, weight in zip(forest.parts, forest.combine.weights or [1.0] * len(forest.parts), strict=True):
            place = f"scores[{self._decided(part, 'sums')}]"
            lines.append(f"{place} = ({self.score})({place} + {_constant(int(weight))});")
        return lines

    def _predict_each(self) -> list[str]:
        lines = [f"{self.score} scores[{self.forest.n_outputs}];", f"{self.prefix}_scores(x, scores);"]
        decided = [self._decided(part, "scores") for part in self.forest.targets]
        if not any("scores" in text for text in decided):
            lines.append("(void)scores;")
        return lines + [f"labels[{index}] = {text};" for index, text in enumerate(decided)]

    def _input_note(self, index: int, feature: Feature) -> str:
        place = feature.column if self.raw else index
        if self.raw:
            return f"x[{place}] {plain(feature.name)}{', NaN means missing' * feature.missing}"
        return f"x[{place}] {plain(feature.name)}: {word_note(self.forest, index)}"

    def _float_checks(self) -> list[str]:
        """What stops a compiler whose floats are not those whose bit patterns are compared: avr-gcc gives a double 32
        bits. The array catches what the macros of <float.h> don't tell."""
        bits, name = self.bits, {32: "float", 64: "double"}[self.bits]
        macro, digits, exponent = {32: ("FLT", 24, 128), 64: ("DBL", 53, 1024)}[bits]
        what = f"{name} is not the {bits}-bit float of IEEE 754 here"
        fits = f"{macro}_MANT_DIG == {digits} && {macro}_MIN_EXP == {3 - exponent} && {macro}_MAX_EXP == {exponent}"
        lines = [
            f"#if !(FLT_RADIX == 2 && {fits})",
            f'#error "{what}: compile the model with --c-inputs words, which needs no floats"',
            "#endif",
        ]
        if bits == 64:
            lines += [
                "#if defined(__FLOAT_WORD_ORDER__) && __FLOAT_WORD_ORDER__ != __BYTE_ORDER__",
                '#error "double has its halves the other way round here: compile the model with --c-inputs words"',
                "#endif",
            ]
        size = f"sizeof({name}) == sizeof(int{bits}_t)"
        return [
            *lines,
            f"typedef char {self.prefix}_{name}_has_{bits}_bits_else_use_c_inputs_words[{size} ? 1 : -1];",
            "",
        ]

    def _helpers(self) -> list[str]:
        if not self.raw:
            return []
        bits, name = self.bits, {32: "float", 64: "double"}[self.bits]
        return [
            "/* A float's bits order like integers: upwards if it is positive, downwards if negative. */",
            f"static inline int{bits}_t {self.prefix}_bits({name} value)",
            "{",
            f"    union {{ {name} f; int{bits}_t i; }} u;",
            "    u.f = value;",
            "    return u.i;",
            "}",
            "",
            f"static inline uint{bits}_t {self.prefix}_ubits({name} value)",
            "{",
            f"    union {{ {name} f; uint{bits}_t u; }} u;",
            "    u.f = value;",
            "    return u.u;",
            "}",
            "",
        ]

    def _sums(self, into: str, varying: list[int], constant: list[int]) -> list[str]:
        lines = [] if varying else ["(void)x;"]
        lines += [f"{into}[{output}] = {_constant(value)};" for output, value in enumerate(constant)]
        for index in varying:
            tree = self.forest.trees[index]
            if len(tree.outputs) == 1:
                target = f"{into}[{tree.outputs[0]}]"
                lines.append(f"{target} = ({self.score})({target} + {self.prefix}_tree_{index}(x));")
            else:
                lines.append(f"{self.prefix}_tree_{index}(x, {into});")
        return lines

    def _predict(self) -> list[str]:
        outputs, decision, label = self.forest.n_scores, self.forest.decision, label_type(self.forest)
        lines = [f"{self.score} scores[{outputs}];"]
        if decision.kind == "threshold":
            lines.append(f"{self.prefix}_scores(x, scores);")
            lowest, highest = self._reach(self.forest.whole)
            threshold = int(decision.threshold)
            if threshold <= lowest or threshold > highest:
                return ["(void)x;", f"return {int(threshold <= lowest)}u;"]
            lines.append(f"return ({label})(scores[0] >= {_constant(threshold)});")
            return lines
        sign, who = (">=", "the highest") if decision.ties == "last" else (">", "strict: the lowest")
        return [
            *lines,
            f"{label} best = 0u;",
            f"{label} k;",
            f"{self.prefix}_scores(x, scores);",
            f"for (k = 1u; k < {outputs}u; k++) {{",
            f"    if (scores[k] {sign} scores[best]) {{  /* {who} index wins a tie */",
            "        best = k;",
            "    }",
            "}",
            "return best;",
        ]

    def _reach(self, part: Part) -> tuple[int, int]:
        """The smallest and largest sum of a part's one output."""
        low = high = int(self.forest.bias[part.start])
        for tree in (self.forest.trees[index] for index in self.forest.trees_of(part)):
            column = tree.values[:, tree.outputs.index(part.start)]
            low += int(column.min())
            high += int(column.max())
        return low, high

    def tree(self, index: int) -> _TreeText:
        """One tree as nested ifs. The smaller side is nested and ends in a return, so nesting grows with
        the logarithm of the leaves, however deep the tree."""
        tree = self.forest.trees[index]
        single = len(tree.outputs) == 1
        sizes = _subtree_sizes(tree)
        body: list[str] = []
        stack: list[tuple[str, int, int]] = [("node", 0, 0)]
        while stack:
            what, node, depth = stack.pop()
            indent = "    " * depth
            if what == "close":
                body.append(f"{indent}}}")
                continue
            if tree.left[node] == LEAF:
                body += [indent + line for line in self._leaf(tree, node, single)]
                continue
            left, right = int(tree.left[node]), int(tree.right[node])
            condition = self.condition(tree, node)
            if sizes[left] > sizes[right]:
                left, right = right, left
                condition = _negated(condition)
            body.append(f"{indent}if ({condition}) {{")
            stack += [("node", right, depth), ("close", 0, depth), ("node", left, depth + 1)]
        # conditions that can't hold or leaves of zero may leave an argument unread
        for argument in ("x",) if single else ("x", "scores"):
            if not any(f"{argument}[" in line for line in body):
                body.insert(0, f"(void){argument};")
        return _TreeText(
            name=f"{self.prefix}_tree_{index}",
            result=self.score if single else "void",
            extra="" if single else f", {self.score} *scores",
            body=body,
        )

    def _leaf(self, tree: Tree, node: int, single: bool) -> list[str]:
        values = tree.values[tree.leaf[node]].tolist()
        if single:
            return [f"return {_constant(values[0])};"]
        lines = []
        for output, value in zip(tree.outputs, values, strict=True):
            if value:
                lines.append(f"scores[{output}] = ({self.score})(scores[{output}] + {_constant(value)});")
        return [*lines, "return;"]

    def condition(self, tree: Tree, node: int) -> str:
        """The C condition that sends a row left."""
        index = int(tree.feature[node])
        feature = self.forest.features[index]
        missing_left = bool(tree.missing_left[node])
        if self.raw and isinstance(feature.number, Category):
            raise OptionError(f"c: inputs=float can't take the category {feature.name!r}", do="use inputs=words")
        below = self._raw_below if self.raw else self._word_below
        absent = self._raw_absent(feature) if self.raw else self._word_absent(index, feature)
        if tree.set_index[node] == NO_SET:
            if absent is None:
                return below(index, int(tree.threshold[node]))
            if not self.raw and not missing_left:
                return below(index, int(tree.threshold[node]))  # the missing word is the highest
            inside = below(index, int(tree.threshold[node]))
        elif isinstance(feature.number, Category):
            members = sorted(int(m) for m in tree.sets[tree.set_index[node]])
            inside = " || ".join(f"x[{index}] == {_constant(m)}" for m in members) or "0"
            missing_left = missing_left or absent is None
            if not missing_left:
                return inside
        else:
            cuts = [below(index, int(cut)) for cut in tree.sets[tree.set_index[node]]]
            spans = [
                f"(!({low}) && ({high}))" if high else f"!({low})"
                for low, high in zip(cuts[::2], [*cuts[1::2], ""], strict=False)
            ]
            inside = f"({' || '.join(spans)})" if spans else "0"
        if absent is None:
            return inside
        return f"{inside} || {absent}" if missing_left else f"{inside} && !({absent})"

    def _word_below(self, index: int, threshold: int) -> str:
        """The C condition `word < threshold`."""
        span = word_range(self.forest.features[index].number, self.forest.features[index].missing)
        if threshold <= span.low:
            return "0"
        return "1" if threshold > span.top else f"x[{index}] < {self._unsigned(threshold)}"

    def _word_absent(self, index: int, feature: Feature) -> str | None:
        """The C condition that a word means missing; None where none does."""
        missing = word_range(feature.number, feature.missing).missing
        return None if missing is None else f"x[{index}] == {self._unsigned(missing)}"

    def _unsigned(self, value: int) -> str:
        # comparing a uint32_t with a signed constant would warn
        wide = word_type(self.forest).startswith("u") and self.width >= 32
        return f"UINT{self.width}_C({value})" if wide else _constant(value)

    def _raw_below(self, index: int, threshold: int) -> str:
        """The C condition that a raw float's word is below a threshold word."""
        feature = self.forest.features[index]
        x, bits = f"x[{feature.column}]", self.bits
        span = word_range(feature.number, feature.missing)
        if threshold <= span.low or threshold > span.high:
            return str(int(threshold > span.high))
        key = threshold
        if not isinstance(feature.number, Ordered):
            key = int(threshold_key(_ceiling(word_value(threshold, feature.number), bits), bits)[0])
        if key > 0:
            return f"{self.prefix}_bits({x}) < INT{bits}_C({key})"
        # a negative float's pattern grows downwards: key < K is pattern > 2^(bits-1) - 1 - K
        pattern = (1 << (bits - 1)) - 1 - key
        return f"{self.prefix}_ubits({x}) > UINT{bits}_C({pattern})"

    def _raw_absent(self, feature: Feature) -> str | None:
        """The C condition that a raw float is NaN; None where NaN is not taken."""
        if not feature.missing:
            return None
        bits = self.bits
        sign, infinity = (1 << (bits - 1)) - 1, {32: 0x7F800000, 64: 0x7FF0000000000000}[bits]
        return f"({self.prefix}_ubits(x[{feature.column}]) & UINT{bits}_C({sign})) > UINT{bits}_C({infinity})"


def _negated(condition: str) -> str:
    plain_comparison = "||" not in condition and "&&" not in condition and condition.count(" < ") == 1
    return condition.replace(" < ", " >= ") if plain_comparison else f"!({condition})"


def _ceiling(value: float, bits: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The smallest float of so many bits that is not below the value."""
    if bits == 64:
        return np.array([value])
    near = np.float32(value)
    if float(near) < value:
        near = np.nextafter(near, np.float32(math.inf))
    return np.array([float(near)])


def _subtree_sizes(tree: Tree) -> list[int]:
    sizes = [1] * tree.size
    for level in reversed(tree.levels):
        for node in level.tolist():
            if tree.left[node] != LEAF:
                sizes[node] += sizes[int(tree.left[node])] + sizes[int(tree.right[node])]
    return sizes
