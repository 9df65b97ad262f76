"""Programs that are kept: the same content takes them, any other makes them anew; packaged ones are prepared once."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import forestc.toolchain.program_cache as kept_module
from forestc.toolchain.packaged import prepare
from forestc.toolchain.program_cache import cached_program


@pytest.fixture
def made(tmp_path):
    """A function that counts how often it makes a file."""
    calls = []

    def make():
        calls.append(1)
        path = tmp_path / f"made{len(calls)}"
        path.write_text(f"made {len(calls)}")
        path.chmod(0o755)
        return path

    return make, calls


def test_the_same_content_is_made_once(made, tmp_path, monkeypatch):
    monkeypatch.setenv("FORESTC_CACHE", str(tmp_path / "cache"))
    make, calls = made
    assert cached_program(["a", b"b"], tmp_path / "x", make).read_text() == "made 1"
    again = cached_program(["a", b"b"], tmp_path / "x", make)
    assert again == tmp_path / "x" and again.read_text() == "made 1" and os.access(again, os.X_OK)
    assert len(calls) == 1
    for other in (["ab"], ["a", "b", ""], ["b", "a"], ["a", "c"]):
        cached_program(other, tmp_path / "y", make)
    assert len(calls) == 5
    assert not [path for path in (tmp_path / "cache" / "programs").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("folder", ["", "/proc/nowhere"])
def test_without_a_folder_everything_is_made(made, tmp_path, monkeypatch, folder):
    monkeypatch.setenv("FORESTC_CACHE", folder)
    make, calls = made
    for _ in range(2):
        assert cached_program(["a"], tmp_path / "x", make).exists()
    assert len(calls) == 2


def test_the_folder_is_the_users(made, tmp_path, monkeypatch):
    make, _ = made
    monkeypatch.delenv("FORESTC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    cached_program(["a"], tmp_path / "x", make)
    assert len(list((tmp_path / "xdg" / "forestc" / "programs").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    cached_program(["a"], tmp_path / "x", make)
    assert len(list((tmp_path / "home" / ".cache" / "forestc" / "programs").iterdir())) == 1


def test_what_was_not_used_for_longest_makes_room(made, tmp_path, monkeypatch):
    monkeypatch.setenv("FORESTC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_module, "MOST_BYTES", 90)  # two files of 6 bytes and a hash of 32
    make, calls = made
    for age, name in enumerate(("a", "b")):
        cached_program([name], tmp_path / "x", make)
        newest = max((tmp_path / "cache" / "programs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (age, age))
    cached_program(["a"], tmp_path / "x", make)  # used again: now b is the oldest
    cached_program(["c"], tmp_path / "x", make)
    assert len(calls) == 3
    cached_program(["a"], tmp_path / "x", make)
    assert len(calls) == 3
    cached_program(["b"], tmp_path / "x", make)
    assert len(calls) == 4


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"X" + data[1:], lambda data: b""])
def test_a_damaged_program_is_made_again(made, tmp_path, monkeypatch, damage):
    monkeypatch.setenv("FORESTC_CACHE", str(tmp_path / "cache"))
    make, calls = made
    cached_program(["a"], tmp_path / "x", make)
    (place,) = (tmp_path / "cache" / "programs").iterdir()
    place.write_bytes(damage(place.read_bytes()))
    assert cached_program(["a"], tmp_path / "x", make).read_text() == "made 2" and len(calls) == 2
    assert cached_program(["a"], tmp_path / "x", make).read_text() == "made 2" and len(calls) == 2


def test_one_process_prepares_a_packaged_program(tmp_path, monkeypatch, need_tool):
    need_tool("yowasp_runtime")
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path))
    run = """
import pathlib, sys, time
with open("log.txt", "a") as log:
    log.write(sys.argv[-1])
time.sleep(0.1)
pathlib.Path("wasm").mkdir()
pathlib.Path("wasm/code").touch()
"""
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: prepare.__wrapped__("tool", (sys.executable, "-c", run)), range(3)))
    assert (tmp_path / "tool" / "log.txt").read_text() == "-V"


def test_a_program_that_can_not_be_prepared_raises_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path))
    prepare.__wrapped__("tool", (sys.executable, "-c", "raise SystemExit(1)"))
    monkeypatch.setenv("YOWASP_CACHE_DIR", "/proc/nowhere")
    prepare.__wrapped__("tool", ("no such program",))
