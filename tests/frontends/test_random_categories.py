"""A few of the random models of frames with categories (`python tests/random_categories.py`)."""

from __future__ import annotations

import warnings
from collections import Counter

from example_counts import examples
from random_categories import differences


def test_random_models_with_categories_decide_as_their_library(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {seed: differences(seed, tmp_path) for seed in range(examples(80))}
    assert {seed: one for seed, one in found.items() if one[3]} == {}
    compared = Counter(library for library, what, *_ in found.values() if what.startswith("compared"))
    assert min(compared[library] for library in ("xgboost", "lightgbm", "sklearn")) >= 6
