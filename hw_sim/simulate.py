"""Runs netlists: many vectors at once, or cycle by cycle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError, InternalError, RowsError
from forestc.netlist.ir import BIT, Net, Netlist, WordType
from forestc.netlist.ports import IN_VALID, OUT_VALID
from hw_sim.program import build_program
from hw_sim.schedule import Scratch, Width, schedule
from hw_sim.vcd import Waveform, signals

Column: TypeAlias = NDArray[np.int64]
IntMatrix: TypeAlias = NDArray[np.int64]
Words: TypeAlias = Mapping[str, NDArray[Any]] | NDArray[Any]
Ports: TypeAlias = Sequence[tuple[str, WordType]]

BLOCK: Width = (0,) * 16  # words for each slot; fastest while all slots fit in the cache
SMALL_BLOCK: Width = (0,) * 8  # words for each slot, of netlists with many slots
MOST_SLOTS = 64_000  # limits the slots of the larger block; more would leave the cache
ONE_WORD: Width = (0,)  # words for each slot, of which one lane is used cycle by cycle
LINE = 8  # words in a cache line; vectors across two lines are slow to load
PATTERN = WordType(64, False)  # marks words that are passed as the int64 with the same 64 bits
PROGRESS_ROWS = 256  # rows between two calls of `progress`


class Simulator:
    """A simulator of many vectors at once, with registers as wires. Raises InternalError for ports over 64 bits."""

    def __init__(self, netlist: Netlist) -> None:
        self._name = netlist.name
        self._ports = _ports(netlist)
        self._outputs = len(netlist.outputs)
        self._tables = schedule(build_program(netlist, [net for _, net in netlist.outputs], clocked=False))
        self._width = BLOCK if self._tables.slots <= MOST_SLOTS else SMALL_BLOCK

    def run(self, words: Words) -> IntMatrix:
        """Returns the output words (vectors, outputs).
        words: (vectors, inputs) in port order, or arrays (vectors,) by port name.

        Raises RowsError for unsuitable words, InternalError if a sum does not fit its word.
        """
        from numba import get_num_threads  # takes half a second to import, like the kernel

        from hw_sim.kernel import run_vectors

        columns, vectors = _columns(self._ports, words)
        out = np.empty((vectors, self._outputs), np.int64)
        if not vectors:
            return out
        block = 64 * len(self._width)
        blocks = -(-vectors // block)
        tasks = min(get_num_threads(), blocks)
        faults = np.empty((tasks, 2), np.int64)
        addresses, strides = _memory_of(columns)
        scratch = _scratch(tasks, self._tables.slots, self._width)

        def run(task: int) -> None:
            memory = Scratch(*(part[task] for part in scratch))
            begin, end = (min(blocks * part // tasks * block, vectors) for part in (task, task + 1))
            faults[task] = run_vectors(self._tables, addresses, strides, memory, begin, end, out, self._width)

        if tasks == 1:
            run(0)
        else:  # Python threads, as numba's parallel loops take longer to compile
            with ThreadPoolExecutor(tasks) as pool:
                for future in [pool.submit(run, task) for task in range(tasks)]:
                    future.result()
        for vector, port in faults.tolist():
            if 0 <= port < len(columns):
                raise _outside(*self._ports[int(port)], int(columns[port][vector]), f"vector {vector}")
            if port >= 0:
                where = f"netlist {self._name}, vector {vector}"
                raise InternalError("a sum does not fit its word", where=where)
        return out


class Clocked:
    """A simulator of a netlist, cycle by cycle, with the ports of its clocking. Raises InternalError for ports over 64
    bits."""

    def __init__(self, netlist: Netlist, watch: Sequence[Net] | None = None) -> None:
        self.cycles = 0
        self._watch = tuple(watch or ())
        self._types = netlist.types
        self._outputs = netlist.outputs
        self._clocking = netlist.clocking
        self._ports = [*_ports(netlist), *((name, BIT) for name in netlist.clocking.ports)]
        results = [net for _, net in netlist.outputs]
        self._tables = schedule(build_program(netlist, [*results, *self._watch], clocked=True))
        self._scratch = Scratch(*(array[0] for array in _scratch(1, self._tables.slots, ONE_WORD)))
        self._words = np.zeros((1, len(self._ports)), np.int64)
        self._addresses, self._strides = _memory_of(list(self._words.T))
        self._row = np.zeros((1, len(results) + len(self._watch)), np.int64)

    def clock(self, inputs: Mapping[str, int]) -> dict[str, int]:
        """Returns the outputs, by port name, before a rising clock edge, and applies the edge. Raises RowsError for
        words that do not fit the ports."""
        _check_names(self._ports, inputs)
        for index, (name, word) in enumerate(self._ports):
            value = inputs[name]
            if not word.low <= value <= word.high:
                raise _outside(name, word, value, f"cycle {self.cycles}")
            self._words[0, index] = _pattern(value)
        from hw_sim.kernel import latch, run_vectors

        latches, planes = self._tables.latches, self._scratch.planes
        reset, enabled = inputs.get("rst", 0), inputs.get("en", 1)
        if reset and self._clocking.reset == "async":
            planes[latches["state"]] = 0
        run_vectors(self._tables, self._addresses, self._strides, self._scratch, 0, 1, self._row, ONE_WORD)
        if reset:
            planes[latches["state"]] = 0
        elif enabled:
            latch(latches, planes)
        self.cycles += 1
        row = self._row[0].tolist()
        return {port.name: _value(self._types[net], row[k]) for k, (port, net) in enumerate(self._outputs)}

    @property
    def watched(self) -> Column:
        """The words of the watched nets before the last edge: (watched nets,). The next cycle overwrites them."""
        return self._row[0, len(self._outputs) :]

    def values(self, nets: Sequence[Net] | None = None) -> dict[Net, int]:
        """Returns the values before the last clock edge, by net. nets: by default, all watched nets. Raises KeyError
        for other nets."""
        values = {
            net: _value(self._types[net], word) for net, word in zip(self._watch, self.watched.tolist(), strict=True)
        }
        return values if nets is None else {net: values[net] for net in nets}


class ClockedRun(NamedTuple):
    """The outputs for rows that were clocked through a netlist."""

    outputs: IntMatrix  # (rows, outputs) in port order, without `out_valid`
    cycles: int  # clock cycles of all rows
    latency: int


def clock_rows(
    netlist: Netlist,
    words: Words,
    valid_gaps: Sequence[int] | None = None,
    vcd: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> ClockedRun:
    """Feeds rows to a netlist, one in each clock cycle, and returns their outputs.
    valid_gaps: idle cycles before each row.
    vcd: file for the waveform.

    Raises RowsError for unsuitable words, CheckError if `out_valid` is wrong.
    """
    handshake = _has_handshake(netlist)
    ports = [port for port in _ports(netlist) if not (handshake and port[0] == IN_VALID.name)]
    columns, vectors = _columns(ports, words)
    _check_words(ports, columns)
    gaps = [0] * vectors if valid_gaps is None else [int(gap) for gap in valid_gaps]
    if len(gaps) != vectors or min(gaps, default=0) < 0:
        raise RowsError(
            f"{len(gaps)} gaps for {vectors} rows", where="gaps", do="give each row a number of idle cycles"
        )
    fields = [port.name for port, _ in netlist.outputs if not (handshake and port == OUT_VALID)]
    outputs = np.empty((vectors, len(fields)), np.int64)
    control = netlist.clocking.ports
    waveform = Waveform(vcd, netlist.name, signals(netlist), netlist.latency > 0, control) if vcd else None
    with waveform or nullcontext():
        clocked = Clocked(netlist, waveform.nets if waveform else None)
        in_flight: deque[bool] = deque()
        done = 0
        for inputs, valid in _cycles(ports, columns, gaps, netlist.latency, handshake):
            got = clocked.clock(inputs | control)
            if waveform:
                waveform.cycle(clocked.watched)
            in_flight.append(valid)
            due = len(in_flight) > netlist.latency and in_flight.popleft()
            if handshake and got[OUT_VALID.name] != due:
                where = f"netlist {netlist.name}, cycle {clocked.cycles - 1}, row {done}"
                raise CheckError(f"out_valid is {got[OUT_VALID.name]}, should be {int(due)}", where=where)
            if due:
                outputs[done] = [_pattern(got[name]) for name in fields]
                done += 1
                if progress and (done % PROGRESS_ROWS == 0 or done == vectors):
                    progress(done)
    return ClockedRun(outputs, clocked.cycles, netlist.latency)


def _has_handshake(netlist: Netlist) -> bool:
    inputs, outputs = {cell.port for _, cell in netlist.inputs}, {port for port, _ in netlist.outputs}
    return IN_VALID in inputs and OUT_VALID in outputs


def _cycles(
    ports: Ports, columns: Sequence[Column], gaps: Sequence[int], latency: int, handshake: bool
) -> Iterator[tuple[dict[str, int], bool]]:
    """Yields (inputs by port name, True if the inputs are a row) for each clock cycle."""
    random = Random(0)

    def cycle(words: Iterable[int], valid: bool) -> tuple[dict[str, int], bool]:
        inputs = {name: _value(word, value) for (name, word), value in zip(ports, words, strict=True)}
        return (inputs | {IN_VALID.name: int(valid)} if handshake else inputs), valid

    def idle() -> tuple[dict[str, int], bool]:
        return cycle([random.randint(word.low, word.high) for _, word in ports], False)

    for row, gap in enumerate(gaps):
        for _ in range(gap):
            yield idle()
        yield cycle([int(column[row]) for column in columns], True)
    for _ in range(latency if gaps else 0):
        yield idle()


def _ports(netlist: Netlist) -> list[tuple[str, WordType]]:
    return [(cell.port.name, netlist.types[net]) for net, cell in netlist.inputs]


def _columns(ports: Ports, words: Words) -> tuple[list[Column], int]:
    """Returns a list of each port's words, in the netlist's order, and the number of vectors."""
    if isinstance(words, Mapping):
        _check_names(ports, words)
        columns = [_integers(np.asarray(words[name]), word, f"port {name!r}") for name, word in ports]
        shapes = {column.shape for column in columns}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise RowsError(
                f"the ports' words have shapes {sorted(shapes)}", where="words", do="give arrays of one length"
            )
        return columns, len(columns[0]) if columns else 0
    if words.ndim != 2 or words.shape[1] != len(ports):
        raise RowsError(
            f"they have shape {words.shape}, should be (vectors, {len(ports)})",
            where="words",
            do="give one column for each port",
        )
    if words.dtype == np.int64:  # the common case needs no conversion of each column
        return list(words.T), len(words)
    return [_integers(words[:, k], word, f"port {name!r}") for k, (name, word) in enumerate(ports)], len(words)


def _integers(words: NDArray[Any], word: WordType, where: str) -> Column:
    """Returns the words as int64. Raises RowsError for words that are no integers, or unsigned and above the port's
    range."""
    if words.dtype.kind not in "iub":
        raise RowsError(f"words of type {words.dtype}", where=where, do="give integers")
    if word != PATTERN and words.dtype == np.uint64 and words.size and int(words.max()) > word.high:
        vector = int(np.argmax(words > word.high))
        raise _outside(where, word, int(words[vector]), f"vector {vector}")
    return words.astype(np.int64, copy=False)


def _check_names(ports: Ports, words: Mapping[str, object]) -> None:
    missing = [name for name, _ in ports if name not in words]
    if missing:
        raise RowsError(f"no words for port {missing[0]!r}", where="words", do="give words for each input port")
    if len(words) > len(ports):
        unknown = sorted(set(words) - {name for name, _ in ports})
        raise RowsError(f"no input port {unknown[0]!r}", where="words", do="remove it")


def _check_words(ports: Ports, columns: Sequence[Column]) -> None:
    bad: list[tuple[int, int]] = []
    for port, ((_, word), column) in enumerate(zip(ports, columns, strict=True)):
        if word != PATTERN:
            outside = np.flatnonzero((column < word.low) | (column > word.high))
            bad += [(int(vector), port) for vector in outside[:1]]
    if bad:
        vector, port = min(bad)
        raise _outside(*ports[port], int(columns[port][vector]), f"vector {vector}")


def _outside(name: str, word: WordType, value: int, where: str) -> RowsError:
    return RowsError(
        f"port {name!r} holds {value}, outside {word.low} to {word.high}",
        where=where,
        do="give words within the range of the port",
    )


def _pattern(value: int) -> int:
    """Returns the int64 with the same 64 bits as a value of up to 64 bits."""
    return value - (1 << 64) if value >> 63 > 0 else value


def _value(word: WordType, pattern: int) -> int:
    return pattern % (1 << 64) if word == PATTERN else pattern


def _memory_of(columns: Sequence[Column]) -> tuple[Column, Column]:
    addresses = np.array([column.ctypes.data for column in columns], np.int64)
    return addresses, np.array([column.strides[0] for column in columns], np.int64)


def _scratch(tasks: int, slots: int, width: Width) -> Scratch:
    """Returns the memory of all tasks; in each task's planes, slot 0 holds zeros and slot 1 ones."""
    words = len(width)
    row = -(-slots * words // LINE) * LINE
    memory = np.zeros(tasks * row + LINE, np.uint64)
    start = -(memory.ctypes.data // 8) % LINE
    planes = memory[start : start + tasks * row].reshape(tasks, row)
    planes[:, words : 2 * words] = ~np.uint64(0)
    lanes = (tasks, 64)
    return Scratch(np.zeros(lanes, np.uint64), np.zeros(lanes, np.uint64), np.zeros(lanes, np.int64), planes)
