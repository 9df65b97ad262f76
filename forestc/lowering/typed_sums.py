"""Builds sums whose every addition saturates or wraps. Additions that can't overflow are plain ones."""

from __future__ import annotations

from forestc.forest.ir import Aggregate
from forestc.forest.numbers import Fixed, word_range
from forestc.forest.typed_sums import added, integer_type
from forestc.lowering.draft import Draft
from forestc.lowering.shares import multiples
from forestc.lowering.sums import Leaves, Sum, leaves_of, plus, words_of
from forestc.lowering.sums import added as plain_sum
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import FALSE, WordType


def typed_sum(draft: Draft, output: int) -> Sum:
    """Builds an output's typed sum."""
    aggregate = draft.forest.aggregate
    number = integer_type(aggregate)
    total = _total(draft, output, number)
    if aggregate.norm == 1:
        return total
    total, span = _product(draft, total, aggregate), word_range(number, False)
    if number.overflow == "AP_WRAP":
        return _wrapped(draft, total, span.low, number.bits)
    return _saturated(draft.builder, total, Sum(FALSE, 0, 0), span.low, span.high)


def _total(draft: Draft, output: int, number: Fixed) -> Sum:
    """Builds the sum before the norm. Sums that wrap do so once, at the end."""
    order = draft.forest.aggregate.order
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
    width = max(width_for(0, high).width, *(builder.type_of(net).width for net in nets), 1)
    net = builder.add(nets, WordType(width, False)) if len(nets) > 1 else [*nets, FALSE][0]
    word = builder.type_of(net)
    if low < floor:
        net = builder.mux(builder.less(net, floor), builder.const(floor, word), net)
    if high > ceiling:
        net = builder.mux(builder.less(net, ceiling + 1), net, builder.const(ceiling, word))
    high = min(high, ceiling)
    return Sum(builder.slice(net, 0, width_for(0, high).width), max(low, floor), high, offset)


def _product(draft: Draft, total: Sum, aggregate: Aggregate) -> Sum:
    """Builds the sum times the norm, rounded to a whole number."""
    builder, rounding = draft.builder, integer_type(aggregate).rounding
    factor, divisor = aggregate.norm.as_integer_ratio()
    places, half = divisor.bit_length() - 1, divisor // 2
    product = plain_sum(draft, multiples(builder, total.net, total.high, factor))
    even, rest = divmod(total.offset * factor, 2 * divisor)  # an even offset does not change which halves round up
    raised = plus(draft, product, rest + (half if rounding == "AP_RND" else 0))
    net, high = builder.slice(raised.net, places, raised.high.bit_length()), raised.high >> places
    if rounding == "AP_RND_CONV" and half:
        odd, above = builder.slice(net, 0, 1), builder.less(builder.slice(raised.net, 0, places - 1), 1)
        up = builder.and_(builder.slice(raised.net, places - 1, 1), builder.or_(odd, builder.not_(above)))
        net, high = builder.add([net, up], width_for(0, high + 1)), high + 1
    return Sum(net, 0, high, 2 * even)


def _wrapped(draft: Draft, total: Sum, least: int, bits: int) -> Sum:
    """Builds the number from `least` on that differs from the sum by a multiple of 2^bits."""
    result = plus(draft, total, (total.offset - least) % (1 << bits))
    return Sum(draft.builder.slice(result.net, 0, bits), 0, min(result.high, (1 << bits) - 1), least)
