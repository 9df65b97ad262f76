"""The entry points of a generated header that can be measured: their C, what they take and what they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.backends import c_types
from forestc.backends.c_quantiser import row_type
from forestc.backends.c_types import FloatType
from forestc.backends.c_values import Shown, shown
from forestc.backends.names import identifier
from forestc.checks.engines import Difference, difference, values_of
from forestc.checks.vectors import Vectors
from forestc.design import Design
from forestc.errors import OptionError
from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest
from forestc.toolchain.firmware import ENTRY, Cpu
from hdl_templates import render

ENTRIES = {
    "predict": "words to the index of the class",
    "scores": "words to integer scores",
    "values": "words to probabilities or values",
    "row": "a row of floats to words, and these to the index of the class, or of a regression to scores",
}


@dataclass(frozen=True)
class Entry:
    """A function `forestc_entry` that calls one function of the header.

    source: its C. raw: whether it takes floats, the model's columns, else words. takes, aligned: types of the members
    of one input, and whether each lies at a multiple of its size. gives, count: type and number of its results.
    returned: whether it returns its only result, else it writes results to its second argument. what: of labels,
    scores and values, what these are. shown: of values.
    """

    name: str
    source: str
    raw: bool
    takes: tuple[np.dtype[np.generic], ...]
    gives: np.dtype[np.generic]
    count: int
    returned: bool
    what: str
    shown: Shown | None = None

    def inputs(self, vectors: Vectors, aligned: bool = True) -> NDArray[np.uint8]:
        """The inputs as they lie in memory: (rows, bytes). aligned: whether each number lies at a multiple of its
        size."""
        layout = np.dtype([(f"x{k}", one) for k, one in enumerate(self.takes)], align=aligned)
        table = np.zeros(len(vectors.words), dtype=layout)
        columns = vectors.raw if self.raw else vectors.words
        for place in range(columns.shape[1]):
            with np.errstate(over="ignore"):
                table[f"x{place}"] = columns[:, place].astype(self.takes[place])
        return table.view(np.uint8).reshape(len(table), -1)

    def compare(self, results: NDArray[np.generic], evaluation: Evaluation, forest: Forest) -> Difference:
        """Compares results (rows, count) with those of the evaluator; values with the header's bound."""
        if self.what != "values":
            wanted = evaluation.index if self.what == "labels" else evaluation.scores
            return difference(results.astype(np.int64), wanted.reshape(len(results), -1).astype(np.int64))
        assert self.shown is not None
        exact, found = values_of(forest, evaluation), results.astype(np.float64) * self.shown.step
        near = np.abs(found - exact) <= self.shown.bound
        step = self.shown.bound if self.shown.kind == "float" else self.shown.step
        got, wanted = (np.rint(each / step).astype(np.int64) for each in (found, exact))
        return difference(got, np.where(near, got, np.where(wanted == got, ~got, wanted)))


def entry_names(design: Design, cpu: Cpu) -> list[str]:
    """The entries that a design's header offers on a processor."""
    forest, options = design.forest, design.c_options
    offered = {
        "predict": forest.decides,
        "scores": True,
        "values": shown(forest, identifier(forest.name), options.values) is not None,
        "row": options.quantises and (cpu.doubles or _floats(design).bits == 32),
    }
    return [name for name in ENTRIES if offered[name]]


def _floats(design: Design) -> FloatType:
    """The float type of raw rows."""
    forest, options = design.forest, design.c_options
    return c_types.float_inputs(forest) if options.raw else row_type(forest, options.quantiser)


def made_entry(design: Design, cpu: Cpu, name: str) -> Entry:
    """The entry of this name. Raises OptionError for one that the header does not offer."""
    if name not in ENTRIES:
        raise OptionError(f"unknown entry {name!r}", do=f"known: {', '.join(ENTRIES)}")
    if design.c_options.raw and not cpu.doubles and _floats(design).bits == 64:
        raise OptionError(f"double has 32 bits on {cpu.name}", do="compile the model with --c-inputs words")
    if name not in (offered := entry_names(design, cpu)):
        raise OptionError(f"the header has no entry {name!r}", do=f"it offers: {', '.join(offered)}")
    forest, options, prefix = design.forest, design.c_options, identifier(design.forest.name)
    struct, row = options.inputs == "struct", name == "row"
    words = f"{prefix}_features" if struct else "" if options.raw else c_types.word_type(forest)
    if options.raw or row:
        floats = _floats(design)
        argument, members = floats.name, [floats.name] * max(1, forest.columns)
    elif struct:
        argument, members = words, [kind for _, kind in c_types.members(forest)]
    else:
        argument, members = words, [words] * max(1, len(forest.features))
    what = {"predict": "labels", "row": "labels" if forest.decides else "scores"}.get(name, name)
    values = shown(forest, prefix, options.values) if what == "values" else None
    returned = what == "labels" and len(forest.targets) == 1
    gives, count = {
        "labels": (c_types.label_type(forest), len(forest.targets)),
        "scores": (c_types.score_type(forest), forest.n_scores),
        "values": ("" if values is None else values.kind, 0 if values is None else values.count),
    }[what]
    x = "&x" if struct and row else "x"
    calls = {"labels": "predict", "scores": "scores", "values": "values"}
    call = f"{prefix}_{calls[what]}({x}, out);"
    if returned:
        call = f"return {prefix}_predict({x});"
    elif values is not None:
        call = f"{prefix}_probabilities({x}, out);" if values.probabilities else call
        call = f"out[0] = {prefix}_value({x});" if values.single else call
    source = render(
        "firmware/entry.c.j2",
        entry=ENTRY,
        header=design.path("c").name,
        prefix=prefix,
        macro=prefix.upper(),
        takes=argument,
        gives=gives,
        returned=returned,
        row=row,
        struct=struct,
        words=words,
        statement=call,
    )
    takes = tuple(map(_dtype, members))
    return Entry(name, source, options.raw or row, takes, _dtype(gives), count, returned, what, values)


def _dtype(c_type: str) -> np.dtype[np.generic]:
    """The NumPy type, little-endian, of a C type."""
    known = {"float": "<f4", "double": "<f8"}
    if c_type in known:
        return np.dtype(known[c_type])
    bits = int("".join(filter(str.isdigit, c_type)))
    return np.dtype(f"<{'u' if c_type.startswith('u') else 'i'}{bits // 8}")
