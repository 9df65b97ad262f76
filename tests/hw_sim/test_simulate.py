"""Tests hw_sim against a slow interpreter that evaluates the cells with `forestc.netlist.ir.evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

import numpy as np
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_netlists import one_more

import hw_sim.simulate
from forestc.errors import CheckError, InternalError, RowsError
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, Input, Less, Net, Netlist, Origin, Register, WordType, evaluate, reads
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port
from hw_sim import Clocked, Simulator, clock_rows
from hw_sim import evaluate as evaluate_netlist
from hw_sim.kernel import compiled

QUICK = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
WIDTHS = (1, 2, 3, 5, 8, 10, 12, 13, 16, 31, 32, 33, 47, 63, 64)


# --- the reference ----------------------------------------------------------------------------------------


class Reference:
    """An interpreter of one lane, one cycle at a time. Its `values` hold every net; registers start at 0."""

    def __init__(self, netlist: Netlist, transparent: bool = False) -> None:
        self.netlist = netlist
        self.transparent = transparent
        self.state = {net: 0 for net, cell in enumerate(netlist.cells) if isinstance(cell, Register)}
        self.values: list[int] = []

    def clock(self, inputs: Mapping[str, int]) -> dict[str, int]:
        values: list[int] = []
        for net, cell in enumerate(self.netlist.cells):
            if isinstance(cell, Input):
                values.append(inputs[cell.port.name])
            elif isinstance(cell, Register):
                values.append(values[cell.a] if self.transparent else self.state[net])
            else:
                below = reads(cell)
                values.append(evaluate(cell, tuple(values[a] for a in below)))
        for net in self.state:
            cell = self.netlist.cells[net]
            assert isinstance(cell, Register)
            self.state[net] = values[cell.a]
        self.values = values
        return {port.name: values[net] for port, net in self.netlist.outputs}


def pattern(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def reference_rows(netlist: Netlist, words: np.ndarray) -> np.ndarray:
    reference = Reference(netlist, transparent=True)
    ports = [(cell.port.name, netlist.types[net]) for net, cell in netlist.inputs]
    rows = []
    for row in words.tolist():
        inputs = {
            name: word % 2**64 if kind == WordType(64, False) else word
            for (name, kind), word in zip(ports, row, strict=True)
        }
        rows.append([pattern(value) for value in reference.clock(inputs).values()])
    return np.array(rows, np.int64).reshape(len(words), len(netlist.outputs))


# --- random netlists ----------------------------------------------------------------------------------------


def random_word(random: Random) -> WordType:
    width = random.choice(WIDTHS)
    return WordType(width, width > 1 and random.random() < 0.5)


def random_netlist(random: Random, latency: int = 0, valid: bool = False) -> Netlist:
    b = NetlistBuilder("random")
    pool = [b.input(Port(f"x{k}"), random_word(random)) for k in range(random.randint(1, 5))]
    handshake = b.input(IN_VALID, BIT) if valid else -1
    varying = set(pool)  # Nets that depend on constants alone must not be registered.
    for stage in range(latency + 1):
        pool += [0, 1]
        for _ in range(random.randint(3, 25)):
            net = one_more(b, random, pool)
            if b.type_of(net).width <= 70:
                pool.append(net)
            if any(a in varying for a in reads(b.cell_of(net))):
                varying.add(net)
        if stage < latency:
            moving = [net for net in dict.fromkeys(pool) if net in varying]
            pool = [b.register(net) for net in random.sample(moving, min(len(moving), 12))]
            varying.update(pool)
            handshake = b.register(handshake) if valid else handshake
    narrow = [net for net in pool if b.type_of(net).width <= 64]
    for k, net in enumerate(random.sample(narrow, min(4, len(narrow)))):
        b.output(Port(f"y{k}"), net)
    if valid:
        b.output(OUT_VALID, handshake)
    netlist = b.build()
    if netlist.latency == latency:
        return netlist
    return random_netlist(random, latency, valid)  # The draw gave constants only, so it is repeated.


def random_words(netlist: Netlist, random: Random, vectors: int, without: str = "") -> np.ndarray:
    """Draws words as int64, often at the edges of the ports' ranges and of the thresholds on them."""
    columns = []
    for net, cell in netlist.inputs:
        if cell.port.name == without:
            continue
        word = netlist.types[net]
        edges = [word.low, word.high]
        for reader in netlist.cells:
            if isinstance(reader, Less) and reader.a == net:
                edges += [reader.threshold - 1, reader.threshold]
        column = [
            random.choice(edges) if random.random() < 0.5 else random.randint(word.low, word.high)
            for _ in range(vectors)
        ]
        columns.append([pattern(value) for value in column])
    return np.array(columns, np.int64).reshape(len(columns), vectors).T


def forest_netlist(
    random: Random, inputs: list[WordType], trees: int, depth: int, thresholds: int, latency: int = 0
) -> Netlist:
    """Makes a netlist as the compiler does: mux trees over the inputs, added to two sums of trees with the
    same splits."""
    b = NetlistBuilder("forest")
    xs = [b.input(Port(f"x{k}"), word) for k, word in enumerate(inputs)]
    limits = [[random.randint(word.low + 1, word.high) for _ in range(thresholds)] for word in inputs]
    leaf = WordType(6, True)

    def condition(at: Origin) -> Net:
        k = random.randrange(len(xs))
        below = b.less(xs[k], random.choice(limits[k]), at)
        choice = random.random()
        if choice < 0.1:
            return b.not_(below, at)
        return b.or_(below, b.less(xs[0], limits[0][0]), at) if choice < 0.2 else below

    def grow(tree: int, levels: int) -> tuple[Net, Net]:
        if levels == 0 or (levels < depth and random.random() < 0.1):
            return b.const(random.randint(-32, 31), leaf), b.const(random.randint(1, 9), leaf)
        at = Origin(tree, levels)
        select, left, right = condition(at), grow(tree, levels - 1), grow(tree, levels - 1)
        return b.mux(select, left[0], right[0], at), b.mux(select, left[1], right[1], at)

    nets = [grow(tree, depth) for tree in range(trees)]
    for _ in range(latency):
        nets = [(b.register(first), b.register(second)) for first, second in nets]
    first = b.add([net for net, _ in nets], width_for(-32 * trees, 31 * trees))
    second = b.add([net for _, net in nets], width_for(-32, 9 * trees))
    b.output(Port("first"), first)
    b.output(Port("second"), second)
    b.output(Port("label"), b.compare(b.add([first, 0], WordType(20, True)), b.add([second, 0], WordType(20, True))))
    return b.build()


# --- Simulator ----------------------------------------------------------------------------------------


@QUICK
@given(st.randoms(use_true_random=False), st.integers(0, 3), st.integers(0, 130))
def test_simulator_equals_reference(random: Random, latency: int, vectors: int) -> None:
    netlist = random_netlist(random, latency)
    words = random_words(netlist, random, vectors)
    assert np.array_equal(Simulator(netlist).run(words), reference_rows(netlist, words))


@pytest.mark.parametrize("vectors", [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 4097])
def test_simulator_on_vector_counts_around_blocks(vectors: int) -> None:
    random = Random(vectors)
    netlist = random_netlist(random)
    words = random_words(netlist, random, vectors)
    got = Simulator(netlist).run(words)
    assert got.shape == (vectors, len(netlist.outputs))
    assert np.array_equal(got, reference_rows(netlist, words))


@pytest.mark.slow
@pytest.mark.parametrize("near", [0, 10**9])
@pytest.mark.parametrize("thresholds", [3, 8, 9, 300])
def test_simulator_on_forests(near: int, thresholds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Covers both block sizes, and thresholds that are decoded, compared one by one, or ranked by bisection."""
    monkeypatch.setattr(hw_sim.simulate, "MOST_SLOTS", near)
    random = Random(thresholds)
    inputs = [
        WordType(w, s)
        for w, s in ((10, False), (8, True), (12, True), (13, False), (33, True), (64, True), (64, False))
    ]
    netlist = forest_netlist(random, inputs, trees=12, depth=6, thresholds=thresholds)
    words = random_words(netlist, random, 300)
    assert np.array_equal(Simulator(netlist).run(words), reference_rows(netlist, words))


def test_muxes_of_the_same_selects_before_and_after_a_sum() -> None:
    b = NetlistBuilder("again")
    s, t, u = (b.input(Port(name), BIT) for name in "stu")
    x, y = b.input(Port("x"), WordType(5, False)), b.input(Port("y"), WordType(5, False))
    zero = b.const(0, WordType(5, False))
    first = b.mux(s, b.mux(t, x, y), b.mux(u, y, zero))
    total = b.add([first, x], WordType(6, False))
    other = b.add([y, y], WordType(6, False))
    b.output(Port("second"), b.mux(s, b.mux(t, total, other), b.mux(u, other, total)))
    netlist = b.build()
    words = random_words(netlist, Random(0), 200)
    assert np.array_equal(Simulator(netlist).run(words), reference_rows(netlist, words))


def test_threads_share_out_the_vectors() -> None:
    random = Random(5)
    netlist = forest_netlist(random, [WordType(10, False)] * 4, trees=5, depth=4, thresholds=40)
    words = np.random.default_rng(0).integers(0, 1024, (50_000, 4))
    got = Simulator(netlist).run(words)
    some = np.random.default_rng(1).integers(0, 50_000, 500)
    assert np.array_equal(got[some], reference_rows(netlist, words[some]))


def test_words_by_name_in_any_order_type_and_stride() -> None:
    b = NetlistBuilder("pair")
    x, y = b.input(Port("x"), WordType(8, True)), b.input(Port("y"), WordType(8, True))
    b.output(Port("less"), b.compare(x, y))
    simulator = Simulator(b.build())
    xs = np.arange(-128, 128)
    ys = xs[::-1]
    expected = (xs < ys).astype(np.int64)[:, None]
    assert np.array_equal(simulator.run({"y": ys, "x": xs}), expected)
    assert np.array_equal(simulator.run({"x": xs.astype(np.int8), "y": ys.astype(">i2")}), expected)
    assert np.array_equal(simulator.run(np.stack([xs, ys], axis=1)), expected)
    assert np.array_equal(simulator.run(np.stack([xs, ys]).T), expected)
    assert np.array_equal(simulator.run(np.stack([xs, ys], axis=1).astype(np.int16)), expected)


def test_ordered_float_keys() -> None:
    b = NetlistBuilder("keys")
    x = b.input(Port("x"), WordType(64, True))
    b.output(Port("negative"), b.less(x, 0))
    b.output(Port("key"), x)
    words = np.array([[-(2**63)], [-1], [0], [2**63 - 1]])
    assert Simulator(b.build()).run(words).tolist() == [[1, -(2**63)], [1, -1], [0, 0], [0, 2**63 - 1]]


def test_unsigned_64_bit_words_are_patterns() -> None:
    b = NetlistBuilder("patterns")
    x = b.input(Port("x"), WordType(64, False))
    b.output(Port("low"), b.less(x, 2**63))
    b.output(Port("x"), x)
    netlist = b.build()
    words = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    expected = [[1, 0], [1, 2**63 - 1], [0, -(2**63)], [0, -1]]
    assert Simulator(netlist).run({"x": words}).tolist() == expected
    assert Simulator(netlist).run(words.view(np.int64)[:, None]).tolist() == expected
    assert Clocked(netlist).clock({"x": 2**64 - 1}) == {"low": 0, "x": 2**64 - 1}


def test_no_inputs() -> None:
    b = NetlistBuilder("constant")
    b.output(Port("y"), b.const(-3, WordType(4, True)))
    assert Simulator(b.build()).run(np.zeros((5, 0), np.int64)).tolist() == [[-3]] * 5


def narrow_sum(high: int) -> Netlist:
    b = NetlistBuilder("tight")
    x, y = b.input(Port("x"), WordType(3, False)), b.input(Port("y"), WordType(3, False))
    b.output(Port("sum"), b.add([x, y], width_for(0, high)))
    return b.build()


def test_sum_that_does_not_fit_its_word() -> None:
    words = np.array([[1, 2], [3, 4], [7, 1], [7, 7]])
    assert Simulator(narrow_sum(14)).run(words).tolist() == [[3], [7], [8], [14]]
    assert Simulator(narrow_sum(7)).run(words[:2]).tolist() == [[3], [7]]
    with pytest.raises(InternalError, match="netlist tight, vector 2: a sum does not fit its word"):
        Simulator(narrow_sum(7)).run(words)


def test_signed_sum_of_unsigned_words_that_does_not_fit() -> None:
    b = NetlistBuilder("high")
    x = b.input(Port("x"), BIT)
    leaf = WordType(4, True)
    part = b.mux(x, b.const(7, leaf), b.const(1, leaf))
    b.output(Port("sum"), b.add([part, part], leaf))
    simulator = Simulator(b.build())
    assert simulator.run(np.array([[0]])).tolist() == [[2]]
    with pytest.raises(InternalError, match="vector 1"):
        simulator.run(np.array([[0], [1]]))


@pytest.mark.parametrize("vectors", [1, 200, 5000])
def test_signed_sum_that_does_not_fit_its_word(vectors: int) -> None:
    b = NetlistBuilder("signed")
    x, y = b.input(Port("x"), WordType(5, True)), b.input(Port("y"), WordType(5, True))
    b.output(Port("sum"), b.add([x, y], WordType(5, True)))
    simulator = Simulator(b.build())
    words = np.tile([[7, 8]], (vectors, 1))
    assert (simulator.run(words) == 15).all()
    words[vectors // 2 :, 1] = 9
    with pytest.raises(InternalError, match=f"vector {vectors // 2}"):
        simulator.run(words)
    words[vectors // 2 :] = [-8, -9]
    with pytest.raises(InternalError, match=f"vector {vectors // 2}"):
        simulator.run(words)


# --- errors ----------------------------------------------------------------------------------------


def two_ports() -> Netlist:
    b = NetlistBuilder("two")
    x, y = b.input(Port("x"), WordType(3, False)), b.input(Port("y"), WordType(3, True))
    b.output(Port("x"), x)
    b.output(Port("y"), y)
    return b.build()


@pytest.mark.parametrize("bad", [0, 70, 1023, 1024, 9999])
@pytest.mark.parametrize(("port", "value"), [(0, 8), (0, -1), (1, 4), (1, -5), (0, 2**62)])
def test_word_out_of_range(bad: int, port: int, value: int) -> None:
    words = np.zeros((10_000, 2), np.int64)
    words[bad, port] = value
    words[min(bad + 1, 9999) :, port] = value
    limits = ("0 to 7", "-4 to 3")[port]
    message = f"vector {bad}: port '{'xy'[port]}' holds {value}, outside {limits}; give"
    with pytest.raises(RowsError, match=message):
        Simulator(two_ports()).run(words)
    with pytest.raises(RowsError, match=message):
        clock_rows(two_ports(), words)


@pytest.mark.parametrize(("x", "y", "first"), [(100, 99, "port 'y' holds 4"), (99, 100, "port 'x' holds 8")])
def test_first_vector_out_of_range_is_named(x: int, y: int, first: str) -> None:
    words = np.zeros((200, 2), np.int64)
    words[x:, 0] = 8
    words[y:, 1] = 4
    for run in (Simulator(two_ports()).run, lambda words: clock_rows(two_ports(), words)):
        with pytest.raises(RowsError, match=f"vector 99: {first}, .*; give"):
            run(words)


def test_words_that_do_not_fit_the_ports() -> None:
    simulator = Simulator(two_ports())
    x = np.zeros(3, np.int64)
    with pytest.raises(RowsError, match=r"they have shape \(3, 1\), should be \(vectors, 2\)"):
        simulator.run(x[:, None])
    with pytest.raises(RowsError, match="no words for port 'y'"):
        simulator.run({"x": x})
    with pytest.raises(RowsError, match="no input port 'z'"):
        simulator.run({"x": x, "y": x, "z": x})
    with pytest.raises(RowsError, match=r"shapes \[\(2,\), \(3,\)\]"):
        simulator.run({"x": x, "y": x[:2]})
    with pytest.raises(RowsError, match="port 'y': words of type float64"):
        simulator.run({"x": x, "y": x * 0.5})
    with pytest.raises(RowsError, match=r"vector 2: .*holds 18446744073709551615, outside 0 to 7"):
        simulator.run({"x": np.array([0, 1, 2**64 - 1], np.uint64), "y": x})


def test_ports_wider_than_64_bits() -> None:
    b = NetlistBuilder("wide")
    x = b.input(Port("x"), WordType(64, False))
    b.output(Port("double"), b.add([x, x], WordType(65, False)))
    with pytest.raises(InternalError, match="netlist wide, net 3: result has 65 bits; the simulator takes up to 64"):
        Simulator(b.build())
    b = NetlistBuilder("wide")
    b.output(Port("sign"), b.less(b.input(Port("x"), WordType(65, True)), 0))
    with pytest.raises(InternalError, match="input 'x' has 65 bits"):
        Clocked(b.build())


def test_clocked_checks_its_inputs() -> None:
    clocked = Clocked(two_ports())
    clocked.clock({"x": 7, "y": -4})
    with pytest.raises(RowsError, match="cycle 1: port 'x' holds 8, outside 0 to 7"):
        clocked.clock({"x": 8, "y": 0})
    with pytest.raises(RowsError, match="no words for port 'y'"):
        clocked.clock({"x": 1})
    with pytest.raises(RowsError, match="no input port 'z'"):
        clocked.clock({"x": 1, "y": 0, "z": 0})
    with pytest.raises(KeyError):
        clocked.values([2])
    assert clocked.cycles == 1


# --- by the clock ----------------------------------------------------------------------------------------


@QUICK
@given(st.randoms(use_true_random=False), st.integers(0, 4))
def test_clocked_equals_reference(random: Random, latency: int) -> None:
    """Compares every output and every net of up to 64 bits, in every cycle."""
    netlist = random_netlist(random, latency)
    watch = [net for net, word in enumerate(netlist.types) if word.width <= 64]
    clocked, reference = Clocked(netlist, watch), Reference(netlist)
    ports = [(cell.port.name, netlist.types[net]) for net, cell in netlist.inputs]
    for _ in range(12):
        inputs = {name: random.randint(word.low, word.high) for name, word in ports}
        expected = reference.clock(inputs)
        assert clocked.clock(inputs) == expected
        # A sum with a word too narrow for it might wrap while the registers fill; there is none here.
        assert clocked.values() == {net: reference.values[net] for net in watch}


def test_registers_hold_zero_before_the_first_words_arrive() -> None:
    """Registers start at 0 even if their later values are never 0."""
    b = NetlistBuilder("fill")
    leaf = WordType(3, False)
    x = b.register(b.mux(b.input(Port("x"), BIT), b.const(5, leaf), b.const(7, leaf)))
    total = b.add([x, b.const(-5, WordType(4, True))], WordType(5, True))
    b.output(Port("y"), total)
    clocked = Clocked(b.build())
    assert [clocked.clock({"x": x})["y"] for x in (0, 1, 1)] == [-5, 2, 0]


def test_clocked_forest() -> None:
    random = Random(3)
    inputs = [WordType(10, False), WordType(64, True), WordType(20, False)]
    netlist = forest_netlist(random, inputs, trees=10, depth=5, thresholds=30, latency=3)
    clocked, reference = Clocked(netlist), Reference(netlist)
    for row in random_words(netlist, random, 40).tolist():
        inputs_now = {f"x{k}": word for k, word in enumerate(row)}
        assert clocked.clock(inputs_now) == reference.clock(inputs_now)


@QUICK
@given(st.randoms(use_true_random=False), st.integers(0, 4), st.integers(0, 30), st.booleans(), st.booleans())
def test_clock_rows(random: Random, latency: int, rows: int, valid: bool, gaps: bool) -> None:
    netlist = random_netlist(random, latency, valid)
    words = random_words(netlist, random, rows, without="in_valid")
    idle = [random.randint(0, 3) for _ in range(rows)] if gaps else None
    seen: list[int] = []
    run = clock_rows(netlist, words, idle, progress=seen.append)
    whole = np.concatenate([words, np.ones((rows, 1), np.int64)], axis=1) if valid else words
    expected = reference_rows(netlist, whole)
    assert np.array_equal(run.outputs, expected[:, :-1] if valid else expected)
    assert run.latency == latency
    assert run.cycles == (rows + sum(idle or []) + latency if rows else 0)
    assert seen == ([rows] if rows else [])


def handshake(out_valid: str) -> Netlist:
    b = NetlistBuilder("handshake")
    x, valid = b.input(Port("x"), WordType(4, False)), b.input(IN_VALID, BIT)
    b.output(Port("y"), b.register(x))
    late = {"in": valid, "never": b.and_(valid, b.less(x, 0)), "often": b.or_(valid, b.less(x, 8))}[out_valid]
    b.output(OUT_VALID, b.register(late))
    return b.build()


def test_clock_rows_checks_out_valid() -> None:
    words = np.array([[1], [2], [3]])
    assert clock_rows(handshake("in"), words, [2, 0, 3]).outputs.tolist() == [[1], [2], [3]]
    with pytest.raises(CheckError, match="netlist handshake, cycle 1, row 0: out_valid is 0, should be 1"):
        clock_rows(handshake("never"), words)
    with pytest.raises(CheckError, match="out_valid is 1, should be 0"):
        clock_rows(handshake("often"), words, [9, 9, 9])
    with pytest.raises(RowsError, match="2 gaps for 3 rows"):
        clock_rows(handshake("in"), words, [1, 2])


def test_progress_comes_now_and_then() -> None:
    seen: list[int] = []
    clock_rows(handshake("in"), np.zeros((600, 1), np.int64), progress=seen.append)
    assert seen == [256, 512, 600]


def test_kernel_without_a_folder_for_compiled_code() -> None:
    """numba can't cache a function without a file."""
    names: dict[str, Callable[[int], int]] = {}
    exec("def double(x): return 2 * x", names)
    assert compiled(names["double"])(21) == 42


# --- cell by cell -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_cell_by_cell_is_the_same(seed):
    random = Random(seed)
    netlist = random_netlist(random, latency=seed % 3)
    words = random_words(netlist, random, 70)
    if any(word.width > 64 or word == WordType(64, False) for word in netlist.types):
        with pytest.raises(InternalError, match="use the Simulator"):
            evaluate_netlist(netlist, words)
        return
    assert np.array_equal(evaluate_netlist(netlist, words), Simulator(netlist).run(words))


def test_cell_by_cell_refuses_what_the_simulator_refuses():
    b = NetlistBuilder("narrow")
    total = b.add([b.input(Port("x"), WordType(4, False)), b.input(Port("y"), WordType(4, False))], WordType(4, False))
    b.output(Port("z"), total)
    netlist = b.build()
    for run in (partial(evaluate_netlist, netlist), Simulator(netlist).run):
        with pytest.raises(RowsError, match="vector 1: port 'x' holds 16, outside 0 to 15"):
            run(np.array([[1, 1], [16, 0]]))
        with pytest.raises(InternalError, match="netlist narrow, vector 1: a sum does not fit its word"):
            run(np.array([[1, 1], [15, 2]]))
    with pytest.raises(RowsError, match="shape"):
        evaluate_netlist(netlist, np.zeros((3, 1), np.int64))
    assert evaluate_netlist(netlist, np.zeros((0, 2), np.int64)).shape == (0, 1)
