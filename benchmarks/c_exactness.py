"""Counts wrong results of the generated C for every kind of model, on 100,000 rows for each header.

The models are those of the frontends' contract (tests/contract), trained here. The rows lie on thresholds and one float
step beside them, with NaN, infinities, zeros of both signs and subnormals if the model takes them. Some rows are
disturbed, others are made from the thresholds of the quantized forest. On the host each header runs as in `forestc
check`, with sanitizers: labels, integer scores, words of raw rows, and probabilities or values are compared with the
evaluator of the quantized forest. On each processor one layout and form runs in the emulator as in `forestc measure`.
`--headers 99` takes all layouts and forms of each kind, which takes hours.

The column `differ from the library` counts the rows, out of `library rows`, on which the evaluator and the training
library differ.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

import a_single_thread  # noqa: F401
import numpy as np
from ledger import Case, Ledger, Steps
from tools import ROOT, arguments

import forestc
from forestc.backends.c.choice import chosen_layout
from forestc.backends.c.engine import CEngine
from forestc.backends.c.header import emit
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import COptions, CValues
from forestc.backends.vectors import Vectors, disturbed, vectors
from forestc.errors import ForestcError, OptionError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode, evaluate

sys.path.insert(0, str(ROOT / "tests"))
from contract.kind import Trained, hard_rows, ulps_between
from contract.kinds import KINDS

PASSES = "simplify,quantize-inputs{missing=always},simplify"
FORMS = ({"c_inputs": "words"}, {"c_inputs": "raw"}, {"c_inputs": "raw", "c_types": "*=int16"})
# STRIDE is the step through the pairs of layout and form: successive kinds of model start at different pairs.
STRIDE = 7
CPUS = ("cortex-m0plus", "cortex-m4f")
COUNTED = ("library_rows", "library", "headers", "rows", "host", "emulator_rows", "emulator")
SKLEARN = ("sklearn", "pipeline", "search", "threshold", "calibrated", "subclass", "frozen")
FAMILIES = dict.fromkeys(SKLEARN, "scikit-learn")


def designs(forest: Forest, number: int, folder: Path) -> Iterator[Design]:
    """Yields a design for every layout and form that holds the forest. number: of the model, sets the layout that comes
    first. The values of C are q15, q31 and float in turn."""
    netlist, pairs = lower(forest, LoweringOptions(outputs="scores")), list(product(LAYOUTS, FORMS))
    for turn in range(len(pairs)):
        layout, form = pairs[(number + turn) * STRIDE % len(pairs)]
        chosen = COptions(**form, c_layout=layout, c_values=get_args(CValues)[1 + number % 3])  # type: ignore[arg-type]
        try:
            inputs_of(forest, chosen.c_inputs, chosen.c_types)
            chosen_layout(forest, chosen)
            ((path, text),) = emit(forest, chosen).items()
        except OptionError:
            continue  # Tables hold only trees that are added; masks hold only small trees.
        out = folder / str(turn)
        out.mkdir()
        (out / path).write_text(text)
        options = {"targets": ["c"], "latency": 0, "outputs": "scores", "c": chosen.c_record()}
        written = {**manifest(forest, netlist, {"c": path}, options, {}), "sha256": {"files": {}}}
        yield Design(out, written, forest, forest)


def rows_for(forest: Forest, hard: np.ndarray, count: int) -> Vectors:
    """Returns `count` vectors: hard rows, a quarter of them disturbed, and rows beside the quantized forest's
    thresholds."""
    own = list(vectors(forest, ArrayRows(np.empty((0, forest.columns))), count // 20, boundary=count // 5))
    made = np.concatenate([part.raw for part in own])[: count // 4]
    given = np.asarray(hard, dtype=np.float64)
    given = np.concatenate([given, given])[: count - len(made)]
    given[::4] = disturbed(forest, given[::4])
    raw = np.concatenate([given, made])
    return Vectors(encode(forest, raw), raw, "rows")


def against_library(trained: Trained, forest: Forest, rows: np.ndarray) -> int:
    """Returns how many rows have other leaves or another decision than the library's."""
    evaluation, decision = evaluate(forest, rows), np.asarray(trained.decision(rows))
    decision = decision.reshape(len(rows), -1)
    ours = evaluation.decision.reshape(len(rows), -1)
    if any(part.classes for part in forest.targets):
        wrong = (ours != decision).any(axis=1)
    else:
        narrow = np.float32 if np.float32 in (ours.dtype, decision.dtype) else np.float64
        with np.errstate(over="ignore"):
            apart = ulps_between(ours.astype(narrow), decision.astype(narrow))
        wrong = (apart > trained.value_ulps).any(axis=1)
    if trained.leaves is not None:
        wrong |= (evaluation.leaves != trained.leaves(rows).reshape(len(rows), -1)).any(axis=1)
    return int(wrong.sum())


def measured(kind: str, number: int, options: Any) -> dict[str, Any]:
    """Returns the line of a kind of model; if the kind fails, a line with the error."""
    warnings.filterwarnings("ignore")
    try:
        return line_of(kind, number, options)
    except Exception as error:  # noqa: BLE001  the others are measured nevertheless
        return {"kind": kind, "failed": f"{type(error).__name__}: {error}"}


def line_of(kind: str, number: int, options: Any) -> dict[str, Any]:
    trained = KINDS[kind]()
    source = forestc.load(trained.source)
    hard = hard_rows(source, trained, options.rows * 3 // 4)
    checked = hard[: options.library_rows]
    line: dict[str, Any] = {"kind": kind, "library_rows": len(checked)}
    line["library"] = against_library(trained, source, checked)
    try:
        forest = forestc.quantize(trained.source, np.asarray(trained.X, dtype=np.float64), passes=PASSES)
    except ForestcError as error:
        return {**line, "refused": str(error)}
    forest = replace(forest, name="m")
    rows = rows_for(forest, hard, options.rows)
    expected, host, emulated, wrong = evaluate_words(forest, rows.words), 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        made = list(islice(designs(forest, number, Path(name)), options.headers))
        for design in made:
            (design.folder / "check").mkdir()
            host += CEngine(design, design.folder / "check").compare(rows, expected).count
        for turn, cpu in enumerate(CPUS):
            design = made[(number + turn) % len(made)]
            output = forestc.measure(design, cpu, rows.raw, most=options.emulator_rows)
            emulated, wrong = emulated + output["rows"] + output["vectors"], wrong + output["differences"]
    line |= {"headers": len(made), "rows": len(made) * len(rows.raw), "host": host}
    return line | {"emulator_rows": emulated, "emulator": wrong}


def library_of(kind: str) -> str:
    family = kind.split("-")[0]
    return FAMILIES.get(family, family)


def summed(kinds: Sequence[str], pool: Any, options: Any, case: Case) -> Steps:
    """Measures the kinds of a library, and sums their lines into one. kinds: of all libraries."""
    own = {kind: number for number, kind in enumerate(kinds) if library_of(kind) == case["models read by"]}
    yield [*own, ROOT / "tests" / "contract"], None
    lines = []
    for line in (pool.map if pool else map)(measured, own, own.values(), [options] * len(own)):
        lines.append(line)
        print(f"{len(lines)}/{len(own)} {line}", flush=True)
    left = "; ".join(f"{line['kind']}: {line[key]}" for key in ("refused", "failed") for line in lines if key in line)
    sums = {key: sum(line.get(key, 0) for line in lines) for key in COUNTED}
    yield {
        "kinds": len(own), "library rows": sums["library_rows"],
        "differ from the library": sums["library"], "kinds in C": sum("rows" in line for line in lines),
        "headers": sums["headers"], "rows on the host": sums["rows"], "host differences": sums["host"],
        "rows in the emulator": sums["emulator_rows"], "emulator differences": sums["emulator"],
        **({"not compiled": left} if left else {}),
    }  # fmt: skip


def main() -> None:
    parser = arguments(__doc__, "json", "only")
    parser.add_argument("--rows", type=int, default=100_000, help="of each header (default: %(default)s)")
    parser.add_argument("--library-rows", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--emulator-rows", type=int, default=1000, help="on each processor (default: %(default)s)")
    parser.add_argument("--headers", type=int, default=4, help="of each kind, in turn (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="only every n-th kind")
    options = parser.parse_args()
    if options.small:
        options.rows, options.library_rows, options.emulator_rows, options.every = 40, 2, 2, len(KINDS)
        options.headers = 1
    warnings.filterwarnings("ignore")
    kinds = [kind for kind in KINDS if options.only in kind][:: options.every]
    depends = ("rows", "library_rows", "emulator_rows", "headers", "every")
    ledger = Ledger("differences of C", options, ("gcc", "unicorn", "arm-none-eabi-gcc"), depends)
    cases = [{"models read by": library} for library in dict.fromkeys(map(library_of, kinds))]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) if options.jobs > 1 else nullcontext() as pool:
        ledger.fill(cases, summed, kinds, pool, options)
    ledger.show()
    if any(row[key] for row in ledger.rows for key in row if "differ" in key):
        sys.exit(3)
    if any("Error" in row.get("not compiled", "") for row in ledger.rows):
        sys.exit(2)


if __name__ == "__main__":
    main()
