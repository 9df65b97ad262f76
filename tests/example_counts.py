"""Sets how many examples property tests draw: few in every run, more if FORESTC_EXAMPLES multiplies them
(make full)."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("FORESTC_EXAMPLES", "1"))


def examples(count: int) -> int:
    """Returns the settings of a test with that many examples, times FORESTC_EXAMPLES."""
    return count * TIMES
