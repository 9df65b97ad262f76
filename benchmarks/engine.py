"""Measures the engine: rows a second on an ECP5 and an UltraPlus, the time to make an image, and a million rows with
models that change.

Fmax is nextpnr's after place and route; the iCE40 has too few pins, so its engine stands between shift registers.
Clocks a row are measured in Verilator, from the first result to the last, with rows back to back. All results are
compared with the evaluator's.

| case  | what                                                                                                |
|-------|-----------------------------------------------------------------------------------------------------|
| ecp5  | 100 trees of depth 6, 28 columns of 8 bits, two banks, ecp5-85k. Target: 10,000,000 rows a second    |
| up5k  | a forest of 20,000 nodes, 16 columns of 8 bits, in the single-port RAM of an ice40-up5k              |
| image | 100 trees, 200,000 nodes. Target: under 5 s                                                         |
| swaps | 1,000,000 rows, a model that changes each 1,000 rows, random stalls. Target: none lost, no mixture   |

Beside the case ecp5 stand the published figures of conifer's FPU: about 1 us a row and 100 us a batch on an Alveo U200
(https://github.com/thesps/conifer/pull/38). Its HLS can't be synthesized with free tools.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import others
from ledger import Case, Ledger, Steps
from numpy.typing import NDArray
from tools import arguments

from forestc.backends.engine.walking import Load, Simulation, unpacked_results
from forestc.costs.devices import DEVICES
from forestc.engine.capacity import Capacity
from forestc.engine.image import EngineImage, image_of, packed_rows
from forestc.engine.sizing import EngineRequest, capacity_for
from forestc.engine.vectors import results_of
from forestc.engine.verilog import emit
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Aggregate, Decision, Feature, Forest, Link, Tree
from forestc.forest.numbers import FLOAT32, Fixed
from forestc.forest.text import print_forest
from forestc.toolchain.nextpnr import place
from forestc.toolchain.yosys import synthesize
from hdl_templates import render

SEEDS = {"ecp5": (1, 2), "up5k": (1,)}  # of place and route
ROWS = 60_000  # of a simulation; a tenth on up5k
TOOLS = ("yosys", "nextpnr-ecp5", "nextpnr-ice40", "verilator", "forestc/toolchain", "forestc/costs/devices.py",
         "forestc/backends/engine", "forestc/forest", "hdl_templates")  # fmt: skip
# PLACERS holds options of nextpnr that are many times as fast as the default placer and router.
PLACERS = {"ecp5": ("--placer", "static", "--router", "router2")}


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


def simulated(
    capacity: Capacity, models: list[Forest], words: NDArray[np.int64], every: int, stall: int
) -> dict[str, Any]:
    """Simulates the engine with Verilator on rows of words. A model is loaded before each `every` rows, by turns.
    Returns clocks, seconds and `swaps`, the model changes seen in the results. `wrong` counts the rows that neither the
    current nor the next model explains."""
    images = [image_of(model, capacity).words for model in models]
    turns = max(1, len(words) // every)
    loads = [Load(every * turn, images[turn % len(models)]) for turn in range(turns)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "engine.v").write_text(emit(capacity))
        simulation = Simulation.of(capacity, "engine.v", folder)
        start = time.perf_counter()
        got, said = simulation.run(loads, packed_rows(models[0], capacity, words), stall=stall)
        seconds = time.perf_counter() - start
    results = unpacked_results(capacity, got)
    fits = np.stack(
        [(results == results_of(capacity, evaluate_words(model, words))).all(axis=1) for model in models], 1
    )
    turn = wrong = 0
    for row in fits.tolist():
        turn += not row[turn % len(models)]
        wrong += not row[turn % len(models)]
    return {
        "rows": len(results), "wrong": wrong, "swaps": turn, "swaps_wanted": turns - 1,
        "clocks": int(said.split(" rows, ")[1].split()[0]), "simulation_s": round(seconds, 1),
    }  # fmt: skip


def placed(capacity: Capacity, device: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    """Synthesizes, places and routes the engine; returns its cells and the best Fmax over the seeds."""
    entry = DEVICES[device]
    flow = entry.family.synthesis[0].replace("synth_ice40", "synth_ice40 -spram")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "engine.v").write_text(emit(capacity))
        files, top = [folder / "engine.v"], capacity.name
        if entry.family.few_pins:
            (folder / "top.v").write_text(registered(capacity))
            files, top = [*files, folder / "top.v"], "forestc_registered"
        cells = synthesize(files, top, [flow], netlist="top.json")
        rates = []
        for seed in seeds:
            settings = (*entry.nextpnr, *PLACERS.get(entry.family.name, ()))
            done = place(
                folder / "top.json", entry.family.nextpnr, settings, entry.family.logic_cell, seed=seed, seconds=7200
            )
            rates.append(done.fmax_mhz or 0.0)
    return {
        "lut": cells.lut, "ff": cells.flip_flops, "carry": cells.carry, "cells_used": done.used,
        "memory_blocks": sum(count for kind, count in cells.cells.items() if kind in ("DP16KD", "SB_RAM40_4K")),
        "large_blocks": cells.cells.get("SB_SPRAM256KA", 0),
        "fmax_mhz": round(max(rates), 1),
        "fmax_of_seeds": "; ".join(f"{rate:.1f}" for rate in rates),
    }  # fmt: skip


def registered(capacity: Capacity) -> str:
    """Returns the Verilog of the engine between shift registers, for a device with fewer pins than the engine has
    ports."""
    ins = {
        "aresetn": 1, "s_axis_tdata": capacity.tdata_bits, "s_axis_tlast": 1, "s_axis_tuser": capacity.user_bits,
        "s_axis_tvalid": 1, "m_axis_tready": 1, "s_load_tdata": 32, "s_load_tlast": 1, "s_load_tvalid": 1,
    }  # fmt: skip
    outs = {
        "s_axis_tready": 1, "m_axis_tdata": capacity.result_bits, "m_axis_tlast": 1, "m_axis_tuser": capacity.user_bits,
        "m_axis_tvalid": 1, "s_load_tready": 1, "status": 32,
    }  # fmt: skip
    connections, widths = [".aclk(clk)"], []
    for side, ports in (("x_held", ins), ("y_core", outs)):
        at = 0
        for port, bits in ports.items():
            connections.append(f".{port}({side}[{at + bits - 1}:{at}])")
            at += bits
        widths.append(at)
    return render(
        "verilog/registered.v.j2", top="forestc_registered", serial=True, module=capacity.name, clocked=False,
        connections=connections, x_bits=widths[0], y_bits=widths[1],
    )  # fmt: skip


def on_device(capacity: Capacity, model: Forest, rows: int, case: Case) -> Steps:
    image: EngineImage = image_of(model, capacity)
    device, seeds = case["device"], SEEDS[case["case"]]
    yield [print_forest(model), rows, seeds], [emit(capacity), image.bytes]
    words = np.random.default_rng(1).integers(0, 256, (rows, len(model.features)))
    ran = simulated(capacity, [model], words, rows, 0)
    hardware = placed(capacity, device, seeds)
    per_row = ran["clocks"] / (rows - 1)
    bits = capacity.walkers * capacity.banks * capacity.nodes * capacity.node_bits
    rate = hardware["fmax_mhz"] * 1e6 / per_row
    yield {
        "nodes": model.n_nodes, "walkers": capacity.walkers, "banks": capacity.banks,
        **hardware, "clocks_stated": max(image.clocks, capacity.beats), "clocks_per_row": round(per_row, 3),
        "wrong": ran["wrong"], "rows_per_s": round(rate), "rows_per_s_per_lut": round(rate / hardware["lut"], 1),
        "rows_per_s_per_kbit": round(rate / (bits / 1024), 1),
    }  # fmt: skip


def image(_: Case) -> Steps:
    yield [], None
    model, capacity = forest(0, 100, 16, 2001), Capacity(25, 8192, 4, 16, word_bits=8)
    seconds = []
    for _run in range(3):
        start = time.perf_counter()
        made = image_of(model, capacity)
        seconds.append(time.perf_counter() - start)
    yield {"nodes": model.n_nodes, "bytes": len(made.bytes), "seconds": round(min(seconds), 3)}


def swaps(rows: int, _: Case) -> Steps:
    capacity, models = (
        Capacity(8, 128, 2, 8, word_bits=8, scores=True, user_bits=16),
        [forest(k, 12, 8, 63, 5) for k in (1, 2)],
    )
    yield [rows], [emit(capacity), *(image_of(model, capacity).bytes for model in models)]
    words = np.random.default_rng(2).integers(0, 256, (rows, 8))
    yield simulated(capacity, models, words, 1000, 4)


def main() -> None:
    options = arguments(__doc__, "json", "only").parse_args()
    given, swapped = ("swaps", 20) if options.small else (options.only or "ecp5,up5k,image,swaps", 1_000_000)
    small = capacity_for(EngineRequest(40, 22_000, 16, word_bits=8), "ice40-up5k")
    large, ecp5 = Capacity(100, 128, 1, 28, word_bits=8), forest(0, 100, 28, 127, 6)
    cases: dict[str, tuple[Any, ...]] = {
        "ecp5": ({"device": "ecp5-85k"}, on_device, large, ecp5, ROWS),
        "up5k": ({"device": "ice40-up5k"}, on_device, small, forest(0, 40, 16, 501), ROWS // 10),
        "image": ({}, image),
        "swaps": ({}, swaps, swapped),
    }
    ledger = Ledger("the engine", options, TOOLS)
    for name in given.split(","):
        more, *measure = cases[name]
        ledger.fill([{"case": name, **more}], *measure)
        if name == "ecp5":
            for row, source in others("rows_per_s"):
                ledger.quote({key: row[key] for key in ("case", "device")}, row, source)
    ledger.show()


if __name__ == "__main__":
    main()
