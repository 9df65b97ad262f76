"""Chooses which cases of a long list run always; the others are slow tests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def only(cases: Collection[Any], *places: int) -> list[Any]:
    """Returns cases for `pytest.mark.parametrize`; only those at the given indices run always."""
    assert set(places) <= set(range(len(cases)))
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*each, marks=() if k in places else pytest.mark.long) for k, each in enumerate(values)]


def thinned(cases: Collection[Any], keep: int) -> list[Any]:
    """Returns cases for `pytest.mark.parametrize`; only `keep` of them, evenly spread, run always."""
    count = len(cases)
    assert 0 < keep <= count
    return only(cases, *(k for k in range(count) if k * keep // count != (k - 1) * keep // count))
