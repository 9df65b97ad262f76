"""Compares C for microcontrollers by forestc and by its peers: flash, RAM, stack, instructions and wrong labels.

    pip install --target SITE --no-deps emlearn m2cgen micromlgen tl2cgen treelite ydf absl-py timber-compiler
    PYTHONPATH=SITE python benchmarks/firmware.py --data DIR --json FILE

The models are random forests (random_state 0), 10 trees of depth 6 and 100 of depth 8, on scikit-learn's data and on
the files of DIR (NAME.csv.gz, the class last); 70 % of the rows, stratified, train them. Each C gets an entry point
that takes a row and returns a class. It is compiled with -Os, linked with the needed parts of libgcc and libm, and runs
in the emulator of `forestc measure`. The rows are at most 1,000 test rows and 1,000 made rows. The made rows lie on
thresholds of the model or one step beside (a step of float32 or of the integers), half of them in one column, half in
all. A label is wrong if the Python model gives another label for the same row; `exact` says that no label is wrong.
Some peers must train the model again on integers: they are compared with the model trained again.

forestc compiles each model at -O0 and -O1 from the training rows, in each layout. Its inputs are `floats` (raw rows,
compared by their bits), `row` (raw rows, turned into words first) or `words` (integers, as emlearn takes them).
Instructions are those of the test rows.

The peers need the headers of a C library and, for C++, of libstdc++; those of arm-none-eabi-gcc are used. A peer that
does not compile is listed with the reason; the rows of one that is not installed stay as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from designs import with_header
from firmware_peers import PEERS, Model, Peer, Rows, Source
from ledger import Ledger, Steps, tool_version
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments

import forestc
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import COptions
from forestc.errors import ForestcError, OptionError
from forestc.firmware.emulator import Emulator
from forestc.firmware.image import read_image, static_stack
from forestc.manifest.design import Design
from forestc.rows.encode import evaluate
from forestc.toolchain.firmware import CPUS, Cpu, build, find_compiler

FILES = {"magic": "magic04"}
# SIZES holds the trees and the depth, by the first part of a model's name.
SIZES = {"rf1": (1, 2), "rf10": (10, 6), "rf100": (100, 8)}
MODELS = ("rf10_bc", "rf100_bc", "rf10_digits", "rf100_digits")
MORE = ("rf10_spambase", "rf10_magic")  # adds models of the files in --data
TARGETS = {"cortex-m4f": "Cortex-M4F", "cortex-m0plus": "Cortex-M0+"}
LEVELS = (0, 1)
TOOLS = ("arm-none-eabi-gcc", "unicorn", "forestc/firmware", "forestc/toolchain", "forestc/commands/measure.py")
MOST_ROWS = 1000
# TAKES holds the inputs of a header and its measured entry, by kind of input.
TAKES = {"words": ("words", "predict"), "row": ("words", "row"), "floats": ("float", "predict")}
SHOWN = {
    "branches": ("words", "floats"),
    "ranked": ("words", "floats"),
    "nodes": tuple(TAKES),
    "": ("words",),
}  # The keys are layouts; "" stands for all others.
NAMES = {"<f4": "floats", "<f8": "doubles", "<i2": "int16"}


@dataclass(frozen=True)
class Case:
    """A model and its test rows. made: rows on and beside its thresholds."""

    model: Model
    X: Rows
    y: NDArray[np.int64]
    made: Rows


def main() -> None:
    options = arguments(__doc__, "json", "data", "only").parse_args()
    names = options.only.split(",") if options.only else (*MODELS, *(MORE if options.data else ()))
    layouts, targets = tuple(LAYOUTS), TARGETS
    if options.small:
        names, layouts, targets = ("rf1_iris",), layouts[:1], dict([*TARGETS.items()][:1])
    ledger = Ledger("firmware: forestc and its peers", options, TOOLS)
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            case, folder = case_of(name, options.data), Path(scratch)
            designs = compiled(case, folder)
            sources = generated(case)
            for target, title in targets.items():
                row = {"model": name, "cpu": title}
                for level, design in enumerate(designs):
                    forms = [(layout, takes) for layout in layouts for takes in SHOWN.get(layout, SHOWN[""])]
                    own = [{**row, "who": "forestc", "options": f"-O{level}, {a}", "takes": b} for a, b in forms]
                    ledger.fill(own, ours, case, design, target, folder)
                for peer, source in sources:
                    other = {**row, "who": peer.name, "options": peer.options}
                    if source is None:
                        ledger.keep(other)
                    else:
                        ledger.fill([other], theirs, case, peer, source, CPUS[target], folder)
    ledger.show(summary=summary(ledger.rows))


# Models


def case_of(name: str, data: Path | None) -> Case:
    size, _, of = name.partition("_")
    X, y = read(FILES.get(of, of), data)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    trees, depth = SIZES[size]
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(X_train, y_train)
    indices = np.arange(min(MOST_ROWS, len(X_test))) * len(X_test) // min(MOST_ROWS, len(X_test))
    X_test, y_test = X_test[indices], y_test[indices]
    return Case(Model(name, forest, X_train, y_train), X_test, y_test, beside(forest, X_test, integral=False))


def beside(forest: Any, X: Rows, *, integral: bool) -> Rows:
    """Makes rows with values on the forest's thresholds or one step beside. integral: steps to the next integer instead
    of the next float32."""
    random = np.random.default_rng(0)
    pairs = {
        (f, t) for e in forest.estimators_ for f, t in zip(e.tree_.feature, e.tree_.threshold, strict=True) if f >= 0
    }
    thresholds = [np.array(sorted(t for g, t in pairs if g == f)) for f in range(X.shape[1])]
    rows = X[random.integers(len(X), size=MOST_ROWS)].astype(np.float64)
    for index, row in enumerate(rows):
        used = [f for f in range(X.shape[1]) if len(thresholds[f])]
        for f in used if index % 2 else [random.choice(used)]:
            threshold, step = random.choice(thresholds[f]), random.integers(-1, 2)
            if integral:
                row[f] = np.floor(threshold) + step
            else:
                single = np.float32(threshold)
                row[f] = np.nextafter(single, np.float32(step * np.inf)) if step else single
    return rows


# forestc


def compiled(case: Case, folder: Path) -> list[Design]:
    """Compiles the model at each level."""
    model, designs = case.model, []
    for level in LEVELS:
        done = forestc.compile(
            model.forest, model.X, folder / f"O{level}", label=model.y, name="m", targets=["c"], level=level
        )
        designs.append(done.design)
    return designs


def ours(case: Case, design: Design, cpu: str, folder: Path, row: Case) -> Steps:
    """Measures a layout and a kind of input of a design."""
    inputs, entry = TAKES[row["takes"]]
    rows = [case.X, case.y, case.made]
    try:
        options = COptions(c_inputs=inputs, c_layout=row["options"].split()[-1])
        header = with_header(design, options, folder / "header")
    except OptionError as error:  # Masks hold only small trees.
        yield rows, str(error)
        yield figures_of(str(error)[:80])
        return
    test, made = (evaluate(design.forest, some).index for some in (case.X, case.made))
    wrong = (test != case.model.forest.predict(case.X)).sum(), (made != case.model.forest.predict(case.made)).sum()
    yield rows, [header.path("c"), *wrong]
    output = forestc.measure(header, cpu, case.X, entries=[entry])
    assert output["differences"] == 0, output["first_difference"]
    right = 100 * float((test == case.y).mean())
    library = 100 * float(case.model.forest.score(case.X, case.y))
    sizes, taken = (output[key] for key in ("flash", "ram", "stack")), output["instructions"]
    yield figures_of(wrong, (*sizes, round(taken["mean"]), taken["max"], round(right, 1), round(library, 1)))


# Peers


def generated(case: Case) -> list[tuple[Peer, Source | str | None]]:
    """Generates C with each peer. Returns its source; for a peer that fails, the reason; None if it is not
    installed."""
    sources: list[tuple[Peer, Source | str | None]] = []
    state = np.geterr()
    for peer in PEERS:
        try:
            sources.append((peer, peer.make(case.model)))
        except ImportError:
            sources.append((peer, None))
        except Exception as error:  # noqa: BLE001  whatever a peer raises is reported
            sources.append((peer, f"{type(error).__name__}: {error}"[:80]))
    np.seterr(**state)  # emlearn changes numpy's error state.
    return sources


def theirs(case: Case, peer: Peer, source: Source | str, cpu: Cpu, folder: Path, _: Case) -> Steps:
    rows = [case.X, case.y, case.made]
    if isinstance(source, str):
        yield rows, source
        yield {"takes": "", **figures_of(source)}
        return
    yield rows, [source.takes, *source.files.items()]
    compiler = find_compiler(cpu)
    command = (*compiler.command, *(f"-I{path}" for path in source.include))
    build_folder = folder / f"{peer.name}{PEERS.index(peer)}{cpu.name}"
    build_folder.mkdir(parents=True)
    for name, text in source.files.items():
        (build_folder / name).write_text(text, encoding="utf-8")
    own = replace(cpu, libraries=("-lm", "-lc", "-lgcc"))
    try:
        files = next(iter(source.files))
        made = build(own, replace(compiler, command=command), files, build_folder, "s", language=source.language)
    except ForestcError as error:
        yield {"takes": source.takes, **figures_of(f"does not compile: {reason(error)}")}
        return
    X = source.rows(case.X)
    given_rows = [X, case.made if source.takes != "<i2" else beside(source.forest, X, integral=True)]
    image, stack = read_image(made.image), static_stack(made)
    emulator, labels, runs = Emulator(own, image), [], []
    for some in given_rows:
        with np.errstate(over="ignore"):
            given = np.ascontiguousarray(some.astype(source.takes)).view(np.uint8).reshape(len(some), -1)
        runs.append(emulator.run(given, np.dtype("<i4"), 1, True))
        labels.append(runs[-1].results[:, 0])
    wrong = tuple(int((got != source.forest.predict(some)).sum()) for got, some in zip(labels, given_rows, strict=True))
    taken = runs[0].instructions
    assert taken is not None
    takes, deepest = NAMES[source.takes], max(stack.size or 0, *(run.stack for run in runs))
    right, library = 100 * float((labels[0] == case.y).mean()), 100 * float(source.forest.score(X, case.y))
    counts = round(float(taken.mean())), int(taken.max())
    figures = (image.flash, image.ram, deepest, *counts, round(right, 1), round(library, 1))
    yield {"takes": takes, **figures_of(wrong, figures), "version": tool_version(peer.name)}


def reason(error: ForestcError) -> str:
    """Returns the compiler's first error, cut to 80 characters."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if "error" in line or "undefined" in line), lines[0])[:80]


# Tables


def figures_of(wrong: tuple[int, int] | str, figures: Sequence[float] = ()) -> dict[str, Any]:
    """Makes the figures of a row. wrong: how many labels are wrong on test rows and on rows beside thresholds, or why
    there are no figures."""
    output = isinstance(wrong, str)
    keys = ("flash", "ram", "stack", "instructions", "instructions_max", "test_%", "model_%")
    return {
        "exact": wrong if isinstance(wrong, str) else "yes" if not any(wrong) else "no",
        "wrong": "" if output else int(wrong[0]), "wrong_beside": "" if output else int(wrong[1]),
        **dict(zip(keys, [""] * len(keys) if output else figures, strict=True)),
    }  # fmt: skip


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    cases = dict.fromkeys((row["cpu"], row["model"]) for row in rows)
    own = {case: [row for row in rows if (row["cpu"], row["model"]) == case] for case in cases}
    return [summed(name, cpu, own[cpu, name]) for cpu, name in sorted(own, key=lambda case: case[0] != "Cortex-M4F")]


SMALLER = {(peer.name, peer.options) for peer in PEERS if peer.smaller}


def summed(name: str, cpu: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Compares forestc with its peers on a model and a processor: ratios to the smallest exact peer, the smallest peer
    and the fastest peer."""
    done = [row for row in rows if row["flash"] != ""]
    mine = [row for row in done if row["who"] == "forestc"]
    peers = [row for row in done if row["who"] != "forestc" and (row["who"], row["options"]) not in SMALLER]

    def least(some: Iterable[dict[str, Any]], key: str = "flash") -> tuple[float, str]:
        best = min(some, key=lambda row: row[key], default=None)
        if best is None:
            return float("nan"), ""
        who = best["who"] if best["who"] != "forestc" else best["options"]
        return best[key], f"{best[key]:,} ({who}, {best['takes']})"

    exact_peer = least(row for row in peers if row["exact"] == "yes")
    any_peer, fastest, paths = least(peers), least(peers, "instructions"), least(mine)
    exact, quick = least(row for row in mine if row["exact"] == "yes"), least(mine, "instructions")
    return {
        "model": name, "cpu": cpu,
        "smallest_exact_peer": exact_peer[1], "smallest_peer": any_peer[1], "fastest_peer": fastest[1],
        "ours_exact": exact[1], "to_exact_peer": ratio(exact, exact_peer),
        "ours_paths_kept": paths[1], "to_smallest_peer": ratio(paths, any_peer),
        "ours_fastest": quick[1], "to_fastest_peer": ratio(quick, fastest),
    }  # fmt: skip


def ratio(own: tuple[float, str], peer: tuple[float, str]) -> float | str:
    return round(own[0] / peer[0], 2) if own[1] and peer[1] else ""


if __name__ == "__main__":
    main()
