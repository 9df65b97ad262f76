"""Tests that inputs found by fuzzing stay fixed: each gives a forest or a ForestcError, in bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest

from forestc.errors import ForestcError
from forestc.forest.verify import verify
from forestc.frontends import read_bytes

FINDINGS = sorted(path for path in (Path(__file__).parent / "findings").iterdir() if path.suffix != ".md")
SUFFIXES = {"json": ".json", "ubj": ".ubj", "lightgbm": ".txt", "onnx": ".onnx", "treelite": ".tl"}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.name[:40])
def test_a_finding_is_a_forest_or_an_error(path):
    try:
        forest = read_bytes(path.read_bytes(), path.name + SUFFIXES[path.name.split("-")[0]])
    except ForestcError as error:
        assert str(error) and "\n" not in str(error)
    else:
        verify(forest)
