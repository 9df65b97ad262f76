"""Fuzzes the readers of model files, guided by coverage, with atheris.

    python tests/fuzz/readers.py json|ubj|lightgbm|onnx|file [CORPUS] [-max_total_time=180] [libFuzzer options]

Whatever the bytes are, a reader must give a valid forest or a ForestcError. Anything else ends the run, and the input
goes to tests/fuzz/findings, where test_findings.py runs it from then on. CORPUS starts from small models of the test
cases.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

with atheris.instrument_imports(include=["forestc.frontends", "forestc.forest"]):
    from mutations import read_json, read_ubj

    from forestc.errors import ForestcError
    from forestc.forest.verify import verify
    from forestc.frontends import read_bytes
    from forestc.frontends.lightgbm.reader import read_text
    from forestc.frontends.onnx.reader import read_bytes as read_onnx


# `file` recognizes the kind by content, as `load` does.
READERS = {"json": read_json, "ubj": read_ubj, "lightgbm": read_text, "onnx": read_onnx, "file": read_bytes}
SUFFIXES = {"json": ".json", "ubj": ".ubj", "lightgbm": ".txt", "onnx": ".onnx"}


def seeds(reader: str) -> list[bytes]:
    """Returns small valid models for a reader."""
    if reader == "file":
        return [seed for other in SUFFIXES for seed in seeds(other)]
    cases = HERE.parent / "cases"
    if reader == "onnx":
        from onnx_models import STUMP, TREES, classifier, ensemble5, regressor

        models = [regressor(TREES), classifier([STUMP, *TREES], ["n", "y"]), ensemble5(TREES), regressor([STUMP], 2)]
        return [model.SerializeToString() for model in models]
    folder = "lightgbm" if reader == "lightgbm" else "xgboost"
    paths = sorted([*cases.glob(f"{folder}/*{SUFFIXES[reader]}"), *cases.glob(f"lightgbm/*{SUFFIXES[reader]}")])
    return [path.read_bytes() for path in paths if path.stat().st_size < 12_000]


def scorer(reader: str, data: bytes) -> None:
    """Reads the bytes. Raises any exception that is no ForestcError."""
    with contextlib.suppress(ForestcError):
        verify(READERS[reader](data, "fuzz"))


def main() -> None:
    """Fuzzes until libFuzzer's time is up."""
    reader, *options = sys.argv[1:]
    if not options or options[0].startswith("-"):
        options.insert(0, tempfile.mkdtemp(prefix=f"forestc-{reader}-"))
    corpus = Path(options[0])
    corpus.mkdir(exist_ok=True, parents=True)
    for index, data in enumerate(seeds(reader)):
        (corpus / f"seed{index}").write_bytes(data)
    findings = HERE / "findings"
    arguments = [sys.argv[0], *options, "-rss_limit_mb=4096", "-timeout=20", f"-artifact_prefix={findings}/{reader}-"]
    atheris.Setup(arguments, lambda data: scorer(reader, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
