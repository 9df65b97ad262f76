"""Windows of an accelerometer: made-up motions, and the features that windows.h computes, number by number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLES, RATE, GRAVITY = 64, 50.0, 8192  # samples of a window, in Hz, and steps of the sensor for 1 g
MOTIONS = ("rest", "walk", "shake", "turn")
FEATURES = [f"{axis}_{name}" for axis in "xyz" for name in ("mean", "least", "greatest", "step", "crossings")]


def motions(count: int, seed: int) -> tuple[NDArray[np.int16], NDArray[np.str_]]:
    """Returns windows (count, samples, 3) and their labels (count,)."""
    random = np.random.default_rng(seed)
    label = random.integers(len(MOTIONS), size=count)
    time = np.arange(SAMPLES) / RATE
    up = random.normal(size=(count, 3))
    gravity = up / np.linalg.norm(up, axis=1, keepdims=True)
    strength = np.array([0.0, 0.35, 0.9, 0.0])[label] * random.lognormal(0, 0.35, count)
    hertz = np.array([1.0, 2.0, 5.5, 1.0])[label] * random.lognormal(0, 0.2, count)
    swing = np.sin(2 * np.pi * (hertz[:, None] * time + random.random((count, 1))))
    signal = gravity[:, None] + (strength[:, None] * swing)[:, :, None] * random.normal(1, 0.4, (count, 1, 3))
    to = random.normal(size=(count, 3))
    signal += (label == 3)[:, None, None] * (time / time[-1])[None, :, None] * (to - gravity)[:, None] * 0.6
    signal += random.normal(0, 0.03, signal.shape)
    return np.clip(signal * GRAVITY, -(1 << 15), (1 << 15) - 1).astype(np.int16), np.array(MOTIONS)[label]


def features(windows: NDArray[np.int16]) -> NDArray[np.int16]:
    """Returns the features of windows (count, samples, 3) as windows.h does: (count, 15)."""
    wide = windows.astype(np.int64)
    mean = wide.sum(axis=1) // SAMPLES
    step = np.abs(np.diff(wide, axis=1)).sum(axis=1) // (2 * SAMPLES)
    above = wide >= mean[:, None]
    crossings = (above[:, 1:] != above[:, :-1]).sum(axis=1)
    table = np.stack([mean, wide.min(axis=1), wide.max(axis=1), step, crossings], axis=2)
    return table.reshape(len(windows), -1).astype(np.int16)
