"""How a folder was made: command, options, versions and rows, for its manifest and its report.

No times, and no paths of the machine: the same input and options give the same bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from forestc import __version__
from forestc.backends.axi_stream import StreamOptions
from forestc.checks.agreement import Agreement
from forestc.data.labels import label_columns
from forestc.forest.ir import Forest
from forestc.passes.base import Pass, print_pass
from forestc.passes.exact_leaves import bound_text
from forestc.passes.pipeline import Step

AN_OBJECT = "given in Python"
MADE = "rows made on and beside the model's thresholds, and random ones, as none were given"

# Options of the command line and what they are when nobody gives them. A list is spelt with commas, true as a flag.
_FLAGS = {
    "ranges": ("--ranges", None),
    "label": ("--label", None),
    "classes": ("--classes", []),
    "held_out": ("--held-out", None),
    "targets": ("--target", ["verilog", "c"]),
    "level": ("-O", None),
    "tolerance": ("--tolerance", None),
    "passes": ("--passes", None),
    "scores": ("--scores", None),
    "latency": ("--latency", 0),
    "outputs": ("--outputs", "auto"),
    "c_inputs": ("--c-inputs", "words"),
    "c_quantiser": ("--c-quantiser", "auto"),
    "c_values": ("--c-values", "q31"),
    "stream": ("--stream", False),
    "tdata": ("--tdata", 0),
    "tuser": ("--tuser", 1),
    "axi_lite": ("--axi-lite", False),
    "align": ("--align", 0),
    "device": ("--device", None),
    "clock": ("--clock", None),
    "try_anyway": ("--try", False),
    "native": ("--native", False),
    "name": ("--name", None),
    "trust_pickle": ("--trust-pickle", False),
}


def told_options(
    rows: Any,
    *,
    ranges: Any,
    label: Any,
    held_out: Any,
    passes: str | Sequence[Pass] | None,
    stream: StreamOptions | None,
    **plain: Any,
) -> dict[str, Any]:
    """The options of `compile` as JSON, named as on the command line: files by their names, and `given in Python` for
    what no command line can say. plain: those that are JSON as they are."""
    wrapper = StreamOptions() if stream is None else stream
    named = Path(ranges).name if isinstance(ranges, str | Path) else AN_OBJECT
    return {
        "ranges": None if ranges is None else named,
        "label": _label(label, rows),
        "held_out": _held_out(held_out),
        "passes": passes if passes is None or isinstance(passes, str) else ",".join(map(print_pass, passes)),
        **plain,
        "stream": stream is not None,
        "tdata": wrapper.tdata_bits,
        "tuser": wrapper.user_bits,
        "axi_lite": wrapper.registers,
        "align": wrapper.align,
    }


def command_line(model: Any, rows: Any, options: Mapping[str, Any]) -> str | None:
    """The command that makes the same folder, with files by their names; None where objects of Python were given."""
    if not isinstance(model, str | Path) or not isinstance(rows, str | Path | None) or AN_OBJECT in options.values():
        return None
    words = ["forestc", "compile", Path(model).name, *([] if rows is None else ["--rows", Path(rows).name])]
    for option, (flag, default) in _FLAGS.items():
        value = options[option]
        if value is True:
            words.append(flag)
        elif value != default:
            words += [flag, ",".join(map(str, value)) if isinstance(value, list) else str(value)]
    return shlex.join([*words, "-o", "DIR"])


def versions(source: Forest) -> dict[str, str]:
    """forestc's version, NumPy's, and that of the library that trained the model, as far as the model tells it."""
    told = source.provenance
    return {"forestc": __version__, "numpy": np.__version__, **({told.source: told.version} if told.source else {})}


def model_told(model: Any, source: Forest) -> dict[str, str]:
    """The model's file or its class, and its hash."""
    kind = type(model)
    named = {"file": Path(model).name} if isinstance(model, str | Path) else {}
    return (named or {"class": f"{kind.__module__}.{kind.__qualname__}"}) | {"sha256": source.provenance.model_hash}


def accuracy_told(
    forest: Forest, given: Agreement, held_out: Agreement | None, shared: bool, made: bool
) -> dict[str, Any]:
    """What was measured on which rows. shared: the held-out rows are some of those given. made: none were given."""
    fitted = MADE if made else "the rows the passes were fitted on"
    return {
        "measure": "accuracy" if forest.decides else "R squared",
        "measured_on": f"{fitted}, and those held out" if shared else fitted,
        "given": asdict(given),
        "held_out": None if held_out is None else asdict(held_out),
    }


def leaves_told(step: Step) -> str:
    """What a step that had no rows did to leaves, and so to decisions."""
    leaves, decides = f"{step.report['leaf_bits']}-bit leaves", step.report["decides"]
    kept = "every input takes the model's own path through every tree"
    if step.report["leaves"] == "exact":
        return f"{kept}, and {leaves} hold the model's own values: exact"
    bound = step.report["score_bound"]
    if bound is None:
        return f"{kept}; {leaves} are rounded, which may change near ties within a member that votes"
    near = f"; a decision may change only where two scores are nearer than {bound_text(2 * bound)}" * decides
    return f"{kept}; {leaves} are rounded, so scores are within {bound_text(bound)} of the model's{near}"


def synthesis_told(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of `synth` without times, which are others every time."""
    return {key: value for key, value in figures.items() if key != "seconds"}


def _label(label: Any, rows: Any) -> str | list[str] | None:
    if label is None:
        return None
    columns = label_columns(label, rows)
    if columns is None:
        return AN_OBJECT
    return columns if isinstance(columns, str) else [str(name) for name in columns]


def _held_out(held_out: Any) -> str | float | None:
    """A share, a file's name, or what stands for objects."""
    if held_out is None or not isinstance(held_out, str | Path | int | float):
        return None if held_out is None else AN_OBJECT
    try:
        return float(str(held_out))
    except ValueError:
        return Path(held_out).name  # type: ignore[arg-type]
