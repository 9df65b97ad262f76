"""The client of boards: against a board with faults it answers as the design does, or says what is wrong."""

from __future__ import annotations

import random
import select
import sys
import threading
import time

import numpy as np
import pytest
from fake_board import FakeBoard, answers_of, number, on_the_line, spread
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import forestc
from forestc.backends.vectors import Vectors
from forestc.boards import link
from forestc.boards.client import Board
from forestc.checks.board import BoardEngine
from forestc.engine.image import image_of
from forestc.engine.vectors import packed_results, results_of
from forestc.errors import BoardError, MissingExtraError, OptionError, RowsError
from forestc.forest.evaluate import evaluate_words
from forestc.toolchain.run import together

QUICK = 0.05  # seconds of a time-out


X, Y = load_iris(return_X_y=True)
MODELS = {
    "classes": (RandomForestClassifier(4, max_depth=4, random_state=1), Y),
    "two": (GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=1), Y == 1),
    "values": (RandomForestRegressor(3, max_depth=4, random_state=1), X[:, 2] + 0.1 * Y),
}


def made(kind, folder, outputs="both", **options):
    model, y = MODELS[kind]
    options = {"targets": ["verilog"], "outputs": outputs} | options
    return forestc.compile(model.fit(X, y), X, folder / kind, label=y, **options).design


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    return made("classes", tmp_path_factory.mktemp("boards"))


def fake(design, **options):
    answer, row, result = answers_of(design)
    return FakeBoard(answer, row, result, bytes.fromhex(design.manifest["hash"][:16]), **{"most": 200} | options)


def test_a_board_is_a_predictor_as_the_design_is(design):
    with fake(design) as board, Board(board.port, design) as client:
        for name in ("predict", "predict_proba", "decision_function"):
            assert np.array_equal(getattr(client, name)(X), getattr(design, name)(X)), name
        assert client.identity.design.hex() == design.manifest["hash"][:16] and client.identity.most == 200
        assert is_classifier(client) and not is_regressor(client) and clone(client) is client
        assert client.n_features_in_ == X.shape[1]
        assert len(client.predict(X[:0])) == 0
        with pytest.raises(RowsError, match="shape"):
            client.predict(X[:, :2])


def test_labels_alone_and_values_alone(tmp_path):
    design = made("two", tmp_path, "label")
    with fake(design) as board, Board(board.port, str(design.folder)) as client:
        assert np.array_equal(client.predict(X), design.predict(X))
        assert not hasattr(client, "predict_proba") and not hasattr(client, "decision_function")
    design = made("values", tmp_path, "scores")
    with fake(design) as board, Board(board.port, design) as client:
        assert np.array_equal(client.predict(X), design.predict(X)) and is_regressor(client)


def test_without_a_design_there_are_the_identity_and_raw_words(design):
    packed = design.pack(design.quantize(X))
    with fake(design) as board, Board(board.port) as client:
        assert client.identity.row == packed.shape[1] and "core" in repr(client)
        words = design.quantize(X)
        scores = design.unpack(client.exchange(packed))[:, 1:]
        assert np.array_equal(scores, evaluate_words(design.forest, words).scores)
        with pytest.raises(OptionError, match="no design"):
            client.predict(X)
        with pytest.raises(RowsError, match=f"give \\(rows, {packed.shape[1]}\\)"):
            client.exchange(packed[:, :-1])
        with pytest.raises(OptionError, match="no engine"):
            client.load(b"")


# Each fault changes every third answer, from the second on.
FAULTS = {
    "wrong CRC": lambda line: line[:-3] + bytes([line[-3] ^ 1]) + line[-2:],
    "a wrong byte": lambda line: line[:7] + bytes([line[7] ^ 0x10]) + line[8:],
    "truncated": lambda line: line[: len(line) // 2],
    "without its end": lambda line: line[:-1],
    "twice": lambda line: line + line,
    "lost": lambda line: b"",
    "noise before": lambda line: b"\x7e\x7e\x00\x7d\x7e" + bytes(range(256)) + line,
    "lost flag": lambda line: line[1:],
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("window", [1, 4])
def test_faults_end_in_the_right_answer(design, name, window):

    def fault(count, line):
        return FAULTS[name](line) if count % 3 == 1 else line

    with fake(design, fault=fault, window=window) as board, Board(board.port, design, timeout=QUICK) as client:
        assert np.array_equal(client.predict(X), design.predict(X))
        assert client.resends > 0 or name in ("twice", "noise before", "without its end", "lost flag")


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from([None, *FAULTS]), min_size=2, max_size=12), st.integers(1, 6), st.integers(20, 90))
def test_any_sequence_of_faults_gives_no_wrong_answer(design, faults, window, most):

    def fault(count, line):
        name = faults[count % len(faults)]
        return line if name is None else FAULTS[name](line)

    with fake(design, fault=fault, window=window, most=most) as board:
        try:
            with Board(board.port, design, timeout=0.02) as client:
                assert np.array_equal(client.predict(X[::5]), design.predict(X[::5]))
        except BoardError as error:
            assert error.where == board.port and error.do


def test_answers_of_an_earlier_program_are_no_answers(design, monkeypatch):
    monkeypatch.setattr(link.secrets, "randbelow", lambda most: most - 3)  # the numbers begin again after two
    with fake(design) as board:
        wrong = bytes(20 * board.result)
        sequences = [0xFFFE, 0xFFFF, *range(20)]
        stale = [on_the_line(0x82, sequence, wrong) for sequence in sequences]
        board.send(b"".join(stale)[:3000])
        with Board(board.port, design) as client:
            assert np.array_equal(client.predict(X), design.predict(X))


def test_answers_may_come_late_and_repeatedly(design):
    """The board is slower than the time-out: each answer counts although its request was sent again."""
    board = fake(design, fault=lambda count, line: time.sleep(0.03) or line)
    with board, Board(board.port, design, timeout=0.02) as client:
        assert np.array_equal(client.predict(X[:40]), design.predict(X[:40]))
        assert client.resends > 0


@pytest.mark.parametrize("kind", [0x82, 0x81])
def test_a_board_that_repeats_an_answer_for_ever_ends_the_exchange(design, kind):
    """Answers to answered requests, and frames that answer none, do not move the time-out."""

    def fault(count, line):
        repeated = line if kind == 0x82 else on_the_line(kind, 0, b"x")
        end = time.monotonic() + 20
        while count == 1 and not board.ends.is_set() and time.monotonic() < end:
            if select.select([], [board.end], [], 0.01)[1]:
                board.send(repeated)
        return line if count < 2 else b""

    failure = pytest.raises(BoardError, match=f"{link.TRIES} requests")
    with fake(design, fault=fault) as board, Board(board.port, design, timeout=QUICK) as client, failure:
        client.predict(X)


@pytest.mark.parametrize("most", [3, 4, 7])
def test_an_engine_without_room_for_a_word_is_none(most):
    board = FakeBoard(lambda row: row, 1, 1, bytes(8), target=2, most=most)
    with board, pytest.raises(BoardError, match="version 1 of the protocol"):
        Board(board.port)


@pytest.mark.parametrize("following", [{}, {0: 3}, None], ids=["stays", "back and forth", "silent"])
def test_a_load_ends_that_does_not_go_on(following):
    board = FakeBoard(lambda row: row, 1, 1, bytes(8), target=2, most=64)
    board._load = lambda payload: spread((following or {}).get(number(payload[:4]), 0), 4) + bytes(1)
    with board, Board(board.port, timeout=QUICK) as client:
        board.fault = lambda count, line: line if following is not None else b""
        with pytest.raises(BoardError, match="sent nothing" if following is None else "refused the image"):
            client.load(bytes(1 << 20))
        assert board.answers < 3 * link.TRIES


def test_another_design_is_refused(design, tmp_path):
    other = made("two", tmp_path)
    with (
        fake(other) as board,
        pytest.raises(BoardError, match=f"has the design {other.manifest['hash'][:16]}") as found,
    ):
        Board(board.port, design)
    assert found.value.where == board.port and "program the board" in found.value.do
    with fake(design) as board:
        board.result += 1
        with pytest.raises(BoardError, match="bytes a row"):
            Board(board.port, design)


def test_a_board_that_changes_meanwhile_is_refused(design):
    with fake(design) as board:
        right = board.answer

        def change(count, line):
            if count == 3:
                board.design, board.answer = bytes(8), lambda row: bytes(len(right(row)))
            return line

        board.fault = change
        with Board(board.port, design) as client, pytest.raises(BoardError, match="the board changed"):
            client.predict(X)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_port_that_vanishes_is_an_error(design, after):
    with fake(design) as board:
        board.fault = lambda count, line: board.unplug() or b"" if count == after else line
        failure = pytest.raises(BoardError, match=r"the port failed|sent nothing")
        with failure as found, Board(board.port, design, timeout=QUICK) as client:
            client.predict(X)
        assert found.value.where == board.port and found.value.exit_status == 4


def test_silence_noise_and_other_protocols_are_errors(design):
    with fake(design, fault=lambda count, line: b"") as board, pytest.raises(BoardError, match="sent nothing for"):
        Board(board.port, design, timeout=QUICK)
    board = fake(design, fault=lambda count, line: b"hello\r\n")
    with board, pytest.raises(BoardError, match=f"{link.TRIES} requests"):
        Board(board.port, design, timeout=QUICK)
    with fake(design, version=2) as board, pytest.raises(BoardError, match="version 1 of the protocol"):
        Board(board.port, design)
    with fake(design, target=4) as board, pytest.raises(BoardError, match="version 1 of the protocol"):
        Board(board.port, design)
    with fake(design, most=1) as board, pytest.raises(BoardError, match="protocol"):
        Board(board.port, design)


def test_a_problem_or_an_answer_of_another_length_is_an_error(design):
    with fake(design) as board, Board(board.port, design) as client:
        board.row += 1
        with pytest.raises(BoardError, match="no whole rows"):
            client.predict(X[:1])
        board.row -= 1
        board.answer = lambda row: b""
        with pytest.raises(BoardError, match="0x82 and 0 bytes"):
            client.predict(X)


def test_a_label_that_is_no_class_is_an_error(design):
    with fake(design) as board, Board(board.port, design) as client:
        board.answer = lambda row: b"\xff" * board.result
        with pytest.raises(BoardError, match="no class"):
            client.predict(X)


@pytest.mark.parametrize("scores", [False, True])
def test_an_engine_loads_its_image_and_answers(tmp_path, scores):
    engine = tmp_path / "engine"
    forestc.make_engine(engine, trees=4, nodes=256, features=4, classes=3, walkers=2, scores=scores)
    design = made("classes", tmp_path, "auto", targets=["engine"], engine=engine, passes=EIGHT)
    capacity, forest = design.engine, design.forest
    beat = capacity.tdata_bits // 8
    words = design.quantize(X)
    packed = packed_results(capacity, results_of(capacity, evaluate_words(forest, words)))
    from forestc.boards.wires import Target, wire_of

    known = {bytes(row): result for row, result in zip(wire_of(design, Target.ENGINE).rows(words), packed, strict=True)}
    size = capacity.result_bits // 8
    identity = capacity.id.to_bytes(8, "little")
    board = FakeBoard(
        lambda row: known[row].to_bytes(size, "little"), capacity.beats * beat, size, identity, target=2, most=250,
        fault=lambda count, line: b"" if count % 4 == 2 else line,
    )  # fmt: skip
    with board, Board(board.port, design, timeout=QUICK) as client:
        with pytest.raises(BoardError, match="another image"):
            client.predict(X)
        client.load()
        assert client.identity.image == number(image_of(forest, capacity).bytes[-4:])
        assert np.array_equal(client.predict(X), design.predict(X))
        assert hasattr(client, "predict_proba") is scores
        if scores:
            assert np.array_equal(client.predict_proba(X), design.predict_proba(X))
        image = image_of(forest, capacity).bytes
        with pytest.raises(BoardError, match="refused the image"):
            client.load(image[:100] + bytes([image[100] ^ 1]) + image[101:])
        (tmp_path / "x.bin").write_bytes(image)
        client.load(tmp_path / "x.bin")
        board.image = 0
        with pytest.raises(BoardError, match="has no image"):
            client.predict(X)
        with pytest.raises(OptionError, match="there is no such file"):
            client.load(tmp_path / "none.bin")


EIGHT = "simplify,quantize-inputs{input_bits=8},round-leaves{leaf_bits=8}"


def test_a_port_that_is_not_there_names_those_that_are(design, tmp_path):
    with pytest.raises(BoardError, match="can't be opened") as found:
        Board(str(tmp_path / "none"))
    assert "ports of this machine" in found.value.do
    with fake(design) as board, Board(board.port), pytest.raises(BoardError, match="can't be opened"):
        Board(board.port)  # another program has it


def test_without_pyserial_an_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(MissingExtraError, match=r"forestc\[board\]"):
        Board("COM3")


def test_sequence_numbers_begin_again(design, monkeypatch):
    monkeypatch.setattr(link.secrets, "randbelow", lambda most: most - 10)
    rows = X[random.Random(0).choices(range(len(X)), k=400)]
    with fake(design, most=30) as board, Board(board.port, design) as client:
        assert np.array_equal(client.predict(rows), design.predict(rows))


def test_check_counts_the_differences_of_a_board(design):
    with fake(design, most=1000) as board:
        right = board.answer
        board.answer = lambda row: right(row) if row[0] % 16 else bytes([right(row)[0] ^ 1]) + right(row)[1:]
        result = forestc.check(design, X[:40], port=board.port, engines=["board"], random_rows=60, record=False)
        found = result.engines["board"]
        assert found.vectors == sum(result.vectors.values()) and 0 < found.differences < found.vectors
        assert not result.ok and "board differs" in str(result.problem()) and "should give" in found.first
        assert found.tool == f"{board.port}, 115200 baud" and any(
            "requests sent again" in note for note in result.notes
        )
        board.answer = right
        assert forestc.check(design, X[:40], port=board.port, engines=["netlist"], random_rows=60, record=False).ok
        other = forestc.check(design, X[:40], engines=["netlist"], random_rows=60, record=False)
        assert "board" not in other.engines and "board" not in other.figures
        with pytest.raises(OptionError, match="no port"):
            forestc.check(design, X[:40], engines=["board"])


def test_a_check_that_ends_does_not_wait_for_its_board(design):
    """Another engine fails, or the user interrupts: the rows that are left are not sent."""
    answered = threading.Event()

    def fail():
        assert answered.wait(10)
        raise OptionError("an engine failed", where="a test", do="try again")

    words = np.repeat(design.quantize(X), 40, axis=0)
    vectors = Vectors(words, words.astype(float), "random")
    with fake(design, fault=lambda count, line: answered.set() or line if count > 2 else line) as board:
        with Board(board.port, design) as client:
            engine = BoardEngine(design, client, board.port)
            with pytest.raises(OptionError, match="an engine failed"):
                together([fail, lambda: engine.compare(vectors, evaluate_words(design.forest, words))])
        rows = (board.answers - 3) * (board.most // board.row)
        assert engine.rows == 0 and rows < len(words)
