"""Compares Boolean rank-k factorization with the published errors and gaps of Kovacs, Gunluk and Hauser (2021).

    python benchmarks/binary_matrix_factorization.py --data DIR --seconds 1200 --json FILE

DIR holds a matrix bmf_NAME.csv.gz for each data set. For each matrix and rank the table shows three comparisons with
the paper: the error beside its column generation and its best other method (Table 4); MLP(1) beside Table 3, with a
star if it is proved to be the optimum of the relaxation; the gap of MIP(1) beside Table 2. The paper used CPLEX, 20
minutes for each matrix and rank.
"""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import table
from ledger import Case, Ledger, Steps
from numpy.typing import NDArray
from tools import arguments

from forestc.papers import BinaryMatrixFactorization

# PAPER holds, by matrix and rank: the error of the paper's column generation and of the best other method (Table 4),
# MLP(1) (Table 3), and the gap in percent (Table 2; None if the paper gives none).
TITLE = "boolean rank-k factorization beside published errors"
PAPER = {
    "zoo": {2: (271, 271, 272, 0.0), 5: (125, 133, 127, 0.0), 10: (40, 41, 38.8, 3.0)},
    "tumor": {2: (1411, 1408, 1409.8, 0.9), 5: (1029, 1055, 1019.3, 9.3), 10: (579, 583, 575.5, 28.4)},
    "hepatitis": {2: (1382, 1391, 1384, None), 5: (1228, 1228, 1041.1, None), 10: (910, 902, 734.8, None)},
    "heart": {2: (1185, 1187, 1185, None), 5: (736, 738, 736, None), 10: (419, 419, 419, None)},
    "audio": {2: (1499, 1499, 1499, None), 5: (1176, 1211, 1159.3, None), 10: (893, 919, 867.2, None)},
    "votes": {2: (2926, 2926, 2926, None), 5: (2272, 2293, 2135.5, None), 10: (1527, 1573, 1409.5, None)},
}


def main() -> None:
    parser = arguments(__doc__, "json", "data!", "only")
    parser.add_argument("--ranks", default="2,5,10", metavar="NUMBERS")
    parser.add_argument("--seconds", type=float, default=1200.0, help="for each matrix and rank; 0: no limit")
    parser.add_argument("--rounds", type=int, help="most rounds of column generation")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.small:
        options.only, options.ranks, options.seconds = "zoo", "2", 0.5
    names, ranks = options.only.split(",") if options.only else PAPER, map(int, options.ranks.split(","))
    cases = [{"matrix": name, "k": k} for name, k in product(names, ranks)]
    ledger = Ledger(TITLE, options, ("highspy", "scipy"), ("seconds", "rounds", "seed"))
    ledger.fill(cases, measured, options)
    better, equal = (sum(test(row["error"], row["paper"]) for row in ledger.rows) for test in (int.__lt__, int.__eq__))
    ledger.show(below_the_paper=better, equal_to_the_paper=equal)


def measured(options: Any, case: Case) -> Steps:
    X, k = bits(f"bmf_{case['matrix']}", options.data), case["k"]
    yield X, None
    start = time.perf_counter()
    model = BinaryMatrixFactorization(
        k, time_limit=options.seconds or None, max_iter=options.rounds, random_state=options.seed
    )
    made = model.inverse_transform(model.fit(X).transform(X))
    seconds = time.perf_counter() - start
    assert model.reconstruction_error_ == np.count_nonzero((made != X)[~np.isnan(X)])
    paper, other, relaxation, gap = PAPER[case["matrix"]][k]
    yield {
        "error": model.reconstruction_error_, "paper": paper, "other_methods": other, "bound": model.bound_,
        "MIP(1)": model.model_error_,
        "MLP(1)": f"{model.relaxation_:.1f}{'*' if model.relaxation_optimal_ else ''}",
        "paper_MLP(1)": relaxation, "MIP(1)_bound": model.model_bound_,
        "gap_%": round(100 * max(0.0, 1 - model.model_bound_ / model.model_error_), 2),
        "paper_gap_%": "" if gap is None else gap, "s": round(seconds, 1),
    }  # fmt: skip


def bits(name: str, data: Path) -> NDArray[np.float64]:
    """Reads a table as 0, 1 and NaN (an empty field)."""
    text = table(name, data)
    return np.where(text == "", "nan", text).astype(np.float64)


if __name__ == "__main__":
    main()
