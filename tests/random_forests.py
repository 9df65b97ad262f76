"""Makes random small forests of every kind in the IR, and troublesome inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.builder import make_forest, make_tree
from forestc.forest.ir import Aggregate, Combine, Decision, Feature, Forest, Link, Part, Tree
from forestc.forest.numbers import FLOAT32, FLOAT64, Category, Fixed, Float, NumberType, Ordered, word_range

INT_TYPES: list[NumberType] = [
    Fixed(1), Fixed(4), Fixed(8), Fixed(7, 3), Fixed(5, -2), Fixed(6, 0, True), Fixed(9, 4, True), Fixed(17, 6, True),
    Fixed(32), Fixed(40, 10, True), Ordered(32), Category(3), Category(11),
]  # fmt: skip
FLOAT_TYPES: list[NumberType] = [FLOAT32, FLOAT32, FLOAT64, Category(4)]


def random_forest(seed: int, quantized: bool, kind: str = "any", types: list[NumberType] | None = None) -> Forest:
    """Makes a random forest.

    kind: binary, argmax, regression, vector (leaves that feed all outputs), vote or each (parts), or any of these; for
    quantized forests also average, median or means (an average over several classes).
    """
    random = np.random.default_rng(seed)
    if kind == "any":
        kind = str(random.choice(["binary", "argmax", "regression", "vector", "vote", "each"]))
    types = types or (INT_TYPES if quantized else FLOAT_TYPES)
    features = []
    for index in range(int(random.integers(1, 6))):
        number = types[int(random.integers(len(types)))]
        missing = bool(random.random() < 0.3) and (not quantized or word_range(number, False).top > 2)
        raw = FLOAT64 if number in (FLOAT64, Ordered(64)) else FLOAT32
        features.append(Feature(f"feature {index}", number, index, missing, raw))
    outputs = {"binary": 1, "argmax": int(random.integers(2, 5)), "regression": 1, "vector": 3}.get(kind, 0)
    parts, combine = [], Combine()
    if kind in ("vote", "each", "average", "median", "means"):
        make = {"vote": random_parts, "each": random_parts, "means": random_means}.get(kind, random_scores)
        parts, combine = make(random, kind, quantized)
        outputs = parts[-1].stop
    trees = []
    for index in range(int(random.integers(1, 7))):
        fed = tuple(range(outputs)) if kind == "vector" or random.random() < 0.2 else (index % outputs,)
        trees.append(random_tree(random, features, fed, quantized, int(random.integers(0, 6))))
    bias: Any = random.integers(-20, 20, outputs) if quantized else random.normal(size=outputs)
    decision, classes, link = Decision("none"), [], "identity"
    if kind == "binary":
        decision = Decision("threshold", int(random.integers(-10, 30)) if quantized else float(random.normal()))
        classes, link = ["no", "yes"], "sigmoid"
    elif kind == "average":
        decision, classes = Decision("threshold", int(random.integers(0, 60))), ["no", "yes"]
    elif kind == "means":
        decision = Decision("argmax", ties=str(random.choice(["first", "last"])))  # type: ignore[arg-type]
        classes = list(max((part.classes for part in parts), key=len))
    elif kind == "vote":
        decision, classes = Decision("argmax"), list(parts[0].classes)
    elif kind in ("argmax", "vector"):
        decision, classes = (
            Decision("argmax", ties=str(random.choice(["first", "last"]))),
            [f"class {k}" for k in range(outputs)],
        )
        link = "softmax" if kind == "argmax" else "identity"
    return make_forest(
        name=f"random{seed}",
        features=features,
        columns=len(features),
        trees=trees,
        n_outputs=outputs,
        bias=bias,
        aggregate=Aggregate(divisor=1.0 if quantized or random.random() < 0.5 else float(len(trees))),
        link=Link(link),  # type: ignore[arg-type]
        decision=decision,
        classes=classes,
        scale=0.25 if quantized else None,
        parts=parts,
        combine=combine,
    )


def votes(trees: int, most: int = 1, parts: int = 1) -> Forest:
    """Makes trees of three splits on four features of four bits. Each tree has up to `most` votes for one of two
    classes. Several parts decide by votes of their own."""
    random = np.random.default_rng(trees)
    leaves = [[0], [1], [1], [0]] if most == 1 else [[0], [most], [most // 2], [1]]
    features = [Feature(f"feature {index}", Fixed(4), index, False, FLOAT32) for index in range(4)]
    grown = [
        make_tree(
            where="a vote", feature=[*random.permutation(4)[:3], -1, -1, -1, -1],
            threshold=[*random.integers(3, 13, 3), 0, 0, 0, 0], left=[1, 3, 5, -1, -1, -1, -1],
            right=[2, 4, 6, -1, -1, -1, -1], values=leaves, outputs=(index % parts,), quantized=True,
        )
        for index in range(trees)
    ]  # fmt: skip
    decision = Decision("threshold", trees * most // (2 * parts))
    deciding = [Part(k, k + 1, Aggregate(), Link(), decision, ("no", "yes"), 1.0) for k in range(parts)]
    return make_forest(
        name="votes", features=features, columns=4, trees=grown, n_outputs=parts, bias=[0] * parts,
        aggregate=Aggregate(), link=Link("identity"), decision=decision if parts == 1 else Decision("argmax"),
        classes=["no", "yes"], scale=1.0, **({"parts": deciding, "combine": Combine("vote")} if parts > 1 else {}),
    )  # fmt: skip


def random_parts(random: np.random.Generator, kind: str, quantized: bool) -> tuple[list[Part], Combine]:
    """Makes parts that decide, each among the same number of classes for a vote."""
    parts: list[Part] = []
    classes = int(random.integers(2, 5))
    for index in range(int(random.integers(2, 4))):
        n = classes if kind == "vote" else int(random.integers(2, 5))
        start = parts[-1].stop if parts else 0
        names = tuple(f"class {k}" for k in range(n))
        if n == 2 and random.random() < 0.7:
            threshold = int(random.integers(-10, 30)) if quantized else float(random.normal())
            decision = Decision("threshold", threshold)
        else:
            decision = Decision("argmax", ties=str(random.choice(["first", "last"])))  # type: ignore[arg-type]
        width = 1 if decision.kind == "threshold" else n
        scale = 0.5 * (index + 1) if quantized else 1.0
        parts.append(Part(start, start + width, Aggregate(), Link(), decision, names, scale))
    weights = tuple(float(w) for w in random.integers(1, 9, len(parts))) if kind == "vote" else ()
    return parts, Combine(kind, weights if random.random() < 0.7 else ())  # type: ignore[arg-type]


def random_scores(random: np.random.Generator, kind: str, quantized: bool) -> tuple[list[Part], Combine]:
    """Makes parts of one score each, for an average of two classes by curves or for a median."""
    assert quantized
    count, steps = int(random.integers(2, 6)), int(random.integers(1, 20))
    decision = Decision("threshold", 3) if kind == "average" else Decision("none")
    parts = []
    for index in range(count):
        cuts = (tuple(sorted(random.integers(-40, 60, steps).tolist())),) if kind == "average" else ()
        names = ("no", "yes") if kind == "average" else ()
        parts.append(Part(index, index + 1, Aggregate(), Link(), decision, names, 0.25, cuts))
    weights = (*map(float, random.integers(0, 9, count - 1)), 2.0)
    return parts, Combine(kind, weights if random.random() < 0.7 else ())  # type: ignore[arg-type]


def random_means(random: np.random.Generator, kind: str, quantized: bool) -> tuple[list[Part], Combine]:
    """Makes parts with a value for each class: from their scores, from levels, or from shares of levels."""
    assert quantized
    count, classes, steps = int(random.integers(1, 4)), int(random.integers(2, 5)), int(random.integers(1, 40))
    names, parts = tuple(f"class {k}" for k in range(classes)), []
    for index in range(count):
        start = parts[-1].stop if parts else 0
        said = str(random.choice(["softmax", "shares", "levels", "scores", "two"]))
        said = "softmax" if (index == 0 and said == "scores") or (said == "two" and classes > 2) else said
        link = Link("softmax") if said == "softmax" else Link()
        link = Link("shares", each=(Link(),) * classes) if said == "shares" else link
        n = {"softmax": 1, "scores": 0, "two": 1}.get(said, classes)
        width, decision = (1, Decision("threshold", 3)) if said == "two" else (classes, Decision("argmax"))
        cuts = np.sort(random.integers(-40, 60 if said != "softmax" else 1, (n, steps)), axis=1).tolist()
        curves = tuple(tuple(one) for one in cuts)
        parts.append(Part(start, start + width, Aggregate(), link, decision, names, 0.25, curves))
    weights = (*map(float, random.integers(0, 9, count - 1)), 2.0)
    return parts, Combine("average", weights if random.random() < 0.7 else ())


def random_tree(
    random: np.random.Generator, features: list[Feature], outputs: tuple[int, ...], quantized: bool, depth: int
) -> Tree:
    """Grows a random tree; the same condition may come again below itself."""
    rows: list[dict[str, Any]] = []
    sets: list[list[Any]] = []

    def grow(level: int) -> int:
        place = len(rows)
        node: dict[str, Any] = {"feature": -1, "threshold": 0, "set": -1, "left": -1, "right": -1, "missing": False}
        rows.append(node)
        if level >= depth or random.random() < 0.15:
            return place
        index = int(random.integers(len(features)))
        feature = features[index]
        node["feature"] = index
        node["missing"] = feature.missing and bool(random.random() < 0.5)
        if isinstance(feature.number, Category):
            node["set"] = len(sets)
            sets.append([c for c in range(feature.number.count) if random.random() < 0.5])
        elif random.random() < 0.15:
            node["set"] = len(sets)
            sets.append([random_threshold(random, feature, quantized) for _ in range(int(random.integers(0, 6)))])
        else:
            node["threshold"] = random_threshold(random, feature, quantized)
        node["left"], node["right"] = grow(level + 1), grow(level + 1)
        return place

    grow(0)
    leaves = sum(row["left"] == -1 for row in rows)
    shape = (leaves, len(outputs))
    values: Any = random.integers(-4, 12, shape) if quantized else random.normal(size=shape).round(2)
    column = {key: [row[key] for row in rows] for key in rows[0]}
    return make_tree(
        where="random tree",
        feature=column["feature"],
        threshold=column["threshold"],
        left=column["left"],
        right=column["right"],
        values=values,
        outputs=outputs,
        missing_left=column["missing"],
        set_index=column["set"],
        sets=sets,
        cover=np.arange(len(rows)) + 0.5 if random.random() < 0.5 else None,
        ids=random.permutation(len(rows)) if random.random() < 0.3 else None,
        quantized=quantized,
    )


def random_threshold(random: np.random.Generator, feature: Feature, quantized: bool) -> float | int:
    if quantized:
        span = word_range(feature.number, feature.missing)
        near = [span.low, span.low + 1, span.high, span.high + 1, 0, 1]
        inside = [t for t in near if span.low <= t <= min(span.high + 1, 2**63 - 1)]
        if random.random() < 0.3:
            return int(random.choice(inside))
        return int(random.integers(span.low, span.high, endpoint=True))
    special = [0.0, -0.0, 1e-40, -1e-40, 1e30, -1e30, np.inf, 0.5]
    value = float(random.choice(special)) if random.random() < 0.3 else float(random.normal())
    return float(np.float32(value)) if feature.number == Float(32) else value


def troublesome_rows(forest: Forest, seed: int, count: int = 200) -> NDArray[np.float64]:
    """Draws raw rows on thresholds and beside them, zeros of both signs, subnormals, infinities, missing values."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, forest.columns)) * 2
    special = np.array([0.0, -0.0, 1e-45, -1e-45, np.inf, -np.inf, 1e38, -1e38, 1.0, 2.0, 3.0, -1.0, 0.5, 100.0])
    for index, feature in enumerate(forest.features):
        column = rows[:, feature.column]
        thresholds = forest.conditions.thresholds(index).astype(np.float64)
        if len(thresholds) and not forest.quantized:
            chosen = random.choice(thresholds, count).astype(np.float32 if feature.raw == Float(32) else np.float64)
            way = random.choice([-np.inf, np.inf], count).astype(chosen.dtype)
            beside = np.where(random.random(count) < 0.5, chosen, np.nextafter(chosen, way))
            column = np.where(random.random(count) < 0.6, beside, column)
        column = np.where(random.random(count) < 0.2, random.choice(special, count), column)
        if isinstance(feature.number, Category):
            codes = random.integers(-1, feature.number.count + 2, count) + random.choice([0.0, 0.0, 0.5], count)
            column = np.where(random.random(count) < 0.9, codes, column)
        if feature.missing:
            column = np.where(random.random(count) < 0.2, np.nan, column)
        rows[:, feature.column] = column
    return rows


def walk(forest: Forest, tree: Tree, word: NDArray[Any]) -> int:
    """Returns the leaf that an encoded row reaches, by the definition, one step at a time."""
    node = 0
    while tree.left[node] != -1:
        feature = forest.features[tree.feature[node]]
        x = word[tree.feature[node]]
        absent = bool(np.isnan(x)) if not forest.quantized else x == word_range(feature.number, feature.missing).missing
        if absent:
            left = bool(tree.missing_left[node])
        elif tree.set_index[node] >= 0:
            members = tree.sets[tree.set_index[node]]
            category = isinstance(feature.number, Category)
            left = x in members if category else sum(bool(cut <= x) for cut in members) % 2 == 1
        else:
            left = bool(x < tree.threshold[node])
        node = int(tree.left[node] if left else tree.right[node])
    return node
