"""Opens the inputs of commands: models, compiled folders, input models and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest
from forestc.inputs.model import InputModel
from forestc.inputs.text import read_inputs
from forestc.manifest.design import MANIFEST, Design, open_design
from forestc.options.shared import DrawnRows


def open_source(source: object, *, trust_pickle: bool, iterations: int | str | None) -> Forest | Design:
    """Returns the Design of a compiled folder, or the Forest of a model. Raises ForestcError."""
    from forestc.frontends import load  # Commands on folders do not need the readers of all libraries.

    if isinstance(source, str | Path) and (Path(source) / MANIFEST).is_file():
        source = open_design(source)
    if isinstance(source, Design):
        load(source.forest, iterations=iterations)  # raises if a number of iterations is given
        return source
    return load(source, trust_pickle=trust_pickle, iterations=iterations)


def design_of(given: Design | str | Path) -> Design:
    """Returns a Design as it is, or reads it from its folder. Raises ForestcError."""
    return given if isinstance(given, Design) else open_design(given)


def input_model_of(given: InputModel | str | Path) -> InputModel:
    """Returns an InputModel as it is, or reads it from its file. Raises ModelError."""
    return given if isinstance(given, InputModel) else read_inputs(given)


def rows_or_drawn(rows: object, options: DrawnRows, design: Design) -> Any:
    """Returns the given rows, or rows drawn from an input model. Raises OptionError if both are given."""
    if options.inputs is None:
        return rows
    refuse_both(rows, options.inputs)
    model = input_model_of(options.inputs)
    return model.drawn_for(design.model, options.count, options.seed, (design.forest,))


def refuse_both(rows: object, inputs: object) -> None:
    if rows is not None and inputs is not None:
        raise OptionError(
            f"{opt.rows} are given, too",
            where=opt.inputs,
            do=f"remove {opt.inputs} to take the rows of the file, or {opt.rows} to take those of the input model",
        )
