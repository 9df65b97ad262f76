"""Damaged copies of each file that forestc reads back are read as they are meant, or refused by file and field."""

from __future__ import annotations

import pytest
from files_read_back import KINDS, tally, unpack


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    unpack(folder)
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_some_copies_are_read_or_refused(unpacked, name):
    found = tally(name, 10, unpacked)
    assert found.read + found.refused == 10 and not found.faults, "\n".join(found.faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_500_copies_are_read_or_refused(unpacked, name):
    found = tally(name, 500, unpacked)
    assert found.read + found.refused == 500 and not found.faults, "\n".join(found.faults[:10])
