"""What a design will take on a device, told from its netlist before any synthesis.

Flip-flops and latency follow from the netlist. LUTs: the logic between registers and adders is written as one-bit
functions, equal ones as one, and covered greedily with K-input LUTs; adders and comparisons count by their bits. What
each of these costs was fitted on real runs, and so was what the cells of the slowest path cost in time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from forestc.backends.ports import VALID_PORTS
from forestc.design import Design
from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.lowering.schedule import pipelined
from forestc.lowering.trees import LoweringOptions, unregistered
from forestc.netlist.ir import (
    Add,
    And,
    Compare,
    Const,
    InSet,
    Less,
    Mux,
    Net,
    Netlist,
    Or,
    Register,
    reads,
)
from forestc.netlist.one_bit import OneBit

SHOWN = ("xcup", "ecp5-85k", "ice40-hx8k")
MOST_CELLS = 60_000
MOST_STAGES = 24  # tried for a wanted clock
FASTEST_NS = 1.5  # of a design that is wires alone
# Devices of a family that are slower than the one its delays were fitted on: how many times, and between which ends, on
# eight designs placed and routed on both (benchmarks/slower_devices.py).
SLOWER: Mapping[str, tuple[float, float, float]] = {"ice40-up5k": (2.79, 2.5, 2.9)}
WIDE, LATE, JOINED = ("ecp5",), 5, 6  # where LUTs are joined to larger ones for speed, behind so many; of what inputs
INPUTS = {"lut6": 6, "xcup": 6, "ecp5": 4, "ice40": 4}  # of a LUT
CHAINED = {  # what goes on carry chains, where it is wider than two bits
    "lut6": (),
    "xcup": ("add", "compare"),
    "ecp5": ("add", "compare", "less"),
    "ice40": ("add", "compare", "less"),
}
# logic, fast: LUTs that cover the one-bit functions, by two rules; late: those far behind a register; critical: what
# joined LUTs on the longest paths take; mux, gate: those functions of three and two inputs; pass: results of chains
# that logic does not take; the others: bits and numbers of what goes on carry chains
LUT_FEATURES = (
    "logic",
    "fast",
    "late",
    "critical",
    "mux",
    "gate",
    "pass",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "less",
    "less_bits",
)
# of the slowest path: its cells and their bits; levels: of LUTs, each as long as its wires are in a design of that size
PATH_FEATURES = (
    "one",
    "less_bits",
    "mux",
    "logic",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "fan_out",
    "size",
    "levels",
)

# Fitted by benchmarks/estimates.py --write.
# begin of what it writes
LUT_COSTS: Mapping[str, Mapping[str, float]] = {
    "lut6": {
        "logic": 0.8178,
        "fast": 0.0,
        "late": 0.0,
        "critical": 0.0,
        "mux": 0.0,
        "gate": 0.061,
        "pass": 0.0,
        "add": 0.0,
        "add_bits": 0.0,
        "compare": 0.0,
        "compare_bits": 0.0,
        "less": 0.0,
        "less_bits": 0.0,
    },
    "xcup": {
        "logic": 0.2553,
        "fast": 0.2146,
        "late": 0.0,
        "critical": 0.0,
        "mux": 0.346,
        "gate": 0.1569,
        "pass": 2.1059,
        "add": 0.0,
        "add_bits": 0.6764,
        "compare": 0.0,
        "compare_bits": 0.2931,
        "less": 0.0,
        "less_bits": 0.0,
    },
    "ecp5": {
        "logic": 0.0,
        "fast": 0.0,
        "late": 1.2062,
        "critical": 0.4342,
        "mux": 1.1032,
        "gate": 0.3899,
        "pass": 0.0,
        "add": 0.0,
        "add_bits": 0.0,
        "compare": 0.0,
        "compare_bits": 0.0,
        "less": 0.0,
        "less_bits": 0.0,
    },
    "ice40": {
        "logic": 0.0,
        "fast": 0.2482,
        "late": 0.0,
        "critical": 0.0,
        "mux": 0.6905,
        "gate": 0.2817,
        "pass": 0.6116,
        "add": 0.0,
        "add_bits": 1.0338,
        "compare": 2.2657,
        "compare_bits": 0.2358,
        "less": 0.0,
        "less_bits": 0.256,
    },
}
PATH_COSTS_NS: Mapping[str, Mapping[str, float]] = {
    "ecp5-85k": {
        "one": 0.0005,
        "less_bits": 0.0912,
        "mux": 0.5454,
        "logic": 0.0702,
        "add": 0.156,
        "add_bits": 0.1694,
        "compare": 0.0002,
        "compare_bits": 0.2043,
        "fan_out": 0.0,
        "size": 0.263,
        "levels": 0.016,
    },
    "ice40-hx8k": {
        "one": 0.0005,
        "less_bits": 0.1134,
        "mux": 0.2473,
        "logic": 0.0,
        "add": 0.4135,
        "add_bits": 0.1759,
        "compare": 0.0002,
        "compare_bits": 0.3042,
        "fan_out": 0.3099,
        "size": 0.1896,
        "levels": 0.0052,
    },
}
NINE_OF_TEN: Mapping[str, tuple[float, float]] = {
    "lut6": (0.8, 1.2),
    "xcup": (0.8, 1.2),
    "ecp5": (0.8, 1.2),
    "ice40": (0.8, 1.2),
    "ecp5-85k": (0.8, 1.2),
    "ice40-hx8k": (0.8, 1.2),
}
# end of what it writes


def family_of(device: str) -> str:
    """The target whose LUTs a device has. Raises OptionError if there are no estimates for it."""
    family = device.partition("-")[0]
    if family not in INPUTS:
        raise OptionError(f"no estimates for {device!r}", do=f"known: {', '.join([*INPUTS, *PATH_COSTS_NS])}")
    return family


def estimate(design: Design | Netlist, device: str) -> dict[str, Any]:
    """lut, ff, latency_cycles, and fmax_mhz (None where nothing is placed) of a design on a device of `forestc synth`.

    lut_range, fmax_range: (least, most) between which nine of ten designs lie that were not fitted on. Between
    registers on all ports, as `synth` tells Fmax. Time is linear in the netlist. Raises OptionError.
    """
    netlist = design.netlist if isinstance(design, Design) else design
    family = family_of(device)
    costs = LUT_COSTS[family]
    cells = lut_features(netlist, family, [name for name in LUT_FEATURES if costs[name]])
    lut = sum(costs[name] * cells[name] for name in LUT_FEATURES if costs[name])
    placed = next((name for name in PATH_COSTS_NS if name.partition("-")[0] == family and device != family), None)
    fmax = fmax_range = None
    if placed is not None:
        path = path_features(netlist, PATH_COSTS_NS[placed], lut, cells["levels"])
        period = sum(PATH_COSTS_NS[placed][name] * path[name] for name in PATH_FEATURES)
        slower, least, most = SLOWER.get(device, (1.0, 1.0, 1.0))
        fmax = round(1000 / max(period, FASTEST_NS) / slower, 1)
        low, high = NINE_OF_TEN[placed]
        fmax_range = (round(fmax * low * slower / most, 1), round(fmax * high * slower / least, 1))
    return {
        "device": device,
        "lut": round(lut),
        "ff": round(cells["ff"]),
        "latency_cycles": netlist.latency,
        "fmax_mhz": fmax,
        "lut_range": tuple(round(lut * share) for share in NINE_OF_TEN[family]),
        "fmax_range": fmax_range,
    }


def estimates(netlist: Netlist, device: str | None = None) -> list[dict[str, Any]]:
    """Of the device, and of `SHOWN` ones; none of a netlist so large that compiling would take far longer."""
    if len(netlist.cells) > MOST_CELLS:
        return []
    known = device is not None and device.partition("-")[0] in INPUTS
    return [estimate(netlist, name) for name in dict.fromkeys([*([device] if known and device else []), *SHOWN])]


def latency_for(forest: Forest, options: LoweringOptions, clock_mhz: float, device: str) -> int:
    """The fewest clock cycles with which a device runs at a clock, by the estimate. Raises OptionError where none
    does, or where nothing is placed on the device."""
    best = 0.0
    logic, _ = unregistered(forest, replace(options, latency=1))
    for latency in range(1, MOST_STAGES + 1):
        fmax = estimate(pipelined(logic, latency, options.target)[0], device)["fmax_mhz"]
        if fmax is None:
            raise OptionError(f"no clock is told of {device}", do=f"use one of {', '.join(PATH_COSTS_NS)}")
        if fmax >= clock_mhz:
            return latency
        best = max(best, fmax)
    raise OptionError(
        f"no latency up to {MOST_STAGES} reaches {clock_mhz:g} MHz", do=f"the estimate ends at {best:.0f} MHz"
    )


def lut_features(netlist: Netlist, family: str, wanted: Collection[str] = LUT_FEATURES) -> dict[str, float]:
    """What LUTs and flip-flops are counted from: those wanted of `LUT_FEATURES`, and ff; and levels, of LUTs between
    registers."""
    bits = OneBit(netlist, CHAINED[family])
    inputs, wide = INPUTS[family], family in WIDE
    told: dict[str, Callable[[], float]] = {
        "logic": lambda: bits.covered(inputs),
        "fast": lambda: bits.covered(inputs, fast=True),
        "late": lambda: bits.covered(inputs, fast=True, after=LATE) if wide else 0,
        "critical": lambda: bits.critical(JOINED, inputs) if wide else 0,
        "mux": lambda: bits.gates(3),
        "gate": lambda: bits.gates(2),
    }
    counted = {name: count() for name, count in told.items() if name in wanted}  # each goes through the whole netlist
    return {**bits.chained_counts(), **counted, "ff": bits.flip_flops(), "levels": bits.levels(inputs)}


def path_features(netlist: Netlist, costs: Mapping[str, float], luts: float, levels: float) -> dict[str, float]:
    """`PATH_FEATURES` of the path between registers that is slowest by these costs (ns each)."""
    fan_out = [0] * len(netlist.cells)
    for cell in netlist.cells:
        for net in reads(cell):
            fan_out[net] += 1
    own: list[dict[str, float]] = []
    arrival: list[float] = []
    before: list[Net] = []
    worst, end = -1.0, -1
    for net, cell in enumerate(netlist.cells):
        last = max(reads(cell), key=lambda a: arrival[a], default=-1)
        if isinstance(cell, Register) or last < 0:
            if last >= 0 and arrival[last] > worst:
                worst, end = arrival[last], last
            own.append({"fan_out": math.log2(1 + fan_out[net])})
            arrival.append(costs["fan_out"] * own[-1]["fan_out"])
            before.append(-1)
            continue
        here = _step(netlist, net)
        if here:
            here["fan_out"] = math.log2(1 + fan_out[net])
        own.append(here)
        arrival.append(arrival[last] + sum(costs[name] * amount for name, amount in here.items()))
        before.append(last)
    for name, net in netlist.outputs:
        if name not in VALID_PORTS and arrival[net] > worst:
            worst, end = arrival[net], net
    total = dict.fromkeys(PATH_FEATURES, 0.0)
    total |= {"one": 1.0, "size": math.log2(1 + luts), "levels": levels * math.log2(1 + luts)}
    while end >= 0:
        for name, amount in own[end].items():
            total[name] += amount
        end = before[end]
    return total


def _step(netlist: Netlist, net: Net) -> dict[str, float]:
    """What a combinational cell adds to a path."""
    cell = netlist.cells[net]
    match cell:
        case Less(a) | InSet(a):
            return {"less_bits": float(netlist.types[a].width)}
        case Mux():
            return {"mux": 1.0}
        case And() | Or():
            return {"logic": 1.0}
        case Compare(a, _):
            return {"compare": 1.0, "compare_bits": float(netlist.types[a].width)}
        case Add(operands, width):
            plain = sum(not (isinstance(c := netlist.cells[a], Const) and c.value == 0) for a in operands)
            return {"add": 1.0, "add_bits": float(width)} if plain > 1 else {}
        case _:
            return {}
