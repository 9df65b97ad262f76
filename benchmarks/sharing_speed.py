"""Speed and memory of share-thresholds.

1. The whole pass against scikit-learn's `apply` on the same rows and threads, in one run: rows x 28, 20 trees of full
   depth. Target: at most 1.5 times. Medians of several rounds, after one round that compiles and warms up.
2. Rows streamed from Parquet: 7,000,000 x 28, 100 trees, in a separate process; memory above that of the forest.
   Target: under 2 GB. Three sizes show how time and memory grow with the rows.
3. `exceptions` at 50 % on one feature with 20,000 intervals, in a separate process. Target: under 60 s and 2 GB.

`--rows N` for the largest of part 2. About 15 minutes on two cores with 7,000,000 rows, and 1 GB in --folder.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestClassifier
from tools import arguments, exponent, in_fresh_process, peak_memory_mb, show

import forestc
from forestc.algorithms.thresholds.interval_stabbing import stab_most
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.rows.batches import ArrayRows
from forestc.rows.files import open_rows

FEATURES = 28
GROUP = 1 << 17


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, FEATURES)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + np.sin(3 * X[:, 3]) + random.normal(size=count)
    return X, (signal > 0).astype(np.int64)


def against_apply(count: int, trees: int, rounds: int) -> dict[str, object]:
    X, y = rows(count, 0)
    model = RandomForestClassifier(trees, random_state=0, n_jobs=-1).fit(X, y)
    forest = forestc.load(model)
    batch = ArrayRows(X.astype(np.float64))
    took: dict[str, list[float]] = {"apply": [], "pass": []}
    for index in range(rounds + 1):
        for name, work in (("apply", lambda: model.apply(X)), ("pass", lambda: ShareThresholds().run(forest, batch))):
            start = time.perf_counter()
            result = work()
            if index:
                took[name].append(time.perf_counter() - start)
    before, after = result.report["distinct_conditions"]
    apply, whole = np.median(took["apply"]), np.median(took["pass"])
    ratios = np.array(took["pass"]) / np.array(took["apply"])
    return {
        "rows": count, "trees": trees, "nodes": forest.n_nodes, "depth": forest.depth,
        "apply_s": float(apply), "pass_s": float(whole), "ratio": float(whole / apply),
        "ratio_of_rounds": f"{ratios.min():.2f} to {ratios.max():.2f}", "conditions": f"{before:,} to {after:,}",
    }  # fmt: skip


def write_rows(path: Path, count: int) -> None:
    schema = pa.schema([(f"x{k}", pa.float32()) for k in range(FEATURES)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, count, GROUP):
            X, _ = rows(min(GROUP, count - start), 1 + start)
            writer.write_table(pa.table(list(X.T), schema=schema))


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def streamed(model: str, path: str) -> None:
    """Loads the forest, shares its thresholds on the rows of a file, and prints the figures; for a separate process."""
    forest = forestc.load(joblib.load(model))
    warm = np.zeros((8, FEATURES))
    ShareThresholds().run(forest, ArrayRows(warm))  # compiles
    gc.collect()
    resident = resident_mb()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    start = time.perf_counter()
    report = ShareThresholds().run(forest, open_rows(path, forest)).report
    took = time.perf_counter() - start
    print(json.dumps([forest.n_nodes, resident, peak_memory_mb(), took, report["distinct_conditions"]]))


def exceptions(count: int, share: float) -> None:
    random = np.random.default_rng(0)
    low = random.normal(size=count)
    high = low + random.exponential(0.01, size=count)
    stab_most(low[:50], high[:50], 20)
    before, start = peak_memory_mb(), time.perf_counter()
    points = stab_most(low, high, int(share * count))
    took = time.perf_counter() - start
    print(json.dumps([took, peak_memory_mb() - before, len(points.low), int(points.missed.sum())]))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=7_000_000, help="rows of the largest file (part 2)")
    parser.add_argument("--folder", type=Path, help="folder for the files of part 2 (default: a temporary one)")
    options = parser.parse_args()
    first = against_apply(200_000, 20, 7)
    show("1. The whole pass against scikit-learn's apply", [first])

    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        X, y = rows(100_000, 0)
        model = RandomForestClassifier(100, random_state=0, n_jobs=-1).fit(X, y)
        joblib.dump(model, folder / "model.joblib")
        table = []
        for share in (16, 4, 1):
            count = options.rows // share
            write_rows(folder / "rows.parquet", count)
            done = in_fresh_process(__file__, "streamed", folder / "model.joblib", folder / "rows.parquet")
            nodes, resident, peak, took, (before, after) = done
            table.append({"rows": count, "trees": 100, "nodes": nodes, "forest_MB": resident, "peak_MB": peak,
                          "above_the_forest_MB": peak - resident, "s": took, "conditions": f"{before:,} to {after:,}",
                          "million_visits_a_tree_per_s": count * 100 / took / 1e6})  # fmt: skip
    show("2. Rows streamed from Parquet", table,
         growth_of_time_with_rows=exponent([r["rows"] for r in table], [r["s"] for r in table]))  # fmt: skip

    third = []
    for count in (5_000, 20_000, 80_000):
        took, memory, points, missed = in_fresh_process(__file__, "exceptions", count, 0.5)
        third.append({"intervals": count, "exceptions": missed, "points": points, "s": took, "MB": memory})
    show("3. exceptions at 50 %", third, options.json, apply=first, streamed=table,
         growth_of_time=exponent([r["intervals"] for r in third], [r["s"] for r in third]))  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["streamed"]:
        streamed(*sys.argv[2:])
    elif sys.argv[1:2] == ["exceptions"]:
        exceptions(int(sys.argv[2]), float(sys.argv[3]))
    else:
        main()
