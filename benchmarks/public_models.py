"""Reads the model files of a folder, and says what forestc makes of each: exact on how many rows, or refused and why.

    python benchmarks/public_models.py --models DIR --json docs/benchmarks/public_models.json

The files are others', and stay out of the repository. A README.md in the folder says where each comes from, in a table
with the columns `file` and `repository and path`. A folder of files alone, such as YDF's models, counts as one file.
Rows lie on the model's thresholds and one step beside them. The scores of the library, or of a plain reading in the
tests, are compared with forestc's bit for bit.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Case, Ledger, Steps
from tools import arguments

import forestc
from forestc.errors import ForestcError, on_command_line
from forestc.forest.text import print_forest
from forestc.frontends.kinds import kind_of
from forestc.frontends.shared.content import Content

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from contract.kind import Trained, hard_rows
from contract.kinds import FILES
from contract.kinds_tmva import answers


def of_lightgbm(path: Path, rows: np.ndarray) -> np.ndarray:
    import lightgbm

    return lightgbm.Booster(model_file=path).predict(rows, raw_score=True)


def of_xgboost(path: Path, rows: np.ndarray) -> np.ndarray:
    import xgboost

    return xgboost.Booster(model_file=path).predict(xgboost.DMatrix(rows), output_margin=True)


def of_catboost(path: Path, rows: np.ndarray) -> np.ndarray:
    import catboost

    return catboost.CatBoost().load_model(str(path), "json").predict(rows, prediction_type="RawFormulaVal")


# Maps a source of models to the type of its rows, and a function that returns its scores.
LIBRARIES: dict[str, tuple[type, Callable[[Path, np.ndarray], np.ndarray]]] = {
    "lightgbm": (np.float64, of_lightgbm),
    "xgboost": (np.float32, of_xgboost),
    "catboost": (np.float32, of_catboost),
    "tmva": (np.float32, lambda path, rows: answers(path.read_text(), rows)[0]),
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


def compared(forest: Any, path: Path, count: int) -> str:
    """Returns what a comparison of scores tells, on rows on and beside the thresholds."""
    source = forest.provenance.source
    if source not in LIBRARIES:
        return f"reads it: {len(forest.trees)} trees; not compared"
    dtype, scores = LIBRARIES[source]
    X = np.random.default_rng(0).normal(size=(count, forest.columns))
    rows = hard_rows(forest, Trained(path, X, lambda rows: rows, dtype=dtype), count)
    mine, theirs = forestc.evaluate(forest, rows).scores, np.asarray(scores(path, rows)).reshape(count, -1)
    wrong = int((mine.astype(theirs.dtype) != theirs).any(axis=1).sum())
    return f"exact on {count:,} rows" if not wrong else f"differs on {wrong:,} of {count:,} rows"


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
        ledger = Ledger("what forestc says of public models", options, ("lightgbm", "xgboost", "catboost"), ("rows",))
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
