"""Rows that commands draw from an input model where none are given."""

from __future__ import annotations

from typing import Any

from forestc.errors import OptionError
from forestc.inputs.model import InputModel
from forestc.inputs.text import read_inputs
from forestc.manifest.design import Design
from forestc.options.shared import DrawnRows


def rows_or_drawn(rows: object, options: DrawnRows, design: Design) -> Any:
    """The given rows, or rows drawn for a design. Raises OptionError where both are given."""
    if options.inputs is None:
        return rows
    refuse_both(rows, options.inputs)
    model = options.inputs if isinstance(options.inputs, InputModel) else read_inputs(options.inputs)
    return model.drawn_for(design.model, options.count, options.seed, (design.forest,))


def refuse_both(rows: object, inputs: object) -> None:
    """Raises OptionError if both are given."""
    if rows is not None and inputs is not None:
        raise OptionError(
            "--rows and --inputs are both given",
            do="remove --inputs to take the rows of the file, or --rows to take those of the input model",
        )
