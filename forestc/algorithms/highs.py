"""HiGHS, the solver of linear and integer programs, with the options that forestc needs."""

from __future__ import annotations

import math
from typing import Any

ITERATIONS_A_NODE = 100  # of the simplex method, roughly


def make_highs(*, time_limit: float | None = None, seed: int = 0, **options: Any) -> Any:
    """A quiet solver on one thread. time_limit: of a run, in seconds; None or infinite for none. options: HiGHS's own.

    Options are set before the first run: a change of `threads` between two runs would silently give no result.
    """
    import highspy

    solver = highspy.Highs()
    chosen: dict[str, Any] = {"output_flag": False, "threads": 1, "random_seed": seed, **options}
    if time_limit is not None and math.isfinite(time_limit):
        chosen["time_limit"] = max(0.0, float(time_limit))
    for name, value in chosen.items():
        solver.setOptionValue(name, value)
    return solver


def most_nodes(limit: int, entries: int) -> int:
    """The nodes that a limit of steps allows for a program of `entries` nonzero entries. A step is one entry of the
    program in one iteration of the simplex method."""
    return max(1, limit // (ITERATIONS_A_NODE * max(1, entries)))


def steps_of(solver: Any) -> int:
    """The steps that HiGHS took."""
    return int(solver.getNumNz()) * max(1, int(solver.getInfo().simplex_iteration_count))
