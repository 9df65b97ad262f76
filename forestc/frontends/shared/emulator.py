"""Parses what the user and the file say about the emulator of a conifer model: number types, and the order of sums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from forestc.errors import OptionError, opt
from forestc.forest.ir import Order
from forestc.forest.numbers import FLOAT32, FLOAT64, MAX_EXACT_BITS, Fixed, Float

Number: TypeAlias = Fixed | Float

ROLES = ("input", "threshold", "score")
EXAMPLE = "input=ap_fixed<10,5>,threshold=ap_fixed<10,5>,score=ap_fixed<12,6,AP_RND,AP_SAT>"
_TYPE = re.compile(
    r"ap_(?P<unsigned>u?)(?:fixed<(?P<bits>\d{1,3}),(?P<integer>-?\d{1,3})|int<(?P<whole>\d{1,3}))"
    r"(?:,(?P<rounding>AP_TRN|AP_RND|AP_RND_CONV))?(?:,(?P<overflow>AP_SAT|AP_WRAP))?(?:,0)?>"
)
_GIVEN = re.compile(r"\s*(\w+)\s*=\s*([^<>=,]+(?:<[^<>]*>)?)\s*(?:,|$)")


@dataclass(frozen=True)
class Emulator:
    """What the user says about the emulator."""

    types: Mapping[str, str] = field(default_factory=dict)  # texts of number types by role
    order: Order = "sequential"  # order of the additions

    @staticmethod
    def of(types: str | Mapping[str, str] | None, order: str) -> Emulator:
        """Parses the user's options. Raises OptionError."""
        text = "" if isinstance(types, Mapping) else str(types or "")
        given = dict(types) if isinstance(types, Mapping) else dict(_GIVEN.findall(text))
        if _GIVEN.sub("", text) or not given.keys() <= set(ROLES):
            what = f"{text or given!r} are no types of {', '.join(ROLES)}"
            raise OptionError(what, where=opt.ap_types, do=f"write {EXAMPLE}")
        for name in given.values():
            if isinstance(fault := parsed_type(name), str):
                raise OptionError(fault, where=opt.ap_types, do=f"write types as in {EXAMPLE}, float or double")
        if order not in ("sequential", "tree"):
            raise OptionError(f"{order!r} is no order of additions", where=opt.sum, do="use sequential or tree")
        return Emulator(given, order)  # type: ignore[arg-type]

    def refuse(self) -> None:
        """Raises OptionError if the user gave anything."""
        for where, given in ((opt.ap_types, self.types), (opt.sum, self.order != "sequential")):
            if given:
                raise OptionError("the model is not conifer's JSON", where=where, do="leave it out")


def parsed_type(text: str) -> Number | str:
    """Parses the name of a type in C++. Returns the fault of any that is not read."""
    name = re.sub(r"\s", "", str(text))
    if name in ("float", "double"):
        return FLOAT32 if name == "float" else FLOAT64
    match = _TYPE.fullmatch(name)
    if not match:
        known = "ap_fixed and ap_ufixed with AP_TRN, AP_RND or AP_RND_CONV and AP_SAT or AP_WRAP, float and double"
        return f"the type {name[:60]!r} is not read: known are {known}"
    bits, signed = int(match["bits"] or match["whole"]), not match["unsigned"]
    if not 1 + signed <= bits <= MAX_EXACT_BITS:
        return f"the type {name!r} has {bits} bits; {1 + signed} to {MAX_EXACT_BITS} are read"
    fraction = bits - int(match["integer"] or bits)
    return Fixed(bits, fraction, signed, match["rounding"] or "AP_TRN", match["overflow"] or "AP_WRAP")  # type: ignore[arg-type]


UNSAID = Emulator()
