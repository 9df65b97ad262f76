"""All kinds of model that frontends read, by source: name -> a function that trains one."""

from __future__ import annotations

from collections.abc import Callable

from contract.kind import Trained

KINDS: dict[str, Callable[[], Trained]] = {}
