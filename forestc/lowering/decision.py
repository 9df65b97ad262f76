"""Builds the class index from sums: by comparing a sum with a threshold, or as the index of the largest sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forestc.forest.evaluate import decide
from forestc.forest.ir import Decision, Part
from forestc.lowering.draft import Draft
from forestc.lowering.sums import Sum, balanced, plus
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import FALSE, Net


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
    word = width_for(0, len(scores) - 1)

    def better(first: tuple[Net, Net], second: tuple[Net, Net]) -> tuple[Net, Net]:
        wins = builder.compare(first[0], second[0])  # strict: the earlier score wins a tie
        return builder.mux(wins, second[0], first[0]), builder.mux(wins, second[1], first[1])

    entrants = [(score, builder.const(index, word)) for index, score in enumerate(scores)]
    return balanced(entrants[::-1] if last else entrants, better)[1]


def largest_of(builder: NetlistBuilder, words: Sequence[Net]) -> Net:
    return balanced(words, lambda a, b: builder.mux(builder.compare(a, b), b, a))
