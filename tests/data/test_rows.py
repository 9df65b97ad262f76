from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from models import trained

from forestc import load
from forestc.data import open_rows, rows_from
from forestc.errors import OptionError, RowsError
from forestc.forest.ir import Feature
from forestc.forest.numbers import FLOAT32


@pytest.fixture(scope="module")
def forest():
    from dataclasses import replace

    forest = load(trained("tree-binary")[0])
    names = [f"mean {i}" for i in range(30)]
    features = tuple(replace(feature, name=names[feature.column]) for feature in forest.features)
    assert features[0] == Feature("mean 0", FLOAT32, 0, True)
    return replace(forest, features=features)


@pytest.fixture(scope="module")
def frame():
    _, X, y = trained("tree-binary")
    frame = pd.DataFrame(X, columns=[f"mean {i}" for i in range(30)])
    frame.insert(3, "ill", y)
    frame.iloc[5, 0] = np.nan
    return frame


def read(rows):
    batches = list(rows.batches())
    X = np.concatenate([batch.X for batch in batches])
    truth = None if batches[0].truth is None else np.concatenate([batch.truth for batch in batches])
    return X, truth


WRITERS = {
    "rows.csv": lambda frame, path: frame.to_csv(path, index=False),
    "rows.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "rows.parquet": lambda frame, path: pa.parquet.write_table(pa.Table.from_pandas(frame), path, row_group_size=100),
    "rows.feather": lambda frame, path: pa.feather.write_feather(pa.Table.from_pandas(frame), path),
    "rows.arrow": lambda frame, path: pa.feather.write_feather(pa.Table.from_pandas(frame), path, compression="lz4"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(name, tmp_path, forest, frame):
    shuffled = frame[[*frame.columns[::-1]]]  # by name, so order does not matter
    WRITERS[name](shuffled, tmp_path / name)
    X, truth = read(open_rows(tmp_path / name, forest, "ill"))
    expected = frame.drop(columns="ill").to_numpy()
    used = forest.features_used()
    assert np.array_equal(X[:, used], expected[:, used], equal_nan=True)
    assert np.array_equal(truth, frame["ill"])
    again, _ = read(open_rows(tmp_path / name, forest, "ill"))
    assert np.array_equal(X, again, equal_nan=True)
    assert read(open_rows(tmp_path / name, forest))[1] is None


def test_numpy_files(tmp_path, forest, frame):
    X, y = frame.drop(columns="ill").to_numpy(), frame["ill"].to_numpy()
    np.save(tmp_path / "x.npy", np.column_stack([X, y]))
    np.savez(tmp_path / "x.npz", X=X, y=y, X_test=X[:9], y_test=y[:9])
    for path, label, count in (("x.npy", "-1", 569), ("x.npz", "y", 569), ("x.npz", "y_test", 9)):
        found, truth = read(open_rows(tmp_path / path, forest, label))
        assert np.array_equal(found, X[:count], equal_nan=True)
        assert np.array_equal(truth, y[:count])
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    for path, label, message in (
        ("x.npz", "z", "has no array 'z'; .*x.npz; it has: X, y"),
        ("x.npy", "ill", "there is no column 'ill'.*give a position"),
        ("x.npy", None, r"shape \(569, 31\).*takes rows of 30 columns"),
        ("object.npy", None, "not a readable NumPy file"),
    ):
        with pytest.raises(RowsError, match=message):
            open_rows(tmp_path / path, forest, label)


def test_files_without_names_go_by_position(tmp_path, forest, frame):
    bare = frame.dropna()
    bare.to_csv(tmp_path / "bare.csv", index=False, header=False)
    X, truth = read(open_rows(tmp_path / "bare.csv", forest, "3"))
    assert np.array_equal(X, bare.drop(columns="ill").to_numpy())
    assert np.array_equal(truth, bare["ill"])


def test_data_frames_and_arrays(forest, frame):
    X, y = frame.drop(columns="ill"), frame["ill"]
    used = forest.features_used()
    for rows in (X, X[X.columns[::-1]], pa.Table.from_pandas(X), X.to_numpy(), X.to_numpy().tolist()):
        found, truth = read(rows_from(rows, forest, y))
        assert np.array_equal(found[:, used], X.to_numpy()[:, used], equal_nan=True)
        assert np.array_equal(truth, y)


def test_labels_are_matched_as_the_model_knows_them(tmp_path, forest, frame):
    frame.assign(ill=frame["ill"].astype(float)).to_csv(tmp_path / "a.csv", index=False)
    assert np.array_equal(read(open_rows(tmp_path / "a.csv", forest, "ill"))[1], frame["ill"])
    frame.assign(ill="maybe").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(RowsError, match=r"no label is a class of the model: 'maybe'.*the model's classes: 0, 1"):
        read(open_rows(tmp_path / "b.csv", forest, "ill"))
    frame.assign(ill=[7, *frame["ill"][1:]]).to_csv(tmp_path / "c.csv", index=False)
    assert read(open_rows(tmp_path / "c.csv", forest, "ill"))[1][0] == -1


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("a,b\n1,2\n", None, "column 'mean 0' is missing and 29 more.*it has: a, b"),
        ("a,b\n1,2\n", "ill", "there is no column 'ill'.*it has: a, b"),
        ("1,2\n3,4\n", None, "has 2 columns beside the label.*takes 30"),
        ("1,2\n3,4\n", "7", "there is no column 7 of 2"),
        ("", None, "the file is empty"),
        ("{head}\n", None, "there are no rows"),
        ("{head}\n{row},x\n", None, "not a readable CSV file .*Expected 30 columns, got 31"),
        ("{head}\nred{row}\n", None, "can't be read.*mean 0|can't be read.*conversion error"),
        ("a,a\n1,2\n", None, "two columns have one name"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(tmp_path, forest, text, label, message):
    head = ",".join(f"mean {i}" for i in range(30))
    text = text.replace("{head}", head).replace("{row}", ",".join(["1"] * 30))
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(RowsError, match=message) as caught:
        read(open_rows(tmp_path / "rows.csv", forest, label))
    assert "\n" not in str(caught.value)


def test_text_columns_are_refused_by_name(tmp_path, forest, frame):
    table = pa.Table.from_pandas(frame.assign(**{"mean 0": "red"}))
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(RowsError, match=r"column 'mean 0' holds .*string, not numbers"):
        read(open_rows(tmp_path / "x.parquet", forest))


def test_damaged_and_unknown_files(tmp_path, forest):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9])
    (tmp_path / "x.xlsx").write_bytes(b"")
    for name, kind, message in (
        ("x.parquet", RowsError, "not a readable parquet file"),
        ("x.csv.gz", RowsError, "not a readable CSV file .*Truncated"),
        ("x.xlsx", OptionError, "unknown kind of rows file '.xlsx'; .*known: .csv"),
        ("y.csv", RowsError, "there is no such file"),
    ):
        with pytest.raises(kind, match=message):
            open_rows(tmp_path / name, forest)


def test_large_files_come_in_batches(tmp_path, forest):
    _, X, _ = trained("tree-binary")
    names = [f"mean {i}" for i in range(30)]
    table = pa.Table.from_pandas(pd.DataFrame(np.tile(X, (60, 1)), columns=names))
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    sizes = [len(batch.X) for batch in open_rows(tmp_path / "x.parquet", forest).batches()]
    assert sum(sizes) == 60 * 569 and max(sizes) <= 8192


def test_two_features_of_one_name_go_by_position(forest, frame):
    from dataclasses import replace

    twice = replace(forest, features=tuple(replace(f, name="same") for f in forest.features))
    X = frame.drop(columns="ill")
    found, _ = read(rows_from(X, twice))
    assert np.array_equal(found, X.to_numpy(), equal_nan=True)
