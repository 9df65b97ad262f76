"""Prepares functions of a generated C header for measurement on a processor: flash, stack and instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c import types as c_types
from forestc.backends.c.inputs import Inputs, inputs_of, numpy_type, rows_of, taken
from forestc.backends.c.options import COptions
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.values import ValuesInC, shown
from forestc.backends.names import identifier
from forestc.backends.running import Difference, difference
from forestc.backends.vectors import Vectors, values_of
from forestc.errors import OptionError, known_names, opt
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
    """A C function `forestc_entry` that calls a function of the header."""

    name: str
    source: str  # the function's C code
    takes: Inputs  # parameter x
    gives: np.dtype[np.generic]  # type of the results
    count: int  # number of results
    returned: bool  # False if results go to the second argument instead
    what: str  # labels, scores or values
    shown: ValuesInC | None = None  # the C for values; otherwise None

    def taken(self, vectors: Vectors, forest: Forest) -> Vectors:
        """Returns the vectors that the function takes. Raw rows that its C types do not hold are left out."""
        return taken(forest, vectors, self.takes)[0] if self.takes.raw else vectors

    def inputs(self, vectors: Vectors, aligned: bool = True) -> NDArray[np.uint8]:
        """Returns the bytes of the function's input for each vector: (rows, bytes). aligned: True to align numbers to
        their sizes."""
        return self.takes.table(vectors.raw if self.takes.raw else vectors.words, aligned)

    def compare(self, results: NDArray[np.generic], evaluation: Evaluation, forest: Forest) -> Difference:
        """Compares results (rows, count) with the evaluator's. Values may differ by the header's error bound."""
        if self.what != "values":
            expected = evaluation.index if self.what == "labels" else evaluation.scores
            return difference(results.astype(np.int64), expected.reshape(len(results), -1).astype(np.int64))
        assert self.shown is not None
        exact, values = values_of(forest, evaluation), results.astype(np.float64) * self.shown.step
        near = np.abs(values - exact) <= self.shown.bound
        step = self.shown.bound if self.shown.kind == "float" else self.shown.step
        got, expected = (np.rint(column / step).astype(np.int64) for column in (values, exact))
        return difference(got, np.where(near, got, np.where(expected == got, ~got, expected)))


def entry_names(forest: Forest, options: COptions, cpu: Cpu) -> list[str]:
    """Returns a list of the names in ENTRIES that a C header offers for measurement on a processor."""
    offered = {
        "predict": forest.decides,
        "scores": True,
        "values": shown(forest, identifier(forest.name), options.c_values) is not None,
        "row": options.quantizes
        and not forest.carried
        and (cpu.doubles or row_type(forest, options.c_quantizer).bits == 32),
    }
    return [name for name in ENTRIES if offered[name]]


def measured_entry(forest: Forest, options: COptions, header: str, cpu: Cpu, name: str) -> Entry:
    """Returns the function to measure, by its name in ENTRIES. Raises OptionError if the header does not have it, or if
    it can't be measured. header: the header's file name."""
    if name not in ENTRIES:
        raise OptionError(f"unknown entry {name!r}", where=opt.entry, do=known_names(name, ENTRIES))
    inputs = inputs_of(forest, options.c_inputs, options.c_types)
    if "double" in inputs.kinds and not cpu.doubles:
        raise OptionError(
            f"double has 32 bits on {cpu.name}", where=opt.cpu, do=f"compile the model with {opt.c_inputs:words}"
        )
    if inputs.elements:
        raise OptionError(
            f"x has {forest.columns} elements, too many to be measured",
            where="the C header's rows",
            do=f"compile with {opt.c_inputs:words}",
        )
    if name not in (offered := entry_names(forest, options, cpu)):
        raise OptionError(f"the header has no entry {name!r}", where=opt.entry, do=f"it offers: {', '.join(offered)}")
    prefix = identifier(forest.name)
    struct, row = inputs.struct, name == "row"
    takes = inputs if not row else rows_of(forest, row_type(forest, options.c_quantizer).name)
    what = {"predict": "labels", "row": "labels" if forest.decides else "scores"}.get(name, name)
    values = shown(forest, prefix, options.c_values) if what == "values" else None
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
        header=header,
        prefix=prefix,
        macro=prefix.upper(),
        takes=takes.type,
        gives=gives,
        returned=returned,
        row=row,
        struct=struct,
        words=inputs.type,
        statement=call,
    )
    return Entry(name, source, takes, numpy_type(gives), count, returned, what, values)
