"""Writes the C that adds leaf values to scores, for layouts with tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.backends.c.tables import FlashTables
from forestc.backends.c.types import constant, int_type
from forestc.forest.ir import Forest
from forestc.layouts.leaves import Leaves


@dataclass(frozen=True)
class LeafSums:
    """Writer of the C that adds leaf values to scores."""

    forest: Forest
    score: str  # C type of scores
    flash: FlashTables
    leaves: Leaves

    def add_tables(self) -> None:
        leaves = self.leaves
        if leaves.kind == "pairs":
            ends = np.cumsum([0, *(max(1, len(pairs)) for pairs in leaves.pairs)]).tolist()
            filled = [pairs or ((0, 0),) for pairs in leaves.pairs]
            marked = [o + self._last * (k == len(pairs) - 1) for pairs in filled for k, (o, _) in enumerate(pairs)]
            self.flash.add("leaves", ends[:-1], int_type(0, ends[-1]))
            self.flash.add("outputs", marked, f"uint{8 if self._last == 128 else 16}_t")
            self.flash.add("leaf_values", [value for pairs in filled for _, value in pairs])
        elif len(leaves.table):
            self.flash.add("leaf_values", leaves.table.ravel().tolist())

    @property
    def index(self) -> str:
        """The C type of a variable that counts trees."""
        return int_type(0, max(1, len(self.leaves.trees)))

    @property
    def _last(self) -> int:
        return 1 << (7 if self.forest.n_outputs <= 128 else 15)

    def sums(self, into: str, leaf: str, declared: list[str], first: list[str]) -> list[str]:
        """Returns the C that adds all trees to the array `into`.
        leaf: C for the number of a tree's leaf.
        declared: further declarations.
        first: statements before the loop."""
        leaves, trees = self.leaves, self.leaves.trees
        lines = [
            f"{self.index} tree;",
            *declared,
            *(f"{into}[{output}] = {constant(value)};" for output, value in enumerate(leaves.starts.tolist())),
            *first,
        ]
        if leaves.kind == "value":
            return [*lines, *self._added(into, leaf)]
        body = (f"    {line}" for line in self.added(into, leaf))
        return [*lines, f"for (tree = 0; tree < {len(trees)}u; tree++) {{", *body, "}"]

    def added(self, into: str, leaf: str) -> list[str]:
        """Returns C that adds the values of one leaf to several outputs. leaf: C for the leaf's number."""
        leaves, score, first_output = self.leaves, self.score, self.forest.trees[self.leaves.trees[0]].outputs[0]
        target = f"{into}[k]" if first_output == 0 else f"{into}[{first_output} + k]"
        if leaves.kind == "bits":
            return [
                f"{self.flash.kinds['leaf_values']} bits = {self.flash.read('leaf_values', leaf)};",
                "uint8_t k = 0u;",
                "while (bits != 0u) {",
                "    const uint8_t bit = (uint8_t)(bits & 1u);",
                f"    {target} = ({score})({target} + ({score})bit);",
                "    bits >>= 1;",
                "    k++;",
                "}",
            ]
        if leaves.kind == "rows":
            width = leaves.table.shape[1]
            at = int_type(0, leaves.count * max(1, width))
            return [
                f"{at} at = ({at})({leaf} * {width}u);" if width > 1 else f"{at} at = {leaf};",
                f"{int_type(0, width)} k;",
                f"for (k = 0; k < {width}u; k++) {{",
                *self._sum(target, self.flash.read("leaf_values", "at + k")),
                "}",
            ]
        target = f"{into}[output & {self._last - 1}u]"
        return [
            f"{self.flash.kinds['leaves']} at = {self.flash.read('leaves', leaf)};",
            f"{self.flash.kinds['outputs']} output;",
            "do {",
            f"    output = {self.flash.read('outputs', 'at')};",
            *self._sum(target, self.flash.read("leaf_values", "at")),
            "    at++;",
            f"}} while (output < {self._last}u);",
        ]

    def _sum(self, target: str, value: str) -> list[str]:
        """Returns C statements that add a leaf's value to a score, without signed overflow."""
        unsigned, kind = f"u{self.score}", self.flash.kinds.get("leaf_values")
        if kind == unsigned:
            total = f"const {unsigned} sum = ({unsigned})(({unsigned}){target} + {value});"
            return [f"    {total}", f"    {target} = ({self.score})sum;"]
        cast = "" if kind and kind.startswith("i") else f"({self.score})"
        return [f"    {target} = ({self.score})({target} + {cast}{value});"]

    def _added(self, into: str, leaf: str) -> list[str]:
        """Returns C that adds the values of all trees, for trees with one output each, sorted by output."""
        trees = self.leaves.trees
        value = self.flash.read("leaf_values", leaf) if len(self.leaves.table) else leaf
        counts = np.bincount([self.forest.trees[index].outputs[0] for index in trees], minlength=self.forest.n_outputs)
        ends = np.cumsum(counts).tolist()
        if len(ends) > 1 and len(set(counts.tolist())) == 1:
            count, loop = int(counts[0]), f"for (tree = 0; tree < {len(trees)}u; tree++) {{"
            if count & (count - 1) == 0:
                element = f"{into}[tree / {count}u]"
                return [loop, *self._sum(element, value), "}"]
            index = int_type(0, len(trees))
            return [  # Counting outputs avoids divisions, which may be library calls.
                f"{index} output = 0;",
                f"{index} left = {count};",
                loop,
                *self._sum(f"{into}[output]", value),
                "    left--;",
                "    if (left == 0u) {",
                f"        left = {count};",
                "        output++;",
                "    }",
                "}",
            ]
        lines, begin = ["tree = 0;"], 0
        for output, end in enumerate(ends):
            if end > begin:
                target = f"{into}[{output}]"
                lines += [
                    f"for (; tree < {end}u; tree++) {{",
                    *self._sum(target, value),
                    "}",
                ]
            begin = end
        return lines
