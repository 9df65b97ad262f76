"""Compares shared libraries with the libraries that people use on servers: ns a row, on one thread.

Each model is called from one loop in C by pointers, and from Python, with one row at a time and with 10,000. Rows take
their values from the model's thresholds, a step below or above, so that no branch is easy to guess. Repeats of all that
are compared alternate, and the median counts. The peers run in a virtual environment of their own, with forestc's
module beside them: `pip install lightgbm xgboost onnxruntime onnxmltools treelite tl2cgen pylignum lleaves
"llvmlite<0.45"`. From C there are those whose packages have C functions. The benchmark stops if answers differ.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS, REPEATS, ONE = 10_000, 7, 1_000  # rows at once; repeats; rows of a repeat one at a time from Python
PEERS = ("lightgbm", "xgboost", "onnxruntime", "treelite", "tl2cgen", "lleaves", "pylignum")
# A loop over rows, and how each library is called in it.
LOOP = r"""
#include <stdint.h>
#include <stdio.h>
#include <time.h>
typedef struct { void *f, *h; int64_t columns, labels; void *out; } peer;
typedef void call(peer *, const char *, int64_t);
void ours(peer *p, const char *x, int64_t n) {
    if (p->labels) ((void (*)(const void *, int64_t, int64_t, void *, void *, void *))p->f)(x, n, p->columns, 0, p->out, 0);
    else ((void (*)(const void *, int64_t, int64_t, void *, void *))p->f)(x, n, p->columns, p->out, 0);
}
void lleaves(peer *p, const char *x, int64_t n) {
    ((void (*)(const void *, void *, int32_t, int32_t))p->f)(x, p->out, 0, (int32_t)n);
}
void tl2cgen(peer *p, const char *x, int64_t n) {
    int64_t size = p->labels ? 4 : 8, row;
    for (row = 0; row < n; row++) ((void (*)(const void *, int, void *))p->f)(x + row * p->columns * size, 1, p->out);
}
void lightgbm_one(peer *p, const char *x, int64_t n) {
    int64_t length;
    ((int (*)(void *, const void *, int64_t *, void *))p->f)(p->h, x, &length, p->out);
}
void lightgbm(peer *p, const char *x, int64_t n) {
    int64_t length;
    ((int (*)(void *, const void *, int, int32_t, int32_t, int, int, int, int, const char *, int64_t *, void *))p->f)(
        p->h, x, 1, (int32_t)n, (int32_t)p->columns, 1, 1, 0, -1, "num_threads=1", &length, p->out);
}
void xgboost(peer *p, const char *x, int64_t n) {
    char text[200];
    const uint64_t *shape, *size;
    const float *out;
    snprintf(text, sizeof text, "{\"data\":[%lu,true],\"shape\":[%ld,%ld],\"typestr\":\"<f4\",\"version\":3}",
             (unsigned long)x, (long)n, (long)p->columns);
    ((int (*)(void *, const char *, const char *, void *, const void *, void *, void *))p->f)(
        p->h, text, "{\"type\":1,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":false,\"missing\":NaN,"
        "\"cache_id\":0}", 0, &shape, &size, &out);
}
double loop(call *f, peer *p, const char *x, int64_t rows, int64_t at_once, int64_t bytes) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int64_t row = 0; row < rows; row += at_once) f(p, x + row * bytes, at_once);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / rows;
}
"""


class Peer(ctypes.Structure):
    _fields_ = [("f", ctypes.c_void_p), ("h", ctypes.c_void_p), ("columns", ctypes.c_int64), ("labels", ctypes.c_int64),
                ("out", ctypes.c_void_p)]  # fmt: skip


def compiled(source: str, library: str, *objects: str) -> ctypes.CDLL:
    Path("loop.c").write_text(source)
    subprocess.run(["cc", "-O2", "-w", "-shared", "-fPIC", *objects, "loop.c", "-o", library], check=True)
    return ctypes.CDLL(str(Path(library).resolve()))


def address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def opened(model: str, X: Any) -> tuple[dict[str, Callable[[Any], Any]], dict[str, list[tuple[int, str, int, Any]]]]:
    """Opens a model in all peers that read it. Returns what predicts rows in Python; and (rows at once, C function, its
    address, handle) from C."""
    import lignum
    import onnxmltools
    import onnxruntime
    import tl2cgen
    import treelite
    from onnxmltools.convert.common.data_types import FloatTensorType

    python: dict[str, Callable[[Any], Any]] = {}
    c: dict[str, list[tuple[int, str, int, Any]]] = {}
    wide, handle = X.shape[1], ctypes.c_void_p()
    if model.endswith(".txt"):
        import lightgbm
        import lleaves
        from lightgbm.basic import _LIB

        booster = lightgbm.Booster(model_file=model)
        python["lightgbm"] = lambda rows: booster.predict(rows, num_threads=1)
        _LIB.LGBM_BoosterPredictForMatSingleRowFastInit(
            booster._handle, 1, 0, -1, 1, wide, ctypes.c_char_p(b"num_threads=1"), ctypes.byref(handle)
        )
        c["lightgbm"] = [
            (1, "lightgbm_one", address(_LIB, "LGBM_BoosterPredictForMatSingleRowFast"), handle),
            (ROWS, "lightgbm", address(_LIB, "LGBM_BoosterPredictForMat"), booster._handle),
        ]
        leaves = lleaves.Model(model_file=model)
        leaves.compile(cache="lleaves.o")
        python["lleaves"] = lambda rows: leaves.predict(rows, n_jobs=1)
        root = address(compiled("", "lleaves.so", "lleaves.o"), "forest_root")
        c["lleaves"] = [(1, "lleaves", root, None), (ROWS, "lleaves", root, None)]
        graph = onnxmltools.convert_lightgbm(booster, initial_types=[("x", FloatTensorType([None, wide]))])
        trees = treelite.frontend.load_lightgbm_model(model)
    else:
        import xgboost
        from xgboost.core import _LIB as XGB

        booster = xgboost.Booster(model_file=model)
        booster.set_param({"nthread": 1})
        python["xgboost"] = lambda rows: booster.inplace_predict(rows, validate_features=False)
        dense = address(XGB, "XGBoosterPredictFromDense")
        c["xgboost"] = [(1, "xgboost", dense, booster.handle), (ROWS, "xgboost", dense, booster.handle)]
        kind = xgboost.XGBClassifier()
        kind.load_model(model)
        graph = onnxmltools.convert_xgboost(kind, initial_types=[("x", FloatTensorType([None, wide]))])
        trees = treelite.frontend.load_xgboost_model(model)
    fast = lignum.load(model)
    fast.compile()
    python["pylignum"] = lambda rows: fast.predict(rows, n_jobs=1)
    python["treelite"] = lambda rows: treelite.gtil.predict(trees, rows, nthread=1)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    python["onnxruntime"] = lambda rows: session.run(None, {"x": rows.astype(np.float32, copy=False)})
    tl2cgen.export_lib(trees, toolchain="gcc", libpath="tl2.so", params={"parallel_comp": 8})
    predictor = tl2cgen.Predictor("tl2.so", nthread=1)
    python["tl2cgen"] = lambda rows: predictor.predict(tl2cgen.DMatrix(rows))
    predict = address(ctypes.CDLL(str(Path("tl2.so").resolve())), "predict")
    c["tl2cgen"] = [(1, "tl2cgen", predict, None), (ROWS, "tl2cgen", predict, None)]
    return python, c


def timed(name: str, model: str) -> dict[str, Any]:
    """Times a model in this process's folder, which holds forestc's module. Returns {"C 1": {library: ns a row}, ...}."""
    X = np.load("rows.npy")
    narrow, module = X.astype(np.float32), importlib.import_module(name)
    floats = not model.endswith(".txt")
    rows = narrow if floats else X
    python, c = opened(str(Path(model).resolve()), X)
    answers = getattr(module, "probabilities", None) or module.values
    right = python["xgboost" if floats else "lightgbm"](rows)
    ours = answers(rows)
    if not np.allclose(ours[:, 1] if right.ndim == 1 and floats else ours, right, atol=1e-3 * np.ptp(right)):
        raise SystemExit(f"forestc answers {model} otherwise")
    python = {"forestc": module.scores, **python}
    kind = "float" if floats else "double"
    entry = address(ctypes.CDLL(module._LIBRARY._name), f"{name}_rows_{kind}")
    c = {"forestc": [(1, "ours", entry, None), (ROWS, "ours", entry, None)], **c}
    driver, out = compiled(LOOP, "loop.so"), np.empty(ROWS * 64)
    driver.loop.restype = ctypes.c_double
    samples: dict[str, dict[str, list[float]]] = {}

    def add(way: str, library: str, ns: float) -> None:
        samples.setdefault(way, {}).setdefault(library, []).append(ns)

    for _ in range(REPEATS):
        for library, calls in c.items():
            for at_once, function, place, handle in calls:
                peer = Peer(place, handle, X.shape[1], int(floats), out.ctypes.data)
                size = ctypes.c_int64(rows.strides[0])
                given = ctypes.c_void_p(rows.ctypes.data), ctypes.c_int64(ROWS), ctypes.c_int64(at_once), size
                add(f"C {at_once}", library, driver.loop(driver[function], ctypes.byref(peer), *given))
        for library, predict in python.items():
            if library in samples.get(f"Python {ROWS}", {}) and samples[f"Python {ROWS}"][library][0] > 1e5:
                continue  # seconds for each repeat
            start = time.perf_counter()
            predict(rows)
            add(f"Python {ROWS}", library, (time.perf_counter() - start) / ROWS * 1e9)
            few = [rows[k : k + 1] for k in range(ONE if samples[f"Python {ROWS}"][library][0] < 1e5 else 20)]
            start = time.perf_counter()
            for row in few:
                predict(row)
            add("Python 1", library, (time.perf_counter() - start) / len(few) * 1e9)
    return {way: {name: float(np.median(ns)) for name, ns in of.items()} for way, of in samples.items()}


def rows_near(forest: Any, random: Any) -> Any:
    """Returns rows of thresholds of a float forest, each moved by a hundredth of its column's spread or less."""
    X = np.zeros((ROWS, forest.columns))
    for index, feature in enumerate(forest.features):
        held = [tree.threshold[tree.inner][tree.feature[tree.inner] == index] for tree in forest.trees]
        cuts = np.concatenate(held).astype(np.float64)
        if len(cuts):
            X[:, feature.column] = random.choice(cuts, ROWS) + random.uniform(-0.01, 0.01, ROWS) * max(
                np.std(cuts), 1e-3
            )
    return X


def measured(options: Any, case: Any) -> Any:
    import forestc

    model = {"nyc_taxi": options.models / "lightgbm_nyc_taxi.txt"}.get(
        case["model"], options.peers / f"{case['model']}.json"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if case["model"] == "1,000 trees":
            model = trained(folder / "large.json", *((20, 3) if options.small else (1_000, 8)))
        yield [model], None
        design = forestc.compile(model, None, folder / "out", targets="shared", level=0, name="m").design
        np.save(design.folder / "shared" / "rows.npy", rows_near(design.model, np.random.default_rng(0)))
        command = [options.peer / "bin" / "python", Path(__file__).resolve(), "--timed", "m", model.resolve()]
        done = subprocess.run(command, cwd=design.folder / "shared", capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
    rows = []
    for way, ns in found.items():
        place, at_once = way.split()
        others = {peer: time for peer, time in ns.items() if peer != "forestc"}
        best = min(others, key=others.__getitem__)
        ratio = {"ratio": ns["forestc"] / others[best], "best_peer": best, "forestc": ns["forestc"]}
        columns = {peer: others.get(peer) for peer in PEERS}
        rows.append({**case, "called_from": place, "rows_at_once": int(at_once), **ratio, **columns})
    yield rows


def trained(path: Path, trees: int, depth: int) -> Path:
    import xgboost
    from sklearn.datasets import make_classification

    X, y = make_classification(6_000, 32, n_informative=20, n_clusters_per_class=8, flip_y=0.1, random_state=0)
    model = xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, learning_rate=0.05, random_state=0)
    model.fit(X.astype(np.float32), y).save_model(path)
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
    versions = [options.peer / "bin" / "python", "-m", "pip", "list", "--format=freeze"]
    listed = subprocess.run(versions, capture_output=True, text=True, check=True).stdout.splitlines()
    cases = [{"model": name} for name in ("bc", "digits", "nyc_taxi", "1,000 trees")]
    chosen = [case for case in cases if not options.only or case["model"] in options.only.split(";")]
    ledger.fill(chosen, measured, options)
    ledger.show(peers=", ".join(line for line in listed if line.partition("==")[0] in (*PEERS, "llvmlite")))


if __name__ == "__main__":
    main()
