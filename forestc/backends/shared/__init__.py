"""The target shared: a library for programs on servers and desktops, called from C or Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forestc.backends.base import Code, Runner, Target
from forestc.forest.numbers import Fixed
from forestc.forest.refusals import Refusal

if TYPE_CHECKING:
    from forestc.forest.ir import Forest

ROLES = ("shared", "shared_header", "shared_python")


def _wraps(forest: Forest) -> bool:
    return any(isinstance(feature.raw, Fixed) and feature.raw.overflow == "AP_WRAP" for feature in forest.features)


def _code() -> Code:
    from forestc.backends.shared.core import written
    from forestc.backends.shared.engine import SharedEngine, built, compiler

    refusals = (Refusal("values that wrap (AP_WRAP), as thresholds do not order them", _wraps),)
    return Code(written, {"shared": SharedEngine}, refusals, tools=compiler, built=built)


TARGET = Target(
    name="shared",
    help="a shared library for programs in C and Python",
    layout=(
        (
            "`shared/libNAME.so`, `NAME.h`, `NAME.py`, `NAME.c`",
            "a library that predicts many rows of float32 or float64, or one, its functions in C, a Python module that "
            "needs NumPy alone, and the library's source: see [Servers](../howto/server.md)",
        ),
    ),
    roles=lambda *_: ROLES,
    code=_code,
    runners=(Runner("shared", "shared", "runs the library through its Python module"),),
    lowered=False,
)
