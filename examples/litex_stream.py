"""
Use a forest as a module of LiteX
=================================

A compiled forest becomes a module with streams. Migen simulates it here with a consumer that stalls,
and its classes are compared with the model's::

    pip install ".[sklearn,litex]"
    python examples/litex_stream.py out

The module's streams go into a design of your own (``self.forest = litex_module("out")``); with
``csrs=True`` a processor of a LiteX SoC loads rows through registers instead.
"""

# sphinx_gallery_thumbnail_path = "images/cards/litex_stream.svg"

from __future__ import annotations

import sys
from random import Random

from migen.sim import run_simulation
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier

import forestc
from forestc.integrations.litex_module import litex_module


def main() -> None:
    out = sys.argv[1] if len(sys.argv) > 1 else "build/litex"
    X, y = load_iris(return_X_y=True)
    model = ExtraTreesClassifier(6, max_depth=4, random_state=0).fit(X, y)
    done = forestc.compile(model, X, out, label=y, latency=2, name="iris", targets="verilog")
    design = done.design
    forest, random, classes = litex_module(design), Random(0), []
    words = design.quantize(X)
    names = [name for name, _ in forest.sink.description.payload_layout]

    def send():
        for row in words.tolist():
            for name, word in zip(names, row, strict=True):
                yield getattr(forest.sink, name).eq(word)
            yield forest.sink.valid.eq(1)
            yield
            while not (yield forest.sink.ready):
                yield
            yield forest.sink.valid.eq(0)

    def take():
        while len(classes) < len(words):
            yield forest.source.ready.eq(random.random() < 0.5)
            yield
            if (yield forest.source.ready) and (yield forest.source.valid):
                classes.append((yield forest.source.label))

    run_simulation(forest, [send(), take()])
    different = sum(a != b for a, b in zip(classes, model.predict(X).tolist(), strict=True))
    said = f"{different} different from" if different else "all equal to"
    print(f"{len(classes)} rows through the streams, {said} the model's")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
