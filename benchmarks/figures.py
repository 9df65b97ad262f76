"""Measures results again, with the command that each of them names, and says how long each took.

    python benchmarks/figures.py --peers DIR --data DIR     what README and the page of results show
    python benchmarks/figures.py --all ...                  every result
    python benchmarks/figures.py shipped_models make        these results
    python benchmarks/figures.py --times                    measures nothing: the seconds that the rows took

A result whose command takes a folder that is not given is left out. `s of all` are the seconds that the rows of a
result took when they were measured, empty if that is not known of all of them.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from ledger import has_origins
from tools import ROOT, show

PAGES = ("README.md", "docs/index.md", "docs/benchmarks/index.md")
GIVEN = ("data", "peers", "peer", "models")  # options that a command may take


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--times", action="store_true")
    for name in GIVEN:
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    every = {path.stem: path for path in sorted((ROOT / "docs" / "benchmarks").glob("*.json"))}
    shown = dict.fromkeys(re.findall(r"<!-- (?:table|figure|picture): (\w+)", pages))
    names = options.names or (every if options.all else [name for name in shown if name in every])
    lines = [measured(every[name], options) for name in names]
    show("how long the figures took", lines)
    print(f"{sum(line['s'] or 0 for line in lines) / 60:.0f} minutes")
    return int(any(line["remark"].startswith("failed") for line in lines))


def measured(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Runs the command of a result; returns its line of the table."""
    before = origins(path)
    words = shlex.split(json.loads(path.read_text(encoding="utf-8"))["command"])
    needs = [word for word, after in pairwise(words) if after in ("DIR", "FILE")]
    missing = [need for need in needs if not getattr(options, need.strip("-"))]
    s, remark = None, f"needs {' and '.join(missing)}" if missing else ""
    if not options.times and not missing:
        given = iter(str(getattr(options, need.strip("-"))) for need in needs)
        words = [next(given) if word in ("DIR", "FILE") else word for word in words]
        start = time.perf_counter()
        done = subprocess.run([sys.executable, *words, "--json", str(path)], cwd=ROOT, check=False)
        s, remark = round(time.perf_counter() - start), "failed" if done.returncode else ""
    after = origins(path)
    seconds = [origin.get("s", 0) for origin in after]
    return {
        "result": path.stem, "s": s, "rows": len(after), "measured": sum(origin not in before for origin in after),
        "s of all": None if None in seconds else round(sum(seconds)), "remark": remark,
    }  # fmt: skip


def origins(path: Path) -> list[dict[str, Any]]:
    parts = json.loads(path.read_text(encoding="utf-8")).values()
    return [row["origin"] for rows in parts if has_origins(rows) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
