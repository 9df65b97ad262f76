"""Input models of forests: how near they come to rows that they did not see, and what their stimuli reach.

    python benchmarks/input_model.py --data DIR --json FILE

Random forests of 20 and of 100 trees of depth 8, on 60 % of the rows (at most 20,000), quantized exactly. The input
model (treewidth 4, --seconds of search) is learnt from the same rows and judged on the others, at most 10,000:

- `independent`, `Chow-Liu`, `learnt`: mean log-likelihood of a row's comparator bits, if they were independent, in the
  tree of highest mutual information (Chow and Liu 1968), and in the model; the first two with half a row in each cell.
- `visits`, `toggles`: mean error of the frequencies at which nodes are visited, and comparators change between rows
  that are independent, against those counted (percentage points); `counted`: of the frequencies of the training rows.
- `random`, `drawn`, `all`: share of the leaves that any row reaches which 10,000 random words reach, 10,000 rows of the
  model, and these with the rows for leaves that they miss (`stimuli`).
- `scores`, `labels`: of 200 mutants in which one leaf has the opposite values, 100 of them at the rarest leaves, how
  many differ in a score, and in a label, on 10,000 random words and on the vectors of `check --inputs` alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from tools import arguments, save, show

import forestc
from forestc.checks.vectors import vectors
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import Below
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import word_range
from forestc.inputs.coverage import Coverage, Reachable
from forestc.inputs.learn import independent_log_likelihood
from forestc.inputs.stimuli import stimuli
from forestc.inputs.text import printed
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.batches import ArrayRows

FILES = ("magic04", "spambase", "adult", "unsw_nb15_82k")
TREES, DEPTH = (20, 100), 8
MOST_ROWS, MOST_TEST = 20_000, 10_000
COUNT = 10_000
MUTANTS = 200
TITLE = "input models of forests"


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join(('bc', *FILES))}; others stay in FILE")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else ("bc", *(FILES if options.data else ()))
    rows: list[dict[str, Any]] = []
    if options.only and options.json and options.json.exists():
        rows = [r for r in json.loads(options.json.read_text())["rows"] if r["model"].split()[0] not in names]
    for name in names:
        X, y = read(name, options.data)
        X, Xt, y, _ = train_test_split(np.float64(np.float32(X)), y, test_size=0.4, random_state=0, stratify=y)
        for trees in TREES:
            model = RandomForestClassifier(trees, max_depth=DEPTH, random_state=0).fit(X[:MOST_ROWS], y[:MOST_ROWS])
            rows.append(of_model(f"{name} {trees}", model, X[:MOST_ROWS], Xt, options.seconds))
            save(TITLE, rows, options.json)
    show(TITLE, rows, options.json)


def of_model(name: str, fitted: Any, X: NDArray[Any], Xt: NDArray[Any], seconds: float) -> dict[str, Any]:
    Xt = Xt[:MOST_TEST]
    source = forestc.load(fitted)
    forest = forestc.quantize(source, level=0)
    start = time.perf_counter()
    inputs, _ = forestc.model_inputs(source, X, seconds=seconds)
    row: dict[str, Any] = {"model": name, "rows": len(X), "comparators": inputs.comparators, "kept": inputs.kept}
    row |= {"learn s": round(time.perf_counter() - start, 1), "file kB": round(len(printed(inputs)) / 1000)}
    fit_bits, test_bits = bits(forest, X), bits(forest, Xt)
    row |= {
        "independent": round(independent_log_likelihood(inputs, X, Xt), 2),
        "Chow-Liu": round(chow_liu(fit_bits, test_bits), 2),
        "learnt": round(float(inputs.log_likelihood(Xt).mean()), 2),
    }
    row |= nearness(forest, source, inputs, X, Xt, fit_bits, test_bits)
    row |= reached(forest, source, inputs)
    print(row, flush=True)
    return row


def bits(forest: Forest, X: NDArray[Any]) -> NDArray[np.bool_]:
    """(rows, distinct thresholds) whether a value is below."""
    words = encode_numbers(forest, X)
    below = [
        (condition.feature, condition.test.threshold)
        for condition in forest.conditions
        if isinstance(condition.test, Below)
    ]
    return np.stack([words[:, feature] < threshold for feature, threshold in sorted(set(below))], axis=1)


def chow_liu(fit: NDArray[np.bool_], test: NDArray[np.bool_]) -> float:
    """The mean log-likelihood of the tree of highest mutual information."""
    A = fit.astype(np.float32)
    n, ones, both = len(A), A.sum(axis=0, dtype=np.float64), (A.T @ A).astype(np.float64)
    counts = {(1, 1): both, (1, 0): ones[:, None] - both, (0, 1): ones[None, :] - both}
    counts[0, 0] = n - counts[1, 1] - counts[1, 0] - counts[0, 1]
    side = {1: (ones + 1) / (n + 2), 0: (n - ones + 1) / (n + 2)}
    shared = np.zeros_like(both)
    for (a, b), count in counts.items():
        p = (count + 0.5) / (n + 2)
        shared += p * np.log(p / (side[a][:, None] * side[b][None, :]))
    tree = minimum_spanning_tree(np.triu(shared.max() + 1 - shared, 1)).tocoo()
    degree = np.bincount(np.concatenate([tree.row, tree.col]), minlength=fit.shape[1])
    total = np.zeros(len(test))
    for u, v in zip(tree.row, tree.col, strict=True):
        table = np.array([[counts[a, b][u, v] for b in (0, 1)] for a in (0, 1)])
        total += np.log((table + 0.5) / (n + 2))[test[:, u].astype(int), test[:, v].astype(int)]
    logs = np.log(np.array([side[0], side[1]]))
    for v in np.flatnonzero(degree != 1):
        total -= (degree[v] - 1) * logs[test[:, v].astype(int), v]
    return float(total.mean())


def nearness(
    forest: Forest, source: Forest, inputs: Any, X: Any, Xt: Any, fit: NDArray[np.bool_], test: NDArray[np.bool_]
) -> dict[str, Any]:
    """Errors of visits and of toggle rates against the held-out rows, in percentage points."""
    drawn = inputs.drawn_for(source, 100_000, 1, (forest,)).X
    truth, model, train = (visits(forest, encode_numbers(forest, table)) for table in (Xt, drawn, X))
    rates = [2 * p * (1 - p) for p in (test.mean(axis=0), bits(forest, drawn).mean(axis=0), fit.mean(axis=0))]
    return {
        "visits %": points(model - truth),
        "visits % counted": points(train - truth),
        "toggles %": points(rates[1] - rates[0]),
        "toggles % counted": points(rates[2] - rates[0]),
    }


def points(difference: NDArray[np.float64]) -> float:
    return round(100 * float(np.abs(difference).mean()), 3)


def covered(forest: Forest, words: NDArray[np.int64]) -> Coverage:
    coverage = Coverage.of(forest)
    for start in range(0, len(words), 8192):
        coverage.add(evaluate_quickly(forest, words[start : start + 8192]).leaves)
    return coverage


def visits(forest: Forest, words: NDArray[np.int64]) -> NDArray[np.float64]:
    coverage = covered(forest, words)
    counts = [coverage.visits(index)[1:] for index in range(len(forest.trees))]  # the root is visited by all
    return np.concatenate(counts) / len(words)


def reached(forest: Forest, source: Forest, inputs: Any) -> dict[str, Any]:
    """Leaves reached, and mutants found, by random words and by stimuli."""
    random = np.random.default_rng(0)
    spans = [word_range(feature.number, feature.missing) for feature in forest.features]
    words = np.stack([random.integers(span.low, span.top, COUNT, endpoint=True) for span in spans], axis=1)
    start = time.perf_counter()
    made = stimuli(inputs, source, forest, COUNT)
    seconds = time.perf_counter() - start
    possible = Reachable.of(forest)
    coverage = {
        "random": covered(forest, words),
        "drawn": made.coverage,
        "all": covered(forest, encode_numbers(forest, made.rows)),
    }
    leaves = [
        (index, node)
        for index, (tree, own) in enumerate(zip(forest.trees, possible.nodes, strict=True))
        for node in np.flatnonzero((tree.left == LEAF) & own).tolist()
    ]
    row: dict[str, Any] = {"leaves": len(leaves)}
    for kind, visited in coverage.items():
        count = sum(bool(visited.leaf_visits[index][node]) for index, node in leaves)
        row[f"{kind} %"] = round(100 * count / len(leaves), 2)
    row |= {"stimuli": len(made.rows), "stimuli s": round(seconds, 1)}
    rarity = np.argsort([coverage["drawn"].leaf_visits[index][node] for index, node in leaves], kind="stable")
    rare = rarity[: MUTANTS // 2].tolist()
    chosen = [leaves[place] for place in [*rare, *random.choice(len(leaves), MUTANTS - len(rare), replace=False)]]
    every = [
        batch.words
        for batch in vectors(forest, ArrayRows(np.zeros((0, forest.columns))), 0, inputs=ArrayRows(made.rows))
    ]
    for kind, own in (("random", words), ("inputs", np.concatenate(every))):
        scores, labels = zip(*found_by(forest, own, chosen), strict=True)
        row |= {f"scores {kind}": sum(scores), f"labels {kind}": sum(labels)}
    return row


def found_by(
    forest: Forest, words: NDArray[np.int64], leaves: Sequence[tuple[int, int]]
) -> Iterator[tuple[bool, bool]]:
    """For each leaf, whether scores, and whether labels, tell the forest from one whose leaf has the opposite values in
    its tree's range, or 1 more where that is the same."""
    truth = evaluate_quickly(forest, words)
    for index, node in leaves:
        tree = forest.trees[index]
        values, leaf = tree.values.copy(), tree.leaf[node]
        turned = values.min() + values.max() - values[leaf]
        values[leaf] = turned if (turned != values[leaf]).any() else values[leaf] + 1
        trees = (*forest.trees[:index], changed_tree(tree, values=values), *forest.trees[index + 1 :])
        there = truth.leaves[:, index] == tree.ids[node]
        if not there.any():
            yield False, False
            continue
        output = evaluate_quickly(changed(forest, trees=trees), words[there])
        yield bool((output.scores != truth.scores[there]).any()), bool((output.index != truth.index[there]).any())


if __name__ == "__main__":
    main()
