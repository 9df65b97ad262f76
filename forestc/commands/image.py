"""Implements `image`: turns a forest into the content of an engine's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.backends.engine import engine_of
from forestc.checks.agreement import agreement
from forestc.checks.walking import compare_image
from forestc.commands.compile import quantize
from forestc.commands.source import open_source
from forestc.engine.image import image_of, model_hash
from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.forest.words import word_note
from forestc.manifest.design import Design
from forestc.options.engine import ImageOptions
from forestc.options.fields import takes
from forestc.report.tables import Shown, titled
from forestc.rows.given import rows_for_model
from forestc.system.writing import replacing, writing


@takes(ImageOptions)
def make_image(options: ImageOptions) -> Shown:
    """Writes an image, and returns its figures: clocks a row, nodes, the words of the row's columns.

    The parameters are the fields of `forestc.options.engine.ImageOptions`. Raises ForestcError, with what does not fit.
    """
    if options.engine is None:
        raise OptionError("no engine is given", where="--engine", do="add --engine DIR")
    capacity, progress = engine_of(options.engine), options.progress
    forest, figures = _forest(options)
    image = image_of(forest, capacity, progress)
    progress("comparing the image with the forest")
    compare_image(forest, capacity, image)
    if options.out is not None:
        path = Path(options.out)
        with writing(path), replacing(path) as (new,):
            new.write_bytes(image.bytes)
    figures = {
        "out": None if options.out is None else str(options.out),
        "bytes": 4 * len(image.words),
        "clocks_per_row": max(image.clocks, capacity.beats),
        "slots": len(image.slots),
        "slots_of": capacity.slots,
        "nodes": sum(image.used),
        "most_nodes_of_a_walker": max(image.used),
        "nodes_of_a_walker": capacity.nodes,
        "hash": model_hash(forest).hex(),
        **figures,
        "columns": {str(feature.column): word_note(forest, index) for index, feature in enumerate(forest.features)},
    }
    return Shown(figures, titled(f"image of {forest.name}"))


def _forest(options: ImageOptions) -> tuple[Forest, dict[str, Any]]:
    options.progress("passes")
    model = open_source(options.source, trust_pickle=options.trust_pickle, iterations=options.iterations)
    if isinstance(model, Design):
        return model.forest, {}
    forest = quantize(
        model, options.rows, options.label, options.passes, held_out=options.held_out, ranges=options.ranges,
        level=options.level, tolerance=options.tolerance,
    )  # fmt: skip
    if options.rows is None:
        return forest, {}
    opened, model, _ = rows_for_model(options.rows, model, options.label, None)
    agreed = agreement(model, forest, opened)
    return forest, {"rows": agreed.rows, "agreement": agreed.agreement}
