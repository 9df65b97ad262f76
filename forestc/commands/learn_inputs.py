"""Implements `model-inputs`: learns an input model from rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.commands.compile import quantize
from forestc.commands.source import open_source
from forestc.fields.options import takes
from forestc.forest.builder import changed
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, Ordered
from forestc.inputs.learn import independent_log_likelihood, learned
from forestc.inputs.model import InputModel
from forestc.inputs.text import printed, text_hash
from forestc.manifest.design import Design
from forestc.options.commands import LearnInputsOptions
from forestc.rows.batches import FitAndHeldOut, Rows, count_rows
from forestc.rows.given import rows_for_model
from forestc.system.writing import write_text, writing

HELD_OUT = 5  # holds out every fifth row to score the learnt model
LEAST_ROWS = 50  # rows; with fewer, no rows are held out
SCORED_SHARE = 0.25  # share of the seconds for learning the model that is scored


@takes(LearnInputsOptions)
def model_inputs(options: LearnInputsOptions) -> tuple[InputModel, dict[str, Any]]:
    """Learns an input model: how rows are distributed over the cells between a model's thresholds.

    From 50 rows on, a second model is learnt from four fifths of the rows, in a quarter of the time, and scored on the
    other rows.

    Returns
    -------
    inputs : InputModel
        The input model.
    figures : dict
        The figures of `forestc model-inputs --json`.

    Raises
    ------
    ModelError
        If the model can't be read exactly, or compares nothing.
    RowsError
        If the rows do not match the model.
    OptionError
        If `least_count` is negative.

    References
    ----------
    Nie, Maua, de Campos and Ji: Advances in Learning Bayesian Networks of Bounded Treewidth. NeurIPS, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> inputs, figures = forestc.model_inputs(model, X, samples=1)
    >>> inputs
    <InputModel: 4 comparators of 2 columns, 150 rows>
    """
    seconds, least_count = options.seconds, options.least_count
    forest, opened, notes = _opened(options)
    count, held_out = count_rows(opened), None
    names = ("treewidth", "samples", "seed", "progress")
    search: dict[str, Any] = {name: getattr(options, name) for name in names}
    if count >= LEAST_ROWS:
        fit, others = FitAndHeldOut.every(opened, HELD_OUT)
        scored = learned(forest, fit, seconds=seconds * SCORED_SHARE, **search)
        fitted, fresh = _some(forest, fit), _some(forest, others)
        held_out = {
            "rows": len(fresh),
            "model": float(scored.log_likelihood(fresh).mean()),
            "independent": independent_log_likelihood(scored, fitted, fresh),
        }
        seconds *= 1 - SCORED_SHARE
    model = learned(forest, opened, seconds=seconds, least_count=least_count, **search)
    network = model.network
    rows_off, bits_off = model.contradictions()
    if options.out is not None:
        with writing(options.out):
            write_text(Path(options.out), printed(model))
    figures = {
        **({} if options.out is None else {"out": str(options.out)}),
        "rows": model.rows_seen,
        "columns": len(model.inputs),
        "comparators": model.comparators,
        "kept": model.kept,
        "variables": len(network.states),
        "treewidth": network.treewidth,
        "score": network.score,
        "least_count": least_count,
        "held_out_log_likelihood": held_out,
        "passed_over": {"rows": rows_off, "variables": bits_off},
        "bytes": len(printed(model).encode()),
        "sha256": text_hash(model),
        "notes": [*notes, *_notes(model)],
    }
    return model, figures


@takes(LearnInputsOptions)
def how_long(options: LearnInputsOptions) -> str:
    if options.samples is not None:
        return f"searching for a network in {options.samples} runs (--samples)"
    return f"searching for a network for {options.seconds:g} s (--time)"


def _opened(options: LearnInputsOptions) -> tuple[Forest, Rows, tuple[str, ...]]:
    rows, label = options.rows, options.label
    source = open_source(options.source, trust_pickle=options.trust_pickle, iterations=options.iterations)
    if isinstance(source, Design):
        opened, _, notes = rows_for_model(rows, source.model, label)
        return _with_features_of(source.model, source.forest), opened, notes
    opened, model, notes = rows_for_model(rows, source, label)
    return _with_features_of(model, quantize(model, level=0)), opened, notes


def _with_features_of(model: Forest, forest: Forest) -> Forest:
    """Returns the quantized forest with the model's features that its passes removed, too: drawn rows need values for
    these, because the model reads them."""
    kept = {feature.column for feature in forest.features}
    removed = (feature for feature in model.features if feature.column not in kept)
    more = [f if isinstance(f.number, Category) else replace(f, number=Ordered(32)) for f in removed]
    return changed(forest, features=(*forest.features, *more)) if more else forest


def _some(forest: Forest, rows: Rows) -> NDArray[np.float64]:
    """Returns the first 20,000 rows, with only the columns that the forest reads."""
    parts, most = [], 20_000
    read = list(forest.row_columns) if forest.carried else slice(None)
    for batch in rows.batches():
        parts.append(batch.X[:most, read])
        most -= len(parts[-1])
        if not most:
            break
    return np.concatenate(parts)


def _notes(model: InputModel) -> list[str]:
    if model.kept == model.comparators:
        return []
    left = model.comparators - model.kept
    return [f"{left:,} of {model.comparators:,} comparators, the least used, lie inside cells with uniform values"]
