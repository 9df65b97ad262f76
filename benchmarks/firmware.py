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

--layouts compares forestc's own layouts instead, on boosted models. A layout is beaten if another one needs neither
more flash nor more instructions, in the mean and at most.

forestc compiles each model at -O0 and -O1 from the training rows, in each layout. Its inputs are `floats` (raw rows,
compared by their bits), `row` (raw rows, turned into words first) or `words` (integers, as emlearn takes them).
Instructions are those of the test rows.

The peers need the headers of a C library and, for C++, of libstdc++; those of arm-none-eabi-gcc are used. A peer that
does not install or compile is listed with the reason. FILE holds a summary and the table of each processor. A later run
of the same commit measures only models that FILE lacks.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import lightgbm
import numpy as np
import xgboost
from data import read
from designs import with_header
from firmware_peers import PEERS, Model, Peer, Rows, Source
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments, earlier_rows, save, show

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
MORE = ("rf10_spambase", "rf100_spambase", "rf10_magic")  # adds models of the files in --data
TARGETS = {"cortex-m4f": "Cortex-M4F", "cortex-m0plus": "Cortex-M0+"}
TITLE = "firmware: forestc and its peers"
LEVELS = (0, 1)
MEASURES = (
    "forestc/layouts",
    "forestc/backends/c",
    "forestc/firmware",
    "forestc/passes/quantize_inputs",
    "forestc/passes/round_leaves",
)
MOST_ROWS = 1000
Tables = dict[str, list[dict[str, Any]]]  # The keys are titles of processors.
# TAKES holds the inputs of a header and its measured entry, by kind of input.
TAKES = {"words": ("words", "predict"), "row": ("words", "row"), "floats": ("float", "predict")}
SHOWN = {
    "branches": ("words", "floats"),
    "ranked": ("words", "floats"),
    "nodes": tuple(TAKES),
    "": ("words",),
}  # The keys are layouts; "" stands for all others.
BOOSTED: dict[str, tuple[str, Any]] = {
    f"{library}_{data}_{trees}x{size}": (data, make(trees, size))
    for library, make, cases in (
        ("xgb", lambda trees, depth: xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, n_jobs=1),
         ("digits 4x3", "bc 100x2", "spambase 100x2", "spambase 100x3", "spambase 40x4", "magic 100x3")),
        ("lgb", lambda trees, leaves: lightgbm.LGBMClassifier(
            n_estimators=trees, num_leaves=leaves, verbose=-1, n_jobs=1
        ), ("bc 60x16", "spambase 100x8", "magic 100x8", "magic 60x31")),
        ("hgb", lambda trees, leaves: HistGradientBoostingClassifier(
            max_iter=trees, max_leaf_nodes=leaves, random_state=0
        ), ("bc 20x8", "spambase 100x8", "magic 100x4")),
        ("gb", lambda trees, depth: GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=0),
         ("bc 100x1", "spambase 100x3", "magic 60x2")),
    )
    for data, _, text in (case.partition(" ") for case in cases)
    for trees, size in [map(int, text.split("x"))]
}  # fmt: skip  # The last two numbers of a name are trees, and depth or leaves.
COMPARED = ("cortex-m0plus", "avr")
ROWS_COMPARED = 100
NAMES = {"<f4": "floats", "<f8": "doubles", "<i2": "int16"}


@dataclass(frozen=True)
class Case:
    """A model and its test rows. made: rows on and beside its thresholds."""

    model: Model
    X: Rows
    y: NDArray[np.int64]
    made: Rows


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data", "only")
    parser.add_argument("--layouts", action="store_true", help="compare the layouts on boosted models")
    options = parser.parse_args()
    if options.layouts:
        return compare_layouts(options)
    names = options.only.split(",") if options.only else (*MODELS, *(MORE if options.data else ()))
    layouts, targets = tuple(LAYOUTS), TARGETS
    if options.small:
        names, layouts, targets = ("rf1_iris",), layouts[:1], dict([*TARGETS.items()][:1])
    tables: Tables = {title: earlier_rows(options, title) for title in targets.values()}
    start = time.perf_counter()
    for name in names:
        if all(name in {row["model"] for row in table} for table in tables.values()):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            case, folder = case_of(name, options.data), Path(scratch)
            designs = compiled(case, folder)
            sources = generated(case)
            for target, title in targets.items():
                tables[title] = [row for row in tables[title] if row["model"] != name]
                tables[title] += ours(case, designs, target, folder, layouts)
                tables[title] += [theirs(case, peer, source, CPUS[target], folder) for peer, source in sources]
                print(f"{name}, {target}: {time.perf_counter() - start:.0f} s", flush=True)
        save(TITLE, summary(tables), options, **tables)
    show(TITLE, summary(tables), options, **tables)


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


def ours(
    case: Case, designs: Sequence[Design], cpu: str, folder: Path, layouts: Sequence[str]
) -> Iterable[dict[str, Any]]:
    """Yields a row of the table for each level, layout and kind of input."""
    for level, design in enumerate(designs):
        test = evaluate(design.forest, case.X).index
        made = evaluate(design.forest, case.made).index
        wrong = (test != case.model.forest.predict(case.X)).sum(), (made != case.model.forest.predict(case.made)).sum()
        for layout in layouts:
            for takes in SHOWN.get(layout, SHOWN[""]):
                inputs, entry = TAKES[takes]
                try:
                    header = with_header(design, COptions(c_inputs=inputs, c_layout=layout), folder / "header")
                except OptionError as error:  # Masks hold only small trees.
                    yield row_of(case, "forestc", f"-O{level}, {layout}", takes, str(error)[:80])
                    continue
                output = forestc.measure(header, cpu, case.X, entries=[entry])
                assert output["differences"] == 0, output["first_difference"]
                right = 100 * float((test == case.y).mean())
                library = 100 * float(case.model.forest.score(case.X, case.y))
                sizes, taken = (output[key] for key in ("flash", "ram", "stack")), output["instructions"]
                figures = (*sizes, round(taken["mean"]), taken["max"], round(right, 1), round(library, 1))
                yield row_of(case, "forestc", f"-O{level}, {layout}", takes, wrong, figures)


# Layouts


def compare_layouts(options: Any) -> None:
    """Measures each layout on each boosted model and processor."""
    title = "layouts of C on boosted models"
    names = options.only.split(",") if options.only else [*BOOSTED][: 1 if options.small else None]
    rows = earlier_rows(options, "layouts")
    for name in names:
        if name not in {row["model"] for row in rows}:
            with tempfile.TemporaryDirectory() as scratch:
                rows += layouts_of(name, options.data, Path(scratch), COMPARED[: 1 if options.small else 2])
            print(name, flush=True)
            save(title, beaten(rows), options, layouts=rows)
    show(title, beaten(rows), options, layouts=rows)


def layouts_of(name: str, data: Path | None, folder: Path, cpus: Sequence[str]) -> Iterable[dict[str, Any]]:
    """Yields flash and instructions (cycles on AVR) of a model at -O1, for each processor and each layout that holds
    it."""
    of, model = BOOSTED[name]
    X, y = read(FILES.get(of, of), data)
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    model.fit(X_train, y_train)
    design = forestc.compile(model, X_train, folder / "m", label=y_train, name="m", targets=["c"]).design
    for cpu in cpus:
        for layout in LAYOUTS:
            try:
                header = with_header(design, COptions(c_layout=layout), folder / "header")
            except OptionError:  # The layout does not hold the forest.
                continue
            found = forestc.measure(header, cpu, X_test[:ROWS_COMPARED], entries=["predict"])
            assert found["differences"] == 0, found["first_difference"]
            taken = found["cycles"] or found["instructions"]
            figures = {"flash": found["flash"], "mean": round(taken["mean"]), "most": taken["max_of_all"]}
            yield {"model": name, "cpu": cpu, "layout": layout, **figures}


def beaten(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns for each layout: its cases, the cases where another layout is as good in everything, and the cases where
    it has the least flash, mean or most instructions by 3 %."""
    cases: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        cases.setdefault((row["model"], row["cpu"]), []).append(row)
    figures, counts = ("flash", "mean", "most"), []
    for layout in LAYOUTS:
        held = [(row, own) for own in cases.values() for row in own if row["layout"] == layout]
        others = [(row, [other for other in own if other is not row]) for row, own in held]
        counts.append(
            {
                "layout": layout,
                "cases": len(held),
                "beaten": sum(any(all(o[key] <= row[key] for key in figures) for o in own) for row, own in others),
                **{
                    f"least_{key}_by_3_%": sum(row[key] <= 0.97 * min(o[key] for o in own) for row, own in others)
                    for key in figures
                },
            }
        )
    return counts


# Peers


def generated(case: Case) -> list[tuple[Peer, Source | str]]:
    """Generates C with each peer. Returns its source; for a peer that fails, the reason."""
    sources: list[tuple[Peer, Source | str]] = []
    state = np.geterr()
    for peer in PEERS:
        try:
            sources.append((peer, peer.make(case.model)))
        except ImportError as error:
            sources.append((peer, f"not installed ({error.name})"))
        except Exception as error:  # noqa: BLE001  whatever a peer raises is reported
            sources.append((peer, f"{type(error).__name__}: {error}"[:80]))
    np.seterr(**state)  # emlearn changes numpy's error state.
    return sources


def theirs(case: Case, peer: Peer, source: Source | str, cpu: Cpu, folder: Path) -> dict[str, Any]:
    if isinstance(source, str):
        return row_of(case, peer.name, peer.options, "", source)
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
        return row_of(case, peer.name, peer.options, source.takes, f"does not compile: {reason(error)}")
    X = source.rows(case.X)
    rows = [X, case.made if source.takes != "<i2" else beside(source.forest, X, integral=True)]
    image, stack = read_image(made.image), static_stack(made)
    emulator, labels, runs = Emulator(own, image), [], []
    for some in rows:
        with np.errstate(over="ignore"):
            given = np.ascontiguousarray(some.astype(source.takes)).view(np.uint8).reshape(len(some), -1)
        runs.append(emulator.run(given, np.dtype("<i4"), 1, True))
        labels.append(runs[-1].results[:, 0])
    wrong = tuple(int((got != source.forest.predict(some)).sum()) for got, some in zip(labels, rows, strict=True))
    taken = runs[0].instructions
    assert taken is not None
    takes, deepest = NAMES[source.takes], max(stack.size or 0, *(run.stack for run in runs))
    right, library = 100 * float((labels[0] == case.y).mean()), 100 * float(source.forest.score(X, case.y))
    counts = round(float(taken.mean())), int(taken.max())
    figures = (image.flash, image.ram, deepest, *counts, round(right, 1), round(library, 1))
    return row_of(case, peer.name, peer.options, takes, wrong, figures)


def reason(error: ForestcError) -> str:
    """Returns the compiler's first error, cut to 80 characters."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if "error" in line or "undefined" in line), lines[0])[:80]


# Tables


def row_of(
    case: Case, who: str, options: str, takes: str, wrong: tuple[int, int] | str, figures: Sequence[float] = ()
) -> dict[str, Any]:
    """Makes a line of a table. wrong: how many labels are wrong on test rows and on rows beside thresholds, or why
    there are no figures."""
    output = isinstance(wrong, str)
    keys = ("flash", "ram", "stack", "instructions", "instructions_max", "test_%", "model_%")
    return {
        "model": case.model.name, "who": who, "options": options, "takes": takes,
        "exact": wrong if isinstance(wrong, str) else "yes" if not any(wrong) else "no",
        "wrong": "" if output else int(wrong[0]), "wrong_beside": "" if output else int(wrong[1]),
        **dict(zip(keys, [""] * len(keys) if output else figures, strict=True)),
    }  # fmt: skip


def summary(tables: Tables) -> list[dict[str, Any]]:
    return [summed(name, cpu, rows) for cpu, own in tables.items() for name, rows in by_model(own)]


def by_model(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (name, [row for row in rows if row["model"] == name]) for name in dict.fromkeys(row["model"] for row in rows)
    ]


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
