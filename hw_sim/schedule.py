"""Orders a program's gates, and assigns memory (slots) to planes. A plane is one bit of every vector in a block."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.netlist.ir import WordType
from hw_sim.gates import ONE, ZERO, Gates, Literal, Op, Plane
from hw_sim.program import InputPlanes, Program, Word

WINDOW = 500  # gates ordered together, so that their planes stay in the cache
NARROW = 12  # bits of a word up to which its thresholds are decoded
FEW = 8  # thresholds of a wider word to compare one by one; more are ranked

Unit = list[Plane]  # gates that run together: one gate, or the MUX4 gates of a word


class Method(IntEnum):
    """The way in which a port's planes `word < threshold` are computed."""

    COMPARE = 0  # lane by lane
    DECODE = 1  # from the planes of the word
    RANK = 2  # from the word's rank: the number of thresholds not above it


PORT = np.dtype(
    [
        ("low", np.int64),  # the least value of a word, which is subtracted from all words
        ("span", np.uint64),  # the greatest value minus `low`
        ("method", np.int64),
        ("value_bits", np.int64),  # number of planes of the word minus `low`
        ("value_slot", np.int64),  # first of their slots
        ("rank_bits", np.int64),  # number of planes of the word's rank
        ("rank_slot", np.int64),  # first of their slots
        ("low_bits", np.int64),  # low bits of the word or rank, decoded apart from the high ones
        ("limit_slot", np.int64),  # first slot of the planes `word < threshold`
        ("limit_from", np.int64),  # index in `limits` of the port's first threshold
        ("limit_to", np.int64),  # index after its last threshold
        ("window", np.int64),  # the most thresholds in a bucket
        ("bucket_from", np.int64),  # index in `buckets` of the first bucket
        ("last_bucket", np.int64),  # takes all words above
        ("bucket_shift", np.int64),  # a bucket has 1 << bucket_shift values
    ]
)
RESULT = np.dtype(
    [
        ("ones", np.int64),  # bits that are 1 in every lane
        ("bit_from", np.int64),  # index in `bits` of the result's first bit
        ("bit_to", np.int64),  # index after its last bit
    ]
)
BIT = np.dtype(
    [
        ("slot", np.int64),
        ("flip", np.int64),  # -1 inverts the plane in `slot`, 0 does not
        ("mask", np.int64),  # bits of the result that the plane sets
    ]
)
RUN = np.dtype([("op", np.int64), ("end", np.int64)])
LATCH = np.dtype([("slot", np.int64), ("flip", np.int64), ("state", np.int64)])

Records: TypeAlias = NDArray[np.void]
Width: TypeAlias = tuple[int, ...]  # W zeros: the type holds the length


class Tables(NamedTuple):
    """The tables from which the simulation kernel runs a program."""

    ports: Records  # records of type PORT
    limits: NDArray[np.uint64]  # sorted thresholds of each port, minus its least value
    buckets: NDArray[np.uint32]  # where the search for a word's rank begins
    runs: Records  # RUN records: an op, and the end of its gates in `code`
    code: NDArray[np.uint32]
    results: Records  # records of type RESULT
    bits: Records  # records of type BIT
    latches: Records  # records of type LATCH
    overflow: Records  # BIT records: the bit is 1 if a sum overflows
    scratch: int  # first slot for decoding thresholds
    slots: int  # number of all slots


class Scratch(NamedTuple):
    """The memory of a thread: the planes of a block, and buffers for 64 lanes."""

    column: NDArray[np.uint64]
    ranks: NDArray[np.uint64]
    values: NDArray[np.int64]
    planes: NDArray[np.uint64]


def schedule(program: Program) -> Tables:
    slot_of: dict[Plane, int] = {0: 0, 1: 1}
    ports = _lay_out_ports(program.ports, slot_of)
    slots = ports.slots
    for state, _ in program.registers:
        slot_of[state >> 1] = slots
        slots += 1
    retained = _retained_planes(program)
    units = _units(program.gates, _live(program.gates, retained))
    runs, code, slots = _emit(program.gates, _order(program.gates, units), slot_of, slots, retained)

    def slot_and_flip(literal: Literal) -> tuple[int, int]:
        return slot_of[literal >> 1], -(literal & 1)

    results, bits = _lay_out_results(program.results, slot_of)
    return Tables(
        ports=ports.records,
        limits=ports.limits,
        buckets=ports.buckets,
        runs=np.array(runs, RUN),
        code=np.array(code, np.uint32),
        results=results,
        bits=bits,
        latches=np.array([(*slot_and_flip(after), slot_of[state >> 1]) for state, after in program.registers], LATCH),
        overflow=np.array([(*slot_and_flip(program.overflow), 1)] if program.overflow != ZERO else [], BIT),
        scratch=slots,
        slots=slots + ports.scratch,
    )


class _Ports(NamedTuple):
    records: Records  # records of type PORT
    limits: NDArray[np.uint64]
    buckets: NDArray[np.uint32]
    slots: int  # the first slot after the ports' planes
    scratch: int  # slots needed to decode thresholds


def _lay_out_ports(ports: Sequence[InputPlanes], slot_of: dict[Plane, int]) -> _Ports:
    slots, scratch = len(slot_of), 0
    limits: list[int] = []
    buckets: list[int] = []
    records = np.zeros(len(ports), PORT)
    for record, port in zip(records, ports, strict=True):
        low, count = port.word.low, len(port.less)
        narrow = port.word.width <= NARROW
        method = Method.DECODE if narrow else Method.RANK if count > FEW else Method.COMPARE
        value_bits = port.word.width if port.bits or (narrow and count) else 0
        rank_bits = count.bit_length() if method == Method.RANK else 0
        decoded = rank_bits or value_bits
        low_bits = min(decoded, (decoded + 3) // 2)  # the kernel loops over the high bits, so there are fewer of them
        if count and method != Method.COMPARE:
            scratch = max(scratch, (1 << low_bits) + (1 << (decoded - low_bits)))
        record["low"], record["span"], record["method"] = low, port.word.high - low, method
        record["value_bits"], record["rank_bits"], record["low_bits"] = value_bits, rank_bits, low_bits
        record["value_slot"], record["rank_slot"] = slots, slots + value_bits
        record["limit_slot"] = slots + value_bits + rank_bits
        for k, literal in port.bits.items():
            slot_of[literal >> 1] = slots + k
        slots += value_bits + rank_bits
        thresholds = sorted(port.less)
        for threshold in thresholds:
            slot_of[port.less[threshold] >> 1] = slots
            slots += 1
        record["limit_from"], record["limit_to"] = len(limits), len(limits) + count
        limits += [threshold - low for threshold in thresholds]
        if method == Method.RANK:
            shift, window, starts = _bucket(thresholds)
            record["bucket_shift"], record["window"] = shift, window
            record["bucket_from"], record["last_bucket"] = len(buckets), len(starts) - 1
            buckets += starts
    return _Ports(records, np.array(limits, np.uint64), np.array(buckets, np.uint32), slots, scratch)


def _bucket(thresholds: Sequence[int]) -> tuple[int, int, list[int]]:
    """Puts thresholds into buckets of equal width. Returns log2 of the width, the size of the largest bucket, and a
    list of the ranks where each bucket's search starts."""
    count, first = len(thresholds), thresholds[0]
    shift = max(0, (thresholds[-1] - first).bit_length() - count.bit_length() - 2)
    sizes = [0] * ((thresholds[-1] - first >> shift) + 1)
    for threshold in thresholds:
        sizes[threshold - first >> shift] += 1
    window = max(sizes)
    starts = accumulate(sizes[:-1], initial=0)
    return shift, window, [min(start, count - window) for start in starts]


def _lay_out_results(results: Sequence[tuple[Word, WordType]], slot_of: dict[Plane, int]) -> tuple[Records, Records]:
    records: list[tuple[int, int, int]] = []
    bits: list[tuple[int, int, int]] = []
    for word, kind in results:
        ones, begin = 0, len(bits)
        for k, literal in enumerate(word):
            mask = 1 << k
            if k == 63 or (kind.signed and k == kind.width - 1):
                mask = -mask  # sign extension: this bit and all above it
            if literal <= ONE:
                ones |= mask * literal
            else:
                bits.append((slot_of[literal >> 1], -(literal & 1), mask))
        records.append((ones, begin, len(bits)))
    return np.array(records, RESULT), np.array(bits, BIT)


def _retained_planes(program: Program) -> list[Plane]:
    literals = [literal for word, _ in program.results for literal in word]
    literals += [after for _, after in program.registers]
    return [literal >> 1 for literal in (*literals, program.overflow)]


def _live(gates: Gates, retained: Iterable[Plane]) -> bytearray:
    live = bytearray(len(gates.ops))
    for plane in retained:
        live[plane] = 1
    for plane in range(len(gates.ops) - 1, -1, -1):
        if live[plane]:
            for read in gates.operands[plane]:
                live[read] = 1
    return live


def _units(gates: Gates, live: bytearray) -> list[Unit]:
    """Returns the live gates in lists (units) of gates that run together; a unit reads only earlier units."""
    units: dict[tuple[int, ...], Unit] = {}
    for plane, op in enumerate(gates.ops):
        if live[plane] and op != Op.SOURCE:
            shared = op == Op.MUX4
            key = (gates.owners[plane], *gates.operands[plane][:3]) if shared else (plane,)
            units.setdefault(key, []).append(plane)
    return sorted(units.values(), key=lambda unit: unit[-1])


def _order(gates: Gates, units: Sequence[Unit]) -> list[Plane]:
    order: list[Plane] = []
    window: list[Unit] = []
    size = 0
    for unit in units:
        window.append(unit)
        size += len(unit)
        if size >= WINDOW:
            order += _order_window(gates, window)
            window, size = [], 0
    return order + _order_window(gates, window)


def _order_window(gates: Gates, units: Sequence[Unit]) -> list[Plane]:
    """Returns the planes in execution order, with many gates of one op in a row."""
    number = {plane: k for k, unit in enumerate(units) for plane in unit}
    waiting: list[int] = []
    readers: list[list[int]] = [[] for _ in units]
    ready: list[list[int]] = [[] for _ in Op]
    ops = [gates.ops[unit[0]] for unit in units]
    for k, unit in enumerate(units):
        needs = {number[read] for plane in unit for read in gates.operands[plane] if read in number}
        waiting.append(len(needs))
        for need in needs:
            readers[need].append(k)
        if not needs:
            ready[ops[k]].append(k)
    order: list[Plane] = []
    while any(ready):
        op = max(Op, key=lambda op: len(ready[op]))
        heap = ready[op]
        heapq.heapify(heap)
        while heap:
            done = heapq.heappop(heap)
            order += units[done]
            for reader in readers[done]:
                waiting[reader] -= 1
                if not waiting[reader] and ops[reader] == op:
                    heapq.heappush(heap, reader)
                elif not waiting[reader]:
                    ready[ops[reader]].append(reader)
    return order


def _emit(
    gates: Gates, order: Sequence[Plane], slot_of: dict[Plane, int], slots: int, retained: Iterable[Plane]
) -> tuple[list[tuple[int, int]], list[int], int]:
    """Returns three results: runs of gates of one op, the code of all gates, and the number of slots."""
    last = {read: time for time, plane in enumerate(order) for read in gates.operands[plane]}
    for plane in (*retained, *slot_of):
        last[plane] = len(order)
    free: list[int] = []
    code: list[int] = []
    runs: list[tuple[int, int]] = []
    selects: tuple[Plane, ...] = ()
    header = 0
    for time, plane in enumerate(order):
        op, operands = gates.ops[plane], gates.operands[plane]
        reads = [slot_of[read] for read in operands]
        free += {slot_of[read] for read in operands if last[read] == time}
        if free:
            slot = free.pop()
        else:
            slot, slots = slots, slots + 1
        slot_of[plane] = slot
        if runs and runs[-1][0] == op:
            runs.pop()
        else:
            selects = ()
        if op == Op.MUX4:
            if operands[:3] != selects:
                selects, header = operands[:3], len(code)
                code += [0, *reads[:3]]
            code[header] += 1
            reads = reads[3:]
        code += [slot, *reads]
        runs.append((op, len(code)))
    return runs, code, slots
