"""Rules for several classes, one against the rest.

Each class has a rule. Where several rules claim a row, the first in an order of priority wins; where none does, the
row is of a default class. Both are chosen for the accuracy on the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.covers.boolean_pricing import Bits, Ints
from forestc.algorithms.covers.boolean_rules import Form, RuleLearning, learn_rules
from forestc.algorithms.covers.covers import Floats, Progress
from forestc.errors import RowsError


@dataclass(frozen=True)
class RuleSets:
    """classes: the labels, ascending. rules: one a class. order: places of classes, the first that claims a row has it.
    default: place of the class of rows that no rule claims."""

    classes: NDArray[Any]
    rules: tuple[RuleLearning, ...]
    order: tuple[int, ...]
    default: int

    def predict(self, bits: Bits) -> NDArray[Any]:
        """(rows,) labels."""
        claims = np.stack([rule.predict(bits) for rule in self.rules])
        return np.asarray(self.classes[_decided(claims, self.order, self.default)])

    @property
    def complexity(self) -> int:
        """Of all rules together."""
        return sum(rule.complexity for rule in self.rules)


def class_weights(y: NDArray[Any]) -> Floats:
    """(rows,) weights by which every class weighs the same, 1 on average."""
    classes, inverse, count = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(len(y) / (len(classes) * count[inverse.reshape(-1)]))


def learn_rule_sets(
    bits: Bits,
    y: NDArray[Any],
    *,
    complexity: int,
    form: Form = "dnf",
    time_limit: float = 60.0,
    seed: int = 0,
    groups: Ints | None = None,
    weight: Floats | None = None,
    longest: int | None = None,
    rounds: int | None = None,
    progress: Progress | None = None,
) -> RuleSets:
    """A rule for each class of y, each with at most this complexity; the time limit is for all together. The rest as
    for `learn_rules`. Two classes take one rule, for the second.

    Raises RowsError if y has one class only, and what `learn_rules` raises.
    """
    y = np.asarray(y)
    classes, label = np.unique(y, return_inverse=True)
    label = label.reshape(-1)
    if len(classes) < 2:
        raise RowsError("all rows are of one class", where=f"{len(y):,} rows", do="pass rows of two classes or more")
    places = range(1, 2) if len(classes) == 2 else range(len(classes))
    rules: list[RuleLearning] = []
    for place in places:
        rule = learn_rules(
            bits, label == place, complexity=complexity, form=form, time_limit=time_limit / len(places),
            seed=seed, groups=groups, weight=weight, longest=longest, rounds=rounds, progress=progress,
        )  # fmt: skip
        rules.append(rule)
        if rule.interrupted:
            break
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    claims = np.zeros((len(classes), len(y)), dtype=bool)
    for place, rule in zip(places, rules, strict=False):
        claims[place] = rule.predict(np.asarray(bits, dtype=bool))
    order, default = _priorities(claims, label, weight)
    nothing = RuleLearning((), "dnf", 0.0, 0, 0.0, False, bool(rules[-1].interrupted), 0, ())
    known = dict(zip(places, rules, strict=False))
    return RuleSets(classes, tuple(known.get(place, nothing) for place in range(len(classes))), order, default)


def _decided(claims: Bits, order: Sequence[int], default: int) -> Ints:
    result = np.full(claims.shape[1], default)
    for place in reversed(order):
        result[claims[place]] = place
    return result


def _priorities(claims: Bits, label: Ints, weight: Floats) -> tuple[tuple[int, ...], int]:
    """The order of classes and the default: by precision, then by swaps of two that raise the accuracy."""
    free = ~claims.any(axis=0)
    among = np.bincount(label, np.where(free, weight, 0.0) if free.any() else weight, minlength=len(claims))
    default = int(np.argmax(among))

    def accuracy(order: Sequence[int]) -> float:
        return float(weight[_decided(claims, order, default) == label].sum())

    hits = np.array([weight[row & (label == place)].sum() for place, row in enumerate(claims)])
    order = np.argsort(-hits / np.maximum((claims * weight).sum(axis=1), 1e-12), kind="stable").tolist()
    best, better = accuracy(order), True
    while better:
        better = False
        for one, two in combinations(range(len(order)), 2):
            order[one], order[two] = order[two], order[one]
            if accuracy(order) > best + 1e-9:
                best, better = accuracy(order), True
            else:
                order[one], order[two] = order[two], order[one]
    return tuple(order), default
