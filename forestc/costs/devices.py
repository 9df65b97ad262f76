"""The table of supported devices, with all that estimates, lowering and tools need to know about them.

The devices of a family have the same LUTs, carry chains, delays and tools. Costs fitted on synthesis and
place-and-route runs are in `fitted.json` (`forestc.costs.fitted`), under the names of this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Delays:
    """A model of a family's delays, each as (constant, per bit), in any unit. inputs: of the largest LUT. table: of a
    LUT. less: of a comparison with a constant that is no LUT. add: of a sum. compare: of a comparison of two words."""

    inputs: int
    table: tuple[float, float]
    less: tuple[float, float]
    add: tuple[float, float]
    compare: tuple[float, float]


# Delays that decide where lowering puts registers, by a manifest's `target`; in ns, for lut6 in levels of LUTs.
# These delays are never fitted anew: other delays would move the registers in every user's designs.
DELAYS: Mapping[str, Delays] = {
    "lut6": Delays(6, (0.7, 0.05), (0.8, 0.05), (1.0, 0.12), (1.0, 0.12)),
    "ecp5": Delays(6, (0.8, 0.06), (0.9, 0.06), (1.2, 0.14), (1.2, 0.14)),
    "ice40": Delays(4, (1.0, 0.05), (0.4, 0.2), (0.6, 0.17), (0.1, 0.3)),
}
DEFAULT_FAMILY = "lut6"


class Slower(NamedTuple):
    """How many times slower a device is than the device its family was timed on: median, least and most of eight
    designs placed and routed on both (benchmarks/slower_devices.py)."""

    middle: float
    least: float
    most: float


AS_TIMED = Slower(1.0, 1.0, 1.0)
UP5K = Slower(2.68, 2.58, 2.91)
ECP5_25K, ECP5_45K = Slower(0.99, 0.94, 1.04), Slower(0.98, 0.9, 1.06)


class Luts(NamedTuple):
    """The LUTs for yosys's mapper, of at most len(areas) - 1 inputs.

    areas: of a LUT, by its number of inputs. delays: by the number of inputs, from each input to the output with a
    wire, the fastest first, in any unit; empty if all are 1. chain: the delay of a carry chain. slack: how much later
    than possible the last result may be ready.
    """

    areas: tuple[float, ...]
    delays: tuple[tuple[float, ...], ...] = ()
    chain: float = 1.0
    slack: float = 0.0


FOUR_INPUTS = Luts((0, 1, 1, 1, 1))


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of a device. blocks: number of block RAMs, each with any of `shapes` (words, bits of a word). single:
    number of blocks of 16,384 words of 16 bits with one port."""

    blocks: int
    shapes: tuple[tuple[int, int], ...]
    single: int = 0

    def blocks_for(self, words: int, bits: int) -> int:
        """Returns the number of blocks for a memory with one port to read and one to write."""
        return min(-(-words // deep) * -(-bits // wide) for deep, wide in self.shapes)


EBR = ((512, 36), (1024, 18), (2048, 9))
BRAM = ((256, 16), (512, 8), (1024, 4), (2048, 2))


@dataclass(frozen=True)
class DeviceFamily:
    """The common properties of a family's devices.

    lut_inputs: inputs of a LUT. delays: the key of DELAYS by which registers are placed. synthesis: commands for yosys,
    with {top} for the module's name; a further entry is tried if the one before crashes. The design is flattened and
    gets no pads, so that counts can be compared. chained: cells that become carry chains. shortest_chain: bits of the
    shortest. chain_cells: logic cells per bit of a chain. luts: for yosys's mapper. joined: True if multiplexers join
    LUTs to larger ones.
    nextpnr: the suffix of nextpnr's name, empty if it does not support the family. logic_cell: nextpnr's name for a
    cell with a LUT. few_pins: True if a device has fewer pins than a design has bits; bits are then shifted in and out.
    timed_on: the device with fitted path costs, empty if there is none.
    """

    name: str
    lut_inputs: int
    delays: str
    synthesis: tuple[str, ...]
    luts: Luts = FOUR_INPUTS
    joined: bool = False
    chained: tuple[str, ...] = ()
    shortest_chain: int = 3
    chain_cells: float = 0.0
    nextpnr: str = ""
    logic_cell: str = ""
    few_pins: bool = False
    timed_on: str = ""


@dataclass(frozen=True)
class Device:
    """A device as `--device` names it.

    cells: its logic cells with one LUT each; None if it stands for any size. nextpnr: command-line options; empty if
    designs are synthesized but not placed. slower: compared with the device its family was timed on. shown: its
    position among the devices that every design is estimated for; 0 if it is not among them. memory: None if unknown.
    """

    name: str
    family: DeviceFamily
    cells: int | None = None
    nextpnr: tuple[str, ...] = ()
    slower: Slower = AS_TIMED
    shown: int = 0
    memory: DeviceMemory | None = None


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
    lut_inputs=4,
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
    lut_inputs=4,
    delays="ice40",
    synthesis=("synth_ice40 -top {top}",),
    chained=("add", "compare", "less"),
    chain_cells=1.0,
    nextpnr="ice40",
    logic_cell="ICESTORM_LC",
    few_pins=True,
    timed_on="ice40-hx8k",
)
FAMILIES: Mapping[str, DeviceFamily] = {family.name: family for family in (LUT6, XCUP, ECP5, ICE40)}

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
    )
}


def family_of(device: str) -> str:
    """Returns the key of DELAYS by which registers are placed; the default for parts of vendors' tools."""
    return DEVICES[device].family.delays if device in DEVICES else DEFAULT_FAMILY
