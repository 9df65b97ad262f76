"""Slots in C: the function that makes what tables compare of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forestc.backends.c_conditions import Conditions
from forestc.backends.c_tables import FlashTables
from forestc.backends.c_types import constant, int_type, word_type
from forestc.forest.ir import Forest
from forestc.forest.numbers import word_range
from forestc.layouts.slots import Slot, Slots


@dataclass(frozen=True)
class SlotsInC:
    """flash: where the tables of ranks are. struct: whether rows are structs. x: the text of the parameter x."""

    forest: Forest
    conditions: Conditions
    flash: FlashTables
    slots: Slots
    struct: bool
    x: str

    @property
    def kind(self) -> str:
        """The C type of slots' values."""
        if self.slots.ranked:
            return int_type(0, max((len(slot.cuts) for slot in self.slots.slots), default=1))
        return word_type(self.forest)

    def threshold_kind(self, places: Sequence[int]) -> str:
        """The C type of a table with the thresholds of these conditions: signed if slots are."""
        thresholds = self.slots.threshold[list(places)].tolist()
        return int_type(min([-1 if self.kind.startswith("int") else 0, *thresholds]), max([0, *thresholds]))

    @property
    def in_place(self) -> bool:
        """Whether x holds the slots as it is."""
        return self.slots.plain and not self.struct

    @property
    def name(self) -> str:
        """The variable that holds the slots."""
        return "x" if self.in_place else "slots"

    @property
    def declared(self) -> list[str]:
        """The declaration of the slots."""
        return [] if self.in_place else [f"{self.kind} slots[{max(1, len(self.slots.slots))}];"]

    @property
    def filled(self) -> list[str]:
        """The statement that makes the slots."""
        return [] if self.in_place else [f"{self.flash.prefix}_fill(x, slots);"]

    @property
    def _ranked(self) -> list[Slot]:
        return [slot for slot in self.slots.slots if slot.condition is None] if self.slots.ranked else []

    def add_tables(self) -> None:
        """Tables of the floats that ranks are counted among."""
        if ranked := self._ranked:
            keys = [self.conditions.key(slot.feature, cut) for slot in ranked for cut in slot.cuts]
            self.flash.add("cuts", keys, f"int{self.conditions.bits}_t")
            self.flash.add("cut_ends", np.cumsum([len(slot.cuts) for slot in ranked]).tolist())
            self.flash.add("columns", [self.forest.features[slot.feature].column for slot in ranked])

    def lines(self) -> list[str]:
        """The function that makes slots of a row."""
        if self.in_place:
            return []
        p, kind, ranked = self.flash.prefix, self.kind, self._ranked
        body = self._ranks(len(ranked)) if ranked else []
        for place, slot in enumerate(self.slots.slots):
            absent = self.conditions.absent(slot.feature)
            if slot.condition is not None:
                body.append(f"slots[{place}] = ({kind})!({self.conditions.of(slot.condition)});")
            elif self.slots.ranked:
                if absent is not None:
                    body += [
                        f"if ({absent}) {{",
                        f"    slots[{place}] = {0 if slot.missing_low else len(slot.cuts)};",
                        "}",
                    ]
            else:
                value = f"({kind}){self.conditions.place(slot.feature)}"
                if slot.missing_low and absent is not None:
                    feature = self.forest.features[slot.feature]
                    lowest = constant(word_range(feature.number, feature.missing).low)
                    value = f"({kind})({absent} ? {lowest} : {self.conditions.place(slot.feature)})"
                body.append(f"slots[{place}] = {value};")
        if not any("x[" in line or "x->" in line for line in body):
            body.append("(void)x;")
        if not self.slots.slots:
            body.append("(void)slots;")
        return [
            *(self._rank() if ranked else []),
            "/* What the splits compare. */",
            f"static inline void {p}_fill({self.x}, {kind} *slots)",
            "{",
            *(f"    {line}" for line in body),
            "}",
            "",
        ]

    def _rank(self) -> list[str]:
        """The function that ranks a float."""
        p, kind, end = self.flash.prefix, self.kind, self.flash.kinds["cut_ends"]
        return [
            "/* How many of the cuts first .. last - 1 are not above a float's bits, ordered as integers. */",
            f"static inline {kind} {p}_rank(int{self.conditions.bits}_t key, {end} first, {end} last)",
            "{",
            f"    {end} low = first;",
            "    while (low < last) {",
            f"        {end} middle = ({end})(low + ({end})(last - low) / 2u);",
            f"        if ({self.flash.read('cuts', 'middle')} <= key) {{",
            f"            low = ({end})(middle + 1u);",
            "        } else {",
            "            last = middle;",
            "        }",
            "    }",
            f"    return ({kind})(low - first);",
            "}",
            "",
        ]

    def _ranks(self, count: int) -> list[str]:
        """Statements that rank the features."""
        p, bits, end = self.flash.prefix, self.conditions.bits or 32, self.flash.kinds["cut_ends"]
        return [
            f"{int_type(0, count)} k;",
            f"{end} first = 0;",
            f"for (k = 0; k < {count}u; k++) {{",
            f"    int{bits}_t key = {p}_bits(x[{self.flash.read('columns', 'k')}]);",
            f"    {end} last = {self.flash.read('cut_ends', 'k')};",
            "    if (key < 0) {",
            f"        key ^= INT{bits}_C({(1 << bits - 1) - 1});",
            "    }",
            f"    slots[k] = {p}_rank(key, first, last);",
            "    first = last;",
            "}",
        ]
