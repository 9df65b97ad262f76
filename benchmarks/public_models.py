"""Reads the model files of a folder, and says what forestc makes of each: exact on how many rows, or refused and why.

    python benchmarks/public_models.py --models DIR --json docs/benchmarks/public_models.json

The files are others', and stay out of the repository. A README.md in the folder says where each comes from, in a table
with the columns `file` and `repository and path`. A folder of files alone, such as YDF's models, counts as one file.
Rows lie on the model's thresholds and one step beside them. The library's scores are compared with forestc's bit for
bit; for YDF the leaves that rows reach, for TMVA the scores of a plain reading in the tests, and for conifer those of
its emulator, which tests/conifer_emulator.py builds.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from ledger import Case, Ledger, Steps
from tools import arguments

import forestc
from forestc.errors import ForestcError, on_command_line
from forestc.forest.ir import Forest
from forestc.forest.text import print_forest
from forestc.frontends.kinds import kind_of
from forestc.frontends.shared.content import Content

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import conifer_emulator
from contract.kind import Trained, hard_rows
from contract.kinds import FILES
from contract.kinds_tmva import answers


def of_lightgbm(path: Path, forest: Forest, rows: np.ndarray) -> np.ndarray:
    import lightgbm

    return lightgbm.Booster(model_file=path).predict(rows, raw_score=True)


def of_xgboost(path: Path, forest: Forest, rows: np.ndarray) -> np.ndarray:
    import xgboost

    return xgboost.Booster(model_file=path).predict(xgboost.DMatrix(rows), output_margin=True)


def of_catboost(path: Path, forest: Forest, rows: np.ndarray) -> np.ndarray:
    import catboost

    return catboost.CatBoost().load_model(str(path), "json").predict(rows, prediction_type="RawFormulaVal")


def of_conifer(path: Path, forest: Forest, rows: np.ndarray) -> np.ndarray:
    """Returns the scores of conifer's emulator, which is built for the model's types."""
    types = dict(re.findall(r"(input|threshold|score) (ap_\w+<[^>]*>)", " ".join(forest.provenance.notes)))
    with tempfile.TemporaryDirectory() as folder:
        program = conifer_emulator.build(Path(folder), types)
        return conifer_emulator.scores(program, json.loads(path.read_text()), rows)


def of_ydf(path: Path, forest: Forest, rows: np.ndarray) -> np.ndarray:
    """Returns the leaves that rows reach, as YDF's scores are not shown."""
    import ydf

    model, table = ydf.load_model(str(path)), {}
    for feature in model.input_features():
        categorical = feature.semantic == ydf.Semantic.CATEGORICAL
        table[feature.name] = np.full(len(rows), "") if categorical else np.zeros(len(rows), dtype=np.float32)
    for feature in forest.features:
        column = rows[:, feature.column]
        texts = dict(enumerate(feature.labels))
        named = ["" if np.isnan(code) else texts.get(code, "never seen") for code in column]
        table[feature.name] = np.array(named) if feature.labels else np.float32(column)
    if model.task() != ydf.Task.ANOMALY_DETECTION:
        classes = model.task() == ydf.Task.CLASSIFICATION
        table[model.label()] = np.full(len(rows), forest.classes[0] if classes else 0.0)
    return model.predict_leaves(table)


# Maps a source of models to the type of its rows, what is compared, and a function that returns it.
LIBRARIES: dict[str, tuple[type, str, Callable[[Path, Forest, np.ndarray], np.ndarray]]] = {
    "lightgbm": (np.float64, "scores", of_lightgbm),
    "xgboost": (np.float32, "scores", of_xgboost),
    "catboost": (np.float32, "scores", of_catboost),
    "conifer": (np.float64, "values", of_conifer),
    "tmva": (np.float32, "scores", lambda path, forest, rows: answers(path.read_text(), rows)[0]),
    "ydf": (np.float32, "leaves", of_ydf),
}


def origins(folder: Path) -> dict[str, str]:
    """Returns the second column of README.md's table by the patterns in the first."""
    page = folder / "README.md"
    lines = [line.split("|") for line in page.read_text().splitlines()] if page.exists() else []
    cells = [(line[1].strip(), line[2].replace("`", "").strip()) for line in lines if len(line) > 3]
    return {pattern: origin for names, origin in cells for pattern in names.split(", ")}


def models(folder: Path) -> Iterator[Path]:
    """Yields the model files, and folders without folders in them."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            if path.name != "README.md":
                yield path
        elif any(part.is_dir() for part in path.iterdir()):
            yield from models(path)
        else:
            yield path


def measured(folder: Path, count: int, case: Case) -> Steps:
    path = folder / case["file"]
    files = [path] if path.is_file() else sorted(part for part in path.iterdir() if part.is_file())
    start = time.perf_counter()
    with on_command_line():  # Remedies name flags.
        try:
            forest = forestc.load(path)
            made = print_forest(forest)
        except ForestcError as error:
            forest, made = None, re.sub(r"\s+", " ", f"{error.what}; {error.do}")
    seconds = time.perf_counter() - start
    yield [path], made
    yield {
        "bytes": sum(part.stat().st_size for part in files),
        "sha256": hashlib.sha256(b"".join(part.read_bytes() for part in files)).hexdigest()[:16],
        "kind": kind_of(Content(path.read_bytes(), str(path))).name if path.is_file() else "a folder",
        "forestc": f"refuses it: {made}" if forest is None else compared(forest, path, count),
        "s to read": round(seconds, 2),
    }


def compared(forest: Forest, path: Path, count: int) -> str:
    """Returns what a comparison tells, on rows on and beside the thresholds."""
    source, trees = forest.provenance.source, len(forest.trees)
    if source not in LIBRARIES or (source == "conifer" and isinstance(conifer_emulator.includes(), str)):
        return f"reads it: {trees} trees; not compared"
    dtype, field, of_library = LIBRARIES[source]
    X = np.random.default_rng(0).normal(0, 4, size=(count, forest.columns))
    rows = hard_rows(forest, Trained(path, X, lambda rows: rows, dtype=dtype, infinite=source != "conifer"), count)
    mine, theirs = getattr(forestc.evaluate(forest, rows), field), np.asarray(of_library(path, forest, rows))
    theirs = theirs.reshape(count, -1)
    wrong = int((mine.astype(theirs.dtype) != theirs).any(axis=1).sum())
    return f"exact on {count:,} rows ({field})" if not wrong else f"{field} differ on {wrong:,} of {count:,} rows"


def main() -> None:
    parser = arguments(__doc__, "json", "only")
    parser.add_argument("--models", type=Path, metavar="DIR", help="the folder of models")
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.models or Path(made)
        if options.small:
            (folder / "refused.xml").write_text("<?xml version='1.0'?><a/>")
            (folder / "weights.xml").write_bytes(FILES["tmva"]())
            (folder / "README.md").write_text("| file | from |\n|---|---|\n| *.xml | the tests |\n")
        told = origins(folder)
        ledger = Ledger(
            "what forestc says of public models", options, ("lightgbm", "xgboost", "catboost", "ydf"), ("rows",)
        )
        cases = []
        for path in models(folder):
            name = path.relative_to(folder).as_posix()
            origin = next((told[pattern] for pattern in told if fnmatch(name, pattern)), "")
            if not options.only or name in options.only.split(","):
                cases.append({"file": name, "repository and path": origin})
        ledger.fill(cases, measured, folder, 500 if options.small else options.rows)
        ledger.show()


if __name__ == "__main__":
    main()
