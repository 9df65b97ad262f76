"""
Compile two trained models and check what was written
=====================================================

The demo compiles the two models that come with forestc to Verilog and C, and checks the files::

    python examples/demo.py [FOLDER]

The models are XGBoost on the breast cancer data and a random forest on the handwritten digits.
Input formats and leaf bits are chosen on the training rows; the accuracy is that of the test rows.
"""

# sphinx_gallery_thumbnail_path = "images/cards/demo.svg"

import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

import forestc

MODELS = Path(__file__).parent / "models"


def split_breast_cancer() -> Any:
    """Returns train and test rows (data frames with the features' names) and labels."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def split_digits() -> Any:
    """Returns train and test rows (arrays: 64 pixels of 0 to 16) and labels."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def compile_and_check(model: Path, split: Any, out: Path, latency: int) -> dict[str, str]:
    """Compiles and checks a model; returns its column of the demo's table."""
    train, test, train_labels, test_labels = split
    done = forestc.compile(model, train, out, label=train_labels, latency=latency, outputs="both")
    result = forestc.check(done.design, test, label=test_labels, random_rows=5000)
    figures = done.figures
    header = done.design.path("c")
    differences = {name: engine.differences for name, engine in result.engines.items()}
    return {
        "accuracy of the model": f"{100 * (result.agreement.model or 0):.2f} %",
        "accuracy of the hardware": f"{100 * (result.agreement.compiled or 0):.2f} %",
        "trees": f"{figures['trees']}",
        "rows compared": f"{sum(result.vectors.values()):,}",
        **{f"differences, {name}": f"{n}" for name, n in differences.items() if n is not None},
        "comparators before sharing": f"{figures['conditions']:,}",
        "comparators after sharing": f"{figures['distinct_conditions']:,}",
        "latency": f"{done.design.netlist.latency} cycles",
        "C header": f"{header.stat().st_size:,} bytes",
        "written to": str(out),
        "ok": "yes" if result.ok else "NO",
    }


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    start = time.perf_counter()
    jobs = {
        "breast_cancer, XGBoost": ("breast_cancer.json", split_breast_cancer(), "breast_cancer", 3),
        "digits, random forest": ("digits.skops", split_digits(), "digits", 4),
    }
    console = Console()
    columns = {}
    for title, (model, split, folder, latency) in jobs.items():
        console.print(f"compiling and checking {title} ...")
        columns[title] = compile_and_check(MODELS / model, split, out / folder, latency)
    head = "forestc: what was compiled, and whether it says what the model says"
    table = Table(title=head, title_justify="left")
    table.add_column("")
    for title in columns:
        table.add_column(title, justify="right")
    for row in next(iter(columns.values())):
        table.add_row(row, *(column[row] for column in columns.values()))
    console.print(table)
    console.print(f"{time.perf_counter() - start:.0f} s")
    if any(column["ok"] != "yes" for column in columns.values()):
        sys.exit(3)


if __name__ == "__main__":
    main()
