"""The C layout `masks`: each tree has a mask with one bit per leaf. A condition that does not hold clears the bits of
the leaves under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.backends.c.leaves import LeafSums
from forestc.backends.c.slots import SlotsInC
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.trees import TreeContext, TreeText
from forestc.backends.c.types import int_type
from forestc.layouts.masks import HASHES, Masks, masks_of
from hdl_templates import render


@dataclass(frozen=True)
class MasksInC:
    """The C code of trees as masks of leaves."""

    flash: FlashTables
    slots: SlotsInC
    leaves: LeafSums
    masks: Masks

    @property
    def _mask(self) -> str:
        return f"uint{max(8, self.masks.width)}_t"

    @property
    def _last(self) -> int:
        return 1 << (7 if len(self.masks.reached) <= 128 else 15)

    def declarations(self) -> list[str]:
        masks, flash = self.masks, self.flash
        conditions = np.flatnonzero(masks.slots.slot >= 0).tolist()
        flash.add("thresholds", masks.thresholds.tolist(), self.slots.threshold_kind(conditions))
        flash.text.append("/* Of each slot: where its conditions end, and the first entry of its first one. */")
        flash.add("ends", masks.ends.tolist())
        flash.add("firsts", masks.firsts.tolist(), int_type(0, len(masks.trees)))
        flash.text.append(
            f"/* Trees, + {self._last} in the last entry of a condition, and the leaves that are left. */"
        )
        flash.add("trees", (masks.trees + self._last * masks.last).tolist(), f"uint{8 if self._last == 128 else 16}_t")
        flash.add("kept", masks.kept.tolist(), self._mask)
        flash.add("reached", masks.reached.ravel().tolist())
        self.leaves.add_tables()
        self.slots.add_tables()
        multiplier, shift = HASHES[masks.width]
        text = render(
            "c/masks.h.j2",
            prefix=flash.prefix,
            kinds=flash.kinds,
            read=flash.read,
            masks=masks,
            mask=self._mask,
            last=self._last,
            slot=self.slots.kind,
            slot_index=int_type(0, len(masks.ends)),
            entry=int_type(0, len(masks.trees)),
            leaf_index=self.leaves.index,
            product="uint32_t" if masks.width == 32 else self._mask,
            factor=f"UINT{max(16, masks.width)}_C({multiplier})",
            cut="" if masks.width == 32 else f" & {(1 << masks.width) - 1}u",
            shift=shift,
        )
        return [*flash.text, "", *self.slots.lines(), *text.splitlines(), ""]

    def functions(self) -> list[TreeText]:
        return []

    def sums(self, into: str) -> list[str]:
        trees, p = len(self.masks.reached), self.flash.prefix
        # `volatile` keeps compilers from calling memset for the masks.
        declared = [*self.slots.declared, f"volatile {self._mask} masks[{trees}];"]
        first = [
            f"for (tree = 0; tree < {trees}u; tree++) {{",
            f"    masks[tree] = {(1 << self.masks.width) - 1}u;",
            "}",
            *self.slots.filled,
            f"{p}_narrow({self.slots.name}, masks);",
        ]
        return self.leaves.sums(into, f"{p}_leaf(tree, masks)", declared, first)


def masks(context: TreeContext) -> MasksInC | None:
    """Returns the trees as C in the layout `masks`; None if there are no splits to evaluate."""
    laid = masks_of(context.forest, float_bytes=context.inputs.float_bytes)
    return MasksInC(*context.tables(laid.slots, laid.leaves), laid) if laid.splits else None
