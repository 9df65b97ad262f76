"""Designs that a search finds, beside published ones of other kinds of networks.

    python benchmarks/neighbors.py --data DIR --json FILE

wine, moons, dry bean: `forestc.explore` with `--train priced`, cross-validated on the training rows (dry bean: judged
on a fifth of them); shown is the smallest design of the front whose accuracy there is at least the published one, or
where none is the smallest within a standard error of the most accurate, and the whole front. MNIST: boosting with
prices on all training rows, settings fixed beforehand on 10,000 of them that were held out. Nothing is chosen on test
rows. LUTs: yosys, synth_xilinx, the whole decision, without registers. The published figures are Vivado's, second hand:
KANELE's without the decision, DWN's with its encoder; tools differ, so counts can be compared with care only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data import Split, pixels, read
from designs import right
from numpy.typing import NDArray
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from tools import arguments, save, show

import forestc
from forestc.costs.prices import prices
from forestc.training import TRAINERS, Task

TITLE = "published neighbors"
DEVICE = "xcup"
PASSES = "simplify,share-thresholds,quantize,simplify"
# test accuracy in %, LUTs
SMALL = {"wine": ("KANELE", 98.15, 534), "moons": ("KANELE", 97.35, 67), "dry_bean": ("KANELE", 92.03, 402)}
MNIST = (("DWN", 95.9, 1264), ("DWN", 96.8, 1597), ("DWN", 97.7, 2246))
# of 1-bit tables of six pixels' highest bits; trees for each digit
TABLES = {"shape": "symmetric", "depth": 6, "leaf_bits": 1, "price": 1e-6, "thresholds": "grid", "input_bits": 1}
# and how many shifted copies of each training row there are
SIZES = (
    ({"trees": 28, "unit": 0.5, "columns": 0.15, "sweeps": 2}, 0),
    ({"trees": 45, "unit": 0.4, "columns": 0.1, "sweeps": 2}, 0),
    ({"trees": 85, "unit": 0.25, "columns": 0.1, "sweeps": 1}, 0),
    ({"trees": 78, "unit": 0.25, "columns": 0.15, "sweeps": 2}, 1),
)


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join((*SMALL, 'mnist'))}")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [*SMALL, "mnist"]
    rows: list[dict[str, Any]] = []
    fronts: dict[str, list[dict[str, Any]]] = {}
    if options.only and options.json and options.json.exists():  # what is not measured again stays
        kept = json.loads(options.json.read_text())
        rows = [row for row in kept["rows"] if row["data"].split(",")[0] not in wanted]
        fronts = {key: front for key, front in kept.items() if key.startswith("front_of_")}
    for name in (data for data in SMALL if data in wanted and (data != "dry_bean" or options.data)):
        line, fronts[f"front_of_{name}"] = searched(name, options.data, options.trials)
        rows.append(line)
        save(TITLE, rows, options.json, **fronts)
    if "mnist" in wanted and options.data:
        for line in of_mnist(options.data):
            rows.append(line)
            save(TITLE, rows, options.json, **fronts)
            print(line, flush=True)
    show(TITLE, rows, options.json, **fronts)


def split(name: str, data: Path | None) -> Split:
    """Rows as KANELE's own scripts part them."""
    if name == "moons":
        X, y = make_moons(10_000, noise=0.2, random_state=420)
        share, seed = 0.2, 420
    else:
        X, y = read(name, data)
        share, seed = (0.3, 40) if name == "wine" else (0.2, 42)
    X, Xt, y, yt = train_test_split(X.astype(np.float64), y, test_size=share, stratify=y, random_state=seed)
    return X, y, Xt, yt


def searched(name: str, data: Path | None, trials: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A line for the table, and the front."""
    X, y, Xt, yt = split(name, data)
    who, accuracy, lut = SMALL[name]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        study = forestc.explore(
            rows=X, label=y, test=(Xt, yt), train="priced", device=DEVICE, goals="lut,accuracy", trials=trials,
            rungs="synthesis", out=Path(folder) / "study", prove=False,
        )  # fmt: skip
    front = [
        {
            "LUT": trial.figure("lut"), "validation_%": 100 * trial.validation.value,
            "test_%": 100 * trial.test.value, "standard_error": 100 * trial.test.standard_error,
        }
        for trial in study.front
    ]  # fmt: skip
    enough = [design for design in front if design["validation_%"] >= accuracy]
    best = max(study.front, key=lambda trial: trial.validation.value).validation
    equal = [design for design in front if design["validation_%"] >= 100 * (best.value - best.standard_error)]
    chosen = min(enough or equal, key=lambda design: design["LUT"])
    line = {"data": name, **chosen, "of": who, "its_test_%": accuracy, "its_LUT": lut}
    return line | {"ratio": chosen["LUT"] / lut, "s": time.perf_counter() - start}, front


def of_mnist(data: Path) -> Iterator[dict[str, Any]]:
    """A line for each size, beside the published design of the nearest test accuracy."""
    X, y, Xt, yt = pixels(data)
    for size, copies in SIZES:
        start = time.perf_counter()
        options = {**TABLES, **size}
        forest = trained(*shifted(X, y, copies), options)
        with tempfile.TemporaryDirectory() as folder:
            forestc.compile(forest, X[:5000], folder + "/out", targets=["verilog"], passes=PASSES)
            lut = forestc.synth(folder + "/out", device=DEVICE)["lut"]
            design = forestc.open_design(folder + "/out").forest
        test = right(design, Xt, yt) / 100
        beside = min(MNIST, key=lambda neighbor: abs(neighbor[1] - 100 * test))
        name = f"mnist, {size['trees']} trees a digit" + ", shifted copies" * (copies > 0)
        yield {
            "data": name, "LUT": lut, "validation_%": None, "test_%": 100 * test,
            "standard_error": 100 * float(np.sqrt(test * (1 - test) / len(yt))),
            "of": beside[0], "its_test_%": beside[1], "its_LUT": beside[2], "ratio": lut / beside[2],
            "s": time.perf_counter() - start,
        }  # fmt: skip


def shifted(X: NDArray[Any], y: NDArray[Any], copies: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images of 28 x 28 pixels with their labels, and copies of each, shifted by one pixel in a random direction."""
    random = np.random.default_rng(0)
    images, parts = X.reshape(-1, 28, 28), [X]
    for _ in range(copies):
        way = random.integers(0, 4, len(X))
        moved = np.zeros_like(images)
        moved[way == 0, 1:] = images[way == 0, :-1]
        moved[way == 1, :-1] = images[way == 1, 1:]
        moved[way == 2, :, 1:] = images[way == 2, :, :-1]
        moved[way == 3, :, :-1] = images[way == 3, :, 1:]
        parts.append(moved.reshape(X.shape))
    return np.concatenate(parts), np.concatenate([y] * (copies + 1))


def trained(X: NDArray[Any], y: NDArray[Any], options: dict[str, Any]) -> forestc.Forest:
    names = tuple(f"p{index}" for index in range(X.shape[1]))
    forest: forestc.Forest = TRAINERS["priced"].fit(Task(X.astype(np.float64), y, names, 10, prices("lut6")), options)
    return forest


if __name__ == "__main__":
    main()
