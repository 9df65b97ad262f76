"""HiGHS, the solver of linear and integer programs, with the options that forestc needs."""

from __future__ import annotations

import math
from typing import Any


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
