"""Engines under Icarus Verilog: compiled once for a capacity, run on images and rows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_forests import random_forest

from forestc.engine.capacity import Capacity
from forestc.engine.image import image_of
from forestc.engine.vectors import result_lines, row_lines
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
    """passed: whether each row got its result. clocks: from the first row's first beat to the last result. active,
    error, taken, refused: of the port status."""

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
        """models: those that are to answer, one after the other. words: (rows, features). images: the words of each and
        the row after which it comes; a negative number r is a reset of -r clocks before it. By default those of the
        models, at once."""
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


def same_rows(count: int) -> list[Forest]:
    """Forests on the same five features of 8 bits, of which any may answer any row."""
    found, seed = list[Forest](), 0
    while len(found) < count:
        forest = random_forest(seed, True, ("argmax", "vector")[seed % 2], [Fixed(8)])
        plain = len(forest.features) == 5 and not any(feature.missing for feature in forest.features)
        found += [forest] if plain and forest.depth > 2 else []
        seed += 1
    return found
