"""Runs FuseSoC on the core file of a design."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RUN = "import sys; from fusesoc.main import main; sys.exit(main())"


def fusesoc(folder: Path, home: Path, *words: str) -> str:
    """Runs `fusesoc run`, which must succeed; returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--cores-root", str(folder), "run", *words],
        cwd=home, capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(home), "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said
