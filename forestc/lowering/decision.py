"""Builds the class index from sums: by comparing a sum with a threshold, or as the index of the largest sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forestc.forest.evaluate import decide
from forestc.forest.ir import Decision, Part
from forestc.lowering.draft import Draft
from forestc.lowering.sums import Sum, balanced, plus
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import FALSE, Net, WordType


def label_of(draft: Draft, part: Part, sums: Sequence[Sum]) -> Net:
    """Builds the class index of a member model (part), and returns its net. sums: one for each output of the part."""
    lone = lone_label(draft, part)
    return label(draft, part.decision, sums) if lone is None else lone


def lone_label(draft: Draft, part: Part) -> Net | None:
    """Builds the class index of a member model with one tree, as this tree with class indices at its leaves. Returns
    None for any other model."""
    forest, trees = draft.forest, draft.forest.trees_of(part)
    if len(trees) != 1:
        return None
    tree = forest.trees[trees[0]]
    scores = np.tile(forest.bias[part.start : part.stop], (len(tree.values), 1)).astype(np.int64)
    for column, output in enumerate(tree.outputs):
        if part.start <= output < part.stop:
            scores[:, output - part.start] += tree.values[:, column].astype(np.int64)
    most = 1 if part.decision.kind == "threshold" else scores.shape[1] - 1
    return draft.mux_tree(trees[0], decide(part.decision, scores, scores).tolist(), width_for(0, most))


def label(draft: Draft, decision: Decision, sums: Sequence[Sum]) -> Net:
    if decision.kind == "threshold":
        needed = int(decision.threshold) - sums[-1].offset
        return FALSE if needed > sums[-1].high else draft.builder.not_(draft.builder.less(sums[-1].net, needed))
    scores = [score.net for score in raised(draft, sums)]
    return argmax(draft.builder, scores, decision.ties == "last")


def raised(draft: Draft, sums: Sequence[Sum], least: int | None = None) -> list[Sum]:
    """Returns the sums minus `least`, as unsigned words of one type. least: by default, the smallest offset."""
    least = min(total.offset for total in sums) if least is None else least
    scores = [plus(draft, total, total.offset - least) for total in sums]
    word = width_for(0, max(score.high for score in scores))
    return [score._replace(net=draft.builder.extend(score.net, word)) for score in scores]


def argmax(builder: NetlistBuilder, scores: Sequence[Net], last: bool) -> Net:
    """Returns the net that holds the index of the largest score. last: True if the last of equal scores wins; otherwise
    the first wins."""
    return winner(builder, scores, last)[1]


def winner(builder: NetlistBuilder, scores: Sequence[Net], last: bool) -> tuple[Net, Net]:
    """Returns the nets of the largest score and of its index, as `argmax` does."""
    word = width_for(0, len(scores) - 1)

    def better(first: tuple[Net, Net], second: tuple[Net, Net]) -> tuple[Net, Net]:
        wins = builder.compare(first[0], second[0])  # strict: the earlier score wins a tie
        return builder.mux(wins, second[0], first[0]), builder.mux(wins, second[1], first[1])

    entrants = [(score, builder.const(index, word)) for index, score in enumerate(scores)]
    return balanced(entrants[::-1] if last else entrants, better)


def runner_up(draft: Draft, decision: Decision, sums: Sequence[Sum], best: Net) -> tuple[Net, Net]:
    """Returns the nets of the second best class, and of the distance of the two scores, signed. best: the net of the
    class index; a threshold's distance is that of the score from it."""
    builder = draft.builder
    if decision.kind == "threshold":
        needed, net = int(decision.threshold) - sums[-1].offset, sums[-1].net
        most = builder.type_of(net).high
        word = width_for(-most - abs(needed) - 1, most + abs(needed))
        above = builder.add((net, builder.const(-needed, word)), word)
        below = builder.add((builder.not_(net), builder.const(needed - most, word)), word)
        return builder.not_(best), builder.mux(best, above, below)
    scores, last = [score.net for score in raised(draft, sums)], decision.ties == "last"
    bits = builder.type_of(scores[0]).width
    word, top = WordType(bits + 1, False), 1 << bits
    none = builder.const(0, word)  # below every other score, as these get one more bit
    others = [
        builder.mux(builder.in_set(best, {index}), none, builder.add((score, builder.const(top, word)), word))
        for index, score in enumerate(scores)
    ]
    score, second = winner(builder, others, last)
    wide = WordType(bits + 2, True)
    rest = builder.const(1 - top, wide)  # of what inverting adds
    return second, builder.add((winner(builder, scores, last)[0], builder.not_(score), rest), wide)


def largest_of(builder: NetlistBuilder, words: Sequence[Net]) -> Net:
    return balanced(words, lambda a, b: builder.mux(builder.compare(a, b), b, a))
