"""Holds the data that all trials of a study share: the model or the trainers, the rows, and the folds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.costs.prices import prices
from forestc.errors import ModelError, OptionError, RowsError, known_names, opt, said
from forestc.exploration.request import FEW_ROWS, FOLDS, HELD_OUT, ExploreRequest
from forestc.exploration.space import compile_space, cost_of, first_value
from forestc.fields.parameters import Choice, Parameter, used
from forestc.forest.ir import Forest
from forestc.frontends import load
from forestc.passes.quick_evaluation import answers_to
from forestc.rows.batches import ArrayRows, Rows
from forestc.rows.columns import accept_missing, adopt_names, name_classes
from forestc.rows.given import refuse_sampled, rows_for_model, rows_from, share_of
from forestc.rows.training_rows import read_table
from forestc.training import TRAINERS
from forestc.training.base import Task, Trainer

TRAIN = "train"  # names the parameter that chooses the trainer if there are several
ALL = -1  # stands for a fold with a model trained on all rows


@dataclass(frozen=True)
class RowSplit:
    """The row numbers of a fold."""

    fit: NDArray[np.int64]  # row numbers for training and passes
    validation: NDArray[np.int64]  # row numbers for scores


@dataclass(frozen=True)
class Material:
    """The data that all trials of a study share."""

    request: ExploreRequest
    folder: Path
    forest: Forest | None  # the given model; None if models are trained
    X: NDArray[np.float64]  # (rows, columns)
    y: NDArray[Any]  # class numbers or values, one per row
    names: tuple[str, ...]
    classes: tuple[str, ...]
    folds: tuple[RowSplit, ...]  # folds on whose validation rows trials are scored
    held_out: Any  # the validation rows, as the option of `compile`
    notes: tuple[str, ...]  # messages for the user

    @property
    def crossed(self) -> bool:
        return len(self.folds) > 1

    @cached_property
    def content(self) -> str:
        """A SHA-256 of rows, labels and validation rows; a study can be resumed only with the same content."""
        parts = [self.X, self.y, *(fold.validation for fold in self.folds)]
        always = b"missing" * (self.request.missing == "always")
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts) + always).hexdigest()

    @property
    def trainers(self) -> tuple[Trainer, ...]:
        return () if callable(self.request.train) else tuple(TRAINERS[name] for name in self.request.train)

    def rows(self, numbers: NDArray[np.int64]) -> ArrayRows:
        return ArrayRows(self.X[numbers], self.y[numbers])

    @property
    def validation_rows(self) -> Any:
        X = self.X[self.folds[0].validation]
        return X if self.forest is None else ArrayRows(X)

    def fit_and_held_out(self, fold: int) -> tuple[ArrayRows, ArrayRows]:
        """Returns the rows for passes and the validation rows of a fold; for `ALL`, those of the first fold."""
        parts = self.folds[max(fold, 0)]
        return self.rows(parts.fit), self.rows(parts.validation)

    def task(self, fold: int) -> Task:
        """Returns the training task of a fold, with the fold's rows for training; for `ALL`, with all rows."""
        X, y = (self.X, self.y) if fold == ALL else (self.X[self.folds[fold].fit], self.y[self.folds[fold].fit])
        return Task(X, y, self.names, len(self.classes), prices(cost_of({}, self.request)), self.request.seed)

    @cached_property
    def space(self) -> tuple[Parameter, ...]:
        """The parameters of the search, each after the parameters on which it depends."""
        task, several = self.task(0), len(self.trainers) > 1
        parameters: list[Parameter] = [Choice(TRAIN, tuple(trainer.name for trainer in self.trainers))] * several
        for trainer in self.trainers:
            prefix = f"{trainer.name}-" if several else ""
            parameters += [_renamed(parameter, prefix, trainer.name) for parameter in trainer.space(task)]
        source = self.forest or self.example
        return (*parameters, *compile_space(self.request, source, *self.fit_and_held_out(0)))

    @cached_property
    def training_starts(self) -> tuple[dict[str, Any], ...]:
        starts: list[dict[str, Any]] = []
        for trainer in self.trainers:
            prefix, named = (f"{trainer.name}-", {TRAIN: trainer.name}) if len(self.trainers) > 1 else ("", {})
            starts += [
                named | {prefix + key: value for key, value in start.items()} for start in trainer.starts(self.task(0))
            ]
        return tuple(starts)

    @cached_property
    def example(self) -> Forest | None:
        """A small model of the first trainer, to find out which passes accept such models. None without a trainer."""
        if not self.trainers:
            return None
        chosen: dict[str, Any] = {}
        for parameter in self.trainers[0].space(self.task(0)):
            if used(parameter, chosen):
                chosen[parameter.name] = first_value(parameter)
        return self.named(load(self.trainers[0].fit(self.task(0), chosen)))

    def training(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the training options of a trial without prefixes, and the trainer's name under `TRAIN`."""
        if not self.trainers:
            return {}
        name = options.get(TRAIN, self.trainers[0].name)
        prefix = f"{name}-" if len(self.trainers) > 1 else ""
        own_names = {prefix + parameter.name: parameter.name for parameter in TRAINERS[name].space(self.task(0))}
        return {TRAIN: name} | {own_names[key]: value for key, value in options.items() if key in own_names}

    def train(self, options: Mapping[str, Any], fold: int) -> Forest:
        """Returns a model trained on a fold's rows with the options of a trial. It may raise errors of the training
        library."""
        training = self.training(options)
        trainer = TRAINERS[training.pop(TRAIN)]
        return self.named(load(trainer.fit(self.task(fold), training)))

    def named(self, forest: Forest) -> Forest:
        """Returns a trained forest with the column and class names of the rows. Raises ModelError if its classes are
        others."""
        names = {feature.name for feature in forest.features if feature.named}
        if len(self.names) == forest.columns and not (len(names) == len(forest.features) and names <= set(self.names)):
            forest = adopt_names(forest, self.names)
        if not self.classes or [str(label) for label in forest.classes] == list(self.classes):
            return forest
        if len(forest.classes) == len(self.classes) and list(forest.classes) == list(range(len(self.classes))):
            return name_classes(forest, self.classes)
        trained, expected = (", ".join(map(str, some[:8])) for some in (forest.classes, self.classes))
        raise ModelError(
            f"the trained model has other classes ({trained}) than the rows ({expected})",
            where="the rows that train",
            do="give more rows of each class",
        )


def _renamed(parameter: Parameter, prefix: str, trainer: str) -> Parameter:
    if not prefix:
        return parameter
    when = {prefix + name: values for name, values in (parameter.when or {}).items()} | {TRAIN: (trainer,)}
    return replace(parameter, name=prefix + parameter.name, when=when)


def material_of(request: ExploreRequest, folder: Path) -> Material:
    """Reads the model and the rows of a study. Raises ForestcError if they can't be read or used."""
    refuse_sampled(request.rows, request.validation, request.test, allowed=request.rows_are_sampled)
    if request.model is not None:
        return _of_model(request, folder)
    if not callable(request.train):
        for name in request.train:
            if name not in TRAINERS:
                raise OptionError(f"unknown trainer {name!r}", where=opt.train, do=known_names(name, TRAINERS))
    table = read_table(request.rows, request.label, regression=request.regression)
    X, y, held_out = table.X, table.y, HELD_OUT
    folds: tuple[RowSplit, ...] = ()
    if request.validation is not None and share_of(request.validation) is None:
        other = read_table(*labeled_rows(request.validation, request.label), regression=request.regression)
        if other.names != table.names or set(other.classes) - set(table.classes):
            raise RowsError(
                "the validation rows have other columns or classes",
                where=str(request.validation),
                do=f"give rows with the columns and classes of {opt.rows}",
            )
        class_index = np.array([table.classes.index(name) for name in other.classes] or [0])
        folds = (_after(len(X), len(X) + len(other.X)),)
        X = np.concatenate([X, other.X])
        y, held_out = np.concatenate([y, class_index[other.y] if table.classes else other.y]), request.validation
    folds = folds or _folds(len(X), crossed=len(X) < FEW_ROWS and not callable(request.train))
    return Material(request, folder, None, X, y, table.names, table.classes, folds, held_out, ())


def _of_model(request: ExploreRequest, folder: Path) -> Material:
    forest = load(request.model, trust_pickle=request.trust_pickle, iterations=request.iterations)
    forest = accept_missing(name_classes(forest, request.classes), request.missing)
    opened, forest, notes = rows_for_model(request.rows, forest, request.label)
    X, y, labeled = _arrays(opened, forest)
    held_out: Any = HELD_OUT
    if request.validation is not None and share_of(request.validation) is None:
        rows, labels = labeled_rows(request.validation, request.label)
        other, labels, _ = _arrays(rows_from(rows, forest, labels), forest)
        folds: tuple[RowSplit, ...] = (_after(len(X), len(X) + len(other)),)
        seen: tuple[str, ...] = ()
        X, y, held_out = np.concatenate([X, other]), np.concatenate([y, labels]), request.validation
    else:
        folds, seen = _folds(len(X), crossed=len(X) < FEW_ROWS), (said(_SEEN),)
    if not labeled:
        seen = (*seen, said(_NO_LABELS))
    if forest.decides and len(np.unique(y)) < 2:
        raise RowsError("all labels are of one class", where="the rows", do="give rows of two or more")
    names = tuple(feature.name for feature in forest.features)
    return Material(
        request, folder, forest, X, y, names, tuple(map(str, forest.classes)), folds, held_out, (*notes, *seen)
    )


_SEEN = (
    "candidates are scored on rows set aside from those given; if the model was trained on these rows too, give others "
    f"({opt.validation:FILE})"
)


_NO_LABELS = f"the rows have no labels ({opt.label}): accuracy is how often a design answers as the model does"


def labeled_rows(rows: object, label: object) -> tuple[Any, Any]:
    return rows if isinstance(rows, tuple) else (rows, label)


def test_rows(test: object, label: object, model: Forest) -> ArrayRows:
    """Reads the test rows. test: a file with the label column `label`, or a pair (rows, labels). Raises OptionError
    without labels."""
    rows, truth = labeled_rows(test, label)
    X, y, labeled = _arrays(rows_from(rows, model, truth), model)
    if not labeled:
        raise OptionError(
            "the test rows have no labels", where=opt.test, do=f"give {opt.label}, or a pair (rows, labels)"
        )
    return ArrayRows(X, y)


def _arrays(rows: Rows, forest: Forest) -> tuple[NDArray[np.float64], NDArray[Any], bool]:
    """Returns rows, labels, and True if labels exist; without labels the model's answers replace them."""
    X, y, labeled = [], [], True
    for batch in rows.batches():
        X.append(batch.X)
        labeled &= batch.truth is not None
        y.append(answers_to(forest, batch.X) if batch.truth is None else batch.truth)
    return np.concatenate(X), np.concatenate(y), labeled


def _folds(rows: int, *, crossed: bool) -> tuple[RowSplit, ...]:
    """Returns all five folds if `crossed`; otherwise the first fold only. Each fold holds out every fifth row."""
    turn = (np.arange(rows) + 1) % FOLDS
    if rows < 2 * FOLDS:
        raise RowsError(f"there are {rows} rows", where="the rows", do=f"give at least {2 * FOLDS}")
    return tuple(
        RowSplit(np.flatnonzero(turn != fold), np.flatnonzero(turn == fold)) for fold in range(FOLDS if crossed else 1)
    )


def _after(fit: int, rows: int) -> RowSplit:
    return RowSplit(np.arange(fit), np.arange(fit, rows))
