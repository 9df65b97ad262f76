"""Tests reductions on a Dask cluster of two workers: the results are those without a cluster, even if a worker dies."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from models import trained
from thinned import only

import forestc
from forestc import load
from forestc.errors import OptionError, RowsError, ToolError
from forestc.passes.observation import Observe
from forestc.passes.scorer import Scorer
from forestc.passes.share_thresholds.share_thresholds import ShareThresholds
from forestc.rows.batches import FitAndHeldOut, reduce_rows
from forestc.rows.cluster import ClusterRows, on_cluster
from forestc.rows.given import rows_from


@pytest.fixture(scope="module")
def cluster():
    """Starts two workers in this process. Messages to them are pickled, as for other workers."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    ) as two:
        yield two


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes three files of several row groups each."""
    _, X, y = trained("forest-binary")
    path = tmp_path_factory.mktemp("rows")
    for number, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        columns = {f"x{k}": X[rows, k] for k in range(X.shape[1])} | {"y": y[rows]}
        pq.write_table(pa.table(columns), path / f"part-{number}.parquet", row_group_size=40)
    return path


@pytest.mark.parametrize(
    "step",
    only(
        [
            ShareThresholds(),
            ShareThresholds(path_change=0.1, tolerance=math.inf),
            ShareThresholds(exceptions=0.1, tolerance=math.inf),
        ],
        0,
        2,
    ),
)
def test_the_cluster_says_the_same(cluster, folder, step):
    forest = load(trained("forest-binary")[0])
    rows = rows_from(folder, forest, "y")
    parts = ClusterRows(rows, None).parts()
    assert len(parts) == 15 and [first for first, _ in parts[:3]] == [0, 40, 80]
    fit, held_out = FitAndHeldOut.every(rows, 5)
    scorer = Scorer(forest, held_out)
    here = step.run(forest, fit, scorer)
    with on_cluster(rows, cluster.scheduler_address) as there:
        assert isinstance(there, ClusterRows)
        found = step.run(forest, FitAndHeldOut.every(there, 5).fit, scorer)
    assert found.report == here.report
    for a, b in zip(found.forest.trees, here.forest.trees, strict=True):
        assert np.array_equal(a.threshold, b.threshold)


@dataclass(frozen=True)
class Deadly:
    """A reduction that kills the first worker to see row 80."""

    task: Observe
    mark: Path

    def start(self):
        return self.task.start()

    def update(self, state, batch, first):
        if first == 80 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        self.task.update(state, batch, first)

    def merge(self, state, other):
        self.task.merge(state, other)


@pytest.mark.long
def test_a_killed_worker_loses_nothing(folder, tmp_path):
    forest = load(trained("forest-binary")[0])
    rows = rows_from(folder, forest, "y")
    task = Observe.of(forest)
    here = reduce_rows(rows, task).nodes.bounds
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as fresh,
        Client(fresh) as client,
    ):
        there = ClusterRows(rows, client).reduce(Deadly(task, tmp_path / "killed")).nodes.bounds
    assert (tmp_path / "killed").exists()
    for name in ("low", "high", "count"):
        assert np.array_equal(getattr(here, name), getattr(there, name))


def test_compile_on_a_cluster(cluster, folder, tmp_path):
    model, *_ = trained("forest-binary")
    options = {"label": "y", "passes": "simplify,share-thresholds,round-leaves,simplify", "targets": ["c"]}
    here = forestc.compile(model, folder, tmp_path / "here", **options)
    there = forestc.compile(model, folder, tmp_path / "there", scheduler=cluster.scheduler_address, **options)
    assert here.design.manifest["hash"] == there.design.manifest["hash"]


@dataclass(frozen=True)
class Broken:
    """A reduction that fails in an unforeseen way."""

    def start(self):
        return []

    def update(self, state, batch, first):
        raise ZeroDivisionError("of all things")

    def merge(self, state, other):
        pass


def test_a_failing_cluster_is_one_line(cluster, folder, tmp_path):
    forest = load(trained("forest-binary")[0])
    rows = rows_from(folder, forest, "y")
    with on_cluster(rows, cluster.scheduler_address) as there:
        with pytest.raises(ToolError, match=r"^scheduler=: the cluster failed .ZeroDivisionError: of all things"):
            there.reduce(Broken())
        gone = replace(rows, table=replace(rows.table, path=str(tmp_path / "gone")))
        with pytest.raises(RowsError, match="can't be read"):
            ClusterRows(gone, there.client).reduce(Observe.of(forest))


def test_files_without_rows_change_nothing(cluster, folder, tmp_path):
    forest = load(trained("forest-binary")[0])
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    pq.write_table(pq.read_table(folder / "part-0.parquet").slice(0, 0), tmp_path / "part-00.parquet")
    rows = rows_from(tmp_path, forest, "y")
    here = reduce_rows(rows, Observe.of(forest)).nodes.bounds
    with on_cluster(rows, cluster.scheduler_address) as there:
        found = reduce_rows(there, Observe.of(forest)).nodes.bounds
    assert np.array_equal(here.low, found.low) and np.array_equal(here.count, found.count)


def test_a_folder_of_different_files_is_reported(folder, tmp_path):
    forest = load(trained("forest-binary")[0])
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    pq.write_table(pq.read_table(folder / "part-0.parquet").drop_columns(["x3"]), tmp_path / "part-9.parquet")
    with pytest.raises(RowsError, match=r"part-9.parquet: has no column 'x3'"):
        list(rows_from(tmp_path, forest, "y").batches())
    (tmp_path / "part-1.parquet").write_bytes((folder / "part-1.parquet").read_bytes()[:-200])
    with pytest.raises(RowsError, match=r"can't be read .*part-1.parquet"):
        list(rows_from(tmp_path, forest, "y").batches())
    (tmp_path / "none").mkdir()
    with pytest.raises(RowsError, match=r"the folder holds no .parquet"):
        rows_from(tmp_path / "none", forest)


def test_what_a_cluster_can_not_do(folder, tmp_path):
    forest = load(trained("forest-binary")[0])
    np.save(tmp_path / "rows.npy", trained("forest-binary")[1])
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        rows = rows_from(folder, forest, "y")
        with pytest.raises(ToolError, match="no Dask scheduler answers"), on_cluster(rows, address):
            pass
    array = rows_from(tmp_path / "rows.npy", forest)
    with (
        pytest.raises(OptionError, match="needs rows in Parquet or Arrow files"),
        on_cluster(array, "tcp://127.0.0.1:9"),
    ):
        pass
