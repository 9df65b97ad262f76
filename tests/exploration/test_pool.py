"""Tests the processes that run the trials of a search."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from forestc.errors import OptionError
from forestc.exploration import pool
from forestc.exploration.candidate import Job
from forestc.exploration.study import Trial
from forestc.system import interrupts


def bench(mb=None):
    return SimpleNamespace(material=SimpleNamespace(request=SimpleNamespace(trial_seconds=9, trial_mb=mb), folder=None))


@pytest.mark.parametrize(("level", "speak"), [(logging.NOTSET, [True, False]), (logging.ERROR, [False, False])])
def test_one_worker_says_that_it_compiles_and_under_json_none(level, speak, monkeypatch):
    spoke = []

    def worker(given, job, speaks):
        spoke.append(speaks)
        return SimpleNamespace(job=job, pipe=SimpleNamespace(send=lambda job: None))

    monkeypatch.setattr(pool, "_Worker", worker)
    monkeypatch.setattr(logging.getLogger("forestc"), "isEnabledFor", lambda at: at >= level)
    workers = pool.LocalPool(bench(), 2)
    workers.give("one")
    workers.give("another")
    assert spoke == speak


def test_a_limit_of_memory_that_can_not_be_kept_is_refused(monkeypatch):
    monkeypatch.setattr(pool, "resident_mb", lambda pid: None)
    with pytest.raises(OptionError, match=r"trial_mb=: .*; leave it out"):
        pool.LocalPool(bench(mb=500), 1)


SCRIPT = """
import pickle
import forestc
from forestc.exploration import pool

class Material:
    asked = type("Asked", (), {"trial_seconds": 60.0, "trial_mb": None})

def own():
    pass

print("begun")
for bench in (b"", pickle.dumps(own)):
    try:
        worker = pool._Worker(bench, None, speaks=False)
        pool._end([worker])
        print("started")
    except forestc.ForestcError as error:
        print(error)
"""


def test_a_script_needs_no_guard_unless_it_defines_what_workers_call(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["begun", "started"] and len(lines) <= 4


@pytest.mark.parametrize("loses", [True, False])
def test_a_trial_whose_worker_a_signal_ends_is_dropped(loses, tmp_path):
    """Covers compiled code that turns the signal's exception into another one, or loses it."""

    def run(job):
        try:
            signal.raise_signal(signal.SIGTERM)
        except interrupts.Interrupted:
            if loses:
                raise SystemError("returned a result with an exception set") from None
        return Trial(3, "complete")

    job = Job("estimate", Trial(3, "running"))
    with interrupts.interruptible(), pytest.raises(interrupts.Interrupted):
        pool.carried_out(SimpleNamespace(run=run, material=SimpleNamespace(folder=tmp_path)), job)
    assert not list(tmp_path.iterdir())
