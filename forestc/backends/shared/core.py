"""Writes the C of a shared library, its header, and a Python module that calls it.

A row's floats become integers of the same order (keys), and trees compare these with thresholds on keys. What follows
the trees is that of the C header, on the sums of the trees instead of features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forestc.backends.base import Artifact, artifacts
from forestc.backends.c.branches import branches
from forestc.backends.c.header import Header
from forestc.backends.c.inputs import inputs_of, numpy_type
from forestc.backends.c.options import COptions, c_options_of
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.raw import TYPES, retyped
from forestc.backends.c.tables import readers
from forestc.backends.c.trees import TreeContext
from forestc.backends.c.types import FLOATS, FloatType, label_type, score_type
from forestc.backends.c.values import ValuesInC, shown
from forestc.backends.names import identifier, python_module
from forestc.backends.shared.bits import bits
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source

FOLDER = "shared"


@dataclass(frozen=True)
class Library:
    """A quantized forest as a shared library."""

    forest: Forest
    options: COptions  # of the C header; the library takes the type of probabilities

    @property
    def name(self) -> str:
        return identifier(self.forest.name)

    @cached_property
    def real(self) -> FloatType:
        """The type of the rows that are compared without conversion."""
        return row_type(self.forest, "auto")

    @cached_property
    def keyed(self) -> Forest:
        """The forest with thresholds on the keys of floats."""
        return retyped(self.forest, (TYPES[self.real.name],) * self.forest.width)

    @cached_property
    def values(self) -> ValuesInC | None:
        return shown(self.forest, self.name, self.options.c_values)

    @property
    def score(self) -> str:
        """The C type of a score."""
        return score_type(self.forest)

    @property
    def outputs(self) -> list[tuple[str, str, str, int]]:
        """The results of a row: (name, C type, NumPy type, how many)."""
        forest, values = self.forest, self.values
        outputs = [("labels", label_type(forest), len(forest.targets))] if forest.decides else []
        outputs.append(("scores", self.score, forest.n_scores))
        outputs += [] if values is None else [(self.shown, values.kind, values.count)]
        return [(name, kind, numpy_type(kind).name, count) for name, kind, count in outputs]

    def view(self) -> dict[str, object]:
        """Returns the variables of the templates."""
        forest, values = self.forest, self.values
        several = forest.decides and len(forest.targets) > 1
        classes = [list(part.classes) for part in forest.targets]
        return {
            "p": self.name,
            "macro": self.name.upper(),
            "title": f"{len(forest.trees)} trees, {forest.n_nodes} nodes",
            "columns": forest.columns,
            "read": [feature.column for feature in forest.features],
            "features": max(1, len(forest.features)),
            "real": self.real,
            "reals": list(FLOATS.values()),
            "outputs": self.outputs,
            "step": 1 if values is None else values.step,
            "says": {
                "labels": "the index of each row's class" + ", for each target" * several,
                "scores": "integer scores",
                "probabilities": "the probability of each class",
                "values": "what the model predicts",
            },
            "several": several,
            "classes": ascii(classes[0] if len(classes) == 1 else classes) if forest.decides else "",
            "shown": self.shown,
            "single": values is not None and values.single,
        }

    @property
    def shown(self) -> str:
        """The name of what follows from scores: probabilities, or the values of a regression."""
        return "probabilities" if self.forest.decides else "values"

    def source(self) -> str:
        """Returns the C source."""
        words = replace(
            self.options, c_inputs="words", c_quantizer="none", c_layout="branches", c_types="", c_project="none"
        )
        header, forest = Header(self.keyed, self.name, words), self.keyed
        inputs = inputs_of(forest, "words")
        context = TreeContext(self.name, inputs, self.score)
        code = bits(context) or branches(context)
        sums, total = f"{self.name}_sum", forest.n_outputs
        tables, functions, body = code.declarations(), code.functions(), code.sums("sums")
        view: dict[str, Any] = header.view()
        lines = [*tables, *body, *(line for tree in functions for line in tree.body)]
        view |= {
            "flash": True,
            "readers": sorted({*view["readers"], *readers(self.name, lines)}),
            "ranges": [],
            "x_type": sums,
            "element": self.score,
            "row_step": total,
            "x_in": f"const {sums} x[{total}]",
            "places": [(f"{self.name.upper()}_NONE", 0)],
            "asserts": [],
            "codes": [],
            "tables": [f"typedef {inputs.kinds[0]} {inputs.type};", *tables],
            "trees": functions,
            "sums_body": [
                "int k;",
                f"for (k = 0; k < {total}; k++) {{",
                f"    {'sums' if header.combined.kind else 'scores'}[k] = x[k];",
                "}",
            ],
        }
        return render(
            "shared/library.c.j2",
            **self.view(),
            header=render("c/header.h.j2", two_best=[], **view),
            x=inputs,
            score=self.score,
            sums=total,
            highest=word_range(forest.features[0].number, True).top if forest.features else 0,
            body=body,
        )


def written(source: Source, *_: object) -> list[Artifact]:
    """Returns the files of the target `shared`."""
    library = Library(source.forest, c_options_of(source.options.get("c", {})))
    view = library.view()
    files = {
        "shared": (f"{library.name}.c", library.source()),
        "shared_header": (f"{library.name}.h", render("shared/library.h.j2", **view)),
        "shared_python": (f"{python_module(source.forest.name)}.py", render("shared/module.py.j2", **view)),
    }
    return artifacts(FOLDER, files)
