"""What fuzzing found stays found: each input is a forest or a ForestcError, in bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest

from forestc.errors import ForestcError
from forestc.forest.verify import verify
from forestc.frontends import FILES

FINDINGS = sorted(path for path in (Path(__file__).parent / "findings").iterdir() if path.suffix != ".md")
READERS = {"json": ".json", "ubj": ".ubj", "lightgbm": ".txt", "onnx": ".onnx", "treelite": ".tl"}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.name[:40])
def test_a_finding_is_a_forest_or_an_error(path):
    read = FILES[READERS[path.name.split("-")[0]]]
    try:
        forest = read(path.read_bytes(), path.name)
    except ForestcError as error:
        assert str(error) and "\n" not in str(error)
    else:
        verify(forest)
