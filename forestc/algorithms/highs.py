"""HiGHS, the solver of linear and integer programs, with the options that forestc needs."""

from __future__ import annotations

import math
import threading
from typing import Any

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
