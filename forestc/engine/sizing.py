"""Chooses the capacity of an engine: how many walkers, banks and bits fit the memory of a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from forestc.costs.boards import stands_for
from forestc.costs.devices import DEVICES, Device
from forestc.engine.capacity import NODE_BITS, RING, Capacity, DeviceMemory, Load
from forestc.engine.image import TooManyNodesError, image_of
from forestc.errors import ForestcError, OptionError, opt
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range

MOST_WALKERS = 256  # walkers that are chosen at most; users can ask for more
WIDEST_WORD = 16  # bits of a word that are chosen at most
DEFAULT_WALKERS = 16  # walkers of an engine for one forest if no device limits them
SINGLE_PORT = (16384, 16)  # words and bits of a single-port block


@dataclass(frozen=True)
class EngineRequest:
    """The engine that a user asks for."""

    trees: int  # number of trees of the largest forest
    nodes: int  # number of nodes of the largest forest, with leaves
    features: int  # number of columns of a row
    outputs: int = 1
    walkers: int | None = None  # None chooses as many as the device holds
    word_bits: int | None = None  # None chooses the most bits that fit
    score_bits: int = 32
    scores: bool = False
    banks: int | None = None  # None chooses two if they fit, otherwise one
    load: Load = "stream"
    user_bits: int = 1
    name: str = "engine"


def capacity_for(request: EngineRequest, device: str | None) -> Capacity:
    """Returns the best capacity that fits the device: with two banks if possible, then with the most walkers.

    Raises OptionError or ForestcError if there is none.
    """
    for name in ("trees", "nodes", "features", "outputs"):
        if getattr(request, name) < 1:
            raise OptionError(f"{name} is {getattr(request, name)}", where="size of the engine", do="use 1 or more")
    if device is None:
        if request.walkers is None:
            raise OptionError(
                "the number of walkers depends on the device",
                where=opt.walkers,
                do=f"add {opt.device}, or {opt.walkers:N}",
            )
        return _capacity(request, request.walkers, request.banks or 2, "block")
    device = stands_for(device, "device", DEVICES)
    target = DEVICES.get(device)
    if target is None or target.memory is None:
        names = ", ".join(name for name, kind in DEVICES.items() if kind.memory is not None)
        raise OptionError(
            f"the memory of {device} is not known", where=opt.device, do=f"use one of {names}, or {opt.walkers:N} alone"
        )
    least, smallest = None, None
    for capacity in _candidates(request, target):
        blocks, single = blocks_of(capacity, target)
        if blocks <= target.memory.blocks and single <= target.memory.single:
            return capacity
        if least is None or blocks + single < least:
            least, smallest = blocks + single, capacity
    if smallest is None:
        raise OptionError(
            "no engine has nodes of 36 bits for this", where=opt.nodes, do="use fewer nodes or narrower words"
        )
    raise ForestcError(
        f"an engine for this ({smallest.walkers} walkers of {smallest.nodes:,} nodes of {smallest.node_bits} bits) "
        f"takes {least} blocks of memory, and {device} has {target.memory.blocks}"
        + (f" and {target.memory.single} large ones" if target.memory.single else ""),
        where=opt.device,
        do=f"use fewer nodes ({opt.nodes}), narrower words ({opt.word_bits}), or a larger device",
    )


def _candidates(request: EngineRequest, device: Device) -> Iterator[Capacity]:
    assert device.memory is not None
    walkers = range(min(request.trees, MOST_WALKERS), 0, -1) if request.walkers is None else (request.walkers,)
    memories: list[tuple[int, DeviceMemory]] = [
        (banks, "block") for banks in ((2, 1) if request.banks is None else (request.banks,))
    ]
    if device.memory.single and request.banks != 2:
        memories.append((1, "spram"))
    refusal = None
    for banks, memory in memories:
        for count in walkers:
            try:
                yield _capacity(request, count, banks, memory)
            except OptionError as error:
                refusal = error
    if refusal is not None and request.walkers is not None:
        raise refusal


def _capacity(request: EngineRequest, walkers: int, banks: int, memory: DeviceMemory) -> Capacity:
    """Returns a capacity with room for all nodes and one-output trees."""
    slots = -(-request.trees // walkers) + (request.outputs - 1 if request.trees > walkers else 0)
    depth = max(16, -(-request.nodes // walkers), slots)
    widths = range(WIDEST_WORD, 3, -1) if request.word_bits is None else (request.word_bits,)
    limit = 2 * SINGLE_PORT[1] if memory == "spram" else NODE_BITS

    def with_bits(word_bits: int) -> Capacity:
        return Capacity(
            walkers, 1 << (depth - 1).bit_length(), slots, max(2, request.features), word_bits, request.outputs,
            request.score_bits, request.scores, banks, memory, request.load, request.user_bits, request.name,
        )  # fmt: skip

    for word_bits in widths[:-1]:
        try:
            if (capacity := with_bits(word_bits)).node_bits <= limit:
                return capacity
        except OptionError:
            continue
    return with_bits(widths[-1])


def blocks_of(capacity: Capacity, device: Device) -> tuple[int, int]:
    """Returns the memory blocks of an engine on a device: (block RAM, single-port RAM)."""
    assert device.memory is not None
    beats = device.memory.blocks_for(RING << capacity.beat_index_bits, capacity.beat_bits)
    if capacity.memory == "spram":
        deep, wide = SINGLE_PORT
        nodes = -(-capacity.nodes // deep) * -(-capacity.node_bits // wide)
        return capacity.walkers * beats, capacity.walkers * nodes
    nodes = device.memory.blocks_for(capacity.banks * capacity.nodes, capacity.node_bits)
    return capacity.walkers * (beats + nodes), 0


def capacity_of(forest: Forest, device: str | None, name: str) -> Capacity:
    """Returns the capacity for one forest. device: its memory limits the walkers; if unknown, DEFAULT_WALKERS does.

    Raises OptionError and ForestcError as `capacity_for` and `image_of` do.
    """
    has_memory = device is not None and device in DEVICES and DEVICES[device].memory is not None
    spans = [word_range(feature.number, feature.missing) for feature in forest.features]
    word_bits = max((max(2, (span.top - span.low).bit_length()) for span in spans), default=2)
    trees = max(1, len(forest.trees))
    request = EngineRequest(
        trees,
        max(trees, forest.n_nodes),
        max((column + 1 for column in forest.row_columns), default=1),
        forest.n_outputs,
        None if has_memory else min(trees, DEFAULT_WALKERS),
        word_bits,
        scores=True,
        name=name,
    )
    while True:
        capacity = capacity_for(request, device if has_memory else None)
        try:
            image_of(forest, capacity)
        except TooManyNodesError:
            request = replace(request, nodes=2 * request.nodes)
        else:
            return capacity
