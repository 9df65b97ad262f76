"""What `MODEL|DIR` stands for: a model, or a compiled folder."""

from __future__ import annotations

from pathlib import Path

from forestc.forest.ir import Forest
from forestc.frontends import load
from forestc.manifest.design import MANIFEST, Design, open_design


def open_source(source: object, *, trust_pickle: bool, iterations: int | str | None) -> Forest | Design:
    """The Design of a compiled folder, or the Forest of a model as `load` takes it. Raises ForestcError."""
    if isinstance(source, str | Path) and (Path(source) / MANIFEST).is_file():
        source = open_design(source)
    if isinstance(source, Design):
        load(source.forest, iterations=iterations)  # refuses a number of iterations
        return source
    return load(source, trust_pickle=trust_pickle, iterations=iterations)
