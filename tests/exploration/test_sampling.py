"""Tests the journal of a search that was killed, or of one with a damaged file."""

from __future__ import annotations

import pytest

from forestc.errors import ForestcError
from forestc.exploration import sampling
from forestc.exploration.goals import goals_of

GOALS = goals_of(None, "xcup", None)


def test_a_line_that_was_not_written_to_its_end_is_left_out(tmp_path):
    study = sampling.opened(tmp_path, None, GOALS, 0, resume=False)
    for _ in range(3):
        study.ask()
    journal = tmp_path / sampling.JOURNAL
    journal.write_bytes(journal.read_bytes()[:-9])
    for _ in range(2):
        sampling.mend(tmp_path)
        sampling.opened(tmp_path, None, GOALS, 0, resume=True).ask()
    assert len(sampling.opened(tmp_path, None, GOALS, 0, resume=True).trials) == 4


def test_a_damaged_journal_is_named(tmp_path):
    sampling.opened(tmp_path, None, GOALS, 0, resume=False)
    journal = tmp_path / sampling.JOURNAL
    journal.write_bytes(b"{not JSON\n" + journal.read_bytes())
    with pytest.raises(
        ForestcError, match=r"storage.log: .* can't be opened .*; remove it: resume=True then tries the same"
    ):
        sampling.opened(tmp_path, None, GOALS, 0, resume=True)
