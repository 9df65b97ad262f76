"""Makes designs of forests without a model, and compares engines with the evaluator on them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from random_forests import troublesome_rows

from forestc.backends.base import Gives
from forestc.backends.shared.options import SharedKeyword
from forestc.backends.source import Source
from forestc.backends.table import built, gives, lowered, opened, refuse, written
from forestc.backends.vectors import Vectors, vectors
from forestc.engine.sizing import capacity_of
from forestc.forest.evaluate import evaluate_words
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.netlist.ports import PLAIN
from forestc.rows.batches import ArrayRows


def design(
    forest, folder, latency=0, outputs="auto", c_inputs="words", targets=("verilog", "c"), clocking=PLAIN, **c_more
):
    """Makes a design as compile would write it, without a model. Raises ModelError or OptionError if a target does not
    take the forest."""
    refuse(forest, targets)
    lowering = LoweringOptions(latency=latency, outputs=outputs, clocking=clocking)
    netlist = lower(forest, lowering) if lowered(targets) else None
    options = {"targets": list(targets), "latency": latency, "outputs": outputs, "c": {"inputs": c_inputs, **c_more}}
    options |= {name: value for name, value in asdict(clocking).items() if value not in ("none", False)}
    capacity = capacity_of(forest, None, "engine") if gives(targets, Gives.WALKERS) else None
    options |= {} if capacity is None else {"engine": asdict(capacity)}
    words = np.zeros((1, len(forest.features)), dtype=np.int64)
    found = written(Source(forest, netlist, options, "ab" * 32, str, str, words=lambda: words))
    texts = {file.path: file.text for file in found}
    made = built(targets, SharedKeyword(), texts)
    for path, content in [*((path, text.encode()) for path, text in texts.items()), *made.items()]:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    roles = {file.role: file.path for file in found}
    return Design(folder, manifest(forest, netlist, roles, options, {}), forest, forest)


def hard_vectors(forest, seed, rows=60):
    """Returns words of troublesome rows, words beside thresholds, and random ones."""
    parts = list(vectors(forest, ArrayRows(troublesome_rows(forest, seed, rows)), 300, seed))
    return Vectors(np.concatenate([p.words for p in parts]), np.concatenate([p.raw for p in parts]), "all")


def differences(engine, made, folder, seed, rows=60, truth=None):
    """Runs an engine on a design's hard vectors; returns its differences from the evaluator on a forest, the design's
    if `truth` is None."""
    truth, folder = truth or made.forest, folder / f"run-{engine}"
    folder.mkdir()
    joined = hard_vectors(truth, seed, rows)
    return opened(engine, made, folder).compare(joined, evaluate_words(truth, joined.words))
