"""Implements `image`: turns forests into the content of an engine's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from forestc.backends.engine.files import engine_of
from forestc.backends.names import identifier
from forestc.checks.agreement import agreement
from forestc.checks.images import compare_image, compare_rows
from forestc.commands.compile import quantize
from forestc.commands.source import open_source
from forestc.engine.capacity import Capacity
from forestc.engine.image import EngineImage, image_of, model_hash
from forestc.errors import ModelError, OptionError, opt
from forestc.fields.options import takes
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_bits
from forestc.forest.words import word_note
from forestc.manifest.design import Design
from forestc.options.engine import ImageOptions
from forestc.options.shared import Progress
from forestc.passes.common_words import differing_missing, with_common_words
from forestc.report.tables import Shown, figures_table, titled
from forestc.rows.batches import Rows
from forestc.rows.given import refuse_sampled, rows_for_model
from forestc.system.writing import replacing, writing


@takes(ImageOptions)
def make_image(options: ImageOptions) -> Shown:
    """Turns a model into the image that an engine loads, or several models into images with common words.

    Each image is compared with its quantized forest; several also on the rows. With several models `rows` may be a
    tuple of the rows of each.

    Returns
    -------
    dict
        The figures of `forestc image --json`: `bytes`, `clocks_per_row`, `nodes`, and in `columns` the words of each
        column of a row. With several models `images` holds the figures of each by its name.

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
        raise OptionError("no engine is given", where=opt.engine, do=f"add {opt.engine:DIR}")
    capacity, sources = engine_of(options.engine), _several(options.source)
    made = [_quantized(options, source, rows) for source, rows in zip(sources, _rows_of(options, sources), strict=True)]
    if len(made) == 1:
        (only,) = made
        image = _image(only.forest, capacity, options.progress)
        figures: dict[str, Any] = {"out": None if options.out is None else str(options.out)}
        figures |= _figures(only.forest, capacity, image) | only.figures
        figures["columns"] = _columns(only.forest)
        if options.out is not None:
            path = Path(options.out)
            with writing(path), replacing(path) as (new,):
                new.write_bytes(image.bytes)
        return Shown(figures, titled(f"image of {only.forest.name}"))
    return _images(options, capacity, _named(sources, made))


@dataclass(frozen=True)
class _Quantized:
    """A quantized model, its rows if given, and its figures on them."""

    source: object
    rows: object
    forest: Forest
    opened: Rows | None
    figures: dict[str, Any]


def _several(source: object) -> list[object]:
    sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources:
        raise OptionError("there is none", where="the models", do="give a model, or several in a list")
    return sources


def _rows_of(options: ImageOptions, sources: Sequence[object]) -> list[object]:
    """Returns the rows of each source. Raises OptionError if they are neither one file nor one for each."""
    rows = options.rows
    listed = isinstance(rows, tuple) or (
        isinstance(rows, list) and all(isinstance(given, str | Path) for given in rows)
    )
    given = list(rows) if listed and len(rows) else [rows]
    if len(given) not in (1, len(sources)):
        raise OptionError(
            f"{len(given)} files of rows are given, for {len(sources)} models", where=opt.rows,
            do=f"give {opt.rows:once}, or once for each model in their order",
        )  # fmt: skip
    return given if len(given) == len(sources) else given * len(sources)


def _quantized(
    options: ImageOptions, source: object, rows: object, missing: Literal["auto", "always"] = "auto"
) -> _Quantized:
    options.progress("passes")
    model = open_source(source, trust_pickle=options.trust_pickle, iterations=options.iterations)
    if isinstance(model, Design):
        opened = None if rows is None else rows_for_model(rows, model.model, options.label)[0]
        return _Quantized(source, rows, model.forest, opened, {})
    refuse_sampled(rows, options.held_out, allowed=options.rows_are_sampled)
    opened = None
    if rows is not None:
        opened, model, _ = rows_for_model(rows, model, options.label)
    forest = quantize(
        model, opened, options.label, options.passes, held_out=options.held_out, ranges=options.ranges,
        level=options.level, tolerance=options.tolerance, missing=missing,
    )  # fmt: skip
    if opened is None:
        return _Quantized(source, rows, forest, None, {})
    agreed = asdict(agreement(model, forest, opened))
    figures = {key: value for key, value in agreed.items() if value is not None and (key != "foreign" or value)}
    return _Quantized(source, rows, forest, opened, figures)


def _named(sources: Sequence[object], made: Sequence[_Quantized]) -> dict[str, _Quantized]:
    """Returns the models by the names of their images; equal names get a number."""
    names = [
        Path(source).stem if isinstance(source, str | Path) else identifier(model.forest.name)
        for source, model in zip(sources, made, strict=True)
    ]
    return {
        name if names.count(name) == 1 else f"{name}_{number}": model
        for number, (name, model) in enumerate(zip(names, made, strict=True), 1)
    }


def _images(options: ImageOptions, capacity: Capacity, made: dict[str, _Quantized]) -> Shown:
    """Writes the images of several models, with common words."""
    forests = {name: model.forest for name, model in made.items()}
    if differing_missing(forests):
        with suppress(OptionError):  # A model may take no missing values; `with_common_words` then names the column.
            made = {name: _quantized(options, model.source, model.rows, "always") for name, model in made.items()}
        forests = {name: model.forest for name, model in made.items()}
    common = dict(zip(forests, with_common_words(forests), strict=True))
    _check_widths(common, capacity)
    figures, images = {}, {}
    for name, forest in common.items():
        images[name] = image = _image(forest, capacity, options.progress)
        options.progress("comparing the image with the forest on the rows")
        model = made[name]
        compared = 0 if model.opened is None else compare_rows(model.forest, forest, capacity, image, model.opened)
        figures[name] = _figures(forest, capacity, image) | model.figures | {"rows_compared": compared}
    if options.out is not None:
        _write(Path(options.out), {f"{name}.bin": image.bytes for name, image in images.items()})
    columns = {column: note for forest in common.values() for column, note in _columns(forest).items()}
    out = None if options.out is None else str(options.out)
    return Shown(
        {"out": out, "images": figures, "columns": dict(sorted(columns.items(), key=lambda pair: int(pair[0])))},
        lambda shown: [figures_table(f"image of {name}", own) for name, own in shown["images"].items()],
    )


def _check_widths(forests: Mapping[str, Forest], capacity: Capacity) -> None:
    """Raises ModelError if a common word is wider than the engine's."""
    for forest in forests.values():
        for feature in forest.features:
            bits = word_bits(feature.number)
            if bits > capacity.word_bits:
                raise ModelError(
                    f"column {feature.name!r} needs {bits} bits for the thresholds of all models ({feature.number})",
                    where=f"the engine's words of {capacity.word_bits} bits",
                    do=f"write an engine with {opt.word_bits:{bits}}, or run quantize-inputs{{input_bits=8}}",
                )


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    with writing(folder, "choose a folder you may write to"):
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in files]
        with replacing(*paths) as written:
            for new, data in zip(written, files.values(), strict=True):
                new.write_bytes(data)


def _image(forest: Forest, capacity: Capacity, progress: Progress) -> EngineImage:
    image = image_of(forest, capacity, progress)
    progress("comparing the image with the forest")
    compare_image(forest, capacity, image)
    return image


def _figures(forest: Forest, capacity: Capacity, image: EngineImage) -> dict[str, Any]:
    return {
        "bytes": 4 * len(image.words),
        "clocks_per_row": max(image.clocks, capacity.beats),
        "slots": len(image.slots),
        "slots_of": capacity.slots,
        "nodes": sum(image.used),
        "most_nodes_of_a_walker": max(image.used),
        "nodes_of_a_walker": capacity.nodes,
        "hash": model_hash(forest).hex(),
    }


def _columns(forest: Forest) -> dict[str, str]:
    return {str(feature.column): word_note(forest, index) for index, feature in enumerate(forest.features)}
