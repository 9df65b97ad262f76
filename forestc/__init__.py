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

from forestc.version import __version__ as __version__

if TYPE_CHECKING:
    from forestc.backends.axi_stream import StreamOptions
    from forestc.checks.run import CheckResult, check
    from forestc.checks.simulation import simulate
    from forestc.compiler import Compiled, compile, quantize
    from forestc.design import Design, open_design
    from forestc.errors import ForestcError
    from forestc.estimators import CompiledClassifier, CompiledRegressor
    from forestc.exploration.run import explore
    from forestc.firmware.run import measure
    from forestc.forest.evaluate import Evaluation
    from forestc.forest.ir import Forest
    from forestc.frontends import load
    from forestc.input_models import model_inputs
    from forestc.inputs.model import InputModel
    from forestc.inputs.text import read_inputs
    from forestc.inspection import inspect
    from forestc.integrations.amaranth_component import hardware
    from forestc.rows.encode import evaluate
    from forestc.studies import Study, open_study
    from forestc.switching import activity
    from forestc.synthesis import synth


_HOMES = {
    "activity": "forestc.switching",
    "check": "forestc.checks.run",
    "CheckResult": "forestc.checks.run",
    "compile": "forestc.compiler",
    "Compiled": "forestc.compiler",
    "CompiledClassifier": "forestc.estimators",
    "CompiledRegressor": "forestc.estimators",
    "Design": "forestc.design",
    "evaluate": "forestc.rows.encode",
    "Evaluation": "forestc.forest.evaluate",
    "explore": "forestc.exploration.run",
    "Forest": "forestc.forest.ir",
    "ForestcError": "forestc.errors",
    "hardware": "forestc.integrations.amaranth_component",
    "inspect": "forestc.inspection",
    "load": "forestc.frontends",
    "InputModel": "forestc.inputs.model",
    "measure": "forestc.firmware.run",
    "model_inputs": "forestc.input_models",
    "open_design": "forestc.design",
    "open_study": "forestc.studies",
    "quantize": "forestc.compiler",
    "read_inputs": "forestc.inputs.text",
    "simulate": "forestc.checks.simulation",
    "StreamOptions": "forestc.backends.axi_stream",
    "Study": "forestc.studies",
    "synth": "forestc.synthesis",
}

__all__ = [
    "CheckResult",
    "Compiled",
    "CompiledClassifier",
    "CompiledRegressor",
    "Design",
    "Evaluation",
    "Forest",
    "ForestcError",
    "InputModel",
    "StreamOptions",
    "Study",
    "activity",
    "check",
    "compile",
    "evaluate",
    "explore",
    "hardware",
    "inspect",
    "load",
    "measure",
    "model_inputs",
    "open_design",
    "open_study",
    "quantize",
    "read_inputs",
    "simulate",
    "synth",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'forestc' has no attribute {name!r}")
