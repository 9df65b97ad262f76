"""The C backend: one C99 header, in the layout `branches` or `calls` (nested ifs, fastest), `ranked` (the same, on
ranks), `nodes` or `masks` (tables, small), or `mixed` (trees of both kinds).

Inputs are the features' words, or raw values: integers as they are, floats compared by their bit patterns. All give
what the quantized evaluator gives, for every input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from forestc.backends.c import choice
from forestc.backends.c.branches import Branches
from forestc.backends.c.choice import Estimate, check, chosen_layout, estimates
from forestc.backends.c.conditions import Conditions
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.leaves import LeafSums
from forestc.backends.c.masks import MasksInC
from forestc.backends.c.nodes import NodesInC
from forestc.backends.c.quantizer import code_functions, quantizer, row_type
from forestc.backends.c.ranked import RankedInC
from forestc.backends.c.slots import SlotsInC
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.types import (
    FLOATS,
    asserted,
    constant,
    label_type,
    leaves_of,
    reach_of,
    score_type,
    size_of,
)
from forestc.backends.c.values import TABLE, shown
from forestc.backends.names import c_string, feature_name, identifier, plain
from forestc.forest.ir import Feature, Forest, Part
from forestc.forest.words import word_note
from forestc.layouts.masks import Masks, masks_of
from forestc.layouts.mixed import unrolled
from forestc.layouts.nodes import Nodes, nodes_of
from forestc.layouts.ranks import Ranks, ranks_of
from forestc.options.c import CLayout, COptions, CValues
from hdl_templates import render

LAYOUTS, VALUES = get_args(CLayout), get_args(CValues)
TABLES: Mapping[str, Callable[..., Nodes | Masks | Ranks]] = {
    "nodes": nodes_of, "mixed": nodes_of, "masks": masks_of, "ranked": ranks_of
}  # fmt: skip


def layout_record(forest: Forest, options: COptions) -> dict[str, Any] | None:
    """The layout that was chosen and what was estimated of all; None without a processor."""
    if not options.cpu:
        return None
    layouts = {name: estimate.as_dict() for name, estimate in estimated(forest, options, options.cpu).items()}
    return {"cpu": options.cpu, "entry": choice.entry_of(forest), "layout": options.c_layout, "layouts": layouts}


def estimated(forest: Forest, options: COptions, cpu: str) -> Mapping[choice.Layout, Estimate]:
    """Estimates by layout for a processor."""
    return estimates(forest, options.c_inputs, options.c_types, cpu, options.c_layout)


def emit(forest: Forest, options: COptions | None = None) -> dict[str, str]:
    """{relative path: text} of the header. Same input, same bytes.

    Raises OptionError as `check` does, for float inputs if the model reads features as different float types, and for
    types of columns that are not there.
    """
    options = options or COptions()
    check(options)
    prefix = identifier(forest.name)
    return {f"{prefix}.h": render("c/header.h.j2", **_Header(forest, prefix, options).view())}


class _Header:
    def __init__(self, forest: Forest, prefix: str, options: COptions) -> None:
        layout, inputs = chosen_layout(forest, options), inputs_of(forest, options.c_inputs, options.c_types)
        self.row = row_type(forest, options.c_quantizer) if options.quantizes else None
        self.codes = code_functions(forest, prefix, raw=options.raw)
        self.forest, self.inputs, self.prefix = (forest := inputs.forest), inputs, prefix
        self.raw, self.struct, self.type = options.raw, inputs.struct, inputs.type
        self.score = score_type(forest)
        self.shown = shown(forest, prefix, options.c_values)
        self.conditions = self._conditions(forest)
        self.branches = Branches(forest, prefix, self.score, self.conditions, f"const {self.type} *x")
        self.apart = layout in ("calls", "ranked")
        self.unrolled = unrolled(forest) if layout == "mixed" else []
        self.tables = self._tables(layout)
        if self.tables is None:
            self.unrolled = [index for index, tree in enumerate(forest.trees) if len(tree.inner)]

    def _conditions(self, forest: Forest) -> Conditions:
        return Conditions(self.prefix, replace(self.inputs, forest=forest))

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
        whole = "" if set(self.inputs.kinds) <= set(FLOATS) else "integers are never missing; "
        whole = whole if self.inputs.floats else whole.replace("integers", "they")
        return {
            "prefix": self.prefix,
            "macro": macro,
            "guard": f"FORESTC_{macro}_H",
            "title": f"{len(forest.trees)} trees, {forest.n_nodes} nodes",
            "input_note": (
                f"x: the model's {forest.columns} columns as it was trained with them; {whole}those it reads:"
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
            "largest": self._largest() if not forest.single and forest.combine.kind in ("each", "vote") else [],
            "scale": repr(float(forest.scale or 1.0)),
            "places": [
                (f"{macro}_{feature_name(i, f.name).upper()}", f.column if self.raw else i)
                for i, f in enumerate(forest.features)
            ]
            or [(f"{macro}_NONE", 0)],
            "members": list(zip(self.inputs.names, self.inputs.kinds, strict=True)) if self.struct else [],
            "members_note": "The model's columns, each of its own type."
            if self.raw
            else "The features' words, each of the smallest type that holds them.",
            "code_type": "int32_t",
            "x_type": self.type,
            "row_step": 1 if self.struct else f"{macro}_INPUTS",
            "asserts": self._asserts(),
            "x_in": self._x(),
            "x_out": f"{self.type} *x" if self.struct else f"{self.type} x[{macro}_INPUTS]",
            "needs_floats": (self.raw and bool(self.inputs.floats)) or self.row is not None,
            "float_checks": self._float_checks() if self.raw else [],
            "n_columns": max(1, forest.columns) if self.row is not None else 0,
            "quantizer": self._quantizer(),
            "shown": self.shown,
            "power_table": TABLE,
            "floats": self.shown is not None and self.shown.kind == "float",
            "codes": self.codes,
            "helpers": self.conditions.helpers() if varying else [],
            "trees": self.tables.trees() if isinstance(self.tables, RankedInC) else self.branches.trees(self.unrolled),
            "apart": self.apart,
            "tree_is": f"{macro}_TREE" if self.apart else "static inline",
            "tables": self.tables.lines() if self.tables else [],
            "score_type": self.score,
            "sums_body": self._sums("sums" if combined else "scores", varying, starts)
            if forest.adds
            else self._extremes(),
            "combined_body": combined() if combined else [],
            "curves": forest.combine.kind == "average",
            "shares": {part.link.kind for part in forest.parts if part.curves} & {"softmax", "shares"},
            "label_type": label_type(self.forest),
            "predict_body": self._predict_each() if len(forest.targets) > 1 else self._predict(),
        }

    def _asserts(self) -> list[str]:
        """Declarations that stop a compiler which lays words or scores out differently than rows and tables need."""
        words = [kind for kind in self.inputs.kinds if kind not in FLOATS]
        sized = [*sorted(set(words)), self.score, label_type(self.forest)]
        lines = [
            asserted(self.prefix, f"sizeof({kind}) == {size_of(kind)}u", f"{kind}_has_{8 * size_of(kind)}_bits")
            for kind in dict.fromkeys(sized)
        ]
        if self.forest.features and not self.struct:
            feature = self.forest.features[-1]
            last = f"{self.prefix.upper()}_{feature_name(len(self.forest.features) - 1, feature.name).upper()}"
            sign = "<" if self.raw else "+ 1 =="
            lines.append(asserted(self.prefix, f"{last} {sign} {self.prefix.upper()}_INPUTS", "inputs_are_all_there"))
        return lines

    def _x(self) -> str:
        """The declaration of the parameter x."""
        return f"const {self.type} *x" if self.struct else f"const {self.type} x[{self.prefix.upper()}_INPUTS]"

    def _tables(self, layout: str) -> NodesInC | MasksInC | RankedInC | None:
        """Tables of the trees that are not unrolled; None for branches, and without a split that decides anything."""
        trees = tuple(tree for index, tree in enumerate(self.forest.trees) if index not in set(self.unrolled))
        forest = replace(self.forest, trees=trees) if self.unrolled else self.forest
        if layout in ("branches", "calls"):
            return None
        made = TABLES[layout](forest, float_bytes=self.inputs.float_bytes)
        if not made.splits:
            return None
        flash = FlashTables(self.prefix)
        slots = SlotsInC(self._conditions(forest), flash, made.slots, self._x())
        leaves = LeafSums(forest, self.score, flash, made.leaves)
        match made:
            case Nodes():
                return NodesInC(flash, slots, leaves, made)
            case Masks():
                return MasksInC(flash, slots, leaves, made)
            case Ranks():
                return RankedInC(forest, flash, slots, leaves, made)

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
            return f"{self.prefix}_largest(&{scores}[{part.start}], {part.stop - part.start}u, {last})"
        lowest, highest = self._reach(part)
        threshold = int(part.decision.threshold)
        if threshold <= lowest or threshold > highest:
            return f"{int(threshold <= lowest)}u"
        return f"({label_type(self.forest)})({scores}[{part.stop - 1}] >= {constant(threshold)})"

    def _votes(self) -> list[str]:
        forest = self.forest
        lines = [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);"]
        lines += [f"scores[{k}] = 0;" for k in range(len(forest.classes))]
        for part, weight in zip(forest.parts, forest.integer_weights, strict=True):
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
        for index, weight in enumerate(forest.integer_weights):
            level = f"{self.prefix}_level(sums[{forest.parts[index].start}], curve_{index}, {steps})"
            sums.append(f"scores[1] = ({self.score})(scores[1] + {constant(weight)} * {level});")
        lines += [f"{self.score} sums[{forest.n_outputs}];", f"{self.prefix}_sums(x, sums);", "scores[1] = 0;", *sums]
        total = steps * sum(forest.integer_weights)
        return [*lines, f"scores[0] = ({self.score})({constant(total)} - scores[1]);"]

    def _means(self) -> list[str]:
        """The weighted sum of the parts' values for each class."""
        forest, steps, score, classes = self.forest, self.forest.steps, self.score, len(self.forest.classes)
        curves, body = [], []
        for index, (part, weight) in enumerate(zip(forest.parts, forest.integer_weights, strict=True)):
            values = [f"sums[{part.start + k}]" for k in range(classes)]
            if part.curves and part.link.kind == "softmax":
                body.append(f"{self.prefix}_below_largest(&sums[{part.start}], {classes});")
            for place, curve in enumerate(part.curves):
                cuts = ", ".join(map(constant, curve))
                curves.append(f"static const {score} curve_{index}_{place}[{steps}] = {{{cuts}}};")
            for k in range(part.width if part.curves else 0):
                curve_name = f"curve_{index}_{k if len(part.curves) > 1 else 0}"
                body.append(f"levels[{k}] = {self.prefix}_level(sums[{part.start + k}], {curve_name}, {steps});")
                values[k] = f"levels[{k}]"
            if part.width == 1:
                values = [f"({steps} - levels[0])", "levels[0]"]
            elif part.curves and part.link.kind in ("softmax", "shares"):
                body.append(f"{self.prefix}_shares(levels, {classes}, {steps});")
            for k, value in enumerate(values):
                body.append(f"scores[{k}] = ({score})(scores[{k}] + {constant(weight)} * ({score}){value});")
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
        weights = self.forest.integer_weights
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

    def _predict_each(self) -> list[str]:
        lines = [f"{self.score} scores[{self.forest.n_outputs}];", f"{self.prefix}_scores(x, scores);"]
        decided = [self._decided(part, "scores") for part in self.forest.targets]
        if not any("scores" in text for text in decided):
            lines.append("(void)scores;")
        return lines + [f"labels[{index}] = {text};" for index, text in enumerate(decided)]

    def _quantizer(self) -> dict[str, object] | None:
        if self.row is None:
            return None
        return quantizer(self.forest, self.prefix, self.row, self.inputs.place, self.inputs.kind)

    def _input_note(self, index: int, feature: Feature) -> str:
        named = f"{self.inputs.place(index)} {plain(feature.name)}"
        if not self.raw:
            return f"{named}: {word_note(self.forest, index)}"
        what = "" if self.inputs.floats and not self.struct else f": {self.inputs.kind(index)}"
        return f"{named}{what}{', NaN means missing' * feature.missing}"

    def _float_checks(self) -> list[str]:
        """Lines that stop a compiler whose floats have other bit patterns. The array finds what the macros of
        <float.h> do not show."""
        lines = []
        for kind in self.inputs.floats:
            lines += [
                f"#if !({kind.fits})",
                f'#error "{kind.name} is not the {kind.bits}-bit float of IEEE 754 here: compile the model with '
                '--c-inputs words, which needs no floats"',
                "#endif",
            ]
            if kind.halves_turned:
                lines += [
                    f"#if {kind.halves_turned}",
                    '#error "double has its halves the other way round here: compile the model with --c-inputs words"',
                    "#endif",
                ]
        return [*lines, *(kind.has_size(self.prefix, "use_c_inputs_words") for kind in self.inputs.floats), ""]

    def _sums(self, into: str, varying: list[int], starts: list[int]) -> list[str]:
        if self.tables is None:
            return self.branches.sums(into, varying, starts)
        return [*self.tables.sums(into), *(self.branches.sums(into, self.unrolled, []) if self.unrolled else [])]

    def _extremes(self) -> list[str]:
        """Each score as the largest or smallest value of its trees. If they have one value beside that at which the
        score starts, trees are asked one after the other until one has it."""
        forest, largest = self.forest, self.forest.aggregate.kind == "max"
        starts, lines, called = [], [], set()
        for output, bias in enumerate(forest.bias.tolist()):
            used = {i: leaves_of(tree, output) for i, tree in enumerate(forest.trees) if output in tree.outputs}
            start = max(map(min, used.values())) if largest else min(map(max, used.values()))
            ends = {value for held in used.values() for value in held if (value > start if largest else value < start)}
            asked = [index for index, held in used.items() if held & ends]
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
                    *self.branches.taken(target, "value"),
                ]
        lines += [f"{self.prefix}_tree_{index}(x, scores);" for index in sorted(called)]
        declared = [f"{self.score} value;"] if any("value = " in line for line in lines) else []
        return [*declared, *([] if lines else ["(void)x;"]), *starts, *lines]

    def _predict(self) -> list[str]:
        if not self.forest.decides:
            return []
        count, (part,) = self.forest.n_scores, self.forest.targets
        scores, made = f"{self.score} scores[{count}];", f"{self.prefix}_scores(x, scores);"
        if part.decision.kind == "argmax":
            sign, who = (">=", "the highest") if part.decision.ties == "last" else (">", "strict: the lowest")
            comment = f"  /* {who} index wins a tie */"
            return [scores, *self._argmax(f"{count}u", f"scores[k] {sign} scores[best]", comment, made)]
        text = self._decided(part, "scores")
        return [scores, made, f"return {text};"] if "scores" in text else ["(void)x;", f"return {text};"]

    def _reach(self, part: Part) -> tuple[int, int]:
        """The smallest and largest value of a part's last score, which its threshold decides on. For votes and
        averages, those of the sum over all parts for a class."""
        if self.forest.combined and part not in self.forest.parts:
            return 0, max(1, self.forest.steps) * sum(self.forest.integer_weights)
        return reach_of(self.forest, part.stop - 1)
