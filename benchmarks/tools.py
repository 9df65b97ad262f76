"""Shared by the benchmarks: tables and JSON, peak memory, the exponent of a power law."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with --json FILE."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    return parser


def show(title: str, rows: Sequence[Mapping[str, Any]], path: Path | None = None, **more: Any) -> None:
    """Prints the rows as a table and, if a path is given, writes them as JSON. more: further figures and tables."""
    _print(title, rows)
    for key, value in more.items():
        name = key.replace("_", " ")
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            _print(name, value)
        else:
            print(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    save(title, rows, path, **more)


def save(title: str, rows: Sequence[Mapping[str, Any]], path: Path | None, **more: Any) -> None:
    """Writes the rows and further figures as JSON, if a path is given."""
    if path is not None:
        path.write_text(json.dumps({"title": title, **_how(), "rows": rows, **more}, indent=1) + "\n")


def _print(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(
            *(f"{v:,.3g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v) for v in row.values())
        )
    Console(width=max(190, Console().width)).print(table)


def _how() -> dict[str, str]:
    """What was run, when, on what: --json itself left out, and of files their names alone."""
    words, given = [f"benchmarks/{Path(sys.argv[0]).name}"], iter(sys.argv[1:])
    for word in given:
        if word == "--json":
            next(given, None)
        elif not word.startswith("--json="):
            words.append(Path(word).name if Path(word).is_absolute() else word)
    today = datetime.datetime.now(datetime.UTC).date()
    return {
        "command": shlex.join(words),
        "date": today.isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of the least-squares fit cost = a * size^b."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def peak_memory_mb() -> float:
    """Peak resident memory of this process in MB; elsewhere than on Linux the parent's may be included."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next(int(line[1]) for line in lines if line[0] == "VmHWM:") / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_fresh_process(script: str, *values: Any) -> Any:
    """The JSON that a script prints when run in a separate process, so that its peak memory is not shared."""
    done = subprocess.run([sys.executable, script, *map(str, values)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
