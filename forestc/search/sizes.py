"""Defines the size that a search minimizes: LUTs of a device, or bytes of flash on a processor."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from forestc.backends.base import Gives
from forestc.backends.c.rough import rough_costs
from forestc.backends.table import gives_only
from forestc.costs.devices import DEVICES
from forestc.costs.estimate import estimate, estimated
from forestc.costs.firmware import DEFAULT_CPU
from forestc.costs.prices import DEFAULT_COST
from forestc.forest.ir import Forest
from forestc.lowering.trees import LoweringOptions, lower

DEVICE = "xcup"  # names the device with the LUTs to minimize if the user names none


@dataclass(frozen=True)
class Size:
    """The size to minimize."""

    of: Callable[[Forest], float]  # returns the size of a forest
    unit: str  # unit of the size, in words
    cost: str  # name of the cost that passes minimize
    figure: str = "lut"  # lut or flash
    on: str = DEVICE  # the device or processor


def size_of(targets: Collection[str], device: str | None, cpu: str, lowering: LoweringOptions) -> Size:
    """Returns the size to minimize: bytes of flash if only C is written; otherwise LUTs of the device, or of `DEVICE`
    if none is given or it has no estimates."""
    if gives_only(targets, Gives.HEADER):
        cpu = cpu or DEFAULT_CPU

        def flash(forest: Forest) -> float:
            return min(costs.flash for costs in rough_costs(forest, cpu).values())

        return Size(flash, f"bytes of flash ({cpu})", f"flash-{cpu}", "flash", cpu)
    counted = device if device is not None and estimated(device) else DEVICE

    def luts(forest: Forest) -> float:
        return float(estimate(lower(forest, lowering), counted)["lut"])

    counts_given = device is not None and device == counted
    cost = DEVICES[counted].family.name if counts_given else DEFAULT_COST
    return Size(luts, f"LUTs ({counted})", cost, on=counted)
