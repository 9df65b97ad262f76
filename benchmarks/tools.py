"""Holds shared functions of the benchmarks: arguments, tables, JSON with its origin, peak memory, power laws."""

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

ROOT = Path(__file__).parents[1]


def arguments(description: str | None, measures: Sequence[str], *needs: str) -> argparse.ArgumentParser:
    """Makes a parser with --json and --small.

    measures: folders of this repository that the figures depend on.
    needs: further options out of data, peers, only and cache; a `!` at the end makes an option required.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(measures=list(measures))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--small", action="store_true", help="run the smallest input, as the tests do")
    known_options: dict[str, dict[str, Any]] = {
        "data": {"type": Path, "metavar": "DIR", "help": "a folder of NAME.csv.gz, the last column is the label"},
        "peers": {"type": Path, "metavar": "DIR", "help": "a folder of NAME.json (XGBoost) with NAME.npz"},
        "only": {"default": "", "metavar": "NAMES", "help": "some of the cases, with commas between"},
        "cache": {"type": Path, "metavar": "FILE", "help": "keep figures there, and read them again"},
    }
    for name in needs:
        own = name.rstrip("!")
        parser.add_argument(f"--{own}", required=name.endswith("!"), **known_options[own])
    return parser


def show(title: str, rows: Sequence[Mapping[str, Any]], options: Any = None, **more: Any) -> None:
    """Prints the rows as a table and, with --json, writes them. Ends the program if there is no row. more: further
    figures and tables."""
    if not rows:
        raise SystemExit("nothing was measured: no case has this name")
    _print(title, rows)
    for key, value in more.items():
        name = key.replace("_", " ")
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            _print(name, value)
        else:
            print(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    if options is not None and options.json is not None:
        save(title, rows, options, options.json, **more)
        _part(options).unlink(missing_ok=True)


def save(title: str, rows: Sequence[Mapping[str, Any]], options: Any, path: Path | None = None, **more: Any) -> None:
    """Writes the rows as JSON to a path or, without one, to FILE.part (of --json FILE), from which the next run goes
    on. Does nothing without --json."""
    if options.json is not None:
        text = json.dumps({"title": title, **_origin(options), "rows": rows, **more}, indent=1)
        (path or _part(options)).write_text(text + "\n")


def earlier_rows(options: Any, key: str = "rows") -> list[dict[str, Any]]:
    """Returns the rows that an earlier run wrote to FILE.part or FILE. Returns none if the script or a measured folder
    has changed since."""
    script = f"benchmarks/{Path(sys.argv[0]).name}"
    for path in (_part(options), options.json) if options.json is not None else ():
        if path.exists():
            before = json.loads(path.read_text())
            same = ["git", "-C", str(ROOT), "diff", "--quiet", before["commit"], "--", *options.measures, script]
            return [] if subprocess.run(same, capture_output=True, check=False).returncode else before.get(key, [])
    return []


def _part(options: Any) -> Path:
    return Path(f"{options.json}.part")


def _print(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title, title_justify="left")
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        values = [row.get(name, "") for name in names]
        table.add_row(
            *(f"{v:,.3g}" if isinstance(v, float) else f"{v:,}" if type(v) is int else str(v) for v in values)
        )
    Console(width=max(190, Console().width)).print(table)


def _origin(options: Any) -> dict[str, Any]:
    """Returns the origin of a result: command, commit, date, machine and golden digests. Paths in the command become
    DIR or FILE; --json is left out."""
    words, given = [f"benchmarks/{Path(sys.argv[0]).name}"], iter(sys.argv[1:])
    for word in given:
        if word == "--json":
            next(given, None)
        elif not word.startswith("--json="):
            path = Path(word)
            is_path = path.exists() or path.is_absolute()
            words.append(("DIR" if path.is_dir() else "FILE") if is_path else word)
    from golden import digests  # This module compiles designs and imports much, so it is loaded late.

    return {
        "command": shlex.join(words),
        "commit": _commit(options.measures),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "measures": list(options.measures),
        "golden": {} if options.small else digests(options.measures),
    }


def _commit(measures: Sequence[str]) -> str:
    """Returns the hash of the commit, with `-dirty` at its end if a measured folder has uncommitted changes."""
    git = ["git", "-C", str(ROOT)]
    done = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if done.returncode:
        return "unknown"
    changed = [*git, "status", "--porcelain", "--", *measures]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=True).stdout
    return done.stdout.strip() + ("-dirty" if dirty else "")


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
