"""The capacity of an engine: the sizes of its hardware, and the widths that follow from them."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from forestc.errors import OptionError, opt
from forestc.system.records import DamagedError, hold, record_of

FORMAT = 1  # identifies the format of nodes and images
ROWS = 6  # rows in flight, one for each register on a walker's loop
RING = 16  # rows that a walker's buffer holds: rows in flight, and arriving rows
NODE_BITS = 36  # bits of the widest node, as wide as block RAM
MOST_STEPS = 255  # steps of a slot at most
BEAT_BITS = 32  # bits of a row that arrive in a clock, or one wider word
DeviceMemory = Literal["block", "spram"]
Load = Literal["stream", "axi-lite"]


def bits_for(count: int) -> int:
    """Returns the bits of a number below `count`; at least 1."""
    return max(1, (count - 1).bit_length())


@dataclass(frozen=True)
class Capacity:
    """The sizes of an engine of walkers, each evaluating a tree at a time. Raises OptionError for impossible sizes."""

    walkers: int
    nodes: int  # number of nodes in each bank of a walker's memory, a power of 2
    slots: int  # the most trees of a walker
    features: int  # the most columns of a row
    word_bits: int = 8
    outputs: int = 1  # the most scores of a row
    score_bits: int = 32
    scores: bool = False  # True if results hold scores besides the label
    banks: int = 2  # 2 to load an image while the engine uses another
    memory: DeviceMemory = "block"  # block RAM, or single-port RAM of an iCE40 UltraPlus
    load: Load = "stream"
    user_bits: int = 1  # bits of tuser
    name: str = "engine"  # name of the Verilog module

    def __post_init__(self) -> None:
        try:
            hold(asdict(self), schema())
        except DamagedError as fault:
            raise OptionError(
                str(fault),
                where="capacity of the engine",
                do="write the engine again with a value in its range",
            ) from None
        if self.nodes & (self.nodes - 1):
            raise OptionError(f"{self.nodes} nodes are no power of 2", where=opt.nodes, do="round up")
        if self.slots > self.nodes:
            raise OptionError(
                f"{self.slots} slots need as many nodes", where=opt.trees, do="use more nodes or fewer slots"
            )
        if self.memory == "spram" and self.banks != 1:
            raise OptionError("a single-port memory holds one bank", where=opt.banks, do=f"use {opt.banks:1}")
        if self.node_bits > NODE_BITS:
            parts = f"{self.address_bits} for a child, {self.feature_bits} for a feature, {self.word_bits} for a word"
            raise OptionError(
                f"a node takes {self.node_bits} bits ({parts}), and memories have "
                f"{NODE_BITS}", where="the engine's nodes",
                do="use fewer nodes for each walker, fewer features or narrower words",
            )  # fmt: skip
        if self.value_bits < 4:
            raise OptionError(
                f"a leaf has {self.value_bits} bits for its value",
                where="the engine's leaves",
                do="use wider words",
            )

    @property
    def address_bits(self) -> int:
        """The bits of a node's address in its bank."""
        return bits_for(self.nodes)

    @property
    def lanes(self) -> int:
        return 1 << (max(1, BEAT_BITS // self.word_bits).bit_length() - 1)

    @property
    def beats(self) -> int:
        return -(-self.features // self.lanes)

    @property
    def beat_index_bits(self) -> int:
        return (self.beats - 1).bit_length()

    @property
    def lane_bits(self) -> int:
        return (self.lanes - 1).bit_length()

    @property
    def feature_bits(self) -> int:
        return self.beat_index_bits + self.lane_bits

    @property
    def beat_bits(self) -> int:
        """The bits of a beat's words, without padding."""
        return self.lanes * self.word_bits

    @property
    def tdata_bits(self) -> int:
        return -(-self.beat_bits // 8) * 8

    @property
    def node_bits(self) -> int:
        return 3 + self.address_bits + self.feature_bits + self.word_bits

    @property
    def node_words(self) -> int:
        """The number of 32-bit words of a node in an image."""
        return 1 if self.node_bits <= 32 else 2

    @property
    def output_bits(self) -> int:
        return bits_for(self.outputs)

    @property
    def value_bits(self) -> int:
        """The bits of a leaf's signed value."""
        return min(self.score_bits, self.node_bits - 3 - self.output_bits)

    @property
    def mask_index_bits(self) -> int:
        """The number of low bits of a category's code that select a mask's bit."""
        return self.word_bits.bit_length() - 1

    @property
    def label_bits(self) -> int:
        return 8

    @property
    def result_bits(self) -> int:
        """The bits of a result, padded to whole bytes."""
        return -(-(self.label_bits + self.scores * self.outputs * self.score_bits) // 8) * 8

    @property
    def most_clocks(self) -> int:
        """An upper bound of the clocks for each row while the pipeline is full."""
        return self.slots * (MOST_STEPS + self.outputs)

    @property
    def id(self) -> int:
        """The CRC-32 of all values that an image's meaning depends on."""
        meaning = (
            self.walkers, self.nodes, self.slots, self.features, self.word_bits, self.outputs, self.score_bits,
            self.scores,
        )  # fmt: skip
        return zlib.crc32(repr((FORMAT, *meaning)).encode())

    @classmethod
    def of(cls, values: dict[str, Any]) -> Capacity:
        """Returns the capacity with these values, the inverse of `asdict`. Raises OptionError if no engine has it."""
        try:
            hold(values, schema())
        except DamagedError as fault:
            raise OptionError(
                f"no capacity of an engine ({fault})", where="manifest.json", do="write the engine again"
            ) from None
        return cls(**values)


# Gives the smallest and the largest value of each number.
_RANGES = {
    "walkers": (1, 1024), "nodes": (16, 1 << 20), "slots": (1, 4096), "features": (2, 4096), "word_bits": (2, 32),
    "outputs": (1, 128), "score_bits": (8, 32), "banks": (1, 2), "user_bits": (1, 64),
}  # fmt: skip


@cache
def schema() -> dict[str, Any]:
    """Returns the JSON schema of a capacity, in which all fields are required."""
    numbers = {name: {"type": "integer", "minimum": low, "maximum": high} for name, (low, high) in _RANGES.items()}
    name = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$", "means": "a plain identifier"}
    record = record_of(Capacity, **numbers, name=name)
    return record | {"required": list(record["properties"]), "additionalProperties": False}
