from __future__ import annotations

import gzip

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from models import trained
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from forestc import load
from forestc.errors import OptionError, RowsError
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_from


@pytest.fixture(scope="module")
def forest():
    from dataclasses import replace

    forest = load(trained("forest-binary")[0])  # This model reads all 30 columns.
    names = [f"mean {i}" for i in range(30)]
    features = tuple(replace(feature, name=names[feature.column], named=True) for feature in forest.features)
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
    shuffled = frame[[*frame.columns[::-1]]]  # Columns are found by name, so their order does not matter.
    WRITERS[name](shuffled, tmp_path / name)
    X, truth = read(rows_from(tmp_path / name, forest, "ill"))
    expected = frame.drop(columns="ill").to_numpy()
    used = forest.features_used()
    assert np.array_equal(X[:, used], expected[:, used], equal_nan=True)
    assert np.array_equal(truth, frame["ill"])
    again, _ = read(rows_from(tmp_path / name, forest, "ill"))
    assert np.array_equal(X, again, equal_nan=True)
    assert read(rows_from(tmp_path / name, forest))[1] is None


def test_numpy_files(tmp_path, forest, frame):
    X, y = frame.drop(columns="ill").to_numpy(), frame["ill"].to_numpy()
    np.save(tmp_path / "x.npy", np.column_stack([X, y]))
    np.savez(tmp_path / "x.npz", X=X, y=y, X_test=X[:9], y_test=y[:9])
    for path, label, count in (("x.npy", "-1", 569), ("x.npz", "y", 569), ("x.npz", "y_test", 9)):
        found, truth = read(rows_from(tmp_path / path, forest, label))
        assert np.array_equal(found, X[:count], equal_nan=True)
        assert np.array_equal(truth, y[:count])
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    for path, label, message in (
        ("x.npz", "z", "x.npz: has no array 'z'; it has: X, y"),
        ("x.npy", "ill", "there is no column 'ill'.*give a position"),
        ("x.npy", None, r"shape \(569, 31\).*takes rows of 30 columns"),
        ("object.npy", None, "not a readable NumPy file"),
    ):
        with pytest.raises(RowsError, match=message):
            rows_from(tmp_path / path, forest, label)


def test_files_without_names_go_by_position(tmp_path, forest, frame):
    bare = frame.dropna()
    bare.to_csv(tmp_path / "bare.csv", index=False, header=False)
    X, truth = read(rows_from(tmp_path / "bare.csv", forest, "3"))
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
    assert np.array_equal(read(rows_from(tmp_path / "a.csv", forest, "ill"))[1], frame["ill"])
    frame.assign(ill="maybe").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(RowsError, match=r"no label is a class of the model: 'maybe'.*the model's classes: 0, 1"):
        read(rows_from(tmp_path / "b.csv", forest, "ill"))
    frame.assign(ill=[7, *frame["ill"][1:]]).to_csv(tmp_path / "c.csv", index=False)
    assert read(rows_from(tmp_path / "c.csv", forest, "ill"))[1][0] == -1


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("a,b\n1,2\n", None, "column 'mean 0' is missing and 29 more.*it has: a, b"),
        ("a,b\n1,2\n", "ill", "there is no column 'ill'.*it has: a, b"),
        ("a;ill\n1;2\n", "ill", "there is no column 'ill'.*separated by ';'"),
        ("1,2\n3,4\n", None, "has 2 columns beside the label.*takes 30"),
        ("1,2\n3,4\n", "7", "there is no column 7 of 2"),
        ("", None, "the file is empty"),
        ("{head}\n", None, "there are no rows"),
        ("a;b\n1,5;2,5\n", None, "separated by ';': write commas, and points"),
        ("{head}\n{row},x\n", None, "line 2: 31 cells, and the first line has 30"),
        ("{head}\nred{row}\n", None, "line 2: column 'mean 0' holds 'red.*', which is no number"),
        ("a,a\n1,2\n", None, "two columns have one name"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(tmp_path, forest, text, label, message):
    head = ",".join(f"mean {i}" for i in range(30))
    text = text.replace("{head}", head).replace("{row}", ",".join(["1"] * 30))
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(RowsError, match=message) as caught:
        read(rows_from(tmp_path / "rows.csv", forest, label))
    assert "\n" not in str(caught.value)


def test_text_columns_are_refused_by_name(tmp_path, forest, frame):
    table = pa.Table.from_pandas(frame.assign(**{"mean 0": "red"}))
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(RowsError, match=r"column 'mean 0' holds .*string, not numbers"):
        read(rows_from(tmp_path / "x.parquet", forest))


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
            rows_from(tmp_path / name, forest)


def test_large_files_come_in_batches(tmp_path, forest):
    _, X, _ = trained("tree-binary")
    names = [f"mean {i}" for i in range(30)]
    table = pa.Table.from_pandas(pd.DataFrame(np.tile(X, (60, 1)), columns=names))
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    sizes = [len(batch.X) for batch in rows_from(tmp_path / "x.parquet", forest).batches()]
    assert sum(sizes) == 60 * 569 and max(sizes) <= 16384


def test_two_features_of_one_name_are_found_by_position_alone(forest, frame):
    from dataclasses import replace

    twice = replace(forest, features=tuple(replace(f, name="same") for f in forest.features))
    X = frame.drop(columns="ill")
    found, _ = read(rows_from(X.to_numpy(), twice))
    assert np.array_equal(found, X.to_numpy(), equal_nan=True)
    with pytest.raises(RowsError, match=r"two of the model's columns are called 'same'.*rows without names"):
        rows_from(X.rename(columns={"mean 0": "same"}), twice)
    with pytest.raises(RowsError, match="column 'same' is missing"):
        rows_from(X, twice)


def test_which_first_lines_are_headers(tmp_path):
    iris = load(trained("forest-text-labels")[0])
    _, X, _ = trained("forest-text-labels")
    for lines, label, count in (
        ({"header": False}, "-1", 150),  # Only the label column holds text.
        ({"header": True}, "-1", 150),  # The header is 0,1,2,3,target.
    ):
        frame = pd.DataFrame(X).assign(target="setosa")
        frame.columns = [*map(str, range(4)), "target"]
        frame.to_csv(tmp_path / "iris.csv", index=False, **lines)
        found, truth = read(rows_from(tmp_path / "iris.csv", iris, label))
        assert (len(found), len(truth)) == (count, count)
        assert np.array_equal(found[:, iris.features_used()], X[:, iris.features_used()])
    pd.DataFrame(X).to_csv(tmp_path / "numbers.csv", index=False)  # A data frame without names has the header 0,1,2,3.
    assert len(read(rows_from(tmp_path / "numbers.csv", iris))[0]) == 150
    (tmp_path / "na.csv").write_text("\n\nNA,1,2,3\n4,5,6,7\n")
    assert len(read(rows_from(tmp_path / "na.csv", iris))[0]) == 2


def test_a_file_without_names_is_never_matched_by_names(tmp_path):
    boosted = load(trained("xgboost-binary")[0])  # The features are called f0, f1, ...
    _, X, y = trained("xgboost-binary")
    pd.DataFrame(np.column_stack([y, X])).to_csv(tmp_path / "bare.csv", index=False, header=False)
    with pytest.raises(RowsError, match="has 31 columns beside the label"):
        rows_from(tmp_path / "bare.csv", boosted)
    found, truth = read(rows_from(tmp_path / "bare.csv", boosted, "0"))
    assert np.array_equal(found[:, [f.column for f in boosted.features]], X[:, [f.column for f in boosted.features]])
    assert np.array_equal(truth, y)


def test_hostile_and_odd_files(tmp_path, forest, frame):
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04junk")
    data = bytearray(gzip.compress(frame.to_csv(index=False).encode()))
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    (tmp_path / "bad.csv.gz").write_bytes(data)
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 30), }"
    head += b" " * (117 - len(head)) + b"\n"
    (tmp_path / "huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    np.save(tmp_path / "dates.npy", np.zeros((3, 30), dtype="datetime64[s]"))
    for name in ("bad.npz", "bad.csv.gz", "huge.npy", "dates.npy", "x" * 300 + ".csv"):
        with pytest.raises(RowsError):
            read(rows_from(tmp_path / name, forest))
    frame.to_csv(tmp_path / "UPPER.CSV.GZ", index=False, compression="gzip")
    assert len(read(rows_from(tmp_path / "UPPER.CSV.GZ", forest, "ill"))[0]) == 569
    for odd in (frame.assign(**{"mean 0": [1, "a"] + [2] * 567}), pd.concat([frame, frame["ill"]], axis=1)):
        with pytest.raises(RowsError):
            rows_from(odd, forest)


@pytest.mark.parametrize("label", ["-1", "4"])
def test_a_position_that_is_also_a_value_makes_no_header(tmp_path, label):
    iris = load(trained("forest-text-labels")[0])
    (tmp_path / "x.csv").write_text("4,3,-1,0.2,setosa\n6,3,4,4,setosa\n")
    found, truth = read(rows_from(tmp_path / "x.csv", iris, label))
    assert len(found) == 2
    assert truth.tolist() == [iris.classes.index("setosa")] * 2


def test_numbers_as_names_are_a_header_when_all_are_there(tmp_path):
    from dataclasses import replace

    iris = load(trained("forest-text-labels")[0])
    years = replace(iris, features=tuple(replace(f, name=str(2020 + f.column), named=True) for f in iris.features))
    (tmp_path / "x.csv").write_text("2023,2022,2021,2020\n4,3,2,1\n")
    found, _ = read(rows_from(tmp_path / "x.csv", years))
    used = years.features_used()
    assert found.shape == (1, 4) and all(found[0, f.column] == 1 + f.column for f in (years.features[k] for k in used))


def test_names_that_lightgbm_wrote_with_underscores_are_found(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(X, y)
    forest = load(model)
    assert {feature.name for feature in forest.features} <= {name.replace(" ", "_") for name in X.columns}
    shuffled = pd.DataFrame(X)[X.columns[::-1]]
    shuffled.to_csv(tmp_path / "rows.csv", index=False)
    for rows in (shuffled, tmp_path / "rows.csv"):
        (batch,) = rows_from(rows, forest).batches()
        assert np.array_equal(evaluate(forest, batch.X).decision, model.predict(X))
    assert np.array_equal(evaluate(forest, shuffled).decision, model.predict(X))


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
@pytest.mark.parametrize(
    "line, fault",
    [("1,2", "line 5001: 2 cells, and the first line has 3"), ("x,2,3", "line 5001: column 'a' holds 'x'")],
)
def test_a_faulty_line_of_a_csv_file_is_named(tmp_path, name, line, fault):
    lines = ["a,b,c", *["1,2,3"] * 9000]
    lines[5000] = line
    text = "\n".join(lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    model = load(DecisionTreeClassifier(random_state=0).fit([[1, 2, 3], [2, 2, 3], [2, 3, 4]], [0, 1, 0]))
    with pytest.raises(RowsError, match=fault):
        read(rows_from(tmp_path / name, model))
