"""forestc compiles trained tree ensembles into FPGA logic and microcontroller C, exactly.

    import forestc
    forest = forestc.load("model.json")
    forestc.compile("model.json", "rows.csv", "out", label="target")
    assert forestc.check("out", "rows.csv", label="target").ok

Public names are imported when they are first used, so that `import forestc` takes little time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from forestc.system.version import __version__ as __version__

if TYPE_CHECKING:
    from forestc.backends.stream.options import StreamOptions as StreamOptions
    from forestc.boards.client import Board as Board
    from forestc.checks.result import CheckResult as CheckResult
    from forestc.commands.activity import activity as activity
    from forestc.commands.check import check as check
    from forestc.commands.compile import Compiled as Compiled
    from forestc.commands.compile import compile as compile
    from forestc.commands.compile import quantize as quantize
    from forestc.commands.engine import make_engine as make_engine
    from forestc.commands.explore import explore as explore
    from forestc.commands.image import make_image as make_image
    from forestc.commands.inspect import inspect as inspect
    from forestc.commands.learn_inputs import model_inputs as model_inputs
    from forestc.commands.measure import measure as measure
    from forestc.commands.sample import sample_rows as sample_rows
    from forestc.commands.simulate import simulate as simulate
    from forestc.commands.synth import synth as synth
    from forestc.errors import ForestcError as ForestcError
    from forestc.exploration.study import Study as Study
    from forestc.exploration.study import open_study as open_study
    from forestc.forest.evaluate import Evaluation as Evaluation
    from forestc.forest.ir import Forest as Forest
    from forestc.frontends import load as load
    from forestc.inputs.model import InputModel as InputModel
    from forestc.inputs.text import read_inputs as read_inputs
    from forestc.integrations.amaranth_component import hardware as hardware
    from forestc.integrations.sklearn_estimators import CompiledClassifier as CompiledClassifier
    from forestc.integrations.sklearn_estimators import CompiledRegressor as CompiledRegressor
    from forestc.manifest.design import Design as Design
    from forestc.manifest.design import open_design as open_design
    from forestc.rows.encode import evaluate as evaluate

# Maps modules to public names; `notebook` has designs and studies that notebooks can show.
_NAMES = {
    "forestc.boards.client": "Board",
    "forestc.checks.result": "CheckResult",
    "forestc.commands.activity": "activity",
    "forestc.commands.check": "check",
    "forestc.commands.compile": "Compiled compile quantize",
    "forestc.commands.engine": "make_engine",
    "forestc.commands.explore": "explore",
    "forestc.commands.image": "make_image",
    "forestc.commands.inspect": "inspect",
    "forestc.commands.learn_inputs": "model_inputs",
    "forestc.commands.measure": "measure",
    "forestc.commands.sample": "sample_rows",
    "forestc.commands.simulate": "simulate",
    "forestc.commands.synth": "synth",
    "forestc.errors": "ForestcError",
    "forestc.forest.evaluate": "Evaluation",
    "forestc.forest.ir": "Forest",
    "forestc.frontends": "load",
    "forestc.inputs.model": "InputModel",
    "forestc.inputs.text": "read_inputs",
    "forestc.integrations.amaranth_component": "hardware",
    "forestc.integrations.sklearn_estimators": "CompiledClassifier CompiledRegressor",
    "forestc.backends.stream.options": "StreamOptions",
    "forestc.report.page.notebook": "Design Study open_design open_study",
    "forestc.rows.encode": "evaluate",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)  # noqa: PLE0605  type checkers read the imports above


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import_module("forestc.options.keywords")  # errors name them
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'forestc' has no attribute {name!r}")
