"""Implements `engine`: writes hardware that loads forests at run time, up to a capacity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.backends.names import identifier
from forestc.costs.boards import stands_for
from forestc.costs.devices import DEVICES
from forestc.engine.area import engine_estimate
from forestc.engine.capacity import Capacity
from forestc.engine.folder import write_engine
from forestc.engine.sizing import EngineRequest, blocks_of, capacity_for
from forestc.errors import OptionError, opt
from forestc.fields.options import takes
from forestc.options.engine import EngineOptions
from forestc.report.tables import Shown, titled


@takes(EngineOptions)
def make_engine(options: EngineOptions) -> Shown:
    """Writes an engine: hardware for forests up to a capacity, whose trees are loaded at run time.

    Returns
    -------
    dict
        The figures of `forestc engine --json`: walkers, banks, widths in bits, and blocks of the device's memory.

    Raises
    ------
    OptionError
        If no engine has these numbers, or the device is unknown.
    ForestcError
        If the device has no room for the engine, or the folder can't be written.

    Examples
    --------
    >>> import forestc
    >>> figures = forestc.make_engine("engine", trees=4, nodes=64, features=4, classes=3, walkers=1)
    >>> figures["banks"], figures["outputs"]
    (2, 3)
    """
    wanted = EngineRequest(
        options.trees, options.nodes, options.features, options.classes, _walkers(options.walkers),
        options.word_bits or None, options.score_bits, options.scores, options.banks or None, options.load,
        options.user_bits, identifier(options.name),
    )  # fmt: skip
    capacity = capacity_for(wanted, options.device)
    figures, estimate = _figures(capacity), None
    if options.device is not None:
        device = DEVICES[stands_for(options.device, "device", DEVICES)]
        blocks, single = blocks_of(capacity, device)
        estimate = engine_estimate(capacity, device.name)
        estimated = {key: value for key, value in (estimate or {}).items() if key not in ("device", "blocks")}
        figures |= {"device": device.name, "blocks": blocks, "blocks_single_port": single}
        figures |= {f"estimated_{key}": value for key, value in estimated.items()}
    write_engine(Path(options.out), capacity, estimate)
    return Shown(figures | {"out": str(options.out)}, titled(f"engine in {options.out}"))


def _figures(capacity: Capacity) -> dict[str, Any]:
    return {
        "walkers": capacity.walkers,
        "banks": capacity.banks,
        "trees": capacity.walkers * capacity.slots,
        "nodes": capacity.walkers * capacity.nodes,
        "node_bits": capacity.node_bits,
        "features": capacity.features,
        "word_bits": capacity.word_bits,
        "row_beats": capacity.beats,
        "row_tdata_bits": capacity.tdata_bits,
        "outputs": capacity.outputs,
        "result_tdata_bits": capacity.result_bits,
        "memory": capacity.memory,
        "memory_bits": capacity.walkers * capacity.banks * capacity.nodes * capacity.node_bits,
    }


def _walkers(given: int | str) -> int | None:
    if given == "auto":
        return None
    if str(given).isdecimal():
        return int(given)
    raise OptionError(f"{given!r} is no number of walkers", where=opt.walkers, do="give a number, or auto")
