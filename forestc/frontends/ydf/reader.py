"""Reads YDF's models, also those of TensorFlow Decision Forests: saved folders without the library, and models in
memory through such a folder.

YDF predicts with one of several engines, which add leaf values in different orders and types. The Forest adds them as
the engine that YDF takes for the model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Aggregate, Decision, Forest, Label, Link, LinkKind, Provenance
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.shared.assemble import ScoreMeaning, assembled
from forestc.frontends.shared.exact import least_float, logf
from forestc.frontends.ydf.columns import read_column
from forestc.frontends.ydf.files import opened, packed
from forestc.frontends.ydf.trees import Leaf, read_tree
from forestc.frontends.ydf.wire import Message

MAX_BYTES = 4 << 30  # limits the files that a model in memory is saved as
QUICK_LEAVES, QUICK_TREES = 64, 65535  # most leaves of a tree, and trees, that YDF's engine QuickScorer takes

CLASSIFICATION, REGRESSION, RANKING, ANOMALY = 1, 2, 3, 6  # tasks that are read
TASKS = {4: "uplift of classes", 5: "uplift of numbers", 7: "survival analysis"}  # tasks that are not read
BINARY, MULTI, POISSON = (1, 6), 3, 7  # losses of gradient boosting
SCORES = (2, 4, 5, 8, 9)  # losses whose predictions are the scores


class Engine(NamedTuple):
    """The engine that YDF predicts with. Without a fast one it walks its generic trees."""

    fast: bool
    quick: bool  # True for QuickScorer


@dataclass(frozen=True)
class Ensemble:
    """What the trees of a kind of model mean.

    leaf: returns the numbers of a leaf.
    values: turns the numbers of leaves into their values (leaves, outputs of a tree).
    outputs: the outputs that the trees feed; each tree feeds the next entry, in turn.
    """

    leaf: Leaf
    values: Callable[[NDArray[np.float64], Engine], NDArray[np.float64]]
    outputs: Sequence[Sequence[int]]
    meaning: Callable[[Engine], ScoreMeaning]


def read_archive(data: bytes, where: str) -> Forest:
    """Reads a zip archive of a model folder into a Forest. Raises ModelError."""
    files = opened(data, where)
    header, columns = files.message("header.pb"), list(map(read_column, files.message("data_spec.pb").messages(1)))
    name, task = header.text(1), header.integer(2)
    if name not in KINDS:
        raise header.fail(f"models of the kind {name[:40]!r} are not read", f"known: {', '.join(KINDS)}")
    kind = KINDS[name]
    if task not in kind.tasks:
        what = f"{name} for {TASKS.get(task, f'task {task}')} is not read"
        raise header.fail(what, "train for classification, regression, ranking or anomaly detection")
    inputs, label = header.integers(5), header.integer(3)
    no_label = task == CLASSIFICATION and not 0 <= label < len(columns)
    if no_label or not len(set(inputs)) == len(inputs) <= MAX_COLUMNS or max(inputs, default=0) >= len(columns):
        raise header.fail(f"its label and inputs are not different columns of the {len(columns)}")
    places = {index: (place, columns[index]) for place, index in enumerate(inputs)}
    own = files.message(f"{name.lower()}_header.pb")
    count = own.integer(2)
    if count < 1:
        raise own.fail(f"has {count:,} trees", "train one tree or more")
    ensemble = kind.read(own, columns[label].classes(header.where) if task == CLASSIFICATION else ())
    nodes = files.nodes(own.integer(1), own.text(kind.form) or "TFE_RECORDIO")
    trees = [read_tree(nodes, places, ensemble.leaf, f"{where}, tree {index}") for index in range(count)]
    if next(nodes, None) is not None:
        raise own.fail(f"has more nodes than those of its {count} trees")
    fast = all(tree.imputes for tree in trees)
    small = len(trees) <= QUICK_TREES and all(len(tree.leaves) <= QUICK_LEAVES for tree in trees)
    engine = Engine(fast, fast and small and not any(tree.detects for tree in trees))
    built = []
    for index, tree in enumerate(trees):
        values = ensemble.values(np.array(tree.leaves, dtype=np.float64), engine)
        built.append(tree.tree(values, ensemble.outputs[index % len(ensemble.outputs)], f"{where}, tree {index}"))
    features = [column.feature(place) for place, column in places.values()]
    return assembled(built, len(inputs), features.__getitem__, Provenance("ydf"), where, **ensemble.meaning(engine))


def read_live(model: Any) -> Forest:
    """Reads a YDF model in memory into a Forest. Raises ModelError."""
    where = f"YDF {type(model).__name__}"
    if not hasattr(model, "input_features"):
        raise ModelError("not a trained model of trees", where=where, do="pass what the method train returns")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(str(path))
        return read_archive(packed(path, MAX_BYTES), where)


def _output(node: Message, number: int) -> Message:
    """Returns the output of a leaf, in the field of its kind."""
    if not node.has(number):
        raise node.fail("a leaf without a value")
    return node.message(number)


def _boosted(header: Message, classes: tuple[Label, ...]) -> Ensemble:
    loss, width, biases = header.integer(3), max(1, header.integer(5, 1)), header.reals(4)
    several = loss == MULTI
    known = (MULTI, *BINARY) if classes else (*SCORES, POISSON)
    fine = loss in known and (width, len(classes)) == ((width, width) if several else (1, 2 if classes else 0))
    if not fine or len(biases) != width or header.integer(2) % width:
        what = f"loss {loss} with {width} trees an iteration and {len(classes)} classes is not read"
        raise header.fail(what, "train with one of YDF's own losses for classes, numbers or ranks")

    def meaning(engine: Engine) -> ScoreMeaning:
        wide = not engine.fast and not several
        logits = header.flag(9) and engine.fast  # YDF's generic trees always give probabilities.
        kind: LinkKind = "exp" if loss == POISSON else "identity"
        decision = Decision("none")
        if classes:
            kind = "identity" if logits else "softmax" if several else "sigmoid"
            # Of two classes YDF compares even logits with 0.5.
            half = 0.5 if logits or several else _half(64 if wide else 32)
            decision = Decision("argmax", 0, "values") if several else Decision("threshold", half)
        return ScoreMeaning(
            n_outputs=width,
            bias=biases,
            aggregate=Aggregate("sum", "float64" if wide else "float32", bias_first=engine.quick or not engine.fast),
            link=Link(kind),
            decision=decision,
            classes=classes,
        )

    outputs = [(k,) for k in range(width)]
    return Ensemble(lambda node, _: (_output(node, 2).real(1),), lambda numbers, _: numbers, outputs, meaning)


def _half(bits: int) -> float:
    """Returns the least score of 32 or 64 bits for which YDF's probability, a float32, is at least 0.5."""
    number = np.float32 if bits == 32 else np.float64

    def above(score: float) -> bool:
        with np.errstate(over="ignore"):
            return bool(np.float32(1 / (1 + np.exp(-number(score)))) >= 0.5)

    return least_float(above, bits)


def _random_forest(header: Message, labels: tuple[Label, ...]) -> Ensemble:
    votes, trees, classes = header.flag(3, True), header.integer(2), len(labels)
    width = 1 if classes <= 2 else classes

    def leaf(node: Message, depth: int) -> Sequence[float]:
        """Returns the values of outputs, then their sum over all classes."""
        if not classes:
            return (_output(node, 2).real(1), 1.0)
        output = _output(node, 1)
        counts = output.message(2).reals(1, 64)
        if votes:
            counts = (np.arange(classes + 1) == output.integer(1)).astype(np.float64)
        total = 1.0 if votes else output.message(2).real(2, 64)
        if len(counts) != classes + 1 or not total > 0 or (votes and counts[1:].sum() != 1):
            raise node.fail(f"a leaf of {classes} classes has {len(counts) - 1} counts, of the sum {total}")
        return (*counts[-width:], total)

    def values(numbers: NDArray[np.float64], engine: Engine) -> NDArray[np.float64]:
        counts, totals = numbers[:, :-1], numbers[:, -1:]
        return (counts / (totals * (trees if engine.fast else 1))).astype(np.float32).astype(np.float64)

    def meaning(engine: Engine) -> ScoreMeaning:
        precision: Literal["float32", "float64"] = "float32" if engine.fast or classes else "float64"
        decision = Decision("argmax" if width > 1 else "none")
        if classes == 2:
            decision = Decision("threshold", _majority(trees, engine) if votes else 0.5)
        return ScoreMeaning(
            n_outputs=width,
            aggregate=Aggregate("sum", precision, divisor=1.0 if engine.fast else float(trees)),
            decision=decision,
            classes=labels,
        )

    return Ensemble(leaf, values, [range(width)], meaning)


def _majority(trees: int, engine: Engine) -> float:
    """Returns a threshold of the share of votes, halfway between the least share for which YDF takes the second class
    and the share below it. YDF's sum of float32 shares may round half of all votes to less than 0.5."""
    share = np.full(trees, 1 / trees, dtype=np.float32)
    sums = np.cumsum(share) if engine.fast else (np.arange(1, trees + 1) / trees).astype(np.float32)
    return (float(np.flatnonzero(sums >= 0.5)[0]) + 0.5) / trees


def _isolation(header: Message, _: tuple[Label, ...]) -> Ensemble:
    expected, trees = _path_length(header.integer(4)), header.integer(2)
    if expected <= 0:
        raise header.fail("its trees were trained on one example", "train each tree on two examples or more")

    def leaf(node: Message, depth: int) -> tuple[float, ...]:
        return (float(np.float32(depth) + _path_length(_output(node, 6).integer(1))),)

    def meaning(engine: Engine) -> ScoreMeaning:
        aggregate = Aggregate("sum", "float32", divisor=float(expected))
        return ScoreMeaning(n_outputs=1, aggregate=aggregate, link=Link("exp2", slope=-1.0))

    return Ensemble(leaf, lambda numbers, _: numbers / trees, [(0,)], meaning)


def _path_length(examples: int) -> np.float32:
    """Returns the mean length of a path in a random tree of some examples, in float32 as YDF does."""
    if examples <= 2:
        return np.float32(examples == 2)
    n = np.float32(examples)
    harmonic = np.float32(logf(float(n - 1))) + np.float32(0.5772156649)
    return np.float32(2) * harmonic - np.float32(2) * (n - 1) / n


class Kind(NamedTuple):
    """A kind of model. form: the header's field for the format of the nodes."""

    tasks: tuple[int, ...]
    form: int
    read: Callable[[Message, tuple[Label, ...]], Ensemble]


KINDS = {
    "GRADIENT_BOOSTED_TREES": Kind((CLASSIFICATION, REGRESSION, RANKING), 7, _boosted),
    "RANDOM_FOREST": Kind((CLASSIFICATION, REGRESSION), 7, _random_forest),
    "ISOLATION_FOREST": Kind((ANOMALY,), 3, _isolation),
}
