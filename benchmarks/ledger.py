"""Keeps the rows of a result, each as old as what it depends on.

The `origin` of a row says at which commit and on which date it was measured, by which tools, and in how many seconds.
It holds two hashes: of the inputs (model, rows, options, scripts), and of what the code made for the row, such as
its Verilog. A run makes it again. If the hashes and the tools are the same, the row stays, with its commit and date;
else it is measured.

Where the making is what is measured, as with speeds and searches, the second hash is that of the sources: forestc,
hw_sim, hdl_templates and the benchmark's own scripts. A row of these stays if none of them has changed.

A row that a run does not come to (--only, a missing folder or tool) stays as it is. The seal of a result is a hash of
all else in it: by it a figure, a commit or a row that a hand has changed is found.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from tools import ROOT, show

from forestc.toolchain.compilers import version
from forestc.toolchain.packaged import find_command, version_of

PACKAGES = ("forestc", "hw_sim", "hdl_templates")
Row = dict[str, Any]
Case = Mapping[str, Any]
# What measures a case yields first the inputs and what was made of them (None: nothing without measuring), then the row
# or rows of the case, which the ledger asks for only if it must.
Steps = Generator[Any, None, None]


class Ledger:
    """The rows of a result, in parts.

    tools: programs and packages that measure, or files and folders of this repository that do.
    depends: names of options that change the figures.
    """

    def __init__(self, title: str, options: Any, tools: Sequence[str] = (), depends: Sequence[str] = ()) -> None:
        self.title, self.options = title, options
        self._about = {
            "tools": {name: tool_version(name) for name in tools} | {"machine": _machine()},
            "given": [scripts(), *(getattr(options, name) for name in (*depends, "small"))],
            "sources": sources(),
            "commit": _commit(),
        }
        exists = options.json is not None and options.json.exists()
        self._before: Mapping[str, Any] = json.loads(options.json.read_text(encoding="utf-8")) if exists else {}
        self.parts = {"rows": []} | {name: [*rows] for name, rows in self._before.items() if has_origins(rows)}
        self._seen: dict[str, list[Row]] = {}
        self._new, self._start = 0, time.perf_counter()

    @property
    def rows(self) -> list[Row]:
        return self.parts["rows"]

    def fill(
        self, cases: Iterable[Case], measure: Callable[..., Steps], *given: Any, part: str = "rows", pool: Any = None
    ) -> None:
        """Makes each case by `measure(*given, case)`, and measures those that are not as they were. A case holds the
        first columns of its row or rows; `pool` runs cases at the same time."""
        cases = list(cases)
        one = partial(_measured, partial(measure, *given), self._about)
        earlier = [self._of(case, part) for case in cases]
        for case, rows in zip(cases, (pool.map if pool else map)(one, cases, earlier), strict=True):
            if rows is None:
                self.keep(case, part)
                continue
            self._new += len(rows)
            self._put(case, rows, part)
            print(*map(without_origin, rows), sep="\n", flush=True)
            self._save()

    def keep(self, case: Case, part: str = "rows") -> None:
        """Leaves the rows of a case as they are."""
        self._seen.setdefault(part, []).extend(self._of(case, part))

    def quote(self, case: Case, row: Mapping[str, Any], source: str, part: str = "rows") -> None:
        """Adds a row that others measured. source: where it stands."""
        self._put(case, [{**case, **row, "origin": {"source": source}}], part)

    def show(self, **more: Any) -> None:
        """Prints the parts and, with --json, writes them. Ends the program if there is no row.

        more: figures and tables that follow from the rows.
        """
        if self._whole():
            self.parts = dict(self._seen)
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
        head = {"title": self.title, "command": command, "golden": {}}
        left = not self._whole() or any(rows != self._seen.get(name) for name, rows in self.parts.items())
        if more is None or left:
            head["golden"] = self._before.get("golden", {})  # Not all rows are of this run.
        elif not self.options.small:
            from golden import digests  # This module compiles designs and imports much, so it is loaded late.

            head["golden"] = digests(Path(sys.argv[0]).stem)
        if more is None:
            more = {name: value for name, value in self._before.items() if name not in {*head, *self.parts, "seal"}}
        part = self.options.json.with_suffix(".part")
        part.write_text(as_text(sealed({**head, **self.parts, **more})), encoding="utf-8")
        part.replace(self.options.json)

    def _whole(self) -> bool:
        """Returns whether the run comes to all cases."""
        given = vars(self.options)
        return not given.get("only") and all(given.get(name, True) for name in ("data", "peers", "peer"))

    def _of(self, case: Case, part: str) -> list[Row]:
        rows = self.parts.setdefault(part, [])
        return [row for row in rows if all(row.get(name) == value for name, value in case.items())]

    def _put(self, case: Case, made: Sequence[Row], part: str) -> None:
        own = self._of(case, part)
        rows = [row for row in self.parts[part] if row not in own]
        at = self.parts[part].index(own[0]) if own else len(rows)
        self.parts[part] = [*rows[:at], *made, *rows[at:]]
        self._seen.setdefault(part, []).extend(made)


def _measured(measure: Callable[[Case], Steps], about: Row, case: Case, before: list[Row]) -> list[Row] | None:
    """Makes a case; returns its rows, or None if they are as they were before."""
    start, steps = time.perf_counter(), measure(case)
    inputs, made = next(steps)
    origin = {
        "inputs": digest(about["given"], sorted(case.items()), inputs),
        "tools": about["tools"],
        "made": about["sources"] if made is None else digest(made),
    }
    same = before and all(row["origin"].get(name) == value for row in before for name, value in origin.items())
    found = None if same else next(steps)
    steps.close()
    if found is None:
        return None
    rows = found if isinstance(found, list) else [found]
    seconds = round((time.perf_counter() - start) / len(rows), 2)
    return [{**case, **row, "origin": {**about["commit"], **origin, "s": seconds}} for row in rows]


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
    elif hasattr(part, "to_numpy"):  # a table of pandas
        yield from _contents([[*part], part.to_numpy()])
    elif isinstance(part, np.ndarray):
        yield f"{part.dtype} {part.shape}".encode()
        yield repr(part.tolist()).encode() if part.dtype == object else part.tobytes()
    else:
        yield part if isinstance(part, bytes) else repr(part).encode()


def scripts() -> list[Path]:
    """Returns the script that runs, its folder of papers/, and the modules beside it that it imports."""
    script, folder = Path(sys.argv[0]), ROOT / "benchmarks"
    names = re.findall(r"^(?:from|import) (\w+)", script.read_text(encoding="utf-8"), re.MULTILINE)
    beside = [folder / f"{name}.py" for name in names if name not in ("ledger", "tools")]
    return [script, folder / "papers" / script.stem, *(path for path in beside if path.exists())]


def sources() -> str:
    """Hashes the code that a row may depend on."""
    return digest(*(ROOT / name for name in PACKAGES), scripts())


@cache
def tool_version(name: str) -> str:
    """Returns the version of a package, of a program (pip's first), or of code of this repository (its hash)."""
    if (ROOT / name).exists():
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


def sealed(result: Mapping[str, Any]) -> Row:
    """Returns a result with its seal, at the second place."""
    rest = {name: value for name, value in result.items() if name not in ("title", "seal")}
    return {"title": result["title"], "seal": digest(result["title"], json.dumps(rest)), **rest}


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
    words = [f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    is_path = [at > 0 and (Path(word).exists() or Path(word).is_absolute()) for at, word in enumerate(words)]
    kinds = ["DIR" if Path(word).is_dir() else "FILE" for word in words]
    text = shlex.join(kind if path else word for word, path, kind in zip(words, is_path, kinds, strict=True))
    return re.sub(r" --(json|only)[ =]\S+", "", text)


def _commit() -> dict[str, str]:
    """Returns the commit, with `-dirty` at its end if the code has uncommitted changes, and the date."""
    git = ["git", "-C", str(ROOT)]
    done = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = [*git, "status", "--porcelain", "--", *PACKAGES, "benchmarks", "tests"]
    dirty = subprocess.run(changed, capture_output=True, text=True, check=False).stdout
    commit = "unknown" if done.returncode else done.stdout.strip() + ("-dirty" if dirty else "")
    return {"commit": commit, "date": datetime.datetime.now(datetime.UTC).date().isoformat()}
