"""The waveform, read back by a strict parser, against the clocked interpreter's values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import BIT, Netlist, Origin, WordType
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port
from hw_sim import Clocked, clock_rows
from hw_sim.vcd import _code, legal, signals


@dataclass
class Dump:
    """variables: (scopes, name) -> (kind, width, code); history: code -> [(time, bits)]; times in order."""

    variables: dict[tuple[tuple[str, ...], str], tuple[str, int, str]] = field(default_factory=dict)
    history: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)

    def at(self, name: tuple[tuple[str, ...], str], time: int) -> int:
        _, width, code = self.variables[name]
        bits = [bits for when, bits in self.history[code] if when <= time][-1]
        assert len(bits) <= width
        return int(bits, 2)


def parse(text: str) -> Dump:
    """IEEE 1364-2005 clause 18, as far as the writer uses it; anything else fails."""
    head, body = text.split("$enddefinitions $end\n")
    dump = Dump()
    scopes: list[str] = []
    lines = head.splitlines()
    assert lines[:2] == ["$version forestc hw_sim $end", "$timescale 1ns $end"]
    for line in lines[2:]:
        if match := re.fullmatch(r"\$scope module ([A-Za-z_][A-Za-z0-9_]*) \$end", line):
            scopes.append(match[1])
        elif line == "$upscope $end":
            scopes.pop()
        else:
            match = re.fullmatch(r"\$var (wire|reg) (\d+) ([!-~]+) ([A-Za-z_][A-Za-z0-9_]*)( \[(\d+):0\])? \$end", line)
            assert match, line
            width = int(match[2])
            assert (match[6] is None) if width == 1 else int(match[6]) == width - 1
            assert (tuple(scopes), match[4]) not in dump.variables
            dump.variables[tuple(scopes), match[4]] = (match[1], width, match[3])
    assert not scopes
    widths = {code: width for _, width, code in dump.variables.values()}
    initial: set[str] | None = None
    for line in body.splitlines():
        if match := re.fullmatch(r"#(\d+)", line):
            assert not dump.times or int(match[1]) > dump.times[-1]
            dump.times.append(int(match[1]))
        elif line == "$dumpvars":
            assert dump.times == [0] and initial is None
            initial = set()
        elif line == "$end":
            assert initial == set(widths)
        else:
            match = re.fullmatch(r"([01])([!-~]+)|b([01]+) ([!-~]+)", line)
            assert match, line
            code, bits = (match[2], match[1]) if match[2] else (match[4], match[3])
            assert (widths[code] == 1) == bool(match[2])
            changes = dump.history.setdefault(code, [])
            if code not in (initial or ()):
                assert not changes
                assert initial is not None
                initial.add(code)
            else:
                assert changes[-1][1] != bits, "no change"
            changes.append((dump.times[-1], bits))
    return dump


def pipeline() -> Netlist:
    """Odd names, a wide signed port, every kind of watched cell, two registers in a row."""
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
    dump = parse(path.read_text())
    clock = (("_2nd_forest",), "clk")
    assert dump.variables[clock][:2] == ("wire", 1)
    assert dump.times[-1] == 10 * run.cycles
    assert dump.history[dump.variables[clock][2]] == [(5 * half, "10"[half % 2]) for half in range(2 * run.cycles)]
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
            for time in (10 * cycle, 10 * cycle + 9):  # nothing but the clock moves within a cycle
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
    assert path.read_text() == (
        "$version forestc hw_sim $end\n$timescale 1ns $end\n$scope module flat $end\n"
        '$var wire 4 " x [3:0] $end\n$var wire 1 # y $end\n'
        "$scope module comparators $end\n$var wire 1 # x_lt_7 $end\n$upscope $end\n"
        "$upscope $end\n$enddefinitions $end\n"
        '#0\n$dumpvars\nb11 "\n1#\n$end\n#20\nb1001 "\n0#\n#30\n'
    )


def test_waveform_of_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "none.vcd"
    clock_rows(pipeline(), rows(0), None, path)
    assert path.read_text().endswith("$enddefinitions $end\n")


def test_file_that_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        clock_rows(pipeline(), rows(1), None, tmp_path / "no" / "run.vcd")


@pytest.mark.parametrize(
    ("name", "wanted"), [("x0", "x0"), ("a b-c", "a_b_c"), ("2x", "_2x"), ("", "_"), ("größe", "gr__e")]
)
def test_legal_identifiers(name: str, wanted: str) -> None:
    assert legal(name) == wanted


def test_codes_are_short_and_distinct() -> None:
    codes = [_code(number) for number in range(20_000)]
    assert len(set(codes)) == 20_000
    assert max(map(len, codes)) == 3
