"""Hashes the files of some sixty compiled folders, to find the files that a change of the compiler affects.

    python benchmarks/corpus.py --out before.json --keep before
    python benchmarks/corpus.py --out after.json --keep after --against before.json
    diff -r before after

The folders are small and cover every kind of model, number type, target and option that changes a file. Models are
trained with fixed seeds on bundled or generated data, so two runs with the same libraries on the same machine are
comparable. The hashes leave out records of how a folder was made: the keys `made` and `sha256` of manifest.json, and in
report.md everything from `## how it was made` on (options, versions, hashes of model and rows, file sizes).
"""

from __future__ import annotations

import os

# Two processes run at once, and one thread keeps the order of sums fixed.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import datasets, ensemble

import forestc
from forestc.backends.stream.options import StreamOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from contract.kinds import KINDS

WORKERS = 2
NOT_HASHED = ("made", "sha256")  # lists keys of manifest.json that the hashes leave out
HOW_MADE = "\n## how it was made"  # ends the part of report.md that is hashed

Data: TypeAlias = tuple[Any, Any]  # rows and labels
Made: TypeAlias = tuple[Any, Any, Any]  # a model or its file, rows, labels
Hashes: TypeAlias = dict[str, dict[str, str]]  # folder -> path -> SHA-256


@dataclass(frozen=True)
class Case:
    """A model and how it is compiled. make: trains the model, given a folder for files. options: of
    `forestc.compile`."""

    make: Callable[[Path], Made]
    options: Mapping[str, Any]


class Written(Exception):  # noqa: N818  This exception is no error: it ends `compile`.
    """An exception that ends `compile` when the folder is written, before synthesis."""


def iris() -> Data:
    return datasets.load_iris(return_X_y=True)


def cancer() -> Data:
    """Returns eight of the 30 columns, which make small designs."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return X[:, :8], y


def diabetes() -> Data:
    return datasets.load_diabetes(return_X_y=True)


def digits() -> Data:
    """Returns rows of integers in ten classes."""
    X, y = datasets.load_digits(return_X_y=True)
    return X[:600, 18:38], y[:600]


def signed() -> Data:
    """Returns rows of positive and negative integers in three classes."""
    random = np.random.default_rng(0)
    X = random.integers(-100, 100, (400, 5)).astype(float)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 50)


def hostile() -> Data:
    """Returns rows with dangerous column and class names: keywords of the output languages, and texts that end comments
    or strings."""
    import pandas as pd

    X, y = iris()
    names = ["int", "x*/\n#error", 'wire "always"', "\u00e4\\"]
    return pd.DataFrame(X, columns=names), np.array(["module", 'versi "color"', "*/ virginica\n"])[y]


def kind(name: str) -> Callable[[Path], Made]:
    """Returns a function that trains a model of the frontends' contract; it gives the model and its rows, without
    labels."""

    def make(folder: Path) -> Made:
        trained = KINDS[name]()
        return trained.source, trained.X, None

    return make


def sk(model: Any, data: Callable[[], Data]) -> Callable[[Path], Made]:
    """Returns a function that fits an estimator; it gives the estimator, its rows and labels."""

    def make(folder: Path) -> Made:
        X, y = data()
        return model.fit(X, y), X, y

    return make


def csv(model: Any, data: Callable[[], Data]) -> Callable[[Path], Made]:
    """Returns a function that fits an estimator and writes its rows to a CSV file with the label column `truth`."""

    def make(folder: Path) -> Made:
        X, y = data()
        columns = [f"c{index}" for index in range(X.shape[1])]
        rows = folder / "rows.csv"
        np.savetxt(rows, np.column_stack([X, y]), delimiter=",", header=",".join([*columns, "truth"]), comments="")
        return model.fit(X, y), rows, "truth"

    return make


def forest(trees: int = 6, **more: Any) -> Any:
    return ensemble.RandomForestClassifier(trees, **{"max_depth": 4, "random_state": 0, **more})


def mean(trees: int = 5, **more: Any) -> Any:
    return ensemble.RandomForestRegressor(trees, **{"max_depth": 4, "random_state": 0, **more})


def boost(count: int = 6, **more: Any) -> Any:
    return ensemble.GradientBoostingClassifier(n_estimators=count, random_state=0, **more)


ALL = "verilog,c,hls,amaranth"
SHARED = "simplify,share-thresholds,round-leaves,simplify"
RANGES = {
    "petal length (cm)": {"smallest": 0, "largest": 10, "step": 0.1, "missing": False}, "petal width (cm)": (0, 5),
    "sepal length (cm)": {"smallest": 0, "step": 0.5}, "sepal width (cm)": (0, None),
}  # fmt: skip


def named(folder: Path) -> Made:
    """Fits a forest on named columns; returns it without rows."""
    X, y = datasets.load_iris(return_X_y=True, as_frame=True)
    return forest().fit(X, y), None, None


def unseen(make: Callable[[Path], Made]) -> Callable[[Path], Made]:
    """Returns a function that gives the model of `make` without its rows."""
    return lambda folder: (make(folder)[0], None, None)


def case(make: Callable[[Path], Made], targets: str = "verilog,c", **options: Any) -> Case:
    return Case(make, {"targets": targets, **options})


CASES: dict[str, Case] = {
    # kinds of models, as the frontends' contract trains them
    "tree": case(kind("sklearn-tree-multi"), ALL),
    "forest": case(kind("sklearn-forest-multi"), ALL, outputs="both"),
    "forest-binary": case(kind("sklearn-forest-binary"), ALL, outputs="both"),
    "forest-full": case(kind("sklearn-forest-multi"), passes="none"),
    "forest-regression": case(kind("sklearn-forest-regression"), ALL),
    "extra-trees": case(kind("sklearn-extra-trees-multi"), ALL),
    "boosting": case(kind("sklearn-boosting-binary"), ALL, outputs="scores"),
    "boosting-multi": case(kind("sklearn-boosting-multi"), ALL),
    "boosting-regression": case(kind("sklearn-boosting-huber"), c_values="q15"),
    "hist-missing": case(kind("sklearn-hist-missing"), ALL),
    "hist-multi": case(kind("sklearn-hist-multi"), outputs="both"),
    "hist-categories": case(kind("sklearn-hist-categories"), ALL),
    "ada": case(kind("sklearn-adaboost-multi"), ALL),
    "ada-regression": case(kind("sklearn-adaboost-regression"), ALL),
    "bagging": case(kind("sklearn-bagging-multi")),
    "vote-hard": case(kind("sklearn-voting-hard-multi"), ALL, outputs="both"),
    "vote-weights": case(kind("sklearn-voting-hard-binary"), ALL, latency=3),
    "vote-soft": case(kind("sklearn-voting-soft-binary"), ALL, outputs="both"),
    "calibrated": case(kind("calibrated-ensemble-sigmoid-forest"), ALL),
    "calibrated-isotonic": case(kind("calibrated-ensemble-isotonic-boosting")),
    "isolation": case(kind("sklearn-isolation"), ALL),
    "targets": case(kind("sklearn-forest-targets"), ALL, c_values="float"),
    "class-targets": case(kind("sklearn-forest-class-targets"), ALL, outputs="both", latency=2),
    "one-hot": case(kind("pipeline-one-hot"), ALL),
    "ordinal": case(kind("pipeline-ordinal"), ALL, c_inputs="struct"),
    "scaled": case(kind("pipeline-standard"), c_inputs="float"),
    "xgboost": case(kind("xgboost-binary:logistic"), ALL),
    "xgboost-multi": case(kind("xgboost-multi:softprob"), ALL, latency=2),
    "xgboost-missing": case(kind("xgboost-missing"), ALL, c_inputs="float", outputs="both"),
    "xgboost-categories": case(kind("xgboost-categories"), ALL),
    "xgboost-regression": case(kind("xgboost-count:poisson"), c_values="float"),
    "lightgbm-text": case(kind("lightgbm-text-mixed"), ALL),
    "lightgbm-categories": case(kind("lightgbm-mixed-sets"), ALL),
    "lightgbm-multi": case(kind("lightgbm-multiclass-plain"), outputs="scores"),
    "lightgbm-regression": case(kind("lightgbm-regression"), c_inputs="struct", scores=0.01),
    "catboost": case(kind("catboost-binary-plain"), ALL),
    "catboost-multi": case(kind("catboost-multi-plain"), ALL),
    "onnx": case(kind("onnx-skl-forest-binary"), ALL),
    "onnx-double": case(kind("onnx-skl-forest-double")),
    "treelite": case(kind("treelite-sklearn-multi"), ALL),
    # number types
    "integers": case(sk(forest(), signed), ALL, latency=1),
    "ordered": case(sk(forest(), cancer), ALL, passes="simplify,quantize-inputs{input=ordered},simplify"),
    "ordered-64": case(kind("lightgbm-binary-sigmoid"), ALL, passes="quantize-inputs{input=ordered}", c_inputs="float"),
    "always-missing": case(
        kind("sklearn-hist-multi"), passes="quantize-inputs{input=fixed,missing=always},round-leaves{leaf_bits=5}"
    ),
    # passes
    "shared": case(sk(forest(), cancer), passes=SHARED),
    "shared-approximate": case(
        csv(forest(), cancer), held_out=0.2, passes="simplify,share-thresholds{exceptions=0.1,tolerance=0.1}"
    ),
    "pruned": case(
        sk(boost(), cancer), passes="round-leaves,prune-splits{keep=decisions,copies=1,leaf_bits=2},simplify"
    ),
    "pruned-accuracy": case(
        sk(forest(), digits),
        held_out=0.2,
        passes="simplify,round-leaves{leaf_bits=4,change=0.2},prune-splits{price=0.1,copies=1,tolerance=0.2}",
    ),
    "fitted": case(sk(boost(), cancer), held_out=0.2, passes="fit-leaves{leaf_bits=2,tolerance=0.1},simplify"),
    "scores": case(sk(boost(), iris), scores=0.01, c_values="q15"),
    # without rows
    "no-rows": case(unseen(kind("xgboost-binary:logistic")), ALL),
    "ranges": case(named, ALL, ranges=RANGES),
    # streams, devices
    "stream": case(sk(forest(), iris), stream=StreamOptions(), latency=2),
    "stream-registers": case(sk(forest(), iris), stream=StreamOptions(tdata_bits=16, user_bits=3, registers=True)),
    "stream-lanes": case(
        sk(mean(), diabetes), stream=StreamOptions(tdata_bits=32, registers=True, align=8), latency=3, outputs="scores"
    ),
    "ecp5": case(sk(forest(10), digits), device="ecp5-85k", clock_mhz=60.0),
    "ice40": case(sk(boost(), cancer), device="ice40-hx8k", latency=5),
    "vivado": case(sk(forest(), iris), device="vivado:xc7a35tcpg236-1", clock_mhz=250.0, latency=4),
    # names, and optional parts of C
    "hostile": case(sk(forest(), hostile), ALL, name="int", c_quantizer="double"),
    "c-plain": case(sk(forest(), cancer), "c", c_inputs="struct", c_quantizer="none", c_values="none"),
}  # fmt: skip


def compiled(name: str, folder: Path) -> None:
    """Compiles a case into a folder, up to synthesis. Raises RuntimeError with the case's name."""
    chosen = CASES[name]
    with tempfile.TemporaryDirectory() as files, warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        if "device" in chosen.options:  # The folder is written before synthesis tools run, so none are needed.
            stack.enter_context(patch("forestc.compilation.request.need_tools"))
            stack.enter_context(patch("forestc.commands.compile.synthesis_figures", side_effect=Written))
        try:
            model, rows, label = chosen.make(Path(files))
            forestc.compile(model, rows, folder, label=label, **{"name": "corpus", **chosen.options})
        except Written:
            pass
        except Exception as error:
            raise RuntimeError(f"{name}: {type(error).__name__}: {error}") from error


def hashed(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file of a compiled folder, by path, without the parts that may vary."""
    hashes: dict[str, str] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes()
        if path == folder / "manifest.json":
            fields = json.loads(text)
            text = json.dumps({key: value for key, value in fields.items() if key not in NOT_HASHED}).encode()
        elif path == folder / "report.md":
            text = text.decode().partition(HOW_MADE)[0].encode()
        hashes[path.relative_to(folder).as_posix()] = hashlib.sha256(text).hexdigest()
    return hashes


def measured(name: str, keep: Path | None) -> tuple[dict[str, str], float]:
    """Compiles a case; returns the hashes of its files, and the seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        folder = (keep or Path(made)) / name
        compiled(name, folder)
        return hashed(folder), time.perf_counter() - start


def differences(before: Hashes, after: Hashes) -> list[tuple[str, str, str]]:
    """Lists each difference as (folder, path, either "differs", "added" or "removed"). The path of a whole folder is
    `*`."""
    rows = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            rows.append((name, "*", "removed" if name in before else "added"))
            continue
        old, new = before[name], after[name]
        for path in sorted(old.keys() | new.keys()):
            if path not in old or path not in new:
                rows.append((name, path, "removed" if path in old else "added"))
            elif old[path] != new[path]:
                rows.append((name, path, "differs"))
    return rows


def show(rows: Iterable[tuple[str, str, str]]) -> None:
    table = Table("folder", "file", "what", title="differences", title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=max(120, Console().width)).print(table)


def main(arguments: list[str] | None = None) -> int:
    """Prints the differences and returns the exit status: 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="write the hashes there, as JSON")
    parser.add_argument("--against", type=Path, metavar="FILE", help="hashes to compare with")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the folders there")
    parser.add_argument("--only", default="", metavar="NAMES", help="only these folders, comma-separated")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(CASES)}")
    before = None if options.against is None else json.loads(options.against.read_text())
    start = time.perf_counter()
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        results = dict(zip(names, pool.map(measured, names, [options.keep] * len(names)), strict=True))
    hashes = {name: files for name, (files, _) in results.items()}
    options.out.write_text(json.dumps(hashes, indent=1) + "\n")
    slowest = max(names, key=lambda name: results[name][1])
    print(f"{len(names)} folders, {sum(map(len, hashes.values()))} files, {time.perf_counter() - start:.0f} s; "
          f"the slowest is {slowest}, {results[slowest][1]:.1f} s")  # fmt: skip
    if before is None:
        return 0
    compared = {name: files for name, files in before.items() if name in names or not options.only}
    rows = differences(compared, hashes)
    if rows:
        show(rows)
    else:
        print("nothing differs")
    return int(bool(rows))


if __name__ == "__main__":
    sys.exit(main())
