"""Reads the columns of a CatBoost export and the splits on them: numbers, one-hot categories, and counters (CTRs).

All that a counter's splits tell of a category, or of a combination of categories and conditions, is its cell between
the counter's borders. Categories with equal cells in all counters share a code, and a split is a set of codes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forestc.forest.hashing import HashedColumn, Member, combined_hash
from forestc.forest.ir import Feature
from forestc.forest.numbers import FLOAT32, MAX_CATEGORIES, Category
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.catboost.counters import Cells, Tables
from forestc.frontends.shared.document import Document
from forestc.frontends.shared.exact import next_above
from forestc.frontends.shared.merge import widen

MAX_HASHES = 1 << 22  # limits the hashes of all columns
MAX_CODES = 1 << 24  # limits the codes in the sets of all trees
MAX_MEMBERS = 256  # limits the members of a combination

# Defines a split: a row goes left if x < threshold, by `missing_left` if it is missing, or if a set has its code.
SPLIT = np.dtype([("column", np.int64), ("threshold", np.float64), ("missing_left", np.bool_), ("chosen", np.int64)])
NO_CODES = -1  # stands for a set's number at a split with a threshold


class Source(NamedTuple):
    """A column of the rows, under the index that CatBoost gives it among numbers or categories."""

    column: int
    name: str  # "" if it has none
    thresholds: dict[float, float]  # of a number: border -> threshold that rows of float64 are compared with
    missing_left: bool = False

    @property
    def title(self) -> str:
        return self.name or f"f{self.column}"


@dataclass
class Columns:
    """The columns of an export, with their splits."""

    width: int = 0  # number of columns of the rows, without combinations
    numbers: dict[int, Source] = field(default_factory=dict)
    categories: dict[int, Source] = field(default_factory=dict)
    splits: list[tuple[int, float, bool, int]] = field(default_factory=list)  # fields of `SPLIT`, by `split_index`
    exported: list[dict[str, Any]] = field(default_factory=list)  # fields that trees repeat, by `split_index`
    sets: list[tuple[NDArray[np.int64], int, bool]] = field(default_factory=list)  # cells of codes, `k` and `above`
    features: dict[int, Feature] = field(default_factory=dict)  # by column
    hashed: list[HashedColumn] = field(default_factory=list)
    codes: int = 0  # number of codes in the sets of trees

    def add_number(self, doc: Document, column: int, name: str) -> None:
        """Adds a number, and its borders as splits."""
        treatment = doc.get("nan_value_treatment").text()
        if treatment not in ("AsIs", "AsFalse", "AsTrue"):
            raise doc.fail(f"nan_value_treatment {treatment[:40]!r} is not known")
        borders = _ascending(doc.get("borders"))
        # If no training value was NaN, CatBoost only compares, so NaN goes left.
        missing_left = treatment != "AsTrue" or doc.get("has_nans").value is not True
        index = _index(doc, self.numbers)
        given, above = doc.get("borders").value, next_above(borders, 32)
        source = Source(column, name, dict(zip(given, widen(above).tolist(), strict=True)), missing_left)
        self.numbers[index] = source
        self.features[column] = Feature(source.title, FLOAT32, column, missing=True, named=bool(name))
        for border, threshold in zip(given, above.tolist(), strict=True):
            self.splits.append((column, threshold, missing_left, NO_CODES))
            self.exported.append({"split_type": "FloatFeature", "border": border, "float_feature_index": index})

    def codes_left(self, number: int, doc: Document) -> list[int]:
        """Returns the codes that go left at a split on a set. Raises ModelError if the tree's sets are too large."""
        cells, k, above = self.sets[number]
        left: list[int] = np.flatnonzero(cells <= k if above else cells != k).tolist()
        self.codes += len(left)
        if self.codes > MAX_CODES:
            raise doc.fail("the sets of categories are too large", "train with fewer trees, borders or categories")
        return left

    def members(self, doc: Document) -> tuple[Member, ...]:
        """Returns the members of a counter, in the order in which CatBoost hashes them."""
        ordered: dict[str, list[Member]] = {"category": [], "from": [], "is": []}
        elements = doc.get("elements").items()
        for element in elements[:MAX_MEMBERS]:
            match element.get("combination_element").value:
                case "cat_feature_value":
                    source = _source(element.get("cat_feature_index"), self.categories)
                    ordered["category"].append(Member(source.column, source.name))
                case "cat_feature_exact_value":
                    source = _source(element.get("cat_feature_index"), self.categories)
                    value = element.get("value").integer(-(1 << 31), (1 << 31) - 1)
                    ordered["is"].append(Member(source.column, source.name, "is", float(value)))
                case "float_feature":
                    source, border = _source(element.get("float_feature_index"), self.numbers), element.get("border")
                    if not isinstance(border.value, int | float) or border.value not in source.thresholds:
                        raise border.fail(f"is no border of {source.title!r}")
                    threshold = source.thresholds[border.value]
                    ordered["from"].append(
                        Member(source.column, source.name, "from", threshold, not source.missing_left)
                    )
                case other:
                    raise element.fail(f"combination_element {str(other)[:40]!r} is not known")
        if not 1 <= len(elements) <= MAX_MEMBERS or not ordered["category"]:
            raise doc.fail(f"a counter of {len(elements)} members, or of no category")
        return (*ordered["category"], *ordered["from"], *ordered["is"])

    def add_hashed(self, members: tuple[Member, ...], parts: list[tuple[int, Cells]], doc: Document) -> None:
        """Adds a column of codes, and the splits on it. parts: the first split of each counter, and its cells."""
        hashes = np.sort(np.concatenate([cells.hashes for _, cells in parts]))
        hashes = hashes[np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]]
        codes, each = np.zeros(len(hashes) + 1, dtype=np.int64), []
        for _, part in parts:
            cells = np.full(len(hashes) + 1, part.unknown)  # The last entry is for unknown hashes.
            cells[np.searchsorted(hashes, part.hashes)] = part.cells
            codes = np.unique(codes * (part.splits + 1) + cells, return_inverse=True)[1]
            each.append(cells)
        count = max(1, int(codes.max()))
        codes = np.where(codes == codes[-1], count, codes - (codes > codes[-1]))  # Unknown hashes get the code `count`.
        if count > MAX_CATEGORIES:
            do = f"train with at most {MAX_CATEGORIES:,}: fewer counters, priors or ctr_border_count"
            raise doc.fail(f"its splits tell {count:,} kinds of categories apart", do)
        simple = len(members) == 1
        column = members[0].column if simple else self.width + sum(hashed.combined for hashed in self.hashed)
        known = codes[:-1] < count
        pairs = hashes[known].tolist(), codes[:-1][known].tolist()
        hashed = HashedColumn(column, count, members, tuple(pairs[0]), tuple(pairs[1]))
        self.hashed.append(hashed)
        if sum(len(hashed.hashes) for hashed in self.hashed) > MAX_HASHES:
            raise doc.fail(f"has more than {MAX_HASHES:,} hashes", "train with fewer categories")
        self.features[column] = Feature(hashed.title, Category(count), column, named=all(m.name for m in members))
        for (first, part), cells in zip(parts, each, strict=True):
            cell_of = np.full(count + 1, -1, dtype=np.int64)
            cell_of[codes] = cells
            for k in range(part.splits):
                self.splits[first + k] = (column, 0.0, False, len(self.sets))
                self.sets.append((cell_of, k, part.above))


def read_columns(info: Document, tables: Document) -> Columns:
    """Reads the columns of an export. info: its `features_info`. tables: its `ctr_data`."""
    columns, kinds = Columns(), []
    for kind in ("float_features", "categorical_features", "text_features", "embedding_features"):
        for doc in info.get(kind, []).items():
            column = doc.get("flat_feature_index").integer(0, MAX_COLUMNS - 1)
            columns.width = max(columns.width, column + 1)
            kinds.append((kind, doc, column))
    if len({column for *_, column in kinds}) < len(kinds):
        taken = [column for *_, column in kinds]
        place = next(k for k, column in enumerate(taken) if column in taken[:k])
        raise kinds[place][1].fail(f"column {taken[place]} is another feature's")
    single: dict[tuple[Member, ...], list[tuple[int, Cells]]] = {}
    for kind, doc, column in kinds:
        name = doc.get("feature_id", "").text()
        if kind == "float_features":
            columns.add_number(doc, column, name)
        if kind == "categorical_features":
            index = _index(doc, columns.categories)
            columns.categories[index] = Source(column, name, {})
            values = doc.get("values", []).array(np.int64)
            if len(set(values.tolist())) < len(values):
                raise doc.get("values").fail("has a value twice")
            exported = [
                {"split_type": "OneHotFeature", "value": value, "cat_feature_index": index} for value in values.tolist()
            ]
            if exported:
                hashes = combined_hash([values])
                order = np.argsort(hashes)
                cells = Cells(hashes[order], order, len(values), len(values), above=False)
                single[Member(column, name),] = [(len(columns.splits), cells)]
                columns.exported += exported
                columns.splits += [(column, 0.0, False, NO_CODES)] * len(exported)
    read = Tables(tables)
    for doc in info.get("ctrs", []).items():
        borders = _ascending(doc.get("borders"))
        target = doc.get("target_border_idx").value
        single.setdefault(columns.members(doc), []).append((len(columns.splits), read.cells(doc, borders)))
        for border in doc.get("borders").value:
            columns.splits.append((0, 0.0, False, NO_CODES))
            columns.exported.append({"split_type": "OnlineCtr", "border": border, "ctr_target_border_idx": target})
    for members, parts in single.items():
        columns.add_hashed(members, parts, info)
    return columns


def _index(doc: Document, taken: dict[int, Source]) -> int:
    index = doc.get("feature_index").integer(0, MAX_COLUMNS - 1)
    if index in taken:
        raise doc.fail(f"feature_index {index} is another feature's")
    return index


def _source(doc: Document, known: dict[int, Source]) -> Source:
    index = doc.integer(0, MAX_COLUMNS - 1)
    if index not in known:
        raise doc.fail(f"is {index}, which is no feature")
    return known[index]


def _ascending(doc: Document) -> NDArray[np.float32]:
    """Returns borders. Raises ModelError if they do not ascend or are not finite."""
    borders: NDArray[np.float32] = doc.array(np.float32)
    if not np.isfinite(borders).all() or (np.diff(borders) <= 0).any():
        raise doc.fail("does not ascend or is not finite")
    return borders
