"""Runs the generated C on the host."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from forestc.backends.base import Written
from forestc.backends.c import types as c_types
from forestc.backends.c.inputs import inputs_of, rows_of, taken
from forestc.backends.c.options import c_options_of
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.values import shown
from forestc.backends.names import c_string, feature_name, identifier
from forestc.backends.running import Difference, copied, difference, rows_of_numbers
from forestc.backends.vectors import Vectors, disturbed, values_of
from forestc.errors import MissingToolError
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.forest.ir import Forest
from forestc.forest.outputs import kinds_of, runners_up
from forestc.rows.encode import encode
from forestc.toolchain.compilers import STRICT, c_compiler, sanitizers, version
from forestc.toolchain.program_cache import cached_program
from forestc.toolchain.run import run_tool
from hdl_templates import render


class CEngine:
    """Runs the generated C header on the host, with sanitizers if the compiler has them. It also checks quantizer and
    category codes."""

    def __init__(self, design: Written, folder: Path) -> None:
        compiler = c_compiler()
        if compiler is None:
            raise MissingToolError("no C compiler was found", do="install gcc or clang, or set CC")
        self.forest: Forest = design.forest
        options = c_options_of(design.manifest["options"]["c"])
        self.inputs = inputs = inputs_of(self.forest, options.c_inputs, options.c_types)
        self.quantizes, self.seen = options.quantizes, 0
        self.two_best = "second" in kinds_of(design.manifest["options"]["outputs"])
        self.rows = rows_of(self.forest, row_type(self.forest, options.c_quantizer).name) if self.quantizes else inputs
        prefix = identifier(self.forest.name)
        self.shown = shown(self.forest, prefix, options.c_values)
        header = folder / copied(design, "c", folder)
        features = self.forest.features
        operands = [inputs.place(index).replace("->", ".") for index in range(len(features))]
        words = [(operand, inputs.kind(index)) for index, operand in enumerate(operands)]
        main = render(
            "check/c_main.c.j2",
            prefix=prefix,
            macro=prefix.upper(),
            n_words=0 if inputs.raw else len(features),
            words=[] if inputs.raw else words,
            row=self.rows.type if self.quantizes else "",
            n_columns=max(1, self.forest.columns),
            elements=self.rows.elements,
            raw=inputs.raw,
            x_type=inputs.type,
            struct=inputs.struct,
            shown=self.shown,
            codes=_named_codes(self.forest, prefix, inputs.raw),
            score_type=c_types.score_type(self.forest),
            labels=self.forest.decides,
            names=len(self.forest.targets[0].classes),
            targets=len(self.forest.targets),
            label_type=c_types.label_type(self.forest),
            two_best=self.two_best,
        )
        (folder / "main.c").write_text(main)
        command = [compiler, "-O1", *STRICT, *sanitizers(compiler), "main.c", "-o", "program"]

        def make() -> Path:
            run_tool(command, folder, seconds=1800, writes=["program"])
            return folder / "program"

        cached_program([version(compiler), *command, header.read_bytes(), main], folder / "program", make)
        self.folder = folder
        self.tool = f"{version(compiler)}{', sanitized' if sanitizers(compiler) else ''}"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        why, left_out = "", 0
        if self.inputs.raw:
            start = self.seen
            self.seen += len(vectors.raw) * (vectors.origin == "rows")
            vectors, why, left_out = taken(self.forest, vectors, self.inputs, start)
            evaluation = evaluate_words(self.forest, vectors.words)
            parts, rows = [self.inputs.table(vectors.raw)], vectors.raw
        else:
            rows = self.rows.fitted(disturbed(self.forest, vectors.raw)) if self.quantizes else vectors.raw
            parts = [np.ascontiguousarray(vectors.words).view(np.uint8).reshape(len(rows), -1)]
            parts += [self.rows.table(rows)] * self.quantizes
        out = run_tool([str(self.folder / "program")], self.folder, data=np.concatenate(parts, axis=1).tobytes())
        index = evaluation.index.reshape(len(rows), math.prod(evaluation.index.shape[1:]))
        expected = [np.zeros((len(rows), 1), dtype=np.int64), index, evaluation.scores]
        if self.two_best:  # of each target, one after the other
            both = np.stack(runners_up(self.forest, evaluation), axis=2)
            expected.append(both.reshape(len(rows), 2 * len(self.forest.targets)))
        expected += [encode(self.forest, rows)] * self.quantizes
        exact = None if self.shown is None else values_of(self.forest, evaluation)
        if exact is not None:
            expected.insert(3, np.zeros(exact.shape, dtype=np.int64))
        joined = np.concatenate(expected, axis=1)
        got = rows_of_numbers(out, "=i8", joined.shape[1]).copy()
        if self.shown is not None and exact is not None:
            first = 1 + index.shape[1] + evaluation.scores.shape[1]
            shown_columns, common = slice(first, first + self.shown.count), min(len(got), len(joined))
            raw, exact = got[:common, shown_columns], exact[:common]
            floats = self.shown.kind == "float"
            values = raw.astype(np.uint32).view(np.float32).astype(np.float64) if floats else raw * self.shown.step
            near = np.abs(values - exact) <= self.shown.bound
            steps = exact.astype(np.float32).view(np.uint32) if floats else np.rint(exact / self.shown.step)
            nearest = steps.astype(np.int64)
            joined[:common, shown_columns] = np.where(near, raw, np.where(nearest == raw, ~raw, nearest))
        result = difference(got, joined)
        row = rows[result.first].tolist() if self.inputs.raw and 0 <= result.first < len(rows) else ()
        return replace(result, given=tuple(row), left_out=left_out, why=why)


def _named_codes(forest: Forest, prefix: str, raw: bool) -> list[tuple[str, str, int]]:
    """Returns a list of (C function, category name as C literal, word that the function must return), for known and
    unknown names."""
    codes = []
    for index, feature in enumerate(forest.features):
        if not feature.labels:
            continue
        function = f"{prefix}_{feature_name(index, feature.name)}_code"
        names = [*feature.labels, "", "no such name", feature.labels[0] + " "]
        for name in [*names, None] if feature.missing and not raw else names:
            if name is not None and "\0" in name:
                continue
            table = np.zeros((1, forest.width), dtype=object)
            table[0, forest.row_columns[index]] = name
            codes.append((function, "0" if name is None else c_string(name), int(encode(forest, table)[0, index])))
    return codes
