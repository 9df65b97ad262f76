"""Translates old names of passes into the present passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forestc.errors import OptionError
from forestc.passes.base import Former, Pass
from forestc.passes.fit_leaves.fit_leaves import FitLeaves
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.round_leaves import RoundLeaves

_INPUTS = ("input", "input_bits", "formats", "missing", "change", "tolerance", "exact", "cost")
_ROUNDED = ("leaf_bits", "change", "tolerance", "scores", "exact")
_FITTED = ("leaf_bits", "tolerance")
_OTHERS = ("fit", "noise")


def _quantize(options: dict[str, Any]) -> Sequence[Pass]:
    """Returns the passes that replace the former pass `quantize`. Raises OptionError for invalid options."""
    allowed = dict.fromkeys((*_INPUTS, *_ROUNDED, *_OTHERS))
    for name in options:
        if name not in allowed:
            raise OptionError(f"quantize has no option {name!r}", do=f"known: {', '.join(allowed)}")
    fit = options.get("fit", False)
    if not isinstance(fit, bool):
        raise OptionError(f"quantize: fit={fit}", do="use true or false")
    if options.get("noise"):
        raise OptionError(
            "quantize: noise is no longer an option: on twelve data sets it gained nothing",
            do="remove it, or take regrow-trees{copies=3,noise=0.1}, which still has it",
        )
    if fit and options.get("exact"):
        raise OptionError("quantize: exact=true uses no rows, but fit does", do="remove one of them")
    if fit and options.get("scores") is not None:
        raise OptionError("quantize: leaves that are fitted to classes can't keep scores", do="remove fit or scores")
    if options.get("cost") is not None and options.get("scores") is not None:
        raise OptionError("quantize: cost rounds thresholds, which scores do not allow", do="remove one of them")
    given = {name: value for name, value in options.items() if (name, value) != ("tolerance", None)}
    inputs = {name: value for name, value in given.items() if name in _INPUTS}
    if not fit:
        return QuantizeInputs(**inputs), RoundLeaves(**{name: given[name] for name in _ROUNDED if name in given})
    # fit-leaves has a default tolerance; approximate inputs get the same tolerance.
    if "cost" not in given and inputs.keys() & {"input_bits", "formats"}:
        inputs.setdefault("tolerance", DEFAULT_TOLERANCE)
    return QuantizeInputs(**inputs), FitLeaves(**{name: given[name] for name in _FITTED if name in given})


FORMER: Former = {"quantize": _quantize}
BECAME = {"quantize": ("quantize-inputs", "round-leaves", "fit-leaves")}
