"""Holds shared functions of the benchmarks: arguments, tables, figures of papers, peak memory, power laws."""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]


def arguments(description: str | None, *needs: str) -> argparse.ArgumentParser:
    """Makes a parser with --small.

    needs: further options out of json, data, peers, only and cache; a `!` at the end makes an option required.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="run the smallest input, as the tests do")
    known_options: dict[str, dict[str, Any]] = {
        "json": {"type": Path, "metavar": "FILE", "help": "also write the figures there"},
        "data": {"type": Path, "metavar": "DIR", "help": "a folder of NAME.csv.gz, the last column is the label"},
        "peers": {"type": Path, "metavar": "DIR", "help": "a folder of NAME.json (XGBoost) with NAME.npz"},
        "only": {"default": "", "metavar": "NAMES", "help": "some of the cases, with commas between"},
        "cache": {"type": Path, "metavar": "FILE", "help": "keep figures there, and read them again"},
    }
    for name in needs:
        own = name.rstrip("!")
        parser.add_argument(f"--{own}", required=name.endswith("!"), **known_options[own])
    return parser


def show(title: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    """Prints the rows, and further figures and tables. Ends the program if there is no row."""
    if not rows:
        raise SystemExit("nothing was measured: no case has this name")
    _print(title, rows)
    for key, value in more.items():
        name = key.replace("_", " ")
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            _print(name, value)
        else:
            print(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")


def _print(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title, title_justify="left")
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        values = ["" if row.get(name) is None else row[name] for name in names]
        table.add_row(
            *(f"{v:,.3g}" if isinstance(v, float) else f"{v:,}" if type(v) is int else str(v) for v in values)
        )
    Console(width=max(190, Console().width)).print(table)


def published(paper: str, file: str = "printed") -> dict[tuple[str, str], list[str]]:
    """Returns what a paper prints in papers/PAPER/FILE.csv, by the first two columns."""
    with (ROOT / "benchmarks" / "papers" / paper / f"{file}.csv").open(newline="") as file:
        return {(first, second): figures for first, second, *figures in [*csv.reader(file)][1:]}


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Returns b of the least-squares fit cost = a * size^b."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def peak_memory_mb() -> float:
    """Returns the peak resident memory of this process in MB. On systems other than Linux the parent's may be
    included."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next(int(line[1]) for line in lines if line[0] == "VmHWM:") / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_fresh_process(script: str, *values: Any) -> Any:
    """Runs a script in a separate process, so that its peak memory is its own; returns the JSON that it prints last."""
    done = subprocess.run([sys.executable, script, *map(str, values)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
