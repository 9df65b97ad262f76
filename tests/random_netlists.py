"""Makes random netlists of every kind of cell, on words of many widths."""

from __future__ import annotations

from random import Random

from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, Netlist, WordType, reads
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port

CELLS = (
    "less", "set", "not", "and", "or", "mux", "mux", "mux", "add", "add", "compare", "table", "shift", "extend",
    "slice",
)  # fmt: skip


def all_kinds(random: Random, latency: int) -> Netlist:
    """Makes a netlist with every kind of cell on words of many widths, as lowering may come to use them."""
    b = NetlistBuilder("kinds", "0 trees, 0 nodes")
    words = [WordType(1, False), WordType(7, True), WordType(12, False), WordType(33, True), WordType(5, True)]
    pool = [b.input(Port(f"x{k}"), word) for k, word in enumerate(words)]
    valid = b.input(IN_VALID, BIT) if latency else -1
    moving = set(pool)
    for stage in range(latency + 1):
        for _ in range(60):
            net = one_more(b, random, pool)
            if b.type_of(net).width <= 64 and any(a in moving for a in reads(b.cell_of(net))):
                moving.add(net)
                pool.append(net)
        if stage < latency:
            pool, valid = [b.register(net) for net in dict.fromkeys(pool)], b.register(valid)
            moving.update(pool)
    for k, net in enumerate(pool[-30:]):
        b.output(Port(f"y{k}"), net)
    if latency:
        b.output(OUT_VALID, valid)
    return b.build()


def one_more(b: NetlistBuilder, random: Random, pool: list[int]) -> int:
    """Adds a cell on nets of the pool and constants; returns its net."""
    kind = random.choice(CELLS)
    a, other = random.choice(pool), random.choice(pool)
    word = b.type_of(a)
    constant = b.const(random.randint(word.low, word.high), word)
    same = random.choice([constant, *(net for net in pool if b.type_of(net) == word)])
    bits = [net for net in pool if b.type_of(net) == BIT]
    bit, second = random.choice(bits), random.choice(bits)
    pair = random.choice([(a, same), (same, a)])
    if kind == "less":
        return b.less(a, random.randint(word.low, word.high))
    if kind == "set":
        near = random.randint(word.low, word.high)
        return b.in_set(a, [near + random.randint(-5, 5) for _ in range(random.randint(1, 6))])
    if kind == "not":
        return b.not_(random.choice([bit, *(net for net in pool if not b.type_of(net).signed)]))
    if kind in ("and", "or"):
        return (b.and_ if kind == "and" else b.or_)(bit, second)
    if kind == "mux":
        return b.mux(bit, *pair)
    if kind == "compare":
        return b.compare(*pair)
    unsigned = random.choice([net for net in pool if not b.type_of(net).signed])
    if kind == "table":
        narrow = [net for net in pool if b.type_of(net) in (BIT, (2, False))]
        return b.table([(random.choice(narrow), random.randint(1, 5)) for _ in range(3)], 1000)
    if kind == "shift":
        return b.shift(unsigned)
    if kind == "extend":
        return b.extend(unsigned, WordType(b.type_of(unsigned).width + 3, False))
    if kind == "slice":
        width = b.type_of(unsigned).width
        return b.slice(unsigned, random.randrange(width), random.randint(1, width))
    nets = (a, other, same)
    span = width_for(sum(b.type_of(n).low for n in nets), sum(b.type_of(n).high for n in nets))
    return b.add(nets, span)
