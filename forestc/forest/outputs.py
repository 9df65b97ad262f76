"""Lists what designs return, and makes of a model the forest that has margins, or numbers of leaves, as its scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import Evaluation, decide
from forestc.forest.ir import LEAF, Aggregate, Decision, Forest, Link


def margins_of(forest: Forest) -> Forest:
    """Returns the regression whose values are the forest's scores before the link, as the library gives them: one score
    for each class, or the single one of two classes. Member models that vote, are averaged, or count in steps of their
    own are returned unchanged: their scores are those of the combination."""
    first = forest.parts[0]
    if forest.combined or any((part.aggregate, part.scale) != (first.aggregate, first.scale) for part in forest.parts):
        return forest
    classes = [", ".join(map(str, part.classes)) for part in forest.parts if part.classes]
    note = (f"the scores are margins, before the link, of the classes {'; '.join(classes)}",) * bool(classes)
    origin = replace(forest.provenance, notes=(*forest.provenance.notes, *note))
    own = {"aggregate": first.aggregate, "scale": first.scale if forest.quantized else None, "provenance": origin}
    return changed(forest, link=Link(), decision=Decision("none"), classes=(), parts=(), **own)


def leaves_of(forest: Forest) -> Forest:
    """Returns the regression whose score k is the library's number of the leaf that a row reaches in tree k."""
    trees = []
    for index, tree in enumerate(forest.trees):
        ends = np.flatnonzero(tree.left == LEAF)
        leaf = tree.leaf.copy()
        leaf[ends] = np.arange(len(ends))
        values = tree.ids[ends, np.newaxis].astype(tree.values.dtype)
        trees.append(changed_tree(tree, leaf=leaf, values=values, outputs=(index,)))
    # Each output has one tree, so its maximum is the tree's value; unlike a sum it is never rounded.
    return changed(
        forest,
        trees=tuple(trees),
        n_outputs=len(trees),
        bias=np.zeros(len(trees), dtype=forest.bias.dtype),
        aggregate=Aggregate() if forest.quantized else Aggregate("max"),
        link=Link(),
        decision=Decision("none"),
        classes=(),
        parts=(),
        scale=1.0 if forest.quantized else None,
    )


def runners_up(forest: Forest, evaluation: Evaluation) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Returns two arrays (rows, targets) of a quantized forest: the class that wins without the best one, and the
    distance of both scores. Of classes decided by a threshold it is the distance of the score from the threshold."""
    rows = np.arange(len(evaluation.scores))
    seconds, distances = [], []
    for best, part in zip(evaluation.index.reshape(len(rows), -1).T, forest.targets, strict=True):
        scores = evaluation.scores[:, part.start : part.stop]
        if part.decision.kind == "threshold":
            seconds.append(1 - best)
            distances.append(np.abs(scores[:, -1] - int(part.decision.threshold)))
            continue
        others = scores.copy()
        others[rows, best] = np.iinfo(np.int64).min
        seconds.append(decide(part.decision, others, others))
        distances.append(scores[rows, best] - scores[rows, seconds[-1]])
    return np.stack(seconds, axis=1), np.stack(distances, axis=1)


class Words(NamedTuple):
    """The words that a design returns for a value of `--outputs`."""

    kinds: tuple[Literal["label", "second", "distance", "score"], ...]  # of ports
    read: Callable[[Forest], Forest] | None = None  # makes the forest that gives them; None: the model


LABEL, SCORES = Words(("label",)), Words(("score",))
OUTPUTS: Mapping[str, Words] = {
    "label": LABEL,
    "scores": SCORES,
    "both": Words(("label", "score")),
    "margins": Words(("score",), margins_of),
    "leaves": Words(("score",), leaves_of),
    "top2": Words(("label", "second", "distance")),
}


def kinds_of(outputs: str) -> tuple[str, ...]:
    """Returns the kinds of words that these outputs name; none for auto, which depends on the model."""
    return OUTPUTS[outputs].kinds if outputs in OUTPUTS else ()
