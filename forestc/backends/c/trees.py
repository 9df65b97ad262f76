"""Types that all C layouts share: the trees to write, and the C that is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from forestc.backends.c.conditions import ConditionsInC
from forestc.backends.c.inputs import Inputs
from forestc.backends.c.leaves import LeafSums
from forestc.backends.c.slots import SlotsInC
from forestc.backends.c.tables import FlashTables
from forestc.forest.ir import Forest
from forestc.layouts.leaves import Leaves
from forestc.layouts.slots import Slots


@dataclass(frozen=True)
class TreeText:
    """A C function for a tree."""

    name: str
    result: str  # its C type
    takes: str  # its parameters
    body: list[str]  # its statements


@dataclass(frozen=True)
class TreeContext:
    """The trees of a C header and their inputs."""

    prefix: str  # begins all names in the header
    inputs: Inputs
    score: str  # C type of scores

    @property
    def forest(self) -> Forest:
        return self.inputs.forest

    @cached_property
    def conditions(self) -> ConditionsInC:
        return ConditionsInC(self.prefix, self.inputs)

    @property
    def x(self) -> str:
        """The declaration of the C parameter x."""
        array = f"x[{self.prefix.upper()}_INPUTS]"
        return f"const {self.inputs.type} {'*x' if self.inputs.struct else array}"

    def tables(self, slots: Slots, leaves: Leaves) -> tuple[FlashTables, SlotsInC, LeafSums]:
        """Returns an empty table collection, and the writers of slots and of leaves, which add tables to it."""
        flash = FlashTables(self.prefix)
        return flash, SlotsInC(self.conditions, flash, slots, self.x), LeafSums(self.forest, self.score, flash, leaves)

    def only(self, trees: list[int]) -> TreeContext:
        """Returns the context with these trees alone. Scores keep their C type."""
        forest = replace(self.forest, trees=tuple(self.forest.trees[index] for index in trees))
        return replace(self, inputs=replace(self.inputs, forest=forest))


class TreesInC(Protocol):
    """The trees as C, in one layout."""

    def declarations(self) -> list[str]:
        """Returns the lines before the functions of trees."""
        ...

    def functions(self) -> list[TreeText]:
        """Returns the functions of trees; empty if the layout has none."""
        ...

    def sums(self, into: str) -> list[str]:
        """Returns C statements that write the trees' result for each output into the array `into`."""
        ...
