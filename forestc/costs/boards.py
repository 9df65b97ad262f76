"""The table of boards. `--device` and `--cpu` accept a board's name; docs/reference/boards.md lists the boards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from forestc.errors import OptionError, opt

Kind = Literal["device", "cpu"]
VENDOR = ("vivado:", "quartus:")  # begins a --device that names a part for a vendor's tool
LIBERTY = "liberty:"  # begins a --device that names a file with an ASIC's cells


@dataclass(frozen=True)
class Board:
    """A board or a family of microcontrollers, with its names, chip, and forestc's device or processor."""

    names: tuple[str, ...]  # values of --device or --cpu
    title: str
    chip: str
    device: str = ""  # forestc's device for the chip; empty if there is none
    remark: str = ""  # hint for users
    platform: str = ""  # "module:class" of Amaranth's description, for bitstreams; empty if there is none
    uart: str = ""  # where the serial line of a bitstream is
    loader: str = ""  # name for openFPGALoader
    cpu: str = ""  # forestc's processor for the chip; empty if there is none


_XTENSA = (
    "the header compiles with Espressif's xtensa-esp-elf-gcc; forestc has no budgets or figures for "
    f"Xtensa, so compile without {opt.cpu}"
)
_APYCULA = (
    ". The free tools have open reports of wrong results on this chip, which depend on carry chains and placement: "
    "forestc uses no carry chains; compare answers on the board itself"
)
_GOWIN = 'the tools come with `pip install ".[gowin]"`'
_OWN = "the tools come with the extra that the page of devices names, and there is no estimate of the clock"
_VIVADO = "synthesis needs Vivado; without it, xcup gives the LUTs of a newer family of the same vendor"
_ICE = "the chip has few pins, so bring rows in by a bus; the command `bitstream` does so by the serial line"

PROCESSORS: tuple[Board, ...] = (
    Board(("rp2040", "pico"), "Raspberry Pi Pico, Pico W", "RP2040", cpu="cortex-m0plus"),
    Board(("rp2350", "pico-2"), "Raspberry Pi Pico 2", "RP2350", cpu="cortex-m4f",
          remark=
              "the Cortex-M33 cores run code for a Cortex-M4F, whose figures forestc gives; for the RISC-V "
              f"cores, take {opt.cpu:rv32imc}"),
    Board(("stm32f0",), "STM32 F0", "Cortex-M0", cpu="cortex-m0plus", remark=
        "a Cortex-M0 has the same instructions as a Cortex-M0+"),
    Board(("stm32g0",), "STM32 G0", "Cortex-M0+", cpu="cortex-m0plus"),
    Board(("stm32f4",), "STM32 F4", "Cortex-M4F", cpu="cortex-m4f"),
    Board(("stm32h7",), "STM32 H7", "Cortex-M7", cpu="cortex-m7"),
    Board(("nrf52", "nrf52832", "nrf52840"), "nRF52 DK, nRF52840 DK, Nano 33 BLE", "Cortex-M4F", cpu="cortex-m4f",
          remark=f"for nRF52805, 810 and 811, which have no floating-point unit, take {opt.cpu:cortex-m4}"),
    Board(("microbit-v1",), "BBC micro:bit v1", "nRF51822, Cortex-M0", cpu="cortex-m0plus",
          remark="a Cortex-M0 has the same instructions as a Cortex-M0+"),
    Board(("microbit-v2",), "BBC micro:bit v2", "nRF52833, Cortex-M4F", cpu="cortex-m4f"),
    Board(("esp32", "esp32-s2", "esp32-s3"), "ESP32, ESP32-S2, ESP32-S3", "Xtensa LX6, LX7", remark=_XTENSA),
    Board(("esp32-c3", "esp32-c6"), "ESP32-C3, ESP32-C6", "RISC-V (rv32imc, rv32imac)", cpu="rv32imc"),
    Board(("arduino-mega", "atmega2560"), "Arduino Mega", "ATmega2560", cpu="avr"),
    Board(("arduino-uno", "arduino-nano", "atmega328p"), "Arduino Uno, Nano", "ATmega328P", cpu="avr",
          remark=
              "forestc gives the figures of an ATmega2560, whose calls take a byte of stack and two cycles "
              "more; the ATmega328P has 32 kB of flash and 2 kB of RAM"),
)  # fmt: skip

_USB = "the board's USB port"
_FEATHER = "header pins 0 (receives) and 1 (sends), of revision 0.2"


def _of_amaranth(name: str) -> str:
    return f"amaranth_boards.{name}"


FPGAS: tuple[Board, ...] = (
    Board(("icebreaker",), "iCEBreaker", "iCE40 UP5K", "ice40-up5k", _ICE,
          _of_amaranth("icebreaker:ICEBreakerPlatform"), _USB, "ice40_generic"),
    Board(("upduino",), "UPduino", "iCE40 UP5K", "ice40-up5k", _ICE,
          "forestc.boards.platforms:UPduino", "header pins 28 (receives) and 38 (sends), of revision 3; bridge the "
          "jumper OSC, which connects the 12 MHz clock", "ice40_generic"),
    Board(("ice40-hx8k-board", "hx8k"), "iCE40-HX8K breakout board", "iCE40 HX8K", "ice40-hx8k", _ICE,
          _of_amaranth("ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform"), _USB, "ice40_generic"),
    Board(("ulx3s-12f",), "ULX3S with 12F", "ECP5 LFE5U-12F", "ecp5-25k", "",
          _of_amaranth("ulx3s:ULX3S_12F_Platform"), _USB, "ulx3s"),
    Board(("ulx3s-25f",), "ULX3S with 25F", "ECP5 LFE5U-25F", "ecp5-25k", "",
          _of_amaranth("ulx3s:ULX3S_25F_Platform"), _USB, "ulx3s"),
    Board(("ulx3s-45f",), "ULX3S with 45F", "ECP5 LFE5U-45F", "ecp5-45k", "",
          _of_amaranth("ulx3s:ULX3S_45F_Platform"), _USB, "ulx3s"),
    Board(("ulx3s-85f",), "ULX3S with 85F", "ECP5 LFE5U-85F", "ecp5-85k", "",
          _of_amaranth("ulx3s:ULX3S_85F_Platform"), _USB, "ulx3s"),
    Board(("orangecrab-25f",), "OrangeCrab with 25F", "ECP5 LFE5U-25F", "ecp5-25k", "",
          "forestc.boards.platforms:OrangeCrab25F", _FEATHER, "orangeCrab"),
    Board(("orangecrab-85f",), "OrangeCrab with 85F", "ECP5 LFE5U-85F", "ecp5-85k", "",
          "forestc.boards.platforms:OrangeCrab85F", _FEATHER, "orangeCrab"),
    Board(("colorlight-5a-75b",), "Colorlight 5A-75B", "ECP5 LFE5U-25F", "ecp5-25k", "",
          _of_amaranth("colorlight_5a75b_r7_0:Colorlight_5A75B_R70Platform"),
          "header J19 of revision 7.0, KEY+ (receives) and DATA_LED- (sends)", "colorlight"),
    Board(("colorlight-5a-75e",), "Colorlight 5A-75E", "ECP5 LFE5U-25F", "ecp5-25k"),
    Board(("colorlight-i5",), "Colorlight i5", "ECP5 LFE5U-25F", "ecp5-25k", "",
          "forestc.boards.platforms:ColorlightI5", "USB of the extension board, of revision 7.0", "colorlight-i5"),
    Board(("colorlight-i9",), "Colorlight i9", "ECP5 LFE5U-45F", "ecp5-45k"),
    Board(("arty-a7-35t",), "Arty A7-35T", "Artix-7", "vivado:xc7a35ticsg324-1L", remark=_VIVADO),
    Board(("arty-a7-100t",), "Arty A7-100T", "Artix-7", "vivado:xc7a100tcsg324-1", remark=_VIVADO),
    Board(("pynq-z2",), "PYNQ-Z2", "Zynq-7020", "vivado:xc7z020clg400-1", remark=_VIVADO),
    Board(("tang-nano-9k",), "Tang Nano 9K", "Gowin GW1NR-9", "gw1nr-9", _GOWIN,
          "forestc.boards.platforms:TangNano9K", _USB, "tangnano9k"),
    Board(("tang-nano-20k",), "Tang Nano 20K", "Gowin GW2AR-18", "gw2ar-18", _GOWIN + _APYCULA,
          "forestc.boards.platforms:TangNano20K", _USB, "tangnano20k"),
    Board(("machxo3lf-starter-kit",), "MachXO3LF Starter Kit", "MachXO3LF-6900", "machxo3-6900", _OWN),
    Board(("lifcl-40-evn", "crosslink-nx"), "CrossLink-NX Evaluation Board", "LIFCL-40", "nexus-40", _OWN),
    Board(("gatemate-evb", "gatemate-a1-evb"), "GateMate Evaluation Board", "CCGM1A1", "gatemate-a1", _OWN),
)  # fmt: skip
BOARDS: Mapping[Kind, tuple[Board, ...]] = {"cpu": PROCESSORS, "device": FPGAS}
FLAGS: Mapping[Kind, str] = {"cpu": f"{opt.cpu}, to compile or measure", "device": f"{opt.device}, to compile or synth"}


def stands_for(given: str, kind: Kind, known: Iterable[str]) -> str:
    """Returns the device or processor that a name stands for; a board stands for its chip. Raises OptionError for
    unknown names and for boards without a device or processor."""
    known = tuple(known)
    parts = (*VENDOR, LIBERTY) if kind == "device" else ()
    if given in known or any(given.startswith(tool) and given != tool for tool in parts):
        return given
    name, squeezed = _plain(given), {_squeezed(name): name for name in known}
    if not parts and _squeezed(given) in squeezed:
        return squeezed[_squeezed(given)]
    boards = {name: board for board in BOARDS[kind] for name in board.names}
    spelled = {_squeezed(other): other for other in boards}
    if (name := spelled.get(_squeezed(given), name)) in boards:
        board = boards[name]
        if target := board.cpu or board.device:
            return target
        raise OptionError(
            f"no {kind} of forestc's stands for {board.title} ({board.chip})",
            where=getattr(opt, kind),
            do=board.remark,
        )
    for other, others in BOARDS.items():
        if stranger := next((board for board in others if name in board.names), None):
            do = f"give it as {FLAGS[other]}" if stranger.cpu or stranger.device else stranger.remark
            raise OptionError(f"{given!r} is no {kind}, but a {other}", where=getattr(opt, kind), do=do)
    names = [*known, *boards]
    near = [candidate for candidate in names if name and name in candidate]
    near += [target for family, target in _FAMILIES.items() if kind == "cpu" and family == _squeezed(given)]
    near += get_close_matches(name, names, 3, 0.6)
    vendors = {"vivado:": r"(?i)xc[0-9akzvu]", "quartus:": r"(?i)(5c|10m|10c|ep4c)[a-z0-9]{4}"}  # by names of parts
    near += [f"{tool}{given}" for tool, part in vendors.items() if kind == "device" and re.match(part, given)]
    hint = f"did you mean {' or '.join(list(dict.fromkeys(near))[:4])}? " if near else ""
    listed = ", ".join([*known, *(tool + ("FILE" if tool == LIBERTY else "PART") for tool in parts)])
    raise OptionError(
        f"unknown {kind} {given!r}",
        where=getattr(opt, kind),
        do=f"{hint}known: {listed}, and boards by name (docs/reference/boards.md)",
    )


# Suggests processors for names of processor families in a user's command.
_FAMILIES = {"cortexm0": "cortex-m0plus", "m0": "cortex-m0plus", "m0plus": "cortex-m0plus", "m4": "cortex-m4f"}


def board_of(given: str) -> Board:
    """Returns the FPGA board of a name that bitstreams are made for. Raises OptionError for others."""
    boards = {name: board for board in FPGAS for name in board.names if board.platform}
    spelled = {_squeezed(name): board for name, board in boards.items()}
    if _squeezed(given) in spelled:
        return spelled[_squeezed(given)]
    other = next((board for board in (*FPGAS, *PROCESSORS) if _plain(given) in board.names), None)
    what = f"no bitstreams are made for {other.title} ({other.chip})" if other else f"unknown board {given!r}"
    do = f"known: {', '.join(boards)}; on another board, put the core into a project of your own"
    near = [name for name in boards if _squeezed(given) in _squeezed(name)]
    near = near or get_close_matches(_plain(given), boards, 1)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise OptionError(what, where=opt.board, do=hint + do)


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_/:-]+", "", name.strip().lower().replace("+", "plus"))


def _plain(name: str) -> str:
    return re.sub(r"[\s_/:]+", "-", name.strip().lower())
