"""HiGHS, the solver of linear and integer programs, with the options that forestc needs."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

ITERATIONS_A_NODE = 100  # of the simplex method, roughly
CALLS_A_NODE = 16  # calls of HiGHS's interrupt callback for one node, where strong branching solves many programs
LEAST_CALLS = 1000  # calls that even one node may take: cuts and heuristics at the root
MOST_ITERATIONS = 1_000_000  # of the simplex method in a linear program
CHECK_SECONDS = 0.1  # between two looks for a signal, where a lock alone would not let one through


def make_highs(*, time_limit: float | None = None, seed: int = 0, **options: Any) -> Any:
    """A quiet solver on one thread. time_limit: of a run, in seconds; None or infinite for none. options: HiGHS's own.

    Options are set before the first run: a change of `threads` between two runs would silently give no result.
    """
    import highspy

    solver = highspy.Highs()
    chosen: dict[str, Any] = {
        "output_flag": False, "threads": 1, "random_seed": seed, "simplex_iteration_limit": MOST_ITERATIONS, **options,
    }  # fmt: skip
    if time_limit is not None and math.isfinite(time_limit):
        chosen["time_limit"] = max(0.0, float(time_limit))
    for name, value in chosen.items():
        solver.setOptionValue(name, value)
    return solver


def make_model(
    cost: ArrayLike,
    upper: ArrayLike,
    row_bounds: tuple[ArrayLike, ArrayLike],
    lines: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    by_rows: bool,
    whole: int = 0,
    maximize: bool = False,
) -> Any:
    """Returns a program to pass to a solver; its columns are at least 0.

    row_bounds: lower and upper. lines: of each row, or of each column, the places of the nonzero entries and their
    values. whole: the first `whole` columns are integral.
    """
    import highspy

    model, kinds = highspy.HighsLp(), highspy.HighsVarType
    model.col_cost_, model.col_upper_ = np.asarray(cost, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    model.row_lower_, model.row_upper_ = (np.asarray(bound, dtype=np.float64) for bound in row_bounds)
    columns, model.num_row_ = len(model.col_cost_), len(model.row_lower_)
    model.num_col_, model.col_lower_ = columns, np.zeros(columns)
    if maximize:
        model.sense_ = highspy.ObjSense.kMaximize
    if whole:
        model.integrality_ = [kinds.kInteger] * whole + [kinds.kContinuous] * (columns - whole)
    formats = highspy.MatrixFormat
    model.a_matrix_.format_ = formats.kRowwise if by_rows else formats.kColwise
    index = [np.asarray(places, dtype=np.int32) for places, _ in lines]
    model.a_matrix_.start_ = np.cumsum([0, *map(len, index)]).astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([np.zeros(0, dtype=np.int32), *index])
    model.a_matrix_.value_ = np.concatenate([np.zeros(0), *(np.asarray(values) for _, values in lines)])
    return model


def run(solver: Any, most_calls: int | None = None, seconds: float = math.inf) -> None:
    """Runs HiGHS in a thread of its own, so that a signal ends the wait at once: the exception passes, and the thread
    ends when HiGHS next calls back.

    most_calls: ends an integer program after this many calls of HiGHS's interrupt callback. HiGHS makes them at the
    same points of every run, so the result repeats, as it would not with a limit in seconds. seconds: limit of a solver
    that runs several times, as HiGHS's own limit counts all of its runs.
    """
    if math.isfinite(seconds):
        solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
    stop, failures, calls = threading.Event(), list[BaseException](), 0

    def look(event: Any) -> None:
        nonlocal calls
        calls += 1
        if stop.is_set() or (most_calls is not None and calls >= most_calls):
            event.interrupt()

    def work() -> None:
        try:
            solver.run()
        except BaseException as error:  # noqa: BLE001  raised again by the caller's thread
            failures.append(error)

    solver.cbMipInterrupt += look
    thread = threading.Thread(target=work, daemon=True)  # not waited for by a program that ends
    try:
        thread.start()
        while thread.is_alive():
            thread.join(CHECK_SECONDS)
    except BaseException:
        stop.set()
        raise
    solver.cbMipInterrupt -= look
    if failures:
        raise failures[0]


def most_nodes(limit: int, entries: int) -> int:
    """The nodes that a limit of steps allows for a program of `entries` nonzero entries. A step is one entry of the
    program in one iteration of the simplex method."""
    return max(1, limit // (ITERATIONS_A_NODE * max(1, entries)))


def most_calls(nodes: int) -> int:
    """The calls of the interrupt callback that a limit of nodes allows: nodes alone do not limit the work at each."""
    return LEAST_CALLS + CALLS_A_NODE * nodes


def steps_of(solver: Any) -> int:
    """The steps that HiGHS took."""
    return int(solver.getNumNz()) * max(1, int(solver.getInfo().simplex_iteration_count))
