"""Implements the pass quantize-inputs: turns features and thresholds into integers. Leaves stay floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from forestc.costs.prices import prices
from forestc.errors import OptionError, opt
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import parse_number_type, word_bits
from forestc.forest.retyping import retyped
from forestc.passes.base import PassResult, already_quantized, required
from forestc.passes.observation import observe
from forestc.passes.options import LOSS, ChangeAllowed, Range, check_options, tried
from forestc.passes.promises import (
    Change,
    EveryPath,
    FewChanges,
    KeepsDecisions,
    KeepsPaths,
    Promise,
    Within,
    most_change,
)
from forestc.passes.quantize_inputs.exact_formats import choose_exact, given_exactly
from forestc.passes.quantize_inputs.narrow_words import narrowed, word_widths
from forestc.passes.quick_evaluation import evaluate_rows
from forestc.passes.scorer import Scorer
from forestc.passes.word_formats import Format, choose, given, parse_formats
from forestc.rows.batches import Rows
from forestc.rows.ranges import Ranges


@dataclass(frozen=True)
class QuantizeInputs:
    """Turns features and thresholds into integers. All generated files compare exactly these.

    Promises: exact-on-data: no path of the given rows changes. With input_bits, formats or cost words may be too narrow
    for that: then no decision of the rows changes, or the promise is approximate, and a change beyond the allowed one
    is refused. With ranges instead of rows, or with exact=true, exact for every input.
    """

    input: Annotated[
        Literal["auto", "fixed", "ordered"],
        "format of features: fixed (fixed point with the fewest bits that change no row's path), ordered (the "
        "float's order-preserving key: always exact, widest), or auto (integers as they are; otherwise fixed; "
        "otherwise ordered). Without rows auto and fixed take the fewest bits that change no input's path.",
    ] = "auto"
    input_bits: Annotated[
        int | Literal["auto"],
        Range(1, 62),
        tried("auto", 2, 3, 4, 5, 6, 8, 10),
        "bits of a feature at most; auto: no limit but that of the format.",
    ] = "auto"
    formats: Annotated[
        Mapping[str, str] | None,
        'types of some features by name, such as {"age": "uint8"}; ap_fixed<W,I> and ap_ufixed<W,I> have W bits, I of '
        "them integer bits (with the sign), the others fraction bits.",
    ] = None
    missing: Annotated[
        Literal["auto", "always", "never"],
        "which features accept missing values: always (all that accept them in the model), never, or auto (a "
        "feature with missing values in the rows; without rows, as ranges and model say). With `compile --missing "
        "always`, auto means always.",
    ] = "auto"
    change: ChangeAllowed = 0.01
    tolerance: Annotated[
        float | None,
        LOSS,
        "accuracy (R squared of a regression) that may be lost against the model on held-out rows, including 1.5 "
        "standard errors, if words are too narrow to keep all paths.",
    ] = None
    exact: Annotated[bool, "true: choose words that are exact for every input, even if rows are given."] = False
    cost: Annotated[
        str | None,
        "makes words narrower than paths allow, to save this cost, as long as the option change (or the tolerance)"
        " permits: lut6, ecp5, flash, instructions-cortex-m0plus and the like, as for prune-splits. For C, words "
        "become one or two bytes.",
    ] = None
    name: ClassVar[str] = "quantize-inputs"

    def __post_init__(self) -> None:
        check_options(self)
        if self.exact and self.needs_scorer:
            raise OptionError(
                "exact=true uses no rows, but tolerance does", where="pass quantize-inputs", do="remove one of them"
            )
        if self.cost is not None:
            prices(self.cost)  # raises OptionError for an unknown cost
            if self.exact or self.input != "auto":
                raise OptionError(
                    "cost rounds thresholds, which exact, and an input other than auto, do not allow",
                    where="pass quantize-inputs",
                    do="remove one of them",
                )

    @property
    def needs_scorer(self) -> bool:
        return self.tolerance is not None

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if source.on_words:
            raise already_quantized(self)
        if (rows is None or isinstance(rows, Ranges)) and self.cost is not None:
            raise OptionError(
                "cost rounds thresholds where rows allow it",
                where="pass quantize-inputs",
                do=f"give {opt.rows}, or remove cost",
            )
        if isinstance(rows, Ranges) and self.needs_scorer:
            raise OptionError(
                "tolerance needs held-out rows, and ranges are given",
                where="pass quantize-inputs",
                do=f"remove tolerance, or give {opt.rows} and {opt.held_out}",
            )
        if rows is None and self.input != "ordered" and not self.exact:
            raise OptionError(
                "needs rows", where="pass quantize-inputs", do=f"give {opt.rows}, or write input=ordered or exact=true"
            )

    def run(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """Returns the result of the pass, with integer features and thresholds. Given `Ranges` instead of rows, it is
        exact for every input in these."""
        self.refuse(forest, rows, scorer)
        missing = [self._may_be_missing(forest, feature, rows) for feature in forest.features]
        if self.exact or isinstance(rows, Ranges):
            ranges = rows if isinstance(rows, Ranges) else Ranges()
            formats = self._exact_formats(forest, missing, ranges)
            promise: Promise = EveryPath(rounded=False, bound=0.0, ranges=ranges)
            return PassResult(_with(forest, formats, missing), (promise,), _report(forest, formats, missing))
        freedoms = observe(forest, rows)
        requested = parse_formats(self.formats, forest)
        missing = [
            absent and (self.missing == "always" or rows is None or freedom.missing)
            for absent, freedom in zip(missing, freedoms, strict=True)
        ]
        formats = [
            given(parse_number_type(requested[feature.name]), absent, freedom)
            if feature.name in requested
            else choose(feature.number, feature.raw, absent, freedom, self.input, self._most_bits)
            for feature, freedom, absent in zip(forest.features, freedoms, missing, strict=True)
        ]
        if self.cost is not None:
            assert rows is not None
            near = self._near_enough(forest, rows, scorer)
            free = [index for index, feature in enumerate(forest.features) if feature.name not in requested]
            formats = narrowed(
                forest, formats, free, word_widths(self.cost),
                lambda index, bits: choose(
                    forest.features[index].number, forest.features[index].raw, missing[index], freedoms[index],
                    "fixed", bits,
                ),
                lambda formats: near(_with(forest, formats, missing)),
            )  # fmt: skip
        result = _with(forest, formats, missing)
        promise, figures = self._promise(forest, result, rows)
        return PassResult(result, (promise,), _report(forest, formats, missing) | figures)

    @property
    def _most_bits(self) -> int | None:
        return None if self.input_bits == "auto" else int(self.input_bits)

    def _may_be_missing(self, forest: Forest, feature: Feature, rows: Rows | None) -> bool:
        """Returns True if options, model and ranges let a feature be missing."""
        always = self.missing == "always" or forest.always_missing
        if isinstance(rows, Ranges) and not always:
            return rows.of(feature).takes_missing(feature) and self.missing != "never"
        return feature.missing and self.missing != "never"

    def _exact_formats(self, forest: Forest, missing: list[bool], ranges: Ranges) -> list[Format]:
        requested = parse_formats(self.formats, forest)
        formats = []
        for index, (feature, absent) in enumerate(zip(forest.features, missing, strict=True)):
            t, values = forest.conditions.thresholds(index), ranges.of(feature)
            if feature.name in requested:
                formats.append(given_exactly(feature, parse_number_type(requested[feature.name]), absent, t, values))
            else:
                formats.append(choose_exact(feature, absent, t, values, self.input, self._most_bits))
        return formats

    def _promise(self, forest: Forest, result: Forest, rows: Rows | None) -> tuple[Promise, dict[str, Any]]:
        """Compares both forests on the rows. Returns the promise that the result keeps, and figures for the report."""
        change, paths = Change(forest, result), 0
        for batch in rows.batches() if rows is not None else ():
            old, new = (evaluate_rows(made, batch.X) for made in (forest, result))
            change.add(old, new)
            paths += int((old.leaves != new.leaves).any(axis=1).sum())
        promise: Promise = FewChanges(most_change(self.change, forest))
        if change.rows and not paths:
            promise = KeepsPaths()
        elif self.tolerance is not None:
            promise = Within(float(self.tolerance))
        elif change.rows and forest.decides and not change.changed:
            promise = KeepsDecisions()
        return promise, {"rows": change.rows, "paths_changed": paths, **change.figures}

    def _near_enough(self, source: Forest, rows: Rows, scorer: Scorer | None) -> Callable[[Forest], bool]:
        """Returns a function that tests whether a forest changes little enough."""
        if self.tolerance is not None:
            limit, held_out_scorer = float(self.tolerance), required(scorer, self)
            return lambda forest: held_out_scorer.of(forest).within(limit)
        batches = [(batch.X, evaluate_rows(source, batch.X)) for batch in rows.batches()]
        most = most_change(self.change, source)

        def near(forest: Forest) -> bool:
            changed = Change(source, forest)
            for X, truth in batches:
                changed.add(truth, evaluate_rows(forest, X))
            return changed.share <= most

        return near


def _with(forest: Forest, formats: list[Format], missing: list[bool]) -> Forest:
    return retyped(forest, [form.number for form in formats], [form.words for form in formats], missing)


def _report(forest: Forest, formats: list[Format], missing: list[bool]) -> dict[str, Any]:
    return {
        "input_bits": sum(word_bits(form.number) for form in formats),
        "inputs": {
            f.name: f"{form.number}, {form.keeps}{', may be missing' * absent}"
            for f, form, absent in zip(forest.features, formats, missing, strict=True)
        },
    }
