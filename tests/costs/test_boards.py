"""Tests boards: they stand for devices and processors, and unknown names are refused with the nearest ones."""

import re

import pytest

from forestc.compilation.request import Request
from forestc.costs.boards import BOARDS, FPGAS, PROCESSORS, VENDOR, stands_for
from forestc.costs.devices import DEVICES
from forestc.costs.firmware import CPU_COSTS
from forestc.errors import OptionError
from forestc.options.compile import CompileOptions
from forestc.toolchain.firmware import CPUS


def test_every_board_stands_for_something_known_or_says_what_to_do():
    for board in PROCESSORS:
        assert not board.device and ((board.cpu in CPUS and board.cpu in CPU_COSTS) or board.remark)
    for board in FPGAS:
        assert not board.cpu and (board.device in DEVICES or board.device.startswith(VENDOR) or board.remark)
    names = [name for boards in BOARDS.values() for board in boards for name in board.names]
    assert len(set(names)) == len(names) and not set(names) & {*DEVICES, *CPUS}
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


@pytest.mark.parametrize(
    "given, kind, expected",
    [
        ("pico", "cpu", "cortex-m0plus"),
        ("RP2350", "cpu", "cortex-m4f"),
        ("ESP32-C3", "cpu", "rv32imc"),
        ("Arduino Uno", "cpu", "avr"),
        ("avr", "cpu", "avr"),
        ("Cortex-M0+", "cpu", "cortex-m0plus"),
        ("cortexm0plus", "cpu", "cortex-m0plus"),
        ("Cortex M4F", "cpu", "cortex-m4f"),
        ("RV32 IMC", "cpu", "rv32imc"),
        ("NRF52 840", "cpu", "cortex-m4f"),
        ("iCEBreaker", "device", "ice40-up5k"),
        ("ulx3s_45f", "device", "ecp5-45k"),
        ("tang-nano-9k", "device", "gw1nr-9"),
        ("Tang Nano 20K", "device", "gw2ar-18"),
        ("pynq-z2", "device", "vivado:xc7z020clg400-1"),
        ("vivado:xc7a15t", "device", "vivado:xc7a15t"),
        ("lut6", "device", "lut6"),
    ],
)
def test_names(given, kind, expected):
    assert stands_for(given, kind, CPUS if kind == "cpu" else DEVICES) == expected


@pytest.mark.parametrize(
    "given, kind, why",
    [
        ("ulx3s", "device", "unknown device 'ulx3s'; did you mean ulx3s-12f or "),
        ("ice40-up5", "device", "did you mean ice40-up5k"),
        ("icebraker", "device", "did you mean icebreaker"),
        ("microbit", "cpu", "unknown cpu 'microbit'; did you mean microbit-v1 or microbit-v2"),
        ("cortexm0", "cpu", "did you mean cortex-m0plus .*docs/reference/boards.md"),
        ("cortex-m0", "cpu", "did you mean cortex-m0plus"),
        ("uno", "cpu", "did you mean arduino-uno"),
        ("z80", "cpu", "unknown cpu 'z80'; known: cortex-m0plus, "),
        ("esp32", "cpu", "no cpu of forestc's stands for ESP32, .*; the header compiles with Espressif's"),
        ("tang-nano", "device", "did you mean tang-nano-9k or tang-nano-20k"),
        ("pico", "device", "'pico' is no device, but a cpu; give it as cpu="),
        ("icebreaker", "cpu", "'icebreaker' is no cpu, but a device; give it as device="),
        ("quartus:", "device", "unknown device 'quartus:'"),
    ],
)
def test_refusals(given, kind, why):
    with pytest.raises(OptionError, match=why):
        stands_for(given, kind, CPUS if kind == "cpu" else DEVICES)


def test_compile_records_what_the_board_has():
    request = Request.of(CompileOptions("m.json", None, "out", device="iCEBreaker", no_synth=True, cpu="pico"))
    recorded = request.as_dict()
    assert recorded["device"] == "ice40-up5k" and recorded["cpu"] == request.options.cpu == "cortex-m0plus"
    with pytest.raises(OptionError, match="did you mean icebreaker"):
        Request.of(CompileOptions("m.json", None, "out", device="icebreker"))
