"""Hashes of some sixty compiled folders, to find which files a change of the compiler affects.

    python benchmarks/corpus.py --out before.json --keep before
    python benchmarks/corpus.py --out after.json --keep after --against before.json
    diff -r before after

The folders cover every kind of model, number type, target and option that changes a file; all are small. Models are
trained on bundled or generated data with fixed seeds, so hashes are comparable for the same libraries and machine. Not
hashed are records of how a folder was made and of other files: in manifest.json the keys `made` and `sha256`, in
report.md everything from `## how it was made` on (options, versions, hashes of model and rows, sizes of files).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes, and sums in a fixed order

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
from sklearn import datasets, ensemble, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import forestc
from forestc.options.stream import StreamOptions

WORKERS = 2
NOT_HASHED = ("made", "sha256")  # keys of manifest.json
HOW_MADE = "\n## how it was made"  # report.md is hashed up to here

Data: TypeAlias = tuple[Any, Any]  # rows and labels
Made: TypeAlias = tuple[Any, Any, Any]  # a model or its file, rows, labels
Hashes: TypeAlias = dict[str, dict[str, str]]  # folder -> path -> SHA-256


@dataclass(frozen=True)
class Case:
    """make: trains a model, given a folder for files. options: for `forestc.compile`."""

    make: Callable[[Path], Made]
    options: Mapping[str, Any]


class Written(Exception):  # noqa: N818  not an error: it ends `compile`
    """Raised when the folder is written and synthesis would follow."""


def iris() -> Data:
    return datasets.load_iris(return_X_y=True)


def cancer() -> Data:
    """Eight of the 30 columns, for small designs."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return X[:, :8], y


def diabetes() -> Data:
    return datasets.load_diabetes(return_X_y=True)


def digits() -> Data:
    """Integers, ten classes."""
    X, y = datasets.load_digits(return_X_y=True)
    return X[:600, 18:38], y[:600]


def signed() -> Data:
    """Positive and negative integers."""
    random = np.random.default_rng(0)
    X = random.integers(-100, 100, (400, 5)).astype(float)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 50)


def missing(data: Callable[[], Data]) -> Callable[[], Data]:
    """The data with a tenth of its values missing."""

    def load() -> Data:
        X, y = data()
        return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X), y

    return load


def codes() -> Data:
    """A column of numbers and two of category codes."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=500), random.integers(0, 5, 500), random.integers(0, 40, 500)])
    return X, (np.isin(X[:, 1], [1, 3]) ^ (X[:, 2] % 3 == 1) ^ (X[:, 0] > 0.5)).astype(int)


def colors() -> Data:
    """A data frame with a column of text, with missing values."""
    import pandas as pd

    random = np.random.default_rng(0)
    names = ["red", "green", 'dark "red"', "m\u00e4uve", "3", None]
    X = pd.DataFrame({"n": random.normal(size=400), "color": random.choice(names, 400), "m": random.normal(size=400)})
    return X, (X.color.isin(["red", "3"]) ^ (X.n > 0.2)).astype(int)


def hostile() -> Data:
    """Column and class names that are keywords of the output languages, or end their comments and strings."""
    import pandas as pd

    X, y = iris()
    names = ["int", "x*/\n#error", 'wire "always"', "\u00e4\\"]
    return pd.DataFrame(X, columns=names), np.array(["module", 'versi "color"', "*/ virginica\n"])[y]


def two_targets() -> Data:
    X, y = diabetes()
    return X, np.column_stack([y, X[:, 2]])


def two_labels() -> Data:
    X, y = iris()
    return X, np.column_stack([y, y % 2 - 1])


def sk(model: Any, data: Callable[[], Data]) -> Callable[[Path], Made]:
    """A fitted estimator."""

    def make(folder: Path) -> Made:
        X, y = data()
        return model.fit(X, y), X, y

    return make


def csv(model: Any, data: Callable[[], Data]) -> Callable[[Path], Made]:
    """A fitted estimator, with its rows in a CSV file."""

    def make(folder: Path) -> Made:
        X, y = data()
        columns = [f"c{index}" for index in range(X.shape[1])]
        rows = folder / "rows.csv"
        np.savetxt(rows, np.column_stack([X, y]), delimiter=",", header=",".join([*columns, "truth"]), comments="")
        return model.fit(X, y), rows, "truth"

    return make


def xgb(params: Mapping[str, Any], data: Callable[[], Data], suffix: str = "", types: Any = None) -> Any:
    """An XGBoost Booster, or, given a suffix, its file."""

    def make(folder: Path) -> Made:
        import xgboost

        X, y = data()
        matrix = xgboost.DMatrix(X, y, feature_types=types, enable_categorical=types is not None, nthread=1)
        booster = xgboost.train({"max_depth": 3, "nthread": 1, "seed": 0, **params}, matrix, 6)
        if suffix:
            booster.save_model(folder / f"model.{suffix}")
        return folder / f"model.{suffix}" if suffix else booster, X, y

    return make


def lgb(params: Mapping[str, Any], data: Callable[[], Data], suffix: str = "", **more: Any) -> Callable[[Path], Made]:
    """A LightGBM Booster, or, given a suffix, its file."""

    def make(folder: Path) -> Made:
        import lightgbm

        X, y = data()
        plain = {"num_leaves": 8, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 1, **params}
        booster = lightgbm.train(plain, lightgbm.Dataset(X, y, params={"verbose": -1}, **more), 6)
        if suffix:
            booster.save_model(folder / f"model.{suffix}")
        return folder / f"model.{suffix}" if suffix else booster, X, y

    return make


def cat(params: Mapping[str, Any], data: Callable[[], Data], suffix: str = "") -> Callable[[Path], Made]:
    """A CatBoost model, or, given a suffix, its file."""

    def make(folder: Path) -> Made:
        import catboost

        X, y = data()
        plain = {"iterations": 6, "depth": 3, "verbose": 0, "thread_count": 1, "random_seed": 1}
        model = catboost.CatBoost({**plain, "allow_writing_files": False, **params}).fit(X, y)
        if suffix:
            model.save_model(str(folder / f"model.{suffix}"), format=suffix)
            document = json.loads((folder / f"model.{suffix}").read_text())
            del document["model_info"]["train_finish_time"], document["model_info"]["model_guid"]
            (folder / f"model.{suffix}").write_text(json.dumps(document))
        return folder / f"model.{suffix}" if suffix else model, X, y

    return make


def onnx(model: Any, data: Callable[[], Data], double: bool = False) -> Callable[[Path], Made]:
    """An estimator converted by skl2onnx."""

    def make(folder: Path) -> Made:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

        X, y = data()
        X = X.astype(np.float64 if double else np.float32)
        kind = DoubleTensorType if double else FloatTensorType
        made = to_onnx(model.fit(X, y), initial_types=[("rows", kind([None, X.shape[1]]))])
        made.graph.name = "corpus"  # otherwise random
        made.opset_import.sort(key=lambda opset: opset.domain)  # otherwise in the order of a set
        (folder / "model.onnx").write_bytes(made.SerializeToString())
        return folder / "model.onnx", X, y

    return make


def lite(model: Any, data: Callable[[], Data], file: bool) -> Callable[[Path], Made]:
    """An estimator converted to treelite, or its checkpoint file."""

    def make(folder: Path) -> Made:
        import treelite

        X, y = data()
        made = treelite.sklearn.import_model(model.fit(X, y))
        if file:
            made.serialize(str(folder / "model.tl"))
        return folder / "model.tl" if file else made, X, y

    return make


def forest(trees: int = 6, **more: Any) -> Any:
    return ensemble.RandomForestClassifier(trees, **{"max_depth": 4, "random_state": 0, **more})


def mean(trees: int = 5, **more: Any) -> Any:
    return ensemble.RandomForestRegressor(trees, **{"max_depth": 4, "random_state": 0, **more})


def boost(count: int = 6, **more: Any) -> Any:
    return ensemble.GradientBoostingClassifier(n_estimators=count, random_state=0, **more)


def vote(voting: str, **more: Any) -> Any:
    members = [("forest", forest(4)), ("boosting", boost(4)), ("tree", tree.DecisionTreeClassifier(max_depth=3))]
    for _, member in members:
        member.set_params(random_state=0)
    return ensemble.VotingClassifier(members, voting=voting, **more)


def encoded(encoder: Any) -> Any:
    columns = ColumnTransformer([("codes", encoder, ["color"]), ("scaled", StandardScaler(), ["n", "m"])])
    return make_pipeline(columns, forest())


HIST, ADA = ensemble.HistGradientBoostingClassifier, ensemble.AdaBoostClassifier
UNKNOWN = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-5)
STUMP = tree.DecisionTreeClassifier(max_depth=2, random_state=0)
LOW = tree.DecisionTreeRegressor(max_depth=3, random_state=0)
ISOLATION = ensemble.IsolationForest(n_estimators=6, max_samples=32, random_state=0)
BINARY = {"objective": "binary:logistic"}
SOFT = {"objective": "multi:softprob", "num_class": 3}
ALL = "verilog,c,hls,amaranth"
SHARED = "simplify,share-thresholds,quantize,simplify"
RANGES = {
    "petal length (cm)": {"smallest": 0, "largest": 10, "step": 0.1, "missing": False}, "petal width (cm)": (0, 5),
    "sepal length (cm)": {"smallest": 0, "step": 0.5}, "sepal width (cm)": (0, None),
}  # fmt: skip


def named(folder: Path) -> Made:
    """A model with column names."""
    X, y = datasets.load_iris(return_X_y=True, as_frame=True)
    return forest().fit(X, y), None, None


def unseen(make: Callable[[Path], Made]) -> Callable[[Path], Made]:
    """A model without its rows."""
    return lambda folder: (make(folder)[0], None, None)


def case(make: Callable[[Path], Made], targets: str = "verilog,c", **options: Any) -> Case:
    return Case(make, {"targets": targets, **options})


CASES: dict[str, Case] = {
    # kinds of models
    "tree": case(sk(tree.DecisionTreeClassifier(random_state=0), iris), ALL),
    "forest": case(sk(forest(), iris), ALL, outputs="both"),
    "forest-binary": case(sk(forest(), cancer), ALL, outputs="both"),
    "forest-full": case(sk(forest(4, max_depth=None), digits), passes="none"),
    "forest-regression": case(sk(mean(), diabetes), ALL),
    "extra-trees": case(sk(ensemble.ExtraTreesClassifier(5, max_depth=4, random_state=0), digits), ALL),
    "boosting": case(sk(boost(), cancer), ALL, outputs="scores"),
    "boosting-multi": case(sk(boost(3), iris), ALL),
    "boosting-regression": case(
        sk(ensemble.GradientBoostingRegressor(loss="huber", n_estimators=6, random_state=0), diabetes), c_values="q15"
    ),
    "hist-missing": case(sk(HIST(max_iter=5, max_depth=3), missing(cancer)), ALL),
    "hist-multi": case(sk(HIST(max_iter=3, max_depth=3), missing(iris)), outputs="both"),
    "hist-categories": case(sk(HIST(max_iter=5, categorical_features=[1, 2]), codes), ALL),
    "ada": case(sk(ADA(STUMP, n_estimators=5, random_state=0), iris), ALL),
    "ada-regression": case(sk(ensemble.AdaBoostRegressor(LOW, n_estimators=4, random_state=0), diabetes), ALL),
    "bagging": case(sk(ensemble.BaggingClassifier(n_estimators=3, random_state=0), iris)),
    "vote-hard": case(sk(vote("hard"), iris), ALL, outputs="both"),
    "vote-weights": case(sk(vote("hard", weights=[3, 1, 2]), cancer), ALL, latency=3),
    "vote-soft": case(sk(vote("soft", weights=[2, 1, 0.5]), cancer), ALL, outputs="both"),
    "calibrated": case(sk(CalibratedClassifierCV(forest(3), cv=2), cancer), ALL),
    "calibrated-isotonic": case(sk(CalibratedClassifierCV(boost(3), method="isotonic", cv=2), cancer)),
    "isolation": case(sk(ISOLATION, lambda: (cancer()[0], None)), ALL),
    "targets": case(sk(mean(), two_targets), ALL, c_values="float"),
    "class-targets": case(sk(forest(), two_labels), ALL, outputs="both", latency=2),
    "one-hot": case(sk(encoded(OneHotEncoder(handle_unknown="ignore")), colors), ALL),
    "ordinal": case(sk(encoded(UNKNOWN), colors), ALL, c_inputs="struct"),
    "scaled": case(sk(make_pipeline(StandardScaler(), boost()), cancer), c_inputs="float"),
    "xgboost-json": case(xgb(BINARY, cancer, "json"), ALL),
    "xgboost-ubj": case(xgb(SOFT, iris, "ubj"), ALL, latency=2),
    "xgboost-missing": case(xgb(BINARY, missing(cancer)), ALL, c_inputs="float", outputs="both"),
    "xgboost-categories": case(xgb({**BINARY, "max_cat_to_onehot": 1}, codes, types=["q", "c", "c"]), ALL),
    "xgboost-regression": case(xgb({"objective": "count:poisson"}, diabetes, "json"), c_values="float"),
    "lightgbm-text": case(lgb({"objective": "binary"}, missing(cancer), "txt"), ALL),
    "lightgbm-categories": case(
        lgb({"objective": "binary", "min_data_per_group": 1}, codes, categorical_feature=[1, 2]), ALL
    ),
    "lightgbm-multi": case(lgb({"objective": "multiclass", "num_class": 3}, iris, "txt"), outputs="scores"),
    "lightgbm-regression": case(lgb({"objective": "regression"}, diabetes), c_inputs="struct", scores=0.01),
    "catboost-json": case(cat({"loss_function": "Logloss"}, missing(cancer), "json"), ALL),
    "catboost-multi": case(cat({"loss_function": "MultiClass"}, iris), ALL),
    "onnx": case(onnx(forest(), iris), ALL),
    "onnx-double": case(onnx(mean(), diabetes, double=True)),
    "treelite": case(lite(forest(), iris, file=True), ALL),
    "treelite-live": case(lite(boost(), cancer, file=False)),
    # number types
    "integers": case(sk(forest(), signed), ALL, latency=1),
    "ordered": case(sk(forest(), cancer), ALL, passes="simplify,quantize{input=ordered},simplify"),
    "ordered-64": case(lgb({"objective": "binary"}, cancer), ALL, passes="quantize{input=ordered}", c_inputs="float"),
    "always-missing": case(sk(HIST(max_iter=3), iris), passes="quantize{input=fixed,missing=always,leaf_bits=5}"),
    # passes
    "shared": case(sk(forest(), cancer), passes=SHARED),
    "shared-approximate": case(
        csv(forest(), cancer), held_out=0.2, passes="simplify,share-thresholds{exceptions=0.1,tolerance=0.1},quantize"
    ),
    "pruned": case(sk(boost(), cancer), passes="quantize,prune-splits{keep=decisions,copies=1,leaf_bits=2},simplify"),
    "pruned-accuracy": case(
        sk(forest(), digits),
        held_out=0.2,
        passes="simplify,quantize{leaf_bits=4,change=0.2},prune-splits{price=0.1,copies=1,tolerance=0.2}",
    ),
    "fitted": case(sk(boost(), cancer), held_out=0.2, passes="quantize{fit=true,leaf_bits=2,tolerance=0.1},simplify"),
    "scores": case(sk(boost(), iris), scores=0.01, c_values="q15"),
    # without rows
    "no-rows": case(unseen(xgb(BINARY, cancer, "json")), ALL),
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
    wanted = CASES[name]
    with tempfile.TemporaryDirectory() as files, warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        if "device" in wanted.options:  # its files are written before tools run
            stack.enter_context(patch("forestc.compilation.request.need_tools"))
            stack.enter_context(patch("forestc.commands.compile.synth", side_effect=Written))
        try:
            model, rows, label = wanted.make(Path(files))
            forestc.compile(model, rows, folder, label=label, **{"name": "corpus", **wanted.options})
        except Written:
            pass
        except Exception as error:
            raise RuntimeError(f"{name}: {type(error).__name__}: {error}") from error


def hashed(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a compiled folder, without the parts that may vary."""
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
    """The hashes of a case, and the seconds it took."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        folder = (keep or Path(made)) / name
        compiled(name, folder)
        return hashed(folder), time.perf_counter() - start


def differences(before: Hashes, after: Hashes) -> list[tuple[str, str, str]]:
    """(folder, path, what): each file that differs, was added or was removed; the path of a whole folder is `*`."""
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
