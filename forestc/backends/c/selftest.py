"""Writes NAME_selftest.h: rows with right answers, and a function that finds the first row with a wrong answer."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from forestc.backends.c import types
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.options import COptions
from forestc.backends.c.types import FLOATS, constant
from forestc.backends.names import identifier
from forestc.forest.ir import Forest
from hdl_templates import render


@dataclass(frozen=True)
class Answers:
    """Test rows, with the answers of the quantized forest."""

    words: tuple[tuple[int, ...], ...] = ()  # (rows, features)
    raw: tuple[tuple[float, ...], ...] = ()  # (rows, columns)
    labels: tuple[tuple[int, ...], ...] = ()  # class indices (rows, targets); empty for a regression
    scores: tuple[tuple[int, ...], ...] = ()  # integers (rows, scores)


def emit(forest: Forest, options: COptions, answers: Answers) -> str:
    """Returns the text of the header. Floats are written as bits, which keeps NaN and -0.0. Raises OptionError as
    `inputs_of` does."""
    prefix = identifier(forest.name)
    inputs = inputs_of(forest, options.c_inputs, options.c_types)
    rows = [
        [_constant(row[column], kind) for column, kind in zip(inputs.columns, inputs.kinds, strict=False)]
        for row in (answers.raw if options.raw else answers.words)
    ]
    entries = [f"uint{FLOATS[kind].bits}_t" if kind in FLOATS else kind for kind in inputs.kinds]
    twin = bool(inputs.names and inputs.floats)
    return render(
        "c/selftest.h.j2",
        prefix=prefix,
        macro=prefix.upper(),
        count=len(answers.words),
        entry=f"{prefix}_selftest_row" if twin else inputs.type if inputs.struct else entries[0],
        floats=bool(inputs.floats),
        members=list(zip(entries, inputs.names, strict=True)) if twin else [],
        x_type=inputs.type,
        struct=inputs.struct,
        elements=inputs.elements,
        rows=[row or ["0"] for row in rows],
        targets=len(forest.targets) if forest.decides else 0,
        labels=[[f"{label}u" for label in row] for row in answers.labels],
        scores=[list(map(constant, row)) for row in answers.scores],
        label_type=types.label_type(forest),
        score_type=types.score_type(forest),
    )


def _constant(value: float, kind: str) -> str:
    if kind not in FLOATS:
        return constant(int(value))
    bits = FLOATS[kind].bits
    pattern = struct.pack("<f" if bits == 32 else "<d", value)
    return f"UINT{bits}_C(0x{int.from_bytes(pattern, 'little'):0{bits // 4}x})"
