"""Finds integer leaves that decide near ties as the model does. Member models (parts) are handled one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forestc.forest.ir import Forest
from forestc.passes.combinations import most_combinations
from forestc.passes.round_leaves.rounding import RoundedLeaves, round_parts, unseen
from forestc.passes.round_leaves.ties import MOST_STEPS, NearTies, near_margin, near_ties, settled, tied_combinations
from forestc.rows.batches import Rows
from forestc.rows.ranges import Ranges, every_cell, have_rows, made_rows


@dataclass(frozen=True)
class Settling:
    """A search for integer leaves that decide near ties as the model does."""

    bits: Sequence[int]  # numbers of leaf bits to try, the fewest first
    most: int  # largest number of leaf bits
    ranges: Ranges | None  # ranges of inputs whose ties count, or None
    rows: Rows | None  # rows whose ties count most, or None

    @staticmethod
    def applies(forest: Forest) -> bool:
        """Returns True if the forest, or each of its member models (parts), decides by its scores."""
        return forest.decides and forest.combine.kind in ("each", "vote")

    def leaves(self, source: Forest, forest: Forest) -> tuple[RoundedLeaves, bool]:
        """Returns the leaves, and True if they provably decide every input in the ranges as `source` does.
        forest: `source`, as one sum if possible."""
        if forest.single:
            return self._alone(source, forest, MOST_STEPS)
        decided = []

        def settle(part: Forest, bits: int) -> RoundedLeaves:
            leaves = unseen(part, bits, self.most)
            every = leaves.exact or not part.decides
            if not every:
                leaves, every = self._alone(part, part, MOST_STEPS // len(forest.parts))
            decided.append(every)
            return leaves

        return round_parts(forest, self.bits[0], settle), all(decided)

    def _alone(self, source: Forest, forest: Forest, steps: int) -> tuple[RoundedLeaves, bool]:
        margin = near_margin(forest, self.bits[0])
        ties = None if self.ranges is None else _ties_of_all(source, forest, self.ranges, margin)
        every = ties is not None
        if ties is None:
            parts = []
            if have_rows(self.rows):
                assert self.rows is not None
                parts.append(near_ties(source, forest, (batch.X for batch in self.rows.batches()), margin))
            if self.ranges is not None:
                parts.append(near_ties(source, forest, [made_rows(source, self.ranges).X], margin))
            ties = parts[0] if len(parts) == 1 else parts[0].before(parts[1])
        leaves, changed = settled(forest, ties, self.bits, self.most, steps)
        return leaves, every and not changed


def _ties_of_all(source: Forest, forest: Forest, ranges: Ranges, margin: float) -> NearTies | None:
    """Returns the near ties of all inputs in the ranges; None if they are unknown."""
    cells = every_cell(source, ranges, most_combinations(source))
    if cells is not None:
        return near_ties(source, forest, [cells.X], margin)
    return tied_combinations(forest, margin) if source is forest else None
