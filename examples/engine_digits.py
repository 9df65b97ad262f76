"""
Replace a model while rows go through
=====================================

An engine is hardware whose models are loaded at run time. This example trains a forest on digits
twice and replaces the first by the second, in simulation::

    python examples/engine_digits.py out

It writes an engine for 20 trees and the images of two forests, one trained on 60 digits, one on
1,200. The Verilog then decides 500 further digits; the second image is sent after the 200th. Pixels
are whole numbers, so both models read the same words. Verilator compiles the Verilog.
"""

# sphinx_gallery_thumbnail_path = "images/cards/engine_digits.svg"

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.backends.engine.walking import Load, Simulation, unpacked_results
from forestc.engine.folder import open_engine
from forestc.engine.image import packed_rows

FEW, MANY, CHANGE = 60, 1200, 200


def main(out: Path) -> None:
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, MANY), slice(MANY, MANY + 500)
    folder = out / "engine"
    figures = forestc.make_engine(
        folder, trees=20, nodes=4096, features=64, classes=10, walkers=10, word_bits=5, name="digits"
    )
    nodes = f"{figures['nodes']:,} nodes of {figures['node_bits']} bits each bank"
    print(f"engine: {figures['walkers']} walkers, {nodes}")
    capacity, loads, models = open_engine(folder), [], []
    for rows, after in ((FEW, 0), (MANY, CHANGE)):
        model = RandomForestClassifier(20, max_depth=6, random_state=0).fit(X[:rows], y[:rows])
        forest = forestc.quantize(model, X[train], y[train])
        image = out / f"trained_on_{rows}.bin"
        made = forestc.make_image(model, X[train], image, engine=folder, label=y[train])
        size = f"{made['bytes']:,} bytes, {made['clocks_per_row']} clocks a row"
        print(f"trained on {rows:,} digits: {size}")
        loads.append(Load(after, np.fromfile(image, dtype="<u4")))
        models.append(forest)

    # Both models get pixels as they are: words that saturate at a model's outermost thresholds would
    # differ from model to model. A pixel that one model does not read is 0 in its rows.
    columns = [[feature.column for feature in forest.features] for forest in models]
    pixels = [X[test][:, read].astype(np.int64) for read in columns]
    beats = np.bitwise_or(*map(packed_rows, models, [capacity] * 2, pixels))
    simulation = Simulation.of(capacity, "digits.v", folder)
    results, said = simulation.run(loads, beats, stall=3)
    labels = unpacked_results(capacity, results)[:, 0]
    wanted = [forestc.evaluate(forest, X[test]).index for forest in models]
    changed = int(np.flatnonzero(labels != wanted[0])[0])
    assert (labels[:changed] == wanted[0][:changed]).all()
    assert (labels[changed:] == wanted[1][changed:]).all()
    truth = y[test]
    print(f"simulated: {said.strip()}")
    first = f"digit {changed}, of the image sent after {CHANGE}"
    print(f"the first answer of the second model: {first}")
    for name, part in (("before", slice(0, changed)), ("after", slice(changed, None))):
        print(f"accuracy {name}: {np.mean(labels[part] == truth[part]):.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/engine_digits"))
