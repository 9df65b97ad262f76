"""Rows and results of a design as the bytes of the serial protocol, and the identity that a board gives."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import Inputs
from forestc.backends.c.serial import line_of
from forestc.backends.ports import Field, input_fields, output_fields, unpacked, width_of
from forestc.engine.image import image_of, packed_rows
from forestc.manifest.design import Design
from forestc.netlist.ir import WordType
from forestc.netlist.ports import label_port, score_port

PROTOCOL = 1  # tells this version of the protocol from later ones
WORD = 4  # bytes of an image's word, and of its offset
_IDENTITY = struct.Struct("<BBBBHHH8sI")


class Target(IntEnum):
    """The kinds of designs on a board."""

    CORE = 1
    ENGINE = 2
    C = 3


@dataclass(frozen=True)
class Identity:
    """What a board says of itself."""

    protocol: int
    target: int  # a Target
    window: int  # requests that may be under way
    zero: int
    most: int  # bytes of a payload at most
    row: int  # bytes of a row
    result: int  # bytes of a result
    design: bytes  # the first 8 bytes of the design's hash; an engine's capacity
    image: int  # CRC-32 of an engine's image; 0 if there is none

    @classmethod
    def of(cls, payload: bytes) -> Self | None:
        """Returns the identity in an answer; None if it is no identity of this protocol."""
        if len(payload) != _IDENTITY.size:
            return None
        said = cls(*_IDENTITY.unpack(payload))
        load = 2 * WORD if said.target == Target.ENGINE else 0
        fits = max(said.row, said.result, load) <= said.most and min(said.window, said.row, said.result) > 0
        return said if said.protocol == PROTOCOL and said.target in [*Target] and fits else None


@dataclass(frozen=True)
class Wire:
    """A design's rows and results as bytes."""

    design: bytes  # the design in an identity
    row: int  # bytes of a row
    rows: Callable[[NDArray[Any]], NDArray[np.uint8]]  # packs words, or raw rows, (rows, features) into (rows, bytes)
    fields: tuple[Field, ...]  # results in their order
    image: NDArray[np.uint32] | None = None  # words to load into an engine
    raw: Inputs | None = None  # types of raw rows; None if the board takes words

    @property
    def result(self) -> int:
        return -(-width_of(list(self.fields)) // 8)

    def results(self, data: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Unpacks results (rows, bytes) into (rows, fields)."""
        lanes = np.zeros((len(data), -(-self.result // 4) * 4), dtype=np.uint8)
        lanes[:, : self.result] = data
        return unpacked(list(self.fields), lanes.view("<u4"))


def wire_of(design: Design, target: Target) -> Wire:
    """Returns how a design's rows and results travel to a board of this target. Raises ForestcError if the folder has
    no such target."""
    return _WIRES[target](design)


def _core(design: Design) -> Wire:
    identity, row = bytes.fromhex(design.manifest["hash"])[:8], -(-width_of(input_fields(design.netlist)) // 8)
    return Wire(identity, max(1, row), design.pack, tuple(output_fields(design.netlist)))


def _engine(design: Design) -> Wire:
    forest, capacity = design.forest, design.engine
    beat = capacity.tdata_bits // 8

    def rows(words: NDArray[np.int64]) -> NDArray[np.uint8]:
        beats = packed_rows(forest, capacity, words).astype("<u4").view(np.uint8)
        return beats.reshape(len(words), capacity.beats, 4)[:, :, :beat].reshape(len(words), -1)

    fields = [Field(label_port(0, 1), 0, WordType(capacity.label_bits, False))]
    for index in range(capacity.outputs if capacity.scores else 0):
        offset = capacity.label_bits + index * capacity.score_bits
        fields.append(Field(score_port(index), offset, WordType(capacity.score_bits, True)))
    identity = struct.pack("<II", capacity.id, 0)
    return Wire(identity, capacity.beats * beat, rows, tuple(fields), image_of(forest, capacity).words)


def _c(design: Design) -> Wire:
    line, fields, bits = line_of(design.forest, design.c_options), list[Field](), 0
    for kind, count, word in line.results:
        for index in range(count):
            port = label_port(index, count) if kind == "label" else score_port(index)
            fields.append(Field(port, bits, word))
            bits += word.width
    identity = bytes.fromhex(design.manifest["hash"])[:8]
    return Wire(identity, line.row_bytes, line.sent, tuple(fields), raw=line.inputs if line.inputs.raw else None)


_WIRES: dict[Target, Callable[[Design], Wire]] = {Target.CORE: _core, Target.ENGINE: _engine, Target.C: _c}
