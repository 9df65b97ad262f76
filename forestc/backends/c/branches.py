"""The layout `branches` in C: each tree a function of nested ifs. The fastest, and the largest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forestc.backends.c.conditions import Conditions
from forestc.backends.c.types import constant
from forestc.forest.ir import LEAF, Forest, Tree

HOT = 0.75  # share of the rows from which a side is hot
HOT_DEPTH = 8  # nested ifs down to which hot sides are written last


@dataclass(frozen=True)
class TreeText:
    """A function: its name, result, parameters and statements."""

    name: str
    result: str
    takes: str
    body: list[str]


@dataclass(frozen=True)
class Branches:
    """score: the C type of scores. x: the parameter x of trees."""

    forest: Forest
    prefix: str
    score: str
    conditions: Conditions
    x: str

    def trees(self, varying: list[int]) -> list[TreeText]:
        """The functions of trees."""
        return [self._tree(index) for index in varying]

    def sums(self, into: str, varying: list[int], starts: list[int]) -> list[str]:
        """Statements that add the trees. into: the array of sums. starts: what each begins with."""
        lines = [] if varying else ["(void)x;"]
        lines += [f"{into}[{output}] = {constant(value)};" for output, value in enumerate(starts)]
        for index in varying:
            tree = self.forest.trees[index]
            if len(tree.outputs) == 1:
                target = f"{into}[{tree.outputs[0]}]"
                lines.append(f"{target} = ({self.score})({target} + {self.prefix}_tree_{index}(x));")
            else:
                lines.append(f"{self.prefix}_tree_{index}(x, {into});")
        return lines

    def taken(self, target: str, value: str) -> list[str]:
        """C statements that make a score the larger or smaller of itself and a value."""
        sign = ">" if self.forest.aggregate.kind == "max" else "<"
        return [f"if ({value} {sign} {target}) {{", f"    {target} = {value};", "}"]

    def _tree(self, index: int) -> TreeText:
        tree, single = self.forest.trees[index], len(self.forest.trees[index].outputs) == 1
        body = nested(self.forest, index, self.conditions.of, lambda node: self._leaf(tree, node, single))
        # an argument may be unused, after constant conditions or leaves of zero
        for argument in ("x",) if single else ("x", "scores"):
            if not any(f"{argument}[" in line or f"{argument}->" in line for line in body):
                body.insert(0, f"(void){argument};")
        result, takes = (self.score, self.x) if single else ("void", f"{self.x}, {self.score} *scores")
        return TreeText(f"{self.prefix}_tree_{index}", result, takes, body)

    def _leaf(self, tree: Tree, node: int, single: bool) -> list[str]:
        values = tree.values[tree.leaf[node]].tolist()
        if single:
            return [f"return {constant(values[0])};"]
        lines: list[str] = []
        for output, value in zip(tree.outputs, values, strict=True):
            if not self.forest.adds:
                lines += self.taken(f"scores[{output}]", constant(value + int(self.forest.bias[output])))
            elif value:
                lines.append(f"scores[{output}] = ({self.score})(scores[{output}] + {constant(value)});")
        return [*lines, "return;"]


def nested(
    forest: Forest, index: int, condition_of: Callable[[int], str], leaf: Callable[[int], list[str]]
) -> list[str]:
    """A tree as nested ifs; a nested side ends in a return. The smaller side is nested, so that the depth of ifs is
    logarithmic in the number of leaves, however deep the tree; but down to HOT_DEPTH a side that most training rows
    took is, as a row then falls through to it. condition_of: the C of a condition by its place. leaf: the statements of
    a leaf by its node, the last of which returns."""
    tree, places = forest.trees[index], forest.conditions.places[index].tolist()
    sizes = _subtree_sizes(tree)
    cover = [0.0] * tree.size if tree.cover is None else tree.cover.tolist()
    body: list[str] = []
    stack: list[tuple[str, int, int]] = [("node", 0, 0)]
    while stack:
        what, node, depth = stack.pop()
        indent = "    " * depth
        if what == "close":
            body.append(f"{indent}}}")
            continue
        if tree.left[node] == LEAF:
            body += [indent + line for line in leaf(node)]
            continue
        left, right = int(tree.left[node]), int(tree.right[node])
        condition = condition_of(places[node])
        hot = max(cover[left], cover[right]) >= HOT * cover[node] > 0 and depth < HOT_DEPTH
        if cover[left] < cover[right] if hot else sizes[left] > sizes[right]:
            left, right = right, left
            condition = _negated(condition)
        body.append(f"{indent}if ({condition}) {{")
        stack += [("node", right, depth), ("close", 0, depth), ("node", left, depth + 1)]
    return body


def _negated(condition: str) -> str:
    plain_comparison = "||" not in condition and "&&" not in condition and condition.count(" < ") == 1
    return condition.replace(" < ", " >= ") if plain_comparison else f"!({condition})"


def _subtree_sizes(tree: Tree) -> list[int]:
    sizes = [1] * tree.size
    for level in reversed(tree.levels):
        for node in level.tolist():
            if tree.left[node] != LEAF:
                sizes[node] += sizes[int(tree.left[node])] + sizes[int(tree.right[node])]
    return sizes
