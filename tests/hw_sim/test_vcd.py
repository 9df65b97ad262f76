"""Tests the waveform file, read back by pyvcd, against the clocked interpreter's values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from vcd.reader import TokenKind, tokenize

from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import BIT, Netlist, Origin, WordType
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port
from hw_sim import Clocked, clock_rows
from hw_sim.vcd import legal, signals


@dataclass
class Dump:
    """A waveform. variables: (kind, width, code) by (scopes, name). history: [(time, value)] by code, with times in
    order."""

    variables: dict[tuple[tuple[str, ...], str], tuple[str, int, str]] = field(default_factory=dict)
    history: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)

    def at(self, name: tuple[tuple[str, ...], str], time: int) -> int:
        _, width, code = self.variables[name]
        value = [value for when, value in self.history[code] if when <= time][-1]
        assert 0 <= value < 1 << width
        return value


def read(path: Path) -> Dump:
    """Reads a file with pyvcd; unknown values are -1. Asserts that no value is given twice in a row."""
    dump, scopes, time = Dump(), list[str](), 0
    with path.open("rb") as file:
        for token in tokenize(file):
            match token.kind:
                case TokenKind.TIMESCALE:
                    assert str(token.timescale) == "1 ns"
                case TokenKind.SCOPE:
                    scopes.append(token.scope.ident)
                case TokenKind.UPSCOPE:
                    scopes.pop()
                case TokenKind.VAR:
                    var = token.var
                    assert (tuple(scopes), var.reference) not in dump.variables
                    dump.variables[tuple(scopes), var.reference] = (str(var.type_.value), var.size, var.id_code)
                case TokenKind.CHANGE_TIME:
                    time = token.time_change
                    assert not dump.times or time > dump.times[-1]
                    dump.times.append(time)
                case TokenKind.CHANGE_SCALAR | TokenKind.CHANGE_VECTOR:
                    code, value = token.data
                    changes = dump.history.setdefault(code, [])
                    changes.append((time, -1 if value == "x" else int(value)))
                    assert len(changes) < 2 or changes[-1][1] != changes[-2][1], "no change"
    assert not scopes
    return dump


def pipeline() -> Netlist:
    """Makes a netlist with odd names, a wide signed port, every kind of watched cell, and two registers in a row."""
    b = NetlistBuilder("2nd forest")
    x = b.input(Port("x.0"), WordType(10, False))
    y = b.input(Port("clk"), WordType(64, True))
    valid = b.input(IN_VALID, BIT)
    low, odd, negative = b.less(x, 300), b.in_set(x, [1, 3, 5, 7, 9, 11]), b.less(y, -5)
    leaf = WordType(5, True)
    tree = b.mux(low, b.mux(odd, b.const(-9, leaf), b.const(4, leaf), Origin(0, 1)), b.const(15, leaf), Origin(0, 0))
    tree, flag, valid = b.register(tree), b.register(b.and_(low, negative)), b.register(valid)
    total = b.add([tree, flag, b.const(-3, WordType(3, True))], WordType(7, True))
    total, tree, valid = b.register(total), b.register(tree), b.register(valid)
    b.output(Port("y 0"), total)
    b.output(Port("y_0"), b.compare(total, b.add([tree, tree], WordType(7, True))))
    b.output(OUT_VALID, valid)
    return b.build()


def rows(count: int) -> np.ndarray:
    random = np.random.default_rng(1)
    return np.stack([random.integers(0, 1024, count) % 400, random.integers(-10, 10, count)], axis=1)


def test_waveform_equals_simulation(tmp_path: Path) -> None:
    netlist, words, gaps = pipeline(), rows(50), [k % 3 for k in range(50)]
    path = tmp_path / "run.vcd"
    run = clock_rows(netlist, words, gaps, path)
    dump = read(path)
    clock = (("_2nd_forest",), "clk")
    assert dump.variables[clock][:2] == ("wire", 1)
    assert dump.times[-1] == 10 * run.cycles
    assert dump.history[dump.variables[clock][2]] == [(5 * half, 1 - half % 2) for half in range(2 * run.cycles)]
    watched = signals(netlist)
    places = {
        signal: (("_2nd_forest", signal.scope) if signal.scope else ("_2nd_forest",), signal.name) for signal in watched
    }
    assert {clock, *places.values()} == set(dump.variables)
    clocked = Clocked(netlist, [signal.net for signal in watched])
    for cycle in range(run.cycles):
        inputs = {}
        for net, cell in netlist.inputs:
            signal = next(s for s in watched if s.net == net and not s.scope)
            inputs[cell.port.name] = dump.at(places[signal], 10 * cycle)
        inputs["clk"] -= 2**64 * (inputs["clk"] >> 63)
        clocked.clock(inputs)
        for signal in watched:
            wanted = clocked.values([signal.net])[signal.net] % 2**signal.width
            for time in (10 * cycle, 10 * cycle + 9):  # Only the clock changes within a cycle.
                assert dump.at(places[signal], time) == wanted, (signal, cycle)
    presented = [cycle for cycle in range(run.cycles) if dump.at((("_2nd_forest",), "in_valid"), 10 * cycle)]
    assert presented == [row + sum(gaps[: row + 1]) for row in range(50)]


def test_names_tell_what_they_are() -> None:
    names = {(signal.scope, signal.name, signal.kind) for signal in signals(pipeline())}
    assert names >= {
        ("", "x_0", "wire"),
        ("", "clk_2", "wire"),
        ("", "y_0", "wire"),
        ("", "y_0_2", "wire"),
        ("comparators", "x_0_lt_300", "wire"),
        ("comparators", "x_0_in_1_3_5_7_etc", "wire"),
        ("comparators", "clk_lt_m5", "wire"),
        ("registers", "tree0_node0_d2", "reg"),
        ("registers", "in_valid_d1", "reg"),
    }


def test_waveform_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        clock_rows(pipeline(), rows(20), None, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_combinational_netlist_has_no_clock(tmp_path: Path) -> None:
    b = NetlistBuilder("flat")
    b.output(Port("y"), b.less(b.input(Port("x"), WordType(4, False)), 7))
    path = tmp_path / "flat.vcd"
    clock_rows(b.build(), np.array([[3], [3], [9]]), None, path)
    dump = read(path)
    assert set(dump.variables) == {(("flat",), "x"), (("flat",), "y"), (("flat", "comparators"), "x_lt_7")}
    codes = {name: code for (_, name), (_, _, code) in dump.variables.items()}
    assert dump.times == [0, 20, 30]
    assert dump.history[codes["x"]] == [(0, 3), (20, 9)]
    assert dump.history[codes["y"]] == dump.history[codes["x_lt_7"]] == [(0, 1), (20, 0)]


def test_waveform_of_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "none.vcd"
    clock_rows(pipeline(), rows(0), None, path)
    dump = read(path)
    assert dump.times == [0] and all(changes == [(0, -1)] for changes in dump.history.values())


def test_file_that_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        clock_rows(pipeline(), rows(1), None, tmp_path / "no" / "run.vcd")


@pytest.mark.parametrize(
    ("name", "expected"), [("x0", "x0"), ("a b-c", "a_b_c"), ("2x", "_2x"), ("", "_"), ("größe", "gr__e")]
)
def test_legal_identifiers(name: str, expected: str) -> None:
    assert legal(name) == expected
