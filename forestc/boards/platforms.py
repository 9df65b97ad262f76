"""Boards that Amaranth lacks, and serial lines on header pins of boards without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform, LatticeECP5Platform
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform, OrangeCrabR0_2_85FPlatform
from amaranth_boards.resources import UARTResource
from amaranth_boards.tang_nano_9k import TangNano9kPlatform
from amaranth_boards.upduino_v3 import UpduinoV3Platform

from forestc.costs.boards import Board
from hdl_templates import render

_LUTS = "luts.map"  # not *.v, which the build would read as a source
_LATTICE = Attrs(IO_TYPE="LVCMOS33")


def platform_of(board: Board) -> Any:
    module, _, name = board.platform.partition(":")
    made: Callable[[], Any] = getattr(import_module(module), name)
    return made()


def serial_pins(board: Board) -> tuple[str, str]:
    """Returns the chip's pins of a board's serial line: the one that receives, and the one that sends."""
    platform = platform_of(board)
    line = platform.lookup("uart", 0)
    pins = {signal.name: signal.ios[0].map_names(platform._conn_pins, line) for signal in line.ios}
    (receives,), (sends,) = pins["rx"], pins["tx"]
    return receives, sends


class UPduino(UpduinoV3Platform):  # type: ignore[misc]
    """The UPduino 3 with its oscillator: the chip's own is too inexact for a UART."""

    default_clk = "clk12"
    resources = [  # noqa: RUF012
        *UpduinoV3Platform.resources,
        UARTResource(0, rx="28", tx="38", attrs=Attrs(IO_STANDARD="SB_LVCMOS", PULLUP=1)),
    ]


_FEATHER = UARTResource(0, rx="N17", tx="M18", attrs=_LATTICE)


class OrangeCrab25F(OrangeCrabR0_2_25FPlatform):  # type: ignore[misc]
    """The OrangeCrab with a UART on its header."""

    resources = [*OrangeCrabR0_2_25FPlatform.resources, _FEATHER]  # noqa: RUF012


class OrangeCrab85F(OrangeCrabR0_2_85FPlatform):  # type: ignore[misc]
    """The larger OrangeCrab with a UART on its header."""

    resources = [*OrangeCrabR0_2_85FPlatform.resources, _FEATHER]  # noqa: RUF012


class ColorlightI5(LatticeECP5Platform):  # type: ignore[misc]
    """The Colorlight i5 on its extension board."""

    device, package, speed, default_clk = "LFE5U-25F", "BG381", "6", "clk25"
    resources = [  # noqa: RUF012
        Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), _LATTICE),
        UARTResource(0, rx="H18", tx="J17", attrs=_LATTICE),
    ]
    connectors = ()


class _Gowin:
    """Amaranth's build for Gowin chips, with the options of `costs.devices`. A LUT of fewer inputs becomes a LUT4,
    because nextpnr times no path through the others."""

    options: Mapping[str, list[str]] = {"synth_opts": ["-nowidelut"]}

    def toolchain_prepare(self, fragment: Any, name: str, **given: Any) -> Any:
        script = f"techmap -map {_LUTS}\nclean\nwrite_json {name}.syn.json"
        plan = super().toolchain_prepare(  # type: ignore[misc]
            fragment, name, script_after_synth=script, **self.options, **given
        )
        plan.add_file(_LUTS, render("synth/luts.v.j2"))
        return plan


class TangNano9K(_Gowin, TangNano9kPlatform):  # type: ignore[misc]
    """The Tang Nano 9K."""


class TangNano20K(_Gowin, GowinPlatform):  # type: ignore[misc]
    """The Tang Nano 20K, without carry chains: on this chip they have given wrong results."""

    part, family, default_clk, _chipdb_device = "GW2AR-LV18QN88C8/I7", "GW2AR-18C", "clk27", "GW2A-18C"
    options = {"synth_opts": ["-noalu", "-nowidelut"], "gowin_pack_opts": ["--sspi_as_gpio", "--mspi_as_gpio"]}  # noqa: RUF012
    resources = [  # noqa: RUF012
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), Attrs(IO_TYPE="LVCMOS33")),
        UARTResource(0, rx="70", tx="69", attrs=Attrs(PULL_MODE="UP", IO_TYPE="LVCMOS33")),
    ]
    connectors = ()
