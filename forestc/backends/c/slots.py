"""Slots in C: the function that makes what tables compare of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forestc.backends.c.conditions import Conditions
from forestc.backends.c.inputs import Inputs
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.types import FLOATS, constant, int_type, word_type
from forestc.forest.numbers import word_range
from forestc.layouts.slots import Slot, Slots


@dataclass(frozen=True)
class SlotsInC:
    """conditions: of the forest whose trees are tables. flash: where the tables of ranks are. x: the text of the
    parameter x."""

    conditions: Conditions
    flash: FlashTables
    slots: Slots
    x: str

    @property
    def inputs(self) -> Inputs:
        return self.conditions.inputs

    @property
    def kind(self) -> str:
        """The C type of slots' values."""
        if self.slots.ranked:
            return int_type(0, max((len(slot.cuts) for slot in self.slots.slots), default=1))
        return word_type(self.inputs.forest)

    def threshold_kind(self, places: Sequence[int]) -> str:
        """The C type of a table with the thresholds of these conditions: signed if slots are."""
        thresholds = self.slots.threshold[list(places)].tolist()
        return int_type(min([-1 if self.kind.startswith("int") else 0, *thresholds]), max([0, *thresholds]))

    @property
    def in_place(self) -> bool:
        """Whether x holds the slots as it is."""
        return self.slots.plain and self.inputs.in_order

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

    def _by_kind(self) -> dict[str, list[tuple[int, Slot]]]:
        """Ranked slots, with their places, by the C type of what is ranked: words of a struct as one."""
        by_kind: dict[str, list[tuple[int, Slot]]] = {}
        for place, slot in enumerate(self._ranked):
            kind = self.inputs.kind(slot.feature) if self.inputs.raw else word_type(self.inputs.forest)
            by_kind.setdefault(kind, []).append((place, slot))
        return by_kind

    def add_tables(self) -> None:
        """Tables of the cuts that ranks are counted among, by type; and of the features, where the row is an array."""
        if not (ranked := self._ranked):
            return
        for kind, slots in self._by_kind().items():
            key = f"int{FLOATS[kind].bits}_t" if kind in FLOATS else kind
            self.flash.add(f"cuts_{kind}", [cut for _, slot in slots for cut in slot.cuts], key)
        ends = np.cumsum([len(slot.cuts) for slot in ranked]).tolist()
        if self.inputs.struct:
            self.flash.kinds["cut_ends"] = int_type(0, ends[-1])
        else:
            self.flash.add("cut_ends", ends)
            self.flash.add("columns", [self.inputs.at(slot.feature) for slot in ranked])

    def lines(self) -> list[str]:
        """The function that makes slots of a row."""
        if self.in_place:
            return []
        p, kind, forest = self.flash.prefix, self.kind, self.inputs.forest
        before, body = list[str](), list[str]()
        for input_kind, slots in self._by_kind().items():
            before += self._rank(input_kind)
            body += self._ranks(input_kind, slots)
        for place, slot in enumerate(self.slots.slots):
            absent = self.conditions.absent(slot.feature)
            if slot.condition is not None:
                body.append(f"slots[{place}] = ({kind})!({self.conditions.of(slot.condition)});")
            elif self.slots.ranked:
                if absent is not None and (slot.missing_low or self.conditions.float_of(slot.feature) is not None):
                    body += [
                        f"if ({absent}) {{",
                        f"    slots[{place}] = {0 if slot.missing_low else len(slot.cuts)};",
                        "}",
                    ]
            else:
                value = f"({kind}){self.inputs.place(slot.feature)}"
                if slot.missing_low and absent is not None:
                    feature = forest.features[slot.feature]
                    lowest = constant(word_range(feature.number, feature.missing).low)
                    value = f"({kind})({absent} ? {lowest} : {self.inputs.place(slot.feature)})"
                body.append(f"slots[{place}] = {value};")
        if not any("x[" in line or "x->" in line for line in body):
            body.append("(void)x;")
        if not self.slots.slots:
            body.append("(void)slots;")
        return [
            *before,
            "/* What the splits compare. */",
            f"static inline void {p}_fill({self.x}, {kind} *slots)",
            "{",
            *(f"    {line}" for line in body),
            "}",
            "",
        ]

    def _rank(self, kind: str) -> list[str]:
        """The function that ranks a value of a type among some cuts."""
        p, end, table, floats = self.flash.prefix, self.flash.kinds["cut_ends"], f"cuts_{kind}", FLOATS.get(kind)
        key, turned = self.flash.kinds[table], list[str]()
        if floats is not None:
            turned = [
                "    if (key < 0) {",
                f"        key ^= INT{floats.bits}_C({(1 << (floats.bits - 1)) - 1});",
                "    }",
            ]
        what = "a value" if floats is None else "a float's bits, ordered as integers"
        return [
            f"/* How many of the cuts first .. last - 1 are not above {what}. */",
            f"static inline {self.kind} {p}_rank_{kind}({key} key, {end} first, {end} last)",
            "{",
            f"    {end} low = first;",
            *turned,
            "    while (low < last) {",
            f"        {end} middle = ({end})(low + ({end})(last - low) / 2u);",
            f"        if ({self.flash.read(table, 'middle')} <= key) {{",
            f"            low = ({end})(middle + 1u);",
            "        } else {",
            "            last = middle;",
            "        }",
            "    }",
            f"    return ({self.kind})(low - first);",
            "}",
            "",
        ]

    def _ranks(self, kind: str, ranked: Sequence[tuple[int, Slot]]) -> list[str]:
        """Statements that rank the features of a type."""
        p, floats = self.flash.prefix, FLOATS.get(kind)

        def key(place: str) -> str:
            return place if floats is None else f"{self.conditions.bits_of(floats)}({place})"

        if self.inputs.struct:
            ends = np.cumsum([0, *(len(slot.cuts) for _, slot in ranked)]).tolist()
            return [
                f"slots[{place}] = {p}_rank_{kind}({key(self.inputs.place(slot.feature))}, {first}u, {last}u);"
                for (place, slot), first, last in zip(ranked, ends[:-1], ends[1:], strict=True)
            ]
        end, x = self.flash.kinds["cut_ends"], f"x[{self.flash.read('columns', 'k')}]"
        return [
            f"{int_type(0, len(ranked))} k;",
            f"{end} first = 0;",
            f"for (k = 0; k < {len(ranked)}u; k++) {{",
            f"    {end} last = {self.flash.read('cut_ends', 'k')};",
            f"    slots[k] = {p}_rank_{kind}({key(x)}, first, last);",
            "    first = last;",
            "}",
        ]
