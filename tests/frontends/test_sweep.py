"""A few models of the sweep (`python tests/sweep.py`), some of every source."""

from __future__ import annotations

import pytest
from example_counts import examples
from sweep import SOURCES, differences


@pytest.mark.parametrize("first", range(0, examples(80), 10))
def test_random_models_are_read_exactly(first):
    found = {seed: differences(seed, 100) for seed in range(first, first + 10)}
    assert {seed: one.differing for seed, one in found.items() if one.differing} == {}
    assert all(one.source in SOURCES for one in found.values())
