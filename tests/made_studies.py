"""Studies that nobody searched: 200 trials with plausible figures, a few of them with designs that were compiled."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.exploration.study import Goal, Limit, Score, Study, Trial, open_study, write_request, write_trial

GOALS = (Goal("lut", False, "LUTs"), Goal("accuracy", True), Goal("fmax_mhz", True, "MHz"))


def made_study(folder: Path, trials: int = 200, compiled: int = 0, seed: int = 0, goals: int = 2) -> Study:
    """A study in a folder. compiled: how many of the last designs of the front are there."""
    rng = np.random.default_rng(seed)
    asked = {
        "command": "forestc explore --train xgboost --rows train.csv --label y --device ecp5-25k -o study",
        "source": "xgboost", "rows": "train.csv", "validation": "valid.csv", "test": "test.csv", "seed": seed,
        "device": "ecp5-25k", "versions": {"forestc": "0.1.0", "optuna": "5.0.0"},
    }  # fmt: skip
    write_request(folder, GOALS[:goals], (Limit("lut", False, 4000.0), Limit("fmax_mhz", True, 60.0)), asked)
    for number in range(trials):
        write_trial(folder, _trial(rng, number))
    study = open_study(folder)
    for trial in {trial.number: trial for trial in (*study.front, *study.trials[1:2])}.values():
        if trial.state != "complete":
            continue
        tested = Score(trial.validation.value - 0.01, 0.008, 900)
        write_trial(
            folder,
            Trial(**{**vars(trial), "on_front": trial in study.front, "test": tested, "has_design": compiled > 0}),
        )
    for trial in study.front[len(study.front) - compiled :]:
        _compiled(study.design(trial), trial.options["trees"])
    return open_study(folder)


def _trial(rng, number):
    trees, depth = int(rng.integers(2, 80)), int(rng.integers(2, 8))
    options = {
        "trees": trees,
        "depth": depth,
        "learning_rate": round(float(10 ** rng.uniform(-2, 0)), 4),
        "bins": int(2 ** rng.integers(3, 9)),
        "quantize.input_bits": int(rng.integers(3, 12)),
        "quantize.leaf_bits": int(rng.integers(2, 10)),
        "share-thresholds.prefer": str(rng.choice(["few-bits", "middle", "none"])),
        "latency": int(rng.integers(0, 8)),
        "columns": round(float(rng.uniform(0.3, 1)), 2),
    }
    whole = number < 2  # the levels that only share and narrow, with which searches begin
    if number < 4:
        options["level"] = number
    else:
        options["shrink"] = str(rng.choice(["prune-splits", "prune-trees", "none"]))
        options["tolerance"] = round(float(rng.uniform(0, 0.03)), 4)
    if rng.random() < 0.06:
        reason = ["the booster has no trees; train with another learning rate", "took longer than 60 s"][number % 2]
        return Trial(number, "failed", options, reason=reason, seconds={"train": 1.0})
    lut = trees * 2 ** (0.75 * depth) * (1.0 if whole else 0.55) * rng.uniform(0.7, 1.3) + 20
    right = 0.98 - 0.25 * math.exp(-(trees**0.5) * depth / 6) - 0.04 * max(0, 5 - options["quantize.input_bits"]) / 2
    right = min(0.995, right + rng.normal(0, 0.008))
    fmax = 60 + 45 * options["latency"] / (1 + trees / 60) + rng.normal(0, 6)
    figures = {"estimate": {"lut": round(lut), "fmax_mhz": round(fmax, 1), "latency_cycles": options["latency"]}}
    if number % 7 == 0:
        figures["synthesis"] = {"lut": round(lut * rng.uniform(0.9, 1.15))}
    reason = "lut at most 4,000" if lut > 4000 else ""
    error = math.sqrt(right * (1 - right) / 900)
    return Trial(
        number, "complete", options, figures, {"lut": float(round(lut * 1.04))}, Score(right, error, 900),
        reason=reason, command=f"forestc compile trial{number}.json --rows train.csv --label y -O2 -o DIR",
        seconds={"train": 0.8, "compile": 1.1},
    )  # fmt: skip


def _compiled(folder, trees):
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(min(trees, 8), max_depth=3, random_state=0).fit(X, y)
    forestc.compile(model, X, folder, label=y, targets="verilog,c", latency=2, name=f"trees_{trees}")
