"""Keeps the rows of a result, each as old as what it depends on.

The `origin` of a row says at which commit and on which date it was measured, by which tools, and in how many seconds.
It holds two hashes: of the inputs (model, rows, options, the script), and of what the code made for the row, such as
its Verilog. A run makes it again. If the hashes and the tools are the same, the row stays, with its commit and date;
else it is measured.

Where the making is what is measured, as with speeds and searches, the second hash is that of the sources: forestc,
hw_sim, hdl_templates and the benchmark's own script. A row of these stays if none of them has changed.

A row that a run does not come to (--only, a missing folder or tool) stays as it is.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tools import ROOT, show

from forestc.toolchain.compilers import version
from forestc.toolchain.packaged import find_command, version_of

PACKAGES = ("forestc", "hw_sim", "hdl_templates")
Row = dict[str, Any]
# Given a case, yields first the inputs and what was made of them (None: nothing without measuring), then the row or the
# rows of the case. The ledger asks for the second only if it must.
Measure = Callable[[Mapping[str, Any]], Iterator[Any]]


class Ledger:
    """The rows of a result, in parts.

    tools: programs and packages that measure, or folders of this repository.
    depends: names of options that change the figures.
    """

    def __init__(self, title: str, options: Any, tools: Sequence[str] = (), depends: Sequence[str] = ()) -> None:
        self.title, self.options = title, options
        self._about = {
            "tools": {name: tool_version(name) for name in tools} | {"machine": _machine()},
            "given": [Path(sys.argv[0]), *(getattr(options, name) for name in (*depends, "small"))],
            "sources": sources(),
            **_commit(),
        }
        exists = options.json is not None and options.json.exists()
        self._before: Mapping[str, Any] = json.loads(options.json.read_text(encoding="utf-8")) if exists else {}
        self.parts = {"rows": []} | {name: [*rows] for name, rows in self._before.items() if has_origins(rows)}
        self._seen: dict[str, list[Row]] = {}
        self._new, self._start = 0, time.perf_counter()

    @property
    def rows(self) -> list[Row]:
        return self.parts["rows"]

    def fill(self, cases: Iterable[Mapping[str, Any]], measure: Measure, part: str = "rows", pool: Any = None) -> None:
        """Makes each case, and measures those that are not as they were. A case holds the first columns of its row or
        rows; `pool` runs cases at the same time."""
        cases = list(cases)
        tasks = [(measure, case, [row["origin"] for row in self._of(case, part)], self._about) for case in cases]
        for case, made in zip(cases, (pool.map if pool else map)(_measured, tasks), strict=True):
            if made is None:
                self.keep(case, part)
                continue
            rows = [{**case, **row, "origin": made[1]} for row in made[0]]
            self._new += len(rows)
            self._put(case, rows, part)
            for row in rows:
                print(without_origin(row), flush=True)
            self._save()

    def keep(self, case: Mapping[str, Any], part: str = "rows") -> None:
        """Leaves the rows of a case as they are."""
        self._seen.setdefault(part, []).extend(self._of(case, part))

    def quote(self, case: Mapping[str, Any], row: Mapping[str, Any], source: str, part: str = "rows") -> None:
        """Adds a row that others measured. source: where it stands."""
        self._put(case, [{**case, **row, "origin": {"source": source}}], part)

    def show(self, **more: Any) -> None:
        """Prints the parts and, with --json, writes them. Ends the program if there is no row.

        more: figures and tables that follow from the rows.
        """
        if self._whole():
            self.parts = {name: self._seen.get(name, rows) for name, rows in self.parts.items()}
        bare = {name: [without_origin(row) for row in rows] for name, rows in self.parts.items()}
        show(self.title, bare.pop("rows", []), **bare, **more)
        self._save(more)
        kept, seconds = sum(map(len, self.parts.values())) - self._new, time.perf_counter() - self._start
        print(f"{self.title}: {seconds:.0f} s, {self._new} rows measured, {kept} as they were", file=sys.stderr)

    def _save(self, more: Mapping[str, Any] | None = None) -> None:
        """Writes the parts, with --json. more: None while it is not known, so that what there was stays."""
        if self.options.json is None:
            return
        command = _command() if self._whole() else self._before.get("command", _command())
        head = {"title": self.title, "command": command, "measures": self.options.measures, "golden": {}}
        if more is None or any(rows != self._seen.get(name) for name, rows in self.parts.items()):
            head["golden"] = self._before.get("golden", {})  # Not all rows are of this run.
        elif not self.options.small:
            from golden import digests  # This module compiles designs and imports much, so it is loaded late.

            head["golden"] = digests(self.options.measures)
        if more is None:
            more = {name: value for name, value in self._before.items() if name not in head and name not in self.parts}
        self.options.json.write_text(as_text({**head, **self.parts, **more}), encoding="utf-8")

    def _whole(self) -> bool:
        """Returns whether the run comes to all cases."""
        given = vars(self.options)
        return not given.get("only") and all(given.get(name, True) for name in ("data", "peers"))

    def _of(self, case: Mapping[str, Any], part: str) -> list[Row]:
        rows = self.parts.setdefault(part, [])
        return [row for row in rows if all(row.get(name) == value for name, value in case.items())]

    def _put(self, case: Mapping[str, Any], made: Sequence[Row], part: str) -> None:
        own = self._of(case, part)
        rows = [row for row in self.parts[part] if row not in own]
        at = self.parts[part].index(own[0]) if own else len(rows)
        self.parts[part] = [*rows[:at], *made, *rows[at:]]
        self._seen.setdefault(part, []).extend(made)


def _measured(task: tuple[Measure, Mapping[str, Any], list[Row], Mapping[str, Any]]) -> tuple[list[Row], Row] | None:
    """Makes a case; returns its rows with their origin, or None if they are as they were (`before`: their origins)."""
    measure, case, before, about = task
    start, steps = time.perf_counter(), measure(case)
    inputs, made = next(steps)
    origin = {
        "inputs": digest(about["given"], sorted(case.items()), inputs),
        "tools": about["tools"],
        "made": about["sources"] if made is None else digest(made),
    }
    if before and all(one.get(name) == value for one in before for name, value in origin.items()):
        steps.close()  # type: ignore[attr-defined]
        return None
    rows = next(steps)
    steps.close()  # type: ignore[attr-defined]
    rows = rows if isinstance(rows, list) else [rows]
    seconds = round((time.perf_counter() - start) / len(rows), 2)
    return rows, {"commit": about["commit"], "date": about["date"], **origin, "s": seconds}


def digest(*parts: Any) -> str:
    """Hashes files and folders (with the names in them), bytes, arrays, and other values by their `repr`."""
    total = hashlib.sha256()
    for content in _contents(parts):
        total.update(b"%d:" % len(content) + content)
    return total.hexdigest()[:16]


def _contents(part: Any) -> Iterator[bytes]:
    if isinstance(part, Path):
        for path in sorted(part.rglob("*")) if part.is_dir() else [part]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(part)).encode()
                yield path.read_bytes()
    elif isinstance(part, (list, tuple)):
        for one in part:
            yield from _contents(one)
    elif isinstance(part, np.ndarray) and part.dtype != object:
        yield f"{part.dtype} {part.shape}".encode()
        yield part.tobytes()
    else:
        yield part if isinstance(part, bytes) else repr(part).encode()


def sources() -> str:
    """Hashes the code that a row may depend on: the packages, the script that runs, and its folder of papers/."""
    script = Path(sys.argv[0])
    return digest(*(ROOT / name for name in PACKAGES), script, ROOT / "benchmarks" / "papers" / script.stem)


@cache
def tool_version(name: str) -> str:
    """Returns the version of a package, of a program (pip's first), or of a folder of this repository (its hash)."""
    if (ROOT / name).is_dir():
        return digest(ROOT / name)
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        command = find_command(name)
    if command is None:
        return "none"
    return version_of(command, ROOT) if command[0] == sys.executable else version(name)


def has_origins(rows: Any) -> bool:
    """Returns whether a value of a result is a part: rows with their origins."""
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "origin" in rows[0]


def without_origin(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if name != "origin"}


def as_text(result: Mapping[str, Any]) -> str:
    """Formats a result as JSON with a line for each row."""
    lines = []
    for name, value in result.items():
        of_rows = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
        text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]" if of_rows else json.dumps(value)
        lines.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def _command() -> str:
    """Returns the command of this run without --json and --only. Paths become DIR or FILE."""
    words, given = [f"benchmarks/{Path(sys.argv[0]).name}"], iter(sys.argv[1:])
    for word in given:
        if word in ("--json", "--only"):
            next(given, None)
        elif not word.startswith(("--json=", "--only=")):
            path = Path(word)
            is_path = path.exists() or path.is_absolute()
            words.append(("DIR" if path.is_dir() else "FILE") if is_path else word)
    return shlex.join(words)


def _commit() -> dict[str, str]:
    """Returns the commit, with `-dirty` at its end if the code has uncommitted changes, and the date."""
    git = ["git", "-C", str(ROOT)]
    done = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = [*git, "status", "--porcelain", "--", *PACKAGES, "benchmarks"]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=False).stdout
    commit = "unknown" if done.returncode else done.stdout.strip() + ("-dirty" if dirty else "")
    return {"commit": commit, "date": datetime.datetime.now(datetime.UTC).date().isoformat()}
