"""
Compile a trained model, check it, and compare it with other tools
==================================================================

The demo compiles XGBoost's model of the breast cancer data, which comes with forestc, at two levels::

    python examples/demo.py [FOLDER]

It checks the Verilog and the C, places the logic on an ECP5, and measures the C on a Cortex-M4, if a compiler for it
is found. Beside them it shows the figures of other tools for the same data. ``-O3`` scores its designs on every other
of the rows that did not train the model. The rest are the test rows.
"""

# sphinx_gallery_thumbnail_path = "images/cards/demo.svg"

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

import forestc
from forestc.commands.report import report

MODELS = Path(__file__).parent / "models"
RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks"
LEVELS = (1, 3)
DEVICE, CPU = "ecp5-85k", "cortex-m4"
LUTS, FLIP_FLOPS, MHZ = "LUTs, ECP5", "flip-flops", "MHz, routed"
CYCLES, FLASH, RIGHT = "clock cycles", "bytes, Cortex-M4", "% of test rows right"
PEERS = {
    LUTS: "ECP5_LUT",
    FLIP_FLOPS: "FF",
    CYCLES: "latency",
    MHZ: "MHz",
    FLASH: "flash",
    RIGHT: "test_%",
}  # keys of results


def split_breast_cancer() -> Any:
    """Returns train and test rows (data frames with the features' names) and labels."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def split_digits() -> Any:
    """Returns train and test rows (arrays: 64 pixels of 0 to 16) and labels."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


def figures_at(level: int, out: Path) -> dict[str, str]:
    """Compiles the model at a level, checks and measures the design; returns its column of the demo's table."""
    train, other, train_labels, other_labels = split_breast_cancer()
    held_out, test = ((other[part::2], other_labels[part::2]) for part in (0, 1))
    done = forestc.compile(
        MODELS / "breast_cancer.json", train, out, label=train_labels, level=level, latency=2,
        held_out=held_out if level > 1 else None,
    )  # fmt: skip
    placed = forestc.synth(done.design, DEVICE, try_anyway=True)
    checked = forestc.check(done.design, test[0], label=test[1], random_rows=5000)
    try:
        flash = f"{forestc.measure(done.design, CPU)['flash']:,}"
    except forestc.ForestcError as error:
        flash = error.what
    differences = [engine.differences for engine in checked.engines.values() if engine.differences is not None]
    return {
        LUTS: f"{placed['lut']:,}",
        FLIP_FLOPS: f"{placed['ff']:,}",
        CYCLES: f"{placed['latency_cycles']}",
        MHZ: f"{placed['fmax_mhz']:.1f}",
        FLASH: flash,
        RIGHT: f"{100 * (checked.agreement.compiled or 0):.1f}",
        "and of the model": f"{100 * (checked.agreement.model or 0):.1f}",
        "trees": f"{done.figures['trees']}",
        "comparators": f"{done.figures['distinct_conditions']}",
        "rows, vectors": f"{sum(checked.vectors.values()):,}",
        f"differences in {len(differences)} engines": f"{sum(differences)}" if checked.ok else "NOT OK",
    }


def others() -> dict[str, dict[str, Any]]:
    """Returns the figures of other tools for models of the same data, by tool, from the results in docs/benchmarks."""
    hardware, firmware = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in ("hardware", "firmware")
    )
    columns = {
        row["design"]: row
        for row in hardware["rows"]
        if row["model"] == "bc" and row["latency"] and not row["design"].startswith("-O")
    }
    (code,) = (row for row in firmware["summary"] if (row["model"], row["cpu"]) == ("rf10_bc", "Cortex-M4F"))
    flash, _, tool = code["smallest_peer"].rstrip(")").partition(" (")
    return columns | {tool: {"flash": int(flash.replace(",", ""))}}


def main() -> int:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    start = time.perf_counter()
    console = Console()
    console.print("compiling, checking and placing breast_cancer at -O1 and -O3 ...")
    folders = [out / f"breast_cancer-O{level}" for level in LEVELS]
    ours = dict(zip((f"-O{level}" for level in LEVELS), map(figures_at, LEVELS, folders), strict=True))
    peers = others()
    columns = ours | {
        name: {row: f"{figures[key]:,}" for row, key in PEERS.items() if key in figures}
        for name, figures in peers.items()
    }
    table = Table(title="breast cancer, compiled by forestc and by others", title_justify="left")
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    for row in ours["-O1"]:
        table.add_row(row, *(figures.get(row, "") for figures in columns.values()))
    console.print(table)
    console.print("Others compiled models of their own, of the same data, and counted other test rows.")

    drawn = [
        {"name": name, "lut": figures["xcup_LUT"], "accuracy": figures["test_%"] / 100}
        for name, figures in peers.items()
        if "xcup_LUT" in figures
    ]
    (out / "peers.json").write_text(json.dumps(drawn), encoding="utf-8")
    report(folders[-1] / "curve", out / "report.html", peers=out / "peers.json")
    console.print(f"{time.perf_counter() - start:.0f} s")
    console.print(f"Open {out / 'report.html'}: what -O3 tried, smallest to most accurate, beside the others.")
    return 3 * any("NOT OK" in figures.values() for figures in ours.values())


if __name__ == "__main__":
    sys.exit(main())
