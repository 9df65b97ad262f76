"""Folds preprocessing of single columns into a forest's conditions; the forest then takes raw float64 rows.

`f(x) < t` becomes `x < c` by bisection. Floats near c are tested, because log1p, for instance, may decrease slightly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import HERE, ModelError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import (
    Below,
    Condition,
    Member,
    OneOf,
    members_of,
    shortest_test,
    toggled,
    tree_arrays,
    within,
)
from forestc.forest.hashing import Member as HashMember
from forestc.forest.ir import LEAF, Feature, Forest
from forestc.forest.numbers import FLOAT64, Category, key_value, order_key, round_to, to_words
from forestc.frontends.shared.exact import least_keys

Function: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
WINDOW = 256  # floats on either side of a cut tested at first
# floats on either side of a cut tested at most; functions that change farther away are refused
MOST_WINDOW = 1 << 16
AT_ONCE = 1 << 19  # floats tested at a time; more take more memory


def identity(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x


@dataclass(frozen=True)
class StepColumn:
    """A raw column with the steps before the forest; an image is a value after the steps."""

    source: int  # raw column; -1 for a constant
    function: Function = identity  # non-decreasing on finite floats, (n,) to (n,)
    points: dict[float, float] = field(default_factory=dict)  # raw values with other images than the function's
    missing: float | None = np.nan  # image of NaN; None if a step refuses NaN
    texts: dict[str, float] | None = None  # images of known texts; others get the function's image
    fills: dict[str | None, str] = field(default_factory=dict)  # raw text (None: missing) -> an imputer's text
    dtype: np.dtype[Any] = field(default=np.dtype(np.float64))  # type in the next step
    sparse: bool = False  # True if the next step receives a sparse column
    unknown: float | None = np.nan  # number that encoders take as any text; NaN before them; None: a step refuses texts

    def encoded(self, unknown: float | None) -> StepColumn:
        """Returns the column after a step that reads texts as it reads `unknown`, or that refuses them (None), if no
        step before has done so."""
        return self if self.unknown is None or self.unknown == self.unknown else replace(self, unknown=unknown)

    def then(
        self, function: Function, missing: float | None = np.nan, points: dict[float, float] | None = None
    ) -> StepColumn:
        """Returns the column after one more step. missing, points: the step's results for NaN and for single values.
        Raises ModelError if the points can't be traced to raw values."""
        before = self.function
        exceptions = points or {}

        def image(value: float | None) -> float | None:
            if value is None:
                return None
            if value != value:
                return missing
            return exceptions[value] if value in exceptions else float(function(np.array([value]))[0])

        if exceptions and before is not identity and not constant(self):
            raise ModelError(
                "a step replaces single values of a column that was changed before",
                where=HERE,
                do="impute or replace before the other steps, or train without that step",
            )
        moved = {value: _or_nan(image(old)) for value, old in self.points.items()}
        if before is identity:
            moved |= {value: new for value, new in exceptions.items() if value not in moved}

        def composed(x: NDArray[np.float64]) -> NDArray[np.float64]:
            y = before(x)
            result = np.array(function(y), dtype=np.float64)
            for value, new in exceptions.items():
                result[y == value] = new
            absent = np.isnan(y)  # Only a constant yields NaN: an encoder's value for unknown categories.
            if absent.any():
                result[absent] = np.nan if missing is None else missing
            return result

        texts = None if self.texts is None else {name: _or_nan(image(old)) for name, old in self.texts.items()}
        return replace(
            self,
            function=composed
            if (exceptions and before is not identity) or constant(self)
            else _after(before, function),
            points=moved,
            missing=image(self.missing),
            texts=texts,
        )


def _after(before: Function, function: Function) -> Function:
    return function if before is identity else lambda x: function(before(x))


def _or_nan(image: float | None) -> float:
    return np.nan if image is None else image


def beyond(numbers: Iterable[float]) -> float | None:
    """Returns a number far above all given ones, which stays so when quantization moves them; None if there is none."""
    reach = max((abs(number) for number in numbers if number == number), default=0.0)
    return 4.0 * 2.0 ** math.frexp(reach)[1] if reach < 2.0**1000 else None


def largest_unknown(numbers: Collection[float | None]) -> float | None:
    """Returns the number that stands for texts where readers of one column have these; None if one refuses texts."""
    known = [number for number in numbers if number is not None]
    return max(known) if len(known) == len(numbers) else None


def constant(column: StepColumn) -> bool:
    """Returns True if the column's function seems constant: it has one value at three distant numbers."""
    ends = column.function(np.array([-1e300, 0.0, 1e300]))
    return bool(np.all(ends == ends[0]) or np.isnan(ends).all())


def fold(forest: Forest, columns: Sequence[StepColumn], width: int, names: Sequence[str] | None, where: str) -> Forest:
    """Returns the forest over raw rows of `width` columns. columns: one for each column of the given forest's rows.
    Raises ModelError if a condition can't be kept exactly."""
    if len(columns) != forest.own_columns:
        raise ModelError(
            f"the steps make {len(columns)} columns, the model takes {forest.own_columns}",
            where=where,
            do="give the Pipeline as it was fitted",
        )
    if forest.hashed:
        forest, columns, width, names = _with_hashed(forest, columns, width, names, where)
    sources = sorted({columns[f.column].source for f in forest.features if columns[f.column].source >= 0})
    number = {source: index for index, source in enumerate(sources)}
    images = _with_one_vocabulary([columns[f.column] for f in forest.features], where)
    features = []
    for source in sources:
        readers = [(f, c) for f, c in zip(forest.features, images, strict=True) if c.source == source]
        feature = _raw_feature(source, readers, names, where)
        # Steps that refuse NaN or text also refuse it in columns not read by any tree.
        own = [column for column in columns if column.source == source]
        unknown = [column.encoded(None).unknown for column in own]
        features.append(
            replace(
                feature,
                missing=feature.missing and all(column.missing is not None for column in own),
                unknown=None if feature.labels else largest_unknown(unknown),
            )
        )
    conditions: list[Condition] = []
    for index, image in enumerate(images):
        conditions += _rewritten(forest, index, image, where)
    moved = np.array([*(number.get(image.source, 0) for image in images), LEAF], dtype=np.int32)
    if not features and forest.features:  # The forest reads constants only, so any column serves.
        features = [Feature("x0", FLOAT64, 0, raw=FLOAT64, named=False)]
    threshold = np.array([c.test.threshold if isinstance(c.test, Below) else 0.0 for c in conditions])
    sets = {number: members_of(c.test) for number, c in enumerate(conditions) if not isinstance(c.test, Below)}
    goes_left = [c.missing_left and features[moved[c.feature]].missing for c in conditions]
    trees = tuple(
        changed_tree(
            tree,
            feature=moved[tree.feature],
            **tree_arrays(node_conditions, threshold, sets),
            missing_left=np.array([*goes_left, False])[node_conditions],
        )
        for tree, node_conditions in zip(forest.trees, forest.conditions.node_conditions, strict=True)
    )
    return changed(forest, features=tuple(features), columns=width, trees=trees)


def _with_hashed(
    forest: Forest, columns: Sequence[StepColumn], width: int, names: Sequence[str] | None, where: str
) -> tuple[Forest, list[StepColumn], int, list[str] | None]:
    """Returns the forest with hashed columns of raw rows, the columns with its combinations, their number and names."""
    moved = {c: c - forest.own_columns + width for c in range(forest.own_columns, forest.columns)}
    moved |= {column: step.source for column, step in enumerate(columns)}
    hashed = []
    for own in forest.hashed:
        members = tuple(_moved_member(member, columns[member.column], names, where) for member in own.members)
        hashed.append(replace(own, column=moved[own.column], members=members))
    added = range(width, width + forest.columns - forest.own_columns)
    total = width + len(added)
    titles = {column.column: column.title for column in hashed}
    all_names = None if names is None else [*names, *(titles[column] for column in added)]
    return replace(forest, hashed=tuple(hashed)), [*columns, *map(StepColumn, added)], total, all_names


def _moved_member(member: HashMember, image: StepColumn, names: Sequence[str] | None, where: str) -> HashMember:
    name = "" if names is None else str(names[image.source])
    kept = image.function is identity and not (image.points or image.fills) and image.texts is None
    if image.source >= 0 and kept and image.missing is not None and image.missing != image.missing:
        return replace(member, column=image.source, name=name)
    feature = Feature(name, FLOAT64, 0, missing=True, raw=FLOAT64)
    condition = Condition(0, Below(member.value), not member.missing)
    if image.source >= 0 and member.kind == "from" and image.texts is None and image.missing is not None:
        (test,) = _on_raw(feature, image, [condition], where)
        if isinstance(test.test, Below):
            value, missing = float(test.test.threshold), not test.missing_left
            return replace(member, column=image.source, name=name, value=value, missing=missing)
    raise ModelError(
        f"a step changes column {name or member.name!r}, whose categories the model hashes",
        where=where,
        do="pass its categories through, by remainder='passthrough'",
    )


def _with_one_vocabulary(images: list[StepColumn], where: str) -> list[StepColumn]:
    """Returns the columns, changed so that all columns of one source know the same texts."""
    if any(image.fills for image in images):
        raise ModelError("text is imputed but not encoded", where=where, do="encode it after the imputer")
    vocabularies: dict[int, dict[str, None]] = {}
    for image in images:
        if image.texts is not None:
            vocabularies.setdefault(image.source, {}).update(dict.fromkeys(image.texts))
    result = []
    for image in images:
        if (texts := image.texts) is not None:
            other = float(image.function(np.zeros(1))[0])
            known = vocabularies[image.source]  # empty if the column holds numbers, whose missing values are indicated
            image = replace(image, texts={name: texts.get(name, other) for name in known} if known else None)
        result.append(image)
    return result


def _raw_feature(
    source: int, readers: list[tuple[Feature, StepColumn]], names: Sequence[str] | None, where: str
) -> Feature:
    missing = all(c.missing is not None and (c.missing == c.missing or f.missing) for f, c in readers)
    name = f"x{source}" if names is None else str(names[source])
    texts = {tuple(c.texts) if c.texts is not None else None for _, c in readers}
    if len(texts) > 1:
        raise ModelError(
            f"column {source} is read as text and as numbers",
            where=where,
            do="encode the column in one way for all trees",
        )
    labels = texts.pop()
    if labels is not None:
        return Feature(name, Category(len(labels)), source, missing, FLOAT64, labels, names is not None)
    categories = {
        f.number for f, c in readers if isinstance(f.number, Category) and c.function is identity and not c.points
    }
    if categories:
        if len(categories) > 1 or any(not isinstance(f.number, Category) for f, _ in readers):
            raise ModelError(
                f"column {source} is read as a category and as a number",
                where=where,
                do="encode the column in one way for all trees",
            )
        return replace(readers[0][0], name=name, column=source, missing=missing, named=names is not None)
    return Feature(name, FLOAT64, source, missing, FLOAT64, named=names is not None)


def _rewritten(forest: Forest, index: int, image: StepColumn, where: str) -> list[Condition]:
    feature = forest.features[index]
    location = f"{where}, feature {feature.name!r}"
    try:
        return list(_on_raw(feature, image, [forest.conditions[c] for c in forest.conditions.of(index)], location))
    except ModelError as error:
        raise ModelError(error.what, where=error.where or location, do=error.do) from None


def _goes_left(feature: Feature, condition: Condition, images: NDArray[np.float64]) -> NDArray[np.bool_]:
    rounded = round_to(images, feature.raw)
    absent = np.isnan(rounded)
    if absent.any() and not feature.missing:
        raise ModelError(
            "a step makes missing values that the model refuses", where=HERE, do="impute them after that step"
        )
    if isinstance(feature.number, Category):
        rounded = to_words(rounded, feature.number, False).astype(np.float64)
    return condition.sends_left(rounded, absent)


def _on_raw(feature: Feature, image: StepColumn, conditions: Sequence[Condition], where: str) -> Iterator[Condition]:
    if image.texts is not None:
        code_images = np.array([*image.texts.values(), *image.function(np.zeros(1))])
        for condition in conditions:
            codes = OneOf(tuple(np.flatnonzero(_goes_left(feature, condition, code_images)).tolist()))
            yield replace(condition, test=codes, missing_left=_missing_left(feature, image, condition))
    elif isinstance(feature.number, Category) and image.function is identity and not image.points:
        for condition in conditions:
            yield replace(condition, missing_left=_missing_left(feature, image, condition))
    elif constant(image):
        everywhere = image.function(np.zeros(1))
        for condition in conditions:
            holds = bool(_goes_left(feature, condition, everywhere)[0])
            yield _with_points(feature, image, condition, [-np.inf] if holds else [])
    elif isinstance(feature.number, Category):
        raise ModelError(
            "a category is made by a step that is not an encoder",
            where=where,
            do="encode the categories by OrdinalEncoder or OneHotEncoder, or train without that step",
        )
    else:
        cuts_of = [condition.test.cuts for condition in conditions if not isinstance(condition.test, OneOf)]
        flat = np.array([cut for cuts in cuts_of for cut in cuts if cut != -np.inf], dtype=np.float64)
        preimages = iter(_preimages(feature, image.function, flat, where))
        for condition, cuts in zip(conditions, cuts_of, strict=True):
            moved = [raw for cut in cuts for raw in ([cut] if cut == -np.inf else next(preimages))]
            yield _with_points(feature, image, condition, moved)


def _missing_left(feature: Feature, image: StepColumn, condition: Condition) -> bool:
    if image.missing is None or (image.missing != image.missing and not feature.missing):
        return False
    return bool(_goes_left(feature, condition, np.array([image.missing]))[0])


def _with_points(feature: Feature, image: StepColumn, condition: Condition, cuts: Sequence[Member]) -> Condition:
    """Returns the condition on the raw column: it holds as `cuts` say, except at raw values that the column maps
    separately."""
    moved = toggled(cuts)
    corrections: list[Member] = []
    for value, new in image.points.items():
        expected = bool(_goes_left(feature, condition, np.array([new]))[0])
        if bool(within(np.array([value]), moved)[0]) != expected:
            corrections += [value, float(np.nextafter(value, np.inf))]
    test = shortest_test((*moved, *corrections))
    return replace(condition, test=test, missing_left=_missing_left(feature, image, condition))


def _preimages(feature: Feature, function: Function, cuts: NDArray[np.float64], where: str) -> list[list[float]]:
    """Returns for each cut an ascending list of the raw values at which `function(x) >= cut` changes."""
    if not len(cuts):
        return []

    def reaches(keys: NDArray[np.int64], at: NDArray[np.float64]) -> NDArray[np.bool_]:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return round_to(function(key_value(np.clip(keys, lowest, highest), 64)), feature.raw) >= at

    def flips(high: NDArray[np.int64], cuts: NDArray[np.float64], window: int) -> list[list[float]]:
        """Returns for each cut a list of the floats near the order key `high` at which `reaches` changes. The window
        grows if changes lie near its ends."""
        if window > MOST_WINDOW:
            raise ModelError(
                "the steps before the model are not monotone in the column",
                where=where,
                do="use steps that rise or fall with the column, or train on the transformed columns",
            )
        share = max(1, AT_ONCE // window)
        if len(cuts) > share:
            starts = range(0, len(cuts), share)
            parts = [(high[start : start + share], cuts[start : start + share]) for start in starts]
            return [row for part in parts for row in flips(*part, window)]
        steps = np.arange(-window, window)
        keys = high[:, np.newaxis] + steps
        inside = (keys >= lowest) & (keys <= highest)
        reached = reaches(keys.ravel(), np.repeat(cuts, len(steps))).reshape(keys.shape)
        reached = np.where(inside, reached, steps >= 0)
        odd = reached != (steps >= 0)
        wider = odd[:, : window // 2].any(axis=1) | odd[:, -window // 2 :].any(axis=1)
        changes = np.diff(reached, axis=1, prepend=False)
        floats = [key_value(keys[row][changes[row]], 64).tolist() for row in range(len(cuts))]
        if wider.any():
            again = flips(high[wider], cuts[wider], window * 4)
            for row, flipped in zip(np.flatnonzero(wider).tolist(), again, strict=True):
                floats[row] = flipped
        return floats

    lowest, highest = order_key(np.array([-np.finfo(np.float64).max, np.finfo(np.float64).max]), 64).tolist()
    ends = np.full(len(cuts), lowest - 1), np.full(len(cuts), highest + 1)
    return flips(least_keys(lambda keys: reaches(keys, cuts), *ends), cuts, WINDOW)
