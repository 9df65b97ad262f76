"""Makes conifer.json: small conifer models, rows, and what conifer's own emulator answers, for each mode of ap_fixed.

PYTHONPATH=.:tests CONIFER=FOLDER python tests/cases/make_conifer.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import conifer_emulator
import numpy as np
from conifer_models import model, rows, text

from forestc.forest.numbers import Fixed

CASES = [
    # rounding, overflow, order, reach, classes, convention, norm
    ("AP_TRN", "AP_WRAP", "sequential", 0.1, 2, None, 1),
    ("AP_TRN", "AP_SAT", "tree", 0.1, 3, "<=", 1),
    ("AP_RND", "AP_WRAP", "sequential", 0.1, 2, "<", 1),
    ("AP_RND", "AP_SAT", "sequential", 0.1, 2, None, 1),
    ("AP_RND_CONV", "AP_WRAP", "tree", 0.1, 2, None, 1),
    ("AP_RND_CONV", "AP_SAT", "sequential", 0.1, 2, "<", 1),
    # sums that overflow
    ("AP_TRN", "AP_SAT", "sequential", 0.9, 2, None, 1),
    ("AP_RND", "AP_SAT", "tree", 0.9, 3, None, 1),
    ("AP_TRN", "AP_WRAP", "sequential", 0.9, 2, "<", 1),
    # products that are rounded, or overflow
    ("AP_TRN", "AP_SAT", "sequential", 0.9, 2, None, 0.3),
    ("AP_RND", "AP_WRAP", "tree", 0.9, 3, None, 0.25),
    ("AP_RND_CONV", "AP_SAT", "sequential", 0.9, 2, None, 0.5),
    ("AP_RND", "AP_SAT", "sequential", 0.2, 2, None, 5.5),
    ("AP_RND_CONV", "AP_WRAP", "tree", 0.9, 2, None, 5.6875),
]


def main() -> None:
    rng, made = np.random.default_rng(0), []
    for rounding, overflow, order, reach, classes, convention, norm in CASES:
        kind = Fixed(7, 3, True, rounding, overflow)
        types = {"input": kind, "threshold": kind, "score": Fixed(9, 4, True, rounding, overflow)}
        given = model(rng, types, reach=reach, classes=classes, convention=convention, depth=2, norm=norm)
        X = rows(rng, given, kind, 40)
        with tempfile.TemporaryDirectory() as folder:
            names = {role: text(one) for role, one in types.items()}
            scores = conifer_emulator.scores(conifer_emulator.build(Path(folder), names, order), given, X)
        made.append({"model": given, "order": order, "rows": X.tolist(), "scores": scores.tolist()})
    lines = ",\n".join(json.dumps(case) for case in made)
    Path(__file__).with_name("conifer.json").write_text(f"[\n{lines}\n]\n")


main()
