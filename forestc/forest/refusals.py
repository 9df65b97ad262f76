"""Kinds of forest that a target does not take, as data: the error, the page and the tests are made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forestc.errors import ModelError
from forestc.forest.ir import Forest


@dataclass(frozen=True)
class Refusal:
    """A kind of forest that is refused."""

    what: str  # the kind, as in "rule sets"
    found: Callable[[Forest], bool]  # returns True for a forest of this kind
    do: str = ""  # what to do, if there is a better way than the usual one

    def refuse(self, forest: Forest, who: str, do: str) -> None:
        """Raises ModelError if the forest is of this kind. who: who refuses it, such as "an engine"."""
        if self.found(forest):
            raise ModelError(f"{who} takes no {self.what}", where=f"model {forest.name!r}", do=self.do or do)
