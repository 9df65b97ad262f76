"""Writes rules as text for people: `IF width < 0.8 THEN 1`. Thresholds are in the units of raw rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forestc.algorithms.covers.boolean_rules import Form
from forestc.errors import ModelError
from forestc.forest.conditions import INFINITY, Below, Condition, InSpans, OneOf
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import FLOAT32, NumberType, word_value

_Literal = tuple[Condition, bool]  # a condition, and False if the literal negates it


def is_rules(forest: Forest) -> bool:
    """Returns True if a forest is a set of rules as extract-rules makes them."""
    if not forest.quantized or forest.adds or not forest.decides:
        return False
    return forest.link.kind == "order" and all(
        len(tree.outputs) == 1 and _is_chain(tree) and len(set(tree.values.flat)) <= 2 for tree in forest.trees
    )


def _is_chain(tree: Tree) -> bool:
    inner = tree.inner
    return bool(((tree.left[tree.left[inner]] == LEAF) | (tree.left[tree.right[inner]] == LEAF)).all())


def rules_text(forest: Forest) -> str:
    """Returns rules as text; the first line that holds decides. Raises ModelError if the forest is not a set of rules.

    IF a < 1 AND b >= 2 THEN class
    ELSE class
    """
    if not is_rules(forest):
        raise ModelError(
            "the forest is not a set of rules", where="the forest", do="make rules with the pass extract-rules"
        )
    two, ands = forest.decision.kind == "threshold", forest.aggregate.kind == "max"
    lowest = 0 if two else 1  # the highest score of a class whose rule does not hold
    trees = {k: [i for i, tree in enumerate(forest.trees) if tree.outputs[0] == k] for k in range(forest.n_outputs)}
    values = {k: {int(v) for i in indices for v in forest.trees[i].values.flat} for k, indices in trees.items()}
    lines: list[str] = []
    for output in sorted(trees, key=lambda k: -max(values[k])):
        name = forest.classes[1 if two else output]
        held = [clause for index in trees[output] if (clause := _clause(forest, index))]
        fixed = {int(forest.trees[index].values[0, 0]) for index in trees[output] if not forest.trees[index].depth}
        if max(values[output]) <= lowest or (not ands and min(fixed, default=lowest + 1) <= lowest):
            continue  # the rule never holds
        if not held or (ands and max(fixed, default=lowest) > lowest):
            return "\n".join([*lines, f"ELSE {name}"]) + "\n"  # the rule always holds
        joined = "and" if ands else "or"
        lines += rule_lines("dnf" if ands else "cnf", [_literals(forest, clause, joined) for clause in held], name)
    default = 0 if two else next((k for k in values if min(values[k]) == lowest), 0)
    return "\n".join([*lines, f"ELSE {forest.classes[default]}"]) + "\n"


def rule_lines(form: Form, clauses: Sequence[Sequence[str]], label: object) -> list[str]:
    if form == "dnf":
        return [f"IF {' AND '.join(clause)} THEN {label}" for clause in clauses]
    parts = [" OR ".join(clause) for clause in clauses]
    if len(parts) > 1:
        parts = [f"({part})" if len(clause) > 1 else part for part, clause in zip(parts, clauses, strict=True)]
    return [f"IF {' AND '.join(parts) or 'true'} THEN {label}"]


def _clause(forest: Forest, index: int) -> list[_Literal]:
    """Returns the literals of a tree that is a clause, as a list of pairs (condition, False if negated)."""
    tree, condition_of = forest.trees[index], forest.conditions.node_conditions[index]
    literals: list[_Literal] = []
    node, larger = 0, tree.values[tree.leaf[tree.left == LEAF], 0].max()
    while tree.left[node] != LEAF:
        left, right = int(tree.left[node]), int(tree.right[node])
        leaves = [child for child in (left, right) if tree.left[child] == LEAF]
        ends = forest.aggregate.kind == "max"
        # An AND ends early with the smaller value, an OR with the larger.
        out = [child for child in leaves if (tree.values[tree.leaf[child], 0] == larger) != ends]
        leave = out[0] if out else leaves[0]
        further = right if leave == left else left
        literals.append((forest.conditions[int(condition_of[node])], (further == left) == ends))
        node = further
    return literals


def _literals(forest: Forest, clause: list[_Literal], joined: str) -> list[str]:
    texts: dict[tuple[int, str], str] = {}
    bounds: dict[int, list[float | None]] = {}
    for condition, positive in clause:
        feature = forest.features[condition.feature]
        if joined == "and" and isinstance(condition.test, Below) and not feature.missing:
            low_high = bounds.setdefault(condition.feature, [None, None])
            value = word_value(int(condition.test.threshold), feature.number)
            present = low_high[positive]
            better = value if present is None else min(present, value) if positive else max(present, value)
            low_high[positive] = better
            texts[condition.feature, ""] = ""
        else:
            text = literal_text(forest, condition, positive)
            texts[condition.feature, text] = text
    result = []
    for (index, text), _ in texts.items():
        if text:
            result.append(text)
            continue
        name, raw = forest.features[index].name, forest.features[index].raw
        low, high = bounds[index]
        if low is not None and high is not None:
            result.append(f"{_number(low, raw)} <= {name} < {_number(high, raw)}")
        else:
            result.append(f"{name} < {_number(high, raw)}" if high is not None else f"{name} >= {_number(low, raw)}")
    return result


def literal_text(forest: Forest, condition: Condition, positive: bool = True) -> str:
    """Returns a condition of a quantized forest, or its negation, as text in the units of raw rows."""
    feature = forest.features[condition.feature]
    name, raw = feature.name, feature.raw
    missing = ""
    if feature.missing:
        missing = " or missing" if condition.missing_left == positive else " and not missing"
    match condition.test:
        case Below(threshold):
            value = _number(word_value(int(threshold), feature.number), raw)
            return f"{name} {'<' if positive else '>='} {value}{missing}"
        case OneOf(codes):
            labels = [feature.labels[code] if code < len(feature.labels) else f"code {code}" for code in codes]
            return f"{name} {'in' if positive else 'not in'} {{{', '.join(labels)}}}{missing}"
        case InSpans(_):
            spans = []
            for low, high in condition.test.spans:
                ends = ["-inf" if low == -INFINITY else _number(word_value(int(low), feature.number), raw)]
                ends.append("inf" if high == INFINITY else _number(word_value(int(high), feature.number), raw))
                spans.append(f"[{', '.join(ends)})")
            return f"{name} {'in' if positive else 'not in'} {' or '.join(spans)}{missing}"


def _number(value: float | None, raw: NumberType) -> str:
    assert value is not None
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    near = np.float32(value)
    return str(near) if raw == FLOAT32 and float(near) == value else repr(value)
