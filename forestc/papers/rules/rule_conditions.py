"""Holds the rules of classes: as text, as a picture, and as conditions of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forestc.algorithms.covers.boolean_rules import Form
from forestc.forest.conditions import INFINITY, Below, Condition, InSpans, OneOf
from forestc.frontends.shared.exact import next_above
from forestc.papers.rules.boolean_rules_table import RuleCondition
from forestc.passes.extract_rules.rules_text import rule_lines


@dataclass(frozen=True)
class ClassRule:
    """The rule of a class.

    clauses: each a tuple of conditions. A DNF holds if all conditions of any clause hold, a CNF if any condition of
    every clause holds.
    """

    label: Any
    form: Form
    clauses: tuple[tuple[RuleCondition, ...], ...]

    def __str__(self) -> str:
        return "\n".join(rule_lines(self.form, [list(map(str, clause)) for clause in self.clauses], self.label))


def rules_picture(rules: Sequence[ClassRule]) -> str:
    """Returns rules in Graphviz's language: conditions lead to clauses, clauses to labels."""
    lines = ["digraph rules {", "  rankdir=LR; node [shape=box];"]
    for index, rule in enumerate(rules):
        inner, outer = ("AND", "OR") if rule.form == "dnf" else ("OR", "AND")
        lines.append(f"  rule{index} [label={quoted(f'{outer}: {rule.label}')}, shape=ellipse];")
        for at, clause in enumerate(rule.clauses):
            name = f"clause{index}_{at}"
            lines.append(f"  {name} [label={inner}, shape=ellipse];  {name} -> rule{index};")
            lines += [f"  {quoted(condition)} -> {name};" for condition in clause]
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: object) -> str:
    """Returns a text as a string of Graphviz's language."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_literal(condition: RuleCondition, categories: Sequence[str]) -> tuple[Condition, bool]:
    """Returns the condition of a forest with the same meaning, and False if it must be negated. categories: of the
    column; none for numbers."""
    column, value, same = condition.column, condition.value, condition.relation == "=="
    if condition.relation in ("<=", ">"):
        test = Below(float(next_above(np.array(value), 64)))
        return Condition(column, test, condition.relation == ">"), condition.relation == "<="
    if value is not None and categories:
        return Condition(column, OneOf((categories.index(value),))), same
    present = OneOf(tuple(range(len(categories) + 1))) if categories else InSpans((-INFINITY,))
    return Condition(column, present), not same
