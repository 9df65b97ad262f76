"""The last step of a frontend: trees over the columns of the source's rows become a Forest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from forestc.forest.builder import make_forest, read_features
from forestc.forest.ir import Aggregate, Combine, Decision, Feature, Forest, Label, Link, Part, Provenance, Tree


class Meaning(TypedDict, total=False):
    """What the scores mean, as in `Forest`. Without an entry: a plain sum from 0, shown as it is."""

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
    **meaning: Unpack[Meaning],
) -> Forest:
    """A Forest. trees: their `feature` holds columns of the rows. feature: makes the Feature of a column that is read.
    Raises ModelError."""
    features, placed = read_features(trees, columns, feature, where)
    complete: dict[str, Any] = {
        "bias": np.zeros(meaning["n_outputs"]),
        "aggregate": Aggregate(),
        "link": Link(),
        "decision": Decision("none"),
        **meaning,
    }
    return make_forest(
        where=where, name="forest", features=features, columns=columns, trees=placed, provenance=provenance, **complete
    )
