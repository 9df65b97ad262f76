"""Implements `passes`: lists the passes and levels, or explains one pass."""

from __future__ import annotations

from typing import Any

from forestc.passes import PASSES
from forestc.passes.guide import pass_guide
from forestc.search.levels import levels_guide


def passes(name: str | None = None) -> dict[str, Any]:
    """Returns the guide of a pass; without `name`, short guides of all passes and levels. Raises OptionError."""
    if name is not None:
        return pass_guide(PASSES, name)
    brief = [{key: pass_guide(PASSES, step)[key] for key in ("name", "promises", "for")} for step in PASSES]
    return {"passes": brief, "levels": levels_guide()}
