"""Which column each feature reads: models, headers and kinds of rows at random, against the libraries."""

from __future__ import annotations

from collections import Counter

import pytest
from random_columns import check_case, random_case


@pytest.mark.filterwarnings("ignore")
def test_rows_are_matched_as_the_rule_says(tmp_path):
    found = Counter(check_case(random_case(seed), tmp_path) for seed in range(250))
    assert min(found["refused"], found["taken"], found["adopted"]) > 20
