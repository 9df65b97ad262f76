"""HiGHS, the solver of linear and integer programs, with the options that forestc needs."""

from __future__ import annotations

from typing import Any


def make_highs(*, time_limit: float | None = None, seed: int = 0) -> Any:
    """A quiet solver on one thread. time_limit: of a run, in seconds.

    Options are set before the first run: a change of `threads` between two runs would silently give no result.
    """
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", seed)
    if time_limit is not None:
        solver.setOptionValue("time_limit", float(time_limit))
    return solver
