"""Tests a study's folder from an untrusted source: its links and addresses lead a search nowhere else."""

from __future__ import annotations

import json

import pytest
from made_studies import made_study

from forestc.commands.explore import explore, stored_arguments
from forestc.errors import ForestcError
from forestc.exploration import sampling
from forestc.exploration.study import open_study
from forestc.search.memory import FOLDER, ResultStore, StoredArrays


@pytest.mark.parametrize("name", [".lock", "storage.log", FOLDER, "trials/0001"])
def test_a_search_follows_no_link_out_of_its_folder(tmp_path, name):
    study = made_study(tmp_path / "study", trials=1)
    outside = tmp_path / "outside"
    if "." in name and name != FOLDER:
        outside.write_text("mine\n")
    else:
        outside.mkdir()
    (study.folder / name).symlink_to(outside)
    with pytest.raises(ForestcError, match=f'study: "{name}" leads out of the folder; remove it'):
        explore(train="xgboost", rows="no.csv", label="y", device="ecp5-25k", out=study.folder, resume=True)
    assert outside.read_text() == "mine\n" if outside.is_file() else not list(outside.iterdir())


def test_a_trial_is_read_in_its_folder_alone(tmp_path):
    study, other = made_study(tmp_path / "study", trials=1), made_study(tmp_path / "other", trials=2)
    (study.folder / "trials/0001").symlink_to(other.folder / "trials/0001")
    with pytest.raises(ForestcError, match=r'"trials/0001/trial\.json" leads out of the folder'):
        open_study(study.folder)


def test_a_resumed_search_makes_no_database(tmp_path):
    study = made_study(tmp_path / "study", trials=1)
    path = tmp_path / "made.db"
    with pytest.raises(ForestcError, match="the storage has no study named study"):
        sampling.opened(study.folder, f"sqlite:///{path}", study.goals, 0, resume=True)
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": 3}, "rows is 3, not text or null"), ({"seed": True}, "seed is true, not a whole number"),
        ({"train": [1]}, r"train\[0\] is 1"), ({"top": "sky"}, 'top is "sky", not one of'),
        ({"trials": -1}, "trials is -1, not 0 to"), ({"unfinished": {"untried": "x"}}, r"unfinished\.untried is"),
        ({"label": {}}, "label is"), ({"trial_seconds": float("nan")}, "trial_seconds is no finite number"),
        ({"format": True}, "format is true"),
    ],
)  # fmt: skip
def test_what_a_study_was_asked_has_its_types(tmp_path, change, said):
    study = made_study(tmp_path / "study", trials=1)
    path = study.folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ForestcError, match=rf"study\.json is damaged \(.*{said}"):
        stored_arguments(study.folder)


def test_kept_content_takes_no_more_memory_than_it_says(tmp_path, monkeypatch):
    import io
    import zipfile
    import zlib

    import numpy as np

    memory = StoredArrays(ResultStore(tmp_path), "key")
    memory.remember("arrays", {"a": np.arange(3)})
    assert memory.recall("arrays")["a"].tolist() == [0, 1, 2]
    (path,) = tmp_path.iterdir()
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    array = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", array)
    path.write_bytes(zlib.compress(file.getvalue()))  # The header claims that the array holds 8 TB.
    assert memory.recall("arrays") is None
    bomb = zlib.compressobj(9)
    zeros = bytes(1 << 20)
    monkeypatch.setattr("forestc.search.memory.MOST_CONTENT", 10 << 20)
    path.write_bytes(b"".join(bomb.compress(zeros) for _ in range(11)) + bomb.flush())
    assert memory.recall("arrays") is None
