"""Opens the inputs of commands: models and compiled folders."""

from __future__ import annotations

from pathlib import Path

from forestc.forest.ir import Forest
from forestc.manifest.design import MANIFEST, Design, open_design


def open_source(source: object, *, trust_pickle: bool, iterations: int | str | None) -> Forest | Design:
    """Returns the Design of a compiled folder, or the Forest of a model. Raises ForestcError."""
    from forestc.frontends import load  # Commands on folders do not need the readers of all libraries.

    if isinstance(source, str | Path) and (Path(source) / MANIFEST).is_file():
        source = open_design(source)
    if isinstance(source, Design):
        load(source.forest, iterations=iterations)  # raises if a number of iterations is given
        return source
    return load(source, trust_pickle=trust_pickle, iterations=iterations)
