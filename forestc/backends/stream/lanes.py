"""The position of fields in a stream's rows and results: packed without gaps, or in whole bytes as in a C struct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forestc.backends.ports import Field, width_of
from forestc.backends.stream.options import SIZES


@dataclass(frozen=True)
class Lane:
    """The place of a field in a stream's row or result. The field fills the lowest bits of its lane."""

    field: Field
    offset: int  # first bit of the lane
    bits: int  # width of the lane

    @property
    def spare(self) -> int:
        """The number of bits above the field."""
        return self.bits - self.field.word.width

    @property
    def c_type(self) -> str:
        return f"{'' if self.field.word.signed else 'u'}int{self.bits}_t"

    @property
    def numpy_format(self) -> str:
        return f"<{'i' if self.field.word.signed else 'u'}{self.bits // 8}"


@dataclass(frozen=True)
class LaneLayout:
    """The lanes of a port's fields, in the port's order."""

    lanes: tuple[Lane, ...]
    bits: int  # from the first lane to the end of the struct
    align: int  # the least bits of a lane; 0 if fields are packed
    total: int  # bits in the stream, with padding

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The gaps of the struct as (first bit, number of bits), ascending."""
        gaps, at = [], 0
        for lane in self.lanes:
            if lane.offset > at:
                gaps.append((at, lane.offset - at))
            at = lane.offset + lane.bits
            if lane.spare:
                gaps.append((at - lane.spare, lane.spare))
        return [*gaps, *([(at, self.bits - at)] if self.bits > at else [])]


def layout_of(fields: Sequence[Field], align: int) -> LaneLayout:
    """Returns the layout of a port's fields in a stream.
    align: 0 packs fields; otherwise they lie as in a C struct, with at least this many bits each."""
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
