"""Features and results in the core's packed ports `x` and `y`, the same for every backend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.names import port_name
from forestc.netlist.ir import Netlist, WordType
from forestc.netlist.ports import Port


@dataclass(frozen=True)
class Field:
    """A word in a packed port. It has the bits offset .. offset + width - 1."""

    port: Port
    offset: int
    word: WordType

    @property
    def name(self) -> str:
        return self.port.name

    @property
    def identifier(self) -> str:
        """The port's name with the feature's name, as in generated files."""
        return port_name(self.port)


def input_fields(netlist: Netlist) -> list[Field]:
    """Returns the features in the core's port `x`, the first in the lowest bits."""
    return _packed((cell.port, netlist.types[net]) for net, cell in netlist.inputs)


def output_fields(netlist: Netlist) -> list[Field]:
    """Returns the results in the core's port `y`, the first in the lowest bits."""
    return _packed((port, netlist.types[net]) for port, net in netlist.outputs)


def input_note(field: Field) -> str:
    """Returns a comment on a feature, for generated files."""
    return f"{_span(field)} {field.identifier}: {field.port.meaning or 'a word'}"


def output_note(field: Field) -> str:
    """Returns a comment on a result, for generated files."""
    sign = "signed" if field.word.signed else "unsigned"
    return f"{_span(field)} {field.name}: {sign}, {result_meaning(field)}"


def result_meaning(field: Field) -> str:
    if field.port.kind == "second":
        return "index of the second best class"
    return "index of the class" if field.port.kind == "label" else "one step is worth the manifest's scale"


def _span(field: Field) -> str:
    return f"[{field.offset + field.word.width - 1}:{field.offset}]"


def _packed(words: Iterable[tuple[Port, WordType]]) -> list[Field]:
    fields: list[Field] = []
    offset = 0
    for port, word in words:
        if port.kind != "valid":
            fields.append(Field(port, offset, word))
            offset += word.width
    return fields


def width_of(fields: list[Field]) -> int:
    """Returns the number of bits of a packed port; 0 without fields."""
    return fields[-1].offset + fields[-1].word.width if fields else 0


def pack(fields: list[Field], words: NDArray[Any]) -> list[int]:
    """Packs the words of each row (rows, fields) into one integer."""
    packed = [0] * len(words)
    for index, field in enumerate(fields):
        mask = (1 << field.word.width) - 1
        for row, value in enumerate(words[:, index].tolist()):
            packed[row] |= (value & mask) << field.offset
    return packed


def packed_bytes(fields: list[Field], words: NDArray[Any]) -> NDArray[np.uint32]:
    """Packs each row of words (rows, fields) into 32-bit words, lowest bits first. Returns an array (rows, n); n is at
    least 1."""
    lanes = max(1, -(-width_of(fields) // 32))
    result = np.zeros((len(words), lanes + 2), dtype=np.uint64)
    for index, field in enumerate(fields):
        width = field.word.width
        value = words[:, index].astype(np.int64).view(np.uint64)
        if width < 64:
            value = value & np.uint64((1 << width) - 1)
        lane, shift = divmod(field.offset, 32)
        low = value & np.uint64(0xFFFFFFFF)
        high = value >> np.uint64(32)
        for part, at in ((low, lane), (high, lane + 1)):
            spread = part << np.uint64(shift)
            result[:, at] |= spread & np.uint64(0xFFFFFFFF)
            result[:, at + 1] |= spread >> np.uint64(32)
    return np.ascontiguousarray(result[:, :lanes].astype(np.uint32))


def unpacked(fields: list[Field], lanes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Returns the fields (rows, fields) of packed 32-bit words, lowest first; signed fields are sign-extended."""
    wide = np.zeros((len(lanes), lanes.shape[1] + 3), dtype=np.uint64)
    wide[:, : lanes.shape[1]] = lanes
    result = np.zeros((len(lanes), len(fields)), dtype=np.int64)
    for index, field in enumerate(fields):
        lane, shift = divmod(field.offset, 32)
        parts = wide[:, lane] | (wide[:, lane + 1] << np.uint64(32))
        value = parts >> np.uint64(shift)
        if shift:
            value |= wide[:, lane + 2] << np.uint64(64 - shift)
        width = field.word.width
        if width < 64:
            value &= np.uint64((1 << width) - 1)
        signed = value.view(np.int64)
        if field.word.signed and width < 64:
            signed = (signed << (64 - width)) >> (64 - width)
        result[:, index] = signed
    return result
