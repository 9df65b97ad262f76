"""Estimates a netlist's area and clock rate on a device, without tools.

The logic is split into bits and covered by LUTs. Costs of LUTs and paths were fitted on synthesis and place-and-route
runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from forestc.costs.bit_network import BitNetwork
from forestc.costs.devices import DEVICES, DeviceFamily
from forestc.costs.fitted import LUT_FEATURES, PATH_FEATURES, SPARE, fitted
from forestc.costs.lut_cover import Cut
from forestc.errors import OptionError, opt
from forestc.netlist.ir import Netlist

MOST_CELLS = 60_000  # cells of a netlist; `estimates` skips larger ones
FASTEST_NS = 1.5  # nanoseconds of the shortest clock period, for wires only


def estimated(device: str) -> bool:
    return device in DEVICES and DEVICES[device].family.name in fitted().luts


def estimate(netlist: Netlist, device: str) -> dict[str, Any]:
    """Returns a dictionary with estimates for a netlist on a device: LUTs, flip-flops, latency and clock rate. fmax_mhz
    and fmax_range are None without fitted path costs. Raises OptionError without fitted LUT costs."""
    if not estimated(device):
        raise OptionError(
            f"no estimates for {device!r}", where=opt.device, do=f"known: {', '.join(filter(estimated, DEVICES))}"
        )
    family, slower = DEVICES[device].family, DEVICES[device].slower
    table = fitted()
    mapped = Mapped.of(netlist, family)
    cells = mapped.lut_features()
    costs = table.luts[family.name]
    least = mapped.fewest_luts()
    lut = max(least, sum(costs[name] * cells[name] for name in LUT_FEATURES))
    fmax = fmax_range = None
    if family.timed_on in table.paths_ns:
        path_costs = table.paths_ns[family.timed_on]
        path = mapped.path_features(path_costs, lut)
        period = sum(path_costs[name] * path[name] for name in PATH_FEATURES)
        fmax = round(1000 / max(period, FASTEST_NS) / slower.middle, 1)
        low, high = table.nine_of_ten[family.timed_on]
        fmax_range = (
            round(fmax * low * slower.middle / slower.most, 1),
            round(fmax * high * slower.middle / slower.least, 1),
        )
    low, high = table.nine_of_ten[family.name]
    return {
        "device": device,
        "lut": round(lut),
        "ff": mapped.bits.flip_flops(),
        "latency_cycles": netlist.latency,
        "fmax_mhz": fmax,
        "lut_range": lut_range(lut, low, high, least),
        "fmax_range": fmax_range,
    }


def lut_range(lut: float, low: float, high: float, least: int) -> tuple[int, int]:
    """Returns the ends of a range of LUTs: (lut + SPARE) times `low` or `high`, minus SPARE, rounded outward. No end is
    below `least`."""
    return (
        max(least, math.floor((lut + SPARE) * low - SPARE)),
        max(least, math.ceil((lut + SPARE) * high - SPARE)),
    )


def estimates(netlist: Netlist, device: str | None = None) -> list[dict[str, Any]]:
    """Returns a list of estimates for `device`, if given, and for the devices always shown, if they have fitted costs;
    an empty list above `MOST_CELLS` cells."""
    if len(netlist.cells) > MOST_CELLS:
        return []
    shown = sorted((entry for entry in DEVICES.values() if entry.shown), key=lambda entry: entry.shown)
    names = dict.fromkeys([device or "", *(entry.name for entry in shown)])
    return [estimate(netlist, name) for name in names if estimated(name)]


@dataclass(frozen=True)
class Mapped:
    """A netlist covered by a family's LUTs and carry chains."""

    family: DeviceFamily
    bits: BitNetwork
    luts: Mapping[int, Cut]  # nodes that each LUT reads, by the LUT's root

    @classmethod
    def of(cls, netlist: Netlist, family: DeviceFamily) -> Mapped:
        bits = BitNetwork(netlist, family.chained, family.shortest_chain)
        return cls(family, bits, bits.cover(family.luts))

    def lut_features(self) -> dict[str, float]:
        single = self.family.lut_inputs
        luts = sum(1 << max(0, len(cut) - single) for cut in self.luts.values())
        chains = self.bits.chained_counts()
        return {**chains, "lut": luts, "mux": self.bits.gates(3), "gate": self.bits.gates(2)}

    def fewest_luts(self) -> int:
        """Returns a lower bound of the number of LUTs: enough to read all bits that outputs and registers depend on."""
        bits, registers = self.bits, set(self.bits.registers)
        logic = {edge >> 1 for edge in bits.outputs} | {
            edge >> 1 for register in registers if bits.alive[register >> 1] for edge in bits.feeds[register >> 1]
        }
        logic = {node for node in logic if bits.nodes[node]}
        todo, seen = list(logic), set(logic)
        read = 0
        while todo:
            for edge in bits.nodes[todo.pop()]:
                node = edge >> 1
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
                    read += not bits.nodes[node]
        clocked = sum(bits.alive[register >> 1] for register in registers)
        more = self.family.lut_inputs - 1 + 2 * self.family.joined
        return max(0, math.ceil((read - len(logic) - 2 * clocked) / more))

    def path_features(self, costs: Mapping[str, float], luts: float) -> dict[str, float]:
        """Returns a dictionary with the amount of each of `PATH_FEATURES` on the slowest path. costs: nanoseconds per
        unit of each. luts: the design's number of LUTs."""
        bits = self.bits
        chains = {edge >> 1: (kind, position) for kind, results in bits.chains for position, edge in enumerate(results)}
        registers = {edge >> 1 for edge in bits.registers}
        roots = bits.roots()
        readers = dict.fromkeys(roots, 1)
        for cut in self.luts.values():
            for node in cut:
                readers[node] = readers.get(node, 0) + 1
        arrival: dict[int, float] = {0: 0.0}
        steps: dict[int, tuple[dict[str, float], int]] = {}
        size = math.log2(1 + luts)
        for node, alive in enumerate(bits.alive):
            before: Collection[int] = self.luts.get(node, ())
            step = {"fan_out": math.log2(1 + readers.get(node, 0))}
            if node in self.luts:
                step |= {"lut": 1.0, "inputs": float(len(before)), "levels": size}
            elif alive and node in chains:
                kind, position = chains[node]
                before = [edge >> 1 for edge in bits.feeds[node]]
                step |= {kind: 1.0, f"{kind}_bits": position + 1.0}
            elif bits.nodes[node] or not alive or node in registers:
                step = {"fan_out": step["fan_out"]}
            last = max(before, key=lambda a: arrival.get(a, 0.0), default=0)
            steps[node] = (step, last)
            arrival[node] = arrival.get(last, 0.0) + sum(costs[name] * amount for name, amount in step.items())
        total = dict.fromkeys(PATH_FEATURES, 0.0) | {"one": 1.0, "size": size}
        end = max(roots, key=lambda node: arrival[node], default=0)
        while end:
            step, end = steps[end]
            for name, amount in step.items():
                total[name] += amount
        return total
