"""Makes designs of forests without a model, and compares engines with the evaluator on them."""

from __future__ import annotations

import numpy as np
from random_forests import troublesome_rows

from forestc.backends import c, hls, verilog
from forestc.checks.vectors import Vectors, vectors
from forestc.forest.evaluate import evaluate_words
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.options.c import c_options_of
from forestc.rows.batches import ArrayRows

HLS_ROLES = ("hls_header", "hls", "hls_testbench", "hls_script", "hls_config")


def design(forest, folder, latency=0, outputs="auto", c_inputs="words", targets=("verilog", "c"), **c_more):
    """Makes a design as compile would write it, without a model."""
    netlist = lower(forest, LoweringOptions(latency=latency, outputs=outputs))
    files, roles = {}, {}
    options = {"targets": list(targets), "latency": latency, "outputs": outputs, "c": {"inputs": c_inputs, **c_more}}
    if "verilog" in targets:
        for role, (path, text) in zip(("verilog", "testbench"), verilog.emit(netlist).items(), strict=True):
            files[path], roles[role] = text, path
    if "c" in targets:
        for path, text in c.emit(forest, c_options_of(options["c"])).items():
            files[path], roles["c"] = text, path
    if "hls" in targets:
        found = hls.emit(forest, netlist)
        files |= found
        roles |= dict(zip(HLS_ROLES, found, strict=True))
    for path, text in files.items():
        (folder / path).write_text(text)
    return Design(folder, manifest(forest, netlist, roles, options, {}), forest, forest)


def hard_vectors(forest, seed, rows=60):
    """Returns words of troublesome rows, words beside thresholds, and random ones."""
    parts = list(vectors(forest, ArrayRows(troublesome_rows(forest, seed, rows)), 300, seed))
    return Vectors(np.concatenate([p.words for p in parts]), np.concatenate([p.raw for p in parts]), "all")


def differences(engine, made, folder, seed, rows=60):
    """Runs an engine on a design's hard vectors; returns its differences from the evaluator."""
    folder = folder / engine.name
    folder.mkdir()
    joined = hard_vectors(made.forest, seed, rows)
    return engine(made, folder).compare(joined, evaluate_words(made.forest, joined.words))
