"""The layout of a row and a result in the beats of a stream.

Fields are packed without gaps, as in the core's ports, or in lanes of whole bytes, as in a C struct or a NumPy record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forestc.backends.ports import Field, width_of
from forestc.options.stream import SIZES


@dataclass(frozen=True)
class Lane:
    """A field of a port and its place in a stream: the bits offset .. offset + bits - 1, the field in the low ones."""

    field: Field
    offset: int
    bits: int

    @property
    def spare(self) -> int:
        """Bits above the field."""
        return self.bits - self.field.word.width

    @property
    def c_type(self) -> str:
        return f"{'' if self.field.word.signed else 'u'}int{self.bits}_t"

    @property
    def numpy_format(self) -> str:
        return f"<{'i' if self.field.word.signed else 'u'}{self.bits // 8}"


@dataclass(frozen=True)
class LaneLayout:
    """lanes: of a port's fields, in its order. bits: of the struct of all lanes. align: 0 for packed fields, else as in
    `layout_of`. total: bits in the stream, padding included."""

    lanes: tuple[Lane, ...]
    bits: int
    align: int
    total: int

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """(first bit, bits) of each gap that no field uses, ascending."""
        gaps, at = [], 0
        for lane in self.lanes:
            if lane.offset > at:
                gaps.append((at, lane.offset - at))
            at = lane.offset + lane.bits
            if lane.spare:
                gaps.append((at - lane.spare, lane.spare))
        return [*gaps, *([(at, self.bits - at)] if self.bits > at else [])]


def layout_of(fields: Sequence[Field], align: int) -> LaneLayout:
    """The lanes of a port's fields.

    align: 0, or the least bits of a lane: 8, 16, 32 or 64. A lane is then the smallest integer of C that holds the
    field and has at least these bits; it begins at a multiple of its size, and the whole is a multiple of the
    largest, as a C compiler lays out a struct of them. In one beat its width is a power of 2, as DMA engines need.
    """
    if not align:
        packed = [Lane(field, field.offset, field.word.width) for field in fields]
        bits = max(1, width_of(list(fields)))
        return LaneLayout(tuple(packed), bits, 0, -(-bits // 8) * 8)
    lanes: list[Lane] = []
    at = 0
    for field in fields:
        bits = next(size for size in SIZES if size >= max(align, field.word.width))
        at = -(-at // bits) * bits
        lanes.append(Lane(field, at, bits))
        at += bits
    largest = max((lane.bits for lane in lanes), default=align)
    bits = max(largest, -(-at // largest) * largest)
    return LaneLayout(tuple(lanes), bits, align, 1 << (bits - 1).bit_length())
