"""Builds a forest from rules: each clause becomes a tree that is a chain of conditions.

For rules that are ORs of ANDs, the forest takes the largest value of its trees; for ANDs of ORs the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forestc.algorithms.covers.boolean_rules import Clause, Form, RuleSets
from forestc.forest.builder import changed, make_tree
from forestc.forest.conditions import Condition
from forestc.forest.ir import LEAF, Aggregate, Decision, Forest, Link, Tree
from forestc.passes.added_trees import node_arrays

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


Literal = tuple[Condition, bool]  # a condition, and False if the literal negates it


def rules_of(sets: RuleSets, form: Form) -> Rules:
    """Converts learned rule sets to rules. The classes of `sets` must be class indices."""
    classes = [int(label) for label in sets.classes]
    learnt = {kind: rule.clauses for kind, rule in zip(classes, sets.rules, strict=True) if rule.candidates}
    order = tuple(classes[index] for index in sets.order if classes[index] in learnt)
    default = classes[sets.default]
    if order and order[-1] == default:  # the default class needs no rule if it is the last in the order
        del learnt[default]
        order = order[:-1]
    return Rules(form, learnt, order, default)


def rule_forest(source: Forest, rules: Rules, literals: Sequence[Literal]) -> Forest:
    """Builds the quantized forest of the rules, with the features of `source`."""
    trees = rule_trees(rules, literals, len(source.classes))
    return changed(source, trees=tuple(trees), scale=1.0, **rule_scores(rules, len(source.classes)))


def rule_scores(rules: Rules, classes: int) -> dict[str, Any]:
    """Returns fields of a forest of rules, by name: number of outputs, aggregate, bias, link and decision."""
    two = classes == 2
    return {
        "n_outputs": 1 if two else classes,
        "aggregate": Aggregate("max" if rules.form == "dnf" else "min"),
        "bias": [0] if two else [0] * classes,
        "link": RANK_LINK,
        "decision": Decision("threshold", 1) if two else Decision("argmax"),
    }


def rule_trees(rules: Rules, literals: Sequence[Literal], classes: int, *, quantized: bool = True) -> list[Tree]:
    """Builds a list with a tree for each clause; an output without clauses gets a tree of one leaf. literals: the list
    into which clauses index."""
    two = classes == 2
    trees: list[Tree] = []
    for output in range(1) if two else range(classes):
        clauses = rules.clauses.get(1 if two else output, ())
        # With more than two classes the highest score decides, so earlier rules have larger values.
        none = 0 if two else int(output == rules.default)
        value = 1 if two else 1 + len(rules.order) - (rules.order.index(output) if output in rules.order else 0)
        has_rule = two or output in rules.clauses
        for clause in clauses:
            steps = [literals[literal] for literal in clause]
            ends = [none, value]
            if rules.form == "cnf":  # The chain of an OR continues while no literal holds.
                steps, ends = [(condition, not positive) for condition, positive in steps], [value, none]
            trees.append(_tree(steps, ends, output, len(trees), quantized))
        if not clauses:  # An empty DNF never holds, and an empty CNF always holds.
            always = has_rule and rules.form == "cnf"
            trees.append(_tree([], [value if always else none], output, len(trees), quantized))
    return trees


def _tree(steps: Sequence[Literal], ends: Sequence[int], output: int, index: int, quantized: bool) -> Tree:
    """Builds a tree that is a chain of conditions. ends: values of the leaf for an early exit, and of the leaf at the
    chain's end."""
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
        quantized=quantized, **node_arrays(conditions),
    )  # fmt: skip
