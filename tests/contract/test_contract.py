"""Tests the contract of all frontends: the library's own leaves, scores and decisions on hard rows."""

from __future__ import annotations

import pytest
from contract.agree import assert_agrees
from contract.kinds import BY_MODULE, FILES, KINDS
from thinned import thinned

from forestc.forest.text import parse_forest, print_forest
from forestc.frontends.kinds import KINDS as ROWS
from forestc.frontends.kinds import LIVE, TEXT, kind_of
from forestc.frontends.shared.content import Content

# Of each module at least one model runs always.
DEFAULT = [case for names in BY_MODULE.values() for case in thinned(sorted(names), keep=1 + (len(names) - 1) * 2 // 3)]


@pytest.mark.each_case
@pytest.mark.parametrize("kind", DEFAULT)
def test_leaves_scores_and_decisions_equal_the_library(kind):
    forest = assert_agrees(KINDS[kind](), 1_500)
    text = print_forest(forest)
    assert print_forest(parse_forest(text)) == text


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_many_rows_agree_with_the_library(kind):
    assert_agrees(KINDS[kind](), 100_000, seed=1)


def test_every_row_of_the_table_has_models_here():
    files = {kind_of(Content(make(), "m")).name for make in FILES.values()}
    assert files == {row.name for row in ROWS if not row.do and row is not TEXT}
    assert set(LIVE) <= set(BY_MODULE)
