"""Builds and runs linear and integer programs with HiGHS, an open-source solver."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# Assumes this many simplex iterations per search node; more allows fewer nodes.
ITERATIONS_A_NODE = 100
# Allows this many calls of HiGHS's interrupt callback per search node.
CALLS_A_NODE = 16
LEAST_CALLS = 1000  # calls allowed in any case, for cuts and heuristics at the root
MOST_ITERATIONS = 1_000_000  # stops the simplex method after this many iterations
CHECK_SECONDS = 0.1  # seconds between two checks for Ctrl-C


def make_highs(*, time_limit: float | None = None, seed: int = 0, **options: Any) -> Any:
    """Returns a HiGHS solver that prints nothing. Set `threads` here: HiGHS silently gives no result if `threads`
    changes between two runs."""
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
    """Returns a linear or integer program over nonnegative variables. lines: indices and values of the nonzeros of each
    constraint (`by_rows`) or variable. whole: number of integral variables, which come first."""
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
    index = [np.asarray(indices, dtype=np.int32) for indices, _ in lines]
    model.a_matrix_.start_ = np.cumsum([0, *map(len, index)]).astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([np.zeros(0, dtype=np.int32), *index])
    model.a_matrix_.value_ = np.concatenate([np.zeros(0), *(np.asarray(values) for _, values in lines)])
    return model


def run(
    solver: Any,
    most_calls: int | None = None,
    seconds: float = math.inf,
    *,
    watch: Callable[[float, float], None] | None = None,
    patient: bool = False,
) -> bool:
    """Runs HiGHS in a thread, so that Ctrl-C ends the wait. Returns True if Ctrl-C ended the run.

    most_calls: limits interrupt callbacks of an integer program; unlike time, this is repeatable.
    watch: receives the best value and the bound of an integer program after each change.
    patient: waits after Ctrl-C until the best solution can be read, and returns.
    """
    if math.isfinite(seconds):
        solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
    stop, failures, calls = threading.Event(), list[BaseException](), 0
    bounds = reported = (math.nan, math.nan)

    def look(event: Any) -> None:
        nonlocal calls, bounds
        calls += 1
        bounds = (event.data_out.mip_primal_bound, event.data_out.mip_dual_bound)
        if stop.is_set() or (most_calls is not None and calls >= most_calls):
            event.interrupt()

    def work() -> None:
        try:
            solver.run()
        except BaseException as error:  # noqa: BLE001  raised again by the caller's thread
            failures.append(error)

    solver.cbMipInterrupt += look
    # A daemon thread does not keep the program from exiting.
    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(CHECK_SECONDS)
            if watch is not None and calls and bounds != reported:
                reported = bounds
                watch(*reported)
    except BaseException as error:
        stop.set()
        if not (patient and isinstance(error, KeyboardInterrupt)):
            raise
        thread.join()
    solver.cbMipInterrupt -= look
    if failures:
        raise failures[0]
    return stop.is_set()


def most_nodes(limit: int, entries: int) -> int:
    """Converts a limit of steps into a limit of search-tree nodes, for a program with `entries` nonzeros. A step is one
    nonzero in one simplex iteration."""
    return max(1, limit // (ITERATIONS_A_NODE * max(1, entries)))


def most_calls(nodes: int) -> int:
    """Returns the limit of interrupt callbacks for a run of `nodes` nodes."""
    return LEAST_CALLS + CALLS_A_NODE * nodes


def steps_of(solver: Any) -> int:
    """Returns the steps that a solver took: nonzero entries times simplex iterations."""
    return int(solver.getNumNz()) * max(1, int(solver.getInfo().simplex_iteration_count))
