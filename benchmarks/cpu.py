"""Compares shared libraries with those that people use on servers: ns of processor time a row, on one thread.

A model is called from one loop in C by pointers, and from Python, with one row at a time and with 10,000. Rows take
their values beside the model's thresholds, so that no branch is easy to guess. Repeats of all libraries alternate; the
median counts. The peers run in an environment of their own, with forestc's module beside them: `pip install lightgbm
xgboost onnxruntime onnxmltools treelite tl2cgen pylignum lleaves "llvmlite<0.45"`. Called from C are those whose
packages have C functions. The benchmark stops if forestc's answers are not the training library's.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS, REPEATS, FEW = 10_000, 7, 1_000  # rows at once; repeats; rows of a repeat one at a time from Python
SLOW = 5e4  # ns of a row from which a library has one repeat in Python
LOOP = Path(__file__).with_suffix(".c")  # a loop over rows, and how it calls each library
Call = tuple[str, int, Any]  # the name in LOOP, the function's address, the library's handle
Opened = tuple[Any, tuple[Call, Call] | None]  # a function of rows in Python; calls in C of one row and of many


def linked(source: str, library: str, *objects: str) -> ctypes.CDLL:
    Path("loop.c").write_text(source)
    subprocess.run(["cc", "-O2", "-w", "-shared", "-fPIC", *objects, "loop.c", "-o", library], check=True)
    return ctypes.CDLL(str(Path(library).resolve()))


def address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def _lightgbm(model: str, wide: int) -> Opened:
    import lightgbm

    library, booster, one = lightgbm.basic._LIB, lightgbm.Booster(model_file=model), ctypes.c_void_p()
    how = (1, 0, -1, 1, wide, ctypes.c_char_p(b"num_threads=1"), ctypes.byref(one))
    library.LGBM_BoosterPredictForMatSingleRowFastInit(booster._handle, *how)
    single = ("lightgbm_one", address(library, "LGBM_BoosterPredictForMatSingleRowFast"), one)
    many = ("lightgbm", address(library, "LGBM_BoosterPredictForMat"), booster._handle)
    return lambda rows: booster.predict(rows, num_threads=1), (single, many)


def _xgboost(model: str, _: int) -> Opened:
    import xgboost

    booster = xgboost.Booster({"nthread": 1}, model_file=model)
    call = ("xgboost", address(xgboost.core._LIB, "XGBoosterPredictFromDense"), booster.handle)
    return lambda rows: booster.inplace_predict(rows, validate_features=False), (call, call)


def _lleaves(model: str, _: int) -> Opened:
    import lleaves

    leaves = lleaves.Model(model_file=model)
    leaves.compile(cache="lleaves.o")
    call = ("lleaves", address(linked("", "lleaves.so", "lleaves.o"), "forest_root"), None)
    return lambda rows: leaves.predict(rows, n_jobs=1), (call, call)


def _onnxruntime(model: str, wide: int) -> Opened:
    import onnxmltools
    import onnxruntime
    from onnxmltools.convert.common.data_types import FloatTensorType

    settings, kind = onnxruntime.SessionOptions(), [("x", FloatTensorType([None, wide]))]
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    if model.endswith(".txt"):
        import lightgbm

        graph = onnxmltools.convert_lightgbm(lightgbm.Booster(model_file=model), initial_types=kind)
    else:
        import xgboost

        estimator = xgboost.XGBClassifier()
        estimator.load_model(model)
        graph = onnxmltools.convert_xgboost(estimator, initial_types=kind)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(None, {"x": rows.astype(np.float32, copy=False)}), None


def _trees(model: str) -> Any:
    import treelite

    kind = "lightgbm" if model.endswith(".txt") else "xgboost"
    return getattr(treelite.frontend, f"load_{kind}_model")(model)


def _treelite(model: str, _: int) -> Opened:
    import treelite

    read = _trees(model)
    return lambda rows: treelite.gtil.predict(read, rows, nthread=1), None


def _tl2cgen(model: str, _: int) -> Opened:
    import tl2cgen

    tl2cgen.export_lib(_trees(model), toolchain="gcc", libpath="tl2.so", params={"parallel_comp": 32})
    predictor = tl2cgen.Predictor("tl2.so", nthread=1)
    call = ("tl2cgen", address(ctypes.CDLL(str(Path("tl2.so").resolve())), "predict"), None)
    return lambda rows: predictor.predict(tl2cgen.DMatrix(rows)), (call, call)


def _pylignum(model: str, _: int) -> Opened:
    import lignum

    fast = lignum.load(model)
    fast.compile()
    return lambda rows: fast.predict(rows, n_jobs=1), None


OPEN = {
    by.__name__.strip("_"): by for by in (_lightgbm, _xgboost, _onnxruntime, _treelite, _tl2cgen, _lleaves, _pylignum)
}
OF_ONE_KIND = {".json": ("lightgbm", "lleaves"), ".txt": ("xgboost",)}  # peers that read no models of these files


def opened(model: str, wide: int) -> tuple[dict[str, Any], dict[str, tuple[Call, Call]]]:
    """Opens a model with the peers that are installed. Returns their functions of rows in Python, and their calls in C
    for one and many rows."""
    python, c = dict[str, Any](), dict[str, tuple[Call, Call]]()
    for name, by in OPEN.items():
        if name not in OF_ONE_KIND[Path(model).suffix]:
            try:
                python[name], calls = by(model, wide)
            except ImportError:
                continue
            if calls is not None:
                c[name] = calls
    return python, c


def timed(name: str, model: str) -> dict[str, dict[str, float]]:
    """Times a model in the folder of forestc's module. Returns ns a row: {"C 1": {library: ns}, "Python 1": ...}."""
    X, module, narrow = np.load("rows.npy"), importlib.import_module(name), model.endswith(".json")
    python, c = opened(model, X.shape[1])
    rows = X.astype(np.float32) if narrow else X
    right = python["xgboost" if narrow else "lightgbm"](rows)
    classes = len(module.CLASSES) if narrow else 0
    own = {0: lambda: module.values(rows), 2: lambda: module.probabilities(rows)[:, 1]}.get(
        classes, lambda: module.labels(rows)
    )
    if not np.allclose(own(), right, atol=1e-3 * np.ptp(right)):
        raise SystemExit(f"forestc answers {model} otherwise")
    entry = ("ours", address(module._LIBRARY, f"{name}_rows_{'float' if narrow else 'double'}"), None)
    python, c = {"forestc": module.scores, **python}, {"forestc": (entry, entry), **c}
    driver, out, samples = linked(LOOP.read_text(), "loop.so"), np.empty(ROWS * 64), dict[str, dict[str, list[float]]]()
    driver.loop.restype = ctypes.c_double
    for turn in range(REPEATS):
        for library, calls in c.items():
            for at_once, (function, place, handle) in zip((1, ROWS), calls, strict=True):
                held = (ctypes.c_void_p * 5)(place, handle, X.shape[1], int(narrow), out.ctypes.data)
                sizes = (ctypes.c_int64(size) for size in (ROWS, at_once, rows.strides[0]))
                ns = driver.loop(driver[function], held, ctypes.c_void_p(rows.ctypes.data), *sizes)
                samples.setdefault(f"C {at_once}", {}).setdefault(library, []).append(ns)
        for library, predict in python.items():
            for at_once in (ROWS, 1):
                known = samples.setdefault(f"Python {at_once}", {}).setdefault(library, [])
                if turn == 0 or known[0] < SLOW * (1 if at_once > 1 else 10):
                    parts = [rows] if at_once > 1 else [rows[k : k + 1] for k in range(FEW)]
                    start = time.process_time()
                    for part in parts:
                        predict(part)
                    known.append((time.process_time() - start) / len(parts) / at_once * 1e9)
    return {way: {library: float(np.median(ns)) for library, ns in of.items()} for way, of in samples.items()}


def rows_beside(forest: Any) -> Any:
    """Returns rows of thresholds, each moved by at most a hundredth of the spread in its column."""
    random, X = np.random.default_rng(0), np.zeros((ROWS, forest.columns))
    for index, feature in enumerate(forest.features):
        cuts = np.concatenate([tree.threshold[tree.inner][tree.feature[tree.inner] == index] for tree in forest.trees])
        X[:, feature.column] = random.choice(cuts.astype(np.float64), ROWS) + random.uniform(
            -0.01, 0.01, ROWS
        ) * np.std(cuts)
    return X


def measured(options: Any, case: Any) -> Any:
    import forestc

    with tempfile.TemporaryDirectory() as name:
        model = case_file(options, case["model"]) or trained(
            Path(name) / "large.json", *((20, 3) if options.small else (1_000, 8))
        )
        yield [model, LOOP], None
        design = forestc.compile(model, None, Path(name) / "out", targets="shared", level=0, name="m").design
        np.save(design.folder / "shared" / "rows.npy", rows_beside(design.model))
        command = [options.peer, Path(__file__).resolve(), "--timed", "m", model.resolve()]
        done = subprocess.run(command, cwd=design.folder / "shared", capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
    rows = []
    for way, ns in json.loads(done.stdout.splitlines()[-1]).items():
        best = min(ns.keys() - {"forestc"}, key=ns.__getitem__)
        what = {"called_from": way.split()[0], "rows_at_once": int(way.split()[1]), "ratio": ns["forestc"] / ns[best]}
        rows.append({**case, **what, "best_peer": best, "forestc": ns["forestc"], **{p: ns.get(p) for p in OPEN}})
    yield rows


def case_file(options: Any, name: str) -> Path | None:
    files = [(options.peers, f"{name}.json"), (options.models, f"{name}.txt")]
    return next((folder / file for folder, file in files if folder and (folder / file).is_file()), None)


def trained(path: Path, trees: int, depth: int) -> Path:
    from sklearn.datasets import make_classification
    from xgboost import XGBClassifier

    X, y = make_classification(6_000, 32, n_informative=20, n_clusters_per_class=8, flip_y=0.1, random_state=0)
    XGBClassifier(n_estimators=trees, max_depth=depth, learning_rate=0.05).fit(X.astype(np.float32), y).save_model(path)
    return path


def main() -> None:
    if "--timed" in sys.argv:
        sys.path.insert(0, ".")
        print(json.dumps(timed(*sys.argv[2:])))
        return
    from ledger import Ledger
    from tools import arguments

    parser = arguments(__doc__, "json", "peers", "only")
    parser.add_argument("--models", type=Path, metavar="DIR", help="a folder with lightgbm_nyc_taxi.txt")
    parser.add_argument("--peer", type=Path, default=sys.executable, help="the Python that has the peers")
    options = parser.parse_args()
    ledger = Ledger("ns a row on one thread, from C and from Python", options)
    freeze = [options.peer, "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.splitlines()
    models = [name for name in ("bc", "digits", "lightgbm_nyc_taxi") if case_file(options, name)]
    cases = [{"model": name} for name in (*models, "1,000 trees of depth 8") if options.only in ("", name)]
    ledger.fill(cases, measured, options)
    tables = {
        f"from_{place.lower()}": [
            {"model": row["model"], **dict([*row.items()][2:-1])} for row in ledger.rows if row["called_from"] == place
        ]
        for place in ("C", "Python")
    }
    ledger.show(**tables, peers=", ".join(line for line in listed if line.partition("==")[0] in (*OPEN, "llvmlite")))


if __name__ == "__main__":
    main()
