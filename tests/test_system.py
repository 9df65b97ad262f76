"""Tests calls that only some systems have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from forestc.system import calls as system


def test_a_program_ends_with_its_children():
    code = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()']).pid, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        child = int(process.stdout.readline())
        os.kill(child, 0)
        system.end_process(process)
        assert process.wait() == -signal.SIGTERM
    for _ in range(1000):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        with open(f"/proc/{child}/stat") as stat:  # The child was killed, and its parent has not read its status.
            if stat.read().split()[2] == "Z":
                return
    pytest.fail("the child runs on")


def test_a_file_is_locked_for_one_at_a_time(tmp_path):
    with (tmp_path / "lock").open("w") as first, (tmp_path / "lock").open("w") as second:
        assert system.lock_file(first, wait=False)
        assert not system.lock_file(second, wait=False)
        first.close()
        assert system.lock_file(second, wait=False)


def test_memory_is_known_without_proc(monkeypatch):
    known = system.resident_mb(os.getpid())
    assert known is not None and known > 10
    monkeypatch.setattr(system, "Path", _NoFile)
    assert system.resident_mb(os.getpid()) == pytest.approx(known, rel=0.2)
    monkeypatch.setenv("PATH", "")
    assert system.resident_mb(os.getpid()) is None


class _NoFile:
    def __init__(self, path):
        pass

    def read_text(self, encoding):
        raise FileNotFoundError
