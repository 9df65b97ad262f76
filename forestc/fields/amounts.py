"""Reads amounts as people write them (4000, 4k, 2kB, 16 KiB) and tolerances (0.01, 1%)."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from forestc.errors import OptionError, opt

FACTORS = {"": 1, "k": 1000, "ki": 1 << 10, "m": 10**6, "mi": 1 << 20}
MOST_TOLERANCE = 0.5  # share of the accuracy that a tolerance may allow at most
_AMOUNT = re.compile(r"\s*([0-9]{1,15}(?:[_,][0-9]{3})*(?:\.[0-9]{1,9})?)\s*(k|ki|m|mi|)(b|)\s*", re.IGNORECASE)


def amount(given: int | str, unit: str) -> int | None:
    """Returns the whole number in a text such as 4k or 4Ki (4,096); None for other texts. An int is returned unchanged.
    unit: `bytes` allows a final B."""
    if not isinstance(given, str):
        return given
    parts = _AMOUNT.fullmatch(given)
    if parts is None or (parts[3] and unit != "bytes"):
        return None
    exact = Fraction(parts[1].replace(",", "").replace("_", "")) * FACTORS[parts[2].lower()]
    return int(exact) if exact.denominator == 1 else None


def tolerance_of(given: float | str | None) -> float | None:
    """Returns a tolerance such as 0.01 or 1% as a share; None for None. Raises OptionError unless it is 0 to
    MOST_TOLERANCE."""
    if given is None:
        return None
    text = str(given).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share <= MOST_TOLERANCE:
        what = f"use a share up to {MOST_TOLERANCE:g}: 0.01, or 1%, is one point"
        raise OptionError(f"{given!r} is no tolerance", where=opt.tolerance, do=what)
    return share


def forms(unit: str) -> str:
    return "4000, 4kB (4,000) or 4KiB (4,096)" if unit == "bytes" else "4000 or 4k"
