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
    from forestc.checks.result import CheckResult
    from forestc.commands.activity import activity
    from forestc.commands.check import check
    from forestc.commands.compile import Compiled, compile, quantize
    from forestc.commands.engine import make_engine
    from forestc.commands.explore import explore
    from forestc.commands.image import make_image
    from forestc.commands.inspect import inspect
    from forestc.commands.learn_inputs import model_inputs
    from forestc.commands.measure import measure
    from forestc.commands.simulate import simulate
    from forestc.commands.synth import synth
    from forestc.errors import ForestcError
    from forestc.exploration.study import Study, open_study
    from forestc.forest.evaluate import Evaluation
    from forestc.forest.ir import Forest
    from forestc.frontends import load
    from forestc.inputs.model import InputModel
    from forestc.inputs.text import read_inputs
    from forestc.integrations.amaranth_component import hardware
    from forestc.integrations.sklearn_estimators import CompiledClassifier, CompiledRegressor
    from forestc.manifest.design import Design, open_design
    from forestc.rows.encode import evaluate


_HOMES = {
    "activity": "forestc.commands.activity",
    "check": "forestc.commands.check",
    "CheckResult": "forestc.checks.result",
    "compile": "forestc.commands.compile",
    "Compiled": "forestc.commands.compile",
    "CompiledClassifier": "forestc.integrations.sklearn_estimators",
    "CompiledRegressor": "forestc.integrations.sklearn_estimators",
    "Design": "forestc.report.page.notebook",
    "evaluate": "forestc.rows.encode",
    "Evaluation": "forestc.forest.evaluate",
    "explore": "forestc.commands.explore",
    "Forest": "forestc.forest.ir",
    "ForestcError": "forestc.errors",
    "hardware": "forestc.integrations.amaranth_component",
    "inspect": "forestc.commands.inspect",
    "load": "forestc.frontends",
    "InputModel": "forestc.inputs.model",
    "make_engine": "forestc.commands.engine",
    "make_image": "forestc.commands.image",
    "measure": "forestc.commands.measure",
    "model_inputs": "forestc.commands.learn_inputs",
    "open_design": "forestc.report.page.notebook",
    "open_study": "forestc.report.page.notebook",
    "quantize": "forestc.commands.compile",
    "read_inputs": "forestc.inputs.text",
    "simulate": "forestc.commands.simulate",
    "StreamOptions": "forestc.options.stream",
    "Study": "forestc.report.page.notebook",
    "synth": "forestc.commands.synth",
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
    "make_engine",
    "make_image",
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
        import_module("forestc.options.keywords")  # errors name them
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'forestc' has no attribute {name!r}")
