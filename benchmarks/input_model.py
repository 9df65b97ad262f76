"""Measures input models of forests on other rows than they were learnt from, and the leaves that their stimuli reach.

    python benchmarks/input_model.py --data DIR --json FILE

Random forests of 20 and of 100 trees of depth 8 are trained on 60 % of the rows (at most 20,000) and quantized exactly.
The input model (treewidth 4, --seconds of search) is learnt from the same rows and tested on at most 10,000 of the
others:

- `independent`, `treewidth 1`, `learnt`: mean log-likelihood of a row's comparator bits under three models: independent
  bits, the best tree found, and the input model.
- `random`, `drawn`, `all`: share of the reachable leaves that are reached by 10,000 random words, by 10,000 rows drawn
  from the input model, and by these rows together with rows made for the missed leaves (`stimuli`).
"""

from __future__ import annotations

import time
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments, earlier_rows, save, show

import forestc
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import word_range
from forestc.inputs.coverage import Coverage, Reachable
from forestc.inputs.learn import independent_log_likelihood
from forestc.inputs.stimuli import stimuli
from forestc.inputs.text import printed
from forestc.passes.quick_evaluation import evaluate_quickly

FILES = ("magic04", "spambase", "adult", "unsw_nb15_82k")
TREES, DEPTH = (20, 100), 8
MOST_ROWS, MOST_TEST = 20_000, 10_000
COUNT = 10_000
MEASURES = ("forestc/inputs", "forestc/papers/networks")
TITLE = "input models of forests"


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data", "only")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else ("bc", *(FILES if options.data else ()))
    trees, most, count = TREES, MOST_ROWS, COUNT
    if options.small:
        names, options.seconds, trees, most, count = ("bc",), 0.1, (1,), 60, 20
    rows = earlier_rows(options)
    done = {row["model"] for row in rows}
    for name in names:
        X, y = read(name, options.data)
        X, Xt, y, _ = train_test_split(np.float64(np.float32(X)), y, test_size=0.4, random_state=0, stratify=y)
        for number in trees:
            if (title := f"{name} {number}") not in done:
                model = RandomForestClassifier(number, max_depth=DEPTH, random_state=0).fit(X[:most], y[:most])
                rows.append(of_model(title, model, X[:most], Xt[:MOST_TEST], options.seconds, count))
                print(rows[-1], flush=True)
                save(TITLE, rows, options)
    show(TITLE, rows, options)


def of_model(name: str, fitted: Any, X: NDArray[Any], Xt: NDArray[Any], seconds: float, count: int) -> dict[str, Any]:
    source = forestc.load(fitted)
    forest = forestc.quantize(source, level=0)
    start = time.perf_counter()
    inputs, _ = forestc.model_inputs(source, X, seconds=seconds)
    took = time.perf_counter() - start
    tree, _ = forestc.model_inputs(source, X, seconds=seconds, treewidth=1)
    return {
        "model": name, "rows": len(X), "comparators": inputs.comparators, "kept": inputs.kept,
        "learn s": round(took, 1), "file kB": round(len(printed(inputs)) / 1000),
        "independent": round(independent_log_likelihood(inputs, X, Xt), 2),
        "treewidth 1": round(float(tree.log_likelihood(Xt).mean()), 2),
        "learnt": round(float(inputs.log_likelihood(Xt).mean()), 2), **reached(forest, source, inputs, count),
    }  # fmt: skip


def covered(forest: Forest, words: NDArray[np.int64]) -> Coverage:
    coverage = Coverage.of(forest)
    for start in range(0, len(words), 8192):
        coverage.add(evaluate_quickly(forest, words[start : start + 8192]).leaves)
    return coverage


def reached(forest: Forest, source: Forest, inputs: Any, count: int) -> dict[str, Any]:
    """Returns the percentage of leaves that random words, rows of the input model, and stimuli reach."""
    random = np.random.default_rng(0)
    spans = [word_range(feature.number, feature.missing) for feature in forest.features]
    words = np.stack([random.integers(span.low, span.top, count, endpoint=True) for span in spans], axis=1)
    start = time.perf_counter()
    made = stimuli(inputs, source, forest, count)
    seconds = time.perf_counter() - start
    leaves = [
        (index, node)
        for index, (tree, own) in enumerate(zip(forest.trees, Reachable.of(forest).nodes, strict=True))
        for node in np.flatnonzero((tree.left == LEAF) & own).tolist()
    ]
    every = covered(forest, encode_numbers(forest, made.rows))
    row: dict[str, Any] = {"leaves": len(leaves)}
    for kind, visited in (("random", covered(forest, words)), ("drawn", made.coverage), ("all", every)):
        hit = sum(bool(visited.leaf_visits[index][node]) for index, node in leaves)
        row[f"{kind} %"] = round(100 * hit / len(leaves), 2)
    return row | {"stimuli": len(made.rows), "stimuli s": round(seconds, 1)}


if __name__ == "__main__":
    main()
