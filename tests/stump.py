"""Makes the smallest forest that decides: a tree of one split on a feature that may be missing."""

from __future__ import annotations

from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest


def stump(number: str, threshold: int, missing_left: bool = False) -> Forest:
    """Makes the forest: no below the threshold, yes from it on. number: the feature's type, as text."""
    return parse_forest(f"""forest "t"
source "" "" ""
columns 1
feature "a" {number} column 0 raw float32 missing
aggregate sum float64 bias-first
bias 0
link identity
decision threshold 2 on scores
classes ["no", "yes"]
scale 1.0
tree outputs 0
0: 0 < {threshold} ? 1 : 2{" missing left" * missing_left}
1: leaf 0
2: leaf 3
""")
