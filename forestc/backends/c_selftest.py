"""NAME_selftest.h: rows with their right answers, and a function that finds the first wrong one on the target."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from forestc.backends import c_types
from forestc.backends.c import COptions
from forestc.backends.c_types import constant
from forestc.backends.names import identifier
from forestc.forest.ir import Forest
from hdl_templates import render


@dataclass(frozen=True)
class Answers:
    """Rows, and what the evaluator of the quantised forest says of them.

    words: of the features, row by row. raw: the same rows as floats, by column. labels: a class index for each target;
    empty for a regression. scores: integers.
    """

    words: tuple[tuple[int, ...], ...] = ()
    raw: tuple[tuple[float, ...], ...] = ()
    labels: tuple[tuple[int, ...], ...] = ()
    scores: tuple[tuple[int, ...], ...] = ()


def emit(forest: Forest, options: COptions, answers: Answers) -> str:
    """The text of the header. Floats are given by their bits: NaN, infinities and -0.0 stay what they are.

    Raises OptionError as the header of the forest does.
    """
    prefix = identifier(forest.name)
    members = c_types.members(forest) if options.inputs == "struct" else []
    floats = c_types.float_inputs(forest) if options.raw else None
    if floats is not None:
        entry, rows = f"uint{floats.bits}_t", [[_bits(v, floats.bits) for v in row] for row in answers.raw]
    else:
        entry, rows = c_types.word_type(forest), [list(map(constant, row)) for row in answers.words]
    return render(
        "c/selftest.h.j2",
        prefix=prefix,
        macro=prefix.upper(),
        count=len(answers.words),
        entry=f"{prefix}_features" if members else entry,
        floats=None if floats is None else floats.name,
        struct=bool(members),
        rows=[row or ["0"] for row in rows],
        targets=len(forest.targets) if forest.decides else 0,
        labels=[[f"{label}u" for label in row] for row in answers.labels],
        scores=[list(map(constant, row)) for row in answers.scores],
        label_type=c_types.label_type(forest),
        score_type=c_types.score_type(forest),
    )


def _bits(value: float, bits: int) -> str:
    form = "<f" if bits == 32 else "<d"
    return f"UINT{bits}_C(0x{int.from_bytes(struct.pack(form, value), 'little'):0{bits // 4}x})"
