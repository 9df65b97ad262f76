"""Tests the table of devices and the fitted costs: every device is complete, and damage is reported."""

from __future__ import annotations

import json
import math
import re

import pytest

from forestc.costs import fitted as module
from forestc.costs.devices import DEVICES, FAMILIES, PORTS, Device, DeviceFamily, family_of
from forestc.costs.estimate import estimate, estimated, estimates
from forestc.costs.fitted import FILE, LUT_FEATURES, PATH_FEATURES, fitted, parsed
from forestc.errors import ForestcError, OptionError
from forestc.lowering.timing import DELAYS
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import WordType
from forestc.netlist.ports import Port


def table():
    return json.loads(FILE.read_text())


def netlist():
    builder = NetlistBuilder("n")
    builder.output(Port("y"), builder.less(builder.input(Port("x0"), WordType(8, False)), 77))
    return builder.build()


@pytest.mark.parametrize("name", list(DEVICES))
def test_every_device_has_all_it_needs(name):
    device = DEVICES[name]
    family = device.family
    assert device.name == name and FAMILIES[family.name] is family
    assert family.delays in DELAYS and family_of(name) == family.delays
    assert family.lut_inputs >= 4 and set(family.chained) <= {"add", "compare", "less"}
    assert family.synthesis and all("{top}" in way for way in family.synthesis)
    most = len(family.luts.areas) - 1
    assert most >= family.lut_inputs and (most == family.lut_inputs or family.joined)
    assert not family.luts.delays or [len(delays) for delays in family.luts.delays] == list(range(most + 1))
    assert bool(device.nextpnr) == bool(family.nextpnr) == bool(family.logic_cell) == bool(device.cells)
    assert device.slower.least <= device.slower.middle <= device.slower.most
    if family.timed_on:
        timed = DEVICES[family.timed_on]
        assert timed.family is family and timed.slower.middle == 1
    assert estimated(name)
    output = estimate(netlist(), name)
    assert output["device"] == name and (output["fmax_mhz"] is not None) == bool(family.timed_on)
    assert bool(device.pins) == bool(family.pins[0])
    if device.pins:
        assert len(set(device.pins)) == len(PORTS) and family.few_pins
        assert all(text in family.pins[0] + family.pins[1] for text in ("{file}", "{port}", "{pin}"))


def test_shown_without_asking():
    assert [output["device"] for output in estimates(netlist())] == ["xcup", "ecp5-85k", "ice40-hx8k"]
    assert next(output["device"] for output in estimates(netlist(), "ecp5-25k")) == "ecp5-25k"
    assert len(estimates(netlist(), "vivado:xc7a35t")) == 3 and family_of("vivado:xc7a35t") == "lut6"
    with pytest.raises(OptionError, match=r"no estimates for 'xc7'; known: lut6, xcup, ice40-hx8k"):
        estimate(netlist(), "xc7")


def test_the_shipped_costs_are_whole():
    known = fitted()
    assert set(known.luts) == set(FAMILIES)
    assert set(known.paths_ns) == {family.timed_on for family in FAMILIES.values() if family.timed_on}
    assert all(max(costs.values()) > 0 for costs in (*known.luts.values(), *known.paths_ns.values()))
    assert all(set(costs) == set(LUT_FEATURES) for costs in known.luts.values())
    assert all(set(costs) == set(PATH_FEATURES) for costs in known.paths_ns.values())
    assert all(0.4 < low < 1 < high < 2 for low, high in known.nine_of_ten.values())
    assert parsed(json.dumps(table())) == known


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda t: t.pop("NINE_OF_TEN"), "it has no 'NINE_OF_TEN'"),
        (lambda t: t.update(MORE={}), "it has the unknown key 'MORE'"),
        (lambda t: t.update(LUT_COSTS=[]), "LUT_COSTS is not an object"),
        (lambda t: t["LUT_COSTS"].update(xc7={}), "it has costs for 'xc7', which is not in the table of devices"),
        (lambda t: t["LUT_COSTS"].update(xcup=3), "xcup has no 'lut'"),
        (lambda t: t["LUT_COSTS"]["ecp5"].pop("gate"), "ecp5 has no 'gate'"),
        (lambda t: t["LUT_COSTS"]["ecp5"].update(lat=1), "ecp5 has the unknown key 'lat'"),
        (lambda t: t["LUT_COSTS"]["lut6"].update(gate=-1), "lut6: gate costs -1"),
        (lambda t: t["PATH_COSTS_NS"]["ecp5-85k"].update(lut="0"), "ecp5-85k: lut costs '0'"),
        (lambda t: t["PATH_COSTS_NS"]["ecp5-85k"].update(lut=math.inf), "ecp5-85k: lut costs inf"),
        (lambda t: t["PATH_COSTS_NS"]["ecp5-85k"].update(lut=10**400), "ecp5-85k: lut costs 1000"),
        (lambda t: t["NINE_OF_TEN"].pop("ice40-hx8k"), "NINE_OF_TEN has no 'ice40-hx8k'"),
        (lambda t: t["NINE_OF_TEN"].update(lut6=[1.2, 0.8]), "NINE_OF_TEN: the range of lut6 is [1.2, 0.8]"),
    ],
)
def test_damaged_costs_are_refused(damage, message):
    broken = table()
    damage(broken)
    with pytest.raises(ForestcError, match=re.escape(message)) as caught:
        parsed(json.dumps(broken))
    assert caught.value.where.endswith("fitted.json") and "reinstall forestc" in caught.value.do


def test_a_file_that_is_cut_off_or_gone(tmp_path, monkeypatch):
    for name, text in (("short.json", FILE.read_text()[:1000]), ("bytes.json", None), ("gone.json", "")):
        if text is None:
            (tmp_path / name).write_bytes(b"\xff\xfe{}")
        elif text:
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(module, "FILE", tmp_path / name)
        with pytest.raises(ForestcError, match=r"the table of fitted costs is damaged: it (is not JSON|can't be read)"):
            fitted.__wrapped__()


def test_a_device_of_a_family_that_was_never_fitted(monkeypatch):
    family = DeviceFamily("max10", lut_inputs=4, delays="lut6", synthesis=("synth_intel -top {top}",))
    monkeypatch.setitem(FAMILIES, "max10", family)
    monkeypatch.setitem(DEVICES, "max10-8k", Device("max10-8k", family, shown=9))
    assert not estimated("max10-8k") and len(estimates(netlist(), "max10-8k")) == 3
    with pytest.raises(OptionError, match="no estimates for 'max10-8k'; known: lut6"):
        estimate(netlist(), "max10-8k")
