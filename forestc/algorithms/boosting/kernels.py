"""Compiled functions of boosting: sums of gradients, and the best split of a node.

A leaf with value w, gradient sum G and curvature sum H lowers the loss by about -(G w + (H + l2) w**2 / 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forestc.algorithms.arrays import Bits, Bytes, Floats, Ints
from forestc.system.compiled import compiled


class Coded(NamedTuple):
    """Rows coded by thresholds, for compiled functions."""

    codes: Bytes  # (columns, rows) number of thresholds at or below the value
    counts: Ints  # (columns,) number of thresholds
    has_missing: Bits  # (columns,) True if the column has a NaN
    missing: int  # code of NaN


class Slopes(NamedTuple):
    """First derivatives and curvatures of the loss by the scores of one output, (rows,) each."""

    gradient: Floats
    curvature: Floats


class Scoring(NamedTuple):
    """Parameters of leaf values."""

    l2: float  # regularization of leaf values
    unit: float  # distance between two leaf values; 0 for free values
    top: int  # number of possible leaf values less one


@compiled()
def answer(gradient, curvature, scoring):  # type: ignore[no-untyped-def]
    """Returns the value of a leaf with these sums of gradient and curvature."""
    l2, unit, top = scoring
    weight = curvature + l2
    value = -gradient / weight if weight > 0 else 0.0
    if unit == 0:
        return value
    level = np.floor(value / unit + top / 2 + 0.5)
    return (min(max(level, 0.0), float(top)) - top / 2) * unit


@compiled()
def lowered(gradient, curvature, scoring):  # type: ignore[no-untyped-def]
    """Returns how far a leaf with these sums of gradient and curvature lowers the loss."""
    value = answer(gradient, curvature, scoring)
    return -(gradient * value + 0.5 * (curvature + scoring.l2) * value * value)


@compiled()
def answers(gradient, curvature, leaves, scoring, values):  # type: ignore[no-untyped-def]
    """Writes the value of each leaf to values[leaf], and returns how far the leaves lower the loss."""
    gained = 0.0
    for leaf in leaves:
        values[leaf] = answer(gradient[leaf], curvature[leaf], scoring)
        gained += lowered(gradient[leaf], curvature[leaf], scoring)
    return gained


@compiled()
def sums_by_code(codes, columns, rows, slopes, sums):  # type: ignore[no-untyped-def]
    """Writes to sums[i, code] the gradient and curvature sums of the rows with this code in column columns[i]."""
    some_g = slopes.gradient[rows]
    some_h = slopes.curvature[rows]
    for index in range(len(columns)):
        line = codes[columns[index]]
        into = sums[index]
        into[:] = 0.0
        for at in range(len(rows)):
            code = line[rows[at]]
            into[code, 0] += some_g[at]
            into[code, 1] += some_h[at]


@compiled()
def best_split(sums, columns, coded, charges, scoring, least):  # type: ignore[no-untyped-def]
    """Returns the best split of a node: gain less price, index into `columns` (-1 if no split gains), threshold index,
    and True if missing values go left."""
    total_g, total_h = sums[0, :, 0].sum(), sums[0, :, 1].sum()
    missing = coded.missing
    before = lowered(total_g, total_h, scoring)
    best, best_position, best_cut, best_left = 0.0, -1, -1, False
    for position in range(len(columns)):
        column = columns[position]
        gone_g, gone_h = sums[position, missing, 0], sums[position, missing, 1]
        for side in range(2 if coded.has_missing[column] else 1):
            left_g, left_h = (gone_g, gone_h) if side == 1 else (0.0, 0.0)
            for cut in range(coded.counts[column]):
                left_g += sums[position, cut, 0]
                left_h += sums[position, cut, 1]
                right_h = total_h - left_h
                if left_h < least or right_h < least:
                    continue
                gain = lowered(left_g, left_h, scoring) + lowered(total_g - left_g, right_h, scoring)
                gain -= before + charges[column, cut]
                if gain > best:
                    best, best_position, best_cut, best_left = gain, position, cut, side == 1
    return best, best_position, best_cut, best_left


@compiled()
def best_level(coded, columns, charges, leaf, leaves, slopes, scoring, best):  # type: ignore[no-untyped-def]
    """Writes to best[i] the best condition on columns[i] for splitting every leaf: (net gain, threshold index or -1, 1
    if missing values go left)."""
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
    parted = np.empty(leaves)  # loss saved by the two sides of each leaf
    for index in range(len(columns)):
        column = columns[index]
        best[index, 0] = 0.0
        best[index, 1] = -1.0
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
                    # If the leaf has no row with this code, its two sides stay the same.
                    if cut == 0 or sums[k, cut, 1] > 0:
                        on_left[k, 0] += sums[k, cut, 0]
                        on_left[k, 1] += sums[k, cut, 1]
                        right_g, right_h = totals[k, 0] - on_left[k, 0], totals[k, 1] - on_left[k, 1]
                        parted[k] = lowered(on_left[k, 0], on_left[k, 1], scoring)
                        parted[k] += lowered(right_g, right_h, scoring)
                    gain += parted[k]
                if gain > best[index, 0]:
                    best[index, 0], best[index, 1], best[index, 2] = gain, cut, side
