"""Builds each class's share: a step function of its score, divided by the sum of all classes' step functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from forestc.forest.ir import Part
from forestc.lowering.decision import largest_of, raised
from forestc.lowering.draft import Draft
from forestc.lowering.sums import Sum, Word, added
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import Net, WordType


def multiples(builder: NetlistBuilder, net: Net, largest: int, weight: int) -> list[Word]:
    """Returns words with the sum weight * net: one shifted copy of the net for each 1 in the bits of `weight`."""
    words = []
    while weight:
        if weight & 1:
            words.append((net, largest))
        weight, largest = weight >> 1, 2 * largest
        if weight:
            net = builder.shift(net)
    return words


def step_function(builder: NetlistBuilder, score: Sum, curve: Sequence[int], times: int, more: int = 0) -> Word:
    """Builds times * level + more, where the level is the number of cuts in `curve` at or below the score."""
    cuts = [cut - score.offset for cut in curve]
    inside = [(cut, level) for level, cut in enumerate(cuts, 1) if score.low < cut <= score.high]
    levels = [bisect_right(cuts, score.low), *(level for _, level in inside)]
    values = [times * level + more for level in levels]
    net = _stepped(builder, score.net, [cut for cut, _ in inside], values, width_for(0, max(values)))
    return net, max(values)


def _stepped(builder: NetlistBuilder, net: Net, cuts: Sequence[int], values: Sequence[int], word: WordType) -> Net:
    """Builds values[k], where k is the number of ascending cuts at or below the word."""
    if not cuts or len(set(values)) == 1:
        return builder.const(values[-1], word)
    middle = len(cuts) // 2
    below = _stepped(builder, net, cuts[:middle], values[: middle + 1], word)
    above = _stepped(builder, net, cuts[middle + 1 :], values[middle + 1 :], word)
    return builder.mux(builder.less(net, cuts[middle]), below, above)


def shares(draft: Draft, part_index: int, part: Part, scores: Sequence[Sum]) -> list[Net]:
    """Builds each class's share in units of 1 / steps, rounded: its level (a step function of its score), divided by
    the sum of all levels."""
    builder, steps = draft.builder, draft.forest.steps
    bits = steps.bit_length()
    if part.link.kind == "softmax":
        scores = _below_largest(draft, part_index, scores)

    def levels(times: int, name: str) -> list[Word]:
        words = [step_function(builder, score, part.curve_of(k), times) for k, score in enumerate(scores)]
        draft.steps |= {(name, part_index, k, 0): draft.operand_of(net) for k, (net, _) in enumerate(words)}
        return words

    total = added(draft, levels(1, "level"))
    doubles = [total.net]
    for _ in range(bits):
        doubles.append(builder.shift(doubles[-1]))
    draft.steps |= {("double", part_index, 0, bit): draft.operand_of(net) for bit, net in enumerate(doubles)}
    # 2 * steps is a power of 2 minus a small number, and a multiple by a power of 2 is a shift, which costs nothing.
    dividends, taken = levels(2 << bits, "dividend"), levels((2 << bits) - 2 * steps, "taken")
    results = []
    for k, (word, (start, _)) in enumerate(zip(dividends, taken, strict=True)):
        dividend = added(draft, [word, (total.net, total.high)])
        draft.steps["sum", part_index, k, 0] = draft.operand_of(dividend.net)
        share = _quotient(draft, (part_index, k), dividend, start, doubles, total.high)
        if part.link.kind == "shares":  # the largest level of a softmax is never 0
            alike = builder.const(steps // part.width, builder.type_of(share))
            share = builder.mux(builder.less(total.net, 1), alike, share)
        results.append(share)
    return results


def _below_largest(draft: Draft, part_index: int, scores: Sequence[Sum]) -> list[Sum]:
    builder, nets = draft.builder, [score.net for score in raised(draft, scores)]
    word, largest = builder.type_of(nets[0]), largest_of(builder, nets)
    draft.steps["largest", part_index, 0, 0] = draft.operand_of(largest)
    draft.steps |= {("raised", part_index, k, 0): draft.operand_of(net) for k, net in enumerate(nets)}
    least = builder.not_(largest)
    below = [builder.add((score, least), word) for score in nets]
    draft.steps |= {("below", part_index, k, 0): draft.operand_of(net) for k, net in enumerate(below)}
    return [Sum(net, 0, word.high, -word.high) for net in below]


def _quotient(draft: Draft, key: tuple[int, int], dividend: Sum, start: Net, doubles: Sequence[Net], most: int) -> Net:
    """Builds (dividend - start) // (2 * total). doubles: the nets of total, 2 * total, 4 * total, ..."""
    builder, bits = draft.builder, len(doubles) - 1
    narrow = width_for(0, dividend.high)
    word = width_for(0, narrow.high + (most << bits))
    # The remainder is stored inverted: adding a double overflows exactly if the double exceeds the remainder.
    rest = builder.add((builder.not_(builder.extend(dividend.net, narrow)), start), narrow)
    draft.steps["rest", *key, bits] = draft.operand_of(rest)
    rest = builder.extend(rest, word)
    quotient = []
    for bit in reversed(range(bits)):
        less = builder.add((rest, doubles[bit + 1]), word)
        fits = builder.less(less, narrow.high + 1)
        rest = builder.mux(fits, less, rest)
        bit_word = width_for(0, 1 << bit)
        quotient.append(builder.mux(fits, builder.const(1 << bit, bit_word), builder.const(0, bit_word)))
        draft.steps["fits", *key, bit] = draft.operand_of(fits)
        draft.steps["rest", *key, bit] = draft.operand_of(rest)
    return builder.add(quotient, width_for(0, (1 << bits) - 1)) if bits > 1 else quotient[0]
