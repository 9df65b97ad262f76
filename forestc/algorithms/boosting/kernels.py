"""The compiled parts of boosting: sums of gradients by code, and the best split by gain less its charge.

A leaf with gradient sum G and curvature sum H that answers w lowers the loss by -(G w + (H + l2) w**2 / 2), to second
order. Free leaves answer -G / (H + l2); leaves of b bits the nearest of 2**b levels, one `unit` apart and symmetric
about 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bits, Bytes, Floats, Ints
from forestc.system.compiled import compiled


class Coded(NamedTuple):
    """codes: (columns, rows) the number of cuts that are not above the value; `missing` for NaN. counts: (columns,) of
    cuts. has_missing: (columns,)."""

    codes: Bytes
    counts: Ints
    has_missing: Bits
    missing: int


class Slopes(NamedTuple):
    """Derivatives of the loss by one output's scores, (rows,) each."""

    gradient: Floats
    curvature: Floats


class Scoring(NamedTuple):
    """unit: 0 for free leaves. top: the number of a leaf's levels less one."""

    l2: float
    unit: float
    top: int


@compiled()
def answer(gradient, curvature, scoring):  # type: ignore[no-untyped-def]
    """The value of a leaf."""
    l2, unit, top = scoring
    weight = curvature + l2
    value = -gradient / weight if weight > 0 else 0.0
    if unit == 0:
        return value
    level = np.floor(value / unit + top / 2 + 0.5)
    return (min(max(level, 0.0), float(top)) - top / 2) * unit


@compiled()
def lowered(gradient, curvature, scoring):  # type: ignore[no-untyped-def]
    """How far a leaf lowers the loss."""
    value = answer(gradient, curvature, scoring)
    return -(gradient * value + 0.5 * (curvature + scoring.l2) * value * value)


@compiled()
def sums_by_code(codes, columns, rows, slopes, sums):  # type: ignore[no-untyped-def]
    """sums[i, code] becomes (G, H) of the given rows for column columns[i]."""
    some_g = slopes.gradient[rows]
    some_h = slopes.curvature[rows]
    for place in range(len(columns)):
        line = codes[columns[place]]
        into = sums[place]
        into[:] = 0.0
        for at in range(len(rows)):
            code = line[rows[at]]
            into[code, 0] += some_g[at]
            into[code, 1] += some_h[at]


@compiled()
def best_split(sums, columns, coded, charges, scoring, least):  # type: ignore[no-untyped-def]
    """(gain less its charge, place in columns, cut, missing left) of a node's best split; place -1 if there is none.

    charges: (columns, cuts). least: curvature that each side must have.
    """
    total_g, total_h = sums[0, :, 0].sum(), sums[0, :, 1].sum()
    missing = coded.missing
    before = lowered(total_g, total_h, scoring)
    best, best_place, best_cut, best_left = 0.0, -1, -1, False
    for place in range(len(columns)):
        column = columns[place]
        gone_g, gone_h = sums[place, missing, 0], sums[place, missing, 1]
        for side in range(2 if coded.has_missing[column] else 1):
            left_g, left_h = (gone_g, gone_h) if side == 1 else (0.0, 0.0)
            for cut in range(coded.counts[column]):
                left_g += sums[place, cut, 0]
                left_h += sums[place, cut, 1]
                right_h = total_h - left_h
                if left_h < least or right_h < least:
                    continue
                gain = lowered(left_g, left_h, scoring) + lowered(total_g - left_g, right_h, scoring)
                gain -= before + charges[column, cut]
                if gain > best:
                    best, best_place, best_cut, best_left = gain, place, cut, side == 1
    return best, best_place, best_cut, best_left


@compiled()
def best_level(coded, columns, charges, leaf, leaves, slopes, scoring, best):  # type: ignore[no-untyped-def]
    """best[i] becomes (gain less its charge, cut, missing left) of the best condition of column columns[i] when it
    splits every leaf. leaf: (rows,) of each row."""
    gradient, curvature = slopes
    missing = coded.missing
    sums = np.empty((leaves, missing + 1, 2))
    totals = np.zeros((leaves, 2))
    for row in range(len(leaf)):
        totals[leaf[row], 0] += gradient[row]
        totals[leaf[row], 1] += curvature[row]
    before = 0.0
    for k in range(leaves):
        before += lowered(totals[k, 0], totals[k, 1], scoring)
    on_left = np.empty((leaves, 2))
    parted = np.empty(leaves)  # how far the two sides of each leaf lower the loss
    for place in range(len(columns)):
        column = columns[place]
        best[place, 0] = 0.0
        best[place, 1] = -1.0
        if coded.counts[column] == 0:
            continue
        line = coded.codes[column]
        sums[:] = 0.0
        for row in range(len(leaf)):
            sums[leaf[row], line[row], 0] += gradient[row]
            sums[leaf[row], line[row], 1] += curvature[row]
        for side in range(2 if coded.has_missing[column] else 1):
            for k in range(leaves):
                for derivative in range(2):
                    on_left[k, derivative] = sums[k, missing, derivative] if side == 1 else 0.0
            for cut in range(coded.counts[column]):
                gain = -before - charges[column, cut]
                for k in range(leaves):
                    if cut == 0 or sums[k, cut, 1] > 0:  # else no row of the leaf lies before this cut alone
                        on_left[k, 0] += sums[k, cut, 0]
                        on_left[k, 1] += sums[k, cut, 1]
                        right_g, right_h = totals[k, 0] - on_left[k, 0], totals[k, 1] - on_left[k, 1]
                        parted[k] = lowered(on_left[k, 0], on_left[k, 1], scoring)
                        parted[k] += lowered(right_g, right_h, scoring)
                    gain += parted[k]
                if gain > best[place, 0]:
                    best[place, 0], best[place, 1], best[place, 2] = gain, cut, side
