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
    """Turns a model into the image that an engine loads.

    The image is compared with the quantized forest.

    Parameters
    ----------
    source : str, path, fitted model or Design
        A model that `load` takes, to be quantized; or a compiled design, whose quantized forest is used.
    rows : str, path, array or data frame, optional
        With a model: rows for its passes.
    out : str or path, optional
        The image to write. Default: nothing is written.
    engine : str or path
        A folder that `make_engine` wrote.
    ranges : str, path or dict, optional
        Ranges of the features, used instead of rows.
    held_out : str, path, array, pair (rows, labels) or float, optional
        Rows that score passes, or the share of the rows to set aside.
    label : str, list of str or array of shape (rows,) or (rows, targets), optional
        The column of the labels, several for several targets; or the labels themselves.
    level : int, optional
        0 (exact) to 3 (smallest). Default: 1.
    tolerance : float or str, optional
        At levels 2 and 3: the accuracy that may be lost on other rows.
    passes : str or sequence of Pass, optional
        Passes to run instead of the level's.
    trust_pickle : bool, default=False
        Allow opening pickles. Opening a pickle runs the code in it.
    iterations : int or "best", optional
        Boosting iterations to read, as in `load`.
    progress : callable, optional
        Called with the name of each stage.

    Returns
    -------
    dict
        The figures of `forestc image --json`: `bytes`, `clocks_per_row`, `nodes`, and in `columns` the words of each
        column of a row.

    Raises
    ------
    OptionError
        If no engine is given, or options are invalid.
    ModelError
        If the model can't be read exactly.
    ForestcError
        If the model does not fit the engine, or a file can't be read or written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> figures = forestc.make_engine("engine", trees=4, nodes=64, features=4, classes=3, walkers=1)
    >>> forestc.make_image(model, X, engine="engine")["nodes"]
    7
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
