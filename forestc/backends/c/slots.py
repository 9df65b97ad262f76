"""Writes the C function that computes a row's slots. Tables of trees compare slots with thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forestc.backends.c.conditions import ConditionsInC
from forestc.backends.c.inputs import Inputs
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.types import FLOATS, compared, int_type, word_type
from forestc.forest.numbers import word_range
from forestc.layouts.slots import FeatureSlot, Slots
from hdl_templates import render


@dataclass(frozen=True)
class SlotsInC:
    """Writer of the C that fills slots."""

    conditions: ConditionsInC
    flash: FlashTables
    slots: Slots
    x: str  # declaration of the C parameter x

    @property
    def inputs(self) -> Inputs:
        return self.conditions.inputs

    @property
    def kind(self) -> str:
        if self.slots.ranked:
            return int_type(0, max((len(slot.cuts) for slot in self.slots.slots), default=1))
        return word_type(self.inputs.forest)

    def threshold_kind(self, conditions: Sequence[int]) -> str:
        """Returns the C type of a table with the thresholds of the given conditions."""
        thresholds = self.slots.threshold[list(conditions)].tolist()
        return int_type(min([-1 if self.kind.startswith("int") else 0, *thresholds]), max([0, *thresholds]))

    @property
    def in_place(self) -> bool:
        """True if x itself can serve as the array of slots."""
        return self.slots.plain and self.inputs.in_order

    @property
    def name(self) -> str:
        return "x" if self.in_place else "slots"

    @property
    def declared(self) -> list[str]:
        """The declaration of the C array of slots; empty if x is this array."""
        return [] if self.in_place else [f"{self.kind} slots[{max(1, len(self.slots.slots))}];"]

    @property
    def filled(self) -> list[str]:
        """The C statement that fills the slots; empty if x is the array of slots."""
        return [] if self.in_place else [f"{self.flash.prefix}_fill(x, slots);"]

    def _by_kind(self) -> dict[str, list[tuple[int, FeatureSlot]]]:
        """Returns {C type: [(index of the slot, slot)]} of the features that are ranked."""
        by_kind: dict[str, list[tuple[int, FeatureSlot]]] = {}
        for index, slot in self.slots.ranks:
            kind = self.inputs.kind(slot.feature) if self.inputs.raw else word_type(self.inputs.forest)
            by_kind.setdefault(kind, []).append((index, slot))
        return by_kind

    def add_tables(self) -> None:
        if not (ranks := self.slots.ranks):
            return
        for kind, slots in self._by_kind().items():
            cuts = [cut for _, slot in slots for cut in slot.cuts]
            signed = -1 if kind in FLOATS or kind.startswith("int") else 0
            self.flash.add(f"cuts_{kind}", cuts, int_type(min(signed, *cuts), max(cuts)))
        if self.inputs.struct:
            return
        self.flash.add("counts", [len(slot.cuts) for _, slot in ranks], self.kind)
        self.flash.add("steps", [_step(slot) for _, slot in ranks], self.kind)
        if (columns := [self.inputs.at(slot.feature) for _, slot in ranks]) != list(range(len(ranks))):
            self.flash.add("columns", columns)

    def lines(self) -> list[str]:
        """Returns the C function that fills a row's slots; empty if x is the array of slots."""
        if self.in_place:
            return []
        p, kind, forest = self.flash.prefix, self.kind, self.inputs.forest
        ranks, body, loop = list[dict[str, object]](), list[str](), list[str]()
        for input_kind, ranked in self._by_kind().items():
            ranks.append(self._rank(input_kind, ranked))
            loop += self._ranks(input_kind, ranked)
        for index, slot in enumerate(self.slots.slots):
            if slot.condition is not None:
                body.append(f"slots[{index}] = {self._chosen(self.conditions.of(slot.condition), '01')};")
            elif not self.slots.ranked:
                value, absent = f"({kind}){self.inputs.place(slot.feature)}", self.conditions.absent(slot.feature)
                if slot.missing_low and absent is not None:
                    feature = forest.features[slot.feature]
                    lowest = compared(word_range(feature.number, feature.missing).low, self.inputs.kind(slot.feature))
                    value = f"({kind})(({absent}) ? {lowest} : {self.inputs.place(slot.feature)})"
                body.append(f"slots[{index}] = {value};")
        body = [*loop, *body]
        if not any("x[" in line or "x->" in line for line in body):
            body.append("(void)x;")
        if not self.slots.slots:
            body.append("(void)slots;")
        return render("c/slots.h.j2", prefix=p, ranks=ranks, slot=kind, x=self.x, body=body).splitlines()

    def _chosen(self, condition: str, values: str) -> str:
        """Returns C for the first of two digits if the condition holds, otherwise for the second."""
        sign = "u" * self.kind.startswith("u")
        if condition in ("0", "1"):
            return values[condition == "0"] + sign
        return f"({self.kind})(({condition}) ? {values[0]}{sign} : {values[1]}{sign})"

    def _rank(self, kind: str, ranks: Sequence[tuple[int, FeatureSlot]]) -> dict[str, object]:
        """Returns the template variables of the C function that ranks values of one C type."""
        table, floats = f"cuts_{kind}", FLOATS.get(kind)
        steps = max(_step(slot) for _, slot in ranks).bit_length() - 1
        return {
            "kind": kind,
            "key": kind if floats is None else f"int{floats.bits}_t",
            "floats": floats,
            "missing": any(self.inputs.forest.features[slot.feature].missing for _, slot in ranks),
            "cut": self.flash.kinds[table],
            "last": self.flash.read(table, "count - step", "cuts"),
            "steps": [
                (1 << bit, self.flash.read(table, f"at + {(1 << bit) - 1}u" if bit else "at", "cuts"))
                for bit in reversed(range(steps))
            ],
        }

    def _ranks(self, kind: str, ranks: Sequence[tuple[int, FeatureSlot]]) -> list[str]:
        p, floats, table = self.flash.prefix, FLOATS.get(kind), f"{self.flash.prefix}_cuts_{kind}"

        def key(value: str, cast: str = "") -> str:
            """Returns C for the integer by which a value is ranked. cast: the C type to which a struct's member is
            converted."""
            plain = f"({cast}){value}" if cast else value
            return plain if floats is None else f"{self.conditions.bits_of(floats)}({value})"

        def low(rank: str, count: str) -> str:
            return f"({self.kind})(({rank} == {count}) ? 0u : {rank});"

        if self.inputs.struct:
            lines, first = list[str](), 0
            for index, slot in ranks:
                value, count = key(self.inputs.place(slot.feature), kind), len(slot.cuts)
                lines.append(f"slots[{index}] = {p}_rank_{kind}({value}, &{table}[{first}], {count}u, {_step(slot)}u);")
                if self._twin(index):
                    lines.append(f"slots[{index + 1}] = {low(f'slots[{index}]', f'{count}u')}")
                first += count
            return lines
        x = f"x[{self.flash.read('columns', 'k')}]" if "columns" in self.flash.kinds else "x[k]"
        second = [f"slots[place] = {low('rank', 'count')}", "place++;"] if self.slots.twins else []
        if 0 < self.slots.twins < len(ranks):
            second = [f"if (k < {self.slots.twins}u) {{", *(f"    {line}" for line in second), "}"]
        return [
            f"const {self.flash.kinds[f'cuts_{kind}']} *cuts = {table};",
            f"{int_type(0, len(ranks))} k;",
            f"{int_type(0, len(self.slots.slots))} place = 0;",
            f"for (k = 0; k < {len(ranks)}u; k++) {{",
            f"    {self.kind} count = {self.flash.read('counts', 'k')};",
            f"    {self.kind} rank = {p}_rank_{kind}({key(x)}, cuts, count, {self.flash.read('steps', 'k')});",
            "    cuts = &cuts[count];",
            "    slots[place] = rank;",
            "    place++;",
            *(f"    {line}" for line in second),
            "}",
        ]

    def _twin(self, index: int) -> bool:
        """Returns True if the slot is followed by a second slot of the same feature, in which missing counts as low."""
        after = self.slots.slots[index + 1 : index + 2]
        return any(slot.missing_low and slot.condition is None for slot in after)


def _step(slot: FeatureSlot) -> int:
    """Returns the largest power of 2 that is at most the slot's number of cuts."""
    return 1 << (len(slot.cuts).bit_length() - 1)
