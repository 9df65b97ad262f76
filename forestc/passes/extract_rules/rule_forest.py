"""Rules as a forest: each clause a chain of conditions.

| form | a clause is                  | its tree gives                                | trees joined by |
|------|------------------------------|-----------------------------------------------|-----------------|
| dnf  | an AND of literals           | the class's value where all hold, else `none` | max             |
| cnf  | an OR of literals            | `none` where none holds, else the value       | min             |

Two classes have one score: 1 of class 1, and `none` is 0. Of several classes, each has a score: its priority where its
rule holds, else 0, or 1 for the class of rows that no rule claims. Priorities start at 2; the highest score decides.
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

RANK_LINK = Link("order")  # scores have an order and no further meaning


@dataclass(frozen=True)
class Rules:
    """clauses: of each class that has a rule, by the class's index. order: classes, of which the first whose rule holds
    is decided. default: the class of rows that no rule claims."""

    form: Form
    clauses: dict[int, tuple[Clause, ...]]
    order: tuple[int, ...]
    default: int

    @property
    def complexity(self) -> int:
        """Clauses and their literals."""
        return sum(1 + len(clause) for clauses in self.clauses.values() for clause in clauses)


def rule_forest(source: Forest, rules: Rules, literals: Literals) -> Forest:
    """The quantized forest of some rules on the source's features."""
    two = len(source.classes) == 2
    trees: list[Tree] = []
    for output in range(1) if two else range(len(source.classes)):
        clauses = rules.clauses.get(1 if two else output, ())
        none = 0 if two else int(output == rules.default)
        value = 1 if two else 1 + len(rules.order) - (rules.order.index(output) if output in rules.order else 0)
        has_rule = two or output in rules.clauses
        for clause in clauses:
            trees.append(_chain(clause, literals, rules.form, value, none, output, len(trees)))
        if not clauses:  # an empty DNF never holds, an empty CNF always does
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
    if form == "cnf":  # the chain goes on while no literal holds
        return _tree([(condition, not positive) for condition, positive in steps], [value, none], output, index)
    return _tree(steps, [none, value], output, index)


def _tree(steps: Sequence[tuple[Condition, bool]], ends: Sequence[int], output: int, index: int) -> Tree:
    """A chain. steps: conditions, each with whether the chain goes on to its left. ends: the values of a row that
    leaves the chain, and of one that passes it all."""
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
