"""Tests Ctrl-C: one line, exit status 130, no incomplete file, no program of ours left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from models import trained
from thinned import only

import forestc
from forestc.errors import ToolError
from forestc.system.interrupts import CtrlC, interruptible
from forestc.toolchain.run import run_tool, together

# This script imitates gcc: a child does the work and never ends; a termination signal makes it remove its temporary
# file and end.
SLOW = """#!/bin/sh
half=${{TMPDIR:-.}}/half.$$
touch $half
trap 'rm $half; exit 1' TERM
sleep 1000 &
echo $! >> {pids}
wait
"""

INTERRUPTED = (
    # This is the output with --json.
    '{"error": {"kind": "Interrupted", "what": "interrupted", "where": "", "do": "", "status": %d}}\n'
)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    model, X, y = trained("xgboost-binary")
    model.get_booster().save_model(folder / "ill.json")
    pd.DataFrame(X).assign(target=y).to_csv(folder / "rows.csv", index=False)
    forestc.compile(model, X, folder / "done", name="ill")
    return folder


@pytest.fixture
def slow(tmp_path):
    """Returns an endless program, and a function that counts its running children."""
    pids, program = tmp_path / "pids", tmp_path / "slow"
    program.write_text(SLOW.format(pids=pids))
    program.chmod(0o755)

    def children():
        return [int(line) for line in pids.read_text().split()] if pids.exists() else []

    return program, children


def gone(pid):
    """Returns True if a process was killed. Its entry may stay until the first process of the machine reads it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(true):
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def start(work, *arguments, **more):
    command = [sys.executable, "-m", "forestc", *arguments]
    env = {**os.environ, **{name: str(value) for name, value in more.items()}}
    return subprocess.Popen(
        command, cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
        preexec_fn=heed,
    )  # fmt: skip


def heed():
    """Restores signals that the tests were started to ignore, as by `nohup`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("seconds", only([0.1, 0.3, 0.6, 1.2, 2.4], 2))
def test_compile_is_interrupted(work, tmp_path, seconds):
    command = ["compile", "ill.json", "--rows", "rows.csv", "-o", str(tmp_path / "out"), "--json"]
    process = start(work, *command, "-p", "simplify,share-thresholds,round-leaves", "--label", "target")
    wait_until(lambda: "forestc" in Path(f"/proc/{process.pid}/cmdline").read_text())
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if out:  # A fast machine had finished its work, and may have been ending.
        assert process.returncode in (0, -signal.SIGINT) and json.loads(out)["out"] == str(tmp_path / "out")
        return
    assert (process.returncode, out, err) == (130, "", INTERRUPTED % 130)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "status"), only([(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], 1)
)
def test_an_outside_tool_and_its_children_are_ended(work, tmp_path, slow, number, status):
    program, children = slow
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = ["check", "done", "--rows", "rows.csv", "--label", "target", "--engines", "c", "--json"]
    process = start(work, *command, CC=program, TMPDIR=scratch)
    wait_until(lambda: children() or process.poll() is not None)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (status, "", INTERRUPTED % status)
    wait_until(lambda: all(map(gone, children())))
    assert not list(scratch.iterdir())


def test_programs_that_run_at_once_are_ended_together(tmp_path, slow):
    program, children = slow
    failing = "while [ ! -s pids ]; do sleep 0.05; done; exit 3"
    began = time.monotonic()
    with pytest.raises(ToolError, match="sh: ended with exit status 3"):
        commands = [["sh", "-c", failing], [str(program)], [str(program)]]
        together([partial(run_tool, command, tmp_path) for command in commands])
    assert time.monotonic() - began < 60 and children()
    wait_until(lambda: all(map(gone, children())))


@pytest.mark.parametrize("deaf", [False, True])
def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path, slow, deaf):
    program, children = slow
    if deaf:
        program.write_text(program.read_text().replace("'rm $half; exit 1'", "''"))
    with pytest.raises(ToolError, match="took longer than 1 s"):
        run_tool([str(program)], tmp_path, seconds=1)
    wait_until(lambda: all(map(gone, children())))


def test_an_interrupt_while_a_class_is_made_is_an_interrupt():
    class Named:
        def __set_name__(self, owner, name):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(CtrlC), interruptible():
        type("Owner", (), {"name": Named()})


def test_an_interrupt_while_a_folder_is_replaced_keeps_the_old_one(work, monkeypatch):
    from forestc.manifest.design import write_folder

    real, moves = Path.replace, []

    def interrupted(self, target):
        moves.append(self)
        if len(moves) == 2:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(work / "done", {"manifest.json": ""})
    assert forestc.open_design(work / "done").changed_files() == ()
    assert {path.name for path in work.iterdir()} == {"done", "ill.json", "rows.csv"}


def test_a_synthesis_that_is_interrupted_leaves_the_rest_and_says_so(run, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("forestc.commands.compile.synthesis_figures", interrupted)
    out = tmp_path / "out"
    command = ["compile", "ill.json", "--rows", "rows.csv", "--label", "target", "--device", "ecp5-25k", "-o", out]
    finish = f"forestc synth {out} --device ecp5-25k"
    said = f"forestc: interrupted; {out} is whole but for the synthesis: {finish}\n"
    assert run(*command) == (130, "", said)
    assert forestc.check(out, "rows.csv", label="target").ok
