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
PEERS = ("lightgbm", "xgboost", "onnxruntime", "treelite", "tl2cgen", "lleaves", "pylignum")
LOOP = Path(__file__).with_suffix(".c")  # a loop over rows, and how it calls each library
Call = tuple[str, int, Any]  # the name in LOOP, the function's address, the library's handle


def linked(source: str, library: str, *objects: str) -> ctypes.CDLL:
    Path("loop.c").write_text(source)
    subprocess.run(["cc", "-O2", "-w", "-shared", "-fPIC", *objects, "loop.c", "-o", library], check=True)
    return ctypes.CDLL(str(Path(library).resolve()))


def address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def opened(model: str, wide: int) -> tuple[dict[str, Any], dict[str, tuple[Call, Call]]]:
    """Opens a model with its peers. Returns their functions of rows in Python, and their calls in C for one and many
    rows."""
    import lignum
    import onnxmltools
    import onnxruntime
    import tl2cgen
    import treelite
    from onnxmltools.convert.common.data_types import FloatTensorType

    one, kind = ctypes.c_void_p(), [("x", FloatTensorType([None, wide]))]
    if model.endswith(".txt"):
        import lightgbm
        import lleaves

        lgb, booster = lightgbm.basic._LIB, lightgbm.Booster(model_file=model)
        how = (1, 0, -1, 1, wide, ctypes.c_char_p(b"num_threads=1"), ctypes.byref(one))
        lgb.LGBM_BoosterPredictForMatSingleRowFastInit(booster._handle, *how)
        leaves = lleaves.Model(model_file=model)
        leaves.compile(cache="lleaves.o")
        root = ("lleaves", address(linked("", "lleaves.so", "lleaves.o"), "forest_root"), None)
        many = ("lightgbm", address(lgb, "LGBM_BoosterPredictForMat"), booster._handle)
        single = ("lightgbm_one", address(lgb, "LGBM_BoosterPredictForMatSingleRowFast"), one)
        c = {"lightgbm": (single, many), "lleaves": (root, root)}
        python = {
            "lightgbm": lambda rows: booster.predict(rows, num_threads=1),
            "lleaves": lambda rows: leaves.predict(rows, n_jobs=1),
        }
        graph, trees = onnxmltools.convert_lightgbm(booster, initial_types=kind), treelite.frontend.load_lightgbm_model
    else:
        import xgboost

        booster, estimator = xgboost.Booster({"nthread": 1}, model_file=model), xgboost.XGBClassifier()
        estimator.load_model(model)
        dense = ("xgboost", address(xgboost.core._LIB, "XGBoosterPredictFromDense"), booster.handle)
        c = {"xgboost": (dense, dense)}
        python = {"xgboost": lambda rows: booster.inplace_predict(rows, validate_features=False)}
        graph, trees = onnxmltools.convert_xgboost(estimator, initial_types=kind), treelite.frontend.load_xgboost_model
    read, fast, settings = trees(model), lignum.load(model), onnxruntime.SessionOptions()
    fast.compile()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    tl2cgen.export_lib(read, toolchain="gcc", libpath="tl2.so", params={"parallel_comp": 32})
    predictor = tl2cgen.Predictor("tl2.so", nthread=1)
    walk = ("tl2cgen", address(ctypes.CDLL(str(Path("tl2.so").resolve())), "predict"), None)
    return python | {
        "pylignum": lambda rows: fast.predict(rows, n_jobs=1),
        "treelite": lambda rows: treelite.gtil.predict(read, rows, nthread=1),
        "onnxruntime": lambda rows: session.run(None, {"x": rows.astype(np.float32, copy=False)}),
        "tl2cgen": lambda rows: predictor.predict(tl2cgen.DMatrix(rows)),
    }, c | {"tl2cgen": (walk, walk)}


def timed(name: str, model: str) -> dict[str, dict[str, float]]:
    """Times a model in the folder of forestc's module. Returns ns a row: {"C 1": {library: ns}, "Python 1": ...}."""
    X, module, narrow = np.load("rows.npy"), importlib.import_module(name), model.endswith(".json")
    python, c = opened(model, X.shape[1])
    rows = X.astype(np.float32) if narrow else X
    right = python["xgboost" if narrow else "lightgbm"](rows)
    classes = len(module.CLASSES[0]) if narrow else 0
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
        found = [*options.peers.glob(f"{case['model']}.json"), *options.models.glob(f"{case['model']}.txt")]
        model = found[0] if found else trained(Path(name) / "large.json", *((20, 3) if options.small else (1_000, 8)))
        yield [model, LOOP], None
        design = forestc.compile(model, None, Path(name) / "out", targets="shared", level=0, name="m").design
        np.save(design.folder / "shared" / "rows.npy", rows_beside(design.model))
        command = [options.peer / "bin" / "python", Path(__file__).resolve(), "--timed", "m", model.resolve()]
        done = subprocess.run(command, cwd=design.folder / "shared", capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
    rows = []
    for way, ns in json.loads(done.stdout.splitlines()[-1]).items():
        best = min(ns.keys() - {"forestc"}, key=ns.__getitem__)
        what = {"called_from": way.split()[0], "rows_at_once": int(way.split()[1]), "ratio": ns["forestc"] / ns[best]}
        rows.append({**case, **what, "best_peer": best, "forestc": ns["forestc"], **{p: ns.get(p) for p in PEERS}})
    yield rows


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

    parser = arguments(__doc__, "json", "peers!", "only")
    for name, what in (("models", "a folder with lightgbm_nyc_taxi.txt"), ("peer", "the peers' virtual environment")):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="DIR", help=what)
    options = parser.parse_args()
    ledger = Ledger("ns a row on one thread, from C and from Python", options)
    freeze = [options.peer / "bin" / "python", "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.splitlines()
    models = ("bc", "digits", "lightgbm_nyc_taxi", "1,000 trees of depth 8")
    ledger.fill([{"model": name} for name in models if options.only in ("", name)], measured, options)
    tables = {
        f"from_{place.lower()}": [
            {"model": row["model"], **dict([*row.items()][2:-1])} for row in ledger.rows if row["called_from"] == place
        ]
        for place in ("C", "Python")
    }
    ledger.show(**tables, peers=", ".join(line for line in listed if line.partition("==")[0] in (*PEERS, "llvmlite")))


if __name__ == "__main__":
    main()
