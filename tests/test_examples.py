"""Tests the examples: all run, and the demo shows no difference."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from forestc.frontends import load
from forestc.rows.training_rows import read_table

EXAMPLES = Path(__file__).parents[1] / "examples"


def module(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_the_demo_finds_figures_of_others_for_each_of_its_rows():
    demo = module("demo")
    columns = demo.others()
    assert len(columns) >= 3
    for row, key in demo.PEERS.items():
        assert any(isinstance(figures.get(key), int | float) for figures in columns.values()), row


def test_the_files_to_try_forestc_on_belong_together(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    runpy.run_path(str(EXAMPLES / "first_files.py"))
    assert "model.json, train.csv (398 rows) and test.csv (171 rows)" in capsys.readouterr().out
    model, rows = load("model.json"), read_table("test.csv", "target")
    assert model.features and {feature.name for feature in model.features} <= set(rows.names)


@pytest.mark.long
@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_an_example_draws_its_plot(example, tmp_path):
    command = [sys.executable, "-W", "error::UserWarning:__main__", str(example)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"}
    )
    assert done.returncode == 0 and done.stdout, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_the_demo_shows_its_tables(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), str(tmp_path)],
        capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    demo = module("demo")
    for row in demo.PEERS:
        (line,) = [line for line in done.stdout.splitlines() if row in line]
        assert len(re.findall(r"\d[\d,.]*(?= │)", line.partition(row)[2])) >= (2 if row != demo.FLASH else 1), line
    assert f"Open {tmp_path / 'report.html'}" in done.stdout.replace("\n", "")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in demo.others() if "xcup_LUT" in demo.others()[name])


def firmware_demo(folder, **environment):
    command = [sys.executable, str(EXAMPLES / "firmware_qemu" / "demo.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_the_firmware_runs_in_qemu(need_tool, tmp_path):
    need_tool("arm-none-eabi-gcc")
    need_tool("qemu-system-arm")
    done = firmware_demo(tmp_path, COLUMNS="120")
    assert done.returncode == 0, done.stderr
    assert "self-test: all rows right" in done.stdout
    assert "classes and scores as the compiled forest's: 20 of 20; classes as the model's: 20 of 20" in done.stdout
    assert len(re.findall(r"^│ +\d+ │ +[01] │ +[01] │ +[01] │ +\d+ │$", done.stdout, re.MULTILINE)) == 20
    # With the image of another forest the self-test finds wrong answers.
    header = tmp_path / "design" / "c" / "cancer.h"
    header.write_text(re.sub(r"< (\d+)u\)", lambda m: f"< {int(m[1]) + 9}u)", header.read_text()))
    include = [f"-I{tmp_path}", f"-I{header.parent}", "-T", str(EXAMPLES / "firmware_qemu" / "link.ld")]
    sources = [str(EXAMPLES / "firmware_qemu" / name) for name in ("start.c", "main.c")]
    flags = ["-mcpu=cortex-m3", "-mthumb", "-Os", "-ffreestanding", "-nostdlib"]
    image = str(tmp_path / "wrong.elf")
    subprocess.run(["arm-none-eabi-gcc", *flags, *include, *sources, "-lgcc", "-o", image], check=True)
    qemu = ["qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-serial", "none", "-monitor", "none"]
    run = subprocess.run(
        [*qemu, "-semihosting-config", "enable=on,target=native", "-kernel", image],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert run.returncode == 1 and re.search(r"selftest \d+\n", run.stdout + run.stderr)


@pytest.mark.long
def test_the_firmware_demo_says_which_tool_is_missing(tmp_path):
    done = firmware_demo(tmp_path, PATH=str(tmp_path))
    assert done.returncode == 1 and done.stderr == (
        "this example needs arm-none-eabi-gcc and qemu-system-arm, which are not on the PATH; "
        "on Debian: apt install gcc-arm-none-eabi qemu-system-arm\n"
    )


@pytest.mark.long
def test_a_model_is_replaced_while_digits_go_through(need_tool, tmp_path):
    need_tool("verilator")
    command = [sys.executable, str(EXAMPLES / "engine_digits.py"), str(tmp_path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before, after = (float(re.search(rf"accuracy {when}: ([\d.]+)", out)[1]) for when in ("before", "after"))
    assert before < after and "of the image sent after 200" in out


@pytest.mark.long
def test_the_product_answers_alike_in_c_and_on_its_board(tmp_path, need_tool):
    need_tool("verilator")
    command = [sys.executable, str(EXAMPLES / "accelerometer" / "demo.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"})
    assert done.returncode == 0 and len(re.findall(r"^│ (C,|board) .* 0 │$", done.stdout, re.MULTILINE)) == 2, (
        done.stderr
    )
