"""Implements the pass extract-rules: replaces a forest by a few AND and OR gates over its conditions.

Source: S. Dash, O. Gunluk and D. Wei, "Boolean Decision Rules via Column Generation", NeurIPS 2018
(`algorithms.covers.boolean_rules`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.covers.boolean_rules import (
    Clause,
    RuleLearning,
    RuleLimits,
    class_weights,
    learn_rule_sets,
    learn_rules,
)
from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult, accepted
from forestc.passes.extract_rules.literals import Literals, literals_for
from forestc.passes.extract_rules.rule_forest import Rules, rule_forest, rules_of
from forestc.passes.ladder import AtGivenSettings, Branch, Rung, returning
from forestc.passes.mixed_rows import rows_to_fit
from forestc.passes.options import Copies, Mix, Range, Seeded, Tolerance, check_options, tried, tried_from
from forestc.passes.promises import Within
from forestc.passes.quick_evaluation import answers_to, evaluate_quickly
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows

COMPLEXITIES = (4, 8, 15, 30, 60)  # tries these limits of complexity one after the other for complexity=auto
ROUNDS = 12  # rounds of column generation for each rule; more take longer
MOST_SAMPLES = 4000  # rows and copies used at most; beyond that, copies go first


@dataclass(frozen=True)
class ExtractRules(Seeded, AtGivenSettings):
    """Replaces the trees by a few rules over their conditions, which become AND and OR gates. Runs after round-leaves.

    Promises: approximate: scored on held-out rows, and refused beyond the tolerance.
    """

    learn: Annotated[
        Literal["labels", "forest"],
        tried("labels", "forest"),
        "rules are learned from the labels of the rows, or from the decisions of the forest on the rows and "
        "their copies.",
    ] = "labels"
    form: Annotated[
        Literal["dnf", "cnf"], tried("dnf", "cnf"), "form of the rules: dnf (an OR of ANDs) or cnf (an AND of ORs)."
    ] = "dnf"
    complexity: Annotated[
        int | Literal["auto"],
        Range(2, 100_000, "a whole number from 2 on"),
        tried_from(2, 60, log=True),
        "largest sum of clauses and conditions of a class's rule; auto: the smallest of 4, 8, 15, 30 and 60 that "
        "is within the tolerance.",
    ] = "auto"
    balanced: Annotated[
        bool,
        tried(False, True),
        "true: when rules are learned, every class has the same total weight, however many rows it has.",
    ] = False
    tolerance: Tolerance = 0.01
    comparators: Annotated[
        int,
        Range(1, 4096),
        "number of the forest's conditions that rules may use: the ones that separate the classes best.",
    ] = 128
    seconds: Annotated[
        float,
        Range(0, 1e6, "a number of seconds above 0", above=True, below=True),
        "time limit; a result depends on the machine's speed only if it reaches the limit.",
    ] = 300
    copies: Copies = 0
    mix: Mix = 0.1
    name: ClassVar[str] = "extract-rules"
    needs_scorer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if not (source.single and source.decides):
            raise OptionError(
                "needs a model that decides on one class", where="pass extract-rules", do="remove it from the passes"
            )
        if not have_rows(rows):
            raise OptionError(
                "learns from rows", where="pass extract-rules", do=f"give {opt.rows}, or remove it from the passes"
            )

    @property
    def open(self) -> bool:
        """Always True: rules are scored on held-out rows even if the user gives their complexity."""
        return True

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> RuleLadder:
        return RuleLadder(forest, accepted(self, forest, rows, scorer), self, scorer)

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        return PassResult(rung.forest, (Within(float(self.tolerance)),), rung.report)


@dataclass(frozen=True)
class RuleLadder:
    """The settings of extract-rules for one forest: growing limits of complexity."""

    forest: Forest
    rows: Rows
    options: ExtractRules
    scorer: Scorer | None  # adds figures to the reports

    def branches(self) -> list[Branch]:
        given = self.options.complexity
        values = COMPLEXITIES if given == "auto" else (int(given),)
        return [Branch(tuple(replace(self.options, complexity=value) for value in values), grows=True)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """Yields each setting with the forest of its rules (a rung). After Ctrl-C, yields the best rules found and
        raises KeyboardInterrupt."""
        learner = _Learner(self.forest, self.rows, self.options)
        for at, step in enumerate(cast(Sequence[ExtractRules], steps)):
            learnt = learner.learn(int(step.complexity), len(steps) - at)
            after = rule_forest(self.forest, learnt.rules, learner.literals.signed)
            report = self._report(learner, learnt, after)
            hurried = learner.late or learnt.interrupted
            yield Rung(step, report["complexity"], returning(after), report, hurried=hurried)
            if learnt.interrupted:
                raise KeyboardInterrupt

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        rung, loss = min(losses, key=lambda scored: scored[1].lost)
        raise OptionError(
            f"of {loss.measure} {loss.lost:.4f} with a standard error of {loss.error:.4f} is lost on "
            f"held-out rows by {rung.report['clauses']} clauses of complexity {rung.report['complexity']}; "
            f"tolerance={self.options.tolerance:g}",
            where="pass extract-rules",
            do="raise the tolerance or the complexity, or allow more comparators",
        )

    def _report(self, learner: _Learner, learnt: _Learnt, after: Forest) -> dict[str, Any]:
        clauses = sum(map(len, learnt.rules.clauses.values()))
        report: dict[str, Any] = {
            "clauses": clauses,
            "rule_conditions": learnt.rules.complexity - clauses,
            "complexity": learnt.rules.complexity,
            "loss": learnt.loss,
            "bound": learnt.bound,
            "optimal": learnt.optimal,
            "learnt_from": self.options.learn,
            "samples": learner.samples,
            "time_limit_reached": learner.late,
            "interrupted": learnt.interrupted,
        }
        if self.scorer is not None:
            report |= {
                "accuracy": self.scorer.of(after).accuracy,
                "fidelity": _fidelity(self.forest, after, self.scorer.held_out),
                "chosen_on_held_out": self.options.complexity == "auto",
            }
            if learnt.interrupted:
                report["note"] = "extract-rules was interrupted; the rules are the best that it had found"
        return report


def _fidelity(before: Forest, after: Forest, held_out: Rows) -> float:
    same = rows = 0
    for batch in held_out.batches():
        equal = answers_to(before, batch.X) == answers_to(after, batch.X)
        same, rows = same + int(equal.sum()), rows + len(equal)
    return same / rows


@dataclass(frozen=True)
class _Learnt:
    rules: Rules
    loss: float
    bound: float
    optimal: bool
    interrupted: bool


class _Learner:
    def __init__(self, forest: Forest, rows: Rows, options: ExtractRules) -> None:
        self.options, self.forest = options, forest
        of_forest = options.learn == "forest"
        drawn = rows_to_fit(
            forest, rows, MOST_SAMPLES, own_labels=of_forest,
            copies=options.copies, mix=options.mix, seed=options.seed,
        )  # fmt: skip
        label = evaluate_quickly(forest, drawn.words).index if of_forest else drawn.label
        self.label: NDArray[np.int64] = np.asarray(label, dtype=np.int64)
        self.samples = len(self.label)
        if len(np.unique(self.label)) < 2:
            what = "the forest decides on one class" if of_forest else "the labels are of one class"
            raise OptionError(f"on all rows {what}", where="pass extract-rules", do="give rows of two classes or more")
        if not len(forest.conditions):
            raise OptionError(
                "the forest has no conditions to make rules of", where="pass extract-rules", do="remove the pass"
            )
        self.literals: Literals = literals_for(forest, drawn.words, self.label, options.comparators)
        self.bits = self.literals.bits(forest, drawn.words)
        self.deadline = time.monotonic() + options.seconds
        self.candidates: tuple[Clause, ...] = ()
        self.late = False

    def learn(self, complexity: int, shares: int) -> _Learnt:
        """Learns rules of limited complexity in an equal share of the time left: 1 / `shares`."""
        begin = time.monotonic()
        limit = max(0.1, (self.deadline - begin) / shares)
        form = self.options.form
        limits = RuleLimits(complexity, form, limit, self.options.seed, rounds=ROUNDS)
        groups, weight = self.literals.groups, class_weights(self.label) if self.options.balanced else None
        if len(self.forest.classes) == 2:
            learning = learn_rules(
                self.bits, self.label == 1, limits, groups=groups, weight=weight, start=self.candidates
            )
            self.candidates = learning.candidates
            result = _of([learning], Rules(form, {1: learning.clauses}, (1,), 0))
        else:
            several = learn_rule_sets(self.bits, self.label, limits, groups=groups, weight=weight)
            result = _of([rule for rule in several.rules if rule.candidates], rules_of(several, form))
        self.late |= time.monotonic() - begin > 0.7 * limit
        return result


def _of(learnt: list[RuleLearning], rules: Rules) -> _Learnt:
    loss, bound = (sum(getattr(rule, name) for rule in learnt) for name in ("loss", "bound"))
    optimal, interrupted = all(rule.optimal for rule in learnt), any(rule.interrupted for rule in learnt)
    return _Learnt(rules, float(loss), float(bound), optimal, interrupted)
