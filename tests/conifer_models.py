"""Makes conifer models of random trees, and rows for them: on thresholds, beside them, at the ends of types."""

from __future__ import annotations

import numpy as np

from forestc.forest.numbers import Fixed


def tree(rng: np.random.Generator, columns: int, depth: int, thresholds: np.ndarray, leaves: np.ndarray) -> dict:
    """A tree as a file has it: with a value at inner nodes, and a node that no path reaches."""
    feature, threshold, value, left, right = [], [], [], [], []

    def node(level: int) -> int:
        index = len(feature)
        leaf = level == depth or (level and rng.random() < 0.2)
        feature.append(-2 if leaf else int(rng.integers(columns)))
        threshold.append(-2.0 if leaf else float(rng.choice(thresholds)))
        value.append(float(rng.choice(leaves)) if leaf else 1e6)
        left.append(-1)
        right.append(-1)
        if not leaf:
            left[index], right[index] = node(level + 1), node(level + 1)
        return index

    node(0)
    for items, junk in ((feature, 0), (threshold, 0.5), (value, 7.0), (left, 0), (right, 99)):
        items.append(junk)
    return {"feature": feature, "threshold": threshold, "value": value, "children_left": left, "children_right": right}


def model(
    rng: np.random.Generator,
    types: dict[str, Fixed],
    *,
    rounds: int = 5,
    columns: int = 3,
    classes: int = 2,
    depth: int = 3,
    reach: float = 0.2,
    norm: float = 1,
    convention: str | None = None,
) -> dict:
    """A model whose leaves reach up to `reach` of the ends of the type of scores."""
    low, high = types["threshold"].ends
    step = 2.0 ** -types["threshold"].fraction
    thresholds = np.concatenate([rng.uniform(low, high, 6), np.round(rng.uniform(low, high, 6) / step) * step])
    least, most = types["score"].ends
    leaves = rng.uniform(least, most, 20) * reach
    width = classes if classes > 2 else 1
    made = {
        "max_depth": 1, "n_trees": rounds, "n_classes": classes, "n_features": columns, "norm": norm,
        "init_predict": [float(rng.choice(leaves)) for _ in range(classes)],
        "trees": [[tree(rng, columns, depth, thresholds, leaves) for _ in range(width)] for _ in range(rounds)],
        "config": {"backend": "cpp", **{f"{role}_precision": text(kind) for role, kind in types.items()}},
    }  # fmt: skip
    return made if convention is None else {**made, "splitting_convention": convention}


def text(kind: Fixed) -> str:
    return kind.fixed_point(kind.rounding, kind.overflow)


def rows(rng: np.random.Generator, given: dict, kind: Fixed, count: int) -> np.ndarray:
    """Rows on thresholds, one step and less beside them, at the ends of the type and beyond."""
    thresholds = np.array([t for classes in given["trees"] for one in classes for t in one["threshold"]])
    step, (low, high) = 2.0**-kind.fraction, kind.ends
    shape = (count, given["n_features"])
    grid = np.round(rng.choice(thresholds, shape) / step) * step
    ends = [low, high, low - step, high + step, high + step / 2, low - step / 2, 3 * high, 3 * low, 0.0, step / 2]
    ways = [
        rng.choice(thresholds, shape),
        grid + step * rng.integers(-3, 4, shape) / 2,
        grid + step * rng.normal(size=shape),
        rng.uniform(low, high, shape),
        rng.choice(ends, shape),
    ]
    return np.choose(rng.choice(5, shape, p=[0.2, 0.3, 0.1, 0.3, 0.1]), ways)
