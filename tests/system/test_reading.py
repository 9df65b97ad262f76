"""Tests that what is no plain file is refused at once, by name, wherever a user names a file."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from models import trained

import forestc
from forestc.errors import ForestcError, ModelError, RowsError
from forestc.report.page.peers import read_peers
from forestc.rows.given import open_file, rows_from
from forestc.rows.range_files import ranges_from
from forestc.rows.training_rows import read_table
from forestc.system.reading import file_bytes, file_text
from forestc.toolchain.yosys import map_to_library


@pytest.fixture(scope="module")
def forest():
    return forestc.load(trained("forest-binary")[0])


READERS = {
    "model.json": lambda path, forest: forestc.load(path),
    "inputs.bn": lambda path, forest: forestc.read_inputs(path),
    "rows.csv": rows_from,
    "rows.csv.gz": rows_from,
    "rows.parquet": rows_from,
    "rows.npy": rows_from,
    "training.csv": lambda path, forest: read_table(path, "y"),
    "held.csv": lambda path, forest: forestc.quantize(forest, np.zeros((9, 30)), level=0, held_out=path),
    "ranges.json": ranges_from,
    "peers.csv": lambda path, forest: read_peers(path),
    "cells.lib": lambda path, forest: map_to_library([path.parent / "a.v"], "a", path),
}


def bind(name):
    with socket.socket(socket.AF_UNIX) as bound:  # The file stays.
        bound.bind(name)


@pytest.mark.parametrize("name", READERS)
def test_pipes_sockets_and_devices_are_refused_by_name(name, forest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # The path of a socket has 108 bytes at most.
    path = Path(name)
    made = {
        "a pipe": lambda: os.mkfifo(path),
        "a socket": lambda: bind(name),
        "a device": lambda: path.symlink_to("/dev/zero"),
    }
    for kind, make in made.items():
        make()
        with pytest.raises(ForestcError, match=f"^{name}: {kind}, not a file"):
            READERS[name](path, forest)
        path.unlink()


def test_a_file_that_grows_is_no_model(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"12345")
    status = os.stat_result((0, 0, 0, 0, 0, 0, 4, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda file: status)  # as it was before the fifth byte came
    with pytest.raises(ModelError, match=r"a\.json: the file changes while it is read"):
        file_bytes(path, ModelError, 100)


def test_sizes_and_encodings_are_limited(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert file_text(path, ModelError, 6) == "abc"
    with pytest.raises(ModelError, match="6 bytes; at most 5 are read"):
        file_bytes(path, ModelError, 5)
    path.write_bytes(b"abc\xff")
    with pytest.raises(ModelError, match=r"a\.txt: not UTF-8, from byte 3 on"):
        file_text(path, ModelError, 6)
    with pytest.raises(ModelError, match=r"can't be read"):
        file_bytes(tmp_path, ModelError, 6)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.feather"])
def test_rows_that_change_between_two_readings_are_refused(name, tmp_path):
    frame, path = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), tmp_path / name
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "feather": frame.to_feather}[name.partition(".")[2]]
    write(path)
    table = open_file(path, None)
    assert [batch.num_rows for batch in table.batches(["a"], (), 9)] == [2]
    write(path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    with pytest.raises(RowsError, match=rf"{name}: the file changes while it is read"):
        list(table.batches(["a"], (), 9))
