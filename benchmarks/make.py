"""Measures `make demo` and `make test` in a fresh clone, with pip's cache and the native tools on the PATH."""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from pathlib import Path

from ledger import Case, Ledger, Steps
from tools import ROOT, arguments

TARGETS = ("demo", "test")


def measured(case: Case) -> Steps:
    """Yields the seconds of a target in a clone. Raises CalledProcessError if it fails."""
    yield [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "tests"], None
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        start, before = time.perf_counter(), _children()
        subprocess.run(case["target"].split(), cwd=clone, check=True)
        seconds = time.perf_counter() - start
        used = round(_children() - before)
        yield {"minutes": round(seconds / 60, 1), "seconds": round(seconds), "processor seconds": used}


def _children() -> float:
    """Returns the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = arguments(__doc__, "json", "only").parse_args()
    targets = ("--version",) if options.small else TARGETS
    ledger = Ledger("From a clone", options, ("pytest", "yosys", "verilator", "iverilog", "ghdl"))
    for target in targets:
        case = {"target": f"make {target}"}
        if options.only in target:
            ledger.fill([case], measured)
        else:
            ledger.keep(case)
    ledger.show()


if __name__ == "__main__":
    main()
