"""The table of supported devices. The devices of a family have the same LUTs, carry chains and tools.

Costs fitted on runs of these tools are in `fitted.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple


class Slower(NamedTuple):
    """Factors by which a device is slower than its family's timed device."""

    middle: float  # median slowdown of eight designs
    least: float
    most: float


AS_TIMED = Slower(1.0, 1.0, 1.0)
UP5K = Slower(2.68, 2.58, 2.91)
ECP5_25K, ECP5_45K = Slower(0.99, 0.94, 1.04), Slower(0.98, 0.9, 1.06)


class Luts(NamedTuple):
    """The areas and delays of a device family's LUTs, for the mapper."""

    areas: tuple[float, ...]  # area of a LUT by its number of inputs
    delays: tuple[tuple[float, ...], ...] = ()  # input delays by number of inputs, ascending; empty means 1 each
    chain: float = 1.0  # delay of a carry chain
    slack: float = 0.0  # delay allowed beyond the shortest possible


FOUR_INPUTS = Luts((0, 1, 1, 1, 1))
LARGER = Luts((0, 1, 1, 1, 1, 2, 4))  # LUTs of four inputs, joined by multiplexers


@dataclass(frozen=True)
class DeviceMemory:
    """The memory blocks of a device."""

    blocks: int  # number of block RAMs
    shapes: tuple[tuple[int, int], ...]  # (words, bits per word) to choose from for each block
    single: int = 0  # blocks of 16,384 words of 16 bits with one port

    def blocks_for(self, words: int, bits: int) -> int:
        """Returns how many block RAMs hold `words` words of `bits` bits, with a read port and a write port."""
        return min(-(-words // deep) * -(-bits // wide) for deep, wide in self.shapes)


PORTS = (
    "clk",
    "in_valid",
    "out_valid",
    "load",
    "x",
    "y",
    "rst",
    "en",
)  # ports of a design that is placed to measure it
EBR = ((512, 36), (1024, 18), (2048, 9))
BRAM = ((256, 16), (512, 8), (1024, 4), (2048, 2))
DP8KC = ((512, 18), (1024, 9), (2048, 4), (4096, 2))
CC_BRAM = ((512, 40), (1024, 20), (2048, 10), (4096, 5))
QN88 = ("52", "25", "26", "27", "28", "29", "30", "31")
BG400 = ("D12", "E17", "F13", "G13", "F14", "L16", "E18", "F16")


@dataclass(frozen=True)
class DeviceFamily:
    """Properties that all devices of a family share."""

    name: str
    delays: str  # key of `forestc.lowering.timing.DELAYS`
    synthesis: tuple[str, ...]  # yosys commands; the last is tried if the first crashes
    lut_inputs: int = 4
    luts: Luts = FOUR_INPUTS
    joined: bool = False  # True if multiplexers join LUTs to larger ones
    chained: tuple[str, ...] = ()  # kinds of cells that become carry chains
    shortest_chain: int = 3  # least number of bits of a carry chain
    chain_cells: float = 0.0  # logic cells per bit of a carry chain
    nextpnr: str = ""  # end of the program's name; empty if there is none
    logic_cell: str = ""  # nextpnr's name for a cell with a LUT
    few_pins: bool = False
    pins: tuple[str, str] = ("", "")  # nextpnr's option for a file of pins, and the file's line; empty without one
    mapped: str = ""  # template of cells that replace others before placing; empty if there is none
    timed: bool = True  # False if nextpnr's timing misses paths, so that no clock is reported
    timed_on: str = ""  # device with fitted path costs; empty if there is none


@dataclass(frozen=True)
class Device:
    """A device that `--device` names."""

    name: str
    family: DeviceFamily
    cells: int | None = None  # logic cells with one LUT each; None for any size
    nextpnr: tuple[str, ...] = ()  # command-line options; empty if designs are not placed
    slower: Slower = AS_TIMED  # slowdown against the family's timed device
    shown: int = 0  # order among the devices always estimated; 0 for other devices
    memory: DeviceMemory | None = None  # memory for engines; None if unknown
    pins: tuple[str, ...] = ()  # pin of each of `PORTS`, where nextpnr wants all pins named


LUT6 = DeviceFamily(
    "lut6",
    lut_inputs=6,
    delays="lut6",
    synthesis=(
        "synth -flatten -lut 6 -top {top}",
        "synth -flatten -noabc -top {top}; abc -lut 6; opt_clean",
    ),
    luts=Luts((0, 1, 1, 1, 1, 1, 1)),
)
XCUP = DeviceFamily(
    "xcup",
    lut_inputs=6,
    delays="lut6",
    synthesis=("synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}",),
    luts=Luts((0, 2, 2, 3, 5, 5, 5)),
    joined=True,
    chained=("add", "compare"),
)
ECP5 = DeviceFamily(
    "ecp5",
    delays="ecp5",
    synthesis=("synth_ecp5 -top {top}",),
    luts=Luts(
        areas=(0, 1, 1, 1, 1, 2, 4),
        delays=(  # of yosys's library, in ns, plus 0.3 for a wire
            (),
            (0.441,),
            (0.441, 0.575),
            (0.441, 0.575, 0.679),
            (0.441, 0.575, 0.679, 0.679),
            (0.451, 0.539, 0.673, 0.777, 0.777),
            (0.448, 0.592, 0.680, 0.814, 0.918, 0.918),
        ),
        chain=0.75,
        slack=0.6,
    ),
    joined=True,
    chained=("add", "compare", "less"),
    shortest_chain=5,
    chain_cells=1.0,
    nextpnr="ecp5",
    logic_cell="TRELLIS_COMB",
    timed_on="ecp5-85k",
)
ICE40 = DeviceFamily(
    "ice40",
    delays="ice40",
    synthesis=("synth_ice40 -top {top}",),
    chained=("add", "compare", "less"),
    chain_cells=1.0,
    nextpnr="ice40",
    logic_cell="ICESTORM_LC",
    few_pins=True,
    timed_on="ice40-hx8k",
)
# Without LUTs joined by multiplexers, with which yosys 0.70 takes a fifth to a half more LUTs.
GW1N = DeviceFamily(
    "gw1n",
    delays="ice40",
    synthesis=("synth_gowin -family gw1n -nowidelut -top {top}",),
    chained=("add", "compare", "less"),
    chain_cells=1.0,
    nextpnr="himbaechel-gowin",
    logic_cell="LUT4",
    few_pins=True,
    pins=("--vopt cst={file}", 'IO_LOC "{port}" {pin};'),
    mapped="synth/luts.v.j2",
    timed_on="gw1nr-9",
)
# Without the carry chains (ALU), which users report to be miscompiled for the GW2A-18C.
GW2A = replace(
    GW1N,
    name="gw2a",
    synthesis=("synth_gowin -family gw2a -nowidelut -noalu -top {top}",),
    chained=(),
    timed_on="gw2ar-18",
)
MACHXO = DeviceFamily(
    "machxo",
    delays="ice40",
    synthesis=("synth_lattice -family xo2 -top {top}",),
    chained=("add", "compare", "less"),
    shortest_chain=5,
    chain_cells=1.0,
    nextpnr="machxo2",
    logic_cell="TRELLIS_COMB",
    few_pins=True,
)
# Without carry chains, as nextpnr-nexus 0.11.1 refuses the constant at the start of those of yosys 0.70.
NEXUS = DeviceFamily(
    "nexus",
    delays="ecp5",
    synthesis=("synth_nexus -noccu2 -top {top}",),
    luts=LARGER,
    joined=True,
    chain_cells=1.0,
    nextpnr="nexus",
    logic_cell="OXIDE_COMB",
    few_pins=True,
    pins=("--pdc {file}", "ldc_set_location -site {{{pin}}} [get_ports {port}]"),
)
GATEMATE = DeviceFamily(
    "gatemate",
    delays="ice40",
    synthesis=("synth_gatemate -luttree -nomx8 -top {top}",),
    chained=("add", "compare", "less"),
    chain_cells=2.0,
    nextpnr="himbaechel-gatemate",
    logic_cell="CPE_LT",
    timed=False,
    few_pins=True,
)
FAMILIES: Mapping[str, DeviceFamily] = {
    family.name: family for family in (LUT6, XCUP, ECP5, ICE40, GW1N, GW2A, MACHXO, NEXUS, GATEMATE)
}

DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device("lut6", LUT6),
        Device("xcup", XCUP, shown=1),
        Device("ice40-hx8k", ICE40, 7680, ("--hx8k", "--package", "ct256"), shown=3, memory=DeviceMemory(32, BRAM)),
        Device("ice40-up5k", ICE40, 5280, ("--up5k", "--package", "sg48"), UP5K, memory=DeviceMemory(30, BRAM, 4)),
        Device("ecp5-25k", ECP5, 24288, ("--25k", "--out-of-context"), ECP5_25K, memory=DeviceMemory(56, EBR)),
        Device("ecp5-45k", ECP5, 43848, ("--45k", "--out-of-context"), ECP5_45K, memory=DeviceMemory(108, EBR)),
        Device("ecp5-85k", ECP5, 83640, ("--85k", "--out-of-context"), shown=2, memory=DeviceMemory(208, EBR)),
        Device(
            "gw1nr-9",
            GW1N,
            8640,
            ("--device", "GW1NR-LV9QN88PC6/I5", "--vopt", "family=GW1N-9C"),
            memory=DeviceMemory(26, EBR),
            pins=QN88,
        ),
        Device(
            "gw2ar-18",
            GW2A,
            20736,
            ("--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C"),
            memory=DeviceMemory(46, EBR),
            pins=QN88,
        ),
        Device("machxo2-1200", MACHXO, 1280, ("--device", "LCMXO2-1200HC-4TG100C"), memory=DeviceMemory(7, DP8KC)),
        Device("machxo3-6900", MACHXO, 6864, ("--device", "LCMXO3LF-6900C-5BG256C"), memory=DeviceMemory(26, DP8KC)),
        Device("nexus-40", NEXUS, 32256, ("--device", "LIFCL-40-9BG400CES"), memory=DeviceMemory(84, EBR), pins=BG400),
        Device(
            "gatemate-a1",
            GATEMATE,
            40960,
            ("--device", "CCGM1A1", "--vopt", "allow-unconstrained"),
            memory=DeviceMemory(64, CC_BRAM),
        ),
    )
}


def family_of(device: str) -> str:
    """Returns the name of a device's delays; those of LUT6 for a part that only a vendor's tool knows."""
    return (DEVICES[device].family if device in DEVICES else LUT6).delays
