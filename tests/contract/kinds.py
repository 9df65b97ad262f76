"""All kinds of model that frontends read, by source: name -> a function that trains one."""

from __future__ import annotations

from collections.abc import Callable

from contract import kinds_pipeline, kinds_sklearn
from contract.kind import Trained

KINDS: dict[str, Callable[[], Trained]] = {}
KINDS |= kinds_sklearn.KINDS
KINDS |= kinds_pipeline.KINDS
