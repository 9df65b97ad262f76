"""Nets by what they say on some inputs: where a proof is worth trying. Nothing is proved with that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from forestc.backends.ports import input_fields
from forestc.checks.vectors import random_words
from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import leaf_nodes
from forestc.forest.ir import Forest
from forestc.forest.ir import Part as ForestPart
from forestc.netlist.ir import (
    Add,
    And,
    Bits,
    Cell,
    Compare,
    Const,
    Input,
    InSet,
    Join,
    Less,
    Lookup,
    Mux,
    Net,
    Netlist,
    Not,
    Or,
    Register,
    WordType,
    reads,
)

SIGNATURE_WORDS = 512  # inputs on which a tree's net is looked for


class Candidates:
    """Nets by what they say on some inputs: where a proof is worth trying."""

    def __init__(self, forest: Forest, netlist: Netlist, roots: Iterable[Net]) -> None:
        random = np.random.default_rng(0)
        base = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), SIGNATURE_WORDS, random)
        beside = next(iter(boundary_inputs(forest, base[:8], 0, SIGNATURE_WORDS)), base)
        words = np.concatenate([base, beside[:SIGNATURE_WORDS]])
        self.forest = forest
        self.words = words
        self.by_signature: dict[bytes, list[Net]] = {}
        values: dict[Net, Any] = {}
        fields = {place.name: index for index, place in enumerate(input_fields(netlist))}
        for net in sorted({0, 1, *_cone(netlist, roots)}):
            cell = netlist.cells[net]
            if isinstance(cell, Input):
                if cell.name in fields:
                    values[net] = words[:, fields[cell.name]]
                    self.by_signature.setdefault(np.asarray(values[net], dtype=np.int64).tobytes(), []).append(net)
                continue
            below = [values.get(a) for a in reads(cell)]
            if any(value is None for value in below):
                continue
            values[net] = _evaluated(cell, below, [netlist.types[a] for a in reads(cell)], len(words))
            if not isinstance(cell, Register):
                self.by_signature.setdefault(np.asarray(values[net], dtype=np.int64).tobytes(), []).append(net)

    def nets_that_say(self, index: int, column: int, smallest: int) -> list[Net]:
        tree = self.forest.trees[index]
        nodes = leaf_nodes(self.forest, tree, self.words)
        said = tree.values[tree.leaf[nodes], column].astype(np.int64) - smallest
        return self.that_say(said)

    def constant(self, index: int, column: int, smallest: int) -> int | None:
        """What a tree says on all of the inputs, None if that differs."""
        tree = self.forest.trees[index]
        said = tree.values[tree.leaf[leaf_nodes(self.forest, tree, self.words)], column]
        return int(said[0]) - smallest if (said == said[0]).all() else None

    def that_say(self, said: NDArray[np.int64]) -> list[Net]:
        return self.by_signature.get(np.asarray(said, dtype=np.int64).tobytes(), [])

    def decided(self, part: ForestPart) -> NDArray[np.int64]:
        """The class that a part of the forest decides on, on the same inputs."""
        scores = np.tile(self.forest.bias[part.start : part.stop].astype(np.int64), (len(self.words), 1))
        for tree in self.forest.trees:
            said = tree.values[tree.leaf[leaf_nodes(self.forest, tree, self.words)]]
            for column, output in enumerate(tree.outputs):
                if part.start <= output < part.stop:
                    scores[:, output - part.start] += said[:, column].astype(np.int64)
        if part.decision.kind == "threshold":
            return np.asarray(scores[:, 0] >= int(part.decision.threshold), dtype=np.int64)
        if part.decision.ties == "last":
            return np.asarray(scores.shape[1] - 1 - scores[:, ::-1].argmax(axis=1))
        return np.asarray(scores.argmax(axis=1))


def _evaluated(cell: Cell, below: list[Any], types: list[WordType], rows: int) -> Any:
    """A cell's values on many inputs: only to look nets up by, nothing is proved with them."""
    match cell:
        case Const(value):
            return np.full(rows, value, dtype=np.int64)
        case Less(_, threshold):
            return (below[0] < threshold).astype(np.int64)
        case InSet(_, members):
            return np.isin(below[0], members).astype(np.int64)
        case Not():
            return 1 - below[0]
        case And():
            return below[0] & below[1]
        case Or():
            return below[0] | below[1]
        case Mux():
            return np.where(below[0] == 1, below[1], below[2])
        case Compare():
            return (below[0] < below[1]).astype(np.int64)
        case Bits(_, low, width):
            return below[0] >> low & ((1 << width) - 1)
        case Join():
            word = np.zeros(rows, dtype=np.int64)
            for value, kind in zip(reversed(below), reversed(types), strict=True):
                word = word << kind.width | value & ((1 << kind.width) - 1)
            return word
        case Lookup(inputs, table):
            rows_of = sum((value << place for place, value in enumerate(below)), np.zeros(rows, dtype=np.int64))
            return np.array([table >> row & 1 for row in range(1 << len(inputs))], dtype=np.int64)[rows_of]
        case Register():
            return below[0]
        case Add():
            return sum(below)
        case Input():
            raise ValueError(f"{type(cell).__name__} is not looked up")
        case _:
            assert_never(cell)


def _cone(netlist: Netlist, roots: Iterable[Net]) -> list[Net]:
    """The nets that some nets read, themselves included, ascending."""
    seen: set[Net] = set()
    stack = list(roots)
    while stack:
        net = stack.pop()
        if net not in seen:
            seen.add(net)
            stack += reads(netlist.cells[net])
    return sorted(seen)
