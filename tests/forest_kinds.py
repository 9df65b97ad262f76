"""Makes every kind of quantized forest from a seed and the number types of its features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from random_forests import random_forest, random_tree, votes

from forestc.forest.builder import changed, changed_tree, make_forest, make_tree
from forestc.forest.ir import Aggregate, Combine, Decision, Feature, Forest, Link, Part
from forestc.forest.numbers import FLOAT64, Category, Fixed, NumberType, Ordered, Rounding

Types = list[NumberType] | None

HARD: list[NumberType] = [
    Fixed(1), Fixed(8), Fixed(7, 3), Fixed(5, -2), Fixed(6, 0, True), Fixed(9, 4, True), Fixed(17, 6, True), Fixed(32),
    Fixed(40, 10, True), Fixed(62), Fixed(63, 50, True), Fixed(12, 1100), Fixed(12, -1100, True), Fixed(10, 140, True),
    Fixed(31, 149), Fixed(32, -100, True), Ordered(32), Ordered(64), Category(1), Category(3), Category(11, "floor"),
    Category(4, "trunc"),
]  # fmt: skip
FLOATABLE: list[NumberType] = [Ordered(32), Fixed(6, 2, True), Fixed(8), Fixed(12, -3, True), Fixed(23, 12)]
RAW: list[NumberType] = [
    Fixed(8), Fixed(12, 3, True), Fixed(6, -2), Fixed(40, 10, True), Fixed(30, 0, True), Ordered(32), Ordered(64),
    Category(5), Category(300, "floor"), Category(7, "trunc"),
]  # fmt: skip


def extreme_forest(kind: Any, seed: int, types: Types = None) -> Forest:
    """Makes a random forest of max or min. With two of three seeds all leaves of an output have one of two values."""
    random = np.random.default_rng(seed)
    source = random_forest(seed, True, str(random.choice(["binary", "argmax", "regression", "vector"])), types)
    fed = {output for tree in source.trees for output in tree.outputs}
    nodes = {"feature": [-1], "threshold": [0], "left": [-1], "right": [-1]}
    constant = [
        make_tree(where="", **nodes, values=[[output]], outputs=[output], quantized=True)
        for output in set(range(source.n_outputs)) - fed
    ]
    trees = list(source.trees)
    if seed % 3:
        high = random.integers(-3, 9, source.n_outputs)
        trees = [
            changed_tree(tree, values=np.where(tree.values > np.median(tree.values), high[list(tree.outputs)], 1))
            for tree in trees
        ]
    decision = source.decision
    if decision.kind == "threshold":
        decision = Decision("threshold", int(random.integers(-20, 20)))
    return changed(source, trees=(*trees, *constant), aggregate=Aggregate(kind), decision=decision)


def last_of_two(vote: bool, seed: int, types: Types = None) -> Forest:
    """Makes a forest with a threshold on the last of two scores, either sums or counts of votes."""
    random = np.random.default_rng(seed)
    forest = random_forest(9, True, "vector", types)
    features = list(forest.features)
    decision, classes = Decision("threshold", 4), ("no", "yes")
    made: dict[str, Any]
    if vote:
        parts = tuple(Part(k, k + 1, Aggregate(), Link(), decision, classes) for k in range(3))
        trees = tuple(random_tree(random, features, (k,), True, 4) for k in range(3))
        combine = Combine("vote", (3.0, 2.0, 2.0))
        made = {"n_outputs": 3, "bias": np.array([0, -3, 2]), "parts": parts, "combine": combine}
    else:
        trees = tuple(random_tree(random, features, (0, 1), True, 4) for _ in range(3))
        made = {"n_outputs": 2, "bias": np.array([400, -7])}
    return changed(forest, trees=trees, decision=decision, classes=classes, **made)


def typed_sums(order: Any, overflow: Any) -> Iterator[Forest]:
    """Makes forests with sums in a number type, some of them multiplied by a norm and rounded in each way."""
    forests = (random_forest(seed, True, "argmax", [Fixed(8)]) for seed in range(100))
    forest = next(one for one in forests if {len(tree.outputs) for tree in one.trees} == {1} and len(one.trees) > 4)
    trees = tuple(changed_tree(tree, values=np.clip(tree.values, -32, 31)) for tree in forest.trees * 3)
    roundings: list[tuple[float, Rounding]] = [(1, "AP_TRN"), (0.75, "AP_RND"), (0.25, "AP_TRN"), (2.25, "AP_RND_CONV")]
    for norm, rounding in roundings:
        aggregate = Aggregate("typed", score=Fixed(6, 2, True, rounding, overflow), order=order, norm=norm)
        yield changed(forest, trees=trees, aggregate=aggregate, bias=forest.bias // 2)


def doubles(seed: int, types: Types = None) -> Forest:
    """Makes a forest on columns of 64-bit floats."""
    forest = random_forest(seed, True, types=types and [*types, Ordered(64)])
    return replace(forest, features=tuple(replace(f, raw=FLOAT64) for f in forest.features))


def added(name: str, trees: list[Any], outputs: int, bits: int) -> Forest:
    """Makes a forest that adds trees on one feature; of several outputs the largest wins."""
    decision = Decision("argmax") if outputs > 1 else Decision("none")
    return make_forest(
        name=name, features=[Feature("a", Fixed(bits), 0)], columns=1, trees=trees, n_outputs=outputs,
        bias=[0] * outputs, aggregate=Aggregate(), link=Link(), decision=decision,
        classes=range(outputs) if outputs > 1 else (), scale=1.0,
    )  # fmt: skip


def chain(seed: int, types: Types = None) -> Forest:
    """Makes a chain of 1,000 nodes, as boosting libraries may write it."""
    left = [i for k in range(1000) for i in (2 * k + 1, -1)] + [-1]
    right = [i for k in range(1000) for i in (2 * k + 2, -1)] + [-1]
    tree = make_tree(
        where="chain", feature=[0] * 2001, threshold=[k // 2 + 1 for k in range(2001)], left=left, right=right,
        values=[[k % 7] for k in range(1001)], outputs=[0], quantized=True,
    )  # fmt: skip
    return added("chain", [tree], 1, 12)


def classes(seed: int, types: Types = None) -> Forest:
    """Makes a forest with a number of classes about the limit of a byte."""
    count = 255 + seed % 3
    trees = [
        make_tree(
            where="t", feature=[0, -1, -1], threshold=[k, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
            values=[[0], [k % 7]], outputs=[k], quantized=True,
        )
        for k in range(count)
    ]  # fmt: skip
    return added("many", trees, count, 9)


FEATURE_NAMES = [
    "x", "x0", "n12", "sum3", "y", "clk", "label", "input", "module", "signal", "Signal", "std_logic", "unsigned",
    "ap_uint", "lambda", "None", "self", "as_value", "1st", "a b", "same", "same", "Temp", "temp", "TEMP", "a__b",
    "_a_", "", "名" * 300, "é" * 60, "\\", "\\a\\", "//", "*/ int y;", "é*/\n#error", '"; }', '"; $finish',
    "\n`define x", 'x"; end; --', "end\nentity evil is", "-- synthesis translate_off", '"""\nimport os\n"""', "', '",
]  # fmt: skip
MODEL_NAMES = [
    'a"; $finish', "module", "int", "ap_int", 'a"; system("ls', "..", "*/ \n", "x" * 300, "1st", "é*/", "None",
    "lambda", "Signal", "signal", "core", '"""', "X",
]  # fmt: skip


def hostile(seed: int, types: Types = None) -> Forest:
    """Makes a forest with names of model, features and classes that break code if they are not escaped."""
    trees = [
        make_tree(
            where="t", feature=[k, -1, -1], threshold=[1 + k % 15, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
            values=[[0], [1 + k % 7]], outputs=[0], quantized=True,
        )
        for k in range(len(FEATURE_NAMES))
    ]  # fmt: skip
    return make_forest(
        name=MODEL_NAMES[seed % len(MODEL_NAMES)], columns=len(trees), trees=trees, n_outputs=1, bias=[0],
        features=[Feature(name, Fixed(4), k) for k, name in enumerate(FEATURE_NAMES)], aggregate=Aggregate(),
        link=Link(), decision=Decision("threshold", 80), classes=('"); system("ls', "*/ \n??/"), scale=1.0,
    )  # fmt: skip


KINDS = ("binary", "argmax", "regression", "vector", "vote", "each", "average", "median", "means")
FORESTS: dict[str, Callable[[int, Types], Forest]] = {
    **{kind: partial(lambda kind, seed, types: random_forest(seed, True, kind, types), kind) for kind in KINDS},
    "max": partial(extreme_forest, "max"),
    "min": partial(extreme_forest, "min"),
    "doubles": doubles,
    "hard-types": lambda seed, types: random_forest(seed, True, types=types or HARD),
    "last-of-two": partial(last_of_two, False),
    "votes-of-the-last-of-two": partial(last_of_two, True),
    "narrow-votes": lambda seed, types: votes(2 + seed % 19, 1 + seed % 2 * 2),
    "hostile-names": hostile,
    "chain": chain,
    "classes": classes,
}
LARGE = ("chain", "classes")
