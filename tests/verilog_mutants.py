"""Makes small changes of an engine's Verilog, one at a time, and tests whether the bench notices.

A mutant has one operator, constant, width, condition or assignment of the walker, the step, the sum, the loader or the
controller changed. It is found if a row gets no result or a wrong one, if `status` at the end is not the stated one, or
if rows take more clocks than stated. `Trial` describes a run. `HARMLESS` lists mutants that change nothing, with the
reason.
"""

from __future__ import annotations

import random
import re
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_forests import random_forest
from walkers import beat_lines, random_image, read_results, same_rows

from forestc.backends.engine.image_reader import EngineShape
from forestc.checks.proof.parts import ProofPart, UnprovedError
from forestc.checks.proof.step import prove_step
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.image import DoesNotFitError, image_of
from forestc.engine.vectors import result_lines, row_lines
from forestc.engine.verilog import emit, emit_bench
from forestc.forest.boundary import boundary_inputs
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, Fixed

SECONDS = 120  # seconds of a run after which it hangs
# This engine has several beats a row, and an image's node in one word.
TWO_BANKS = Capacity(4, 128, 5, 9, word_bits=8, outputs=5, scores=True, user_bits=8)
# This engine has a node in two words, wide values, and two words a beat.
ONE_BANK = Capacity(4, 1024, 8, 9, word_bits=16, outputs=3, scores=True, user_bits=8, banks=1)
# This engine gets images through registers, and has an odd number of walkers.
REGISTERS = Capacity(3, 64, 3, 5, word_bits=6, outputs=2, score_bits=16, scores=True, user_bits=4, load="axi-lite")
CAPACITIES = {"two banks": TWO_BANKS, "one bank": ONE_BANK, "registers": REGISTERS}
TYPES = [Fixed(8), Fixed(5, -2), Fixed(6, 0, True), Fixed(8, 2, True), Category(3), Category(11), Category(40)]

# Each entry has a part of the module, the line before and after the change (regular expressions), and the reason why
# nothing changes.
HARMLESS: list[tuple[str, str, str]] = [
    ("controller", r"waiting_next <= free_next \? ", "both are the same where they are equal"),
    ("controller", r"=> wire stepping = active \|\| emit;", "it adds 0 to sums that were read, or begin anew"),
    ("controller", r"offer <= possible <= ", "6 rows are offered in either case"),
    ("controller", r"=> reg \[\d+:0\] i0_0;", "the index 0 fits a bit"),
    ("controller", r"=> reg \[0:0\] i1_0;", "the index is 0 or 1"),
    ("walker", r"=> .*beats \[-1:", "the highest address is that of a beat which rows do not have"),
    ("loader", r"=> wire opening = .* at <= \S+'d4;", "word 4 is of the hash, and the new one has a place of its own"),
    ("loader", r"=> reg \[\d+:0\] count;", "the number of nodes less 1 fits a bit less"),
    ("loader", r"=> hash_index <= at\[2:0\] \+ 3'd4;", "of 3 bits, 4 more is 4 less"),
    ("loader", r"=> assign claim = .*[78]'d[345];", "with two banks it is read nowhere"),
    (
        "loader",
        r"=> wire opening = .* at >= [78]'d4;",
        "with two banks the first words wait for the bank, not the next",
    ),
    ("loader", r"=> node_write <= .* \|\| high;", "what is written within a node is written anew with its second word"),
    ("sum", r"=> reg signed \[13:0\] s1_1;", "it takes one value alone, which has no more bits"),
]


@dataclass(frozen=True)
class Mutant:
    """A changed line of a module. capacity: of CAPACITIES. module: such as loader. line: before the change. changed:
    after it. what: the change in words."""

    capacity: str
    module: str
    number: int
    line: str
    changed: str
    what: str

    @property
    def harmless(self) -> str:
        """Returns the reason why the mutant changes nothing; "" if it should be found. A solver decides this
        for steps."""
        if self.module == "step":
            shape = EngineShape.of(described(CAPACITIES[self.capacity]))
            with suppress(UnprovedError):
                prove_step(shape, self.source().encode(), CAPACITIES[self.capacity], ProofPart("step", 2))
                return "bitwuzla: equal for every input"
            return ""
        for module, change, why in HARMLESS:
            if module == self.module and re.search(change, f"{self.line.strip()} => {self.changed.strip()}"):
                return why
        return ""

    def source(self) -> str:
        lines = emit(CAPACITIES[self.capacity]).splitlines(keepends=True)
        assert lines[self.number] == self.line
        lines[self.number] = self.changed
        return "".join(lines)


def variants(line: str) -> Iterator[tuple[str, str]]:
    """Yields the changes of a line: the change in words, and the changed line."""
    code, comment = re.match(r"(.*?)(\s*//.*)?\n?$", line, re.S).groups()  # type: ignore[union-attr]
    end = (comment or "") + "\n"

    def put(match: re.Match[str], text: str) -> str:
        return code[: match.start()] + text + code[match.end() :] + end

    inside = [(m.start(), m.end()) for m in re.finditer(r"\[[^\]]*\]", code)]

    def indexed(match: re.Match[str]) -> bool:
        return any(start <= match.start() < stop for start, stop in inside)

    for pattern, others in {
        r"&&": ["||"], r"\|\|": ["&&"], r"==": ["!="], r"!=": ["=="], r" > ": [" >= ", " < "], r" >= ": [" > "],
        r" < ": [" <= ", " >= "], r" \+ ": [" - "], r" - ": [" + "], r" \^ ": [" | "], r" >> ": [" << "],
        r"!(?=[a-z(])": [""], r"~": [""], r"= &(?=[a-z])": ["= |"],
    }.items():  # fmt: skip
        for match in re.finditer(pattern, code):
            if not indexed(match) or pattern in (r" \+ ", r" - "):
                for other in others:
                    yield f"{match[0].strip()} to {other.strip() or 'nothing'}", put(match, other)
    for match in re.finditer(r"(?<=\()(\w+) <= (\w+)(?=\))", code):
        yield "<= to <", put(match, f"{match[1]} < {match[2]}")
    for match in re.finditer(r"(\d+)'([bdh])([0-9a-fA-F]+)", code):
        base = {"b": 2, "d": 10, "h": 16}[match[2]]
        value, most = int(match[3], base), (1 << int(match[1])) - 1
        for other in {value ^ 1, min(most, value + 1), max(0, value - 1)} - {value}:
            text = f"{other:b}" if base == 2 else f"{other:x}" if base == 16 else str(other)
            yield f"{match[0]} to {text}", put(match, f"{match[1]}'{match[2]}{text}")
    for match in re.finditer(r"\[(\d+):(\d+)\]", code):
        high, low = int(match[1]), int(match[2])
        declared = re.match(r"\s*(\(\*.*\*\) )?(input|output|wire|reg)\b", code) and "=" not in code[: match.start()]
        if high > low:
            yield f"[{high}:{low}] a bit narrower", put(match, f"[{high - 1}:{low}]")
        if not declared and low:
            yield f"[{high}:{low}] a bit lower", put(match, f"[{high - 1}:{low - 1}]")
    for match in re.finditer(r"\[(\d+)\](?! *;? *$)", code):
        if int(match[1]):
            yield f"[{match[1]}] a bit lower", put(match, f"[{int(match[1]) - 1}]")
    for match in re.finditer(r"\bif \((.*?)\) (?=begin|[a-z_{]+[a-z0-9_\[\]{}]* ?<?=)", code):
        yield "if always", put(match, "if (1'b1) ")
        yield "if never", put(match, "if (1'b0) ")
    if match := re.match(r"(\s*)([\w\[\], {}:]+) <= [^;]*;$", code):
        yield "no assignment", f"{match[1]};{end}"
    if match := re.search(r"([\w\]) ]+) \? ([^:?]+) : ([^:?;]+);", code):
        yield "? the other way", put(match, f"{match[1]} ? {match[3]} : {match[2]};")


def mutants() -> list[Mutant]:
    """Returns all mutants; lines that both capacities have are changed in the first alone."""
    made, seen = [], set[tuple[str, str]]()
    for name, capacity in CAPACITIES.items():
        module, body, initial = "", False, False
        lines = emit(capacity).splitlines(keepends=True)
        for number, line in enumerate(lines):
            if found := re.match(rf"module {capacity.name}_?(\w*)", line):
                module, body = found[1] or "controller", False
            if not body:  # Other modules have these ports, too.
                body = line.startswith(");")
                continue
            if module == "registers":
                continue
            initial = (initial or line.strip() == "initial begin") and line.strip() != "end"
            if ("hash" in line or "restart" in line) and name != "registers":
                continue  # Only registers show this change.
            if initial or line.startswith("endmodule") or (module, line) in seen or "unused" in line:
                continue
            seen.add((module, line))
            for what, changed in variants(line):
                if changed != line:
                    made.append(Mutant(name, module, number, line, changed, what))
    return made


def sampled(everything: Sequence[Mutant], count: int, seed: int = 0) -> list[Mutant]:
    """Draws some mutants of each module, and of each kind of change."""
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in everything:
        groups.setdefault((mutant.module, re.sub(r"\d+'?[bdh]?\w*", "N", mutant.what)), []).append(mutant)
    source, chosen = random.Random(seed), list[Mutant]()
    for group in groups.values():
        source.shuffle(group)
    while len(chosen) < min(count, len(everything)):
        for group in groups.values():
            if group:
                chosen.append(group.pop())
    return chosen[:count]


@dataclass(frozen=True)
class Trial:
    """A run of the bench.

    images, rows, results: its files.
    options: its arguments.
    status: at the end, except for the bank in use.
    clocks: the most that rows may take; 0 for any number.
    registers: those of the engine at the end, if they can be read: (offset, value, response).
    """

    images: str
    rows: str
    results: str
    options: tuple[str, ...]
    status: int
    clocks: int = 0
    registers: tuple[tuple[int, int, int], ...] = ()


def lines_of(words: NDArray[np.uint32], last: bool = True) -> str:
    marks = [int(last and place == len(words) - 1) for place in range(len(words))]
    return "".join(f"{mark} {word:08x}\n" for mark, word in zip(marks, words.tolist(), strict=True))


def sealed(words: NDArray[np.uint32], place: int, value: int) -> NDArray[np.uint32]:
    """Returns the image with one word replaced, and the matching CRC."""
    changed = words.copy()
    changed[place] = value
    changed[-1] = zlib.crc32(changed[:-1].astype("<u4").tobytes())
    return changed


def refused(good: NDArray[np.uint32], capacity: Capacity) -> list[tuple[int, NDArray[np.uint32]]]:
    """Returns images with one error each, and the number of the error."""
    table, walkers = 16 + capacity.outputs, 16 + capacity.outputs + int(good[12])
    decision, outputs = int(good[13]), capacity.outputs
    flipped = good.copy()
    flipped[-1] ^= 1
    swapped = good.copy()
    swapped[4], swapped[5] = swapped[5], swapped[4] + 1
    longest = 16 + outputs + capacity.slots + capacity.walkers * (1 + capacity.node_words * capacity.nodes) + 1
    shortest = 16 + outputs + 1 + capacity.walkers * (1 + capacity.node_words) + 1
    slot = int(good[table])
    return [
        (1, sealed(good, 0, int(good[0]) ^ 1 << 31)), (2, sealed(good, 1, 0)), (3, sealed(good, 2, int(good[2]) ^ 1)),
        (4, sealed(good, 3, len(good) - 1)), (4, sealed(good, 3, longest + 1)[:5]),
        (4, sealed(good, 3, shortest - 1)[:5]), (4, sealed(good, 3, len(good) + 1)), (5, sealed(good, 12, 0)),
        (5, sealed(good, 12, capacity.slots + 1)), (6, sealed(good, 13, decision | 3)),
        (6, sealed(good, 13, decision | 8)), (6, sealed(good, 13, decision | 128)),
        (6, sealed(good, 13, decision | 1 << 31)), (6, sealed(good, 13, decision | 1 << 24)),
        (6, sealed(good, 13, decision & 0xFF | outputs << 8)), (6, sealed(good, 13, decision & 0xFF | 1 << 15)),
        (6, sealed(good, 13, decision & 0xFFFF | (decision >> 8 & 255) + 1 << 16)), (6, sealed(good, 15, 1)),
        (6, sealed(good, 15, 1 << 31)), (5, sealed(good, table, slot | 1 << 25)),
        (5, sealed(good, table, slot | 1 << 31)), (5, sealed(good, table, slot & 255 | outputs << 8)),
        (5, sealed(good, table, slot & 255 | 1 << 15)),
        (5, sealed(good, table, slot & 255 | 1 << 8 | outputs - 1 << 16)),
        (7, sealed(good, walkers, 0)), (7, sealed(good, walkers, capacity.nodes + 1)),
        (8, flipped), (8, swapped), (9, good[:3]), (9, good[:20]), (9, good[:-1]), (9, np.append(good, good[:2])),
    ]  # fmt: skip


def words_for(forest: Forest, count: int, seed: int) -> NDArray[np.int64]:
    base = np.zeros((1, len(forest.features)), dtype=np.int64)
    near = np.concatenate(list(boundary_inputs(forest, base, seed, count)) or [base])
    return near[np.random.default_rng(seed).permutation(len(near))[:count]].astype(np.int64)


def trial(
    capacity: Capacity, models: Sequence[Forest], words: NDArray[np.int64], images: str, status: tuple[int, int, int],
    stall: int, *more: str, clocks: int = 0,
) -> Trial:  # fmt: skip
    """Makes a trial. status: images taken, images refused, error."""
    taken, wrong, error = status
    options = (f"+models={len(models)}", f"+stall={stall}", f"+seed={taken + stall}", *more)
    return Trial(
        images, row_lines(models[0], capacity, words), result_lines(models, capacity, words), options,
        wrong << 16 | taken << 8 | error << 4 | 1, clocks,
    )  # fmt: skip


def registers_of(capacity: Capacity, image: NDArray[np.uint32], status: int, rows: int, out: int) -> tuple[Any, ...]:
    """Returns all registers at the end. image: the active one. status: except for the bank. rows, out: the counters."""
    values = {0: 0x474E4546, 4: 1, 8: capacity.id, 16: 0, 20: 0, 24: 0, 32: rows, 36: out}
    values |= {64 + 4 * place: int(word) for place, word in enumerate(image[4:12])}
    taken = status >> 8 & 255
    values[12] = status | (taken & 1) << 1
    return tuple((offset, values.get(offset, 0), 0 if offset in values else 2) for offset in range(0, 128, 4))


def anything(capacity: Capacity) -> list[Trial]:
    """Makes trials with images of nodes that lead anywhere; the expected answers are the image reader's. There are the
    longest and the shortest images, slots of many steps and none, and models that change while the old one is in use.
    """
    random, made = np.random.default_rng(0), list[Trial]()
    columns = random.integers(0, 1 << capacity.word_bits, (400, capacity.beats * capacity.lanes))
    columns[:40] = (1 << capacity.word_bits) - 1 - columns[:40] % 2 * (columns[:40] % 3)  # missing values

    def run(
        images: Sequence[NDArray[np.uint32]],
        count: int,
        stall: int,
        *more: str,
        after: Sequence[int] = (),
        half: int = 0,
    ) -> None:
        rows = columns[:count] if len(made) % 2 else columns[-count:]
        answers = zip(*read_results(capacity, images, rows), strict=True)
        results = "".join(" ".join(f"{each:x}" for each in row) + "\n" for row in answers)
        places = [*after, *([0] * len(images))]
        text = "".join(f"wait {place}\n{lines_of(image)}" for image, place in zip(images, places, strict=False))
        text += f"wait {places[len(images) - 1]}\n{lines_of(images[0][:half], last=False)}" if half else ""
        options = (f"+models={len(images)}", f"+stall={stall}", f"+seed={stall + 1}", *more)
        status = len(images) << 8 | bool(half) << 2 | 1
        made.append(
            Trial(
                text, beat_lines(capacity, rows), results, options, status,
                registers=registers_of(capacity, images[-1], status, count, count)
                if capacity.load == "axi-lite" and not half
                else (),
            )
        )  # fmt: skip

    full = [random_image(capacity, seed, capacity.slots, 6 + seed) for seed in range(6)]
    for seed, image in enumerate(full):
        run([image], 60, seed % 2 * 5, *(["+patient"] if seed % 2 else []))
    for seed in (8, 14, 20, 26):  # Their scores are often equal.
        run([random_image(capacity, seed, 1, 4)], 200, 0)
    run([random_image(capacity, 3, 1, 2)], 300, 0, "+hold=400")  # Results wait, and rows behind them.
    run([random_image(capacity, 7, 1, 0, nodes=1)], 60, 0)
    run([random_image(capacity, 8, 1, 255, nodes=40)], 10, 0)
    if capacity.banks == 2:
        long = [random_image(capacity, 20 + seed, capacity.slots, 60) for seed in range(7)]
        run(long, 90, 0, after=(0, *[10] * 6))
        late = [random_image(capacity, 51 + 2 * seed, 1, 250) for seed in range(7)]  # Biases are read late.
        run(late, 90, 0, after=(0, *[10] * 6))
        small = [random_image(capacity, 30 + seed, 2, 3, nodes=16) for seed in range(5)]
        run(small, 400, 0, after=(0, 90, 180, 270, 360))
        for words in (1, 8, 16):
            run(full[:1], 6, 0, half=words)
    return made


def resets(capacity: Capacity) -> Trial:
    """Makes a trial of many one-clock resets while results are on their way, each in an image that has just begun."""
    image = random_image(capacity, 11, 1, 1)
    columns = np.random.default_rng(2).integers(0, 1 << capacity.word_bits, (900, capacity.beats * capacity.lanes))
    results = "".join(f"{each:x}\n" for each in read_results(capacity, [image], columns)[0])
    begun = "".join(f"wait {20 * turn}\n{lines_of(image[:1], last=False)}reset 1\n" for turn in range(1, 41))
    text = f"wait 0\n{lines_of(image)}{begun}wait 850\n{lines_of(sealed(image, 1, 7))}"
    return Trial(text, beat_lines(capacity, columns), results, (), 0x10121)


def refusals(capacity: Capacity, good: NDArray[np.uint32]) -> list[Trial]:
    """Makes a trial of each refused image, after a good one and the rows. With one bank the model stays if one of the
    first words is wrong."""
    made, first = list[Trial](), random_image(capacity, 40, 1, 2, nodes=4)
    columns = np.random.default_rng(1).integers(0, 1 << capacity.word_bits, (6, capacity.beats * capacity.lanes))
    results = "".join(f"{each:x}\n" for each in read_results(capacity, [first], columns)[0])
    rows = beat_lines(capacity, columns)
    for error, image in refused(good, capacity):
        kept = capacity.banks == 2 or error <= 3 or len(image) <= 5
        text = f"wait 0\n{lines_of(first)}wait 6\n{lines_of(image)}"
        made.append(Trial(text, rows, results, (), 0x10100 | error << 4 | kept))
    return made


def registers(capacity: Capacity) -> list[Trial]:
    """Makes trials in which the register `control` clears half an image, and its error."""
    good = random_image(capacity, 1, 2, 4)
    columns = np.random.default_rng(1).integers(0, 1 << capacity.word_bits, (8, capacity.beats * capacity.lanes))
    results = "".join(f"{each:x}\n" for each in read_results(capacity, [good], columns)[0])
    rows, forget, made = beat_lines(capacity, columns), "2 00000002\n", list[Trial]()
    wrong = lines_of(sealed(good, 1, 7))
    for lines, status, counted in (
        (f"{lines_of(good[:30], last=False)}{forget}{lines_of(good)}", 0x101, 8),
        (f"{lines_of(good[:90], last=False)}{forget}{lines_of(good)}", 0x101, 8),
        (f"{lines_of(good)}{wrong}", 0x10121, 8), (f"{lines_of(good)}{wrong}{forget}", 0x10101, 8),
        (f"3 00000000\n2 00000000\n{lines_of(good)}", 0x101, 8), (f"{lines_of(good)}wait 8\n2 00000001\n", 0x101, 0),
    ):  # fmt: skip
        for stall in (0, 6):
            known = registers_of(capacity, good, status, counted, 8 if counted else -1)
            if not counted:  # Some results may come later.
                known = tuple(each for each in known if each[0] != 36)
            made.append(Trial(f"wait 0\n{lines}", rows, results, (f"+stall={stall}",), status, registers=known))
    return made


@cache
def trials(name: str) -> list[Trial]:
    """Returns all trials of an engine: arbitrary images, random models of each kind, models that change in mid-stream
    with damaged images between them, and resets."""
    capacity, made = CAPACITIES[name], list[Trial]()
    made += anything(capacity)
    if name == "registers":
        return made + registers(capacity) + refusals(capacity, random_image(capacity, 6, 2, 3))
    source = np.random.default_rng(0)
    models = same_rows(4)
    good = [image_of(model, capacity).words for model in models]
    words = source.integers(0, 256, (240, 5))
    # swaps
    for stall in (0, 6):
        images = "".join(f"wait {60 * place}\n{lines_of(image)}" for place, image in enumerate(good))
        made.append(trial(capacity, models, words, images, (4, 0, 0), stall, *(["+cut=5"] if stall else [])))
    # These measure throughput: there is no swap and no stall.
    image = image_of(models[0], capacity)
    most = max(image.clocks, capacity.beats) * 240 + len(image.words) + 200
    made.append(trial(capacity, models[:1], words, lines_of(image.words), (1, 0, 0), 0, clocks=most))
    # With one bank a damaged image leaves no model, so it comes last.
    bad = refused(good[1], capacity)
    if capacity.banks == 2:
        images = f"wait 0\n{lines_of(good[0])}" + "".join(f"wait 5\n{lines_of(each)}" for _, each in bad)
        made.append(trial(capacity, models[:1], words[:60], images, (1, len(bad), bad[-1][0]), 1))
    else:
        images = "".join(f"wait 0\n{lines_of(each)}" for _, each in bad) + lines_of(good[0])
        made.append(trial(capacity, models[:1], words[:60], images, (1, len(bad), 0), 1, "+late"))
        for error, each in bad[:3]:  # The model is not disturbed by these images.
            images = f"wait 0\n{lines_of(good[0])}wait 5\n{lines_of(each)}"
            made.append(trial(capacity, models[:1], words[:60], images, (1, 1, error), 3))
    made += [*refusals(capacity, good[1]), resets(capacity)]
    # The resets come in mid-image, and with rows under way.
    half = lines_of(good[1][: len(good[1]) // 2], last=False)
    images = f"wait 0\n{half}reset 3\n{lines_of(good[0])}wait 30\n" + (half if capacity.banks == 2 else "")
    images += f"reset 1\n{lines_of(good[2])}wait 100\nreset 2\n{lines_of(good[3])}"
    for stall in (0, 5):
        made.append(trial(capacity, [models[0], *models[2:]], words, images, (3, 0, 0), stall, "+cut=4"))
    # These use models of every kind.
    for kind in ("binary", "argmax", "regression", "vector"):
        found = 0
        for seed in range(40):
            forest = random_forest(seed, True, kind, TYPES)
            if forest.n_outputs > capacity.outputs or forest.depth < 3:
                continue
            try:
                image = image_of(forest, capacity)
            except DoesNotFitError:
                continue
            rows = words_for(forest, 160, seed)
            made.append(trial(capacity, [forest], rows, lines_of(image.words), (1, 0, 0), seed % 3 * 4))
            found += 1
            if found == 3:
                break
    # These have many trees on each walker, in slots of one output each and together.
    rows = source.integers(0, 256, (80, 5))
    crowd = [tree for model in same_rows(12) for tree in model.trees if len(tree.outputs) == 1]
    shallow = [tree for tree in crowd if tree.size <= 21][: capacity.walkers * 2]
    base = models[0]
    full = replace(base, trees=tuple(replace(tree, outputs=(0,)) for tree in shallow))
    made.append(trial(capacity, [full], rows, lines_of(image_of(full, capacity).words), (1, 0, 0), 0))
    return made


def outcome(source: str, name: str, folder: Path) -> str:
    """Compiles a source and runs the bench; returns "" if nothing is wrong, "not Verilog" if it can't be compiled,
    otherwise the bench's message."""
    capacity = CAPACITIES[name]
    (folder / "engine.v").write_text(source)
    (folder / "bench.v").write_text(emit_bench(capacity))
    command = ["iverilog", "-g2005", "-o", "bench.vvp", "engine.v", "bench.v"]
    if subprocess.run(command, cwd=folder, capture_output=True).returncode:
        return "not Verilog"
    for place, each in enumerate(trials(name)):
        for file, text in (("images", each.images), ("rows", each.rows), ("results", each.results)):
            (folder / f"{file}.txt").write_text(text)
        try:
            run = subprocess.run(
                ["vvp", "-n", "bench.vvp", *each.options], cwd=folder, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"trial {place}: hangs"
        text = run.stdout
        status = re.findall(r"status ([0-9a-f]{8})", text)
        if run.returncode or not text.startswith("PASS"):
            said = re.findall("FAIL.*", text) or ["no verdict"]
            return f"trial {place}: {said[0]}"
        if not status or int(status[-1], 16) & 0xFFFFFFFD != each.status:
            return f"trial {place}: status {status}, should be {each.status:08x}"
        for offset, value, response in each.registers:
            expected = f"register {offset:02x} {value:08x} {response:02b}"
            if expected not in text:
                return f"trial {place}: not {expected}"
        clocks = int(re.search(r"in (\d+) clocks", text)[1])  # type: ignore[index]
        if each.clocks and clocks > each.clocks:
            return f"trial {place}: {clocks} clocks, should be {each.clocks}"
    return ""
