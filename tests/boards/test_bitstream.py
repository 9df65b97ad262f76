"""Tests bitstreams: the table of boards, clocks, errors of the commands, and one bitstream."""

import json
import re
import shutil
from functools import partial

import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.boards.bitstream import Bitstream, BoardClock, pads
from forestc.boards.platforms import platform_of, serial_pins
from forestc.commands.bitstream import bitstream
from forestc.commands.check import check
from forestc.costs.boards import FPGAS, board_of
from forestc.errors import OptionError

SUPPORTED = [board for board in FPGAS if board.platform]
WANTED = {
    "icebreaker",
    "upduino",
    "hx8k",
    "ulx3s-25f",
    "orangecrab-25f",
    "colorlight-i5",
    "tang-nano-9k",
    "tang-nano-20k",
}


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    X, y = load_iris(return_X_y=True)
    folder = tmp_path_factory.mktemp("tree") / "out"
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    return forestc.compile(model, X, folder, label=y, targets=["verilog", "c"]).design


@pytest.mark.parametrize("board", SUPPORTED, ids=lambda board: board.names[0])
def test_each_board_has_a_clock_a_line_and_a_loader(board):
    platform = platform_of(board)
    timing = BoardClock.of(platform.default_clk_frequency / 1e6, None, 115_200)
    assert timing.parts == 1 and board.uart and board.loader
    assert abs(timing.mhz * 1e6 / timing.divisor / 115_200 - 1) < 0.01
    slow = BoardClock.of(timing.board_mhz, timing.board_mhz / 4, 115_200)
    plan = platform.prepare(pads(platform, slow), "top")
    used = [text for name, text in plan.files.items() if name.endswith((".pcf", ".lpf", ".cst"))]
    text = used[0] if isinstance(used[0], str) else used[0].decode()
    assert len(used) == 1
    for port, pin in zip(("rx", "tx"), serial_pins(board), strict=True):
        assert re.search(rf'uart_0__{port}__io"? (?:SITE )?"?{pin}\b', text)
    commands = json.loads(plan.files["build_top.json"])["commands"]
    assert commands[0][0] == "yosys" and commands[1][0].startswith("nextpnr-")


def test_the_boards_of_the_page_are_there():
    assert {name for board in SUPPORTED for name in board.names} >= WANTED


@pytest.mark.parametrize("name, given", [("Tang Nano 20K", "-noalu -nowidelut"), ("Tang Nano 9K", "-nowidelut")])
def test_gowin_chips_have_luts_whose_paths_are_timed(name, given):
    platform = platform_of(board_of(name))
    plan = platform.prepare(pads(platform, BoardClock.of(27, None, 115_200)), "top")
    script = str(plan.files["top.ys"])
    assert f"synth_gowin {given} -top" in script and "techmap -map luts.map" in script
    assert "module LUT3" in plan.files["luts.map"]


@pytest.mark.parametrize("given, clock, baud, parts, divisor", [
    (12, None, 115_200, 1, 104), (12, 6, 115_200, 2, 52), (48, 8, 115_200, 6, 69), (27, 27, 1_000_000, 1, 27),
    (12, None, 1_500_000, 1, 8),
])  # fmt: skip
def test_timing(given, clock, baud, parts, divisor):
    timing = BoardClock.of(given, clock, baud)
    assert (timing.parts, timing.divisor) == (parts, divisor)


@pytest.mark.parametrize("clock, baud, why", [
    (24, 115_200, "does not give 24 MHz"), (4, 115_200, "12, 6, 3, 2"), (1000, 115_200, "does not give 1000 MHz"),
    (None, 2_000_000, "at most 1500000"), (None, 1_300_000, "12 MHz does not give 1300000 baud"),
])  # fmt: skip
def test_impossible_timing(clock, baud, why):
    with pytest.raises(OptionError, match=why):
        BoardClock.of(12, clock, baud)


@pytest.mark.parametrize("arguments, why", [
    (["bitstream", "{out}", "--board", "icebraker"], "--board: unknown board 'icebraker'; did you mean icebreaker"),
    (["bitstream", "{out}", "--board", "pynq-z2"], "no bitstreams are made for PYNQ-Z2"),
    (["bitstream", "{out}", "--board", "pico"], "no bitstreams are made for Raspberry Pi Pico"),
    (["bitstream", "{out}", "--board", "iCEBreaker", "--clock", "13"], "the board's clock of 12 MHz"),
    (["bitstream", "{out}/none", "--board", "icebreaker"], "has no readable manifest.json"),
    (["program", "{out}/manifest.jsn", "--board", "icebreaker"], "did you mean .*manifest.json"),
    (["program", "{out}/manifest.json", "--board", "arty-a7-35t"], "no bitstreams are made for Arty"),
])  # fmt: skip
def test_errors(arguments, why, design, run):
    status, _, error = run(*(argument.format(out=design.folder) for argument in arguments))
    assert status == (1 if "none" in arguments[1] else 2) and re.search(why, error), error


def test_a_folder_without_verilog_is_refused(tmp_path, run):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    forestc.compile(model, X, tmp_path / "out", label=y, targets=["c"])
    status, _, error = run("bitstream out --board icebreaker")
    assert status == 1 and "the design has no file of the role verilog" in error


def test_missing_tools_are_named(design, monkeypatch, run):
    monkeypatch.setattr("forestc.toolchain.packaged.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("forestc.commands.bitstream.package_folders", lambda name: [])
    for arguments, missing in (
        (("bitstream", design.folder), "yosys was not found"),
        (("program", design.folder / "manifest.json"), "openFPGALoader was not found"),
    ):
        status, _, error = run(*arguments, "--board", "tang-nano-9k")
        assert status == 4 and missing in error and "forestc[" in error


def test_program_calls_the_loader(tmp_path, monkeypatch, run):
    loader = tmp_path / "openFPGALoader"
    loader.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/given\n')
    loader.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    file = tmp_path / "a.bit"
    file.write_bytes(b"bits")
    status, out, _ = run("program", file, "--board", "ULX3S 25F", "--flash", "--json")
    assert status == 0 and json.loads(out)["board"] == "ULX3S with 25F"
    assert (tmp_path / "given").read_text().split() == ["--board", "ulx3s", "--write-flash", str(file)]


def test_what_speaks_against_a_design_is_said(design, tmp_path, monkeypatch):
    folder = shutil.copytree(design.folder, tmp_path / "out")
    made = Bitstream(b"bits", ".bin", 300, 5280, 30.0, BoardClock.of(12, None, 115_200), {})
    monkeypatch.setattr("forestc.boards.bitstream.build", lambda *_, **given: made)
    said = partial(bitstream, folder, "icebreaker", out=tmp_path / "a.bin")
    assert said()["notes"] == []
    verilog = folder / forestc.open_design(folder).manifest["files"]["verilog"]
    verilog.write_text(verilog.read_text() + "// edited\n")
    (edited,) = said()["notes"]
    header = next((folder / "c").glob("*.h"))
    header.write_text(header.read_text().replace("scores[k] > ", "scores[k] < "))
    assert not check(folder, load_iris().data, engines=["c"], random_rows=1).ok
    assert edited in said()["notes"] and len(said()["notes"]) == 2


@pytest.mark.long
def test_a_bitstream(design, tmp_path):
    file = tmp_path / "tree.bin"
    figures = bitstream(design.folder, "icebreaker", out=file, clock_mhz=6)
    assert file.stat().st_size == figures["bytes"] > 100_000 and file.read_bytes()[:4] == b"\xff\x00\x00\xff"
    assert 300 < figures["lut"] < figures["available"] == 5280 and figures["fmax_mhz"] > figures["clock_mhz"] == 6
