"""Proves an engine's image equal to the quantized forest, and the module `step` of its Verilog equal to its definition.

| part     | statement                                                                          |
|----------|------------------------------------------------------------------------------------|
| image    | the engine accepts the image                                                       |
| step     | the module `step` gives the next address and the value, for all its inputs         |
| trees    | each walker, in each slot, ends at the value of its tree, for all words            |
| steps    | a slot has at least the steps of its longest walk                                  |
| sums     | each tree is in one slot, each sum begins once, with the bias, and cannot overflow |
| decision | rule, ties, outputs and threshold are the forest's                                 |

A walker is a unit of the engine that evaluates one tree in each slot of the schedule, one node per step. The proof of a
walk follows states: a node of the image, a node of the tree, and the words of the rows that arrive at both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from forestc.backends.base import Gives
from forestc.backends.engine.image_reader import (
    ARGMAX,
    JUMP,
    LEAF,
    LESS,
    NONE,
    THRESHOLD,
    EngineShape,
    ImageRead,
    ImageRefusedError,
    Ints,
    SlotRead,
    read_image,
)
from forestc.backends.engine.reading import engine_files
from forestc.backends.table import file_of
from forestc.checks.proof.parts import Proof, ProofPart, Running, UnprovedError
from forestc.checks.proof.step import prove_step
from forestc.engine.image import image_of
from forestc.errors import ForestcError
from forestc.forest.builder import make_tree
from forestc.forest.conditions import NO_SET
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import LEAF as NO_CHILD
from forestc.forest.ir import Forest, Tree
from forestc.forest.numbers import Category, word_range
from forestc.manifest.design import Design

Spans = tuple[tuple[int, int], ...]  # ascending ranges of words, (first, past the last)
# A set of rows, as the words allowed in each column; a column without entry allows any word.
Box = dict[int, Spans]
_KINDS = {"none": NONE, "threshold": THRESHOLD, "argmax": ARGMAX}
MOST_MASKED = 1 << 17  # words tried one by one with a node's mask, at most
MOST_STATES = 4_000_000  # limits the states of a walk; with more, the proof fails


def cut(spans: Spans, low: int, high: int) -> Spans:
    parts = ((max(start, low), min(stop, high)) for start, stop in spans)
    return tuple((start, stop) for start, stop in parts if start < stop)


def joined(spans: Spans) -> Spans:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return tuple(merged)


def without(spans: Spans, others: Spans) -> Spans:
    left = spans
    for start, stop in others:
        left = cut(left, 0, start) + cut(left, stop, 1 << 63)
    return tuple(sorted(left))


def common(spans: Spans, others: Spans) -> Spans:
    return tuple(sorted(part for start, stop in others for part in cut(spans, start, stop)))


@dataclass(frozen=True)
class Columns:
    """The words that each column of an engine's row can hold; the smallest word is 0, as in the image."""

    forest: Forest
    top: int  # largest word
    feature_spans: dict[int, Spans]  # words of the feature in each column

    @classmethod
    def of(cls, forest: Forest, shape: EngineShape) -> Columns:
        top, feature_spans = (1 << shape.word) - 1, dict[int, Spans]()
        for feature, column in zip(forest.features, forest.row_columns, strict=True):
            span = word_range(feature.number, feature.missing)
            values: Spans = ((0, span.high - span.low + 1),)
            if span.missing is not None:
                missing = span.missing - span.low if isinstance(feature.number, Category) else top
                values = joined((*values, (missing, missing + 1)))
            if values[-1][1] > top + 1 or column in feature_spans or column >= shape.features:
                raise UnprovedError(f"feature {feature.name!r} has no column of its own, or too narrow a one")
            feature_spans[column] = values
        return cls(forest, top, feature_spans)

    def all(self, column: int) -> Spans:
        return self.feature_spans.get(column, ((0, self.top + 1),))

    def left(self, tree: Tree, node: int) -> tuple[int, Spans]:
        """Returns the column read by a tree's node, and this column's words for which a row goes left."""
        feature = self.forest.features[int(tree.feature[node])]
        span = word_range(feature.number, feature.missing)
        chosen, high = int(tree.set_index[node]), span.high - span.low + 1
        left: Spans
        if chosen == NO_SET:
            left = cut(((0, high),), 0, int(tree.threshold[node]) - span.low)
        elif isinstance(feature.number, Category):
            codes = (int(code) - span.low for code in tree.sets[chosen])
            left = joined(tuple((code, code + 1) for code in codes if 0 <= code < high))
        else:
            left, inside, start = (), False, 0
            for boundary in tree.sets[chosen]:
                at = min(
                    max(int(boundary) - span.low if np.isfinite(boundary) else (0 if boundary < 0 else high), 0), high
                )
                left += ((start, at),) if inside and start < at else ()
                inside, start = not inside, at
            left = joined(left + (((start, high),) if inside and start < high else ()))
        if span.missing is not None and tree.missing_left[node]:
            missing = span.missing - span.low if isinstance(feature.number, Category) else self.top
            left = joined((*left, (missing, missing + 1)))
        return self.forest.row_columns[int(tree.feature[node])], left


@dataclass(frozen=True)
class Inner:
    """An inner node of the image, decoded as in docs/explanation/engine.md."""

    kind: int
    flag: int
    child: int
    column: int
    operand: int

    @classmethod
    def of(cls, shape: EngineShape, node: int) -> Inner:
        at = 3 + shape.address
        column = node >> at & ((1 << shape.column) - 1)
        operand = node >> (at + shape.column) & ((1 << shape.word) - 1)
        return cls(node & 3, node >> 2 & 1, node >> 3 & ((1 << shape.address) - 1), column, operand)

    def ways(self, shape: EngineShape, spans: Spans) -> Iterator[tuple[int, Spans]]:
        """Yields (next address, the words among `spans` that lead to it). Raises UnprovedError if a mask would be tried
        on too many words."""
        top, some, group = (1 << shape.word) - 1, 1 << shape.mask, shape.address
        wrap = (1 << group) - 1
        if self.kind == JUMP:
            for number in sorted({n for start, stop in spans for n in range(start // some, (stop - 1) // some + 1)}):
                yield self.child + number & wrap, cut(spans, number * some, (number + 1) * some)
            return
        if self.kind == LESS:
            left = cut(spans, 0, min(self.operand, top))
            left += cut(spans, top, top + 1) if self.flag else ()
        else:
            if sum(stop - start for start, stop in spans) > MOST_MASKED:
                raise UnprovedError("a mask is asked for too many words")
            words = (word for start, stop in spans for word in range(start, stop))
            left = joined(tuple((word, word + 1) for word in words if self.operand >> (word % some) & 1))
        right = without(spans, left)
        if left:
            yield self.child, left
        if right:
            yield self.child + 1 & wrap, right


@dataclass(frozen=True)
class WalkState:
    """A set of rows that arrive at a node of the image and at a node of the tree."""

    node: int  # node of the tree
    box: Box  # possible words of the rows
    split: int  # column that split the rows last; -1 for none


class Walk:
    """The walk of one walker through a tree in one slot. number: index of the slot."""

    def __init__(self, image: ImageRead, columns: Columns, tree: Tree, walker: int, number: int) -> None:
        self.image, self.shape, self.columns, self.tree = image, image.shape, columns, tree
        self.nodes, self.slot, self.root = image.nodes[walker], image.slots[number], number
        self.conditions: dict[int, tuple[int, Spans]] = {}
        self.where = f"walker {walker}, slot {number}"

    def prove(self) -> int:
        """Proves that every row gets the tree's value. Returns an upper bound of a row's steps. Raises UnprovedError if
        a row may get another value."""
        order, depth = self._order()
        states: dict[int, list[WalkState]] = {self.root: [WalkState(0, {}, -1)]}
        count = 0
        for address in order:
            here = self._met(states.pop(address, []))
            count += len(here)
            if count > MOST_STATES:
                raise UnprovedError(f"{self.where}: the image's nodes and the tree's meet in too many ways")
            node = int(self.nodes[address])
            if node & 3 == LEAF:
                values = self.leaf(self.shape, self.nodes, address, self.slot)
                for state in here:
                    self._leaves(state, values, address)
                continue
            inner = Inner.of(self.shape, node)
            for state in here:
                spans = state.box.get(inner.column, None) or self.columns.all(inner.column)
                for target, part in inner.ways(self.shape, spans):
                    changed = state.box if part == spans else state.box | {inner.column: part}
                    states.setdefault(target, []).append(WalkState(state.node, changed, inner.column))
        return depth

    def _order(self) -> tuple[list[int], int]:
        """Returns the reachable addresses in topological order, and the longest walk's number of steps."""
        following: dict[int, list[int]] = {}
        finished: dict[int, int] = {}  # steps of the longest walk from there
        order: list[int] = []
        stack, open_nodes = [self.root], set[int]()
        while stack:
            address = stack[-1]
            if address >= len(self.nodes):
                raise UnprovedError(f"{self.where}: a walk leads to {address}, where the image has no node")
            if address in finished:
                stack.pop()
            elif address in open_nodes:
                open_nodes.discard(address)
                finished[address] = max((1 + finished[other] for other in following[address]), default=0)
                order.append(address)
                stack.pop()
            else:
                node, following[address] = int(self.nodes[address]), []
                if node & 3 != LEAF:
                    inner = Inner.of(self.shape, node)
                    ways = inner.ways(self.shape, self.columns.all(inner.column))
                    following[address] = [target for target, _ in ways]
                open_nodes.add(address)
                for other in following[address]:
                    if other in open_nodes:
                        raise UnprovedError(f"{self.where}: nodes lead to one another, at {other}")
                    if other not in finished:
                        stack.append(other)
        return order[::-1], finished[self.root]

    def _met(self, arrived: list[WalkState]) -> list[WalkState]:
        """Moves states down the tree until their rows may part, then merges states of one node if only the words of the
        last split's column differ."""
        groups: dict[tuple[object, ...], tuple[WalkState, list[Spans]]] = {}
        for state in arrived:
            node = self._advanced(state)
            box, split = state.box, state.split
            rest = tuple(sorted(item for item in box.items() if item[0] != split))
            spans = box.get(split) or self.columns.all(split)
            groups.setdefault((node, split, rest), (WalkState(node, box, split), []))[1].append(spans)
        merged = []
        for state, parts in groups.values():
            if len(parts) == 1:
                merged.append(state)
                continue
            union = joined(tuple(span for spans in parts for span in spans))
            merged.append(WalkState(state.node, state.box | {state.split: union}, state.split))
        return merged

    def _condition(self, node: int) -> tuple[int, Spans]:
        if node not in self.conditions:
            self.conditions[node] = self.columns.left(self.tree, node)
        return self.conditions[node]

    def _sides(self, node: int, box: Box) -> tuple[int, Spans, Spans]:
        column, left = self._condition(node)
        spans = box.get(column) or self.columns.all(column)
        inside = common(spans, left)
        return column, inside, without(spans, left)

    def _advanced(self, state: WalkState) -> int:
        node = state.node
        while self.tree.left[node] != NO_CHILD:
            _, inside, outside = self._sides(node, state.box)
            if inside and outside:
                break
            node = int(self.tree.left[node] if inside else self.tree.right[node])
        return node

    def _leaves(self, state: WalkState, values: dict[int, int], address: int) -> None:
        """Raises UnprovedError unless each leaf that the state's rows can reach holds `values`, a map from outputs to
        nonzero values."""
        waiting = [(state.node, state.box)]
        while waiting:
            node, box = waiting.pop()
            if self.tree.left[node] == NO_CHILD:
                own = self.tree.values[self.tree.leaf[node]].tolist()
                expected = {output: int(value) for output, value in zip(self.tree.outputs, own, strict=True) if value}
                if expected != values:
                    words = {column: spans[0][0] for column, spans in sorted(box.items())}
                    raise UnprovedError(
                        f"{self.where}: the node {address} adds {values} where the tree adds {expected}", words
                    )
                continue
            column, inside, outside = self._sides(node, box)
            for child, spans in ((self.tree.left[node], inside), (self.tree.right[node], outside)):
                if spans:
                    waiting.append((int(child), box | {column: spans}))

    @staticmethod
    def leaf(shape: EngineShape, nodes: Ints, address: int, slot: SlotRead) -> dict[int, int]:
        """Returns {output: value} for the nonzero values that a walker adds at this leaf. slot: its outputs."""
        added: dict[int, int] = {}
        for output in range(slot.first, slot.first + slot.count):
            node = int(nodes[address]) if address < len(nodes) else 0
            if node & 3 != LEAF or node >> 3 & ((1 << shape.output) - 1) != output:
                continue
            pattern = node >> (3 + shape.output) & ((1 << shape.value) - 1)
            value = pattern - (pattern >> (shape.value - 1) << shape.value)
            if value:
                added[output] = value
            address += node >> 2 & 1
        return added


def prove_walks(image: ImageRead, forest: Forest, arrangement: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Proves that each walker in each slot gives every row its tree's value. Yields (slot, most steps). arrangement:
    trees by slot and walker, -1 for none. Raises UnprovedError."""
    columns = Columns.of(forest, image.shape)
    nothing = _nothing()
    for number, trees in enumerate(arrangement):
        for walker, index in enumerate(trees):
            tree = forest.trees[index] if index >= 0 else nothing
            yield number, Walk(image, columns, tree, walker, number).prove()


def _nothing() -> Tree:
    return make_tree(
        where="no tree", feature=[-1], threshold=[0], left=[-1], right=[-1], values=[[0]], outputs=(0,), quantized=True
    )


def prove_engine(design: Design, proof: Proof, progress: Callable[[str], None], native: bool = False) -> Proof:
    """Proves the module `step` and the image of a folder's engine. Adds the results to `proof` and returns it."""
    data, content = engine_files(design)
    arrangement = [slot.trees for slot in image_of(design.forest, design.engine).slots]
    with _part(proof, "step", 2) as part:
        progress("proof of a step")
        prove_step(EngineShape.of(content), file_of(design, Gives.WALKERS).read_bytes(), design.engine, part, native)
    return prove_image(design.forest, content, data, arrangement, proof, progress)


def prove_image(
    forest: Forest,
    engine: Mapping[str, Any],
    data: bytes,
    arrangement: Sequence[Sequence[int]],
    proof: Proof,
    progress: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Proves an engine's image; adds the results to `proof` and returns it. engine: content of engine.json.
    arrangement: the tree of each walker in each slot, -1 for none."""
    try:
        with _part(proof, "image", 1, stop=True) as part:
            image = _read(data, engine)
            if [len(trees) for trees in arrangement] != [len(image.nodes)] * len(image.slots):
                raise UnprovedError(f"the image has {len(image.slots)} slots, and should have {len(arrangement)}")
            part.proved = 1
    except UnprovedError:
        return proof
    longest = [0] * len(image.slots)
    with _part(proof, "trees", len(image.slots) * len(image.nodes)) as part:
        try:
            for number, steps in prove_walks(image, forest, arrangement):
                longest[number] = max(longest[number], steps)
                part.proved += 1
                progress(f"proof of the image: {part.proved} of {part.asked} walks")
        except UnprovedError as error:
            if error.words is None:
                raise
            difference = _confirmed(forest, image, error.words)
            raise UnprovedError(f"{error}{difference}", wrong=bool(difference)) from None
    with _part(proof, "steps", len(image.slots)) as part:
        for number, slot in enumerate(image.slots):
            if slot.steps < longest[number]:
                raise UnprovedError(f"slot {number} has {slot.steps} steps, and a walk takes {longest[number]}")
            part.proved += 1
    with _part(proof, "sums", forest.n_outputs) as part:
        _sums(forest, image, arrangement, part)
    with _part(proof, "decision", 1) as part:
        _decision(forest, image)
        part.proved = 1
    return proof


@contextmanager
def _part(proof: Proof, name: str, asked: int, stop: bool = False) -> Iterator[ProofPart]:
    """Yields a new part of the proof. UnprovedError and TimeoutError make the part fail; with `stop`, UnprovedError is
    raised again."""
    try:
        with Running(proof, ProofPart(name, asked)) as part:
            yield part
    except UnprovedError as error:
        proof.refuted |= error.wrong
        if stop:
            raise
    except TimeoutError:
        pass


def _read(data: bytes, engine: Mapping[str, Any]) -> ImageRead:
    try:
        return read_image(data, engine)
    except ImageRefusedError as error:
        raise UnprovedError(error.what, wrong=True) from None


def _confirmed(forest: Forest, image: ImageRead, columns: Mapping[int, int]) -> str:
    """Returns the difference between image and forest on a row; "" if there is none."""
    words = np.zeros((1, len(forest.features)), dtype=np.int64)
    row = np.zeros((1, image.shape.features), dtype=np.int64)
    for index, (feature, column) in enumerate(zip(forest.features, forest.row_columns, strict=True)):
        span = word_range(feature.number, feature.missing)
        own = columns.get(column, 0)
        absent = span.missing is not None and not isinstance(feature.number, Category)
        is_missing = absent and own == (1 << image.shape.word) - 1
        words[0, index] = span.missing if is_missing and span.missing is not None else own + span.low
        row[0, column] = own
    try:
        got = image.walked(row)[0]
    except ForestcError as error:
        return f"; {error.what}"
    truth = evaluate_words(forest, words)
    label = max(0, int(truth.index.reshape(1, -1)[0, 0]))
    expected = [label, *(truth.scores[0].tolist() if image.shape.gives_scores else [])]
    if got[: len(expected)].tolist() == expected:
        return ""
    return (
        f"; the image gives {got[: len(expected)].tolist()} where the forest gives {expected}, at {words[0].tolist()}"
    )


def _sums(forest: Forest, image: ImageRead, arrangement: Sequence[Sequence[int]], part: ProofPart) -> None:
    placed = sorted(tree for slot in arrangement for tree in slot if tree >= 0)
    if placed != list(range(len(forest.trees))):
        raise UnprovedError("not each tree is in one slot")
    if image.last_output != forest.n_outputs - 1:
        raise UnprovedError(f"{image.last_output + 1} outputs are in use, and the forest has {forest.n_outputs}")
    if not (forest.single and forest.adds):
        raise UnprovedError("the forest does not add its trees")
    limit = 1 << (image.shape.score - 1)
    for output in range(forest.n_outputs):
        begins = [slot.initial for slot in image.slots if slot.first <= output < slot.first + slot.count]
        if not begins or not begins[0] or any(begins[1:]):
            raise UnprovedError(f"the sum of output {output} does not begin once, with the first slot that adds to it")
        bias = int(forest.bias[output])
        low = high = bias
        for tree in forest.trees:
            if output in tree.outputs:
                values = tree.values[:, tree.outputs.index(output)]
                low, high = low + int(values.min()), high + int(values.max())
        if image.bias[output] != bias:
            raise UnprovedError(f"output {output} begins with {image.bias[output]}, and its bias is {bias}")
        if low < -limit or high >= limit:
            raise UnprovedError(f"output {output} can be {low} to {high}, which takes more than its bits")
        part.proved += 1


def _decision(forest: Forest, image: ImageRead) -> None:
    decision = forest.decision
    expected: dict[str, Any] = {"decision": _KINDS[decision.kind]}
    if decision.kind == "threshold":
        expected |= {"threshold_output": forest.n_outputs - 1, "threshold": int(decision.threshold)}
    if decision.kind == "argmax":
        expected |= {"last_wins": decision.ties == "last"}
        if decision.on == "values" and forest.link.kind not in ("identity", "order"):
            raise UnprovedError("the forest decides by values after its link")
    for name, value in expected.items():
        if getattr(image, name) != value:
            raise UnprovedError(f"the image's {name} is {getattr(image, name)}, and the forest's {value}")
