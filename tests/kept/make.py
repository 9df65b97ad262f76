"""Makes the stored files of this folder anew, with the installed forestc; README.md says when."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

import forestc
from forestc.engine.folder import open_engine
from forestc.inputs.model import InputModel
from forestc.inputs.text import text_hash

HERE = Path(__file__).parent
# EARLIEST is the time of all files in an archive, so that the archive depends on their content alone.
EARLIEST = (1980, 1, 1, 0, 0, 0)


def packed(path: Path, folder: Path) -> None:
    """Writes a folder's files as an archive."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.name not in (".lock", ".gitignore"):
                named = zipfile.ZipInfo(str(file.relative_to(folder)), EARLIEST)
                archive.writestr(named, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def answers(folder: Path, X: list[list[float | None]]) -> dict[str, object]:
    """Returns the answers of a compiled folder to rows: scores as integers, and decisions."""
    design = forestc.open_design(folder)
    rows = np.array(X, dtype=float)
    evaluated = forestc.evaluate(design.forest, rows)
    return {
        "rows": X,
        "scores": evaluated.scores.tolist(),
        "decision": evaluated.decision.tolist(),
        "hash": design.manifest["hash"],
        "verdict": (design.last_check() or {}).get("result"),
        "results": [result.command for result in design.results()],
    }


def main() -> None:
    import pandas as pd
    from lightgbm import LGBMClassifier
    from sklearn.datasets import load_diabetes, load_iris
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

    recorded: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        X, y = load_iris(return_X_y=True)
        forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y)
        pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(kind=y).to_csv("iris.csv", index=False)
        forestc.compile(
            forest, "iris.csv", "logic", label="kind", targets="verilog,vhdl,c,hls,amaranth", latency=2,
            stream=forestc.StreamOptions(registers=True, align=8), c_layout="nodes", c_project="all", device="lut6",
            outputs="both", name="flowers", no_synth=True,
        )  # fmt: skip
        forestc.check("logic", "iris.csv", label="kind", engines=["netlist", "c"], prove=True)
        forestc.measure("logic", "cortex-m0plus", "iris.csv", label="kind", compiler="ziglang")
        forestc.synth("logic", device="ice40-hx8k")
        packed(HERE / "logic.zip", Path("logic"))
        recorded["logic"] = answers(Path("logic"), X[::7].tolist())

        X, y = load_diabetes(return_X_y=True)
        codes = np.digitize(X[:, 9], [-0.05, 0.0, 0.05])
        X = np.column_stack([X[:, [2, 8]], np.where(X[:, 3] > 0.05, np.nan, X[:, 3]), codes])
        model = LGBMClassifier(n_estimators=5, max_depth=3, min_child_samples=5, verbose=-1, random_state=0)
        model.fit(X, y > 140, categorical_feature=[3])
        model.booster_.save_model("model.txt")
        forestc.model_inputs("model.txt", X, "inputs.bn", samples=3)
        forestc.compile(
            "model.txt", None, "ranges", targets="c,verilog", ranges={
                "Column_0": (-0.2, 0.2), "Column_1": {"smallest": -0.2, "step": 0.001, "largest": 0.2},
                "Column_2": {"missing": True}, "Column_3": {},
            }, inputs="inputs.bn", cpu="avr", flash=20000, c_values="float",
        )  # fmt: skip
        packed(HERE / "ranges.zip", Path("ranges"))
        (HERE / "inputs.bn").write_bytes(Path("inputs.bn").read_bytes())
        some = [[None if np.isnan(v) else float(v) for v in row] for row in X[::25]]
        recorded["ranges"] = answers(Path("ranges"), some)
        inputs: InputModel = forestc.read_inputs("inputs.bn")
        recorded["inputs"] = {
            "width": inputs.width,
            "hash": text_hash(inputs),
            "drawn": repr(inputs.rows(5, 0).tolist()),
        }

        X, y = load_diabetes(return_X_y=True)
        values = GradientBoostingRegressor(n_estimators=4, max_depth=3, random_state=0).fit(X, y)
        Path("all").mkdir()
        forestc.make_engine(
            "all/engine",
            trees=8,
            nodes=256,
            features=10,
            classes=1,
            walkers=2,
            scores=True,
            load="axi-lite",
            name="walk",
        )
        forestc.compile(values, X, "all/compiled", label=y, targets="engine", engine="all/engine", name="sugar")
        forestc.check("all/compiled", X, label=y, engines=["image"])
        made = forestc.make_image("all/compiled", None, "all/sugar.bin", engine="all/engine")
        packed(HERE / "engine.zip", Path("all"))
        recorded["engine"] = answers(Path("all/compiled"), X[::40].tolist()) | {
            "capacity": asdict(open_engine("all/engine")), "image_hash": made["hash"],
        }  # fmt: skip

        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X[:, :6], y)
        import skops.io

        skops.io.dump(model, "cells.skops")
        pd.DataFrame(X[:, :6], columns=list("abcdef")).assign(kind=y).to_csv("cells.csv", index=False)
        study = forestc.explore(
            "cells.skops", rows="cells.csv", out="study", label="kind", device="ecp5-25k", rungs="estimate", trials=4,
            jobs=1, prove=False,
        )  # fmt: skip
        packed(HERE / "study.zip", Path("study"))
        recorded["study"] = {
            "trials": [trial.row() for trial in study.trials],
            "front": [trial.number for trial in study.front],
            "predictions": {
                str(trial.number): forestc.open_design(study.design(trial)).predict(X[::30, :6]).tolist()
                for trial in study.front
            },
            "rows": X[::30, :6].tolist(),
        }
    (HERE / "answers.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
