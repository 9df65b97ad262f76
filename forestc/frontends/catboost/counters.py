"""Reads the counters (CTRs) of a CatBoost export: tables that give categories, and combinations of them, numbers.

A number is (count + prior) / (total + prior's denominator), then shifted and scaled, all in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CUT
from forestc.frontends.shared.document import Document

MAX_STRIDE = 1 << 16  # limits the numbers of a hash in a table
MAX_CELLS = 1 << 24  # limits the sum of all counters' hashes
NO_HASH = (1 << 64) - 1  # marks an empty place of CatBoost's tables, which exports list like a hash

_Counts: TypeAlias = tuple[NDArray[Any], NDArray[Any]]  # counts and totals (hashes,)


class Cells(NamedTuple):
    """What the splits of a counter, or on single categories, tell of a hash: its cell."""

    hashes: NDArray[np.uint64]  # known hashes, ascending
    cells: NDArray[np.int64]
    unknown: int  # cell of all other hashes
    splits: int
    above: bool  # True if split k sends cells up to k left; False if all but cell k


class Kind(NamedTuple):
    """A kind of counter. fits: tests the numbers of a hash and the target's index."""

    fits: Callable[[int, int], bool]
    counts: Callable[[NDArray[Any], int, int], _Counts]  # of the numbers, the target's index and the denominator


def _over_border(numbers: NDArray[Any], target: int, _: int) -> _Counts:
    start = 1 if numbers.shape[1] == 2 else target + 1
    return numbers[:, start:].sum(axis=1), numbers.sum(axis=1)


_CLASSES = Kind(lambda width, target: width == 2 or 0 <= target < width - 1, _over_border)
_BUCKETS = Kind(lambda width, target: 0 <= target < width, lambda numbers, k, _: (numbers[:, k], numbers.sum(axis=1)))
_MEAN = Kind(lambda width, _: width == 2, lambda numbers, *_: (numbers[:, 0], numbers[:, 1]))
_TOTAL = Kind(lambda width, _: width == 1, lambda numbers, _, total: (numbers[:, 0], np.full(len(numbers), total)))
KINDS = {
    "Borders": _CLASSES,
    "Buckets": _BUCKETS,
    "BinarizedTargetMeanValue": _MEAN,
    "FloatTargetMeanValue": _MEAN,
    "Counter": _TOTAL,
    "FeatureFreq": _TOTAL,
}
_OF_SUMS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")


class Table(NamedTuple):
    """The numbers (hashes, width) of ascending hashes."""

    hashes: NDArray[np.uint64]
    numbers: NDArray[Any]


@dataclass
class Tables:
    """The tables of an export, each read once."""

    doc: Document
    known: dict[tuple[str, bool], Table] = field(default_factory=dict)
    claimed: int = 0  # sum of the hashes of all counters

    def table(self, name: str, floats: bool) -> Table:
        if (name, floats) not in self.known:
            self.known[name, floats] = _table(self.doc.get(name), np.float32 if floats else np.int64)
        return self.known[name, floats]

    def cells(self, doc: Document, borders: NDArray[np.float32]) -> Cells:
        """Returns the cells of a counter: the number of borders that are below its number."""
        name = doc.get("ctr_type").text()
        if name not in KINDS:
            raise doc.fail(f"counters of the type {name[:40]!r} are not read", f"train with {', '.join(KINDS)}")
        kind, identifier = KINDS[name], doc.get("identifier").text()
        hashes, numbers = self.table(identifier, name in _OF_SUMS)
        self.claimed += len(hashes)
        if self.claimed > MAX_CELLS:
            raise doc.fail(f"has counters of more than {MAX_CELLS:,} hashes", "train with fewer counters or priors")
        target = doc.get("target_border_idx").integer(-1, MAX_STRIDE)
        if not kind.fits(numbers.shape[1], target):
            raise doc.fail(f"a {name} with target {target} has a table of {numbers.shape[1]} numbers for each category")
        total = self.doc.get(identifier).get("counter_denominator", 0).integer(-(1 << 31), (1 << 31) - 1)
        none = np.zeros((1, numbers.shape[1]), numbers.dtype)  # All numbers of an unknown category are 0.
        counts, totals = kind.counts(np.concatenate([numbers, none]), target, total)
        cells = np.searchsorted(borders, _values(doc, counts, totals), side="left")
        return Cells(hashes, cells[:-1], int(cells[-1]), len(borders), above=True)


def _values(doc: Document, counts: NDArray[Any], totals: NDArray[Any]) -> NDArray[np.float32]:
    """Returns a counter's numbers, (hashes,) float32; -infinity for NaN, which is above no border."""
    keys = ("prior_numerator", "prior_denomerator", "shift", "scale")  # The second is spelled so.
    prior, weight, shift, scale = Document([doc.get(key).value for key in keys], doc.path, doc.where).array(np.float32)
    with np.errstate(all="ignore"):
        values = ((counts.astype(np.float32) + prior) / (totals.astype(np.float32) + weight) + shift) * scale
    return np.where(np.isnan(values), np.float32(-np.inf), values)


def _table(doc: Document, dtype: type) -> Table:
    stride, flat = doc.get("hash_stride").integer(2, MAX_STRIDE), doc.get("hash_map")
    if not isinstance(flat.value, list) or len(flat.value) % stride:
        raise flat.fail(f"is no list of {stride} values for each hash", CUT)
    texts = flat.value[::stride]
    if not all(
        isinstance(text, str) and text.isdecimal() and len(text) <= 20 and int(text) <= NO_HASH for text in texts
    ):
        raise flat.fail("has a hash that is no text of an integer of 64 bits")
    hashes = np.array(list(map(int, texts)), dtype=np.uint64)
    columns = [Document(flat.value[k::stride], flat.path, flat.where).array(dtype) for k in range(1, stride)]
    order = np.argsort(hashes)
    order = order[hashes[order] != NO_HASH]
    if len(order) and (np.diff(hashes[order]) == 0).any():
        raise flat.fail("has a hash twice")
    return Table(hashes[order], np.stack(columns, axis=1)[order])
