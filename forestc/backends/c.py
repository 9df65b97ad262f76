"""The C backend: one C99 header, layout `branches` (nested ifs, fastest).

Inputs are the features' words, or raw floats compared by their bit patterns as integers: both give
what the quantised evaluator gives, for every input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from forestc.backends.c_quantiser import code_functions, quantiser, row_type
from forestc.backends.c_types import (
    FLOATS,
    compared,
    constant,
    float_inputs,
    label_type,
    leaves_of,
    members,
    reach_of,
    score_type,
    word_type,
)
from forestc.backends.c_values import TABLE, VALUES, ValueKind, shown
from forestc.backends.names import c_string, feature_name, identifier, plain
from forestc.errors import OptionError
from forestc.forest.conditions import Below, Condition, OneOf, Within
from forestc.forest.ir import LEAF, Feature, Forest, Part, Tree
from forestc.forest.numbers import Ordered, threshold_key, word_range, word_value
from forestc.forest.words import word_note
from hdl_templates import render


@dataclass(frozen=True)
class COptions:
    """inputs: `words` takes the quantised features as integers in one array (the manifest says how they are made);
    `struct` the same as members of a struct, each of its own type; `float` takes the model's own columns as floats.
    quantiser: adds a function that turns raw rows of `float` or `double` into words; `auto` chooses the type in which
    the model reads its columns; `none` adds none. values: adds a function for the probabilities of a classifier or the
    values of a regression, in fixed point of 15 or 31 bits or as `float`; `none` adds none. Both are inline: programs
    that do not call them do not contain them.
    """

    inputs: Literal["words", "struct", "float"] = "words"
    quantiser: Literal["auto", "none", "float", "double"] = "auto"
    values: ValueKind = "q31"

    def __post_init__(self) -> None:
        for option, known in (
            ("inputs", ("words", "struct", "float")),
            ("quantiser", ("auto", "none", "float", "double")),
            ("values", VALUES),
        ):
            if getattr(self, option) not in known:
                raise OptionError(f"c: {option}={getattr(self, option)}", do=f"use {', '.join(known)}")
        if self.inputs == "float" and self.quantiser in ("float", "double"):
            raise OptionError("c: inputs=float needs no quantiser", do="use inputs=words or struct")

    @property
    def raw(self) -> bool:
        """Whether the header takes raw rows."""
        return self.inputs == "float"

    @property
    def quantises(self) -> bool:
        """Whether the header turns raw rows into words."""
        return not self.raw and self.quantiser != "none"


def emit(forest: Forest, options: COptions | None = None) -> dict[str, str]:
    """{relative path: text} of the header. Same input, same bytes.

    Raises OptionError for float inputs if the model reads features as different float types.
    """
    options = options or COptions()
    prefix = identifier(forest.name)
    return {f"{prefix}.h": render("c/header.h.j2", **_Header(forest, prefix, options).view())}


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
        self.raw = options.raw
        self.struct = options.inputs == "struct"
        self.row = row_type(forest, options.quantiser) if options.quantises else None
        self.float = float_inputs(forest) if self.raw else FLOATS["float"]
        self.bits = self.float.bits
        self.score = score_type(forest)
        self.shown = shown(forest, prefix, options.values)
        self.members = members(forest) if self.struct else []
        self.conditions: dict[int, str] = {}
        self.type = f"{prefix}_features" if self.struct else self.float.name if self.raw else word_type(forest)

    def view(self) -> dict[str, object]:
        """The variables of the template."""
        forest, macro = self.forest, self.prefix.upper()
        varying = [index for index, tree in enumerate(forest.trees) if len(tree.inner)]
        starts = [int(b) for b in forest.bias]
        for tree in forest.trees:
            if not len(tree.inner):
                for place, output in enumerate(tree.outputs):
                    starts[output] += int(tree.values[tree.leaf[0], place])
        combined = {"vote": self._votes, "average": self._averages, "median": self._median}.get(forest.combine.kind)
        combined = combined if forest.parts else None
        adds = bool(forest.parts) or forest.aggregate.kind == "sum"
        return {
            "prefix": self.prefix,
            "macro": macro,
            "guard": f"FORESTC_{macro}_H",
            "title": f"{len(forest.trees)} trees, {forest.n_nodes} nodes",
            "input_note": (
                f"x: the model's {forest.columns} columns as it was trained with them; those it reads:"
                if self.raw
                else "x: the features' words:"
                if self.struct
                else "x: the features' words, in this order:"
            ),
            "input_map": [self._input_note(i, f) for i, f in enumerate(forest.features)] or ["none"],
            "n_inputs": max(1, forest.columns if self.raw else len(forest.features)),
            "n_outputs": forest.n_scores,
            "n_sums": forest.n_outputs if combined else 0,
            "targets": [self._target(index) for index, part in enumerate(forest.targets) if part.classes],
            "several": len(forest.targets) > 1,
            "largest": self._largest() if forest.parts and forest.combine.kind in ("each", "vote") else [],
            "scale": repr(float(forest.scale or 1.0)),
            "places": [
                (f"{macro}_{feature_name(i, f.name).upper()}", f.column if self.raw else i)
                for i, f in enumerate(forest.features)
            ]
            or [(f"{macro}_NONE", 0)],
            "members": self.members,
            "code_type": "int32_t",
            "x_type": self.type,
            "x_in": f"const {self.type} *x" if self.struct else f"const {self.type} x[{macro}_INPUTS]",
            "x_out": f"{self.type} *x" if self.struct else f"{self.type} x[{macro}_INPUTS]",
            "needs_floats": self.raw or self.row is not None,
            "float_checks": self._float_checks() if self.raw else [],
            "n_columns": max(1, forest.columns) if self.row is not None else 0,
            "quantiser": self._quantiser(),
            "shown": self.shown,
            "power_table": TABLE,
            "floats": self.shown is not None and self.shown.kind == "float",
            "codes": [] if self.raw else code_functions(forest, self.prefix),
            "helpers": self._helpers() if varying else [],
            "trees": [self.tree(index) for index in varying],
            "score_type": self.score,
            "sums_body": self._sums("sums" if combined else "scores", varying, starts) if adds else self._extremes(),
            "combined_body": combined() if combined else [],
            "curves": forest.combine.kind == "average" and bool(forest.parts),
            "shares": {part.link.kind for part in forest.parts if part.curves} & {"softmax", "shares"},
            "label_type": label_type(self.forest),
            "predict_body": self._predict_each() if len(forest.targets) > 1 else self._predict(),
        }

    def _target(self, index: int) -> dict[str, object]:
        """The class names of a prediction target."""
        classes = self.forest.targets[index].classes
        text = not all(isinstance(c, int) and abs(c) < 1 << 63 for c in classes)
        return {
            "suffix": f"_{index}" if len(self.forest.targets) > 1 else "",
            "macro": f"_{index}" if len(self.forest.targets) > 1 else "",
            "scale": repr(float(self.forest.targets[index].scale)),
            "text": text,
            "labels": [c_string(str(c)) if text else constant(int(c)) for c in classes],
        }

    def _largest(self) -> list[str]:
        """A function for the index of the largest score, the first or last of equal ones."""
        label = label_type(self.forest)
        loop = self._argmax("count", "scores[k] > scores[best] || (last && scores[k] == scores[best])")
        return [
            f"static inline {label} {self.prefix}_largest(const {self.score} *scores, {label} count, int last)",
            "{",
            *(f"    {line}" for line in loop),
            "}",
        ]

    def _argmax(self, count: str, better: str, comment: str = "", *made: str) -> list[str]:
        """C statements that return the index `best` of all `k` below a count. better: the condition that k is better
        than best. comment: on this condition. made: statements that compute the scores."""
        label = label_type(self.forest)
        return [
            f"{label} best = 0u;",
            f"{label} k;",
            *made,
            f"for (k = 1u; k < {count}; k++) {{",
            f"    if ({better}) {{{comment}",
            "        best = k;",
            "    }",
            "}",
            "return best;",
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
        return f"({label_type(self.forest)})({scores}[{part.stop - 1}] >= {constant(threshold)})"

    def _votes(self) -> list[str]:
        forest = self.forest
        lines = [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);"]
        lines += [f"scores[{k}] = 0;" for k in range(len(forest.classes))]
        for part, weight in zip(forest.parts, self._weights(), strict=True):
            place = f"scores[{self._decided(part, 'sums')}]"
            lines.append(f"{place} = ({self.score})({place} + {constant(weight)});")
        return lines

    def _averages(self) -> list[str]:
        forest, steps = self.forest, self.forest.steps
        if forest.decision.kind == "argmax":
            return self._means()
        lines, sums = [], []
        for index, part in enumerate(forest.parts):
            cuts = ", ".join(map(constant, part.curves[0]))
            lines.append(f"static const {self.score} curve_{index}[{steps}] = {{{cuts}}};")
        for index, weight in enumerate(self._weights()):
            level = f"{self.prefix}_level(sums[{forest.parts[index].start}], curve_{index}, {steps})"
            sums.append(f"scores[1] = ({self.score})(scores[1] + {constant(weight)} * {level});")
        lines += [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);", "scores[1] = 0;", *sums]
        total = steps * sum(self._weights())
        return [*lines, f"scores[0] = ({self.score})({constant(total)} - scores[1]);"]

    def _means(self) -> list[str]:
        """The weighted sum of the parts' values for each class."""
        forest, steps, score, classes = self.forest, self.forest.steps, self.score, len(self.forest.classes)
        curves, body = [], []
        for index, (part, weight) in enumerate(zip(forest.parts, self._weights(), strict=True)):
            values = [f"sums[{part.start + k}]" for k in range(classes)]
            if part.curves and part.link.kind == "softmax":
                body.append(f"{self.prefix}_below_largest(sums + {part.start}, {classes});")
            for place, curve in enumerate(part.curves):
                cuts = ", ".join(map(constant, curve))
                curves.append(f"static const {score} curve_{index}_{place}[{steps}] = {{{cuts}}};")
            for k in range(part.width if part.curves else 0):
                own = f"curve_{index}_{k if len(part.curves) > 1 else 0}"
                body.append(f"levels[{k}] = {self.prefix}_level(sums[{part.start + k}], {own}, {steps});")
                values[k] = f"levels[{k}]"
            if part.width == 1:
                values = [f"({steps} - levels[0])", "levels[0]"]
            elif part.curves and part.link.kind in ("softmax", "shares"):
                body.append(f"{self.prefix}_shares(levels, {classes}, {steps});")
            for k, one in enumerate(values):
                body.append(f"scores[{k}] = ({score})(scores[{k}] + {constant(weight)} * ({score}){one});")
        return [
            *curves,
            f"{score} sums[{forest.n_outputs}];",
            f"int32_t levels[{classes}];",
            f"{self.prefix}_sums(x, sums);",
            *(f"scores[{k}] = 0;" for k in range(classes)),
            *body,
        ]

    def _median(self) -> list[str]:
        """The weighted median: the smallest sum such that parts with sums up to it have half of the weight."""
        weights = self._weights()
        count, needed = len(weights), -(-sum(weights) // 2)
        return [
            f"static const int32_t weights[{count}] = {{{', '.join(map(constant, weights))}}};",
            f"{self.score} sums[{count}];",
            "int best = -1;",
            "int i;",
            "int j;",
            f"{self.prefix}_sums(x, sums);",
            f"for (i = 0; i < {count}; i++) {{",
            "    int32_t weight = 0;",
            "    if (best >= 0 && sums[i] >= sums[best]) {",
            "        continue;",
            "    }",
            f"    for (j = 0; j < {count}; j++) {{",
            "        weight += sums[j] <= sums[i] ? weights[j] : 0;",
            "    }",
            f"    best = weight >= {constant(needed)} ? i : best;",
            "}",
            "scores[0] = sums[best];",
        ]

    def _weights(self) -> list[int]:
        return [int(weight) for weight in self.forest.combine.weights or [1.0] * len(self.forest.parts)]

    def _predict_each(self) -> list[str]:
        lines = [f"{self.score} scores[{self.forest.n_outputs}];", f"{self.prefix}_scores(x, scores);"]
        decided = [self._decided(part, "scores") for part in self.forest.targets]
        if not any("scores" in text for text in decided):
            lines.append("(void)scores;")
        return lines + [f"labels[{index}] = {text};" for index, text in enumerate(decided)]

    def place(self, index: int) -> str:
        """The C expression of a feature's value or word."""
        if self.struct:
            return f"x->{self.members[index][0]}"
        return f"x[{self.forest.features[index].column if self.raw else index}]"

    def _kind(self, index: int) -> str:
        return self.members[index][1] if self.struct else self.type

    def _quantiser(self) -> dict[str, object] | None:
        if self.row is None:
            return None
        return quantiser(self.forest, self.prefix, self.row, self.place, self._kind)

    def _input_note(self, index: int, feature: Feature) -> str:
        named = f"{self.place(index)} {plain(feature.name)}"
        if self.raw:
            return f"{named}{', NaN means missing' * feature.missing}"
        return f"{named}: {word_note(self.forest, index)}"

    def _float_checks(self) -> list[str]:
        """Lines that stop a compiler whose floats have other bit patterns. The array finds what the macros of
        <float.h> do not show."""
        what = f"{self.float.name} is not the {self.bits}-bit float of IEEE 754 here"
        lines = [
            f"#if !({self.float.fits})",
            f'#error "{what}: compile the model with --c-inputs words, which needs no floats"',
            "#endif",
        ]
        if self.float.halves_turned:
            lines += [
                f"#if {self.float.halves_turned}",
                '#error "double has its halves the other way round here: compile the model with --c-inputs words"',
                "#endif",
            ]
        return [*lines, self.float.has_size(self.prefix, "use_c_inputs_words"), ""]

    def _helpers(self) -> list[str]:
        if not self.raw:
            return []
        bits, name = self.bits, self.float.name
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

    def _sums(self, into: str, varying: list[int], starts: list[int]) -> list[str]:
        lines = [] if varying else ["(void)x;"]
        lines += [f"{into}[{output}] = {constant(value)};" for output, value in enumerate(starts)]
        for index in varying:
            tree = self.forest.trees[index]
            if len(tree.outputs) == 1:
                target = f"{into}[{tree.outputs[0]}]"
                lines.append(f"{target} = ({self.score})({target} + {self.prefix}_tree_{index}(x));")
            else:
                lines.append(f"{self.prefix}_tree_{index}(x, {into});")
        return lines

    def _extremes(self) -> list[str]:
        """Each score as the largest or smallest value of its trees. If they have one value beside that at which the
        score starts, trees are asked one after the other until one has it."""
        forest, largest = self.forest, self.forest.aggregate.kind == "max"
        starts, lines, called = [], [], set()
        for output, bias in enumerate(forest.bias.tolist()):
            used = {i: leaves_of(tree, output) for i, tree in enumerate(forest.trees) if output in tree.outputs}
            start = max(map(min, used.values())) if largest else min(map(max, used.values()))
            ends = {value for own in used.values() for value in own if (value > start if largest else value < start)}
            asked = [index for index, own in used.items() if own & ends]
            target = f"scores[{output}]"
            starts.append(f"{target} = {constant(bias + start)};")
            if len(ends) == 1 and all(len(forest.trees[index].outputs) == 1 for index in asked):
                (end,) = ends
                calls = [f"{self.prefix}_tree_{index}(x) == {constant(end)}" for index in asked]
                lines += [f"if ({calls[0]}", *(f"    || {call}" for call in calls[1:])]
                lines[-1] += ") {"
                lines += [f"    {target} = {constant(bias + end)};", "}"]
                continue
            for index in asked:
                if len(forest.trees[index].outputs) > 1:
                    called.add(index)
                    continue
                lines += [
                    f"value = ({self.score})({self.prefix}_tree_{index}(x) + {constant(bias)});",
                    *self._taken(target, "value"),
                ]
        lines += [f"{self.prefix}_tree_{index}(x, scores);" for index in sorted(called)]
        declared = [f"{self.score} value;"] if any("value = " in line for line in lines) else []
        return [*declared, *([] if lines else ["(void)x;"]), *starts, *lines]

    def _taken(self, target: str, value: str) -> list[str]:
        """C statements that make a score the larger or smaller of itself and a value."""
        sign = ">" if self.forest.aggregate.kind == "max" else "<"
        return [f"if ({value} {sign} {target}) {{", f"    {target} = {value};", "}"]

    def _predict(self) -> list[str]:
        if not self.forest.decides:
            return []
        count, (part,) = self.forest.n_scores, self.forest.targets
        scores, made = f"{self.score} scores[{count}];", f"{self.prefix}_scores(x, scores);"
        if part.decision.kind == "argmax":
            sign, who = (">=", "the highest") if part.decision.ties == "last" else (">", "strict: the lowest")
            comment = f"  /* {who} index wins a tie */"
            return [scores, *self._argmax(f"{count}u", f"scores[k] {sign} scores[best]", comment, made)]
        text = self._decided(replace(part, stop=count), "scores")
        return [scores, made, f"return {text};"] if "scores" in text else ["(void)x;", f"return {text};"]

    def _reach(self, part: Part) -> tuple[int, int]:
        """The smallest and largest value of a part's last score, which its threshold decides on. For votes and
        averages, those of the sum over all parts for a class."""
        if self.forest.parts and part not in self.forest.parts:
            return 0, max(1, self.forest.steps) * sum(self._weights())
        return reach_of(self.forest, part.stop - 1)

    def tree(self, index: int) -> _TreeText:
        """One tree as nested ifs. The smaller side is nested and ends in a return, so the nesting depth
        is logarithmic in the number of leaves, however deep the tree."""
        tree, conditions = self.forest.trees[index], self.forest.conditions.places[index].tolist()
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
            condition = self.condition(conditions[node])
            if sizes[left] > sizes[right]:
                left, right = right, left
                condition = _negated(condition)
            body.append(f"{indent}if ({condition}) {{")
            stack += [("node", right, depth), ("close", 0, depth), ("node", left, depth + 1)]
        # an argument may be unused, after constant conditions or leaves of zero
        for argument in ("x",) if single else ("x", "scores"):
            if not any(f"{argument}[" in line or f"{argument}->" in line for line in body):
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
            return [f"return {constant(values[0])};"]
        lines: list[str] = []
        adds = bool(self.forest.parts) or self.forest.aggregate.kind == "sum"
        for output, value in zip(tree.outputs, values, strict=True):
            if not adds:
                lines += self._taken(f"scores[{output}]", constant(value + int(self.forest.bias[output])))
            elif value:
                lines.append(f"scores[{output}] = ({self.score})(scores[{output}] + {constant(value)});")
        return [*lines, "return;"]

    def condition(self, place: int) -> str:
        """The C of one of the forest's conditions: true where it sends a row left."""
        if place not in self.conditions:
            self.conditions[place] = self._condition(self.forest.conditions[place])
        return self.conditions[place]

    def _condition(self, condition: Condition) -> str:
        index, missing_left = condition.feature, condition.missing_left
        feature = self.forest.features[index]
        below = self._raw_below if self.raw else self._word_below
        absent = self._raw_absent(feature) if self.raw else self._word_absent(index, feature)
        match condition.test:
            case Below(threshold):
                inside = below(index, int(threshold))
                if not self.raw and not missing_left:
                    return inside  # the missing word is the highest
            case OneOf(codes):
                inside = " || ".join(f"{self.place(index)} == {self._compared(index, code)}" for code in codes) or "0"
                if absent is not None and not missing_left:
                    return inside
            case Within(cuts):
                ends = [below(index, int(cut)) for cut in cuts]
                spans = [
                    f"(!({low}) && ({high}))" if high else f"!({low})"
                    for low, high in zip(ends[::2], [*ends[1::2], ""], strict=False)
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
        return "1" if threshold > span.top else f"{self.place(index)} < {self._compared(index, threshold)}"

    def _word_absent(self, index: int, feature: Feature) -> str | None:
        """The C condition that a word means missing; None if none does."""
        missing = word_range(feature.number, feature.missing).missing
        return None if missing is None else f"{self.place(index)} == {self._compared(index, missing)}"

    def _compared(self, index: int, value: int) -> str:
        return compared(value, self._kind(index))

    def _raw_below(self, index: int, threshold: int) -> str:
        """The C condition that a raw float's word is below a threshold word."""
        feature = self.forest.features[index]
        x, bits = self.place(index), self.bits
        span = word_range(feature.number, feature.missing)
        if threshold <= span.low or threshold > span.high:
            return str(int(threshold > span.high))
        key = threshold
        if not isinstance(feature.number, Ordered):
            key = int(threshold_key(_ceiling(word_value(threshold, feature.number), bits), bits)[0])
        if key > 0:
            return f"{self.prefix}_bits({x}) < INT{bits}_C({key})"
        # the patterns of negative floats are in descending order: key < K is pattern > 2^(bits-1) - 1 - K
        pattern = (1 << (bits - 1)) - 1 - key
        return f"{self.prefix}_ubits({x}) > UINT{bits}_C({pattern})"

    def _raw_absent(self, feature: Feature) -> str | None:
        """The C condition that a raw float is NaN; None if NaN is not accepted."""
        if not feature.missing:
            return None
        bits = self.bits
        sign, infinity = (1 << (bits - 1)) - 1, {32: 0x7F800000, 64: 0x7FF0000000000000}[bits]
        return f"({self.prefix}_ubits(x[{feature.column}]) & UINT{bits}_C({sign})) > UINT{bits}_C({infinity})"


def _negated(condition: str) -> str:
    plain_comparison = "||" not in condition and "&&" not in condition and condition.count(" < ") == 1
    return condition.replace(" < ", " >= ") if plain_comparison else f"!({condition})"


def _ceiling(value: float, bits: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The smallest float of `bits` bits that is not below the value."""
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
