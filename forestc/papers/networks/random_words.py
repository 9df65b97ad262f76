"""Random numbers (xorshift64*) for compiled functions in several threads; each thread has its own state."""

from __future__ import annotations

import numpy as np

from forestc.algorithms.arrays import Words
from forestc.system.compiled import compiled


def seeded(*seed: int) -> Words:
    """Returns a generator state, (1,), made from the seeds."""
    return np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1)


@compiled()
def draw(random: Words) -> float:
    """Returns a uniform number in (0, 1) and advances the state."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return (np.float64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(12)) + 0.5) / 4503599627370496.0
