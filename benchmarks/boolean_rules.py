"""Compares decision rules with the published tables of Dash, Gunluk and Wei (2018), by the paper's protocol.

    python benchmarks/boolean_rules.py --data DIR --json FILE [--peer PYTHON]

The protocol: ten stratified folds; `forestc.papers.BooleanRuleClassifier` makes its conditions and learns a DNF in each
training part, with the complexity C that inner folds choose. The smallest C wins whose accuracy is within half a
standard error of the best; larger ones are tried until three in a row bring no gain. Accuracy (Table 1) and complexity
(Table 2), with standard errors, stand beside the paper's column generation (CG) and RIPPER. `at_CG_complexity` is
the accuracy if C is the paper's complexity, rounded down. A training part of over 5,000 rows has three inner folds; of
over 10,000 rows, it uses one of them. The sets in `SECONDS` run five of the ten folds. Two more rules are learnt on all
rows: tic-tac-toe at C = 32, and transfusion at C = 15, for which the paper proves a gap of 0.7 %.

PYTHON is an interpreter that can import aix360. Its BooleanRuleCG learns from the same conditions in the first two of
the same folds; a third of the training rows chooses its penalty. FILE is written after every set.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import table
from ledger import Case, Ledger, Steps
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from tools import arguments, published

from forestc.papers import BooleanRuleClassifier
from forestc.papers.rules.boolean_rules_table import condition_bits, conditions_of, table_columns

# SETS holds the file and the positive label, by name. The paper does not name the positive labels. Where its methods AM
# and BCD have complexity 0, their accuracy shows that the common class is the negative one.
SETS = {
    "heart": ("heart_statlog", "present"),
    "ILPD": ("ilpd", "2"),
    "liver": ("bupa", "2"),
    "pima": ("pima", "1"),
    "tic-tac-toe": ("tic_tac_toe", "positive"),
    "transfusion": ("transfusion", "1"),
    "WDBC": ("wdbc", "malignant"),
    "adult": ("adult", ">50K"),
    "bank-mkt": ("bank_additional_full", "yes"),
    "magic": ("magic04", "h"),
    "mushroom": ("mushroom", "p"),
}
PAPER = published("boolean_rules")
COMPLEXITIES = (1, 2, 4, 6, 9, 12, 16, 24, 32, 48)
LARGE_COMPLEXITIES = (4, 10, 18, 32, 60, 100)
# SECONDS limits a rule of the inner folds, by set; USUAL_SECONDS limits one of another set. Others get thrice that.
SECONDS = {"tic-tac-toe": 1.0, "mushroom": 8.0, "adult": 12.0, "bank-mkt": 2.0, "magic": 12.0}
USUAL_SECONDS = 0.3
MARGIN = 0.5  # allows the chosen C this many standard errors less than the best
PATIENCE = 3  # stops trying larger C after this many without a gain
LARGE, HUGE = 5000, 10_000  # rows of a training part above which it has three inner folds, and uses one of these
FEW_FOLDS = 5  # folds of the sets in SECONDS
PEER_FOLDS, PEER_SECONDS = 2, 300  # folds of aix360, and seconds of each
TITLE = "decision rules beside the published tables"
PEER = Path(__file__).parent / "papers/boolean_rules/aix360_rules.py"


def main() -> None:
    parser = arguments(__doc__, "json", "data!", "only")
    parser.add_argument("--folds", type=int, default=10, help="how many of the ten folds to run")
    parser.add_argument("--inner", type=int, default=10, help="inner folds that choose C")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has aix360")
    parser.add_argument("--seconds", type=float, help="a rule of the inner folds; thrice that after")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    proofs = [("tic-tac-toe", 32), ("transfusion", 15)]
    if options.small:
        options.only, options.folds, options.inner, options.seconds, proofs = "transfusion", 1, 2, 0.02, proofs[1:]
    if not options.peer:
        print("aix360 is skipped: no interpreter is given by --peer PYTHON")
    ledger = Ledger(TITLE, options, ("highspy", "scipy"), ("folds", "inner", "seconds", "seed"))
    cases = [{"set": name} for name in (options.only.split(",") if options.only else SETS)]
    ledger.fill(cases, measured, options)
    ledger.fill([{"set": name, "C": C} for name, C in proofs], proved, options, part="proofs")
    if options.peer:
        ledger.fill(cases, peer, {row["set"]: row for row in ledger.rows}, options, part="aix360")
    ledger.show()


def read(name: str, data: Path) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Reads a table, whose columns are either numbers or text, and its labels as booleans."""
    file, positive = SETS[name]
    text = table(file, data)
    columns: list[NDArray[Any]] = []
    for column in text[:, :-1].T:
        try:
            columns.append(np.where(column == "", "nan", column).astype(np.float64))
        except ValueError:
            columns.append(column.astype(object))
    return np.stack(columns, axis=1), text[:, -1] == positive


def measured(options: Any, case: Case) -> Steps:
    """Yields the line of a data set: mean accuracy and complexity over the outer folds, beside the paper's figures."""
    name = case["set"]
    X, y = read(name, options.data)
    yield [X, y], None
    outer = StratifiedKFold(10, shuffle=True, random_state=options.seed)
    folds = list(outer.split(X, y))[: min(options.folds, FEW_FOLDS) if name in SECONDS else options.folds]
    start, limit = time.perf_counter(), seconds_of(name, options)
    (cg, cg_size), (ripper, ripper_size) = (PAPER[name, method] for method in ("CG", "RIPPER"))
    accuracy, complexity, chosen, seconds, at_paper = [], [], [], [], []
    for train, test in folds:
        C = best_complexity(X[train], y[train], limit, options)
        model = learner(options.seed, 3 * limit, complexity=C)
        begin = time.perf_counter()
        model.fit(X[train], y[train])
        seconds.append(time.perf_counter() - begin)
        accuracy.append(100 * model.score(X[test], y[test]))
        complexity.append(model.complexity_)
        chosen.append(C)
        same = learner(options.seed, 3 * limit, complexity=int(float(cg_size.split()[0]))).fit(X[train], y[train])
        at_paper.append(100 * same.score(X[test], y[test]))
    yield {
        "folds": len(accuracy), "accuracy": spread(accuracy), "CG": cg, "RIPPER": float(ripper),
        "complexity": spread(complexity), "CG_complexity": cg_size, "RIPPER_complexity": float(ripper_size),
        "at_CG_complexity": spread(at_paper), "C": " ".join(map(str, chosen)),
        "by_fold": " ".join(f"{value:.1f}" for value in accuracy), "s_a_rule": round(3 * limit, 2),
        "limit_reached": sum(s > 2.7 * limit for s in seconds),
        "fit_s": round(float(np.mean(seconds)), 2), "s": round(time.perf_counter() - start),
    }  # fmt: skip


def spread(values: Sequence[float]) -> str:
    """Formats the mean, with its standard error in parentheses."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.1f} ({error:.1f})"


def seconds_of(name: str, options: Any) -> float:
    return float(options.seconds or SECONDS.get(name, USUAL_SECONDS))


def learner(seed: int, seconds: float, **parameters: Any) -> BooleanRuleClassifier:
    return BooleanRuleClassifier(time_limit=seconds, random_state=seed, **parameters)


def peer(rows: Mapping[str, Mapping[str, Any]], options: Any, case: Case) -> Steps:
    """Yields the figures of aix360's rules on the conditions of the first folds, beside those of a row of ours."""
    row = rows[case["set"]]
    X, y = read(row["set"], options.data)
    yield [X, y, PEER, row["by_fold"]], None
    outer = StratifiedKFold(10, shuffle=True, random_state=options.seed)
    accuracy, complexity, seconds = [], [], []
    folds = list(outer.split(X, y))[: min(PEER_FOLDS, row["folds"])]
    for train, test in folds:
        columns = table_columns(X)
        names = [f"x{index}" for index in range(len(columns))]
        conditions = conditions_of([column[train] for column in columns], names, np.ones(len(train)))
        labels = [[c.name, c.relation, "NaN" if c.value is None else c.value] for c in conditions]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fold.npz"
            np.savez(path, bits=condition_bits(conditions, columns), y=y, train=train, test=test)
            command = [options.peer, str(PEER), str(path), str(options.seed), str(MARGIN)]
            try:
                done = subprocess.run(
                    command, input=json.dumps(labels), capture_output=True, text=True, check=True, timeout=PEER_SECONDS
                )
            except subprocess.TimeoutExpired:
                yield {"folds": len(folds), "aix360_fit_s": f"no rule in {PEER_SECONDS} s"}
                return
        figures = json.loads(done.stdout.splitlines()[-1])
        accuracy.append(100 * figures["accuracy"])
        complexity.append(figures["complexity"])
        seconds.append(figures["seconds"])
    ours = [float(value) for value in row["by_fold"].split()][: len(folds)]
    yield {
        "folds": len(folds), "accuracy": spread(ours), "aix360": spread(accuracy),
        "complexity": row["complexity"], "aix360_complexity": spread(complexity), "fit_s": row["fit_s"],
        "aix360_fit_s": round(float(np.mean(seconds)), 2),
    }  # fmt: skip


def best_complexity(X: NDArray[Any], y: NDArray[np.bool_], seconds: float, options: Any) -> int:
    """Returns the complexity C that inner folds of a training part choose: the smallest one whose mean accuracy is
    within `MARGIN` standard errors of the best."""
    large = len(y) > LARGE
    inner = StratifiedKFold(3 if large else options.inner, shuffle=True, random_state=options.seed)
    folds = list(inner.split(X, y))[: 1 if len(y) > HUGE else None]
    models = [learner(options.seed, seconds, warm_start=True) for _ in folds]
    rows = sum(len(held) for _, held in folds)
    complexities = LARGE_COMPLEXITIES if large else COMPLEXITIES
    means: list[float] = []
    for C in complexities:
        right = [
            (model.set_params(complexity=C).fit(X[fit], y[fit]).predict(X[held]) == y[held]).sum()
            for model, (fit, held) in zip(models, folds, strict=True)
        ]
        means.append(float(sum(right)) / rows)
        if len(means) > np.argmax(means) + PATIENCE:
            break
    best = max(means)
    error = np.sqrt(best * (1 - best) / rows)
    return complexities[int(np.flatnonzero(np.array(means) >= best - MARGIN * error)[0])]


def proved(options: Any, case: Case) -> Steps:
    """Learns one rule on all rows; yields its loss with the proved bound."""
    name, C = case["set"], case["C"]
    X, y = read(name, options.data)
    yield [X, y], None
    model = learner(options.seed, 12 * seconds_of(name, options), complexity=C)
    start = time.perf_counter()
    model.fit(X, y)
    yield {
        "loss": model.loss_, "bound": model.bound_, "gap_%": round(100 * model.gap_, 2),
        "optimal": model.bound_ == model.loss_, "complexity": model.complexity_,
        "accuracy_%": round(100 * model.score(X, y), 2), "s": round(time.perf_counter() - start, 1),
    }  # fmt: skip


if __name__ == "__main__":
    main()
