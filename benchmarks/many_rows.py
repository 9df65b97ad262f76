"""What levels take on many rows: seconds and memory of 100 XGBoost trees of depth 6 on 28 columns.

    python benchmarks/many_rows.py --rows 25000,100000,1000000 --levels 1,2,3 --kinds two,ten,value --json FILE
    python benchmarks/many_rows.py --rows 25000 --against CHECKOUT     # in pairs with another version
    python benchmarks/many_rows.py --rows 25000 --kinds adult,two --data DIR

Of the kinds two, ten and value rows are drawn: labels follow products and waves of some columns, with noise, so that
classes overlap. They lie in a Parquet file of 32-bit floats, the label last; accuracy is that on 50,000 rows that
neither training nor compiling has seen. Other kinds are data sets NAME.csv.gz of DIR: a fifth of their rows is for
tests. The model is trained on at most 200,000 rows; a tenth as many as compile is given, at most 100,000, is held out.
Seconds, processor seconds and peak memory are those of a whole `forestc compile`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import shuffled
from numpy.typing import NDArray
from tools import arguments, exponent, show

from forestc.costs.devices import XCUP as DEVICE

COLUMNS, TREES, DEPTH = 28, 100, 6
MOST_TRAINED, MOST_HELD, TEST, CHUNK = 200_000, 100_000, 50_000, 250_000
KINDS = ("two", "ten", "value")


def drawn(kind: str, count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """(count, 28) rows and their labels: of two classes, of ten, or values."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, COLUMNS)).astype(np.float32)
    X[:, 14:] = np.abs(X[:, 14:]) * (1 + 0.3 * X[:, :14])
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 15] * (X[:, 3] > 0) - 0.4 * X[:, 16] + 0.3 * X[:, 4]
    signal = signal + random.normal(size=count) * 0.7
    if kind == "value":
        return X, signal.astype(np.float32)
    if kind == "two":
        return X, (signal > 0.2).astype(np.int64)
    return X, np.searchsorted(np.linspace(-2.0, 2.4, 9), signal).astype(np.int64)


def write(path: Path, kind: str, count: int, seed: int) -> None:
    """Writes `count` drawn rows as Parquet, a chunk at a time."""
    with _writer(path, *drawn(kind, 1, seed)) as file:
        for number, size in enumerate(_chunks(count)):
            file.write_table(_table(*drawn(kind, size, seed + number)), row_group_size=50_000)


def _table(X: NDArray[np.float32], y: NDArray[Any]) -> pa.Table:
    return pa.table({f"x{n}": column for n, column in enumerate(X.T)} | {"y": y})


def _writer(path: Path, X: NDArray[np.float32], y: NDArray[Any]) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, _table(X, y).schema)


def _chunks(count: int) -> Iterator[int]:
    for first in range(0, count, CHUNK):
        yield min(CHUNK, count - first)


def prepare(folder: Path, kind: str, count: int, data: Path | None) -> dict[str, Path]:
    """The model of a kind for `count` rows, the rows, held-out and test rows, in a folder."""
    import xgboost

    files = {name: folder / f"{kind}_{count}_{name}.parquet" for name in ("rows", "held", "test")}
    files["model"] = folder / f"{kind}_{count}.json"
    if all(path.exists() for path in files.values()):
        return files
    if kind in KINDS:
        write(files["rows"], kind, count, 1000)
        write(files["held"], kind, min(count // 10, MOST_HELD), 2000)
        write(files["test"], kind, TEST, 3000)
        parts = [drawn(kind, size, 1000 + number) for number, size in enumerate(_chunks(min(count, MOST_TRAINED)))]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    else:
        values, y = shuffled(kind, data)
        X = values.astype(np.float32)
        ends = np.cumsum([len(X) // 5, count // 10, count])
        for name, first, last in zip(("test", "held", "rows"), (0, *ends), ends, strict=False):
            with _writer(files[name], X[:1], y[:1]) as file:
                file.write_table(_table(X[first:last], y[first:last]))
        X, y = X[ends[1] : ends[2]], y[ends[1] : ends[2]]
    classes = 0 if kind == "value" else int(y.max()) + 1
    objective = {0: "reg:squarederror", 2: "binary:logistic"}.get(classes, "multi:softmax")
    model = {"objective": objective, "max_depth": DEPTH, "eta": 0.2, "nthread": 2, "seed": 0}
    several = {"num_class": classes} if classes > 2 else {}
    trained = xgboost.train(model | several, xgboost.DMatrix(X, label=y), TREES // max(1, classes * (classes > 2)))
    trained.save_model(files["model"])
    return files


def compiled(files: dict[str, Path], out: Path, words: list[str], checkout: Path) -> dict[str, Any]:
    """The figures of one compile in a process of its own, by the code of a checkout."""
    command = [sys.executable, "-m", "forestc", "compile", files["model"], "--rows", files["rows"], "--label", "y"]
    command += ["--held-out", files["held"], "--target", "verilog", "--json", "-o", out, *words]
    log, environment = out.with_suffix(".log"), os.environ | {"PYTHONPATH": str(checkout)}
    with out.with_suffix(".out").open("w+") as printed, log.open("w") as errors:
        start = time.perf_counter()
        job = subprocess.Popen(command, cwd=checkout, env=environment, stdout=printed, stderr=errors)
        _, status, used = os.wait4(job.pid, 0)
        seconds = time.perf_counter() - start
        printed.seek(0)
        text = printed.read()
    figures = {
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
    }
    if status:
        raise SystemExit(f"{' '.join(map(str, command))}: {log.read_text()[-500:]}")
    done = json.loads(text)
    check = [sys.executable, "-m", "forestc", "check", out, "--rows", files["test"], "--label", "y"]
    check += ["--engines", "netlist", "--json"]
    ran = subprocess.run(check, check=True, cwd=checkout, env=environment, capture_output=True, text=True)
    accuracy = json.loads(ran.stdout)["accuracy"]
    return figures | {
        "luts": next(round(estimate["lut"]) for estimate in done["estimate"] if estimate["device"] == DEVICE.name),
        "accuracy": round(accuracy["compiled"], 4),
        "accuracy_lost": round(accuracy["model"] - accuracy["compiled"], 4),
        "stages": " ".join(f"{name} {figure:.0f}" for name, figure in done["seconds"].items() if figure >= 0.5),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", default="25000,100000", metavar="LIST")
    parser.add_argument("--levels", default="1,2,3", metavar="LIST")
    parser.add_argument("--kinds", default="two", metavar="LIST", help=f"of {', '.join(KINDS)}, or data sets")
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="also by another version's code, in pairs")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where rows and models are kept")
    options = parser.parse_args()
    here = Path(__file__).resolve().parent.parent
    versions = {"": here} | ({"before": options.against.resolve()} if options.against else {})
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or Path(scratch)).resolve()
        folder.mkdir(exist_ok=True, parents=True)
        for kind in options.kinds.split(","):
            for count in map(int, options.rows.split(",")):
                files = prepare(folder, kind, count, options.data)
                for level in options.levels.split(","):
                    for name, checkout in versions.items():
                        out = Path(scratch) / f"{kind}_{count}_{level}{name}"
                        case = {"kind": kind, "rows": count, "level": f"-O{level}", "version": name or "this"}
                        rows.append(case | compiled(files, out, [f"-O{level}"], checkout))
                        print(rows[-1], flush=True)
    growth = [
        {"kind": kind, "level": level, "exponent of seconds in rows": exponent(*zip(*points, strict=True))}
        for (kind, level), points in _grouped(rows).items()
        if len(points) > 1
    ]
    show("levels on many rows", rows, options.json, **({"growth": growth} if growth else {}))


def _grouped(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    grouped: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        if row["version"] == "this":
            grouped.setdefault((row["kind"], row["level"]), []).append((row["rows"], row["seconds"]))
    return grouped


if __name__ == "__main__":
    main()
