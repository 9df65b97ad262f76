"""Makes the Forest at the end of a frontend, from trees over the columns of the source's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Required, TypedDict, Unpack

from numpy.typing import ArrayLike

from forestc.forest.builder import make_forest, read_features
from forestc.forest.ir import Aggregate, Combine, Decision, Feature, Forest, Label, Link, Part, Provenance, Tree


class ScoreMeaning(TypedDict, total=False):
    """Arguments of `make_forest` that define the meaning of the scores."""

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
    """Builds a Forest. trees: their `feature` arrays hold columns of the rows. feature: makes the Feature of a column
    that is read. Raises ModelError."""
    features, renumbered = read_features(trees, columns, feature, where)
    return make_forest(
        where=where,
        name="forest",
        features=features,
        columns=columns,
        trees=renumbered,
        provenance=provenance,
        **meaning,
    )
