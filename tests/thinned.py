"""Which cases of a long list run always."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def thinned(cases: Collection[Any], keep: int) -> list[Any]:
    """Cases for `pytest.mark.parametrize`: `keep` of them, evenly spread, run always; the others are slow tests."""
    count, marked = len(cases), []
    for place, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        always = place * keep // count != (place - 1) * keep // count
        marked.append(pytest.param(*values, marks=() if always else pytest.mark.slow))
    assert 0 < keep <= count
    return marked
