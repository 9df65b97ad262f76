"""Decision rules beside AIX360's BooleanRuleCG: same rows, same literals, same seconds, the loss at equal complexity.

    python benchmarks/rule_peers.py --data DIR --json FILE

AIX360 minimizes the Hamming loss a row plus a price for each clause and each condition. Here the loss is minimized at
the complexity that it arrived at, in the seconds that it took (at least 1). Both objectives are shown: AIX360's own, at
its price, and the loss. All rows are training rows. Needs `pip install --no-deps aix360`, `pip install cvxpy ecos`.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from boolean_rules import read
from numpy.typing import NDArray
from papers.boolean_rules.binarization import Binarization, binarization
from tools import arguments, kept, save, show

from forestc.algorithms.covers.boolean_rules import RuleLimits, hamming_loss, learn_rules

TITLE = "decision rules beside AIX360"
MEASURES = ("forestc/algorithms/covers", "benchmarks/papers/boolean_rules")
PRICES = (0.01, 0.003, 0.001)
SOME = "heart,ILPD,liver,pima,tic-tac-toe,transfusion,WDBC,magic"


def main() -> None:
    parser = arguments(__doc__, MEASURES, "data!", "only")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each rule of each")
    options = parser.parse_args()
    if find_spec("aix360") is None:
        raise SystemExit("not measured: aix360 is not installed")
    if options.small:
        options.only, options.seconds = "transfusion", 1.0
    rows = kept(options)
    done = {row["set"] for row in rows}
    for name in (options.only or SOME).split(","):
        if name not in done:
            columns, y = read(name, options.data)
            made = binarization(columns)
            rows += [compared(name, made.transform(columns), y, made, price, options.seconds) for price in PRICES]
            save(TITLE, rows, options)
    show(TITLE, rows, options)


def compared(
    name: str, bits: NDArray[np.bool_], y: NDArray[np.bool_], made: Binarization, price: float, seconds: float
) -> dict[str, Any]:
    """One set at one price."""
    start = time.perf_counter()
    theirs = peer(bits, y, made, price, seconds)
    took = time.perf_counter() - start
    # an empty clause, which is always true and free there, is any literal and its complement here
    weight = np.ones(len(y))
    loss = hamming_loss(theirs, "dnf", bits, y, weight)
    size = sum(len(clause) + 1 for clause in theirs if clause)
    start = time.perf_counter()
    ours = learn_rules(bits, y, RuleLimits(max(1, size), time_limit=max(1.0, took)), groups=made.groups)
    objective = loss / len(y) + price * size, ours.loss / len(y) + price * ours.complexity
    return {
        "set": name, "rows": len(y), "price": price, "AIX360_loss": int(loss), "loss": int(ours.loss),
        "AIX360_complexity": size, "complexity": ours.complexity,
        "AIX360_objective": round(objective[0], 4), "objective": round(objective[1], 4),
        "bound": int(ours.bound), "AIX360_s": round(took, 1), "s": round(time.perf_counter() - start, 1),
    }  # fmt: skip


def peer(
    bits: NDArray[np.bool_], y: NDArray[np.bool_], made: Binarization, price: float, seconds: float
) -> list[tuple[int, ...]]:
    """The clauses that AIX360 chooses."""
    import pandas as pd
    from aix360.algorithms.rbm import BooleanRuleCG

    names = [(str(bit.feature), bit.relation, bit.value) for bit in made.bits]
    table = pd.DataFrame(
        bits.astype(int), columns=pd.MultiIndex.from_tuples(names, names=["feature", "operation", "value"])
    )
    model = BooleanRuleCG(lambda0=price, lambda1=price, timeMax=seconds, silent=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table, pd.Series(y.astype(int)))
    chosen = model.z.loc[:, np.asarray(model.w) > 0.5]
    return [tuple(np.flatnonzero(clause).tolist()) for clause in chosen.to_numpy().T]


if __name__ == "__main__":
    main()
