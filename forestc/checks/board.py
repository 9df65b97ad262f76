"""Checks a design on a board: all vectors through the chip."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import taken
from forestc.backends.running import Difference, difference
from forestc.backends.vectors import Vectors, results
from forestc.boards.client import Board
from forestc.boards.wires import Target
from forestc.engine.vectors import results_of
from forestc.errors import BoardError
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.manifest.design import Design
from forestc.toolchain.run import is_ended

BOARD = "board"
PIECE = 256  # rows between two looks at whether the check was ended


class BoardEngine:
    """Runs the design on a board, over its serial port."""

    def __init__(self, design: Design, board: Board, tool: str) -> None:
        self.design, self.board, self.tool, self.rows, self.seconds = design, board, tool, 0, 0.0

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        raw, forest, why, left_out = self.board.raw, self.design.forest, "", 0
        if raw is not None:
            vectors, why, left_out = taken(forest, vectors, raw)
            evaluation = evaluate_words(forest, vectors.words)
        start = time.perf_counter()
        given = vectors.words if raw is None else vectors.raw
        got = np.concatenate([self._some(given[at : at + PIECE]) for at in range(0, max(1, len(given)), PIECE)])
        self.seconds += time.perf_counter() - start
        self.rows += len(got)
        if self.board.identity.target == Target.C:
            labels = evaluation.index.reshape(len(got), -1)[:, : len(forest.targets) * forest.decides]
            expected = np.concatenate([labels, evaluation.scores], axis=1)
            return replace(difference(got, expected), left_out=left_out, why=why)
        if self.board.identity.target == Target.ENGINE:
            return difference(got, results_of(self.design.engine, evaluation))
        return difference(got, results(forest, self.design.netlist, evaluation))

    def _some(self, words: NDArray[Any]) -> NDArray[np.int64]:
        if is_ended():  # A board is slow, and the user waits for the end of the check.
            raise BoardError("the check ended before all rows were sent", where=self.tool, do="check again")
        return self.board.results(words)

    def figures(self) -> dict[str, Any]:
        """Returns rows a second, and the number of requests that were sent again."""
        return {
            "rows_per_second": round(self.rows / self.seconds, 1) if self.seconds else 0.0,
            "resends": self.board.resends,
        }


@contextmanager
def board_engines(design: Design, port: str | None, baud: int) -> Iterator[dict[str, BoardEngine]]:
    """Opens the board of a design until the block ends, and loads its engine. Yields its engine by name; none without a
    port."""
    if port is None:
        yield {}
        return
    with Board(port, design, baud) as board:
        if board.identity.target == Target.ENGINE:
            board.load()
        yield {BOARD: BoardEngine(design, board, port if port.startswith("sim") else f"{port}, {baud} baud")}
