"""How much of the hypervolume of random search `forestc explore` reaches in as many trials, and its smallest designs.

    python benchmarks/exploration.py --data DIR --json FILE

For each data set an XGBoost model (15 rounds of depth 4, or 2 of many classes) trained on half of the rows, at most
1,200. Its passes are searched for LUTs on ecp5-25k and accuracy, by estimate. A quarter of the rows scores trials, a
quarter tests the front. `random`: options drawn evenly from the same space, without explore's first trials.
Hypervolume: of log2(1 + cost) and accuracy, against the cost of -O0 and the share of the largest class.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
import xgboost
from data import read
from sklearn.model_selection import train_test_split
from tools import arguments, kept, save, show

import forestc
from forestc.commands.explore import COMMANDS
from forestc.exploration.asked import Asked
from forestc.exploration.candidate import Bench, Job
from forestc.exploration.goals import goals_of
from forestc.exploration.material import material_of
from forestc.exploration.study import Trial
from forestc.forest.text import print_forest
from forestc.parameters import Choice, Parameter, Whole, used

MEASURES = ("forestc/exploration", "forestc/passes", "forestc/algorithms", "forestc/costs", "forestc/lowering")
TITLE = "explore beside random search, by estimate"
SETS = ("breast_cancer", "digits", "magic04", "spambase", "dry_bean", "unsw_nb15_82k")
DEVICE, MOST_ROWS = "ecp5-25k", 2400


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data", "only")
    parser.add_argument("--trials", type=int, default=200, metavar="N")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="searches of each kind; the median counts")
    options = parser.parse_args()
    if options.small:
        options.only, options.trials, options.seeds = "breast_cancer", 5, 1
    rows = kept(options)
    names = options.only.split(",") if options.only else SETS[: None if options.data else 2]
    for name in names:
        if name not in {row["data"] for row in rows}:
            rows.append(of_data(name, options))
            save(TITLE, rows, options)
    show(TITLE, rows, options)


def of_data(name: str, options: Any) -> dict[str, Any]:
    X, y = read(name, options.data)
    X, y = np.asarray(X, np.float32), np.unique(y, return_inverse=True)[1]
    some = np.random.default_rng(0).permutation(len(X))[: 100 if options.small else MOST_ROWS]
    fit, rest = train_test_split(some, test_size=0.5, random_state=0, stratify=y[some])
    scored, tested = train_test_split(rest, test_size=0.5, random_state=0, stratify=y[rest])
    rounds = 15 if y.max() < 3 else 2
    model = xgboost.XGBClassifier(n_estimators=rounds, max_depth=4, random_state=0, n_jobs=1).fit(X[fit], y[fit])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.forest"
        path.write_text(print_forest(forestc.load(model)))
        given: dict[str, Any] = {"label": y[fit], "validation": (X[scored], y[scored]), "device": DEVICE}
        asked = Asked(path, X[fit], goals=goals_of(None, DEVICE, None), **given)
        material = material_of(asked, Path(folder) / "other")
        bench = Bench(material, COMMANDS)
        random = [
            [tried(bench, chosen) for chosen in drawn(material.space, seed, options.trials)]
            for seed in range(options.seeds)
        ]
        studies = [
            forestc.explore(
                path, X[fit], Path(folder) / f"study-{seed}", test=(X[tested], y[tested]), trials=options.trials,
                seed=seed, rungs="estimate", prove=False, **given,
            )
            for seed in range(options.seeds)
        ]  # fmt: skip
    first = studies[0]
    corner, least = first.trials[0].figure("lut") or 1.0, float(np.bincount(y[scored]).max() / len(scored))
    volumes = [
        float(np.median([hypervolume(trials, corner, least) for trials in runs]))
        for runs in ([list(study.trials)[: options.trials] for study in studies], random)
    ]
    best = max(trial.figure("accuracy") or 0.0 for trial in first.complete)
    near = [trial for trial in first.front if (trial.figure("accuracy") or 0.0) >= best - 0.01]
    small = min(near, key=lambda trial: trial.figure("lut") or 0.0)
    return {
        "data": name, "trials": options.trials, "seeds": options.seeds, "explore": round(volumes[0], 3),
        "random": round(volumes[1], 3), "within 1 %: LUTs": small.figure("lut"),
        "its test accuracy": small.test and round(small.test.value, 4), "-O2: LUTs": first.trials[2].figure("lut"),
    }  # fmt: skip


def drawn(space: Sequence[Parameter], seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Random options of the space."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        chosen: dict[str, Any] = {}
        for parameter in space:
            if not used(parameter, chosen):
                continue
            if isinstance(parameter, Choice):
                chosen[parameter.name] = parameter.values[int(random.integers(len(parameter.values)))]
                continue
            low, high = (math.log(end) if parameter.log else end for end in (parameter.low, parameter.high))
            value = float(random.uniform(low, high))
            value = math.exp(value) if parameter.log else value
            chosen[parameter.name] = round(value) if isinstance(parameter, Whole) else value
        yield chosen


def tried(bench: Bench, options: dict[str, Any]) -> Trial:
    trial = Trial(0, "running", options)
    try:
        return bench.run(Job("estimate", trial))
    except forestc.ForestcError:  # these options can't be compiled
        return replace(trial, state="failed")


def hypervolume(trials: Sequence[Trial], corner: float, least: float) -> float:
    """The hypervolume of log2(1 + LUTs) below the corner's, and accuracy above the least."""
    points = [(t.figures["estimate"]["lut"], t.figure("accuracy") or 0.0) for t in trials if t.state == "complete"]
    area, best, edge = 0.0, least, math.log2(1 + corner)
    for cost, accuracy in sorted(points):
        if accuracy > best and cost <= corner:
            area += (edge - math.log2(1 + cost)) * (accuracy - best)
            best = accuracy
    return area


if __name__ == "__main__":
    main()
