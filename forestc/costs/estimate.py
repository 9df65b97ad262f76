"""Estimates of area and clock rate on a device, from the netlist alone.

Flip-flops and latency are counted. For LUTs, the logic between registers and adders is bit-blasted and covered greedily
by K-input LUTs, while adders and comparisons count by their bits. The cost of each of these, and the delay of each cell
on the slowest path, were fitted on synthesis and place-and-route runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from forestc.costs.devices import DEVICES, Family
from forestc.costs.fitted import LUT_FEATURES, PATH_FEATURES, fitted
from forestc.errors import OptionError
from forestc.netlist.bit_network import BitNetwork
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

MOST_CELLS = 60_000
FASTEST_NS = 1.5  # shortest clock period: a design of wires only


def estimated(device: str) -> bool:
    """Whether a device can be estimated: it is in the table, and costs were fitted for its family."""
    return device in DEVICES and DEVICES[device].family.name in fitted().luts


def estimate(netlist: Netlist, device: str) -> dict[str, Any]:
    """lut, ff, latency_cycles and fmax_mhz (None if no device of the family was timed) of a design on a device.

    lut_range, fmax_range: (least, most), which held nine of ten designs that were not in the fit. As in `synth`, Fmax
    counts the paths between registers, with all ports registered. Time is linear in the netlist. Raises OptionError for
    a device without estimates.
    """
    if not estimated(device):
        raise OptionError(f"no estimates for {device!r}", do=f"known: {', '.join(filter(estimated, DEVICES))}")
    family, slower = DEVICES[device].family, DEVICES[device].slower
    known = fitted()
    costs = known.luts[family.name]
    cells = lut_features(netlist, family, [name for name in LUT_FEATURES if costs[name]])
    lut = cells["tables"] + sum(costs[name] * cells[name] for name in LUT_FEATURES if costs[name])
    fmax = fmax_range = None
    if family.timed_on in known.paths_ns:
        path_costs = known.paths_ns[family.timed_on]
        path = path_features(netlist, path_costs, lut, cells["levels"])
        period = sum(path_costs[name] * path[name] for name in PATH_FEATURES)
        fmax = round(1000 / max(period, FASTEST_NS) / slower.middle, 1)
        low, high = known.nine_of_ten[family.timed_on]
        fmax_range = (
            round(fmax * low * slower.middle / slower.most, 1),
            round(fmax * high * slower.middle / slower.least, 1),
        )
    return {
        "device": device,
        "lut": round(lut),
        "ff": round(cells["ff"]),
        "latency_cycles": netlist.latency,
        "fmax_mhz": fmax,
        "lut_range": tuple(round(lut * share) for share in known.nine_of_ten[family.name]),
        "fmax_range": fmax_range,
    }


def estimates(netlist: Netlist, device: str | None = None) -> list[dict[str, Any]]:
    """Estimates for `device`, if given, and for the devices that are always shown. Empty for more than `MOST_CELLS`
    cells, where estimating would dominate the time of a compilation."""
    if len(netlist.cells) > MOST_CELLS:
        return []
    shown = sorted((entry for entry in DEVICES.values() if entry.shown), key=lambda entry: entry.shown)
    wanted = dict.fromkeys([device or "", *(entry.name for entry in shown)])
    return [estimate(netlist, name) for name in wanted if estimated(name)]


def lut_features(netlist: Netlist, family: Family, wanted: Collection[str] = LUT_FEATURES) -> dict[str, float]:
    """The features that LUTs are estimated from: those of `LUT_FEATURES` in `wanted`; also tables, the LUTs of large
    functions of few conditions; ff, the flip-flops; and levels, the depth in LUTs between registers."""
    bits = BitNetwork(netlist, family.chained, family.table_inputs)
    inputs, depth = family.lut_inputs, family.merge_depth
    counters: dict[str, Callable[[], float]] = {
        "logic": lambda: bits.covered(inputs),
        "fast": lambda: bits.covered(inputs, fast=True),
        "late": lambda: bits.covered(inputs, fast=True, after=depth) if depth else 0,
        "critical": lambda: bits.critical(family.merge_inputs, inputs) if depth else 0,
        "mux": lambda: bits.gates(3),
        "gate": lambda: bits.gates(2),
    }
    counted = {name: count() for name, count in counters.items() if name in wanted}  # each is a pass over all bits
    tables = sum(bits.in_tables(inputs).values())
    return {
        **bits.chained_counts(), **counted, "tables": tables, "ff": bits.flip_flops(), "levels": bits.levels(inputs)
    }  # fmt: skip


def path_features(netlist: Netlist, costs: Mapping[str, float], luts: float, levels: float) -> dict[str, float]:
    """The `PATH_FEATURES` of the path between registers that is slowest by these costs. costs: ns per feature."""
    fan_out = [0] * len(netlist.cells)
    for cell in netlist.cells:
        for net in reads(cell):
            fan_out[net] += 1
    steps: list[dict[str, float]] = []
    arrival: list[float] = []
    before: list[Net] = []
    worst, end = -1.0, -1
    for net, cell in enumerate(netlist.cells):
        last = max(reads(cell), key=lambda a: arrival[a], default=-1)
        if isinstance(cell, Register) or last < 0:
            if last >= 0 and arrival[last] > worst:
                worst, end = arrival[last], last
            steps.append({"fan_out": math.log2(1 + fan_out[net])})
            arrival.append(costs["fan_out"] * steps[-1]["fan_out"])
            before.append(-1)
            continue
        here = _step(netlist, net)
        if here:
            here["fan_out"] = math.log2(1 + fan_out[net])
        steps.append(here)
        arrival.append(arrival[last] + sum(costs[name] * amount for name, amount in here.items()))
        before.append(last)
    for port, net in netlist.outputs:
        if port.kind != "valid" and arrival[net] > worst:
            worst, end = arrival[net], net
    total = dict.fromkeys(PATH_FEATURES, 0.0)
    total |= {"one": 1.0, "size": math.log2(1 + luts), "levels": levels * math.log2(1 + luts)}
    while end >= 0:
        for name, amount in steps[end].items():
            total[name] += amount
        end = before[end]
    return total


def _step(netlist: Netlist, net: Net) -> dict[str, float]:
    """The features that a combinational cell adds to a path."""
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
