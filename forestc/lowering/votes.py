"""Combines the scores of a forest's member models (parts) by votes, a weighted average, or the weighted median."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from forestc.lowering.decision import label_of, raised
from forestc.lowering.draft import Draft
from forestc.lowering.shares import multiples, shares, step_function
from forestc.lowering.sums import Sum, Word, added, plus
from forestc.netlist.builder import width_for
from forestc.netlist.ir import FALSE, Net


def votes(draft: Draft, sums: Sequence[Sum]) -> list[Sum]:
    """Builds for each class the total weight of the member models (parts) that decide for it."""
    builder, forest = draft.builder, draft.forest
    ballots: list[list[Word]] = [[] for _ in forest.classes]
    for part_index, (part, weight) in enumerate(zip(forest.parts, draft.forest.integer_weights, strict=True)):
        label = label_of(draft, part, sums[part.start : part.stop])
        draft.labels.append(draft.operand_of(label))
        word = width_for(0, weight)
        for index, ballot in enumerate(ballots):
            if part.decision.kind == "threshold":
                chosen = label if index else builder.not_(label)
            else:
                chosen = builder.in_set(label, {index})
            none = builder.const(0, word)
            vote = builder.mux(chosen, builder.const(weight, word), none)
            draft.ballots[part_index, index] = draft.operand_of(vote)
            ballot.append((vote, weight))
    return [added(draft, ballot) for ballot in ballots]


def averages(draft: Draft, sums: Sequence[Sum]) -> list[Sum]:
    forest = draft.forest
    words: list[list[Word]] = [[] for _ in forest.classes]
    offsets = [0] * len(words)
    for part_index, (part, weight) in enumerate(zip(forest.parts, draft.forest.integer_weights, strict=True)):
        shared = part.curves and part.link.kind in ("softmax", "shares")
        own = shares(draft, part_index, part, sums[part.start : part.stop]) if shared else []
        for index, addends in enumerate(words):
            total = sums[part.start + index % part.width]
            if own:
                draft.ballots[part_index, index] = draft.operand_of(own[index])
                addends += multiples(draft.builder, own[index], forest.steps, weight)
            elif part.curves:
                up, down = (weight, 0) if part.width > 1 or index else (-weight, weight * forest.steps)
                value, most = step_function(draft.builder, total, part.curve_of(index % part.width), up, down)
                draft.ballots[part_index, index] = draft.operand_of(value)
                addends.append((value, most))
            else:
                addends += multiples(draft.builder, total.net, total.high, weight)
                offsets[index] += weight * total.offset
    return [added(draft, addends)._replace(offset=offset) for addends, offset in zip(words, offsets, strict=True)]


def median(draft: Draft, sums: Sequence[Sum]) -> list[Sum]:
    """Builds the weighted median: the smallest score such that scores up to it have at least half of the weight."""
    builder, shares = draft.builder, draft.forest.integer_weights
    least = min(total.offset + total.low for total in sums)
    scores = raised(draft, sums, least)
    largest = max(score.high for score in scores)
    nets, word = [score.net for score in scores], builder.type_of(scores[0].net)
    above = {  # (i, j): score i is above score j
        (i, j): builder.compare(nets[j], nets[i]) for i in range(len(nets)) for j in range(len(nets)) if i != j
    }
    best: Net | None = None
    for i, score in enumerate(nets):
        up_to = [
            (builder.mux(above[j, i], builder.const(0, width_for(0, w)), draft.number(w)), w)
            for j, w in enumerate(shares)
            if j != i
        ]
        weight = added(draft, [*up_to, (draft.number(shares[i]), shares[i])])
        needed = -(-sum(shares) // 2)
        enough = builder.not_(builder.less(weight.net, needed)) if weight.high >= needed else FALSE
        never = builder.const(largest, word)  # no score is above it
        candidate = builder.mux(enough, score, never)
        best = candidate if best is None else builder.mux(builder.compare(best, candidate), best, candidate)
    assert best is not None
    return [plus(draft, Sum(best, 0, largest), least)]


COMBINED: Mapping[str, Callable[[Draft, Sequence[Sum]], list[Sum]]] = {
    "vote": votes, "average": averages, "median": median,
}  # fmt: skip
