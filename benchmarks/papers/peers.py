"""Runs a peer library on a table, in an interpreter that has it, and prints its result and seconds as JSON.

    PYTHON benchmarks/papers/peers.py nimfa FILE.npy RANK
    PYTHON benchmarks/papers/peers.py pgmpy FILE.npy PARENTS

Benchmarks call `peer_result`; this file imports nothing of forestc.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

MOST_SECONDS = 300  # gives up a peer after this time


def peer_result(python: str | None, peer: str, table: Any, number: int) -> dict[str, Any]:
    """Returns the peer's result and seconds; nothing without an interpreter, a reason if the peer fails."""
    if python is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        np.save(path, np.asarray(table))
        command = [python, __file__, peer, str(path), str(number)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return {peer: f"none ({type(error).__name__})"}
    if done.returncode:
        return {peer: f"none ({(done.stderr.strip().splitlines() or ['no message'])[-1][:80]})"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def nimfa(table: Any, rank: int) -> dict[str, Any]:
    np.mat = np.asmatrix  # type: ignore[attr-defined]  # nimfa 1.4 calls it by this name, which NumPy 2 dropped
    import nimfa  # type: ignore[import-not-found]

    start = time.perf_counter()
    fit = nimfa.Bmf(table, seed="nndsvd", rank=rank, max_iter=200, lambda_w=1.1, lambda_h=1.1)()
    A, B = (np.asarray(factor) > 0.5 for factor in (fit.basis(), fit.coef()))
    error = int(np.count_nonzero((A.astype(int) @ B.astype(int) > 0) != (table == 1)))
    return {"nimfa": error, "nimfa_s": round(time.perf_counter() - start, 1)}


def pgmpy(table: Any, parents: int) -> dict[str, Any]:
    import pandas as pd
    from pgmpy.estimators import BDeu, HillClimbSearch, TreeSearch  # type: ignore[import-not-found]

    frame = pd.DataFrame(table, columns=[str(column) for column in range(table.shape[1])])
    score, result = BDeu(frame, equivalent_sample_size=1), {}
    searches = {
        "HillClimbSearch": lambda: HillClimbSearch(frame).estimate(
            scoring_method=score, max_indegree=parents, show_progress=False
        ),
        "TreeSearch": lambda: TreeSearch(frame).estimate(show_progress=False),
    }
    for name, search in searches.items():
        start = time.perf_counter()
        found = search()
        seconds = time.perf_counter() - start
        total = sum(score.local_score(node, list(found.predecessors(node))) for node in frame.columns)
        result |= {name: round(float(total), 2), f"{name}_s": round(seconds, 1)}
    return result


if __name__ == "__main__":
    print(json.dumps({"nimfa": nimfa, "pgmpy": pgmpy}[sys.argv[1]](np.load(sys.argv[2]), int(sys.argv[3]))))
