"""Tests the contract of all frontends: the library's own leaves, scores and decisions on hard rows."""

from __future__ import annotations

import pytest
from contract.agree import assert_agrees
from contract.kinds import KINDS
from thinned import thinned

from forestc.forest.text import parse_forest, print_forest


@pytest.mark.each_case
@pytest.mark.parametrize("kind", thinned(sorted(KINDS), keep=len(KINDS) * 2 // 3))
def test_leaves_scores_and_decisions_equal_the_library(kind):
    forest = assert_agrees(KINDS[kind](), 1_500)
    text = print_forest(forest)
    assert print_forest(parse_forest(text)) == text


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_many_rows_agree_with_the_library(kind):
    assert_agrees(KINDS[kind](), 100_000, seed=1)
