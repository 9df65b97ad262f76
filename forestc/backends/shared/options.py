"""The option of the target shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forestc.fields.options import option

Platform = Literal["here", "linux-x86_64", "linux-arm64", "macos-x86_64", "macos-arm64", "windows-x86_64"]


@dataclass(frozen=True, kw_only=True)
class SharedKeyword:
    """The keyword of `forestc.compile` for a library of another platform."""

    platform: Platform = option(
        "here", "--platform", "computer for which the target shared is built; others than here need ziglang (pip)"
    )
