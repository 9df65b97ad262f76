"""Packs bits into 64-bit words and counts them."""

from __future__ import annotations

import numpy as np

from forestc.algorithms.arrays import Bits, Words
from forestc.system.compiled import compiled


def packed_words(bits: Bits) -> Words:
    """Returns rows of bits as words, (rows, words): bit j of a row is bit j % 64 of word j // 64."""
    room = np.zeros((len(bits), max(1, -(-bits.shape[1] // 64)) * 8), dtype=np.uint8)
    room[:, : -(-bits.shape[1] // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return room.view("<u8").astype(np.uint64)


@compiled()
def popcount(x: np.uint64) -> np.uint64:
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
