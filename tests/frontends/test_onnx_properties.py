"""Tests random ONNX models of every operator, mode, type and transform, with random steps around them, against
onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx_models
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_models import (
    DOUBLE,
    FLOAT,
    INT64,
    MODES,
    NUMPY,
    POSTS,
    answers,
    bare,
    node,
    random_rows,
    random_trees,
    scaler,
)

from forestc import load
from forestc.errors import ModelError
from forestc.rows.encode import evaluate

CHEAP = settings(max_examples=examples(80), derandomize=True, deadline=None)
# ALLOWED bounds the differences from onnxruntime's transforms, which are not exactly rounded: its softmax adds float32
# powers in order; its logistic function mirrors 1 - f(-s), which is off by half a unit in the last place of 1.
ALLOWED = {
    "identity": 0.0,
    "sigmoid": 2.0**-23,
    "logistic": 2.0**-23,
    "softmax": 2.0**-21,
    "softmax-zero": 2.0**-21,
    "probit": 1e-6,
}
seeds = st.integers(0, 2**32 - 1)
COUNTS = st.one_of(st.integers(1, 12), st.sampled_from([40, 79]))


def compare(source, rows):
    """Compares sums bit for bit, classes, and results of the link within `ALLOWED`; a refusal must give a reason."""
    try:
        forest = load(source)
    except ModelError as error:
        assert any(
            why in str(error) for why in ("no weight on some rows", "two base values", "PROBIT", "BRANCH_EQ nodes")
        )
        return
    found, output = evaluate(forest, rows), answers(source, rows)
    if "label" in output:
        assert found.decision.tolist() == output["label"].tolist()
    (sums,) = answers(bare(source), rows).values()
    sums = sums[:, 1:] if found.scores.shape[1] == 1 and sums.shape[1] == 2 else sums
    assert np.array_equal(found.scores.astype(sums.dtype), sums, equal_nan=True)
    shown = output["scores"]
    shown = shown[:, 1:] if found.values.shape[1] == 1 and shown.shape[1] == 2 else shown
    assert np.allclose(
        found.values.astype(shown.dtype), shown, 1e-6 * (forest.link.kind == "probit"), ALLOWED[forest.link.kind], True
    )


@CHEAP
@given(
    seed=seeds,
    count=COUNTS,
    outputs=st.integers(1, 4),
    modes=st.lists(st.sampled_from(MODES[:6]), min_size=1, max_size=6),
    post=st.sampled_from(POSTS),
    votes=st.sampled_from(["all", "one", "tree"]),
    double=st.booleans(),
    tensors=st.booleans(),
    low=st.sampled_from([-1.0, 0.05]),
    text=st.booleans(),
    base=st.booleans(),
)
def test_classifiers_agree_with_onnxruntime(seed, count, outputs, modes, post, votes, double, tensors, low, text, base):
    random = np.random.default_rng(seed)
    kind = DOUBLE if double else FLOAT
    trees = random_trees(random, count, outputs, modes, votes=votes, low=low, precise=double and tensors)
    classes = max(outputs, 2)
    labels = [f"class {k}" if text else 3 * k - 2 for k in range(classes)]
    width = 1 if classes == 2 else classes
    bases = random.normal(size=width).astype(np.float32).tolist() if base else None
    source = onnx_models.classifier(trees, labels, post, bases, kind, double and tensors)
    compare(source, random_rows(random, 120, 3, NUMPY[kind]))


@CHEAP
@given(
    seed=seeds,
    count=COUNTS,
    outputs=st.integers(1, 3),
    modes=st.lists(st.sampled_from(MODES), min_size=1, max_size=7),
    post=st.integers(0, 4),
    aggregate=st.integers(0, 3),
    double=st.booleans(),
    older=st.booleans(),
    base=st.booleans(),
)
def test_regressors_agree_with_onnxruntime(seed, count, outputs, modes, post, aggregate, double, older, base):
    random = np.random.default_rng(seed)
    kind = DOUBLE if double else FLOAT
    if older:
        modes = [mode for mode in modes if mode != "BRANCH_MEMBER"] or ["BRANCH_LT"]
        trees = random_trees(random, count, outputs, modes, precise=double)
        bases = random.normal(size=outputs).astype(np.float32).tolist() if base else None
        name = ["AVERAGE", "SUM", "MIN", "MAX"][aggregate]
        source = onnx_models.regressor(trees, outputs, POSTS[post], bases, name, kind, double)
    else:
        trees = random_trees(random, count, outputs, modes, votes="tree", precise=double)
        source = onnx_models.ensemble5(trees, outputs, post, aggregate, kind)
    compare(source, random_rows(random, 120, 3, NUMPY[kind]))


@CHEAP
@given(seed=seeds, modes=st.lists(st.sampled_from(MODES[:6]), min_size=1, max_size=3), wide=st.booleans())
def test_whole_numbers_agree_with_onnxruntime(seed, modes, wide):
    random = np.random.default_rng(seed)
    trees = random_trees(random, 5, 1, modes, whole=True)
    scale = 2**24 if wide else 1  # Wide numbers go beyond float32's exact integers.
    trees = [_scaled(tree, scale) for tree in trees]
    source = onnx_models.classifier(trees, [0, 1], kind=INT64)
    compare(source, random.integers(-45 * scale, 45 * scale, (100, 3)) + random.integers(-3, 4, (100, 3)).astype(float))


def _scaled(tree, scale):
    if isinstance(tree, list):
        return tree
    feature, mode, value, true, false, missing = tree
    return (feature, mode, value * scale, _scaled(true, scale), _scaled(false, scale), missing)


def _step(random, source, target, double):
    """Draws a step from one table of three columns to the next; returns its nodes, its constants, and the resulting
    type."""
    dtype = np.float64 if double else np.float32

    def numbers(count):
        found = random.choice([0.1, 1, 3, 1e-3, 1e30, 7.25], count) * random.choice([-1, 1], count)
        return found.astype(dtype)

    name = f"constant {target}"
    constant = numbers(int(random.choice([1, 3])))
    match int(random.integers(8 if not double else 6)):
        case 0:
            offset, scale = (numbers(3).astype(np.float32).tolist() for _ in range(2))
            return scaler(source, target, offset, scale), {}, False
        case 1:
            low, high = sorted(random.normal(size=2).astype(dtype))
            return node("Clip", [source, name, f"{name} 2"], [target]), {name: low, f"{name} 2": high}, double
        case 2:
            order = random.integers(0, 3, 3)
            return node("ArrayFeatureExtractor", [source, name], [target]), {name: order}, double
        case 3:
            return node(str(random.choice(["Add", "Mul"])), [name, source], [target]), {name: constant}, double
        case 4:
            return node(str(random.choice(["Sub", "Div", "Mul"])), [source, name], [target]), {name: constant}, double
        case 5:
            return node("Sub", [name, source], [target]), {name: constant}, double
        case _:
            by = random.normal(size=int(random.choice([1, 3]))).tolist()
            value = float(random.choice([np.nan, 0.0, 0.5, np.inf, 2.0]))
            return node("Imputer", [source], [target], imputed_value_floats=by, replaced_value_float=value), {}, double


@CHEAP
@given(seed=seeds, steps=st.integers(1, 4), double=st.booleans(), modes=st.lists(st.sampled_from(MODES), min_size=1))
def test_steps_before_the_trees(seed, steps, double, modes):
    random = np.random.default_rng(seed)
    nodes, constants, wide = [], {}, double
    for step in range(steps):
        made, more, wide = _step(random, f"t{step}", f"t{step + 1}", wide)
        nodes.append(made)
        constants |= more
    kind = DOUBLE if wide else FLOAT
    trees = random_trees(random, 4, 1, modes, depth=3)
    own = onnx_models.ensemble5(trees, kind=kind).graph.node[0]
    own.input[0] = f"t{steps}"
    inputs = [("t0", DOUBLE if double else FLOAT, 3)]
    source = onnx_models.model([*nodes, own], inputs, [("scores", kind)], constants, ml=5, opset=21)
    forest = load(source)
    dtype = np.float64 if double else np.float32
    rows = random_rows(random, 300, 3, dtype)
    for index, feature in enumerate(forest.features):
        cuts = forest.conditions.thresholds(index)
        cuts = cuts[np.isfinite(cuts)].astype(dtype)
        if len(cuts):
            chosen = random.choice(cuts, len(rows))
            with np.errstate(over="ignore"):
                beside = np.nextafter(chosen, random.choice([-np.inf, np.inf], len(rows)).astype(dtype))
            near = np.where(random.random(len(rows)) < 0.5, chosen, beside)
            column = rows[:, feature.column]
            rows[:, feature.column] = np.where(random.random(len(rows)) < 0.6, near, column)
    with np.errstate(over="ignore"):
        found = evaluate(forest, rows).scores
    assert np.array_equal(found, answers(source, rows)["scores"], equal_nan=True)
