"""What all C layouts have in common: the trees at the start, and the form of the C code at the end."""

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
    """A C function of a tree: its name, result type, parameters and statements."""

    name: str
    result: str
    takes: str
    body: list[str]


@dataclass(frozen=True)
class TreeContext:
    """The trees of a header and their inputs. prefix: of the header's names. score: the C type of scores."""

    prefix: str
    inputs: Inputs
    score: str

    @property
    def forest(self) -> Forest:
        return self.inputs.forest

    @cached_property
    def conditions(self) -> ConditionsInC:
        """The C of the forest's conditions."""
        return ConditionsInC(self.prefix, self.inputs)

    @property
    def x(self) -> str:
        """The declaration of the parameter x."""
        array = f"x[{self.prefix.upper()}_INPUTS]"
        return f"const {self.inputs.type} {'*x' if self.inputs.struct else array}"

    def tables(self, slots: Slots, leaves: Leaves) -> tuple[FlashTables, SlotsInC, LeafSums]:
        """Returns the parts of a layout with tables: the tables, still empty, the slots, and the leaves."""
        flash = FlashTables(self.prefix)
        return flash, SlotsInC(self.conditions, flash, slots, self.x), LeafSums(self.forest, self.score, flash, leaves)

    def only(self, trees: list[int]) -> TreeContext:
        """Returns the context with some of the trees. The type of scores stays: it can hold the sums of all trees."""
        forest = replace(self.forest, trees=tuple(self.forest.trees[index] for index in trees))
        return replace(self, inputs=replace(self.inputs, forest=forest))


class TreesInC(Protocol):
    """The C code of trees in a layout."""

    def declarations(self) -> list[str]:
        """Returns lines before the functions of trees."""
        ...

    def functions(self) -> list[TreeText]:
        """Returns the functions of trees; none if a layout has no function for each tree."""
        ...

    def sums(self, into: str) -> list[str]:
        """Returns the statements that compute the sums of all trees in the array `into`."""
        ...
