"""Counts differences of the generated C: every kind of model, layout and form of inputs, on 100,000 rows each.

The models are those of the frontends' contract (tests/contract), trained here. Their rows lie on thresholds and one
float step beside, with NaN, infinities, zeros of both signs and subnormals where the model takes them; some are
disturbed, some are made of the quantized forest's own thresholds. On the host each header gets all rows: its labels,
integer scores and probabilities (or values) are compared with those of the quantized forest's evaluator. Some
of the rows run again in the emulator, in one layout and form of each processor in turn. Columns:

library: rows on which the evaluator differs from the training library itself, of `library_rows`.
host, emulator: rows, and how many labels, scores (or answers) differ. bound: the largest error of a probability or
value as a share of the bound that the header states. 0 and at most 1 are wanted.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from tools import arguments, show

import forestc
from forestc.backends.c import VALUES, COptions, chosen_layout, emit
from forestc.backends.c import types as c_types
from forestc.backends.c.choice import LAYOUTS
from forestc.backends.c.inputs import Inputs, inputs_of, numpy_type, rows_of
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.values import Shown, shown
from forestc.checks.engines import values_of
from forestc.checks.vectors import Vectors, disturbed, vectors
from forestc.errors import ForestcError, OptionError
from forestc.firmware.emulator import Emulator
from forestc.firmware.entries import made_entry
from forestc.firmware.image import read_image
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode, evaluate
from forestc.toolchain.compilers import c_compiler
from forestc.toolchain.firmware import CPUS as PROCESSORS
from forestc.toolchain.firmware import build, find_compiler

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from contract.kind import Trained, hard_rows, ulps_between
from contract.kinds import KINDS

PASSES = "simplify,quantize{missing=always},simplify"
FORMS = {
    "words": COptions(c_inputs="words"),
    "raw": COptions(c_inputs="raw"),
    "int16": COptions(c_inputs="raw", c_types="*=int16"),
}
LARGE = 600  # nodes from which the compiler does not optimize on the host
MOST_BRANCHES = 4000  # nodes up to which branches are compiled for the emulator
CPUS = ("cortex-m0plus", "cortex-m4f")
SCIKIT_LEARN = ("sklearn", "pipeline", "search", "threshold", "calibrated")
MEASURES = ("forestc/frontends", "forestc/forest", "forestc/layouts", "forestc/backends/c", "forestc/firmware")
COUNTED = ("library_rows", "library", "headers", "rows", "labels", "scores", "emulator_rows", "emulator")
FAMILIES = dict.fromkeys(SCIKIT_LEARN, "scikit-learn")


@dataclass
class Counts:
    """rows: compared, each header for itself. headers: how many. labels, scores: that differ. bound: the largest error
    as a share of its bound; 0 without probabilities or values. first: where the first difference is."""

    rows: int = 0
    headers: int = 0
    labels: int = 0
    scores: int = 0
    bound: float = 0.0
    first: str = ""

    def add(
        self, name: str, forest: Forest, wanted: Evaluation, got: Sequence[np.ndarray], values: Shown | None
    ) -> None:
        """Compares labels, scores and values of a header."""
        labels, scores, shares = got
        rows = len(scores)
        wrong = (labels != wanted.index.reshape(rows, -1)).any(axis=1) if forest.decides else np.zeros(rows, dtype=bool)
        off = (scores != wanted.scores).any(axis=1)
        self.rows, self.headers = self.rows + rows, self.headers + 1
        self.labels, self.scores = self.labels + int(wrong.sum()), self.scores + int(off.sum())
        if (wrong | off).any() and not self.first:
            self.first = f"{name}, row {np.flatnonzero(wrong | off)[0]}"
        if values is not None:
            errors = np.abs(shares.astype(np.float64) * values.step - values_of(forest, wanted))
            share = float(errors.max() / values.bound)
            self.bound = max(self.bound, np.inf if np.isnan(share) else share)


@dataclass(frozen=True)
class Header:
    """A header in the shared library. name: of its layout and form. takes: what its function here takes. inner: what
    those of the header take. row: whether the function quantizes."""

    name: str
    forest: Forest
    options: COptions
    takes: Inputs
    inner: Inputs
    row: bool = False

    @property
    def values(self) -> Shown | None:
        return shown(self.forest, self.forest.name, self.options.c_values)

    @property
    def c(self) -> str:
        """An exported function that fills arrays for rows one after the other."""
        f, name, row = self.forest, self.forest.name, self.row
        inner = self.inner
        step = 1 if inner.struct else len(inner.kinds)
        labels, scores = c_types.label_type(f), c_types.score_type(f)
        kind = "float" if self.values is None else self.values.kind
        entry = "probabilities" if self.values is not None and self.values.probabilities else "values"
        calls = [f"{name}_predict_batch(x, n, labels);"] if f.decides else []
        calls += [f"{name}_scores_batch(x, n, scores);"]
        calls += [f"{name}_{entry}_batch(x, n, values);"] if self.values is not None else []
        body = " ".join(calls)
        if row:
            counts = [("labels", len(f.targets)), ("scores", f.n_scores)]
            counts += [("values", self.values.count)] if self.values is not None else []
            moved = " ".join(f"{what} += {count};" for what, count in counts)
            body = f"""uint32_t left = n; n = 1;
    for (; left > 0u; left--) {{
        {inner.type} own[{step}], *x = own;
        {name}_quantize(row, x); {body}
        row += {len(self.takes.kinds)}; {moved}
    }}"""
        head = f"void {self.symbol}(const {self.takes.type} *{'row' if row else 'x'}, uint32_t n, "
        out = f"{labels} *labels, {scores} *scores, {kind} *values"
        return f"{head}{out})\n{{\n    {body}\n    (void)labels; (void)values;\n}}\n"

    @property
    def symbol(self) -> str:
        return f"run_{self.forest.name}{'_row' if self.row else ''}"

    def run(self, library: ctypes.CDLL, rows: np.ndarray) -> list[np.ndarray]:
        """Labels, scores and values of words or raw rows."""
        f, n, table = self.forest, len(rows), np.ascontiguousarray(self.takes.table(rows))
        values = self.values
        out = [
            np.zeros((n, len(f.targets)), numpy_type(c_types.label_type(f))),
            np.zeros((n, f.n_scores), numpy_type(c_types.score_type(f))),
            np.zeros((n, values.count if values else 1), numpy_type(values.kind if values else "float")),
        ]
        getattr(library, self.symbol)(
            table.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(n),
            *(array.ctypes.data_as(ctypes.c_void_p) for array in out),
        )  # fmt: skip
        return out


def headers(forest: Forest, number: int) -> Iterator[Header]:
    """Every layout and form that holds the forest, and rows by the quantizer; values in q15, q31 and float in turn,
    integers of 16 bits for every third kind."""
    for layout in LAYOUTS:
        for form, options in FORMS.items():
            if form == "int16" and number % 3:
                continue  # a third of the kinds
            own = replace(forest, name=f"{layout}_{form}")
            chosen = replace(options, c_layout=layout, c_values=VALUES[1 + number % 3])
            try:
                takes = inputs_of(own, chosen.c_inputs, chosen.c_types)
                chosen_layout(own, chosen)
            except OptionError:
                continue  # tables are for trees that are added
            yield Header(own.name, own, chosen, takes, takes)
            if form == "words":
                yield Header(f"{layout}_row", own, chosen, rows_of(own, row_type(own, "auto").name), takes, True)


def library_of(compared: Sequence[Header], folder: Path) -> ctypes.CDLL:
    """All headers as one shared library."""
    text = "#include <stdint.h>\n"
    for header in compared:
        if not header.row:
            ((name, header),) = emit(header.forest, header.options).items()
            (folder / name).write_text(header)
            text += f'#include "{name}"\n'
    (folder / "all.c").write_text(text + "".join(header.c for header in compared))
    level = "-O1" if compared[0].forest.n_nodes < LARGE else "-O0"
    flags = ["-std=c99", level, "-fno-strict-aliasing", "-shared", "-fPIC"]
    subprocess.run([str(c_compiler()), *flags, "all.c", "-o", "all.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def rows_for(forest: Forest, hard: np.ndarray, count: int) -> Vectors:
    """Hard rows, a quarter of them disturbed, and rows beside the quantized forest's own thresholds."""
    own = list(vectors(forest, ArrayRows(np.empty((0, forest.columns))), count // 20, boundary=count // 5))
    made = np.concatenate([part.raw for part in own])[: count // 4]
    given = np.asarray(hard, dtype=np.float64)
    given = np.concatenate([given, given])[: count - len(made)]
    given[::4] = disturbed(forest, given[::4])
    raw = np.concatenate([given, made])
    return Vectors(encode(forest, raw), raw, "rows")


def on_host(forest: Forest, rows: Vectors, number: int, folder: Path, counts: Counts) -> list[str]:
    """Compares all headers of a forest with the evaluator. Returns their layouts."""
    compared = list(headers(forest, number))
    library, known = library_of(compared, folder), evaluate_words(forest, rows.words)
    said: dict[bytes, Evaluation] = {}
    for header in compared:
        own, wanted = rows, known
        if header.takes.raw:
            raw = header.takes.fitted(rows.raw)
            own = Vectors(encode(forest, raw), raw, "rows")
        if not np.array_equal(own.words, rows.words):
            key = own.words[:1000].tobytes()
            wanted = said.get(key) or evaluate_words(forest, own.words)
            said[key] = wanted
        got = header.run(library, own.raw if header.takes.raw else own.words)
        counts.add(header.name, forest, wanted, got, header.values)
    return list(dict.fromkeys(header.options.c_layout for header in compared))


def in_emulator(
    forest: Forest, rows: Vectors, layouts: Sequence[str], number: int, most: int, folder: Path
) -> tuple[int, int, str]:
    """Rows and vectors that ran on each processor, how many differ, and the first: in layouts and forms in turn."""
    ran = wrong = 0
    first = ""
    forest = replace(forest, name="m")
    netlist = lower(forest, LoweringOptions(outputs="scores"))
    step = max(1, len(rows.raw) // most)
    some = Vectors(rows.words[::step], rows.raw[::step], "rows")
    for place, name in enumerate(CPUS):
        cpu, form = PROCESSORS[name], ("words", "raw")[(number // len(layouts) + place) % 2]
        options = replace(
            FORMS[form], c_layout=layouts[(number + place) % len(layouts)], c_values=VALUES[1 + number % 3]
        )
        ((path, text),) = emit(forest, options).items()
        (folder / path).write_text(text)
        kept = {"targets": ["c"], "latency": 0, "outputs": "scores", "c": options.c_record()}
        design = Design(folder, manifest(forest, netlist, {"c": path}, kept, {}), forest, forest)
        entry = made_entry(design, cpu, "row" if form == "words" else "predict" if forest.decides else "scores")
        (folder / "entry.c").write_text(entry.source)
        machine = Emulator(cpu, read_image(build(cpu, find_compiler(cpu), "entry.c", folder, "s").image))
        machine.count_nothing()
        own = entry.taken(some, forest)
        got = machine.run(entry.inputs(own), entry.gives, entry.count, entry.returned).results
        comparison = entry.compare(got, evaluate_words(forest, own.words), forest)
        ran, wrong = ran + len(own.words), wrong + comparison.count
        first = first or (f"{name} {form} {options.c_layout}, row {comparison.first}" if comparison.count else "")
    return ran, wrong, first


def against_library(trained: Trained, forest: Forest, rows: np.ndarray) -> int:
    """The rows whose leaves or decision differ from the library's."""
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
    """The line of a kind; of one that fails, why."""
    warnings.filterwarnings("ignore")
    try:
        return line_of(kind, number, options)
    except Exception as error:  # noqa: BLE001  the others are measured nevertheless
        return {"kind": kind, "library_rows": 0, "library": 0, "failed": f"{type(error).__name__}: {error}"}


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
    counts = Counts()
    with tempfile.TemporaryDirectory() as name:
        rows = rows_for(forest, hard, options.rows)
        layouts = on_host(forest, rows, number, Path(name), counts)
        if forest.n_nodes > MOST_BRANCHES and len(layouts) > 1:
            layouts.remove("branches")
        ran, wrong, first = in_emulator(forest, rows, layouts, number, options.emulator_rows, Path(name))
    line |= {"trees": len(forest.trees), "nodes": forest.n_nodes, **asdict(counts)}
    return line | {"emulator_rows": ran, "emulator": wrong, "first": counts.first or first}


def summary(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each library."""
    by_library: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        family = line["kind"].split("-")[0]
        by_library.setdefault(FAMILIES.get(family, family), []).append(line)
    made = []
    for library, own in by_library.items():
        ran = [line for line in own if "rows" in line]
        sums = {key: sum(line.get(key, 0) for line in own) for key in COUNTED}
        made.append(
            {
                "models read by": library, "kinds": len(own), "library rows": sums["library_rows"],
                "differ from the library": sums["library"], "kinds in C": len(ran), "headers": sums["headers"],
                "rows on the host": sums["rows"], "label differences": sums["labels"],
                "score differences": sums["scores"],
                "largest error / bound": round(max((line["bound"] for line in ran), default=0.0), 3),
                "rows in the emulator": sums["emulator_rows"], "emulator differences": sums["emulator"],
            }
        )  # fmt: skip
    return made


def main() -> None:
    parser = arguments(__doc__, MEASURES, "only")
    parser.add_argument("--rows", type=int, default=100_000, help="of each header (default: %(default)s)")
    parser.add_argument("--library-rows", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--emulator-rows", type=int, default=1000, help="on each processor (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="only every n-th kind")
    options = parser.parse_args()
    if options.small:
        options.rows, options.library_rows, options.emulator_rows, options.every = 40, 2, 2, len(KINDS)
    warnings.filterwarnings("ignore")
    kinds = [kind for kind in KINDS if options.only in kind][:: options.every]
    lines, start = [], time.perf_counter()
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) if options.jobs > 1 else nullcontext() as pool:
        run = pool.map if pool else map
        for line in run(measured, kinds, range(len(kinds)), [options] * len(kinds)):
            lines.append(line)
            print(f"{len(lines)}/{len(kinds)} {time.perf_counter() - start:.0f} s {line}", flush=True)
    left = [{"kind": line["kind"], "why": line[key]} for key in ("refused", "failed") for line in lines if key in line]
    show("differences of C", summary(lines), options, **({"not_compiled": left} if left else {}))
    wanted = [line.get(key, 0) for line in lines for key in ("library", "labels", "scores", "emulator")]
    if any(wanted) or any("failed" in line for line in lines) or any(line.get("bound", 0) > 1 for line in lines):
        sys.exit(3)


if __name__ == "__main__":
    main()
