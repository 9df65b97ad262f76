"""Writes the C99 header of a forest.

For every input, the C gives the labels and scores of the quantized forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from forestc.backends.c.choice import check, chosen_layout
from forestc.backends.c.combined import CombinedScores
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.layouts import LAYOUTS, trees_in_c
from forestc.backends.c.options import COptions
from forestc.backends.c.quantizer import code_functions, hash_functions, quantizer, row_type
from forestc.backends.c.tables import readers
from forestc.backends.c.trees import TreeContext
from forestc.backends.c.types import (
    FLOATS,
    asserted,
    compared,
    constant,
    int_type,
    label_type,
    labels_are_text,
    score_type,
    size_of,
)
from forestc.backends.c.values import TABLE, shown
from forestc.backends.names import c_string, feature_name, for_comments, identifier
from forestc.forest.ir import Feature, Forest, Part
from forestc.forest.numbers import Fixed, word_range
from forestc.forest.words import word_note
from hdl_templates import render


def emit(forest: Forest, options: COptions | None = None) -> dict[str, str]:
    """Returns {file name: text} of the header. Raises OptionError for options that do not suit the forest or each
    other."""
    return emit_with(forest, options or COptions(), ())


def emit_with(forest: Forest, options: COptions, kinds: Sequence[str]) -> dict[str, str]:
    """Returns the header, with a function for the second best class if it is among the outputs. kinds: of outputs."""
    check(options)
    prefix = identifier(forest.name)
    view = Header(forest, prefix, options).view()
    two_best = [(part, _threshold(part)) for part in forest.targets] if "second" in kinds else []
    return {f"{prefix}.h": render("c/header.h.j2", two_best=two_best, **view)}


def _threshold(part: Part) -> str:
    """Returns the threshold of a target as C, or "" if its largest score decides."""
    return constant(int(part.decision.threshold)) if part.decision.kind == "threshold" else ""


class Header:
    """The variables of the header's template."""

    def __init__(self, forest: Forest, prefix: str, options: COptions) -> None:
        self.model, self.options, self.layout = forest, options, chosen_layout(forest, options)
        self.inputs = inputs_of(forest, options.c_inputs, options.c_types)
        self.forest, self.prefix, self.macro = self.inputs.forest, prefix, prefix.upper()
        self.row = row_type(forest, options.c_quantizer) if options.quantizes else None
        self.score, self.label = score_type(self.forest), label_type(self.forest)
        self.combined = CombinedScores(self.forest, prefix, self.score)

    def view(self) -> dict[str, object]:
        shown_values = shown(self.forest, self.prefix, self.options.c_values)
        return {
            "prefix": self.prefix,
            "macro": self.macro,
            "title": f"{len(self.forest.trees)} trees, {self.forest.n_nodes} nodes",
            "shown": shown_values,
            "power_table": TABLE,
            "floats": shown_values is not None and shown_values.kind == "float",
            **self._inputs(),
            **self._raw_rows(),
            "hashed": hash_functions(self.model, self.prefix),
            **self._outputs(),
            **self._trees(),
            **self.combined.view(),
        }

    def _inputs(self) -> dict[str, object]:
        forest, inputs, raw = self.forest, self.inputs, self.options.raw
        integers = "" if set(inputs.kinds) <= set(FLOATS) else "integers are never missing; "
        integers = integers if inputs.floats else integers.replace("integers", "they")
        words = "x: the features' words:" if inputs.struct else "x: the features' words, in this order:"
        columns = f"x: the model's {forest.columns} columns as it was trained with them; {integers}those it reads:"
        indices = [(self._place(i), f.column if raw else i) for i, f in enumerate(forest.features)]
        of_words = "The features' words, each of the smallest type that holds them."
        return {
            "input_note": columns if raw else words,
            "input_map": [self._input_note(i, f) for i, f in enumerate(forest.features)] or ["none"],
            "n_inputs": max(1, forest.columns if raw else len(forest.features)),
            "places": indices or [(f"{self.macro}_NONE", 0)],
            "members": list(zip(inputs.names, inputs.kinds, strict=True)) if inputs.struct else [],
            "members_note": "The model's columns, each of its own type." if raw else of_words,
            "x_type": inputs.type,
            "element": inputs.kind(0),
            "row_step": 1 if inputs.struct else f"{self.macro}_INPUTS",
            "asserts": self._asserts(),
            "ranges": [] if raw else self._ranges(),
            "x_in": TreeContext(self.prefix, inputs, self.score).x,
            "x_out": f"{inputs.type} *x" if inputs.struct else f"{inputs.type} x[{self.macro}_INPUTS]",
            "needs_floats": (raw and bool(inputs.floats)) or self.row is not None,
            "raw": raw,
            "raw_floats": inputs.floats if raw else [],
        }

    def _raw_rows(self) -> dict[str, object]:
        codes = code_functions(self.model, self.prefix, raw=self.options.raw)
        if self.row is None:
            return {"n_columns": 0, "quantizer": None, "codes": codes, "code_type": "int32_t"}
        return {
            "n_columns": max(1, self.forest.columns),
            "quantizer": self.quantizer,
            "codes": codes,
            "code_type": "int32_t",
        }

    @cached_property
    def quantizer(self) -> dict[str, Any] | None:
        """The variables of the quantizer's template; None without one."""
        if self.row is None:
            return None
        return quantizer(self.forest, self.prefix, self.row, self.inputs.place, self.inputs.kind)

    def _ranges(self) -> list[str]:
        """Returns C statements that set `inside` to 0 if a word is out of its feature's range."""
        ranges = list[tuple[str, str]]()  # (place in x, test)
        for index, feature in enumerate(self.forest.features):
            span, kind = word_range(feature.number, feature.missing), self.inputs.kind(index)
            full = Fixed(8 * size_of(kind), 0, kind.startswith("i"))
            ends = word_range(full, False)
            tests = [f">= {compared(span.low, kind)}"] * (span.low > ends.low)
            tests += [f"<= {compared(span.top, kind)}"] * (span.top < ends.high)
            ranges += [(self.inputs.place(index), test) for test in tests]
        alike = list(dict.fromkeys(test for _, test in ranges))
        count = len(self.forest.features)
        if self.inputs.struct or len(ranges) != count * len(alike):
            return [f"inside = ({place} {test}) ? inside : 0;" for place, test in ranges]
        loop = [f"    inside = (x[k] {test}) ? inside : 0;" for test in alike]
        return [f"{int_type(0, count)} k;", f"for (k = 0u; k < {count}u; k++) {{", *loop, "}"] if loop else []

    def _outputs(self) -> dict[str, object]:
        forest = self.forest
        return {
            "n_outputs": forest.n_scores,
            "targets": [self._target(index) for index, part in enumerate(forest.targets) if part.classes],
            "several": len(forest.targets) > 1,
            "scale": repr(float(forest.scale or 1.0)),
            "score_type": self.score,
            "label_type": self.label,
        }

    def _trees(self) -> dict[str, object]:
        context = TreeContext(self.prefix, self.inputs, self.score)
        code, separate = trees_in_c(self.layout, context), LAYOUTS[self.layout].separate
        tables, trees = code.declarations(), code.functions()
        sums = code.sums("sums" if self.combined.kind else "scores")
        numbers = any(part.classes and not labels_are_text(part) for part in self.forest.targets)
        label = [f"{self.prefix}_read_int64_t("] * numbers
        words = [] if self.quantizer is None else [*self.quantizer["tables"], *self.quantizer["lines"]]
        bodies = (line for tree in trees for line in tree.body)
        return {
            "flash": numbers or any("_FLASH = {" in line for line in [*tables, *words]),
            "readers": readers(self.prefix, [*tables, *bodies, *sums, *label, *words]),
            "compared_floats": self.inputs.floats if any(len(tree.inner) for tree in self.forest.trees) else [],
            "tables": tables,
            "trees": trees,
            "separate": separate,
            "tree_is": f"{self.macro}_TREE" if separate else "static inline",
            "sums_body": sums,
        }

    def _place(self, index: int) -> str:
        """Returns the name of the C macro for a feature's index in x."""
        return f"{self.macro}_{feature_name(index, self.forest.features[index].name).upper()}"

    def _asserts(self) -> list[str]:
        """Returns static assertions on the sizes of C types and the number of inputs."""
        words = [kind for kind in self.inputs.kinds if kind not in FLOATS]
        sized = [*sorted(set(words)), self.score, self.label]
        lines = [
            asserted(self.prefix, f"sizeof({kind}) == {size_of(kind)}u", f"{kind}_has_{8 * size_of(kind)}_bits")
            for kind in dict.fromkeys(sized)
        ]
        if self.forest.features and not self.inputs.struct:
            last = self._place(len(self.forest.features) - 1)
            holds = f"{last} <" if self.options.raw else f"({last} + 1) =="
            lines.append(asserted(self.prefix, f"{holds} {self.macro}_INPUTS", "inputs_are_all_there"))
        return lines

    def _target(self, index: int) -> dict[str, object]:
        classes = self.forest.targets[index].classes
        text = labels_are_text(self.forest.targets[index])
        return {
            "suffix": f"_{index}" if len(self.forest.targets) > 1 else "",
            "macro": f"_{index}" if len(self.forest.targets) > 1 else "",
            "scale": repr(float(self.forest.targets[index].scale)),
            "text": text,
            "labels": [c_string(str(c)) if text else constant(int(c)) for c in classes],
        }

    def _input_note(self, index: int, feature: Feature) -> str:
        named = f"{self.inputs.place(index)} {for_comments(feature)}"
        if not self.options.raw:
            return f"{named}: {word_note(self.forest, index)}"
        what = "" if self.inputs.floats and not self.inputs.struct else f": {self.inputs.kind(index)}"
        return f"{named}{what}{', NaN means missing' * feature.missing}"
