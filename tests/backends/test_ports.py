from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forestc.backends.ports import Field, pack, packed_bytes, unpacked
from forestc.netlist.ir import WordType


@given(st.lists(st.tuples(st.integers(1, 64), st.booleans()), min_size=1, max_size=12), st.integers(0, 2**32))
def test_packed_words_come_back(words, seed):
    fields, offset = [], 0
    for index, (width, signed) in enumerate(words):
        signed = (signed and width > 1) or width == 64  # An unsigned word has at most 63 bits.
        fields.append(Field(f"x{index}", offset, WordType(width, signed)))
        offset += width
    random = np.random.default_rng(seed)
    values = np.stack(
        [random.integers(f.word.low, f.word.high, 20, dtype=np.int64, endpoint=True) for f in fields], axis=1
    )
    lanes = packed_bytes(fields, values)
    assert np.array_equal(unpacked(fields, lanes), values)
    for row, packed in zip(lanes, pack(fields, values), strict=True):
        assert sum(int(lane) << (32 * place) for place, lane in enumerate(row)) == packed
