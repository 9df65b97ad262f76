"""Images: a quantized forest as the content of an engine's memories.

docs/explanation/engine.md defines every bit of an image.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.engine.capacity import FORMAT, MOST_STEPS, Capacity
from forestc.engine.verilog import MAGIC
from forestc.errors import ForestcError, OptionError, opt
from forestc.forest.ir import Forest
from forestc.forest.refusals import Refusal
from forestc.layouts.pairs import LEAF, Blocks, Layout, to_raised

NONE, THRESHOLD, ARGMAX = range(3)
Words = NDArray[np.uint32]


class DoesNotFitError(ForestcError):
    """Raised if an engine has no room for a forest."""


class TooManyNodesError(DoesNotFitError):
    """Raised if a walker has no room for the nodes of its trees."""


@dataclass(frozen=True)
class Slot:
    """One tree for each walker, evaluated at the same time."""

    trees: tuple[int, ...]  # index of each walker's tree, -1 for none
    steps: int  # nodes on the longest path, without the leaf
    first: int  # first output that the trees add to
    count: int  # number of outputs that the trees add to
    initial: bool  # True if the sums of these outputs start here, with the bias

    @property
    def clocks(self) -> int:
        """The clocks that the slot takes for each row, while the pipeline is full."""
        return self.steps + self.count


@dataclass(frozen=True)
class EngineImage:
    """The content of an engine's memories for one forest."""

    words: Words  # 32-bit words of the image
    slots: tuple[Slot, ...]
    used: tuple[int, ...]  # number of nodes of each walker

    @property
    def clocks(self) -> int:
        """The clocks for each row, while the pipeline is full."""
        return sum(slot.clocks for slot in self.slots)

    @property
    def bytes(self) -> bytes:
        return self.words.astype("<u4").tobytes()


def image_of(forest: Forest, capacity: Capacity, progress: Callable[[str], None] = lambda _: None) -> EngineImage:
    """Returns the image of a quantized forest for engines of this capacity.

    Raises ModelError or OptionError if no engine can compute the forest, DoesNotFitError if this one is too small.
    """
    _check_kind(forest, capacity)
    progress(f"laying out {len(forest.trees):,} trees")
    layout = Layout.of(forest, capacity.word_bits)
    blocks = [layout.blocks(tree) for tree in forest.trees]
    _check_sizes(forest, capacity, blocks)
    slots = schedule(forest, capacity, blocks)
    progress("writing nodes")
    sections, used, columns = [], list[int](), columns_of(forest)
    for walker in range(capacity.walkers):
        trees = [blocks[tree] if (tree := slot.trees[walker]) >= 0 else None for slot in slots]
        nodes = _memory(capacity, trees, columns)
        used.append(len(nodes))
        section = nodes.astype("<u8").view("<u4").reshape(-1, 2)[:, : capacity.node_words]
        sections += [np.array([len(nodes)], dtype="<u4"), section.ravel()]
    if max(used) > capacity.nodes:
        raise TooManyNodesError(
            f"one needs {max(used):,} nodes, and has {capacity.nodes:,}; all use {sum(used):,} of "
            f"{capacity.walkers * capacity.nodes:,}",
            where="the engine's walkers",
            do=f"prune with prune-trees or prune-splits, by {1 - capacity.nodes / max(used):.0%}, or write an engine "
            f"with {opt.nodes:{capacity.walkers << (max(used) - 1).bit_length()}}",
        )
    table = [slot.steps | slot.first << 8 | (slot.count - 1) << 16 | slot.initial << 24 for slot in slots]
    bias = np.zeros(capacity.outputs, dtype=np.int64)
    bias[: forest.n_outputs] = forest.bias
    kind, ties, output, threshold = _decision(forest)
    body = np.concatenate([bias.astype("<i4").view("<u4"), np.array(table, dtype="<u4"), *sections])
    decision = kind | ties << 2 | (forest.n_outputs - 1) << 8 | output << 16
    head = [MAGIC, FORMAT, capacity.id, 16 + len(body) + 1]
    head += np.frombuffer(model_hash(forest), dtype=">u4").tolist()
    head += [len(slots), decision, threshold & 0xFFFFFFFF, 0]
    words = np.concatenate([np.array(head, dtype="<u4"), body])
    crc = np.array([zlib.crc32(words.tobytes())], dtype="<u4")
    return EngineImage(np.concatenate([words, crc]), slots, tuple(used))


def model_hash(forest: Forest) -> bytes:
    """Returns the SHA-256 of all parts of a forest that an engine's results depend on."""
    digest = hashlib.sha256(repr((forest.features, forest.n_outputs, forest.decision, forest.bias.tolist())).encode())
    for tree in forest.trees:
        digest.update(repr((tree.outputs, tree.sets)).encode())
        arrays = (tree.feature, tree.threshold, tree.set_index, tree.left, tree.right, tree.missing_left, tree.leaf)
        for array in (*arrays, tree.values):
            digest.update(np.ascontiguousarray(array).astype("<i8").tobytes())
    return digest.digest()


def schedule(forest: Forest, capacity: Capacity, blocks: Sequence[Blocks]) -> tuple[Slot, ...]:
    """Returns the slots with the fewest clocks. Raises DoesNotFitError if there are too many slots."""
    outputs = forest.n_outputs
    together = _slots(capacity, blocks, [(list(range(len(blocks))), 0, outputs)])
    arrangements = [together]
    if outputs > 1 and all(len(tree.outputs) == 1 for tree in forest.trees):
        groups = [([t for t, tree in enumerate(forest.trees) if tree.outputs == (k,)], k, 1) for k in range(outputs)]
        arrangements.append(_slots(capacity, blocks, groups))
    fitting = [slots for slots in arrangements if len(slots) <= capacity.slots]
    if not fitting:
        need = min(map(len, arrangements))
        raise DoesNotFitError(
            f"{len(blocks):,} trees take {need:,} turns of {capacity.walkers} walkers; there are {capacity.slots:,}",
            where="the engine's walkers",
            do=f"keep {capacity.walkers * capacity.slots:,} trees with prune-trees, or write an engine with "
            f"{opt.trees:{len(blocks)}}",
        )
    return min(fitting, key=lambda slots: sum(slot.clocks for slot in slots))


def _slots(
    capacity: Capacity, blocks: Sequence[Blocks], groups: Sequence[tuple[list[int], int, int]]
) -> tuple[Slot, ...]:
    """Returns slots for all trees. groups: each (trees, first output, number of outputs)."""
    slots: list[Slot] = []
    filled = np.zeros(capacity.walkers, dtype=np.int64)
    for trees, first, count in groups:
        order = sorted(trees, key=lambda tree: (-blocks[tree].steps, -blocks[tree].size, tree))
        for start in range(0, max(1, len(order)), capacity.walkers):
            chosen = sorted(order[start : start + capacity.walkers], key=lambda tree: (-blocks[tree].size, tree))
            walkers = np.argsort(filled, kind="stable")
            assigned = np.full(capacity.walkers, -1, dtype=np.int64)
            assigned[walkers[: len(chosen)]] = chosen
            filled += 1
            for tree, walker in zip(chosen, walkers.tolist(), strict=False):
                filled[walker] += blocks[tree].size - 1
            steps = max((blocks[tree].steps for tree in chosen), default=0)
            slots.append(Slot(tuple(assigned.tolist()), steps, first, count, start == 0))
    return tuple(slots)


def _memory(capacity: Capacity, trees: Sequence[Blocks | None], columns: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Returns a walker's memory: the root of each slot's tree, then the trees' other blocks."""
    roots = np.full(len(trees), LEAF, dtype=np.uint64)
    parts = [roots]
    at = len(trees)
    for slot, blocks in enumerate(trees):
        if blocks is None:
            continue
        words = node_words(capacity, blocks, at - 1, columns)
        roots[slot] = words[0]
        parts.append(words[1:])
        at += blocks.size - 1
    return np.concatenate(parts)


def node_words(capacity: Capacity, blocks: Blocks, base: int, columns: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Returns each node of a tree as one number, in the order of `blocks.members`.
    base: address of the first block after the root, minus 1.
    columns: each feature's column in a row."""
    nodes = blocks.members
    kind, leaf = blocks.kind[nodes], blocks.kind[nodes] == LEAF
    child = base + np.append(blocks.starts, 0)[blocks.block[nodes]] + blocks.shift[nodes]
    child &= capacity.nodes - 1
    first = 3 + capacity.address_bits
    column = np.zeros(len(nodes), dtype=np.int64)  # stays 0 in a model of leaves alone, which reads no column
    column[~leaf] = columns[blocks.feature[nodes][~leaf]]
    inner = child << 3 | column << first | blocks.operand[nodes] << (first + capacity.feature_bits)
    value = blocks.operand[nodes] & ((1 << capacity.value_bits) - 1)
    ends = blocks.feature[nodes] << 3 | value << (3 + capacity.output_bits)
    return (kind | blocks.flag[nodes] << 2 | np.where(leaf, ends, inner)).astype(np.uint64)


def packed_rows(forest: Forest, capacity: Capacity, words: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Returns rows of words (rows, features) as beats (rows, beats). Columns that the model does not read are 0."""
    raised = np.zeros((len(words), capacity.beats * capacity.lanes), dtype=np.uint64)
    raised[:, columns_of(forest)] = to_raised(forest, words, capacity.word_bits).astype(np.uint64)
    shifts = (np.arange(capacity.lanes) * capacity.word_bits).astype(np.uint64)
    lanes = raised.reshape(len(words), capacity.beats, capacity.lanes) << shifts
    return np.asarray(np.bitwise_or.reduce(lanes, axis=2))


_DO = "compile to verilog or c"
_ONE_COLUMN = Refusal(
    "two features of one column", lambda forest: len(set(forest.row_columns)) < len(forest.row_columns)
)


def columns_of(forest: Forest) -> NDArray[np.int64]:
    """Returns the column of each feature in an engine's rows: (features,). Raises ModelError if two features have the
    same column."""
    _ONE_COLUMN.refuse(forest, "an engine", _DO)
    return np.array(forest.row_columns, dtype=np.int64)


def _decision(forest: Forest) -> tuple[int, int, int, int]:
    """Returns (kind, True if last of ties wins, output for the threshold, threshold)."""
    decision = forest.decision
    if decision.kind == "none":
        return NONE, 0, 0, 0
    if decision.kind == "threshold":
        return THRESHOLD, 0, forest.n_outputs - 1, int(decision.threshold)
    return ARGMAX, int(decision.ties == "last"), 0, 0


REFUSALS = (
    Refusal("combinations of several models, such as votes", lambda forest: not forest.single),
    Refusal("trees that are not added, such as those of rule sets", lambda forest: forest.single and not forest.adds),
    Refusal(
        "decisions by values after a link such as softmax",
        lambda forest: (
            forest.decision.kind == "argmax"
            and forest.decision.on == "values"
            and forest.link.kind not in ("identity", "order")
        ),
    ),
    _ONE_COLUMN,
)


def _check_kind(forest: Forest, capacity: Capacity) -> None:
    """Raises ModelError, OptionError or DoesNotFitError if the engine can't evaluate such a forest."""
    if not forest.quantized:
        raise OptionError(
            "an engine takes quantized forests", where="the model", do="run the passes first, as forestc image does"
        )
    for refusal in REFUSALS:
        refusal.refuse(forest, "an engine", _DO)
    if forest.decision.kind == "none" and not capacity.scores:
        raise DoesNotFitError(
            "the model gives values, and the engine labels alone",
            where=f"model {forest.name!r}",
            do=f"write the engine with {opt.scores}",
        )


def _check_sizes(forest: Forest, capacity: Capacity, blocks: Sequence[Blocks]) -> None:
    """Raises DoesNotFitError if columns, outputs, depth, leaves or scores exceed the capacity."""
    columns = int(columns_of(forest).max(initial=0)) + 1
    if columns > capacity.features:
        raise DoesNotFitError(
            f"the model reads column {columns} of its rows, and the engine's have {capacity.features}",
            where="the engine's features",
            do=f"write an engine with {opt.features:{columns}}",
        )
    if forest.n_outputs > capacity.outputs:
        raise DoesNotFitError(
            f"the model has {forest.n_outputs} outputs, and the engine {capacity.outputs}",
            where="the engine's outputs",
            do=f"write an engine with {opt.classes:{forest.n_outputs}}",
        )
    deepest = max((block.steps for block in blocks), default=0)
    if deepest > MOST_STEPS:
        raise DoesNotFitError(
            f"a tree has {deepest} steps, and a walk {MOST_STEPS}",
            where="the engine's walks",
            do="prune with prune-splits, or train flatter trees",
        )
    limit = 1 << (capacity.value_bits - 1)
    largest = max((int(np.abs(tree.values + 0.5).max(initial=0)) for tree in forest.trees), default=0)
    if largest >= limit:
        raise DoesNotFitError(
            f"a leaf adds {largest:,}, which takes {largest.bit_length() + 1} bits, and the engine's leaves have "
            f"{capacity.value_bits}",
            where="the engine's leaves",
            do="compile with round-leaves{leaf_bits=8} or -O1",
        )
    low, high = score_ends(forest)
    limit = 1 << (capacity.score_bits - 1)
    threshold = int(forest.decision.threshold) if forest.decision.kind == "threshold" else 0
    if min(low, threshold) < -limit or max(high, threshold) >= limit:
        bits = max(int(-min(low, threshold) - 1).bit_length(), int(max(high, threshold)).bit_length()) + 1
        raise DoesNotFitError(
            f"scores need {bits} bits, and the engine's have {capacity.score_bits}",
            where="the engine's scores",
            do=f"compile with round-leaves{{leaf_bits=8}}, or write an engine with {opt.score_bits:{bits}}",
        )


def score_ends(forest: Forest) -> tuple[int, int]:
    """Returns (low, high), bounds of all scores and of their partial sums."""
    low, high = forest.bias.astype(np.int64).copy(), forest.bias.astype(np.int64).copy()
    for tree in forest.trees:
        outputs = list(tree.outputs)
        low[outputs] += np.minimum(tree.values.min(axis=0), 0)
        high[outputs] += np.maximum(tree.values.max(axis=0), 0)
    return int(low.min()), int(high.max())
