"""Writes the text files that an engine's test bench reads: images, rows and results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.engine.capacity import Capacity
from forestc.engine.image import EngineImage, packed_rows
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.forest.ir import Forest


def image_lines(image: EngineImage, after: int = 0) -> str:
    """Returns an image for the file `images.txt`. after: number of rows before the image is loaded."""
    words = image.words.tolist()
    lines = [f"{int(index == len(words) - 1)} {word:08x}\n" for index, word in enumerate(words)]
    return "".join([f"wait {after}\n", *lines])


def row_lines(forest: Forest, capacity: Capacity, words: NDArray[np.int64]) -> str:
    """Returns rows of words (rows, features) as the file `rows.txt`, one beat a line."""
    return "".join(f"{beat:x}\n" for beat in packed_rows(forest, capacity, words).ravel().tolist())


def result_lines(forests: Sequence[Forest], capacity: Capacity, words: NDArray[np.int64]) -> str:
    """Returns all models' results as the file `results.txt`, one row a line. words: (rows, features)."""
    models = [packed_results(capacity, results_of(capacity, evaluate_words(forest, words))) for forest in forests]
    return "".join(" ".join(f"{result:x}" for result in row) + "\n" for row in zip(*models, strict=True))


def results_of(capacity: Capacity, evaluation: Evaluation) -> NDArray[np.int64]:
    """Returns an engine's results, (rows, 1 or 1 + outputs): the first label, 0 if there is none, then the scores if
    the engine gives scores."""
    labels = np.maximum(evaluation.index.reshape(len(evaluation.index), -1)[:, :1], 0)
    if not capacity.scores:
        return labels
    spare = np.zeros((len(labels), capacity.outputs - evaluation.scores.shape[1]), dtype=np.int64)
    return np.concatenate([labels, evaluation.scores, spare], axis=1)


def packed_results(capacity: Capacity, results: NDArray[np.int64]) -> list[int]:
    """Returns each result as the number on m_axis_tdata."""
    mask, packed = (1 << capacity.score_bits) - 1, []
    for label, *scores in results.tolist():
        for index, score in enumerate(scores):
            label |= (score & mask) << (capacity.label_bits + index * capacity.score_bits)
        packed.append(label)
    return packed
