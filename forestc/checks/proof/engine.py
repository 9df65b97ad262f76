"""Proves an engine's image equal to the quantized forest, and the module `step` of its Verilog equal to its definition.

| part     | statement                                                                          |
|----------|------------------------------------------------------------------------------------|
| image    | the engine accepts the image                                                       |
| step     | the module `step` gives the next address and the value, for all its inputs         |
| trees    | each walker, in each slot, ends at the value of its tree, for all words            |
| steps    | a slot has at least the steps of its longest walk                                  |
| sums     | each tree is in one slot, each sum begins once, with the bias, and cannot overflow |
| decision | rule, ties, outputs and threshold are the forest's                                 |

A walker is a unit of the engine that evaluates one tree in each slot of the schedule, one node per step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from forestc.checks.engine_files import engine_files
from forestc.checks.image_reader import (
    ARGMAX,
    NONE,
    THRESHOLD,
    EngineShape,
    ImageRead,
    ImageRefusedError,
    read_image,
)
from forestc.checks.proof.parts import Proof, ProofPart, Running, UnprovedError
from forestc.checks.proof.step import prove_step
from forestc.checks.proof.walk import prove_walks
from forestc.engine.image import image_of
from forestc.errors import ForestcError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, word_range
from forestc.manifest.design import Design

_KINDS = {"none": NONE, "threshold": THRESHOLD, "argmax": ARGMAX}


def prove_engine(design: Design, proof: Proof, progress: Callable[[str], None], native: bool = False) -> Proof:
    """Proves the module `step` and the image of a folder's engine. Adds the results to `proof` and returns it."""
    data, content = engine_files(design)
    arrangement = [slot.trees for slot in image_of(design.forest, design.engine).slots]
    with _part(proof, "step", 2) as part:
        progress("proof of a step")
        prove_step(EngineShape.of(content), design.path("engine").read_bytes(), design.engine, part, native)
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
