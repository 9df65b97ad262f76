"""Frames of the serial protocol: what is encoded is decoded, and nothing that was damaged is."""

from __future__ import annotations

import pytest
from fake_board import crc32, on_the_line, spread
from hypothesis import given
from hypothesis import strategies as st

from forestc.boards.frames import Frame, FrameReader, decoded, encoded

FRAMES = st.builds(Frame, st.integers(0, 255), st.integers(0, 65535), st.binary(max_size=40))


def test_the_crc_is_that_of_zlib_and_special_bytes_are_stuffed():
    assert encoded(Frame(1, 0x7D7E)) == bytes.fromhex("7e 01 7d5e 7d5d 0000 01f28b2c 7e")


@given(st.lists(FRAMES, max_size=5), st.integers(1, 30))
def test_frames_arrive_in_pieces_of_any_size(frames, size):
    line, reader = b"".join(map(encoded, frames)), FrameReader()
    pieces = [line[start : start + size] for start in range(0, len(line), size)]
    assert [frame for piece in pieces for frame in reader.frames(piece)] == frames


@given(FRAMES)
def test_the_second_implementation_writes_the_same_bytes(frame):
    assert encoded(frame) == on_the_line(frame.kind, frame.sequence, frame.payload)


@given(st.lists(FRAMES, min_size=2, max_size=4))
def test_one_flag_ends_a_frame_and_begins_the_next(frames):
    line = b"".join(encoded(frame)[:-1] for frame in frames) + b"\x7e"
    assert FrameReader().frames(line) == frames


@given(FRAMES, st.data())
def test_a_damaged_frame_is_dropped(frame, data):
    line = bytearray(encoded(frame))
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] ^= data.draw(st.integers(1, 255))
    reader = FrameReader()
    assert reader.frames(bytes(line)) == []
    assert reader.frames(b"\x7e" + encoded(frame)) == [frame], "the next frame is found again"


@given(FRAMES, st.data())
def test_a_frame_that_lost_bytes_is_dropped(frame, data):
    line = encoded(frame)[1:-1]
    start = data.draw(st.integers(0, len(line) - 1))
    stop = data.draw(st.integers(start + 1, len(line)))
    assert decoded(line[:start] + line[stop:]) is None


@given(st.binary(max_size=200))
def test_bytes_at_random_are_no_frames(data):
    found = FrameReader().frames(data)
    assert all(encoded(frame)[1:-1] in data for frame in found)


@pytest.mark.parametrize("wrong", [1, -1])
def test_a_length_that_is_not_the_payloads_is_refused_even_with_a_right_crc(wrong):
    line = on_the_line(2, 7, b"abc")
    body = bytearray(line[1:-5])
    body[3] += wrong
    assert decoded(bytes(body) + spread(crc32(bytes(body)), 4)) is None


def test_the_reader_holds_no_more_than_the_largest_frame():
    reader = FrameReader(most=8)
    for _ in range(1000):
        assert reader.frames(b"x" * 1000) == []
    assert len(reader._rest) < 64
    assert reader.frames(b"\x7e" + encoded(Frame(2, 3, b"12345678"))) == [Frame(2, 3, b"12345678")]
    assert reader.frames(encoded(Frame(2, 3, bytes(60)))) == [], "more payload than the reader takes"
