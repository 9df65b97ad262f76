"""Rows on a Dask cluster: reductions run where the cluster's workers read the files, part by part.

A part is a row group of a Parquet file, or an Arrow file. The workers must see the same files at the same paths. If a
worker dies, Dask gives its parts to others.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from forestc.data.rows import TableRows
from forestc.errors import MissingExtraError, OptionError, ToolError
from forestc.forest.rows import Batch, Reduction, Rows

S = TypeVar("S")

RETRIES = 3
FAN_IN = 8  # states merged by one task


@dataclass(frozen=True)
class ClusterRows:
    """Rows whose reductions a Dask client runs. `batches` still reads them here."""

    rows: TableRows
    client: Any

    def batches(self) -> Iterator[Batch]:
        return self.rows.batches()

    def reduce(self, task: Reduction[S]) -> S:
        """Raises ToolError if the cluster can't, whatever was tried."""
        shared = self.client.scatter(task, broadcast=True, hash=False)
        parts = self.rows.parts()
        states = [
            self.client.submit(_of_part, shared, part, first, pure=False, retries=RETRIES) for first, part in parts
        ]
        while len(states) > 1:
            states = [
                self.client.submit(_merged, shared, states[at : at + FAN_IN], pure=False, retries=RETRIES)
                for at in range(0, len(states), FAN_IN)
            ]
        try:
            found: S = states[0].result()
        except OSError as error:
            raise ToolError(f"a worker can't read the rows ({error})", do="give a path that all workers see") from None
        return found


def _of_part(task: Any, part: TableRows, first: int) -> Any:
    state = task.start()
    for batch in part.batches():
        task.update(state, batch, first)
        first += len(batch.X)
    return state


def _merged(task: Any, states: list[Any]) -> Any:
    merged = task.start()  # a state that is somebody else's result must stay as it is
    for state in states:
        task.merge(merged, state)
    return merged


@contextmanager
def on_cluster(rows: Rows, scheduler: str | None) -> Iterator[Rows]:
    """The rows, reduced on the cluster whose scheduler listens at an address; as they are without one.

    Raises OptionError for rows that don't lie in such files, MissingExtraError without dask, ToolError for no answer.
    """
    if scheduler is None:
        yield rows
        return
    if not isinstance(rows, TableRows) or not rows.divisible:
        raise OptionError("--scheduler needs rows in Parquet or Arrow files", do="write them as a folder of Parquet")
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtraError("distributed", "dask") from None
    try:
        client = distributed.Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ToolError(f"no Dask scheduler answers ({error})", where=scheduler, do="check the address") from None
    try:
        yield ClusterRows(rows, client)
    finally:
        client.close()
