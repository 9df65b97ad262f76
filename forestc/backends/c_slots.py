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
        """Tables of the cuts that ranks are counted among; and of the features, where the row is an array."""
        if not (ranked := self._ranked):
            return
        raw, features = self.conditions.bits is not None, self.forest.features
        cuts = [self.conditions.key(slot.feature, cut) if raw else cut for slot in ranked for cut in slot.cuts]
        self.flash.add("cuts", cuts, f"int{self.conditions.bits}_t" if raw else word_type(self.forest))
        self.flash.add("cut_ends", np.cumsum([len(slot.cuts) for slot in ranked]).tolist())
        if not self.struct:
            columns = [features[slot.feature].column if raw else slot.feature for slot in ranked]
            self.flash.add("columns", columns)

    def lines(self) -> list[str]:
        """The function that makes slots of a row."""
        if self.in_place:
            return []
        p, kind, ranked = self.flash.prefix, self.kind, self._ranked
        body = self._ranks(ranked) if ranked else []
        for place, slot in enumerate(self.slots.slots):
            absent = self.conditions.absent(slot.feature)
            if slot.condition is not None:
                body.append(f"slots[{place}] = ({kind})!({self.conditions.of(slot.condition)});")
            elif self.slots.ranked:
                if absent is not None and (slot.missing_low or self.conditions.bits is not None):
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

    @property
    def _key(self) -> str:
        """The C type of what is ranked."""
        return self.flash.kinds["cuts"]

    def _rank(self) -> list[str]:
        """The function that ranks a word or a float's bits."""
        kind, end = self.kind, self.flash.kinds["cut_ends"]
        what = "word" if self.conditions.bits is None else "float's bits, ordered as integers"
        return [
            f"/* How many of the cuts first .. last - 1 are not above a {what}. */",
            f"static inline {kind} {self.flash.prefix}_rank({self._key} key, {end} first, {end} last)",
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

    def _ranks(self, ranked: list[Slot]) -> list[str]:
        """Statements that rank the features."""
        p, bits, end = self.flash.prefix, self.conditions.bits, self.flash.kinds["cut_ends"]
        if self.struct:
            ends = np.cumsum([0, *(len(slot.cuts) for slot in ranked)]).tolist()
            return [
                f"slots[{k}] = {p}_rank(({self._key}){self.conditions.place(slot.feature)}, {first}u, {last}u);"
                for k, (slot, first, last) in enumerate(zip(ranked, ends[:-1], ends[1:], strict=True))
            ]
        x = f"x[{self.flash.read('columns', 'k')}]"
        turned = []
        if bits is not None:
            x = f"{p}_bits({x})"
            turned = ["    if (key < 0) {", f"        key ^= INT{bits}_C({(1 << bits - 1) - 1});", "    }"]
        return [
            f"{int_type(0, len(ranked))} k;",
            f"{end} first = 0;",
            f"for (k = 0; k < {len(ranked)}u; k++) {{",
            f"    {self._key} key = {x};",
            f"    {end} last = {self.flash.read('cut_ends', 'k')};",
            *turned,
            f"    slots[k] = {p}_rank(key, first, last);",
            "    first = last;",
            "}",
        ]
