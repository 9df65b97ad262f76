"""The C layout `ranked`: each tree is a function of nested ifs on words or on ranks. A rank, the number of thresholds
up to a feature's value, is computed once for each row."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.backends.c.branches import nested
from forestc.backends.c.leaves import LeafSums
from forestc.backends.c.slots import SlotsInC
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.trees import TreeContext, TreeText
from forestc.backends.c.types import constant, int_type
from forestc.layouts.ranks import Ranks, ranks_of
from forestc.layouts.slots import ALWAYS, APART, NEVER
from hdl_templates import render

REACH = 32  # slots that one pointer reaches in a Thumb load instruction


@dataclass(frozen=True)
class RankedInC:
    """The C code of trees as functions on ranks; a rank counts the thresholds at or below a value."""

    flash: FlashTables
    slots: SlotsInC
    leaves: LeafSums
    ranks: Ranks

    def declarations(self) -> list[str]:
        if self._numbered:
            self.leaves.add_tables()
        self.slots.add_tables()
        text = render(
            "c/ranked.h.j2",
            prefix=self.flash.prefix,
            macro=self._macro(""),
            slot=self.slots.kind,
            far=self._far,
            reach=REACH,
            number=self._number,
            score=self.leaves.score,
            added=self.leaves.added("scores", "leaf") if self._numbered else [],
        )
        return [*self.flash.text, "", *self.slots.lines(), *text.splitlines()]

    def functions(self) -> list[TreeText]:
        return [self._tree(index) for index in self.ranks.leaves.trees]

    def sums(self, into: str) -> list[str]:
        leaves, score, starts = self.ranks.leaves, self.leaves.score, self.ranks.leaves.starts.tolist()
        lines = self.slots.declared if self._ranked else []
        lines += [] if self._numbered else [f"{self._sum} sum;"]
        lines += [f"{into}[{output}] = {constant(value)};" for output, value in enumerate(starts)]
        lines += self.slots.filled if self._ranked else []
        given = ", ".join(["x"] * self._reads_x + [self._macro("GIVEN") if self._far else "slots"] * self._ranked)
        outputs = {index: self.leaves.forest.trees[index].outputs[0] for index in leaves.trees}
        for index, after in zip(leaves.trees, [*leaves.trees[1:], -1], strict=True):
            call = f"{self.flash.prefix}_tree_{index}"
            if self._numbered:
                lines.append(f"{self.flash.prefix}_add({call}({given}), {into});")
                continue
            output = outputs[index]
            begun = lines[-1].startswith("sum = ")
            lines += [] if begun else [f"sum = {into}[{output}];"]
            lines.append(f"sum = {call}(sum, {given});")
            if outputs.get(after) != output:
                lines.append(f"{into}[{output}] = ({score})sum;")
        return lines

    @property
    def _numbered(self) -> bool:
        """True if the functions of trees return leaf numbers, not values."""
        return self.ranks.leaves.kind != "value"

    @property
    def _ranked(self) -> bool:
        return bool(self.ranks.slots.slots)

    @property
    def _reads_x(self) -> bool:
        """True if the functions of trees have the parameter x."""
        return not self._ranked or bool((self.ranks.slots.slot == APART).any())

    @property
    def _far(self) -> bool:
        """True if a Thumb load instruction does not reach all slots from one pointer."""
        return len(self.ranks.slots.slots) > REACH

    @property
    def _sum(self) -> str:
        """The C type of the running sum that each tree's function takes and returns."""
        return self.leaves.score.replace("int", "int_fast")

    @property
    def _number(self) -> str:
        return int_type(0, self.ranks.leaves.count)

    def _macro(self, name: str) -> str:
        return f"{self.flash.prefix.upper()}_{name}"

    def _condition(self, index: int) -> str:
        slot = int(self.ranks.slots.slot[index])
        if slot == APART:
            return self.slots.conditions.of(index)
        if slot in (ALWAYS, NEVER):
            return str(int(slot == ALWAYS))
        value = f"slots[{slot}]" if slot < REACH else f"{self._macro('FAR')}({slot})"
        return f"{value} < {self.ranks.slots.threshold[index]}u"

    def _tree(self, index: int) -> TreeText:
        numbers, table = self.ranks.leaves.number[index].tolist(), self.ranks.leaves.table

        def leaf(node: int) -> list[str]:
            number = numbers[node]
            if self._numbered:
                return [f"leaf = {number}u;"]
            value = int(table[number, 0]) if len(table) else number
            return [f"leaf = ({self._sum})(sum + {constant(value)});" if value else "leaf = sum;"]

        result = self._number if self._numbered else self._sum
        body = [f"{result} leaf;", *nested(self.leaves.forest, index, self._condition, leaf), "return leaf;"]
        takes = [] if self._numbered else [f"{self._sum} sum"]
        if self._reads_x:
            takes.append(self.slots.x)
            if not any("x[" in line or "x->" in line for line in body):
                body.insert(0, "(void)x;")
        if self._ranked:
            takes.append(self._macro("SLOTS") if self._far else f"const {self.slots.kind} *slots")
            if not any(" slots[" in line or "(slots[" in line for line in body):
                body.insert(0, "(void)slots;")
            if self._far and not any(f"{self._macro('FAR')}(" in line for line in body):
                body.insert(0, f"(void){self._macro('FAR')}({REACH});")
        return TreeText(f"{self.flash.prefix}_tree_{index}", result, ", ".join(takes), body)


def ranked(context: TreeContext) -> RankedInC | None:
    """Returns the trees as C in the layout `ranked`; None if there are no splits to evaluate."""
    laid = ranks_of(context.forest, float_bytes=context.inputs.float_bytes)
    return RankedInC(*context.tables(laid.slots, laid.leaves), laid) if laid.splits else None
