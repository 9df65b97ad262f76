"""Sums whose every addition is rounded to a number type, as in an emulator of hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Aggregate, Forest, Order
from forestc.forest.numbers import Fixed, round_to

T = TypeVar("T")


def added(start: T, terms: Sequence[T], order: Order, add: Callable[[T, T], T]) -> T:
    """Adds the terms to a start value: one by one, or first all of them in a balanced tree."""
    if order == "sequential":
        return reduce(add, terms, start)

    def total(terms: Sequence[T]) -> T:
        if len(terms) == 1:
            return terms[0]
        left = 1 << (len(terms) - 1).bit_length() - 1  # the largest power of two that leaves a term
        return add(total(terms[:left]), total(terms[left:]))

    return add(start, total(terms))


def integer_type(aggregate: Aggregate) -> Fixed:
    """Returns the type of a quantized forest's scores."""
    assert aggregate.score is not None
    return replace(aggregate.score, fraction=0)


def typed_scores(forest: Forest, nodes: Sequence[NDArray[np.int64]], total: NDArray[Any]) -> NDArray[Any]:
    """Returns the scores (rows, outputs). nodes: for each tree (rows,) leaf nodes. total: the scores before the first
    tree."""
    aggregate = forest.aggregate
    number = integer_type(aggregate) if forest.quantized else aggregate.score
    assert number is not None

    def add(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return round_to(a + b, number).astype(total.dtype)

    columns = []
    for output in range(forest.n_outputs):
        own = [index for index, tree in enumerate(forest.trees) if output in tree.outputs]
        trees = [(forest.trees[index], nodes[index]) for index in own]
        terms = [tree.values[tree.leaf[node], tree.outputs.index(output)] for tree, node in trees]
        column = added(total[:, output], terms, aggregate.order, add)
        if aggregate.norm != 1:
            column = round_to(column * aggregate.norm, number).astype(total.dtype)
        columns.append(column)
    return np.stack(columns, axis=1)
