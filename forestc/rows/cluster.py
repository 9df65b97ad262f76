"""Runs reductions over rows on a Dask cluster. Each task reads a row group of a Parquet file, or an Arrow file."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from forestc.errors import ForestcError, MissingExtraError, OptionError, ToolError, opt
from forestc.rows.arrow_files import ArrowFiles, readable
from forestc.rows.batches import Batch, Reduction, Rows
from forestc.rows.columns import TableRows, no_rows

S = TypeVar("S")

RETRIES = 3  # times that a failed part or merge is tried again
FAN_IN = 8  # merges this many states in one task
WAIT = 10  # seconds to wait for the scheduler, and for its first worker


@dataclass(frozen=True)
class ClusterRows:
    """Rows with reductions that run on a Dask cluster."""

    rows: TableRows
    client: Any

    def batches(self) -> Iterator[Batch]:
        return self.rows.batches()

    def parts(self) -> list[tuple[int, TableRows]]:
        """Returns a list of (number of the first row, rows), one for each row group or file."""
        table = self.rows.table
        assert isinstance(table, ArrowFiles)
        with readable(table.where):
            parts = [(first, replace(self.rows, table=part)) for first, part in table.parts()]
        if not parts:
            raise no_rows(table.where)
        return parts

    def reduce(self, task: Reduction[S]) -> S:
        """Runs a reduction over all rows and returns its state. Raises ToolError if the cluster fails."""
        shared = self.client.scatter(task, broadcast=True, hash=False)
        parts = self.parts()
        states = [
            self.client.submit(_of_part, shared, part, first, pure=False, retries=RETRIES) for first, part in parts
        ]
        while len(states) > 1:
            states = [
                self.client.submit(_merged, shared, states[at : at + FAN_IN], pure=False, retries=RETRIES)
                for at in range(0, len(states), FAN_IN)
            ]
        try:
            state: S = states[0].result()
        except ForestcError:
            raise
        except OSError as error:
            raise ToolError(
                f"a worker can't read the rows ({error})", where=opt.scheduler, do="give a path that all workers see"
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever Dask raises when the cluster fails
            raise ToolError(
                f"the cluster failed ({type(error).__name__}: {str(error)[:200]})",
                where=opt.scheduler,
                do="start it again, then compile again",
            ) from None
        return state


def _of_part(task: Reduction[S], part: TableRows, first: int) -> S:
    state = task.start()
    for batch in part.batches():
        task.update(state, batch, first)
        first += len(batch.X)
    return state


def _merged(task: Reduction[S], states: list[S]) -> S:
    merged = task.start()  # The states belong to other tasks and must not be changed.
    for state in states:
        task.merge(merged, state)
    return merged


@contextmanager
def on_cluster(rows: Rows, scheduler: str | None) -> Iterator[Rows]:
    """Yields rows with reductions that run on the Dask cluster at the address `scheduler`; for None, yields the given
    rows. Raises OptionError, MissingExtraError or ToolError if this is impossible."""
    if scheduler is None:
        yield rows
        return
    if not isinstance(rows, TableRows) or not isinstance(rows.table, ArrowFiles):
        raise OptionError(
            "a cluster needs rows in Parquet or Arrow files",
            where=opt.scheduler,
            do="write them as a folder of Parquet",
        )
    client = connected(scheduler)
    try:
        yield ClusterRows(rows, client)
    finally:
        client.close()


def connected(scheduler: str) -> Any:
    """Connects to a Dask cluster and returns the client. scheduler: an address. Raises MissingExtraError if Dask is not
    installed, ToolError if no scheduler with workers answers."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("distributed", "dask") from None
    _answers(scheduler)
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
        client.wait_for_workers(1, timeout=WAIT)
    except Exception as error:  # noqa: BLE001 - whatever Dask raises without a scheduler or workers
        raise ToolError(
            f"no Dask cluster there ({type(error).__name__}: {str(error)[:200]})",
            where=scheduler,
            do="check the address, and that dask worker runs",
        ) from None
    return client


def _answers(scheduler: str) -> None:
    """Raises ToolError if nothing listens at the address; Dask itself would print long warnings."""
    address = urlsplit(scheduler if "//" in scheduler else f"tcp://{scheduler}")
    try:
        if address.scheme not in ("tcp", "tls", "ws", "wss", "ucx") or not address.hostname:
            raise OSError("not an address such as tcp://host:8786")
        socket.create_connection((address.hostname, address.port or 8786), timeout=WAIT).close()
    except (OSError, ValueError) as error:
        raise ToolError(f"no Dask scheduler answers ({error})", where=scheduler, do="check the address") from None
