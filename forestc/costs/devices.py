"""The devices that designs are made for: one table with what the estimates, the lowering and the tools need to know.

A family shares its LUTs, carry chains, delays and tools; a device is one size of a family. Costs that were fitted on
real runs are in `fitted.json` (`forestc.costs.fitted`), under the names of this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Delays:
    """What cells take, in any unit: a two-way gate, a mux; a comparison with a constant, a sum, a comparison of words,
    each with what every bit adds."""

    gate: float
    mux: float
    less: tuple[float, float]
    add: tuple[float, float]
    compare: tuple[float, float]


# By target: the name that a compiled folder keeps of the delays its registers were placed by. lut6: levels of 6-input
# LUTs; the others in ns, near the fitted costs of paths. They are no part of a new fit: other delays would move
# registers in the designs of every user.
DELAYS: Mapping[str, Delays] = {
    "lut6": Delays(0.4, 0.5, (0.8, 0.05), (1.0, 0.12), (1.0, 0.12)),
    "ecp5": Delays(0.3, 0.8, (0.4, 0.15), (0.2, 0.2), (0.1, 0.25)),
    "ice40": Delays(0.3, 0.7, (0.4, 0.2), (0.6, 0.17), (0.1, 0.3)),
}
DEFAULT_TARGET = "lut6"


class Slower(NamedTuple):
    """How many times slower a device is than the one its family was timed on: middle, and the ends found on eight
    designs placed and routed on both (benchmarks/slower_devices.py)."""

    middle: float
    least: float
    most: float


AS_TIMED = Slower(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Family:
    """What the devices of a family have in common.

    lut_inputs: of a LUT. target: the key of DELAYS by which registers are placed. synthesis: yosys's commands, the
    module's name as {top}; a second one is another way to the same, tried where the first ends without a word. The
    design is flattened, the class decision and all, without pads, so that counts can be compared.
    chained: cells that go on carry chains where they are wider than two bits. chain_cells: logic cells that a bit of a
    chain takes for itself. merge_depth: depth in LUTs from which the mapper merges LUTs into larger ones for speed, 0
    where it does not; merge_inputs: inputs of those.
    nextpnr: its name of the family, empty where it places nothing; logic_cell: what it calls a cell with a LUT.
    few_pins: ports are placed as pins, too few for a design's, so its bits are shifted in and out.
    timed_on: the device whose clock was fitted, empty where none was.
    """

    name: str
    lut_inputs: int
    target: str
    synthesis: tuple[str, ...]
    chained: tuple[str, ...] = ()
    chain_cells: float = 0.0
    merge_depth: int = 0
    merge_inputs: int = 0
    nextpnr: str = ""
    logic_cell: str = ""
    few_pins: bool = False
    timed_on: str = ""


@dataclass(frozen=True)
class Device:
    """A device as `--device` names it.

    cells: its logic cells, each with one LUT; None of those that stand for any size. nextpnr: its options, none where
    the design is synthesised and not placed. slower: than the device its family was timed on. shown: its place among
    those that every design is estimated for; 0 where it is not among them.
    """

    name: str
    family: Family
    cells: int | None = None
    nextpnr: tuple[str, ...] = ()
    slower: Slower = AS_TIMED
    shown: int = 0


LUT6 = Family(
    "lut6",
    lut_inputs=6,
    target="lut6",
    synthesis=(
        "synth -flatten -lut 6 -top {top}",
        "synth -flatten -noabc -top {top}; abc -lut 6; opt_clean",
    ),
)
XCUP = Family(
    "xcup",
    lut_inputs=6,
    target="lut6",
    synthesis=("synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}",),
    chained=("add", "compare"),
)
ECP5 = Family(
    "ecp5",
    lut_inputs=4,
    target="ecp5",
    synthesis=("synth_ecp5 -top {top}",),
    chained=("add", "compare", "less"),
    chain_cells=1.0,
    merge_depth=5,
    merge_inputs=6,
    nextpnr="ecp5",
    logic_cell="TRELLIS_COMB",
    timed_on="ecp5-85k",
)
ICE40 = Family(
    "ice40",
    lut_inputs=4,
    target="ice40",
    synthesis=("synth_ice40 -top {top}",),
    chained=("add", "compare", "less"),
    chain_cells=1.0,
    nextpnr="ice40",
    logic_cell="ICESTORM_LC",
    few_pins=True,
    timed_on="ice40-hx8k",
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in (LUT6, XCUP, ECP5, ICE40)}

DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device("lut6", LUT6),
        Device("xcup", XCUP, shown=1),
        Device("ice40-hx8k", ICE40, 7680, ("--hx8k", "--package", "ct256"), shown=3),
        Device("ice40-up5k", ICE40, 5280, ("--up5k", "--package", "sg48"), Slower(2.79, 2.5, 2.9)),
        Device("ecp5-25k", ECP5, 24288, ("--25k", "--out-of-context")),
        Device("ecp5-45k", ECP5, 43848, ("--45k", "--out-of-context")),
        Device("ecp5-85k", ECP5, 83640, ("--85k", "--out-of-context"), shown=2),
    )
}


def target_of(device: str) -> str:
    """The target by whose delays registers are placed; the default of what is not in the table, as a vendor's part."""
    return DEVICES[device].family.target if device in DEVICES else DEFAULT_TARGET
