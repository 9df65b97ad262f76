"""The compiled loops that simulate a program on blocks of W * 64 vectors. A plane, one bit of each vector, is W words
of 64 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.base import BaseContext
from numba.core.datamodel import DataModelManager
from numba.core.typing import Signature
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

from hw_sim.gates import Op
from hw_sim.schedule import Method, Records, Scratch, Tables, Width

Function = TypeVar("Function", bound=Callable[..., Any])


# numba caches code until this file changes, so constants in the code are defined here.
_SINGLES_AND_PAIRS = ["SOURCE", "AND", "AND_NOT", "NOR", "OR", "OR_NOT", "NAND", "XOR", "NOT"]
_TRIPLES = ["MUX", "MUX_NOT_B", "MUX_NOT_C", "MUX_NOT_BC", "XOR3", "MAJORITY", "MAJORITY_NOT"]
assert [op.name for op in Op] == [*_SINGLES_AND_PAIRS, *_TRIPLES, "MUX4"]
assert [method.name for method in Method] == ["COMPARE", "DECODE", "RANK"]


def compiled(function: Function) -> Function:
    """Returns the function, compiled by numba. It runs without the GIL. The code is cached on disk if possible."""
    try:
        decorate: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)
        return decorate(function)
    except RuntimeError:  # no folder to cache compiled code in
        decorate = numba.njit(nogil=True)
        return decorate(function)


class _Vector(types.Type):  # type: ignore[misc]
    """The numba type of an LLVM vector of integers."""

    def __init__(self, count: int, bits: int = 64) -> None:
        super().__init__(name=f"Vector({count}, {bits})")
        self.llvm = ir.VectorType(ir.IntType(bits), count)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: DataModelManager, vector: _Vector) -> None:
        super().__init__(manager, vector, vector.llvm)


_OCTETS = _Vector(64, 8)

# These types occur in functions that generate LLVM code.
Builder: TypeAlias = ir.IRBuilder
Value: TypeAlias = ir.Value
Generated: TypeAlias = tuple[Signature, Callable[..., Value]]
# These types occur in compiled loops; there, a plane is an LLVM vector.
Number: TypeAlias = np.uint64
Plane: TypeAlias = _Vector
Words: TypeAlias = NDArray[np.uint64]
Codes: TypeAlias = NDArray[np.uint32]
Integers: TypeAlias = NDArray[np.int64]


def _fill(builder: Builder, value: Value, count: int) -> Value:
    vector = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count))


def _at(builder: Builder, address: Value, kind: ir.Type) -> Value:
    return builder.inttoptr(address, ir.PointerType(kind))


@intrinsic  # type: ignore[untyped-decorator]
def read_word(context: BaseContext, address: types.Type) -> Generated:

    def generate(context: BaseContext, builder: Builder, signature: Signature, args: list[Value]) -> Value:
        return builder.load(_at(builder, args[0], ir.IntType(64)), align=8)

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def octets_of(context: BaseContext, address: types.Type, shift: types.Type) -> Generated:
    """Shifts each of the 64 words at an address to the right, and returns their lowest octets."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, args: list[Value]) -> Value:
        words = builder.load(_at(builder, args[0], ir.VectorType(ir.IntType(64), 64)), align=8)
        return builder.trunc(builder.lshr(words, _fill(builder, args[1], 64)), _OCTETS.llvm)

    return _OCTETS(types.uint64, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def meet(context: BaseContext, octets: types.Type, mask: types.Type) -> Generated:
    """Returns a word in which bit k is 1 if octet k and the mask have a bit in common."""

    def generate(context: BaseContext, builder: Builder, signature: Signature, args: list[Value]) -> Value:
        common = builder.and_(args[0], _fill(builder, args[1], 64))
        met = builder.icmp_unsigned("!=", common, ir.Constant(_OCTETS.llvm, [0] * 64))
        return builder.bitcast(met, ir.IntType(64))

    return types.uint64(octets, types.uint8), generate


@intrinsic  # type: ignore[untyped-decorator]
def load(context: BaseContext, address: types.Type, width: types.Type) -> Generated:

    vector = _Vector(width.count)

    def generate(context: BaseContext, builder: Builder, signature: Signature, args: list[Value]) -> Value:
        return builder.load(_at(builder, args[0], vector.llvm), align=8)

    return vector(types.uint64, width), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(context: BaseContext, address: types.Type, vector: types.Type) -> Generated:

    def generate(context: BaseContext, builder: Builder, signature: Signature, args: list[Value]) -> Value:
        builder.store(args[1], _at(builder, args[0], vector.llvm), align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, vector), generate


@intrinsic  # type: ignore[untyped-decorator]
def both(context: BaseContext, a: types.Type, b: types.Type) -> Generated:
    return a(a, a), lambda context, builder, signature, args: builder.and_(*args)


@intrinsic  # type: ignore[untyped-decorator]
def either(context: BaseContext, a: types.Type, b: types.Type) -> Generated:
    return a(a, a), lambda context, builder, signature, args: builder.or_(*args)


@intrinsic  # type: ignore[untyped-decorator]
def differ(context: BaseContext, a: types.Type, b: types.Type) -> Generated:
    return a(a, a), lambda context, builder, signature, args: builder.xor(*args)


@intrinsic  # type: ignore[untyped-decorator]
def inverse(context: BaseContext, a: types.Type) -> Generated:
    return a(a), lambda context, builder, signature, args: builder.not_(*args)


@compiled
def _slot(base: Number, slot: Number | int, width: Width) -> Number:
    return base + np.uint64(slot) * np.uint64(8 * len(width))


@compiled
def _get(base: Number, code: Codes, index: Number, width: Width) -> Plane:
    plane: Plane = load(_slot(base, code[index], width), width)
    return plane


@compiled
def _put(base: Number, code: Codes, index: Number, width: Width, plane: Plane) -> None:
    store(_slot(base, code[index], width), plane)


@compiled
def _choose(select: Plane, a: Plane, b: Plane) -> Plane:
    chosen: Plane = differ(b, both(select, differ(a, b)))
    return chosen


@compiled
def _run_pairs(op: int, code: Codes, at: Number, end: Number, base: Number, width: Width) -> None:
    """Runs gates of one op. The code of each is `to, a, b`; the code of a NOT gate is `to, a`."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    if op == Op.AND:
        while at < end:
            _put(base, code, at, width, both(_get(base, code, at + one, width), _get(base, code, at + two, width)))
            at += three
    elif op == Op.AND_NOT:
        while at < end:
            a, b = inverse(_get(base, code, at + one, width)), _get(base, code, at + two, width)
            _put(base, code, at, width, both(a, b))
            at += three
    elif op == Op.NOR:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, inverse(either(a, b)))
            at += three
    elif op == Op.OR:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, either(a, b))
            at += three
    elif op == Op.OR_NOT:
        while at < end:
            a, b = inverse(_get(base, code, at + one, width)), _get(base, code, at + two, width)
            _put(base, code, at, width, either(a, b))
            at += three
    elif op == Op.NOT:
        while at < end:
            _put(base, code, at, width, inverse(_get(base, code, at + one, width)))
            at += two
    elif op == Op.NAND:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, inverse(both(a, b)))
            at += three
    else:  # XOR
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, differ(a, b))
            at += three


@compiled
def _run_triples(op: int, code: Codes, at: Number, end: Number, base: Number, width: Width) -> None:
    """Runs gates of one op. The code of each is `to, a, b, c`."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    if op == Op.MUX:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, _choose(a, b, _get(base, code, at + three, width)))
            at += four
    elif op == Op.MUX_NOT_B:
        while at < end:
            a, b = _get(base, code, at + one, width), inverse(_get(base, code, at + two, width))
            _put(base, code, at, width, _choose(a, b, _get(base, code, at + three, width)))
            at += four
    elif op == Op.MUX_NOT_C:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, _choose(a, b, inverse(_get(base, code, at + three, width))))
            at += four
    elif op == Op.MUX_NOT_BC:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, inverse(_choose(a, b, _get(base, code, at + three, width))))
            at += four
    elif op == Op.XOR3:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, differ(differ(a, b), _get(base, code, at + three, width)))
            at += four
    elif op == Op.MAJORITY:
        while at < end:
            a, b = _get(base, code, at + one, width), _get(base, code, at + two, width)
            _put(base, code, at, width, _choose(differ(a, b), _get(base, code, at + three, width), a))
            at += four
    else:  # MAJORITY_NOT
        while at < end:
            a, b = inverse(_get(base, code, at + one, width)), _get(base, code, at + two, width)
            _put(base, code, at, width, _choose(differ(a, b), _get(base, code, at + three, width), a))
            at += four


@compiled
def _run_mux4(code: Codes, at: Number, end: Number, base: Number, width: Width) -> None:
    """Runs MUX4 gates. The code of a group is `count, s, t, u`, then `to, a1, a2, b1, b2` for each of its gates."""
    one, two, three, four, five = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(5)
    while at < end:
        stop = at + four + np.uint64(code[at]) * five
        s, t = _get(base, code, at + one, width), _get(base, code, at + two, width)
        u = _get(base, code, at + three, width)
        at += four
        while at < stop:
            a = _choose(t, _get(base, code, at + one, width), _get(base, code, at + two, width))
            b = _choose(u, _get(base, code, at + three, width), _get(base, code, at + four, width))
            _put(base, code, at, width, _choose(s, a, b))
            at += five


@compiled
def _run_gates(runs: Records, code: Codes, base: Number, width: Width) -> None:
    at = np.uint64(0)
    for run in range(len(runs)):
        op, end = runs[run].op, np.uint64(runs[run].end)
        if op == Op.MUX4:
            _run_mux4(code, at, end, base, width)
        elif op <= Op.NOT:
            _run_pairs(op, code, at, end, base, width)
        else:
            _run_triples(op, code, at, end, base, width)
        at = end


@compiled
def _fetch(address: Number, stride: Number, lanes: int, low: Number, span: Number, column: Words) -> int:
    """Writes a port's words minus `low` to `column`. Returns the first lane with a word out of range, or -1."""
    outside = False
    for lane in range(lanes):
        word = read_word(address) - low
        column[lane] = word
        outside |= word > span
        address += stride
    if outside:
        for lane in range(lanes):
            if column[lane] > span:
                return lane
    return -1


@compiled
def _unpack(column: Words, bits: int, planes: Words, at: Number, width: Width) -> None:
    """Writes each of the low `bits` bits of 64 words to a plane."""
    address = np.uint64(column.ctypes.data)
    for done in range(0, bits, 8):
        octets = octets_of(address, np.uint64(done))
        for bit in range(min(8, bits - done)):
            planes[at] = meet(octets, np.uint8(1 << bit))
            at += np.uint64(len(width))


@compiled
def _rank(port: np.record, limits: Words, buckets: Codes, column: Words, ranks: Words) -> None:
    """Writes the ranks of 64 words to `ranks`. A rank is the number of thresholds at or below the word."""
    begin, first = np.uint64(port.limit_from), limits[port.limit_from]
    table, last_bucket = np.uint64(port.bucket_from), np.uint64(port.last_bucket)
    shift, one = np.uint64(port.bucket_shift), np.uint64(1)
    for lane in range(64):
        bucket = min((max(column[lane], first) - first) >> shift, last_bucket)
        ranks[lane] = begin + np.uint64(buckets[table + bucket])
    # All lanes search in step, so that no lane waits for another.
    left = port.window
    while left > 1:
        half = np.uint64(left >> 1)
        for lane in range(64):
            probe = limits[ranks[lane] + half - one]
            ranks[lane] += half if probe <= column[lane] else np.uint64(0)
        left -= left >> 1
    for lane in range(64):
        ranks[lane] += np.uint64(limits[ranks[lane]] <= column[lane]) - begin


@compiled
def _unpack_port(
    port: np.record, limits: Words, buckets: Codes, column: Words, ranks: Words, planes: Words, word: int, width: Width
) -> None:
    """Writes the planes that come directly from the port's words, for 64 vectors."""
    if port.value_bits:
        at = np.uint64(port.value_slot * len(width) + word)
        _unpack(column, port.value_bits, planes, at, width)
    if port.method == Method.RANK:
        _rank(port, limits, buckets, column, ranks)
        at = np.uint64(port.rank_slot * len(width) + word)
        _unpack(ranks, port.rank_bits, planes, at, width)
    elif port.method == Method.COMPARE:
        at = np.uint64(port.limit_slot * len(width) + word)
        for k in range(port.limit_from, port.limit_to):
            bits, limit = np.uint64(0), limits[k]
            for lane in range(64):
                bits |= np.uint64(column[lane] < limit) << np.uint64(lane)
            planes[at] = bits
            at += np.uint64(len(width))


@compiled
def _decode(base: Number, from_slot: int, bits: int, to_slot: int, width: Width) -> None:
    """Decodes a number of `bits` planes into 2**bits planes; plane v is 1 where the number equals v."""
    store(_slot(base, to_slot, width), load(_slot(base, 1, width), width))
    for bit in range(bits):
        plane = load(_slot(base, from_slot + bit, width), width)
        for v in range(1 << bit):
            held = load(_slot(base, to_slot + v, width), width)
            store(_slot(base, to_slot + v + (1 << bit), width), both(held, plane))
            store(_slot(base, to_slot + v, width), both(held, inverse(plane)))


@compiled
def _decode_limits(port: np.record, limits: Words, scratch: int, base: Number, width: Width) -> None:
    """Writes a plane `word < threshold` for each threshold of a port, computed from the word's value or rank."""
    by_rank = port.method == Method.RANK
    bits = port.rank_bits if by_rank else port.value_bits
    slot = port.rank_slot if by_rank else port.value_slot
    low_bits = port.low_bits
    low_slot, high_slot = scratch, scratch + (1 << low_bits)
    _decode(base, slot, low_bits, low_slot, width)
    _decode(base, slot + low_bits, bits - low_bits, high_slot, width)
    below = load(_slot(base, 0, width), width)
    for v in range(1 << low_bits):
        equal = load(_slot(base, low_slot + v, width), width)
        store(_slot(base, low_slot + v, width), below)
        below = either(below, equal)
    below = load(_slot(base, 0, width), width)
    k, to = port.limit_from, port.limit_slot
    for high in range(1 << (bits - low_bits)):
        equal = load(_slot(base, high_slot + high, width), width)
        while k < port.limit_to:
            limit = np.uint64(k - port.limit_from + 1) if by_rank else limits[k]
            low = limit - (np.uint64(high) << np.uint64(low_bits))
            if low >> np.uint64(low_bits):
                break
            under = load(_slot(base, np.uint64(low_slot) + low, width), width)
            store(_slot(base, to, width), _choose(equal, under, below))
            k += 1
            to += 1
        below = either(below, equal)


@compiled
def _read_ports(
    tables: Tables,
    addresses: Integers,
    strides: Integers,
    first: int,
    lanes: int,
    scratch: Scratch,
    width: Width,
) -> tuple[int, int]:
    """Writes the planes of all ports from their words. Returns (vector, port) of the first word out of range, or (-1,
    -1)."""
    ports, limits, buckets = tables.ports, tables.limits, tables.buckets
    column, ranks, _, planes = scratch
    for word in range((lanes + 63) // 64):  # lanes past the end compute on old words
        start = first + word * 64
        there = min(64, lanes - word * 64)
        bad_lane, bad_port = there, -1
        for p in range(len(ports)):
            port = ports[p]
            address = np.uint64(addresses[p] + start * strides[p])
            lane = _fetch(address, np.uint64(strides[p]), there, np.uint64(port.low), port.span, column)
            if 0 <= lane < bad_lane:
                bad_lane, bad_port = lane, p
            _unpack_port(port, limits, buckets, column, ranks, planes, word, width)
        if bad_port >= 0:
            return start + bad_lane, bad_port
    return -1, -1


@compiled
def _hand_out(
    results: Records,
    bits: Records,
    planes: Words,
    first: int,
    lanes: int,
    values: Integers,
    out: Integers,
    width: Width,
) -> None:
    """Joins the planes of each result to words, and writes these to `out`."""
    for r in range(len(results)):
        for word in range((lanes + 63) // 64):
            for lane in range(64):
                values[lane] = results[r].ones
            for k in range(results[r].bit_from, results[r].bit_to):
                mask = bits[k].mask
                plane = np.int64(planes[bits[k].slot * len(width) + word]) ^ bits[k].flip
                for lane in range(64):
                    values[lane] |= -(plane >> lane & 1) & mask
            for lane in range(min(64, lanes - word * 64)):
                out[first + word * 64 + lane, r] = values[lane]


@compiled
def run_vectors(
    tables: Tables,
    addresses: Integers,
    strides: Integers,
    scratch: Scratch,
    begin: int,
    end: int,
    out: Integers,
    width: Width,
) -> tuple[int, int]:
    """Runs vectors begin .. end - 1 and fills their rows of `out`.

    Returns (vector, port) for a word out of range, (vector, number of ports) if a sum overflows, otherwise (-1, -1).
    """
    ports, limits = tables.ports, tables.limits
    runs, code, overflow = tables.runs, tables.code, tables.overflow
    results, bits = tables.results, tables.bits
    _, _, values, planes = scratch
    base = np.uint64(planes.ctypes.data)
    for first in range(begin, end, 64 * len(width)):
        lanes = min(64 * len(width), end - first)
        vector, bad_port = _read_ports(tables, addresses, strides, first, lanes, scratch, width)
        if bad_port >= 0:
            return vector, bad_port
        for p in range(len(ports)):
            if ports[p].method != Method.COMPARE and ports[p].limit_from < ports[p].limit_to:
                _decode_limits(ports[p], limits, tables.scratch, base, width)
        _run_gates(runs, code, base, width)
        for k in range(len(overflow)):
            for lane in range(lanes):
                plane = np.int64(planes[overflow[k].slot * len(width) + lane // 64]) ^ overflow[k].flip
                if plane >> (lane % 64) & 1:
                    return first + lane, len(ports)
        _hand_out(results, bits, planes, first, lanes, values, out, width)
    return -1, -1


@compiled
def latch(latches: Records, planes: Words) -> None:
    """Applies a clock edge: every register takes its next value. W must be 1."""
    for k in range(len(latches)):
        planes[latches[k].state] = planes[latches[k].slot] ^ np.uint64(latches[k].flip)
