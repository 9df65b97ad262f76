"""The last step of a frontend: trees over the columns of the source's rows become a Forest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Required, TypedDict, Unpack

from numpy.typing import ArrayLike

from forestc.forest.builder import make_forest, read_features
from forestc.forest.ir import Aggregate, Combine, Decision, Feature, Forest, Label, Link, Part, Provenance, Tree


class ScoreMeaning(TypedDict, total=False):
    """The arguments of `make_forest` that say what the scores mean."""

    n_outputs: Required[int]
    bias: ArrayLike
    aggregate: Aggregate
    link: Link
    decision: Decision
    classes: Sequence[Label]
    parts: Sequence[Part]
    combine: Combine


def assembled(
    trees: Sequence[Tree],
    columns: int,
    feature: Callable[[int], Feature],
    provenance: Provenance,
    where: str,
    **meaning: Unpack[ScoreMeaning],
) -> Forest:
    """A Forest. trees: their `feature` holds columns of the rows. feature: makes the Feature of a column that is read.
    Raises ModelError."""
    features, placed = read_features(trees, columns, feature, where)
    return make_forest(
        where=where, name="forest", features=features, columns=columns, trees=placed, provenance=provenance, **meaning
    )
