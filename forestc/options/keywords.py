"""Maps each flag of the command line to its Python keyword, which error messages in Python name instead."""

from __future__ import annotations

from typing import Any

from forestc.errors import KEYWORDS
from forestc.fields.options import options_of, value_type
from forestc.options import commands
from forestc.options.boards import BitstreamOptions, ProgramOptions
from forestc.options.compile import CompileOptions
from forestc.options.engine import EngineOptions, ImageOptions
from forestc.options.explore import ExploreOptions

KINDS: tuple[Any, ...] = (
    CompileOptions, ExploreOptions, EngineOptions, ImageOptions, commands.InspectOptions, commands.CheckOptions,
    commands.SimulateOptions, commands.SynthOptions, commands.MeasureOptions, commands.ActivityOptions,
    commands.LearnInputsOptions, commands.ReportOptions, commands.EvidenceOptions, BitstreamOptions, ProgramOptions,
)  # fmt: skip


def keywords_of(kind: Any) -> dict[str, str]:
    """Returns the Python keyword of each flag: `label=` for `--label`, `prove=True` for the switch `--prove`."""
    keywords: dict[str, str] = {}
    for entry, spec in options_of(kind):
        switch = not spec.group and value_type(kind, entry.name) is bool
        value = str(entry.default is not True) if switch else ""
        keywords |= {flag: f"{entry.name}={value}" for flag in spec.flags if flag.startswith("--")}
        keywords |= keywords_of(spec.group) if spec.group else {}
    return keywords


for _kind in reversed(KINDS):  # The order is reversed, so that the first dataclass with a flag wins.
    KEYWORDS.update(keywords_of(_kind))
