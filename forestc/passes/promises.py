"""Defines the promises of passes, with a check for each promise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError, opt
from forestc.forest.evaluate import Evaluation, score_range
from forestc.forest.ir import Forest
from forestc.passes.combinations import evaluate_leaves, leaf_combinations, most_combinations
from forestc.passes.margins import bound_text, margins
from forestc.passes.quick_evaluation import evaluate_rows
from forestc.passes.scorer import ERRORS, Loss
from forestc.rows.accuracy import LargestError
from forestc.rows.ranges import Ranges, every_cell

Guarantee: TypeAlias = Literal["exact", "exact-on-data", "approximate"]
A_BUG = "report this bug"
CHANGE = 0.01  # share of the range of scores that change=auto allows a regression
NAMED_ROWS = 10  # rows that a note or a report lists at most


class Promise:
    """The base class of promises. words_too: True if a promise also covers the change of inputs to integers."""

    guarantee: ClassVar[Guarantee]
    words_too: ClassVar[bool] = False

    @property
    def most_changed(self) -> float:
        """The number of decisions of the given rows that may change; infinite if there is no bound."""
        return 0 if self.guarantee == "exact-on-data" else math.inf

    def text(self) -> str:
        """Returns the promise in a few words, for tables."""
        return self.guarantee

    def meaning(self) -> str:
        """Returns the promise as a sentence, for reports."""
        raise NotImplementedError

    def check(self, name: str, before: Forest, after: Forest) -> PromiseCheck[Any]:
        return CHECKS[type(self)](name, before, after, self)


P = TypeVar("P", bound=Promise)


class PromiseCheck(Generic[P]):
    """A check of one promise of a pass. Its methods may raise CheckError."""

    every_input: ClassVar[bool] = False  # True to check also inputs beside thresholds
    in_ranges: Ranges | None = None  # ranges in which rows for the check are generated

    def __init__(self, name: str, before: Forest, after: Forest, promise: P) -> None:
        self.name, self.before, self.after, self.promise = name, before, after, promise
        self.where = f"pass {name}"

    def broken(self, what: str) -> CheckError:
        return CheckError(what, where=self.where, do=A_BUG)

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        """Takes a batch's evaluations: by the forest before the pass (`old`) and after it (`new`). Batches come in
        order."""

    def on_generated(self, old: Evaluation, new: Evaluation) -> None:
        self.on_rows(old, new)

    def on_inputs(self, old: Evaluation, new: Evaluation) -> None:
        """Checks inputs beside thresholds, evaluated before the pass (`old`) and after it (`new`): here none."""

    def on_held_out(self, loss: Loss) -> None:
        """Takes the accuracy that the forest after the pass loses against the model."""

    def verdict(self) -> dict[str, Any]:
        """Returns figures for the report; called last. Raises CheckError if the promise is broken."""
        return {}


def promise_text(promises: tuple[Promise, ...]) -> str:
    return ", ".join(promise.text() for promise in promises)


class Change:
    """Measures the share of changed decisions; for a regression the largest error, divided by the range of scores."""

    def __init__(self, before: Forest, after: Forest) -> None:
        self.before, self.after = before, after
        self.rows = self.changed = 0
        self.error, self.low, self.high = 0.0, math.inf, -math.inf

    def add(self, old: Evaluation, new: Evaluation) -> None:
        self.rows += len(old.index)
        self.changed += int(_different(old, new).sum())
        if not self.before.decides and len(old.index):
            scores = old.scores * (self.before.scale or 1.0)
            error = np.abs(new.scores * (self.after.scale or 1.0) - scores)
            self.error = max(self.error, float(error.max(initial=0.0)))
            self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))

    @property
    def share(self) -> float:
        if not self.rows:
            return 0.0
        return self.changed / self.rows if self.before.decides else self.error / score_range(self.low, self.high)

    @property
    def figures(self) -> dict[str, Any]:
        return {"decisions_changed": self.changed} if self.before.decides else {"largest_error": self.share}


def most_change(change: float | str, forest: Forest) -> float:
    """Returns the option `change` as a number; `auto` means 0 for decisions and 0.01 for a regression."""
    return (0.0 if forest.decides else CHANGE) if change == "auto" else float(change)


class _Changes(PromiseCheck[P]):
    """Checks that no decision of the rows changes; subclasses may allow some changes."""

    def __init__(self, name: str, before: Forest, after: Forest, promise: P) -> None:
        super().__init__(name, before, after, promise)
        self.change = Change(before, after)

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        self.change.add(old, new)

    def verdict(self) -> dict[str, Any]:
        if self.change.changed:
            raise self.broken(f"promised to keep all decisions and changed {self.change.changed} of {self.change.rows}")
        return {}


class _ChangedTies:
    """Collects the changed decisions: their number, the first rows and the largest margin."""

    def __init__(self, before: Forest) -> None:
        self.before = before
        self.rows = self.changed = 0
        self.first: list[int] = []
        self.margin = 0.0

    def add(self, old: Evaluation, new: Evaluation) -> None:
        changed = np.flatnonzero(_different(old, new))
        self.first += (self.rows + changed[: NAMED_ROWS - len(self.first)]).tolist()
        self.rows += len(old.index)
        self.changed += len(changed)
        if len(changed) and self.before.single:
            margin = margins(self.before, old.scores[changed], old.values[changed]).max()
            self.margin = max(self.margin, float(margin))

    def text(self) -> str:
        """Returns a phrase: how many decisions changed, and the numbers of the first changed rows."""
        if not self.changed:
            return f"0 of {self.rows} given rows"
        rows = ", ".join(map(str, self.first)) + ", ..." * (self.changed > len(self.first))
        return f"{self.changed} of {self.rows} given rows ({'row' if self.changed == 1 else 'rows'} {rows}, from 0)"


@dataclass(frozen=True)
class Exact(Promise):
    """Promises the same scores and decisions for every input."""

    guarantee: ClassVar[Guarantee] = "exact"

    @property
    def most_changed(self) -> float:
        return 0

    def meaning(self) -> str:
        return "same scores and decisions for every input"


class _ExactCheck(PromiseCheck[Exact]):
    every_input = True

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        same = (old.scores == new.scores).all(axis=1) & ~_different(old, new)
        if not same.all():
            row = int(np.flatnonzero(~same)[0])
            raise self.broken(
                f"promised to keep all scores and changed one from {old.scores[row].tolist()} to "
                f"{new.scores[row].tolist()}"
            )

    on_inputs = on_rows


@dataclass(frozen=True, eq=False)
class KeepsPaths(Promise):
    """Promises that no path of the given rows changes, and so no decision."""

    guarantee: ClassVar[Guarantee] = "exact-on-data"

    def text(self) -> str:
        return "exact-on-data (paths)"

    def meaning(self) -> str:
        return "no path of the given rows changes, so no decision of them does"


class _LeavesCheck(_Changes[P]):
    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        differs = old.leaves != new.leaves
        first = self.change.rows
        if differs.any():
            row, tree = (int(indices[0]) for indices in np.nonzero(differs))
            raise self.broken(
                f"promised to keep all paths and changed {int(differs.sum())}, of row {first + row} and tree {tree} "
                f"from leaf {old.leaves[row, tree]} to {new.leaves[row, tree]}"
            )
        super().on_rows(old, new)


@dataclass(frozen=True)
class KeepsDecisions(Promise):
    """Promises that no decision of the given rows changes."""

    guarantee: ClassVar[Guarantee] = "exact-on-data"

    def meaning(self) -> str:
        return "no decision of the given rows changes"


@dataclass(frozen=True)
class KeepsAllButTies(Promise):
    """Promises that at most `changed` decisions of the given rows change, with margins up to `margin`."""

    changed: int  # number of decisions that may change
    margin: float  # largest margin of a decision that may change
    guarantee: ClassVar[Guarantee] = "approximate"

    @property
    def most_changed(self) -> float:
        return self.changed

    def text(self) -> str:
        return f"decisions of the rows kept but {self.changed}"

    def meaning(self) -> str:
        near = f" near ties, within {bound_text(self.margin)}," if self.margin < math.inf else ""
        return f"no decision of the given rows changes but {self.changed}{near} which are named"


class _AllButTiesCheck(PromiseCheck[KeepsAllButTies]):
    def __init__(self, name: str, before: Forest, after: Forest, promise: KeepsAllButTies) -> None:
        super().__init__(name, before, after, promise)
        self.ties = _ChangedTies(before)

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        self.ties.add(old, new)

    def verdict(self) -> dict[str, Any]:
        if self.ties.changed > self.promise.changed or self.ties.margin > self.promise.margin:
            raise self.broken(
                f"promised to change {self.promise.changed} near ties and changed {self.ties.changed}, of "
                f"a margin up to {self.ties.margin:.3g}"
            )
        near = (
            f"are ties within {bound_text(margin)} that" if (margin := self.promise.margin) < math.inf else "are what"
        )
        note = f"{self.ties.text()} {near} integer leaves decide otherwise than the model"
        rest = "every path of them, and every other decision, is kept"
        return {"tied_rows": self.ties.first, "note": f"{self.name}: {note}; {rest}"}


@dataclass(frozen=True)
class FewChanges(Promise):
    """Promises few changed decisions on the given rows, or small changes of a regression's scores."""

    most: float  # largest share of decisions, or of the range of scores
    words_too: ClassVar[bool] = True
    guarantee: ClassVar[Guarantee] = "approximate"

    def meaning(self) -> str:
        return (
            f"at most {100 * self.most:g} % of the decisions on the given rows change; of a regression no score "
            "changes by more than that share of the range of scores"
        )


class _FewChangesCheck(_Changes[FewChanges]):
    def verdict(self) -> dict[str, Any]:
        most = self.promise.most
        if self.change.share > most:
            what = "of the decisions" if self.before.decides else "of the range of scores, at worst"
            raise CheckError(
                f"changes {self.change.share:.2%} {what} on the given rows; {most:.2%} is allowed",
                where=self.where,
                do="give it more bits, or raise its option change",
            )
        return {}


@dataclass(frozen=True)
class ScoresWithin(Promise):
    """Promises that values after the link change by at most `most` on the given rows."""

    most: float  # largest change of a probability; for other values as a share of their range
    words_too: ClassVar[bool] = True
    guarantee: ClassVar[Guarantee] = "approximate"

    def text(self) -> str:
        return f"scores within {self.most:g} on the rows"

    def meaning(self) -> str:
        return f"values after the link change by at most {self.most:g} on the given rows"


class _ScoresCheck(PromiseCheck[ScoresWithin]):
    def __init__(self, name: str, before: Forest, after: Forest, promise: ScoresWithin) -> None:
        super().__init__(name, before, after, promise)
        self.values = LargestError(before, after)

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        self.values.add(old.values, new.values)

    def verdict(self) -> dict[str, Any]:
        if self.values.share > self.promise.most:
            raise CheckError(
                f"changes scores by {self.values.share:.3g} at worst; {self.promise.most:g} is allowed",
                where=self.where,
                do="raise scores, or give it more leaf_bits, or input=ordered, which keeps all paths",
            )
        return {"scores_error": self.values.share}


@dataclass(frozen=True)
class EveryPath(Promise):
    """Promises that every input in the ranges takes the model's own path through every tree."""

    rounded: bool  # True if leaves were rounded
    bound: float  # bound of a score's error; infinite if not known
    ranges: Ranges = field(default_factory=Ranges)  # ranges of the features; empty for all values
    decisions: bool = False  # True if all decisions stay although leaves were rounded
    guarantee: ClassVar[Guarantee] = "exact"

    def text(self) -> str:
        what = ", ".join(
            ["paths"] * self.rounded
            + ["decisions"] * (self.rounded and self.decisions)
            + ["in the ranges"] * bool(self.ranges.columns)
        )
        text = f"exact ({what})" if what else "exact"
        return f"{text}, scores within {bound_text(self.bound)}" if self.rounded and self.bound < math.inf else text

    def meaning(self) -> str:
        where = ", in the ranges" * bool(self.ranges.columns)
        decided = " and is decided as by the model" * (self.decisions or not self.rounded)
        return f"every input takes the model's own path through every tree{decided}{where}"


class _EveryPathCheck(_LeavesCheck[EveryPath]):
    def __init__(self, name: str, before: Forest, after: Forest, promise: EveryPath) -> None:
        super().__init__(name, before, after, promise)
        self.in_ranges = promise.ranges
        self.given_ties, self.generated_ties = _ChangedTies(before), _ChangedTies(before)

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        super().on_rows(old, new)
        self.given_ties.add(old, new)

    def on_generated(self, old: Evaluation, new: Evaluation) -> None:
        super().on_rows(old, new)
        self.generated_ties.add(old, new)

    def verdict(self) -> dict[str, Any]:
        bound, change = self.promise.bound, self.change
        keeps_decisions = self.promise.decisions or not self.promise.rounded
        if self.promise.decisions:
            self._try_every_input()
        margin = max(self.given_ties.margin, self.generated_ties.margin)
        if change.error > bound or (change.changed and (keeps_decisions or margin > 2 * bound)):
            raise self.broken(
                f"promised scores within {bound:.3g} for every input and changed one by "
                f"{change.error:.3g}, and {change.changed} decisions, of a margin up to {margin:.3g}"
            )
        if keeps_decisions or not self.before.decides:
            return {}
        generated = f"{self.generated_ties.changed} of {self.generated_ties.rows} generated inputs"
        ties = " and ".join(
            [self.given_ties.text()] * (self.given_ties.rows > 0) + [generated] * (self.generated_ties.rows > 0)
        )
        return {"tied_rows": self.given_ties.first, "ties_changed": ties}

    def _try_every_input(self) -> None:
        """Checks all combinations of paths, or else all combinations of leaves, unless these are too many."""
        forests = self.before, self.after
        cells = every_cell(self.before, self.promise.ranges, most_combinations(self.before))
        if cells is not None:
            self.on_generated(*(evaluate_rows(forest, cells.X) for forest in forests))
        elif (nodes := leaf_combinations(self.before)) is not None:
            self.on_generated(*(evaluate_leaves(forest, nodes) for forest in forests))


@dataclass(frozen=True)
class Within(Promise):
    """Promises that the loss of accuracy on held-out rows is within the tolerance; see `Loss.counted`."""

    tolerance: float
    guarantee: ClassVar[Guarantee] = "approximate"

    def meaning(self) -> str:
        return (
            f"the accuracy (or R squared) lost on the held-out rows, plus {ERRORS:g} standard errors, is at most "
            f"{self.tolerance:g}"
        )


class _WithinCheck(PromiseCheck[Within]):
    loss: Loss | None = None

    def on_held_out(self, loss: Loss) -> None:
        self.loss = loss

    def verdict(self) -> dict[str, Any]:
        if self.loss is None:
            raise CheckError(
                "is scored on held-out rows, and there are none",
                where=self.where,
                do=f"give {opt.held_out:FILE}, or 0.2",
            )
        if not self.loss.within(self.promise.tolerance):
            raise CheckError(
                f"{self.loss.lost:.4f} of the model's {self.loss.measure} is lost on "
                f"{self.loss.rows} held-out rows, with a standard error of {self.loss.error:.4f}; the loss and "
                f"{self.loss.errors:g} standard errors are above the tolerance, {self.promise.tolerance:.4f}",
                where=self.where,
                do="allow less change, raise the tolerance, or hold out more rows that the model was not trained on",
            )
        return {}


CHECKS: dict[type[Promise], type[PromiseCheck[Any]]] = {
    Exact: _ExactCheck,
    KeepsPaths: _LeavesCheck,
    KeepsDecisions: _Changes,
    KeepsAllButTies: _AllButTiesCheck,
    FewChanges: _FewChangesCheck,
    ScoresWithin: _ScoresCheck,
    EveryPath: _EveryPathCheck,
    Within: _WithinCheck,
}


def _different(old: Evaluation, new: Evaluation) -> NDArray[np.bool_]:
    rows = len(old.index)
    return np.asarray((old.index.reshape(rows, -1) != new.index.reshape(rows, -1)).any(axis=1))
