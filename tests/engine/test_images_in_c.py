"""Tests the C header of an engine on its images: labels and scores are the evaluator's, refusals the hardware's."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from random_forests import random_forest
from walkers import KINDS, NARROW, random_image

from forestc.backends.vectors import vectors
from forestc.engine.capacity import Capacity
from forestc.engine.image import columns_of, image_of
from forestc.engine.vectors import results_of
from forestc.engine.verilog import emit_walker
from forestc.forest.evaluate import evaluate_words
from forestc.layouts.pairs import to_raised
from forestc.rows.batches import ArrayRows

NARROW_NODES = Capacity(3, 512, 8, 6, word_bits=11, outputs=5, scores=True)
WIDE_NODES = Capacity(5, 2048, 8, 6, word_bits=19, outputs=5, scores=True)
FLAGS = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
SANITIZED = "-fsanitize=undefined,address -fno-sanitize-recover=all"
MAIN = """#include <stdio.h>
#include <stdlib.h>
#include "engine_image.h"
int main(int count, char **arguments)
{
    uint32_t row[ENGINE_FEATURES], words;
    int32_t scores[ENGINE_OUTPUTS];
    FILE *file = fopen(arguments[1], "rb"), *rows = fopen(arguments[2], "rb");
    if (count != 3 || file == NULL || rows == NULL) {
        return 1;
    }
    while (fread(&words, 4, 1, file) == 1) {
        uint32_t *image = malloc(4 * words); /* no word more, so that a read beside it is an error */
        int k;
        if (image == NULL || fread(image, 4, words, file) != words) {
            return 2;
        }
        k = engine_image_wrong(image, words);
        printf("wrong %d\\n", k);
        rewind(rows);
        while (k == 0 && fread(row, 4, ENGINE_FEATURES, rows) == ENGINE_FEATURES) {
            printf("%d", engine_image_predict(image, row, scores));
            for (k = 0; k < ENGINE_OUTPUTS; k++) {
                printf(" %ld", (long)scores[k]);
            }
            printf("\\n");
            k = 0;
        }
        free(image);
    }
    return 0;
}
"""


@pytest.fixture(scope="module", params=[NARROW_NODES, WIDE_NODES], ids=["32", "36"])
def walker(request, tmp_path_factory):
    """Compiles the header of a capacity. Returns the capacity, and a function that runs images on rows (rows, features)
    and returns the error and the answers of each image."""
    folder = tmp_path_factory.mktemp("walker")
    (folder / "engine_image.h").write_text(emit_walker(request.param))
    (folder / "main.c").write_text(MAIN)
    subprocess.run(["cc", *FLAGS.split(), *SANITIZED.split(), "main.c", "-o", "walk"], cwd=folder, check=True)

    def walked(images, rows):
        with (folder / "images.bin").open("wb") as file:
            for image in images:
                np.asarray([len(image), *image], dtype="<u4").tofile(file)
        np.asarray(rows, dtype="<u4").tofile(folder / "rows.bin")
        command = ["./walk", "images.bin", "rows.bin"]
        text = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
        for part in text.split("wrong ")[1:]:
            wrong, *lines = part.splitlines()
            yield int(wrong), np.array([line.split() for line in lines], dtype=np.int64)

    return request.param, walked


@pytest.mark.parametrize("kind", KINDS)
def test_it_answers_as_the_evaluator(kind, walker, need_tool):
    need_tool("cc")
    capacity, walked = walker
    for seed in range(8):
        forest = random_forest(seed, True, kind, NARROW)
        found = vectors(forest, ArrayRows(np.empty((0, forest.columns))), 150)
        words = np.concatenate([some.words for some in found])
        rows = np.zeros((len(words), capacity.features), dtype=np.int64)
        rows[:, columns_of(forest)] = to_raised(forest, words, capacity.word_bits)
        ((wrong, answers),) = walked([image_of(forest, capacity).words], rows)
        assert wrong == 0 and np.array_equal(answers, results_of(capacity, evaluate_words(forest, words))), seed


def test_it_refuses_what_does_not_fit_and_reads_nothing_beside_an_image(walker, need_tool):
    need_tool("cc")
    capacity, walked = walker
    image = image_of(random_forest(3, True, "argmax", NARROW), capacity).words
    rows = np.random.default_rng(0).integers(0, 1 << capacity.word_bits, (50, capacity.features))
    other = image_of(random_forest(3, True, "argmax", NARROW), replace(capacity, outputs=4)).words
    assert [wrong for wrong, _ in walked([image[:-1], image[1:], other], rows)] == [4, 1, 3]
    damaged = np.tile(image, (len(image), 1))
    damaged[np.diag_indices(len(image))] ^= np.uint32(1) << (np.arange(len(image), dtype=np.uint32) % 32)
    errors = [wrong for wrong, _ in walked(damaged, rows)]
    assert len(errors) == len(image) and all(errors)
    leading_anywhere = [random_image(capacity, seed, 3, 20, nodes=40) for seed in range(20)]
    walks = list(walked(leading_anywhere, rows))
    assert len(walks) == 20 and all(wrong == 0 and len(answers) == 50 for wrong, answers in walks)
