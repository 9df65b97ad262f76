"""The C layout `nodes`: one loop reads all trees from tables. It is usually the smallest layout."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.backends.c.leaves import LeafSums
from forestc.backends.c.slots import SlotsInC
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.trees import TreeContext, TreeText
from forestc.backends.c.types import int_type
from forestc.layouts.nodes import NodeTables, nodes_of
from hdl_templates import render


@dataclass(frozen=True)
class NodesInC:
    """The C code of trees as tables of nodes."""

    flash: FlashTables
    slots: SlotsInC
    leaves: LeafSums
    nodes: NodeTables

    def declarations(self) -> list[str]:
        nodes, flash = self.nodes, self.flash
        conditions = nodes.conditions
        flash.text.append(f"/* The trees in preorder: {nodes.code}; a split says how long its left side is. */")
        flash.add("nodes", nodes.stream.tolist(), f"uint{8 * nodes.unit}_t")
        flash.add("starts", nodes.starts.tolist(), f"uint{8 * nodes.start_bytes}_t")
        if nodes.code != "split":
            flash.add("slots", nodes.slots.slot[conditions].tolist())
            flash.add(
                "thresholds", nodes.slots.threshold[conditions].tolist(), self.slots.threshold_kind(conditions.tolist())
            )
        self.leaves.add_tables()
        self.slots.add_tables()
        return [*flash.text, "", *self.slots.lines(), *self._walk(), ""]

    def functions(self) -> list[TreeText]:
        return []

    def sums(self, into: str) -> list[str]:
        leaf = f"{self.flash.prefix}_leaf(tree, {self.slots.name})"
        return self.leaves.sums(into, leaf, self.slots.declared, self.slots.filled)

    def _walk(self) -> list[str]:
        nodes, flash = self.nodes, self.flash
        wide, count = nodes.code == "wide", nodes.leaves.count
        read = f"{flash.prefix}_read_{flash.kinds['nodes']}"
        if nodes.code == "split":
            threshold = f"{read}(&node[1])"
            if nodes.threshold_bytes == 2:
                threshold = f"({threshold} | ({read}(&node[2]) << 8))"
            if self.slots.kind != flash.kinds["nodes"]:
                threshold = f"({self.slots.kind}){threshold}"
            test = f"slots[symbol] < {threshold}"
        else:
            test = f"slots[{flash.read('slots', 'symbol')}] < {flash.read('thresholds', 'symbol')}"
        # Numbers from `count` on are jumps to subtrees. Adding `far` gives a subtree's index in `starts`.
        far = len(nodes.starts) - nodes.jumps - count
        text = render(
            "c/nodes.h.j2",
            prefix=flash.prefix,
            nodes=nodes,
            test=test,
            read=read,
            number=int_type(0, count + nodes.jumps),
            tree=int_type(0, max(1, len(nodes.starts))),
            slot=self.slots.kind,
            unit=f"uint{8 * nodes.unit}_t",
            narrows=nodes.unit == 2 and count + nodes.jumps < 1 << 8,  # from a symbol to a leaf's number
            rest="uint32_t" if wide else "unsigned",
            longer=nodes.single < count + nodes.jumps,
            start=flash.read("starts", "tree"),
            far=flash.read("starts", f"number {'+' if far >= 0 else '-'} {abs(far)}u"),
        )
        return text.splitlines()


def nodes(context: TreeContext) -> NodesInC | None:
    """Returns the trees as C in the layout `nodes`; None if there are no splits to evaluate."""
    laid = nodes_of(context.forest, float_bytes=context.inputs.float_bytes)
    return NodesInC(*context.tables(laid.slots, laid.leaves), laid) if laid.splits else None
