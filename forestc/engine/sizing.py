"""The capacity for what is asked for: how many walkers, banks and bits a device's memory has room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from forestc.costs.boards import stands_for
from forestc.costs.devices import DEVICES, Device
from forestc.engine.capacity import NODE_BITS, RING, Capacity, DeviceMemory, Load
from forestc.engine.image import TooManyNodesError, image_of
from forestc.errors import ForestcError, OptionError
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range

MOST_WALKERS = 256  # that are chosen; more can be asked for
WIDEST_WORD = 16  # that is chosen
DEFAULT_WALKERS = 16  # of an engine for one forest, where no device says how many
SINGLE_PORT = (16384, 16)  # words and bits of such a block


@dataclass(frozen=True)
class WantedEngine:
    """trees, nodes: of the largest forest, leaves counted among the nodes. features: columns of a row. walkers: None
    for as many as the device has memory for. word_bits: None for as many as fit, up to 16. banks: None for two if they
    fit."""

    trees: int
    nodes: int
    features: int
    outputs: int = 1
    walkers: int | None = None
    word_bits: int | None = None
    score_bits: int = 32
    scores: bool = False
    banks: int | None = None
    load: Load = "stream"
    user_bits: int = 1
    name: str = "engine"


def capacity_for(wanted: WantedEngine, device: str | None) -> Capacity:
    """The capacity with two banks, if any has room for them, and the most walkers.

    Raises OptionError for what no engine is; ForestcError if the device has no room for it.
    """
    for name in ("trees", "nodes", "features", "outputs"):
        if getattr(wanted, name) < 1:
            raise OptionError(f"engine: {name} is {getattr(wanted, name)}", do="use 1 or more")
    if device is None:
        if wanted.walkers is None:
            raise OptionError("the number of walkers depends on the device", do="add --device, or --walkers N")
        return _capacity(wanted, wanted.walkers, wanted.banks or 2, "block")
    device = stands_for(device, "device", DEVICES)
    place = DEVICES.get(device)
    if place is None or place.memory is None:
        known = ", ".join(name for name, kind in DEVICES.items() if kind.memory is not None)
        raise OptionError(f"the memory of {device} is not known", do=f"use one of {known}, or --walkers N alone")
    least, smallest = None, None
    for capacity in _candidates(wanted, place):
        blocks, single = blocks_of(capacity, place)
        if blocks <= place.memory.blocks and single <= place.memory.single:
            return capacity
        if least is None or blocks + single < least:
            least, smallest = blocks + single, capacity
    if smallest is None:
        raise OptionError("no engine has nodes of 36 bits for this", do="use fewer nodes or narrower words")
    raise ForestcError(
        f"an engine for this takes {least} blocks of memory, and {device} has {place.memory.blocks}"
        + (f" and {place.memory.single} large ones" if place.memory.single else ""),
        where=f"{smallest.walkers} walkers of {smallest.nodes:,} nodes of {smallest.node_bits} bits",
        do="use fewer nodes (--nodes), narrower words (--word-bits), or a larger device",
    )


def _candidates(wanted: WantedEngine, device: Device) -> Iterator[Capacity]:
    """Capacities, the best first."""
    assert device.memory is not None
    walkers = range(min(wanted.trees, MOST_WALKERS), 0, -1) if wanted.walkers is None else (wanted.walkers,)
    memories: list[tuple[int, DeviceMemory]] = [
        (banks, "block") for banks in ((2, 1) if wanted.banks is None else (wanted.banks,))
    ]
    if device.memory.single and wanted.banks != 2:
        memories.append((1, "spram"))
    refusal = None
    for banks, memory in memories:
        for count in walkers:
            try:
                yield _capacity(wanted, count, banks, memory)
            except OptionError as error:
                refusal = error
    if refusal is not None and wanted.walkers is not None:
        raise refusal


def _capacity(wanted: WantedEngine, walkers: int, banks: int, memory: DeviceMemory) -> Capacity:
    """With room for all roots beside the nodes, and in the schedule for slots of one output each."""
    slots = -(-wanted.trees // walkers) + (wanted.outputs - 1 if wanted.trees > walkers else 0)
    depth = max(16, -(-wanted.nodes // walkers), slots)
    widths = range(WIDEST_WORD, 3, -1) if wanted.word_bits is None else (wanted.word_bits,)
    limit = 2 * SINGLE_PORT[1] if memory == "spram" else NODE_BITS

    def made(word_bits: int) -> Capacity:
        return Capacity(
            walkers, 1 << (depth - 1).bit_length(), slots, max(2, wanted.features), word_bits, wanted.outputs,
            wanted.score_bits, wanted.scores, banks, memory, wanted.load, wanted.user_bits, wanted.name,
        )  # fmt: skip

    for word_bits in widths[:-1]:
        try:
            if (capacity := made(word_bits)).node_bits <= limit:
                return capacity
        except OptionError:
            continue
    return made(widths[-1])


def blocks_of(capacity: Capacity, device: Device) -> tuple[int, int]:
    """Blocks of RAM, and blocks with one port, that the memories of an engine take on a device."""
    assert device.memory is not None
    beats = device.memory.blocks_for(RING << capacity.beat_index_bits, capacity.beat_bits)
    if capacity.memory == "spram":
        deep, wide = SINGLE_PORT
        nodes = -(-capacity.nodes // deep) * -(-capacity.node_bits // wide)
        return capacity.walkers * beats, capacity.walkers * nodes
    nodes = device.memory.blocks_for(capacity.banks * capacity.nodes, capacity.node_bits)
    return capacity.walkers * (beats + nodes), 0


def capacity_of(forest: Forest, device: str | None, name: str) -> Capacity:
    """The capacity for one forest. device: whose memory says how many walkers; None for 16, or one for each tree.

    Raises OptionError and ForestcError as `capacity_for` and `image_of` do.
    """
    known = device is not None and device in DEVICES and DEVICES[device].memory is not None
    spans = [word_range(feature.number, feature.missing) for feature in forest.features]
    word_bits = max((max(2, (span.top - span.low).bit_length()) for span in spans), default=2)
    trees = max(1, len(forest.trees))
    wanted = WantedEngine(
        trees,
        max(trees, forest.n_nodes),
        max((place + 1 for place in forest.places), default=1),
        forest.n_outputs,
        None if known else min(trees, DEFAULT_WALKERS),
        word_bits,
        scores=True,
        name=name,
    )
    while True:
        capacity = capacity_for(wanted, device if known else None)
        try:
            image_of(forest, capacity)
        except TooManyNodesError:
            wanted = replace(wanted, nodes=2 * wanted.nodes)
        else:
            return capacity
