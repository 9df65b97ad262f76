"""Builds sums whose every addition saturates or wraps. Additions that can't overflow are plain ones."""

from __future__ import annotations

from forestc.forest.numbers import word_range
from forestc.forest.typed_sums import added, integer_type
from forestc.lowering.draft import Draft
from forestc.lowering.sums import Leaves, Sum, leaves_of, plus, words_of
from forestc.lowering.sums import added as plain_sum
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import FALSE, WordType


def typed_sum(draft: Draft, output: int) -> Sum:
    """Builds an output's typed sum. Sums that wrap do so once, at the end."""
    number, order = integer_type(draft.forest.aggregate), draft.forest.aggregate.order
    trees, offset = leaves_of(draft, output)
    words, span = words_of(draft, output, trees), word_range(number, False)
    if number.overflow == "AP_WRAP":
        return _wrapped(draft, plain_sum(draft, words)._replace(offset=offset), span.low, number.bits)
    terms = [
        Sum(net, 0, largest, _smallest(draft, output, tree)) for tree, (net, largest) in zip(trees, words, strict=True)
    ]
    start, plain = Sum(FALSE, 0, 0, int(draft.forest.bias[output])), 0
    if order == "sequential":  # first the trees whose sums can't overflow
        low = high = start.offset
        for term in terms:
            low, high = low + term.offset, high + term.offset + term.high
            if not span.low <= low <= high <= span.high:
                break
            plain += 1
        start = plain_sum(draft, words[:plain])._replace(
            offset=start.offset + sum(term.offset for term in terms[:plain])
        )
    return added(start, terms[plain:], order, lambda a, b: _saturated(draft.builder, a, b, span.low, span.high))


def _smallest(draft: Draft, output: int, tree: Leaves) -> int:
    source = draft.forest.trees[tree[0]]
    return int(source.values[0, source.outputs.index(output)]) - tree[1][0]


def _saturated(builder: NetlistBuilder, a: Sum, b: Sum, least: int, most: int) -> Sum:
    """Builds a + b, saturated to least..most."""
    low, high, offset = a.low + b.low, a.high + b.high, a.offset + b.offset
    floor, ceiling = least - offset, most - offset  # the ends of the type, as values of the net
    if high <= floor or low >= ceiling:  # no sum is between the ends
        return Sum(FALSE, 0, 0, least if high <= floor else most)
    nets = [term.net for term in (a, b) if term.high]
    width = max(width_for(0, high).width, *(builder.type_of(net).width for net in nets))
    net = builder.add(nets, WordType(width, False)) if len(nets) > 1 else nets[0]
    word = builder.type_of(net)
    if low < floor:
        net = builder.mux(builder.less(net, floor), builder.const(floor, word), net)
    if high > ceiling:
        net = builder.mux(builder.less(net, ceiling + 1), net, builder.const(ceiling, word))
    return Sum(net, max(low, floor), min(high, ceiling), offset)


def _wrapped(draft: Draft, total: Sum, least: int, bits: int) -> Sum:
    """Builds the number from `least` on that differs from the sum by a multiple of 2^bits."""
    builder, turn = draft.builder, 1 << bits
    result = plus(draft, total, (total.offset - least) % turn)
    net, high = result.net, result.high
    for position in reversed(range((high // turn).bit_length())):
        step, kind = turn << position, builder.type_of(net)
        wide = WordType(kind.width + (not kind.signed), True)
        less = builder.mux(builder.less(net, step), builder.const(0, wide), builder.const(-step, wide))
        net, high = builder.add([net, less], wide), step - 1
    return Sum(net, 0, high, least)
