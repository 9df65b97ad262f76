"""A second reader of engine images, from docs/explanation/engine.md. It shares no code with the writers of images.

`stepped` defines one step of an engine, for evaluation and for proofs.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, word_range

LESS, MASK, JUMP, LEAF = range(4)
NONE, THRESHOLD, ARGMAX = range(3)
Ints = NDArray[np.int64]
W = TypeVar("W")
C = TypeVar("C")

REFUSED = {
    1: "it does not begin with FENG", 2: "it has another format", 3: "it is for another capacity",
    4: "its length is wrong", 5: "its slots are wrong", 6: "its decision is wrong", 7: "a walker's nodes are too many",
    8: "its CRC is wrong", 9: "it ends too early or too late",
}  # fmt: skip


class ImageRefusedError(ForestcError):
    """Raised for an image that the engine refuses."""

    def __init__(self, error: int) -> None:
        super().__init__(f"the image is refused: {REFUSED[error]}", where="the engine's loader", do="write it again")
        self.error = error  # number that the engine shows in status[7:4]


@dataclass(frozen=True)
class EngineShape:
    """The sizes of a loadable engine, from engine.json."""

    number: int
    walkers: int
    nodes: int
    slots: int
    features: int
    outputs: int
    gives_scores: bool
    address: int  # width in bits, like the fields up to score
    column: int
    word: int
    output: int
    value: int
    score: int
    mask: int  # number of low bits of a word that index a node's mask

    @classmethod
    def of(cls, engine: Mapping[str, Any]) -> EngineShape:
        own, widths = engine["capacity"], engine["widths"]
        return cls(
            int(engine["id"], 16), own["walkers"], own["nodes"], own["slots"], own["features"], own["outputs"],
            own["scores"], widths["address_bits"], widths["feature_bits"], own["word_bits"], widths["output_bits"],
            widths["value_bits"], own["score_bits"], own["word_bits"].bit_length() - 1,
        )  # fmt: skip

    @property
    def node(self) -> int:
        return 3 + self.address + self.column + self.word

    @property
    def node_words(self) -> int:
        return 1 if self.node <= 32 else 2


class Algebra(Protocol[W, C]):
    """The operations that `stepped` uses. Words (W) and conditions (C) are either arrays or terms of a solver."""

    def bits(self, word: W, low: int, count: int) -> W: ...
    def equal(self, word: W, value: int) -> C: ...
    def same(self, a: W, b: W) -> C: ...
    def below(self, a: W, b: W) -> C: ...
    def bit(self, word: W, index: W) -> C: ...
    def both(self, a: C, b: C) -> C: ...
    def plus(self, a: W, b: W | int, width: int) -> W: ...
    def choose(self, condition: C, a: W, b: W | int) -> W: ...
    def decide(self, condition: C, a: C, b: C) -> C: ...


def stepped(shape: EngineShape, on: Algebra[W, C], node: W, x: W, address: W, gives: C, output: W) -> tuple[W, W]:
    """Evaluates one node. Returns the address of the next node and the value added to `output`. x: the word of the
    node's column. gives: True in steps that add to an output."""
    kind, flag = on.bits(node, 0, 2), on.equal(on.bits(node, 2, 1), 1)
    child = on.bits(node, 3, shape.address)
    operand = on.bits(node, 3 + shape.address + shape.column, shape.word)
    right = on.plus(child, 1, shape.address)
    missing = on.equal(x, (1 << shape.word) - 1)
    less = on.choose(on.decide(missing, flag, on.below(x, operand)), child, right)
    mask = on.choose(on.bit(operand, on.bits(x, 0, shape.mask)), child, right)
    jump = on.plus(child, on.bits(x, shape.mask, shape.word - shape.mask), shape.address)
    leaf = on.equal(kind, LEAF)
    adds = on.both(on.both(gives, leaf), on.same(on.bits(node, 3, shape.output), output))
    after = on.choose(on.both(adds, flag), on.plus(address, 1, shape.address), address)
    inner = on.choose(on.equal(kind, LESS), less, on.choose(on.equal(kind, MASK), mask, jump))
    value = on.choose(adds, on.bits(node, 3 + shape.output, shape.value), 0)
    return on.choose(leaf, after, inner), value


class Numbers:
    """The operations of an engine's step, on arrays (rows,)."""

    def bits(self, word: Ints, low: int, count: int) -> Ints:
        return word >> low & ((1 << count) - 1)

    def equal(self, word: Ints, value: int) -> NDArray[np.bool_]:
        return np.asarray(word == value)

    def same(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        return np.asarray(a == b)

    def below(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        return np.asarray(a < b)

    def bit(self, word: Ints, index: Ints) -> NDArray[np.bool_]:
        return np.asarray(word >> index & 1 == 1)

    def both(self, a: NDArray[np.bool_], b: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return a & b

    def plus(self, a: Ints, b: Ints | int, width: int) -> Ints:
        return np.asarray(a + b & ((1 << width) - 1))

    def choose(self, condition: NDArray[np.bool_], a: Ints, b: Ints | int) -> Ints:
        return np.where(condition, a, b)

    def decide(self, condition: NDArray[np.bool_], a: NDArray[np.bool_], b: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.where(condition, a, b)


NUMBERS = Numbers()


@dataclass(frozen=True)
class SlotRead:
    """A slot of the schedule, in which each walker evaluates one tree."""

    steps: int  # number of steps before the steps for outputs
    first: int  # first output that the slot adds to
    count: int  # number of outputs that the slot adds to
    initial: bool  # True if the outputs' sums begin with the bias here


@dataclass(frozen=True)
class ImageRead:
    """A decoded image."""

    shape: EngineShape
    slots: tuple[SlotRead, ...]
    bias: tuple[int, ...]
    nodes: tuple[Ints, ...]  # nodes of each walker
    decision: int
    last_wins: bool
    last_output: int  # last output in use
    threshold_output: int  # output that the threshold is compared with
    threshold: int

    def walked(self, words: Ints) -> Ints:
        """Evaluates the image on words (rows, columns). Returns (rows, 1) labels, or (rows, 1 + outputs) labels and
        scores if the engine gives scores. Raises ForestcError for an inconsistent image."""
        shape, rows = self.shape, len(words)
        scores: dict[int, Ints] = {}
        for number, slot in enumerate(self.slots):
            at = [np.full(rows, number, dtype=np.int64) for _ in self.nodes]
            for turn in range(slot.steps + slot.count):
                output = slot.first + turn - slot.steps
                gives, added = turn >= slot.steps, np.zeros(rows, dtype=np.int64)
                for walker, nodes in enumerate(self.nodes):
                    if (at[walker] >= len(nodes)).any():
                        raise ForestcError(
                            "a walk leaves the image",
                            where=f"walker {walker}, slot {number}",
                            do="write the image again",
                        )
                    node = nodes[at[walker]]
                    column = NUMBERS.bits(node, 3 + shape.address, shape.column)
                    inside = (column < words.shape[1]) & (node & 3 != LEAF)
                    x = np.where(inside, words[np.arange(rows), np.where(inside, column, 0)], 0)
                    always, number_of = np.full(rows, gives), np.full(rows, output)
                    at[walker], pattern = stepped(shape, NUMBERS, node, x, at[walker], always, number_of)
                    added += _signed(pattern, shape.value)
                if gives:
                    if not slot.initial and output not in scores:
                        raise ForestcError(
                            f"the sum of output {output} does not begin",
                            where=f"slot {number}",
                            do="write the image again",
                        )
                    before = np.full(rows, self.bias[output]) if slot.initial else scores[output]
                    scores[output] = _signed((before + added) & ((1 << shape.score) - 1), shape.score)
        return self._decided(scores, rows)

    def _decided(self, scores: dict[int, Ints], rows: int) -> Ints:
        used = range(self.last_output + 1)
        if absent := [output for output in used if output not in scores]:
            raise ForestcError(
                f"no slot adds to output {absent[0]}", where="the image's leaves", do="write the image again"
            )
        label = np.zeros(rows, dtype=np.int64)
        if self.decision == THRESHOLD:
            label = (scores[self.threshold_output] >= self.threshold).astype(np.int64)
        elif self.decision == ARGMAX:
            best = scores[0]
            for output in used[1:]:
                wins = scores[output] >= best if self.last_wins else scores[output] > best
                label, best = np.where(wins, output, label), np.where(wins, scores[output], best)
        columns = [label]
        if self.shape.gives_scores:
            nothing = np.zeros(rows, dtype=np.int64)
            columns += [scores[output] if output in used else nothing for output in range(self.shape.outputs)]
        return np.stack(columns, axis=1)


def _signed(pattern: Ints, bits: int) -> Ints:
    return pattern - (pattern >> (bits - 1) << bits)


def _number(word: int, bits: int) -> int:
    word &= (1 << bits) - 1
    return word - (word >> (bits - 1) << bits)


class _NodeWords:
    def __init__(self, data: bytes) -> None:
        if not data or len(data) % 4:
            raise ImageRefusedError(9)
        self.data, self.words, self.at = data, np.frombuffer(data, dtype="<u4").tolist(), 0

    def next(self, *refusals: tuple[int, int, int]) -> int:
        """Returns the next word. refusals: (error number, lowest, highest word accepted). Raises ImageRefusedError for
        other words, and at the end of the image."""
        word = int(self.words[self.at])
        self.at += 1
        for error, low, high in refusals:
            if not low <= word <= high:
                raise ImageRefusedError(error)
        if self.at == len(self.words):
            raise ImageRefusedError(9)
        return word

    def end(self, length: int) -> None:
        """Checks the CRC and the number of words. length: the number of words that the image states."""
        word = int(self.words[self.at])
        if word != zlib.crc32(self.data[: 4 * self.at]):
            raise ImageRefusedError(8)
        if self.at + 1 != length:
            raise ImageRefusedError(4)
        if self.at + 1 != len(self.words):
            raise ImageRefusedError(9)


def read_image(data: bytes, engine: Mapping[str, Any]) -> ImageRead:
    """Decodes an image as an engine does. engine: the content of engine.json. Raises ImageRefusedError with the
    engine's error number."""
    shape, words = EngineShape.of(engine), _NodeWords(data)
    most_nodes = shape.walkers * (1 + shape.node_words * shape.nodes)
    fewest = 16 + shape.outputs + 1 + shape.walkers * (1 + shape.node_words) + 1
    most = 16 + shape.outputs + shape.slots + most_nodes + 1
    magic = int.from_bytes(b"FENG", "little")
    words.next((1, magic, magic))
    words.next((2, 1, 1))
    words.next((3, shape.number, shape.number))
    length = words.next((4, fewest, most))
    for _ in range(8):
        words.next()
    used = words.next((5, 1, shape.slots))
    decision = _decision(words, shape)
    threshold = _number(words.next(), shape.score)
    words.next((6, 0, 0))
    bias = tuple(_number(words.next(), shape.score) for _ in range(shape.outputs))
    slots = tuple(_slot(words, shape) for _ in range(used))
    nodes = []
    for _ in range(shape.walkers):
        count = words.next((7, 1, shape.nodes))
        content = []
        for _ in range(count):
            low = words.next()
            high = words.next() if shape.node_words == 2 else 0
            content.append((low | high << 32) & ((1 << shape.node) - 1))
        nodes.append(np.array(content, dtype=np.int64))
    words.end(length)
    return ImageRead(shape, slots, bias, tuple(nodes), *decision, threshold)


def _decision(words: _NodeWords, shape: EngineShape) -> tuple[int, bool, int, int]:
    word = int(words.words[words.at])
    kind, last, threshold_output = word & 3, word >> 8 & 255, word >> 16 & 255
    if kind > ARGMAX or word >> 3 & 31 or last >= shape.outputs or threshold_output > last or word >> 24:
        raise ImageRefusedError(6)
    words.next()
    return kind, bool(word >> 2 & 1), last, threshold_output


def _slot(words: _NodeWords, shape: EngineShape) -> SlotRead:
    word = int(words.words[words.at])
    first, count = word >> 8 & 255, (word >> 16 & 255) + 1
    if first + count > shape.outputs or word >> 25:
        raise ImageRefusedError(5)
    words.next()
    return SlotRead(word & 255, first, count, bool(word >> 24 & 1))


def row_words(forest: Forest, shape: EngineShape, words: Ints) -> Ints:
    """Converts a forest's words (rows, features) to the words of an engine's rows (rows, columns). The smallest word of
    each feature becomes 0."""
    columns = np.zeros((len(words), shape.features), dtype=np.int64)
    for index, (feature, column) in enumerate(zip(forest.features, forest.row_columns, strict=True)):
        span = word_range(feature.number, feature.missing)
        own = words[:, index] - span.low
        if span.missing is not None and not isinstance(feature.number, Category):
            own = np.where(words[:, index] == span.missing, (1 << shape.word) - 1, own)
        columns[:, column] = own
    return columns


def image_bytes(lines: str) -> bytes:
    """Returns the first image in a test bench's images.txt. Raises ForestcError if the text is damaged."""
    words: list[int] = []
    try:
        for line in lines.splitlines():
            mark, word = line.split()
            if mark in ("0", "1"):
                words.append(int(word, 16))
            if mark == "1":
                break
        return np.array(words, dtype="<u4").tobytes()
    except (ValueError, OverflowError):
        raise ForestcError("images.txt is damaged", where="images.txt", do="compile again") from None
