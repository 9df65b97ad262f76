"""Estimates the LUTs, flip-flops and clock of an engine. The costs are fitted on synthesized engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forestc.costs.devices import DEVICES
from forestc.engine.capacity import Capacity
from forestc.engine.sizing import blocks_of

FULL_DEPTH = 8  # steps of each tree in the rows a second of an engine without an image
# Costs of each of `features_of` by family: LUTs, flip-flops.
COSTS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ecp5": ((658.78, 24.5, 0.0, 0.97, 0.0, 4.6, 0.33), (221.03, 91.64, 0.0, 5.9, 1.82, 4.31, 5.89)),
}
# Megahertz after place and route on each family's timed device, of 100 walkers (ECP5) and of 4 (iCE40).
MHZ: Mapping[str, float] = {"ecp5": 71.8, "ice40": 61.5}


def features_of(capacity: Capacity) -> tuple[float, ...]:
    """Returns the sizes that an engine's area depends on, in the order of the costs."""
    walkers = capacity.walkers
    return (
        1.0,
        walkers,
        walkers * capacity.word_bits,
        walkers * capacity.node_bits,
        walkers * capacity.value_bits,
        capacity.outputs * capacity.score_bits,
        capacity.result_bits + capacity.tdata_bits,
    )


def engine_estimate(capacity: Capacity, device: str, clocks: int | None = None) -> dict[str, Any] | None:
    """Estimates an engine on a device; None without fitted costs of its family. clocks: of a row, if known."""
    entry = DEVICES[device]
    if entry.family.name not in COSTS:
        return None
    sizes = features_of(capacity)
    lut, ff = (round(sum(c * s for c, s in zip(costs, sizes, strict=True))) for costs in COSTS[entry.family.name])
    blocks = sum(blocks_of(capacity, entry)) if entry.memory is not None else None
    mhz = round(MHZ[entry.family.name] / entry.slower.middle, 1) if entry.family.name in MHZ else None
    figures = {"device": device, "lut": lut, "ff": ff, "blocks": blocks, "fmax_mhz": mhz}
    return figures | rows_per_second(capacity, mhz, clocks)


def rows_per_second(capacity: Capacity, mhz: float | None, clocks: int | None) -> dict[str, Any]:
    """Returns the clocks of a row, and rows a second. clocks: of a row; None for trees of `FULL_DEPTH` in all slots."""
    clocks = max(capacity.beats, capacity.slots * (FULL_DEPTH + 1) if clocks is None else clocks)
    return {"clocks_per_row": clocks, "rows_per_second": None if mhz is None else round(mhz * 1e6 / clocks)}
