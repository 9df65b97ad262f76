"""What passes made, kept in the study's folder: the same bytes as without, and nothing runs twice."""

from __future__ import annotations

import os
import zlib
from dataclasses import replace

import exploration_trainers
import numpy as np
import pytest
from thinned import thinned

import forestc
from forestc.commands.explore import COMMANDS
from forestc.errors import CheckError, OptionError
from forestc.exploration.candidate import Bench, Job
from forestc.exploration.goals import goals_of
from forestc.exploration.material import material_of
from forestc.exploration.request import ExploreRequest
from forestc.exploration.space import SHRINK, starts
from forestc.exploration.study import Trial
from forestc.forest.text import print_forest
from forestc.passes import PASSES
from forestc.passes.base import PassResult
from forestc.passes.promises import EveryPath, Exact
from forestc.search import memory
from forestc.search.memory import ResultStore, StoredArrays, printed_result, read_result
from forestc.toolchain import verilator

# without extract-rules, whose result depends on how fast the machine is
WAYS = ("prune-splits", "prune-trees", "prune-trees+prune-splits", "regrow-trees", "none", 1, 2)


@pytest.fixture
def material(tmp_path):
    exploration_trainers.written(tmp_path, depth=3)
    asked = ExploreRequest(
        tmp_path / "model.forest", tmp_path / "train.csv", goals=goals_of(None, "xcup", None), label="target",
        device="xcup", validation=tmp_path / "test.csv",
    )  # fmt: skip
    return material_of(asked, tmp_path / "study")


def choice(material, way):
    """Options that go one way; a number is a level."""
    if isinstance(way, int):
        return {"level": way}
    known = [start for start in starts(material.space) if start.get(SHRINK) == way]
    if known:
        return known[-1]
    start = starts(material.space)[4]
    before = {key: value for key, value in start.items() if key.startswith(("share-thresholds", "quantize-inputs"))}
    return before | {"round-leaves.leaf_bits": 4, SHRINK: way}


def files(folder):
    """The content of a compiled folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("way", thinned(WAYS, keep=4))
def test_a_folder_of_kept_results_has_the_bytes_of_one_without(material, way, tmp_path, monkeypatch):
    monkeypatch.setattr(verilator, "find_verilator", lambda: None)  # the check of the folder is no matter here
    first = Bench(material, COMMANDS)
    trial = first.run(Job("estimate", Trial(0, "running", choice(material, way))))
    other = Bench(material, COMMANDS)  # as another worker
    with monkeypatch.context() as patch:
        for step in PASSES.values():
            for made in ("run", "ladder"):
                patch.setattr(step, made, None, raising=False)  # it runs none again
        if way != 1:
            finished = other.run(Job("finish", trial))
            assert other.run(Job("estimate", Trial(0, "running", trial.options))).figures == trial.figures
    if way == 1:
        finished = other.run(Job("finish", trial))
    forestc.compile(
        material.request.model, material.request.rows, tmp_path / "without" / "design", **first.keywords(finished)
    )
    made = files(material.folder / "trials" / "0000" / "design")
    made.pop("check.json")
    assert made == files(tmp_path / "without" / "design")


def test_results_are_read_as_they_were(material):
    bench = Bench(material, COMMANDS)
    for way in WAYS:
        options = choice(material, way)
        for result in bench.results(options, material.forest, 0):
            printed = printed_result(result)
            assert printed is not None
            again = read_result(printed)
            assert print_forest(again.forest) == print_forest(result.forest)
            assert again.report == result.report
            assert [(type(p), vars(p)) for p in again.promises] == [(type(p), vars(p)) for p in result.promises]


def test_what_can_not_be_read_back_is_not_kept(material):
    result = PassResult(material.forest, (EveryPath(False, 0.0),))
    assert printed_result(result) is None
    assert printed_result(replace(result, promises=(Exact(),))) is not None
    assert printed_result(replace(result, promises=(Exact(),), report={"pair": (1, 2)})) is None


@pytest.mark.parametrize("damage", [b"", b"{}", b"no json", b"\xff", b'{"report": 1, "promises": [], "forest": "x"}'])
def test_damaged_files_are_made_again(material, damage):
    trial = Job("estimate", Trial(0, "running", choice(material, "prune-splits")))
    right = Bench(material, COMMANDS).run(trial)
    paths = list((material.folder / memory.FOLDER).iterdir())
    assert paths
    for number, path in enumerate(paths):
        path.write_bytes(damage if number % 2 else zlib.compress(damage))
    again = Bench(material, COMMANDS).run(trial)
    assert replace(again, seconds={}) == replace(right, seconds={})


def test_files_of_python_objects_are_not_opened(tmp_path):
    memory = StoredArrays(ResultStore(tmp_path), "key")
    memory.remember("numbers", {"a": np.arange(3)})
    assert memory.recall("numbers")["a"].tolist() == [0, 1, 2] and memory.recall("others") is None
    file = tmp_path / "objects.npz"
    np.savez(file, a=np.array([Exact()], dtype=object))
    ResultStore(tmp_path).put("key numbers", file.read_bytes())
    assert memory.recall("numbers") is None


def test_the_folder_is_bounded_and_the_oldest_go_first(tmp_path):
    store = ResultStore(tmp_path / "kept", most=3000)
    content = np.random.default_rng(0).bytes(1000)
    for number in range(4):
        store.put(str(number), content)
        for age, path in enumerate(sorted(store.folder.iterdir(), key=os.path.getmtime)):
            os.utime(path, (1000 + age, 1000 + age))
        if number == 1:
            assert store.get("0") == content  # in use, so 1 is the oldest
    assert sum(path.stat().st_size for path in store.folder.iterdir()) <= 3000
    assert store.get("1") is None and store.get("3") == content


def test_results_of_other_passes_are_refused(material, tmp_path):
    with pytest.raises(OptionError, match="1 results of 3 passes"):
        forestc.compile(
            material.forest, material.X, tmp_path / "out", passes="simplify,round-leaves", targets="c",
            results=[PassResult(material.forest, (Exact(),))],
        )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_kept_forests_are_checked_again(material):
    """A file that says something else does not reach a design: the promises of the passes are checked as ever."""
    bench = Bench(material, COMMANDS)
    trial = bench.run(Job("estimate", Trial(0, "running", choice(material, "none"))))
    for path in (material.folder / memory.FOLDER).iterdir():
        result = read_result(zlib.decompress(path.read_bytes()))
        moved = result.forest.bias + np.arange(result.forest.n_outputs, dtype=result.forest.bias.dtype)
        changed = replace(result, forest=replace(result.forest, bias=moved))
        path.write_bytes(zlib.compress(printed_result(changed)))
    with pytest.raises(CheckError):
        Bench(material, COMMANDS).run(Job("finish", trial))
