"""Compares images of engines with forests, by the second reader."""

from __future__ import annotations

import numpy as np

from forestc.backends.engine.image_reader import read_image, row_words
from forestc.checks.bench import sample_vectors
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.image import EngineImage
from forestc.engine.vectors import results_of
from forestc.errors import CheckError
from forestc.forest.evaluate import encode_numbers, evaluate_words
from forestc.forest.ir import Forest
from forestc.rows.batches import ArrayRows, Rows


def compare_image(forest: Forest, capacity: Capacity, image: EngineImage) -> None:
    """Compares an image with its quantized forest on generated words. Raises CheckError if they differ."""
    reader = read_image(image.bytes, described(capacity))
    words = np.concatenate([some.words for some in sample_vectors(forest, ArrayRows(np.empty((0, forest.width))))])
    got = reader.walked(row_words(forest, reader.shape, words))
    if not np.array_equal(got, results_of(capacity, evaluate_words(forest, words))):
        raise CheckError(
            "the image does not equal the quantized forest", where="the engine's image", do="report this bug"
        )


def compare_rows(forest: Forest, common: Forest, capacity: Capacity, image: EngineImage, rows: Rows) -> int:
    """Compares an image with a quantized forest on rows; returns their number. Raises CheckError if they differ.
    common: the forest of the image, which may have other words."""
    reader, count = read_image(image.bytes, described(capacity)), 0
    for batch in rows.batches():
        got = reader.walked(row_words(common, reader.shape, encode_numbers(common, batch.X)))
        expected = results_of(capacity, evaluate_words(forest, encode_numbers(forest, batch.X)))
        if not np.array_equal(got, expected):
            raise CheckError(
                "the image does not answer as the quantized forest", where="the given rows", do="report this bug"
            )
        count += len(batch.X)
    return count
