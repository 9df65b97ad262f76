"""forestc compiles trained tree ensembles into FPGA logic and microcontroller C, exactly.

    import forestc
    forest = forestc.load("model.json")
    forestc.compile("model.json", "rows.csv", "out", label="target")
    assert forestc.check("out", "rows.csv", label="target").ok

The public names are imported when they are first used: the parts stand in layers, the simulator and
both IRs can be had without the rest, and `forestc --help` does not wait for a compiler to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forestc.checks.run import CheckResult, check
    from forestc.compiler import Compiled, compile, quantize
    from forestc.design import Design, hardware, open_design
    from forestc.errors import ForestcError
    from forestc.forest.evaluate import Evaluation, evaluate
    from forestc.forest.ir import Forest
    from forestc.frontends import load

__version__ = "0.1.0"

_HOMES = {
    "CheckResult": "forestc.checks.run",
    "check": "forestc.checks.run",
    "Compiled": "forestc.compiler",
    "Design": "forestc.design",
    "Evaluation": "forestc.forest.evaluate",
    "Forest": "forestc.forest.ir",
    "ForestcError": "forestc.errors",
    "compile": "forestc.compiler",
    "evaluate": "forestc.forest.evaluate",
    "hardware": "forestc.design",
    "load": "forestc.frontends",
    "open_design": "forestc.design",
    "quantize": "forestc.compiler",
}

__all__ = [
    "CheckResult",
    "Compiled",
    "Design",
    "Evaluation",
    "Forest",
    "ForestcError",
    "check",
    "compile",
    "evaluate",
    "hardware",
    "load",
    "open_design",
    "quantize",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'forestc' has no attribute {name!r}")
