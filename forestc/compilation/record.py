"""Records how a folder was made, without times and paths: the same input and options give the same bytes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forestc.compilation.request import Request
from forestc.fields.options import AN_OBJECT
from forestc.forest.ir import Forest
from forestc.passes.margins import bound_text
from forestc.passes.pipeline import Step
from forestc.system.version import __version__


def command_line(request: Request) -> str | None:
    """Returns the command that makes the same folder; None if Python objects were given. Files are named without
    folders."""
    model, rows, flags = request.options.model, request.options.rows, request.flags
    if not isinstance(model, str | Path) or not isinstance(rows, str | Path | None):
        return None
    if AN_OBJECT in (flag.value for flag in flags):
        return None
    words = ["forestc", "compile", Path(model).name, *([] if rows is None else ["--rows", Path(rows).name])]
    for flag in flags:
        if flag.value is True:
            words.append(flag.flag)
        elif flag.value != flag.default:
            listed = isinstance(flag.value, list)
            words += [flag.flag, ",".join(map(str, flag.value)) if listed else str(flag.value)]
    return shlex.join([*words, "-o", "DIR"])


def versions(source: Forest) -> dict[str, str]:
    """Returns the versions of forestc, NumPy and, if known, the library that trained the model."""
    origin = source.provenance
    library = {origin.source: origin.version} if origin.source else {}
    return {"forestc": __version__, "numpy": np.__version__, **library}


def model_record(model: object, source: Forest) -> dict[str, str]:
    """Returns the model's hash with its file name, or with its class if it is a Python object."""
    kind = type(model)
    named = {"file": Path(model).name} if isinstance(model, str | Path) else {}
    return (named or {"class": f"{kind.__module__}.{kind.__qualname__}"}) | {"sha256": source.provenance.model_hash}


def leaves_note(step: Step) -> str:
    """Returns a sentence for users: how close scores and decisions stay to the model's for every input."""
    leaves, decides = f"{step.report['leaf_bits']}-bit leaves", step.report["decides"]
    paths = "every input takes the model's own path through every tree"
    if step.report["leaves"] == "exact":
        return f"{paths}, and {leaves} hold the model's own values: exact"
    bound = step.report["score_bound"]
    if bound is None:
        return f"{paths}; {leaves} are rounded, which may change the vote of a member where its scores nearly tie"
    scores = f"{paths}; {leaves} are rounded, so scores are within {bound_text(bound)} of the model's"
    if not decides:
        return scores
    if step.report["decisions"] == "all":
        return f"{scores}, and every input is decided as by the model"
    tied = f"a decision may change only where two scores differ by less than {bound_text(2 * bound)}"
    return f"{scores}; {tied}: of {step.report['ties_changed']}, it does"


def synthesis_record(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of `synth` without notes, `stream` and times."""
    return {key: value for key, value in figures.items() if key not in ("seconds", "stream", "notes")}


def steps_record(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [{**step.figures(), "meaning": step.meaning, "inputs_checked": step.inputs_checked} for step in steps]
