"""Makes the smallest forest that decides: a tree of one split on a feature that may be missing."""

from __future__ import annotations

from forest_texts import head

from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest


def stump(number: str, threshold: int, missing_left: bool = False) -> Forest:
    """Makes the forest: no below the threshold, yes from it on. number: the feature's type, as text."""
    return parse_forest(
        head(f"a {number} missing", decision="threshold 2 on scores", classes='["no", "yes"]')
        + f"""tree outputs 0
0: 0 < {threshold} ? 1 : 2{" missing left" * missing_left}
1: leaf 0
2: leaf 3
"""
    )
