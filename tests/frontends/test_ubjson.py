from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forestc.errors import ModelError
from forestc.frontends.shared.ubjson import MAX_DEPTH, parse_ubjson


def write(value):
    """Writes UBJSON: the reverse of the reader, in the format's longest forms."""
    if value is None:
        return b"Z"
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + text(value)
    if isinstance(value, list):
        return b"[" + b"".join(map(write, value)) + b"]"
    return b"{" + b"".join(text(key) + write(item) for key, item in value.items()) + b"}"


def text(value):
    data = value.encode()
    return b"l" + struct.pack(">i", len(data)) + data


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_reads_what_a_writer_writes(value):
    assert parse_ubjson(write(value), "here") == value


def test_typed_arrays_and_counts():
    data = b"{i\x01a[$d#i\x02" + struct.pack(">2f", 1.5, -2.0) + b"i\x01dCz"
    data += b"i\x01b[#i\x02U\xffI\x01\x00i\x01c{#i\x01i\x01kT}"
    found = parse_ubjson(data, "here")
    assert np.array_equal(found["a"], np.array([1.5, -2.0], dtype=np.float32))
    assert (found["b"], found["c"], found["d"]) == ([255, 256], {"k": True}, "z")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "1 bytes promised, 0 left"),
        (b"?", "unknown marker"),
        (b"[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff", "numbers promised"),
        (b"[#L\x00\x00\x00\x00\x80\x00\x00\x00", "values promised"),
        (b"[$Z#l\x7f\xff\xff\xff", "values promised"),
        (b"[#i\xff", "count -1"),
        (b"Sl\x7f\xff\xff\xff", "bytes promised"),
        (b"[$d", "without a count"),
        (b"S" + b"i\x01\xff", "not UTF-8"),
        (b"Hi\x01x", "number 'x'"),
        (b"{i\x01aTi\x01aT}", "key 'a' twice"),
        (b"TT", "1 bytes after the end"),
        (b"[" * (MAX_DEPTH + 1), "nested deeper"),
        (b"[#SS", "where a count should be"),
    ],
)
def test_damage_is_refused_before_memory_is_taken(data, message):
    with pytest.raises(ModelError) as caught:
        parse_ubjson(data, "m.ubj")
    assert message in str(caught.value)
    assert "m.ubj, byte" in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_model_error(data):
    try:
        parse_ubjson(data, "here")
    except ModelError as error:
        assert "byte" in str(error)
