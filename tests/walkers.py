"""Runs engines under Icarus Verilog: each is compiled once for a capacity, and run on images and rows."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_forests import random_forest

from forestc.backends.engine.image_reader import read_image
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.image import image_of
from forestc.engine.vectors import packed_results, result_lines, row_lines
from forestc.engine.verilog import emit, emit_bench
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, Fixed, NumberType

KINDS = ("binary", "argmax", "regression", "vector")
NARROW: list[NumberType] = [
    Fixed(1), Fixed(4), Fixed(8), Fixed(7, 3), Fixed(5, -2), Fixed(6, 0, True), Fixed(9, 4, True), Fixed(11, 6, True),
    Category(3), Category(11), Category(40),
]  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The result of a run. passed: each row got its result. clocks: from the first row's first beat to the last result.
    active, error, taken, refused: of the port status."""

    passed: bool
    text: str
    clocks: int = 0
    active: bool = False
    error: int = 0
    taken: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Bench:
    """A compiled engine with its test bench, in a folder."""

    capacity: Capacity
    folder: Path

    @classmethod
    def of(cls, capacity: Capacity, folder: Path) -> Bench:
        folder.mkdir(exist_ok=True)
        (folder / "engine.v").write_text(emit(capacity))
        (folder / "bench.v").write_text(emit_bench(capacity))
        command = ["iverilog", "-g2005", "-o", "bench.vvp", "engine.v", "bench.v"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        return cls(capacity, folder)

    def run(
        self,
        models: Sequence[Forest],
        words: NDArray[np.int64],
        images: Sequence[tuple[int, Any]] | None = None,
        stall: int = 0,
        seed: int = 1,
    ) -> Verdict:
        """Runs images and rows.

        models: give the expected answers, one after the other.
        words: (rows, features).
        images: the words of each image and the row after which it comes; a negative number r is a reset of -r clocks
        before it. By default the models' images come at once.
        """
        lines = []
        for after, image in images if images is not None else [(0, image_of(each, self.capacity)) for each in models]:
            content = image.words if hasattr(image, "words") else image
            lines.append(f"wait {after}\n" if after >= 0 else f"reset {-after}\n")
            lines += [f"{int(k == len(content) - 1)} {int(word):08x}\n" for k, word in enumerate(content)]
        return self.verdict("".join(lines), models, words, stall, seed)

    def verdict(
        self, images: str, models: Sequence[Forest], words: NDArray[np.int64], stall: int, seed: int, *more: str
    ) -> Verdict:
        (self.folder / "images.txt").write_text(images)
        (self.folder / "rows.txt").write_text(row_lines(models[0], self.capacity, words))
        (self.folder / "results.txt").write_text(result_lines(models, self.capacity, words))
        command = ["vvp", "-n", "bench.vvp", f"+stall={stall}", f"+seed={seed}", f"+models={len(models)}", *more]
        text = subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout
        status = int(re.findall(r"status ([0-9a-f]{8})", text)[-1], 16)
        clocks = re.search(r"in (\d+) clocks", text)
        return Verdict(
            text.startswith("PASS"), text, int(clocks[1]) if clocks else 0, bool(status & 1), status >> 4 & 15,
            status >> 8 & 255, status >> 16 & 255,
        )  # fmt: skip


def random_image(capacity: Capacity, seed: int, slots: int, steps: int, nodes: int = 0) -> NDArray[np.uint32]:
    """Makes an image of nodes of all kinds that lead anywhere, with the matching CRC. slots: of each walker. steps: of
    each slot. nodes: of each walker, by default as many as fit."""
    random = np.random.default_rng(seed)
    count, outputs = nodes or capacity.nodes, capacity.outputs
    last = outputs - 1 if seed % 2 or seed % 3 == 2 else int(random.integers(outputs))
    head = [0x474E4546, 1, capacity.id, 0, *random.integers(0, 1 << 32, 8).tolist(), slots]
    deciding_output = int(random.integers(last + 1)) if seed % 4 != 1 else last
    head += [seed % 3 | int(random.integers(2)) << 2 | last << 8 | deciding_output << 16, 0, 0]
    wide = seed % 2
    bias = random.integers(-(1 << 31), 1 << 31, outputs) if wide else random.integers(-2, 3, outputs)
    head[14] = int(bias[deciding_output] if wide else random.integers(-9, 9)) & 0xFFFFFFFF
    table = []
    for slot in range(slots):
        first = int(random.integers(outputs)) if slot else 0
        more = int(random.integers(outputs - first)) if slot else outputs - 1
        table.append(steps | first << 8 | more << 16 | (slot == 0) << 24)
    words = [np.array([*head, *(bias & 0xFFFFFFFF).tolist(), *table], dtype=np.uint64)]
    first_operand = 3 + capacity.address_bits + capacity.feature_bits
    for _ in range(capacity.walkers):
        kind = random.choice(4, count, p=[0.4, 0.2, 0.15, 0.25]).astype(np.uint64)
        flag, child = random.integers(0, 2, count, dtype=np.uint64), random.integers(0, count, count, dtype=np.uint64)
        if nodes:  # No node leads out of the image.
            kind = np.where((kind == 2) | (nodes == 1), 3, kind).astype(np.uint64)
            child, flag[-1] = np.minimum(child, max(0, count - 2)).astype(np.uint64), 0
        column = random.integers(0, capacity.beats * capacity.lanes, count, dtype=np.uint64)
        operand = random.integers(0, 1 << capacity.word_bits, count, dtype=np.uint64)
        node = kind | flag << np.uint64(2) | child << np.uint64(3)
        node |= column << np.uint64(3 + capacity.address_bits) | operand << np.uint64(first_operand)
        output = random.integers(0, outputs, count, dtype=np.uint64)
        value = random.integers(0, 1 << capacity.value_bits, count, dtype=np.uint64)
        if not wide:  # With these values scores are often equal.
            value = (random.integers(-2, 3, count) & ((1 << capacity.value_bits) - 1)).astype(np.uint64)
        leaf = kind | flag << np.uint64(2) | output << np.uint64(3) | value << np.uint64(3 + capacity.output_bits)
        node = np.where(kind == 3, leaf, node)
        halves = np.stack([node & np.uint64(0xFFFFFFFF), node >> np.uint64(32)], axis=1)[:, : capacity.node_words]
        words += [np.array([count], dtype=np.uint64), halves.ravel()]
    image = np.append(np.concatenate(words), 0).astype(np.uint32)
    image[3] = len(image)
    image[-1] = zlib.crc32(image[:-1].astype("<u4").tobytes())
    return image


def beat_lines(capacity: Capacity, columns: NDArray[np.int64]) -> str:
    """Returns rows of the words of all columns, (rows, beats * lanes), as lines for `rows.txt`."""
    shifts = np.arange(capacity.lanes) * capacity.word_bits
    beats = (columns.reshape(-1, capacity.lanes) << shifts).sum(axis=1)
    return "".join(f"{beat:x}\n" for beat in beats.tolist())


def read_results(
    capacity: Capacity, images: Sequence[NDArray[np.uint32]], columns: NDArray[np.int64]
) -> list[list[int]]:
    """Returns the results of the reader of images for such rows: (images, rows), in the form of m_axis_tdata."""
    readers = [read_image(image.tobytes(), described(capacity)) for image in images]
    return [packed_results(capacity, reader.walked(columns)) for reader in readers]


def same_rows(count: int) -> list[Forest]:
    """Makes forests on the same five features of 8 bits, so that any of them may answer any row."""
    found, seed = list[Forest](), 0
    while len(found) < count:
        forest = random_forest(seed, True, ("argmax", "vector")[seed % 2], [Fixed(8)])
        plain = len(forest.features) == 5 and not any(feature.missing for feature in forest.features)
        found += [forest] if plain and forest.depth > 2 else []
        seed += 1
    return found
