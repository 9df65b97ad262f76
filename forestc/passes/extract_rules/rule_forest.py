"""Builds a forest from rules: each clause becomes a tree that is a chain of conditions.

For rules that are ORs of ANDs, the forest takes the largest value of its trees; for ANDs of ORs the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forestc.algorithms.covers.boolean_rules import Clause, Form
from forestc.forest.builder import changed, make_tree
from forestc.forest.conditions import Condition
from forestc.forest.ir import LEAF, Aggregate, Decision, Forest, Link, Tree
from forestc.passes.added_trees import node_arrays
from forestc.passes.extract_rules.literals import Literals

RANK_LINK = Link("order")  # marks scores as ranks: only their order has a meaning


@dataclass(frozen=True)
class Rules:
    """Rules for the classes of a forest; the first rule that holds decides."""

    form: Form
    clauses: dict[int, tuple[Clause, ...]]  # clauses of each class that has a rule
    order: tuple[int, ...]  # classes in the order in which their rules are tried
    default: int  # the class if no rule holds

    @property
    def complexity(self) -> int:
        return sum(1 + len(clause) for clauses in self.clauses.values() for clause in clauses)


def rule_forest(source: Forest, rules: Rules, literals: Literals) -> Forest:
    """Builds the quantized forest of the rules, over the features of `source`."""
    two = len(source.classes) == 2
    trees: list[Tree] = []
    for output in range(1) if two else range(len(source.classes)):
        clauses = rules.clauses.get(1 if two else output, ())
        # With more than two classes the highest score decides, so earlier rules have larger values.
        none = 0 if two else int(output == rules.default)
        value = 1 if two else 1 + len(rules.order) - (rules.order.index(output) if output in rules.order else 0)
        has_rule = two or output in rules.clauses
        for clause in clauses:
            trees.append(_chain(clause, literals, rules.form, value, none, output, len(trees)))
        if not clauses:  # An empty DNF never holds, and an empty CNF always holds.
            always = has_rule and rules.form == "cnf"
            trees.append(_tree([], [value if always else none], output, len(trees)))
    return changed(
        source,
        trees=tuple(trees),
        n_outputs=1 if two else len(source.classes),
        aggregate=Aggregate("max" if rules.form == "dnf" else "min"),
        bias=[0] if two else [0] * len(source.classes),
        link=RANK_LINK,
        decision=Decision("threshold", 1) if two else Decision("argmax"),
        scale=1.0,
    )


def _chain(clause: Clause, literals: Literals, form: Form, value: int, none: int, output: int, index: int) -> Tree:
    steps = [(literals.conditions[literal // 2], literal % 2 == 0) for literal in clause]
    if form == "cnf":  # The chain of an OR continues while no literal holds.
        return _tree([(condition, not positive) for condition, positive in steps], [value, none], output, index)
    return _tree(steps, [none, value], output, index)


def _tree(steps: Sequence[tuple[Condition, bool]], ends: Sequence[int], output: int, index: int) -> Tree:
    """Builds a tree that is a chain of conditions. ends: values of its leaves: for an early exit, and for the chain's
    end."""
    count = 2 * len(steps) + 1
    left, right, leaf = [LEAF] * count, [LEAF] * count, [LEAF] * count
    conditions: list[Condition | None] = [None] * count
    for step, (condition, on_left) in enumerate(steps):
        node, out, further = 2 * step, 2 * step + 1, 2 * step + 2
        conditions[node], leaf[out] = condition, 0
        left[node], right[node] = (further, out) if on_left else (out, further)
    leaf[-1] = len(ends) - 1
    return make_tree(
        where=f"clause {index}", left=left, right=right, leaf=leaf, values=[[end] for end in ends], outputs=[output],
        quantized=True, **node_arrays(conditions),
    )  # fmt: skip
