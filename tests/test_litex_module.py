"""Tests the module for LiteX: its logic is proved equal to the Verilog; its streams and registers run in Migen's
simulator."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from random_forests import random_forest
from random_netlists import all_kinds
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from thinned import only
from vhdl_tools import by_cells, words_of

import forestc
from forestc.backends import hdl
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.vectors import expected
from forestc.backends.verilog import core as verilog
from forestc.checks.proof.equality import prove_equal
from forestc.checks.proof.verilog_text import read_core
from forestc.errors import CheckError, MissingExtraError
from forestc.forest.text import parse_forest
from forestc.integrations import litex_module
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ports import PLAIN, Clocking
from forestc.toolchain.yosys import run_yosys

EXAMPLE = Path(__file__).parents[1] / "examples" / "litex_stream.py"
SMALL = parse_forest((Path(__file__).parent / "cases" / "small.forest").read_text())


@pytest.fixture
def need_litex():
    """Skips the test, or fails it under FORESTC_REQUIRE_TOOLS, if LiteX is not installed."""
    if importlib.util.find_spec("litex") is None:
        if os.environ.get("FORESTC_REQUIRE_TOOLS"):
            pytest.fail("LiteX is not installed and FORESTC_REQUIRE_TOOLS is set")
        pytest.skip('LiteX is not installed: pip install "forestc[litex]"')


def lowered(forest, latency, clocking=PLAIN):
    outputs = "both" if forest.decides else "scores"
    return lower(forest, LoweringOptions(latency=latency, outputs=outputs, clocking=clocking))


def in_verilog(netlist):
    """Returns the core's logic in Verilog by Migen, with the ports of forestc's Verilog."""
    from migen import ClockDomain, Constant, Module, Signal
    from migen.fhdl.verilog import convert

    made = Module()
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    x, y = Signal(max(1, width_of(inputs)), name="x"), Signal(width_of(outputs), name="y")
    in_valid, out_valid = Signal(name="in_valid"), Signal(name="out_valid")
    words = {field.identifier: Signal(field.word, name=field.identifier) for field in inputs}
    made.comb += [words[field.identifier].eq(x[field.offset : field.offset + field.word.width]) for field in inputs]
    enable = Signal(name="en") if netlist.clocking.enable else Constant(1)
    made.submodules.logic, results = litex_module.core(netlist, words | {"in_valid": in_valid}, enable)
    made.comb += [y[field.offset : field.offset + field.word.width].eq(results[field.name]) for field in outputs]
    ports = {x, y, enable} if netlist.clocking.enable else {x, y}
    if netlist.latency:
        made.clock_domains.cd_sys = ClockDomain("sys", reset_less=netlist.clocking.reset == "none")
        if netlist.clocking.reset != "none":
            made.cd_sys.rst.name_override = "rst"
            ports.add(made.cd_sys.rst)
        made.cd_sys.clk.name_override = "clk"
        made.comb += out_valid.eq(results["out_valid"])
        ports |= {made.cd_sys.clk, in_valid, out_valid}
    return str(convert(made, ports, name=hdl.module_name(netlist)))


def prove(netlist, text, folder):
    """Proves Migen's Verilog equal to that of the backend, for all inputs at all times."""
    (folder / "core.v").write_text(text)
    run_yosys("read_verilog core.v\nproc\nwrite_rtlil core.il", folder, writes=["core.il"])
    gold = read_core(verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"].encode())
    prove_equal(gold, (folder / "core.il").read_text(), "Migen's logic", reset=netlist.clocking.reset)


def test_registers_have_the_reset_and_the_enable_of_the_core(need_litex, tmp_path):
    netlist = lowered(SMALL, 3, Clocking("sync", True))
    text = in_verilog(netlist)
    prove(netlist, text, tmp_path)
    with pytest.raises(CheckError):
        prove(netlist, text.replace("if (rst)", "if (1'd0)"), tmp_path)


@pytest.mark.parametrize("latency", [0, 3])
def test_the_logic_is_proved_equal_to_the_verilog(latency, tmp_path, need_litex):
    for seed in (0, 3):
        netlist = lowered(random_forest(seed, True), latency)
        prove(netlist, in_verilog(netlist), tmp_path)
    broken, count = re.subn(r"(y\[\d+(?::\d+)?\] <= )", r"\1~", in_verilog(netlist), count=1)
    assert count
    with pytest.raises(CheckError, match="Migen's logic does not equal the Verilog"):
        prove(netlist, broken, tmp_path)


def exchanged(dut, netlist, words, seed):
    """Sends rows through the streams with random stalls; `last` of every fifth row is 1. Returns (results, `last`)."""
    from migen.sim import run_simulation

    inputs, outputs, random, got = input_fields(netlist), output_fields(netlist), Random(seed), []

    def send():
        for place, row in enumerate(words.tolist()):
            while random.random() < 0.3:
                yield
            for field, word in zip(inputs, row, strict=True):
                yield getattr(dut.sink, field.identifier).eq(word)
            yield dut.sink.valid.eq(1)
            yield dut.sink.last.eq(place % 5 == 0)
            yield
            while not (yield dut.sink.ready):
                yield
            yield dut.sink.valid.eq(0)

    def take():
        quiet = 0  # counts clocks since the last result; at the end some more pass, to see surplus results
        while quiet < 20 + netlist.latency:
            quiet += 1
            yield dut.source.ready.eq(random.random() < 0.5)
            yield
            if (yield dut.source.ready) and (yield dut.source.valid):
                row = []
                for field in outputs:
                    row.append((yield getattr(dut.source, field.name)))
                got.append((row, (yield dut.source.last)))
                quiet = 0

    run_simulation(dut, [send(), take()])
    return got


@pytest.mark.parametrize("latency", only([0, 1, 3], 0, 1))
def test_no_row_is_lost_between_the_streams(latency, need_litex):
    forest = random_forest(latency, True)
    netlist = lowered(forest, latency)
    words = words_of(forest, np.zeros((1, forest.columns)), 60)[::3]
    got = exchanged(litex_module.streamed(netlist), netlist, words, latency)
    wanted = expected(forest, netlist, words).tolist()
    assert got == [(row, int(place % 5 == 0)) for place, row in enumerate(wanted)]


@pytest.mark.parametrize("latency", [0, 2])
def test_every_kind_of_cell_is_simulated(latency, need_litex):
    for seed in range(3):
        netlist, random = all_kinds(Random(seed), latency), Random(seed)
        rows = [[random.randint(f.word.low, f.word.high) for f in input_fields(netlist)] for _ in range(12)]
        words = np.array(rows, dtype=np.int64)
        got = exchanged(litex_module.streamed(netlist), netlist, words, seed)
        assert [row for row, _ in got] == by_cells(netlist, words).tolist()


def test_a_row_a_clock_goes_in_while_nothing_stalls(need_litex):
    from migen.sim import run_simulation

    netlist = lowered(SMALL, 3)
    dut, seen = litex_module.streamed(netlist), []

    def watch():
        yield dut.sink.valid.eq(1)
        yield dut.source.ready.eq(1)
        yield
        for _ in range(20):
            seen.append(((yield dut.sink.ready), (yield dut.source.valid)))
            yield

    run_simulation(dut, watch())
    assert seen == [(1, int(clock >= 3)) for clock in range(20)]


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    out = tmp_path_factory.mktemp("litex") / "out"
    return forestc.compile(model, X, out, label=y, latency=2, outputs="both", targets="verilog", name="m").design, X


def test_the_registers_over_the_bus_of_litex(design, need_litex):
    from litex.soc.interconnect.csr_bus import CSRBankArray, Interconnect, Interface
    from migen import Module
    from migen.sim import run_simulation

    made, X = design
    netlist, dut = made.netlist, Module()
    dut.submodules.forest = litex_module.litex_module(made, csrs=True)
    dut.submodules.banks = CSRBankArray(dut, lambda name, memory: 0, data_width=32)
    bus = Interface(data_width=32)
    dut.submodules.bus = Interconnect(bus, dut.banks.get_buses())
    places = {register.name: place for place, register in enumerate(dut.forest.get_csrs())}  # of at most 32 bits
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    words = words_of(made.forest, X[::5], 5)[::2]
    wanted, got = expected(made.forest, netlist, words), []

    def write(name, value):
        yield bus.adr.eq(places[name])
        yield bus.dat_w.eq(value)
        yield bus.we.eq(1)
        yield
        yield bus.we.eq(0)
        yield

    def read(name):
        yield bus.adr.eq(places[name])
        yield
        yield
        return (yield bus.dat_r)

    def drive():
        got.append((yield from read("identity")))
        for row in words.tolist():
            for field, word in zip(inputs, row, strict=True):
                yield from write(field.identifier, word & ((1 << field.word.width) - 1))
            yield from write("start", 1)
            for _ in range(9):
                if (yield from read("done")):
                    break
            results = []
            for field in outputs:
                results.append((yield from read(field.name)))
            got.append(results)

    run_simulation(dut, drive())
    masks = [(1 << field.word.width) - 1 for field in outputs]
    assert got[0] == int(made.manifest["hash"][:8], 16)
    assert got[1:] == (wanted & masks).tolist() and len({*map(tuple, got[1:])}) > 1


def test_litex_is_named_where_it_is_missing(design, monkeypatch):
    monkeypatch.setitem(sys.modules, "litex.gen", None)
    with pytest.raises(
        MissingExtraError, match=r'Python in .*: LiteX is not installed; pip install "forestc\[litex\]"'
    ):
        litex_module.litex_module(design[0])


@pytest.mark.long
def test_the_example_runs(tmp_path, need_litex):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "all equal" in done.stdout
