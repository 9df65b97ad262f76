"""Tests capacities chosen for a device's memory, folders, and the two commands."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from models import trained

import forestc
from forestc.costs.devices import DEVICES
from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY, described, open_engine, write_engine
from forestc.engine.sizing import EngineRequest, blocks_of, capacity_for
from forestc.errors import ForestcError, OptionError

WANTED = EngineRequest(100, 12_800, 28, word_bits=8)


def test_the_most_walkers_that_the_memory_has_room_for():
    for expected, device, walkers, banks in (
        (WANTED, "ecp5-85k", 100, 2),
        (WANTED, "ecp5-45k", 54, 2),
        (EngineRequest(100, 65_536, 64, 10), "ecp5-85k", 69, 1),
        (replace(WANTED, banks=1, walkers=20), "ecp5-85k", 20, 1),
        (EngineRequest(40, 22_000, 16), "ice40-up5k", 2, 1),
    ):
        capacity = capacity_for(expected, device)
        assert (capacity.walkers, capacity.banks) == (walkers, banks), device
        assert capacity.walkers * capacity.slots >= expected.trees
        assert capacity.walkers * capacity.nodes >= expected.nodes
        blocks, single = blocks_of(capacity, DEVICES[device])
        memory = DEVICES[device].memory
        assert blocks <= memory.blocks and single <= memory.single
        assert capacity.memory == ("spram" if device == "ice40-up5k" else "block")
        assert capacity.node_bits <= (32 if single else 36)


def test_words_are_as_wide_as_nodes_have_room_for():
    assert capacity_for(replace(WANTED, word_bits=None), "ecp5-85k").word_bits == 16
    assert capacity_for(EngineRequest(40, 22_000, 16), "ice40-up5k").word_bits == 11


def test_what_is_too_large_is_said():
    with pytest.raises(ForestcError, match=r"takes \d+ blocks of memory, and ecp5-25k has 56.*nodes="):
        capacity_for(EngineRequest(100, 200_000, 28), "ecp5-25k")
    with pytest.raises(OptionError, match=r"the memory of xcup is not known.*ecp5-85k"):
        capacity_for(WANTED, "xcup")
    with pytest.raises(OptionError, match="number of walkers depends on the device"):
        capacity_for(WANTED, None)
    with pytest.raises(OptionError, match=r"a node takes \d\d bits .*, and memories have 36.*narrower words"):
        Capacity(1, 65_536, 1, 64, word_bits=32)
    for wrong in ({"nodes": 100}, {"walkers": 0}, {"banks": 3}, {"word_bits": 1}, {"features": 1}, {"slots": 300}):
        with pytest.raises(OptionError):
            Capacity(**({"walkers": 1, "nodes": 128, "slots": 1, "features": 4} | wrong))


def test_a_folder_is_written_whole_and_read_again(tmp_path):
    capacity = Capacity(2, 64, 3, 8, name="one")
    write_engine(tmp_path / "e", capacity)
    assert open_engine(tmp_path / "e") == capacity
    assert json.loads((tmp_path / "e" / CAPACITY).read_text()) == json.loads(json.dumps(described(capacity)))
    write_engine(tmp_path / "e", replace(capacity, name="two"))
    assert sorted(path.name for path in (tmp_path / "e").iterdir()) == [CAPACITY, "two.v", "two_image.h", "two_tb.v"]
    (tmp_path / "e" / "mine.txt").write_text("x")
    with pytest.raises(ForestcError, match=r"holds 'mine.txt', which forestc did not write"):
        write_engine(tmp_path / "e", capacity)
    for text in ("{", "[]", '{"format": 1, "capacity": {}}', '{"format": 1, "capacity": 3}', '{"format": 9}'):
        (tmp_path / "e" / CAPACITY).write_text(text)
        with pytest.raises(ForestcError, match=r"again|no capacity"):
            open_engine(tmp_path / "e")
    with pytest.raises(ForestcError, match="no readable engine"):
        open_engine(tmp_path)


def test_the_commands_write_an_engine_and_an_image(tmp_path, run):
    model, X, _ = trained("xgboost-binary")
    model.save_model(tmp_path / "model.json")
    np.save(tmp_path / "rows.npy", X)
    engine, image = tmp_path / "engine", tmp_path / "image.bin"

    asked = ["--trees", 20, "--nodes", 1024, "--features", 30, "--walkers", 5, "--word-bits", 13, "--json"]
    code, out, _ = run("engine", *asked, "-o", engine)
    assert code == 0 and json.loads(out)["walkers"] == 5
    expected = ["image", tmp_path / "model.json", "--rows", tmp_path / "rows.npy", "--engine", engine, "-o", image]
    code, out, _ = run(*expected, "--json")
    figures = json.loads(out)
    assert code == 0 and figures["bytes"] == image.stat().st_size and figures["agreement"] == 1.0
    assert (
        figures["clocks_per_row"] >= 15
        and figures["slots"] <= 4
        and set(figures["columns"]) <= set(map(str, range(30)))
    )
    written = image.read_bytes()
    code, _, err = run("engine", "--walkers", 2, "--nodes", 64, "--features", 30, "--word-bits", 13, "-o", engine)
    assert code == 0
    code, _, err = run(*expected)
    assert code == 1 and "nodes" in err and image.read_bytes() == written
    code, _, err = run("engine", "--walkers", "some", "-o", engine)
    assert code == 2 and "give a number, or auto" in err


def test_an_image_of_a_compiled_folder(tmp_path):
    model, X, _ = trained("xgboost-binary")
    forestc.make_engine(tmp_path / "engine", trees=20, nodes=2048, features=30, walkers=8, word_bits=13, scores=True)
    done = forestc.compile(model, X, tmp_path / "out", targets="engine", engine=tmp_path / "engine", name="m")
    figures = forestc.make_image(tmp_path / "out", out=tmp_path / "i.bin", engine=tmp_path / "engine")
    assert figures["hash"] == forestc.make_image(done.design, engine=tmp_path / "engine")["hash"]
    lines = [int(line.split()[1], 16) for line in done.design.path("engine_image").read_text().splitlines()[1:]]
    assert np.fromfile(tmp_path / "i.bin", dtype="<u4").tolist() == lines
    assert done.design.engine == open_engine(tmp_path / "engine")
    with pytest.raises(OptionError, match="an engine is given, and not wanted"):
        forestc.compile(model, X, tmp_path / "out", targets="c", engine=tmp_path / "engine")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "../../../elsewhere/top"}, "name is .*not a plain identifier"),
        ({"name": "a(); endmodule module b"}, "name is .*not a plain identifier"),
        ({"name": "module"}, "name is 'module', a word that the files use otherwise.*name=m_module"),
        ({"walkers": True}, "walkers is true, not a whole number"),
        ({"walkers": None}, "walkers is null"),
        ({"nodes": []}, r"nodes is \[\]"),
        ({"load": "telnet"}, 'load is "telnet", not one of "stream", "axi-lite"'),
        ({"user_bits": 3.7}, "user_bits is 3.7, not a whole number"),
        ({"slots": 10**30}, r"capacity\.slots is no finite number"),
        ({"nodes": 100}, "100 nodes are no power of 2"),
        ({"more": 1}, "more is unknown"),
    ],
)
def test_an_engine_of_somebody_else_is_data(tmp_path, change, said):
    """Its name is neither a path nor Verilog, its numbers are numbers; nothing is written."""
    model, X, y = trained("tree-binary")
    write_engine(tmp_path / "engine", Capacity(2, 64, 3, 8))
    path = tmp_path / "engine" / CAPACITY
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"capacity": content["capacity"] | change}))
    for run in (
        lambda: forestc.compile(model, X, tmp_path / "out", label=y, targets="engine", engine=tmp_path / "engine"),
        lambda: forestc.make_image(model, X, tmp_path / "new.bin", engine=tmp_path / "engine", label=y),
    ):
        with pytest.raises(ForestcError, match=rf"(?s)engine.*{said}") as caught:
            run()
        assert CAPACITY in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["engine"]


@pytest.mark.parametrize("change", [{"id": "0"}, {"widths": {}}, {"widths": {"address_bits": 7}}, {"more": 1}])
def test_what_follows_from_a_capacity_is_that_of_the_capacity(tmp_path, change):
    write_engine(tmp_path / "engine", Capacity(2, 64, 3, 8))
    path = tmp_path / "engine" / CAPACITY
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ForestcError, match=rf"engine\.json is damaged \({next(iter(change))}"):
        open_engine(tmp_path / "engine")


@pytest.mark.parametrize("change", [{"name": "a b"}, {"walkers": True}, {"scores": 1}, {"memory": "flash"}])
def test_a_capacity_has_values_of_its_types(change):
    with pytest.raises(OptionError, match=f"engine: {next(iter(change))} is"):
        replace(Capacity(2, 64, 3, 8), **change)
