"""Tests the gateware of the serial line, simulated: good and damaged frames, and answers against the evaluator."""

import struct

import numpy as np
import pytest
from serial_bench import DIVISOR, Line, SimulatedBoard, frame
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.boards.gateware import top_verilog
from forestc.boards.hardware import hardware_of
from forestc.engine.folder import open_engine
from forestc.engine.image import image_of, packed_rows
from forestc.engine.vectors import packed_results, results_of
from forestc.errors import OptionError
from forestc.forest.evaluate import evaluate_words

IDENTIFY, ROWS, LOAD, ANSWER, PROBLEM = 1, 2, 3, 0x80, 0xFF
X, Y = load_iris(return_X_y=True)
PLAIN = {"latency": 0}
VARIANTS = {
    "combinational": PLAIN,
    "pipelined": {"latency": 3},
    "reset and enable": {"latency": 3, "reset": "async", "enable": True},
    "streamed": {"latency": 2, "stream": forestc.StreamOptions(tdata_bits=8, registers=True)},
    "aligned": {
        "latency": 1,
        "reset": "sync",
        "enable": True,
        "stream": forestc.StreamOptions(tdata_bits=16, align=16),
    },
}


@pytest.fixture(scope="module")
def model():
    return RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def plain(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain") / "out"
    design = forestc.compile(model, X, folder, label=Y, **PLAIN).design
    return design, top_verilog(folder, DIVISOR)


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_are_answered_as_by_the_evaluator(variant, model, tmp_path, need_tool):
    need_tool("iverilog")
    design = forestc.compile(model, X, tmp_path / "out", label=Y, **VARIANTS[variant]).design
    rows, hardware = design.pack(design.quantize(X)), hardware_of(design)
    parts = [rows[:40], rows[40:90], rows[90:]]
    line = Line().ask(frame(IDENTIFY, 0xFFFF))
    line.ask(*(frame(ROWS, 0x7D7E + at, part.tobytes()) for at, part in enumerate(parts[:2])))  # two are under way
    line.ask(frame(ROWS, 3, parts[2].tobytes()))
    (kind, sequence, identity), *answers = line.run(
        top_verilog(design, DIVISOR + 1), tmp_path, SimulatedBoard(divisor=DIVISOR + 1)
    )
    assert (kind, sequence) == (IDENTIFY | ANSWER, 0xFFFF)
    sizes = struct.pack("<BBBBHHH", 1, 1, 2, 0, 512, rows.shape[1], hardware.result)
    assert identity == sizes + bytes.fromhex(design.manifest["hash"][:16]) + bytes(4)
    assert [answer[:2] for answer in answers] == [(ROWS | ANSWER, 0x7D7E), (ROWS | ANSWER, 0x7D7F), (ROWS | ANSWER, 3)]
    got = np.frombuffer(b"".join(payload for *_, payload in answers), np.uint8).reshape(len(X), -1)
    assert (design.unpack(got)[:, 0] == evaluate_words(design.forest, design.quantize(X)).index.ravel()).all()


def test_damaged_frames_are_dropped_and_wrong_ones_refused(plain, tmp_path, need_tool):
    need_tool("iverilog")
    design, files = plain
    row = design.pack(design.quantize(X[:1])).tobytes()
    good, mark = frame(ROWS, 7, row), frame(IDENTIFY, 9)
    line = Line().send(good[1:])  # without its flag, the line's first bytes are a frame all the same
    line.answers = 1
    dropped = [
        *(
            good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :]
            for at, bit in ((1, 2), (2, 1), (4, 1), (6, 0x10), (8, 8))
        ),
        good[:5] + good[6:],  # a byte is lost
        good[:4] + b"\x7d" + good[-1:],  # ends after an escape
        good[:-3] + good[-1:],
        frame(ROWS, 7, bytes(600)),
        frame(ROWS, 7, bytes(1100)),
        b"\x7e\x7e\x7e",
        b"\x7eabc\x7e",
        b"\x00\xff\x55",
    ]
    for number, data in enumerate(dropped):
        line.send(data).ask(frame(IDENTIFY, 100 + number))
    line.ask(frame(ROWS, 8, row[:-1]), frame(0x55, 10, b"what"))
    line.ask(frame(ROWS, 11), frame(LOAD, 12, bytes(8)))
    line.ask(good[:-1], mark).ask(good)  # one flag between two frames, then a repeated request
    answers = line.run(files, tmp_path)
    known, label = ROWS | ANSWER, forestc.evaluate(design.forest, X[:1]).index.ravel().astype(np.uint8).tobytes()
    assert answers[0] == (known, 7, label)
    assert [answer[:2] for answer in answers[1 : 1 + len(dropped)]] == [
        (IDENTIFY | ANSWER, 100 + number) for number in range(len(dropped))
    ]
    refused = [(PROBLEM, 8, b"\1"), (PROBLEM, 10, b"\3"), (known, 11, b""), (PROBLEM, 12, b"\3")]
    assert answers[1 + len(dropped) :][:4] == refused
    assert [answer[:2] for answer in answers[-3:]] == [(known, 7), (IDENTIFY | ANSWER, 9), (known, 7)]


def test_a_frame_too_many_is_dropped_whole(plain, tmp_path, need_tool):
    need_tool("iverilog")
    design, files = plain
    rows = design.pack(design.quantize(X))
    line = Line().send(frame(ROWS, 1, rows.tobytes()))
    for sequence in (2, 3, 4):  # These arrive while the first one's answer is sent.
        line.send(frame(IDENTIFY, sequence))
    line.answers = 2
    answers = line.ask().wait(2_000).ask(frame(IDENTIFY, 5)).run(files, tmp_path)
    assert [answer[1] for answer in answers] == [1, 2, 5]


@pytest.mark.parametrize("banks, word_bits", [(2, 16), pytest.param(1, 12, marks=pytest.mark.long)])
def test_an_engine_loads_images_and_answers(banks, word_bits, model, tmp_path, need_tool):
    need_tool("iverilog")
    design = forestc.compile(model, X, tmp_path / "out", label=Y).design
    forestc.make_engine(
        tmp_path / "engine", trees=4, nodes=64, features=4, classes=3, walkers=1, banks=banks, word_bits=word_bits
    )
    capacity, hardware = open_engine(tmp_path / "engine"), hardware_of(tmp_path / "engine")
    image, words = image_of(design.forest, capacity), design.quantize(X[::30])
    beats = packed_rows(design.forest, capacity, words).ravel().tolist()
    rows = b"".join(int(beat).to_bytes(hardware.beat, "little") for beat in beats)
    expected = b"".join(
        int(result).to_bytes(hardware.result, "little")
        for result in packed_results(capacity, results_of(capacity, evaluate_words(design.forest, words)))
    )
    assert len(rows) == len(words) * hardware.row

    def chunks(data: bytes) -> list[bytes]:
        return [frame(LOAD, at, struct.pack("<I", at // 4) + data[at : at + 60]) for at in range(0, len(data), 60)]

    good, count = chunks(image.bytes), len(image.words)
    damaged = chunks(image.bytes[:-8] + b"\1" + image.bytes[-7:])
    line = Line().ask(frame(ROWS, 1, rows), good[1])
    for data in (*good[:2], good[3], *good, good[-1], frame(ROWS, 2, rows), *damaged, damaged[-1]):
        line.ask(data)
    line.ask(frame(IDENTIFY, 3)).ask(frame(ROWS, 4, rows))
    for data in (*good, frame(ROWS, 5, rows), frame(IDENTIFY, 6)):
        line.ask(data)
    answers = line.run(top_verilog(tmp_path / "engine", DIVISOR), tmp_path)
    loads = [(struct.unpack("<IB", payload)) for kind, _, payload in answers if kind == LOAD | ANSWER]
    steps = [(min(15 * at, count), 0) for at in range(1, len(good))]
    expected_loads = [(0, 0), (15, 0), (30, 0), (30, 0), *steps, (count, 1), (count, 1), *steps, (count, 2), (count, 2)]
    assert loads == [*expected_loads, *steps, (count, 1)]
    by_sequence = {sequence: (kind, payload) for kind, sequence, payload in answers if kind in (ROWS | ANSWER, PROBLEM)}
    assert by_sequence[1] == (PROBLEM, b"\2")
    assert by_sequence[2] == by_sequence[5] == (ROWS | ANSWER, expected)
    assert by_sequence[4] == ((ROWS | ANSWER, expected) if banks == 2 else (PROBLEM, b"\2"))
    own = image.bytes[-4:]
    identities = [payload[-4:] for kind, _, payload in answers if kind == IDENTIFY | ANSWER]
    assert identities == [own if banks == 2 else bytes(4), own]
    assert answers[-1][2][10:18] == capacity.id.to_bytes(8, "little")


def test_the_bench_says_that_it_cannot_read_what_it_sends(plain, tmp_path, need_tool):
    need_tool("iverilog")
    for lines in (["b 7e", "b"], ["b 7e", "b gg", "b 7e"]):
        line = Line()
        line.lines = lines
        with pytest.raises(AssertionError, match=r"can't read sent\.txt"):
            line.run(plain[1], tmp_path)


def test_an_engine_on_axi_lite_is_refused(tmp_path):
    forestc.make_engine(tmp_path / "engine", trees=4, nodes=64, features=4, walkers=1, load="axi-lite")
    with pytest.raises(OptionError, match="AXI4-Lite"):
        hardware_of(tmp_path / "engine")
