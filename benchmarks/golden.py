"""Finds the figures on the pages that were measured with an older forestc.

    python benchmarks/golden.py             names the figures that are stale; status 1 if there are any
    python benchmarks/golden.py --print     the digest of each golden case, as JSON

A golden case does in a second or two, on a small model, what a benchmark does in minutes: it takes the same path. Its
digest covers what forestc makes there: files, scores of each setting that a search tries, estimates, the commands and
scripts of other programs. A result in docs/benchmarks records the digests of its cases when it is measured; a figure is
stale if the digest of a case that stands for it is another now. As a small model reaches few limits, a digest covers
the constants of the case's folders, too.

Models and rows come from scikit-learn, XGBoost and examples/models, so a new version of these may change a digest.
Yosys and nextpnr are not run. Changes of speed go unseen.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from data import others
from designs import with_header
from highspy import Highs
from ledger import sealed
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

import forestc
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import COptions
from forestc.backends.shared.engine import FLAGS
from forestc.backends.stream.options import StreamOptions
from forestc.boards.bitstream import build
from forestc.costs.boards import board_of
from forestc.costs.devices import DEVICES
from forestc.costs.estimate import estimate, estimated
from forestc.errors import ForestcError
from forestc.exploration.choice import choice, shown
from forestc.forest.text import print_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.papers import (
    BinaryMatrixFactorization,
    BooleanRuleClassifier,
    BoundedTreewidthNetwork,
    PrunedEnsemble,
    ThresholdSharing,
)
from forestc.papers.pruning import method as pruning_method
from forestc.search.portfolio import LevelSearch
from forestc.toolchain import packaged
from forestc.toolchain.run import _Running

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import MODELS, split_breast_cancer, split_digits

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "benchmarks"
NAMED = 6  # rows of a table or picture that are named
DIGITS = 12  # keeps this number of hex digits of a digest
FLOAT = re.compile(r"\d+\.\d{6,}(?:e[-+]?\d+)?")
MARK = re.compile(r"<!-- (table|picture|figure): (\w+)(?:[.\w]*\[([^\]]*)\])?")
FIGURES = ("estimate", "trees", "conditions", "distinct_conditions", "comparator_bits")
Made = Iterator[bytes]


@dataclass(frozen=True)
class Golden:
    """A golden case.

    made: yields the bytes that are hashed, given an empty folder.
    shows: the results that it stands for, by the benchmark's name. NAME[TEXT]: of the rows with TEXT in a value.
    uses: folders and modules of forestc whose constants are hashed, too.
    """

    made: Callable[[Path], Iterable[bytes]]
    shows: str
    uses: str


# What is hashed


def plain(value: object) -> bytes:
    """Returns a value as text, with few digits: the last ones depend on the processor."""
    return FLOAT.sub(lambda number: f"{float(number[0]):.5g}", repr(value)).encode()


def files(folder: Path, *suffixes: str) -> Made:
    """Yields the bytes of all files with these suffixes, except test benches."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in suffixes and not path.stem.endswith("_tb"):
            yield path.read_bytes()


def constants(uses: str) -> bytes:
    """Returns the numbers in constants and fields of modules, and in default values of parameters."""
    found = []
    for place in uses.split():
        path = ROOT / "forestc" / place
        if path.suffix == ".json":
            found.append(path.read_bytes())
        for module in path.rglob("*.py") if path.is_dir() else [path] if path.suffix == ".py" else []:
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                values: list[ast.expr | None] = []
                if isinstance(node, ast.Module | ast.ClassDef):
                    values = [line.value for line in node.body if isinstance(line, ast.Assign | ast.AnnAssign)]
                elif isinstance(node, ast.arguments):
                    values = [*node.defaults, *node.kw_defaults]
                for value in filter(None, values):
                    each = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                    found.append(plain([number for number in each if isinstance(number, int | float)]))
    return b"".join(sorted(found))


@contextmanager
def noted(owner: object, name: str, note: Callable[[Any, Any], Any]) -> Iterator[list[Any]]:
    """Lists notes on the calls of a method or function in the meantime. note: makes one of arguments and result."""
    notes, method = list[Any](), getattr(owner, name)

    def call(*given: Any, **options: Any) -> Any:
        result = method(*given, **options)
        notes.append(note(given, result))
        return result

    with patch.object(owner, name, call):
        yield notes


KINDS = ("LUT1", "LUT4", "LUT6", "$lut", "SB_LUT4", "WIDEFN9", "CC_LUT2", "CC_L2T5", "CC_MX4", "SB_DFFE",
         "TRELLIS_FF", "FDRE", "DFFR", "FD1P3BX", "CC_DFF", "CARRY4", "SB_CARRY", "CCU2C", "ALU", "CC_ADDF", "RAMB18E2",
         "SB_SPRAM256KA", "DP16KD", "SDPB")  # fmt: skip
CELLS = ("ICESTORM_LC", "TRELLIS_COMB", "LUT4", "OXIDE_COMB", "CPE_LT")
ANSWERS = {  # by the end of a file's name, what a program writes there
    "stat.json": {
        "creator": "Yosys 0",
        "design": {"num_cells_by_type": {kind: 1 << at for at, kind in enumerate(KINDS)}},
    },
    "ltp.txt": "Longest topological path in m (length=7)",
    "report.json": {
        "utilization": {name: {"used": at, "available": 1000 + at} for at, name in enumerate(CELLS)},
        "fmax": {"clk": {"achieved": 900.0}},
    },
}
PLACE = re.compile(
    rb'\(\* (?:top|src) = "[^"]*" \*\)|attribute \\src "[^"]*"|^[#/\s*]*Automatically generated.*$', re.M
)


@contextmanager
def other_programs() -> Iterator[list[bytes]]:
    """Lists the commands and the input files of other programs, which do not run: ANSWERS holds what they write."""
    made = list[bytes]()

    @contextmanager
    def program(_: Any, command: Sequence[str], folder: Path, __: Any) -> Iterator[Any]:
        made.append(plain(command))
        made.extend(PLACE.sub(b"", path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file())
        scripts = [path.read_text() for path in folder.glob("*.ys") if path.name in command]
        for name in re.findall(r"[\w.]+\.\w+", " ".join([*command, *scripts])):
            answer = next((answer for end, answer in ANSWERS.items() if name.endswith(end)), "made")
            if not (folder / name).exists():
                (folder / name).write_text(answer if isinstance(answer, str) else json.dumps(answer))
        yield type("Process", (), {"returncode": 0, "communicate": lambda *_, **__: (b"", b"")})()

    with (
        patch.object(_Running, "program", program),
        patch.object(packaged, "find_command", lambda name, native=False: (name,)),
    ):
        yield made


# Models and rows


@cache
def wine() -> tuple[Any, Any, Any, Any]:
    """Returns rows and labels of three classes, for training and for tests."""
    X, y = load_wine(return_X_y=True)
    return X[::2], X[1::2], y[::2], y[1::2]


@cache
def cancer() -> tuple[Any, Any, Any, Any]:
    """Returns rows of ten columns of whole numbers, and labels of two classes, for training and for tests."""
    train, test, labels, test_labels = split_breast_cancer()
    return *(np.rint(part.to_numpy()[:, :10]) for part in (train, test)), labels.to_numpy(), test_labels.to_numpy()


@cache
def trained(kind: str, classes: int) -> Any:
    X, _, y, _ = cancer() if classes == 2 else wine()
    if kind in ("forest", "large"):
        trees, depth = (4, 3) if kind == "forest" else (60, 8)
        return RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(X, y)
    return XGBClassifier(n_estimators=4, max_depth=3, base_score=0.5, tree_method="exact", n_jobs=1).fit(X, y)


SHIPPED: Mapping[str, Any] = {"breast_cancer.json": split_breast_cancer, "digits.skops": split_digits}
SMALL = ("forest 2", "forest 3", "boosting 2", "boosting 3")


def model_of(name: str) -> tuple[Any, tuple[Any, Any, Any, Any]]:
    """Returns a model, with rows and labels for training and for tests."""
    if name in SHIPPED:
        return MODELS / name, SHIPPED[name]()
    kind, classes = name.split()
    return trained(kind, int(classes)), cancer() if classes == "2" else wine()


# Cases


def compiled(*models: str, suffixes: str = "", held: bool = False, **options: Any) -> Callable[[Path], Made]:
    """Returns a case that compiles models, and yields the settings that a level tries, files and figures."""

    def made(folder: Path) -> Made:
        for number, name in enumerate(models):
            model, (rows, test, labels, test_labels) = model_of(name)
            given = {"rows": rows, "label": labels} if options["level"] else {"rows": None}
            given |= {"held_out": (test, test_labels)} if held else {}
            with noted(LevelSearch, "add", lambda _, trial: trial) as tried:
                done = forestc.compile(model, out=folder / str(number), name="golden", **given, **options)
            yield from (plain((trial, trial.measured and trial.size)) for trial in tried)
            yield from files(folder / str(number), *suffixes.split())
            yield plain([done.figures.get(figure) for figure in FIGURES])
            if evidence := (done.figures["level"] or {}).get("evidence"):
                yield plain(evidence)
            yield plain(done.design.predict(test))

    return made


def headers(folder: Path) -> Made:
    """Yields the C of models in all layouts, from words, floats and doubles, and the layouts that goals choose."""
    for name in (*SMALL, "breast_cancer.json"):
        model, (rows, _, labels, _) = model_of(name)
        for level in (0, 1):
            design = forestc.compile(
                model, rows, folder / name, label=labels, level=level, targets="c", name="m"
            ).design
            for inputs in ("words", "float", "double"):
                for layout in (*LAYOUTS, "auto", "smallest", "fastest"):
                    with suppress(ForestcError):  # Masks hold only small trees.
                        options = COptions(c_inputs=inputs, c_layout=layout)
                        yield from files(with_header(design, options, folder / "h").folder, ".h")


def on_processors(folder: Path) -> Made:
    """Yields flash, RAM, stack and instructions on two processors, of the layouts that are measured and chosen."""
    model, (rows, test, labels, _) = model_of("boosting 3")
    for cpu in ("cortex-m4f", "cortex-m0plus"):
        given = {"targets": "c", "name": "m", "label": labels, "cpu": cpu, "c_layout": "auto"}
        done = forestc.compile(model, rows, folder / cpu, **given)
        yield from files(folder / cpu, ".h")
        found = forestc.measure(done.design, cpu, test[:20])
        yield plain([found[name] for name in ("flash", "ram", "stack", "instructions")])


def on_devices(folder: Path) -> Made:
    """Yields estimates for all devices, and how yosys and nextpnr are run for each."""
    for name in ("boosting 2", "forest 3"):
        model, (rows, _, labels, _) = model_of(name)
        for latency in (0, 2):
            given = {"label": labels, "targets": "verilog", "latency": latency, "name": "m"}
            design = forestc.compile(model, rows, folder / f"{name}{latency}", **given).design
            for device in filter(estimated, DEVICES):
                family = DEVICES[device].family.delays
                yield plain(estimate(lower(design.forest, LoweringOptions(latency, family=family)), device))
    with other_programs() as run:
        for device in DEVICES:
            figures = forestc.synth(design, device, try_anyway=True, record=False)
            yield plain({name: value for name, value in figures.items() if name not in ("seconds", "estimate")})
    yield from run


def on_boards(folder: Path) -> Made:
    from bitstreams import BOARDS, DIVISOR

    from forestc.boards.platforms import platform_of

    model, (rows, _, labels, _) = model_of("forest 3")
    design = forestc.compile(model, rows, folder, label=labels, targets="verilog", latency=2, name="m").design
    with other_programs() as run:
        for board in map(board_of, BOARDS):
            made = build(design, board, baud=int(platform_of(board).default_clk_frequency / DIVISOR))
            yield plain((made.lut, made.available, made.fmax_mhz, made.timing))
    yield from run


def explored(folder: Path) -> Made:
    for number, given in enumerate(({"model": trained("forest", 3), "trials": 8}, {"train": "priced", "trials": 3})):
        rows, _, labels, _ = wine()
        own = {"device": "ecp5-25k", "rungs": "estimate", "jobs": 1, "prove": False, "tolerance": 0.1}
        study = forestc.explore(rows=rows, out=folder / str(number), label=labels, **own, **given)
        for trial in study.trials:
            yield plain((trial.options, trial.figures, trial.validation, trial.on_front, trial.reason))
        chosen = choice(study)
        yield plain([trial.number for trial in shown(study)] + [chosen and (chosen.taken.number, chosen.within)])


def rules(_: Path) -> Made:
    X, _, y, _ = cancer()
    y = y ^ (np.random.default_rng(0).random(len(y)) < 0.15)
    for given in ({}, {"form": "cnf", "longest": 2}):
        model = BooleanRuleClassifier(complexity=8, max_iter=4, random_state=0, verbose=False, **given)
        model.fit(X[:150], y[:150])
        yield plain((model.export_text(), model.loss_, model.bound_, model.n_iter_))


def factors(_: Path) -> Made:
    X = np.random.default_rng(0).random((30, 12)) < 0.4
    for k, given in ((2, {}), (3, {"max_iter": 2})):
        model = BinaryMatrixFactorization(k, random_state=0, verbose=False, **given).fit(X)
        yield plain((model.components_.tolist(), model.reconstruction_error_, model.bound_, model.n_iter_))
        yield plain((model.model_error_, model.model_bound_, model.relaxation_))


def networks(_: Path) -> Made:
    X, _, _, _ = cancer()
    bits = np.greater(X, np.median(X, axis=0)).astype(int)
    for method, k, columns in (("search", 3, 10), ("auto", 2, 7)):
        model = BoundedTreewidthNetwork(k, method=method, n_runs=2, random_state=0, verbose=False)
        model.fit(bits[:200, :columns])
        yield plain((model.edges_, model.score_, model.bound_, model.treewidth_))


def shared_conditions(_: Path) -> Made:
    X, _, y, _ = wine()
    for given in ({}, {"per_tree_rows": False, "exceptions": 1, "prefer": "few-bits"}, {"path_changeable": 0.05}):
        model = ThresholdSharing(RandomForestClassifier(10, random_state=0), **given).fit(X, y)
        yield print_forest(model.as_forest()).encode()
        yield plain((model.n_conditions_before_, model.n_conditions_, model.n_missed_))


def pruned_ensembles(_: Path) -> Made:
    X, _, y, _ = cancer()
    y = y ^ (np.random.default_rng(0).random(len(y)) < 0.15)
    ways = ({"formulation": "F1"}, {"formulation": "F3"}, {"weights": "balanced"}, {"method": "concurrency"})
    with noted(pruning_method, "diversity_limits", lambda _, limits: limits) as least:
        for given in (*ways, {"method": "uncertainty-weighted"}, {"method": "backfitting"}, {"method": "search"}):
            forest = RandomForestClassifier(30, max_depth=3, random_state=0)
            model = PrunedEnsemble(forest, effort=0.3, random_state=0, verbose=False, **given).fit(X, y)
            yield plain((model.members_.tolist(), model.threshold_, model.objective_, model.bound_))
    yield plain(least)


def loaded(_: Path) -> Made:
    """Yields models as text after loading, without rows."""
    for name in (*SHIPPED, *SMALL):
        yield print_forest(forestc.load(model_of(name)[0])).encode()


def an_engine(folder: Path) -> Made:
    model, (rows, _, labels, _) = model_of("breast_cancer.json")
    forestc.make_engine(folder / "engine", trees=20, nodes=512, features=30, walkers=2)
    forestc.make_image(model, rows, folder / "a.bin", engine=folder / "engine", label=labels)
    yield from files(folder, ".v", ".bin")
    with other_programs() as run:
        for device in ("ecp5-85k", "ice40-up5k"):
            yield plain(forestc.synth(folder / "engine", device, record=False)["estimate"])
    yield from run


def inputs(_: Path) -> Made:
    model, (rows, _, labels, _) = model_of("breast_cancer.json")
    made, _ = forestc.model_inputs(model, rows, label=labels, treewidth=2, samples=1)
    yield made.log_likelihood(rows.to_numpy()).round(6).tobytes()


READERS = (
    "frontends/sklearn frontends/xgboost frontends/lightgbm frontends/onnx frontends/catboost frontends/treelite.py "
    "frontends/shared/exact.py frontends/shared/fold.py frontends/shared/merge.py"
)  # of the models of benchmarks
OTHER_READERS = "frontends/conifer.py frontends/tmva.py frontends/ydf frontends/shared"
LOGIC = "lowering netlist backends/verilog backends/hdl.py backends/logic.py compilation"
PASSES = "passes algorithms/splits algorithms/thresholds"
SEARCH = f"{PASSES} algorithms/boosting algorithms/members search training costs/prices.py costs/shares.py"
COSTS = "costs toolchain/yosys.py toolchain/nextpnr.py compilation/synthesis.py"
CODE = "backends/c layouts compilation/layouts.py firmware toolchain/firmware.py"
LEVELS = ("shipped_models", "hardware", "curve")  # results with a row of each level
EXACT, PATHS, FOUND = (
    " ".join(f"{name}[{level}]" for level in levels.split() for name in LEVELS) for levels in ("-O0", "-O1", "-O2 -O3")
)
CORES = "exactness compile_scale simulation streams make trigger"
GOLDEN: Mapping[str, Golden] = {
    "models read": Golden(loaded, "exactness c_exactness compile_scale frontends public_models", READERS),
    "models of other kinds read": Golden(lambda _: [], "c_exactness trigger", OTHER_READERS),
    "logic, -O0": Golden(
        compiled(*SMALL, suffixes=".v", level=0, targets="verilog", latency=2), f"{EXACT} {CORES}", f"{LOGIC} {PASSES}"
    ),
    "logic, -O1": Golden(
        compiled(*SMALL, "breast_cancer.json", suffixes=".v", level=1, targets="verilog", clock_mhz=100.0,
                 device="ecp5-85k", no_synth=True),
        f"{PATHS} {CORES}", f"{LOGIC} {PASSES}",
    ),
    "C": Golden(headers, f"{EXACT} {PATHS} firmware c_exactness compile_scale", f"{CODE} {PASSES}"),
    "library": Golden(compiled(*SMALL, suffixes=".c .py", level=0, targets="shared"), "cpu", f"{CODE} {PASSES}"),
    "library's compiler": Golden(lambda _: [plain(FLAGS)], "cpu", ""),
    "C of a large forest": Golden(  # its nodes share subtrees
        compiled("large 2", suffixes=".h", level=1, targets="c", c_layout="nodes"), "firmware", ""
    ),
    "C on processors": Golden(on_processors, "firmware", CODE),
    "estimates and devices": Golden(on_devices, "shipped_models hardware curve levels make", COSTS),
    "boards": Golden(on_boards, "bitstreams board_check", "boards costs/boards.py toolchain"),
    "levels, cross-validated": Golden(
        compiled("forest 3", "boosting 2", level=3, targets="verilog", tolerance=0.02), f"{FOUND} levels", SEARCH
    ),
    "levels, held-out rows": Golden(
        compiled("boosting 3", "forest 2", held=True, level=3, targets="verilog", tolerance=0.02),
        f"{FOUND} levels losses", SEARCH,
    ),
    "levels, C": Golden(
        compiled("boosting 3", level=2, targets="c", suffixes=".h"), f"{FOUND} levels", f"{SEARCH} backends/c/rough.py"
    ),
    "explore": Golden(explored, "explore", f"exploration {SEARCH}"),
    "other languages": Golden(
        compiled("breast_cancer.json", suffixes=".vhd .py .cpp .h", level=1, targets="vhdl,hls,amaranth"),
        "", "backends/vhdl backends/hls backends/amaranth",
    ),
    "stream wrapper": Golden(
        compiled("breast_cancer.json", suffixes=".v", level=1, targets="verilog", stream=StreamOptions(tdata_bits=64)),
        "streams bitstreams", "backends/stream",
    ),
    "rules": Golden(rules, "boolean_rules", "papers/rules algorithms/covers algorithms/highs.py"),
    "factors": Golden(
        factors, "binary_matrix_factorization", "papers/factorization algorithms/covers algorithms/highs.py"
    ),
    "networks": Golden(networks, "bounded_treewidth", "papers/networks"),
    "shared conditions": Golden(
        shared_conditions, "threshold_sharing", "papers/sharing algorithms/thresholds passes/share_thresholds"
    ),
    "pruned ensembles": Golden(
        pruned_ensembles, "ensemble_pruning", "papers/pruning algorithms/members algorithms/highs.py"
    ),
    "input model": Golden(inputs, "", "inputs papers/networks"),
    "engine": Golden(an_engine, "board_check", "engine backends/engine"),
}  # fmt: skip


@cache
def warmed_up() -> None:
    """Runs both searches for columns once: the first run in a process also solves a tiny program, whose limits would be
    noted by whichever case, or benchmark, comes first."""
    BinaryMatrixFactorization(1, max_iter=1, verbose=False).fit(np.eye(2))
    BooleanRuleClassifier(max_iter=1, verbose=False).fit(np.eye(2), np.arange(2))


@cache
def digest(name: str) -> str:
    """Runs a golden case and returns its digest."""
    case, total = GOLDEN[name], hashlib.sha256()
    warmed_up()
    with (
        tempfile.TemporaryDirectory() as folder,
        noted(Highs, "setOptionValue", lambda given, _: plain(given[1:])) as limits,
    ):
        parts = [constants(case.uses), *case.made(Path(folder))]
        for part in (*parts, *sorted(limit for limit in limits if b"time_limit" not in limit)):
            total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:DIGITS]


def cases_of(benchmark: str) -> dict[str, list[str]]:
    """Returns the cases that stand for the rows of a benchmark, each with the texts that a row has one of."""
    cases: dict[str, list[str]] = {}
    for name, case in GOLDEN.items():
        for result in case.shows.split():
            if result.partition("[")[0] == benchmark:
                cases.setdefault(name, []).append(result.partition("[")[2].rstrip("]"))
    return cases


def digests(benchmark: str) -> dict[str, str]:
    """Returns the digests that a result of a benchmark records."""
    return {name: digest(name) for name in cases_of(benchmark)}


def stale() -> Iterator[tuple[str, str]]:
    """Yields each stale result with what changed, and the pages and rows that show its figures."""
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if sealed(result) != result:
            yield path.stem, "its seal is broken: something else than its benchmark wrote the file"
        for row in quoted(result["rows"]):
            yield path.stem, f"benchmarks/peers.json has other figures than {row}"
        cases, recorded = cases_of(Path(result["command"].split()[0]).stem), result["golden"]
        changed = [name for name in cases if recorded.get(name) != digest(name)]
        if changed:
            texts = [text for name in changed for text in cases[name]]
            what = ", ".join(f"{name} {'changed' if name in recorded else 'is new'}" for name in changed)
            yield path.stem, f"{what}; {'; '.join(dict.fromkeys(shown_on(path.stem, result['rows'], texts)))}"


def quoted(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the rows taken from peers.json that it does not hold."""
    for row in rows:
        source = row["origin"].get("source", "")
        known = [peer.items() for peer, of in others("design") if of == source]
        if "peers.json" in source and not any(peer <= row.items() for peer in known):
            yield " ".join(map(str, list(row.values())[:2]))


def shown_on(result: str, rows: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Iterator[str]:
    """Yields the pages with figures of a result, and the rows that have one of the texts."""
    keys = [[str(value) for value in row.values()] for row in rows]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "NOTES.md"):
        for mark in MARK.finditer(page.read_text(encoding="utf-8")):
            own = [row for row in keys if not mark[3] or row[: mark[3].count("; ") + 1] == mark[3].split("; ")]
            own = [row for row in own if any(text in value for text in texts for value in row)]
            if mark[2] == result and own:
                names = list(dict.fromkeys(" ".join(row[:2]) for row in own))
                more = f" and {len(names) - NAMED} more" * (len(names) > NAMED)
                yield f"{page.relative_to(ROOT)}, {mark[1]}: {', '.join(names[:NAMED])}{more}"


def main() -> int:
    if "--print" in sys.argv[1:]:
        print(json.dumps({name: digest(name) for name in GOLDEN}, indent=1))
        return 0
    found = list(stale())
    for name, why in found:
        print(f"{name} is stale: {why}\n    measure it again: python benchmarks/figures.py {name}")
    print(f"{len(found)} of {len(list(RESULTS.glob('*.json')))} results are stale")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
