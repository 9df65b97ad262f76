"""Rows and results of a C header as bytes of a serial line (docs/reference/serial.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import Inputs, inputs_of, numpy_type
from forestc.backends.c.options import COptions
from forestc.backends.c.types import label_type, score_type, size_of
from forestc.forest.ir import Forest
from forestc.netlist.ir import WordType

USUAL_BYTES = 128  # bytes of a frame's payload, unless a row or a result needs more


@dataclass(frozen=True)
class CLine:
    """The bytes of rows and results, in the order of the C functions' parameters."""

    inputs: Inputs
    results: tuple[tuple[str, int, WordType], ...]  # (label or score, number, C type's bits and sign), in order

    @property
    def row_bytes(self) -> int:
        return sum(numpy_type(kind).itemsize for kind in self.inputs.kinds)

    @property
    def result_bytes(self) -> int:
        return sum(count * word.width for _, count, word in self.results) // 8

    def sent(self, rows: NDArray[np.generic]) -> NDArray[np.uint8]:
        """Returns the bytes of each row, (rows, bytes), for words or raw rows that fit the C types."""
        return self.inputs.table(rows, aligned=False)


def line_of(forest: Forest, options: COptions) -> CLine:
    """Lays out rows and results of a quantized forest's C header as bytes. Raises OptionError as `inputs_of` does."""
    inputs = inputs_of(forest, options.c_inputs, options.c_types)
    targets = len(forest.targets) if forest.decides else 0
    typed = (("label", targets, label_type(forest)), ("score", forest.n_scores, score_type(inputs.forest)))
    return CLine(inputs, tuple((kind, count, WordType(8 * size_of(c), c[0] == "i")) for kind, count, c in typed))


def view(forest: Forest, options: COptions, design_hash: str) -> dict[str, Any]:
    """Returns the variables of the template of the server."""
    line = line_of(forest, options)
    inputs, result = line.inputs, line.result_bytes
    return {
        "row": line.row_bytes,
        "result": result,
        "most": max(USUAL_BYTES, line.row_bytes, result),
        "hash": [f"0x{byte:02X}u" for byte in bytes.fromhex(design_hash)[:8]],
        "x_type": inputs.type,
        "struct": inputs.struct,
        "names": inputs.names,
        "elements": inputs.elements,
        "targets": len(forest.targets) if forest.decides else 0,
        "label_type": label_type(forest),
        "score_type": score_type(inputs.forest),
    }
