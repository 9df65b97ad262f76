"""Runs the engine under Verilator: damaged images are refused or harmless, and no row is lost or mixed where models
change.

After a damaged image the next good image answers right. An accepted image answers each row within the clocks that it
asks for, and as the reader of images does where the answers are stated.
"""

from __future__ import annotations

import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.engine.image_reader import ImageRead, ImageRefusedError, read_image
from forestc.backends.engine.walking import Load, Simulation, unpacked_results
from forestc.engine.capacity import ROWS, Capacity
from forestc.engine.folder import described
from forestc.engine.image import image_of, packed_rows
from forestc.engine.vectors import results_of
from forestc.engine.verilog import emit, view_of
from forestc.errors import ForestcError
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Aggregate, Decision, Feature, Forest, Link, Tree
from forestc.forest.numbers import FLOAT32, Fixed
from forestc.toolchain import verilator
from forestc.toolchain.run import run_tool
from hdl_templates import render

Words = NDArray[np.uint32]
PIPELINE = 64  # clocks from the last step of a batch to its last result, and before its first step
CAPACITIES = {
    "two banks": Capacity(3, 64, 4, 5, word_bits=8, outputs=3, scores=True, user_bits=16),
    "one bank": Capacity(3, 64, 4, 5, word_bits=8, outputs=3, scores=True, user_bits=16, banks=1),
}
SWAPPED = Capacity(8, 128, 2, 8, word_bits=8, scores=True, user_bits=16)


def tree(random: np.random.Generator, columns: int, nodes: int, depth: int = 99) -> Tree:
    """Grows a tree by splitting random leaves. The tree is complete if `nodes` are as many as the depth has
    room for."""
    left, right, feature, threshold, level, open_leaves = [-1], [-1], [-1], [0], [0], [0]
    while len(left) < nodes and open_leaves:
        node = open_leaves.pop(int(random.integers(1 + len(open_leaves) // 2)))
        left[node], right[node] = len(left), len(left) + 1
        feature[node], threshold[node] = int(random.integers(columns)), int(random.integers(1, 255))
        for _ in range(2):
            if level[node] + 1 < depth:
                open_leaves.append(len(left))
            for column, value in ((left, -1), (right, -1), (feature, -1), (threshold, 0), (level, level[node] + 1)):
                column.append(value)
    values = random.integers(-99, 100, ((len(left) + 1) // 2, 1))
    return make_tree(
        where="a tree", feature=feature, threshold=threshold, left=left, right=right, values=values, outputs=(0,),
        quantized=True,
    )  # fmt: skip


def forest(seed: int, trees: int, columns: int, nodes: int, depth: int = 99) -> Forest:
    """Makes a forest of random trees for two classes on columns of 8 bits."""
    random = np.random.default_rng(seed)
    return make_forest(
        name=f"random{seed}", features=[Feature(f"f{k}", Fixed(8), k, False, FLOAT32) for k in range(columns)],
        columns=columns, trees=[tree(random, columns, nodes, depth) for _ in range(trees)], n_outputs=1, bias=[0],
        aggregate=Aggregate(), link=Link("identity"), decision=Decision("threshold", 0), classes=["no", "yes"],
        scale=1.0,
    )  # fmt: skip


# ---- damaged images -------------------------------------------------------------------------------------


def sealed(words: Words) -> Words:
    """Returns the image with the matching CRC."""
    if len(words):
        words[-1] = zlib.crc32(words[:-1].tobytes())
    return words


def _flipped(words: Words, random: np.random.Generator) -> Words:
    for _ in range(int(random.integers(1, 9))):
        words[int(random.integers(len(words)))] ^= np.uint32(1 << int(random.integers(32)))
    return words


def _swapped(words: Words, random: np.random.Generator) -> Words:
    a, b = random.integers(0, len(words), 2)
    words[[a, b]] = words[[b, a]]
    return words


def _cut(words: Words, random: np.random.Generator) -> Words:
    return words[: int(random.integers(1, len(words)))]


def _lengthened(words: Words, random: np.random.Generator) -> Words:
    place, count = int(random.integers(len(words) + 1)), int(random.integers(1, 9))
    return np.insert(words, place, random.integers(0, 1 << 32, count)).astype(np.uint32)


def _counted(words: Words, random: np.random.Generator) -> Words:
    """Changes the length, slots, decision, table or a walker's number of nodes, by a little or to any value."""
    table = 16 + 3
    places = [3, 12, 13, *range(table, table + 4), table + int(words[12])]
    place = int(random.choice(places))
    change = [int(random.integers(-3, 4)), int(random.integers(256)) << int(random.integers(0, 25, endpoint=True))]
    words[place] = (int(words[place]) + change[int(random.integers(2))]) & 0xFFFFFFFF
    return words


def _hostile(words: Words, random: np.random.Generator) -> Words:
    """Makes an image of arbitrary nodes, in slots of any number of steps."""
    table = 16 + 3
    walker = table + int(words[12])
    counts, place = set[int](), walker
    while place < len(words) - 1:
        counts.add(place)
        place += 1 + int(words[place])
    for place in range(walker, len(words) - 1):
        if place not in counts:
            words[place] = random.integers(1 << 32)
    for slot in range(table, walker):
        words[slot] = int(words[slot]) & ~0xFF | int(random.integers(256))
    return words


def _random(words: Words, random: np.random.Generator) -> Words:
    """Makes an image of arbitrary words, at times after a correct header."""
    count, kept = int(random.integers(1, 300)), int(random.choice([0, 1, 3, 4, 12, 16]))
    return np.append(words[:kept], random.integers(0, 1 << 32, count)).astype(np.uint32)


DAMAGES: dict[str, Callable[[Words, np.random.Generator], Words]] = {
    "flipped": _flipped, "swapped": _swapped, "cut": _cut, "lengthened": _lengthened, "counted": _counted,
    "hostile": _hostile, "random": _random,
}  # fmt: skip


def damaged(good: Words, number: int) -> tuple[str, Words]:
    """Returns the kind of damage, and the image. Every second image has the matching CRC, every fourth the matching
    length, too."""
    random = np.random.default_rng(number)
    kind = list(DAMAGES)[number % len(DAMAGES)]
    words = DAMAGES[kind](good.copy(), random)
    if kind == "hostile" or number // len(DAMAGES) % 2:
        if kind != "counted" and len(words) > 3 and number // len(DAMAGES) % 4 == 3:
            words[3] = len(words)
        words = sealed(words)
    return kind, words


@dataclass(frozen=True)
class Outcome:
    """The result of a simulated case. Its status is 0xFFFFFFFF if it hangs."""

    status: int
    rows: int
    clocks: int
    idle: int
    results: list[int]


def run_cases(
    capacity: Capacity, cases: Sequence[tuple[Words, NDArray[np.uint64]]], folder: Path, stall: int = 0, seed: int = 1
) -> list[Outcome]:
    """Simulates cases, one after the other. A case is an image and the beats of the rows after it."""
    verilator_program = verilator.find_verilator()
    assert verilator_program is not None, "Verilator is missing"
    lanes = [-(-bits // 32) for bits in (capacity.tdata_bits, capacity.result_bits)]
    (folder / "engine.v").write_text(emit(capacity))
    main = render(
        "check/engine_cases.cpp.j2", **view_of(capacity), most_clocks=capacity.most_clocks,
        user_mask=(1 << capacity.user_bits) - 1, x_lanes=lanes[0], y_lanes=lanes[1],
    )  # fmt: skip
    program = verilator.build(verilator_program, ["engine.v"], capacity.name, main, folder)
    parts = []
    for image, beats in cases:
        wide = np.ascontiguousarray(beats.astype("<u8")).view("<u4").reshape(-1, 2)[:, : lanes[0]].ravel()
        parts += [np.array([len(image)], "<u4"), image.astype("<u4"), np.array([len(beats)], "<u4"), wide]
    data = np.concatenate(parts).astype("<u4").tobytes()
    out = np.frombuffer(run_tool([str(program), str(stall), str(seed)], folder, data=data, seconds=7200), dtype="<u4")
    outcomes, at = [], 0
    while at < len(out):
        status, rows, clocks, idle = out[at : at + 4].tolist()
        at += 4
        words = out[at : at + rows * lanes[1]].reshape(rows, lanes[1])
        at += rows * lanes[1]
        results = [sum(int(word) << 32 * place for place, word in enumerate(row)) for row in words.tolist()]
        outcomes.append(Outcome(status, rows, clocks, idle, results))
    return outcomes


def read(image: Words, engine: dict[str, Any]) -> tuple[int, ImageRead | None]:
    """Reads an image; returns the error, and the image if there is none."""
    try:
        return 0, read_image(image.tobytes(), engine)
    except ImageRefusedError as error:
        return error.error, None


def damage(name: str, count: int, stall: int, rows: int = 9) -> dict[str, Any]:
    """Runs damaged images, each followed by rows, a good image and rows. Raises AssertionError if a result is wrong."""
    capacity = CAPACITIES[name]
    engine, models = described(capacity), [replace(forest(k, 6, 5, 21, 5), n_outputs=1) for k in (1, 2)]
    random = np.random.default_rng(0)
    words = random.integers(0, 256, (rows, 5))
    columns = np.zeros((rows, capacity.beats * capacity.lanes), dtype=np.int64)
    columns[:, :5] = words
    beats = packed_rows(models[0], capacity, words)
    good = [image_of(model, capacity).words for model in models]
    expected = [results_of(capacity, evaluate_words(model, words)) for model in models]
    cases: list[tuple[Words, NDArray[np.uint64]]] = [(good[0], beats)]
    bad = [damaged(good[number % 2], number) for number in range(count)]
    for number, (_, image) in enumerate(bad):
        cases += [(image, beats), (good[(number + 1) % 2], beats)]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run_cases(capacity, cases, Path(folder), stall)
    hangs = sum(outcome.status == 0xFFFFFFFF for outcome in outcomes)
    figures: Counter[str] = Counter()
    active = expected[0]
    for number, (_, image) in enumerate(bad[: (len(outcomes) - 1) // 2]):
        outcome, after = outcomes[1 + 2 * number : 3 + 2 * number]
        error, accepted = read(image, engine)
        status = outcome.status
        figures["refused" if error else "accepted"] += 1
        figures["as the reader says"] += (status >> 4 & 15) == error and status != 0xFFFFFFFF
        if accepted is not None:
            asked = rows * ROWS * sum(slot.steps + slot.count for slot in accepted.slots)
            bound = (asked + PIPELINE + rows * capacity.beats) * 16 // (16 - stall)
            figures["in time"] += outcome.rows == rows and outcome.clocks <= bound
            try:
                answers = accepted.walked(columns)
            except ForestcError:
                figures["accepted, answers not stated"] += 1
            else:
                figures["accepted, answers as stated"] += np.array_equal(
                    unpacked_results(capacity, outcome.results), answers
                )
                figures["accepted, answers stated"] += 1
        elif status & 1:
            figures["refused, old model answers"] += np.array_equal(unpacked_results(capacity, outcome.results), active)
            figures["refused, a model is left"] += 1
        active = expected[(number + 1) % 2]
        figures["next good image answers"] += np.array_equal(unpacked_results(capacity, after.results), active)
    return {"images": count, "hangs": hangs + len(cases) - len(outcomes), **figures}


def right(figures: dict[str, Any]) -> bool:
    """Returns True if the figures of `damage` are all as they should be."""
    count = figures["images"]
    return bool(
        figures["hangs"] == 0
        and figures["refused"] + figures["accepted"] == count
        and figures["as the reader says"] == figures["next good image answers"] == count
        and figures["in time"] == figures["accepted"]
        and figures.get("accepted, answers as stated") == figures.get("accepted, answers stated")
        and figures.get("refused, old model answers") == figures.get("refused, a model is left")
    )


# ---- models that change ---------------------------------------------------------------------------------


def swaps(rows: int, every: int, stall: int, seed: int = 1) -> dict[str, Any]:
    """Runs rows with a model that changes each `every` rows. Returns `mixed`, the rows that no model explains or not
    the current one."""
    models = [forest(k, 12, 8, 63, 5) for k in (1, 2)]
    words = np.random.default_rng(2).integers(0, 256, (rows, 8))
    images = [image_of(model, SWAPPED).words for model in models]
    loads = [Load(every * turn, images[turn % 2]) for turn in range(rows // every)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "engine.v").write_text(emit(SWAPPED))
        simulation = Simulation.of(SWAPPED, "engine.v", folder)
        got, said = simulation.run(loads, packed_rows(models[0], SWAPPED, words), stall=stall, seed=seed)
    results = unpacked_results(SWAPPED, got)
    fits = np.stack([(results == results_of(SWAPPED, evaluate_words(model, words))).all(axis=1) for model in models], 1)
    changes = [[int(number) for number in line.split()[1:]] for line in said.splitlines() if line.startswith("active")]
    sent, seen = (np.array([change[place] for change in changes[1:]]) for place in (0, 1))
    least = np.searchsorted(sent, np.arange(rows), side="right").tolist()  # model changes before the row was sent
    most = np.searchsorted(seen, np.arange(rows), side="left").tolist()  # model changes before the result was seen
    turn = mixed = 0
    for row, fit in enumerate(fits.tolist()):
        turn = max(turn, least[row])
        turn += not fit[turn % 2]
        mixed += not fit[turn % 2] or turn > most[row]
    told_apart = int((fits[:, 0] != fits[:, 1]).sum())
    return {
        "rows": len(results), "swaps": len(changes) - 1, "swaps_wanted": rows // every - 1, "turns": turn,
        "mixed": mixed, "rows_that_tell_models_apart": told_apart,
    }  # fmt: skip
