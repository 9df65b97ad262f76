"""The variables of the templates of a component of ESPHome."""

from __future__ import annotations

from typing import Any

from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.options import COptions
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.types import FLOATS, label_type, score_type
from forestc.backends.c.values import shown
from forestc.backends.names import feature_name, identifier
from forestc.forest.ir import Forest


def view(forest: Forest, options: COptions) -> dict[str, Any]:
    """Returns the variables for a quantized forest. Raises OptionError as `inputs_of` does."""
    inputs = inputs_of(forest, options.c_inputs, options.c_types)
    row = row_type(forest, options.c_quantizer).name if options.quantizes else ""
    values = shown(inputs.forest, identifier(forest.name), options.c_values)
    places = [
        (f"row[{feature.column}]", row) if row else (inputs.place(index), inputs.kind(index))
        for index, feature in enumerate(forest.features)
    ]
    taken = [feature.missing and kind in FLOATS for feature, (_, kind) in zip(forest.features, places, strict=True)]
    several = len(forest.targets) > 1
    classes = [index for index, part in enumerate(forest.targets) if part.classes]
    suffixes = [f"_{index}" if several else "" for index in classes]
    one = "probability" if values is not None and values.probabilities else "value"
    return {
        "keys": [feature_name(index, feature.name) for index, feature in enumerate(forest.features)],
        "columns": [feature.column for feature in forest.features],
        "places": places,
        "missing": [str(nan).lower() for nan in taken] or ["false"],
        "row_type": row,
        "x_type": inputs.type,
        "struct": inputs.struct,
        "labels": [f"label{suffix}" for suffix in suffixes],
        "label_suffixes": suffixes,
        "label_type": label_type(forest),
        "scores": _numbered("score", forest.n_scores),
        "score_type": score_type(inputs.forest),
        "values": [] if values is None else _numbered(one, values.count),
        "values_are": "probabilities" if one == "probability" else "values",
        "value_type": "" if values is None else values.kind,
        "step": 1 if values is None else values.step,
    }


def _numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}_{index}" for index in range(count)]
