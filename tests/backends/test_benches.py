"""Tests that the written benches tell files that they can't read from wrong answers, in more than one simulator."""

from __future__ import annotations

import subprocess

import pytest
from models import trained
from vhdl_tools import analyzed, run_bench

import forestc

FILES = {"verilog": ["vectors.txt"], "engine": ["images.txt", "rows.txt", "results.txt"]}


def bench(target, latency, simulator, folder, need_tool):
    """Compiles a design's bench for a simulator. Returns its folder, and a function that runs it and returns its last
    line."""
    need_tool("iverilog" if simulator == "icarus" else simulator)
    model, X, y = trained("forest-text-labels")
    options = {"latency": latency} if target == "verilog" else {}
    forestc.compile(model, X, folder / "out", label=y, targets=target, name="m", **options)
    here = folder / "out" / target
    sources, top = (
        (["m.v", "m_tb.v"], "m_tb") if target == "verilog" else (["m_engine.v", "m_engine_tb.v"], "m_engine_tb")
    )
    command, program = ["iverilog", "-g2005", "-o", "x.vvp", *sources], ["vvp", "-n", "x.vvp"]
    if simulator == "verilator":
        flags = ["--binary", "--timing", "-Wno-fatal", "-Wno-lint", "-O0", "--Mdir", "x"]
        command, program = ["verilator", *flags, "--top-module", top, *sources], [f"x/V{top}"]
    subprocess.run(command, cwd=here, check=True, capture_output=True)

    def run():
        done = subprocess.run(program, cwd=here, check=True, capture_output=True, text=True, timeout=60)
        return [line for line in done.stdout.splitlines() if "$finish" not in line][-1]

    return here, run


BENCHES = [("verilog", 0), ("verilog", 2), ("engine", 0)]


def cut(text):
    """Returns a file's first bytes: without its last line break, half of its last line, and a line and a half."""
    last = text.rstrip("\n").rindex("\n") + 1
    line = text.index("\n") + 1
    return text[:-1], text[: (last + len(text)) // 2], text[: line + (text.index("\n", line) - line) // 2]


@pytest.mark.parametrize(("target", "latency"), BENCHES)
def test_a_file_that_cannot_be_read_is_no_wrong_answer(target, latency, tmp_path, need_tool):
    here, run = bench(target, latency, "icarus", tmp_path, need_tool)
    assert run().startswith("PASS ")
    for name in FILES[target]:
        text = (here / name).read_text()
        lines = text.splitlines()
        wrong = "\n".join([*lines[:5], "g" * len(lines[5]), *lines[6:]])
        half = "".join(text.splitlines(keepends=True)[: len(lines) // 2])
        # In a file of vectors, fewer lines or digits are vectors, too.
        more = [*cut(text), half] if target == "engine" else cut(text)[2:]
        for content in (wrong, *more, "", None):
            if content is None:
                (here / name).unlink()
            else:
                (here / name).write_text(content)
            assert run().startswith("can't read "), (name, content)
        (here / name).write_text(text)
    assert run().startswith("PASS ")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "latency"), BENCHES)
def test_benches_run_in_verilator(target, latency, tmp_path, need_tool):
    """Verilator 5.006 sees no change of what $fscanf writes, reads nothing into arrays, and returns 0 at the end."""
    here, run = bench(target, latency, "verilator", tmp_path, need_tool)
    assert run().startswith("PASS ")
    text = (here / FILES[target][0]).read_text()
    for content in ("", *(cut(text) if target == "engine" else cut(text)[2:])):
        (here / FILES[target][0]).write_text(content)
        assert run().startswith("can't read ")


@pytest.mark.parametrize("stream", [False, True])
def test_vhdl_benches_stop_where_they_cannot_read(stream, tmp_path, need_tool):
    need_tool("ghdl")
    model, X, y = trained("forest-text-labels")
    options = {"stream": forestc.StreamOptions()} if stream else {}
    forestc.compile(model, X, tmp_path / "out", label=y, targets="vhdl", name="m", latency=2, **options)
    here, top = tmp_path / "out" / "vhdl", "m_axis_tb" if stream else "m_tb"
    analyzed(here, ["m.vhd", *(["m_axis.vhd"] if stream else []), f"{top}.vhd"], "08")
    good = (here / "vectors.txt").read_text()
    assert "\nPASS " in "\n" + run_bench(here, top, "08")
    for damaged in ("", "g" + good[1:], *cut(good)[1:]):
        (here / "vectors.txt").write_text(damaged)
        with pytest.raises(AssertionError, match="can't read the vectors"):
            run_bench(here, top, "08")
    (here / "vectors.txt").unlink()
    with pytest.raises(AssertionError, match=r"vectors\.txt"):
        run_bench(here, top, "08")
