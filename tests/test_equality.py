"""Tests every engine against the evaluator on every kind of forest: a table of forests times a table of engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_counts import examples
from forest_designs import design, differences
from forest_kinds import FLOATABLE, FORESTS, HARD, LARGE, RAW, Types
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import troublesome_rows
from vhdl_tools import STANDARDS, benched, words_of

from forestc.backends.c.raw import TYPES
from forestc.backends.hls import core as hls
from forestc.backends.running import simulated
from forestc.backends.vectors import expected, random_words
from forestc.backends.vhdl import core as vhdl
from forestc.checks.proof import prove_netlist, prove_vhdl
from forestc.checks.proof.equality import prove_component
from forestc.forest.boundary import boundary_inputs
from forestc.forest.builder import changed
from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest, print_forest
from forestc.layouts import ranks
from forestc.lowering.timing import DELAYS
from forestc.lowering.trees import LoweringOptions, lower, lower_with_witness
from forestc.rows.encode import encode
from hw_sim import Simulator


@dataclass(frozen=True)
class Engine:
    """An engine of the table.

    differs: takes (forest, folder, seed); returns True if any answer differs.
    tool: the program that it runs.
    types: of features that it takes; None for all.
    large: takes the chain and hundreds of classes, too.
    seeds: of each forest, in each run.
    """

    differs: Callable[[Forest, Path, int], bool]
    tool: str = ""
    types: Types = None
    large: bool = False
    seeds: int = 1


def outputs_of(forest: Forest) -> str:
    return "both" if forest.decides else "scores"


def hard_words(forest: Forest, seed: int) -> Any:
    base = encode(forest, troublesome_rows(forest, seed, 50))
    random = np.random.default_rng(seed)
    return np.concatenate([base, *boundary_inputs(forest, base), random_words(forest, base, 300, random)])


def netlist(forest: Forest, folder: Path, seed: int) -> bool:
    families = sorted(DELAYS)
    latency, family = seed % 5, families[seed % len(families)]
    outputs = outputs_of(forest) if seed % 3 else "auto"
    made = lower(forest, LoweringOptions(latency=latency, outputs=outputs, family=family))
    words = hard_words(forest, seed)
    same = np.array_equal(simulated(Simulator(made).run, made, words), expected(forest, made, words))
    return not same or made.latency != latency


def text(forest: Forest, folder: Path, seed: int) -> bool:
    return print_forest(parse_forest(print_forest(forest))) != print_forest(forest)


def proof(forest: Forest, folder: Path, seed: int) -> bool:
    """Returns True if the forest is not proved. If a single sum decides, also returns True if a forest of another bias
    is not refuted."""
    made = lower_with_witness(forest, LoweringOptions(latency=seed % 3, outputs=outputs_of(forest)))
    found = prove_netlist(forest, *made)
    refuted = not forest.single or prove_netlist(changed(forest, bias=forest.bias + 1), *made).refuted
    return not found.proved or found.refuted or not refuted


def in_verilog(engine: str, forest: Forest, folder: Path, seed: int) -> bool:
    outputs = ("auto", "scores", outputs_of(forest))[seed % 3]
    made = design(forest, folder, (0, 1, 4)[seed % 3], outputs, targets=("verilog",))
    return bool(differences(engine, made, folder, seed).count)


def in_c(
    forest: Forest, folder: Path, seed: int, inputs: str, layouts: Sequence[str], ranking: int = 0, **c: Any
) -> bool:
    if inputs == "raw":
        names = np.random.default_rng(seed).choice(list(TYPES), forest.columns)
        c["types"] = ",".join(f"{k + 1}={name}" for k, name in enumerate(names))
    adds = forest.adds  # Layouts exist for trees that are added.
    layout = layouts[seed // 11 % len(layouts)] if adds else "auto"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "RANKING", ranking or ranks.RANKING)
        made = design(forest, folder, c_inputs=inputs, targets=("c",), layout=layout, **c)
    return bool(differences("c", made, folder, seed, 1000).count)


def in_hls(forest: Forest, folder: Path, seed: int) -> bool:
    """Runs the HLS C++; every other seed is written as several functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hls, "BLOCK", 7 if seed % 2 else hls.BLOCK)
        made = design(forest, folder, seed % 4, outputs_of(forest), targets=("hls",))
    return bool(differences("hls", made, folder, seed).count)


def in_vhdl(forest: Forest, folder: Path, seed: int) -> bool:
    made = lower(forest, LoweringOptions(latency=seed % 4, outputs=outputs_of(forest)))
    words = words_of(forest, np.zeros((1, forest.columns)), 100)
    said = benched(made, words, expected(forest, made, words), folder, STANDARDS[seed % 3])
    text = next(iter(vhdl.emit(made).values()))
    return f"PASS {len(words)} vectors" not in said or not prove_vhdl(made, text.encode()).proved


def in_amaranth(forest: Forest, folder: Path, seed: int) -> bool:
    prove_component(lower(forest, LoweringOptions(latency=(0, 1, 3)[seed % 3], outputs=outputs_of(forest))))
    return False


TREES, TABLES = ("branches",), ("nodes", "masks", "mixed")
ENGINES: dict[str, Engine] = {
    "text": Engine(text, large=True, seeds=3),
    "netlist": Engine(netlist, large=True),
    "proof": Engine(proof, seeds=3),
    "icarus": Engine(partial(in_verilog, "icarus"), "iverilog"),
    "verilator": Engine(partial(in_verilog, "verilator"), "verilator"),
    "vhdl": Engine(in_vhdl, "ghdl"),
    "amaranth": Engine(in_amaranth, "amaranth"),
    "hls": Engine(in_hls),
    "c-words": Engine(partial(in_c, inputs="words", layouts=TREES), large=True),
    "c-tables": Engine(partial(in_c, inputs="words", layouts=TABLES)),
    "c-struct": Engine(partial(in_c, inputs="struct", layouts=(*TABLES, *TREES), quantizer="double")),
    "c-float": Engine(partial(in_c, inputs="float", layouts=(*TREES, *TABLES)), types=FLOATABLE),
    "c-raw": Engine(partial(in_c, inputs="raw", layouts=(*TREES, *TABLES)), types=RAW),
    "c-quantized": Engine(partial(in_c, inputs="words", layouts=TREES, quantizer="float"), types=HARD),
    "c-ranked": Engine(partial(in_c, inputs="words", layouts=("ranked",))),
    "c-all-ranked": Engine(partial(in_c, inputs="struct", layouts=("ranked",), ranking=-(10**6))),
    "c-none-ranked": Engine(partial(in_c, inputs="float", layouts=("ranked",), ranking=10**6), types=FLOATABLE),
    "c-raw-ranked": Engine(partial(in_c, inputs="raw", layouts=("ranked",)), types=RAW),
}
# ALWAYS says that an engine runs on every n-th forest in all runs; for other engines n is 3.
ALWAYS = {"text": 1, "netlist": 1, "proof": 1, "c-words": 1, "verilator": 8, "hls": 5}


def pairs() -> list[Any]:
    """Returns (forest, engine) of both tables. Each engine always runs on some of the forests, on others than the next
    engine."""
    found = []
    for place, (name, engine) in enumerate(ENGINES.items()):
        for number, kind in enumerate(FORESTS):
            if engine.large or kind not in LARGE:
                slow = (number + place) % ALWAYS.get(name, 3) != 0 and kind != "hostile-names"
                found.append(pytest.param(kind, name, marks=[pytest.mark.long] * slow))
    return found


@pytest.mark.each_case
@pytest.mark.parametrize(("kind", "name"), pairs())
def test_the_engine_gives_the_evaluators_answers(kind, name, tmp_path, need_tool):
    engine = ENGINES[name]
    if engine.tool:
        need_tool(engine.tool)
    first = 11 * (7 * list(FORESTS).index(kind) + list(ENGINES).index(name))
    for seed in range(first, first + examples(engine.seeds)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert not engine.differs(FORESTS[kind](seed, engine.types), folder, seed), seed


@settings(deadline=None, max_examples=examples(120))
@given(st.sampled_from([kind for kind in FORESTS if kind not in LARGE]), st.integers(0, 10**6))
def test_netlists_equal_the_evaluator_on_any_words(kind, seed):
    assert not netlist(FORESTS[kind](seed, None), Path(), seed)
