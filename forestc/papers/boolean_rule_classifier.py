"""Learns Boolean rules as a scikit-learn classifier.

S. Dash, O. Gunluk and D. Wei, "Boolean Decision Rules via Column Generation", NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits
from forestc.algorithms.covers.boolean_rules import RuleLearning, RuleLimits, RuleSets, learn_rule_sets
from forestc.errors import MissingExtraError, ModelError, OptionError
from forestc.forest.ir import Forest
from forestc.forest.numbers import FLOAT64
from forestc.frontends.shared.exact import labels_of
from forestc.frontends.sklearn.trees import finished
from forestc.papers.rule_conditions import RuleCondition, categories_of, conditions_of, quoted, table_columns
from forestc.papers.search_estimator import SearchEstimator, relative_gap
from forestc.passes.extract_rules.rule_forest import rule_scores, rule_trees, rules_of

try:
    from scipy.sparse import issparse
    from sklearn.base import ClassifierMixin
    from sklearn.utils import compute_sample_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

ROUNDS = 30  # rounds of column generation for each rule if neither rounds nor time are limited


@dataclass(frozen=True)
class ClassRule:
    """The rule of a class.

    clauses: each a tuple of conditions. A DNF holds if all conditions of any clause hold, a CNF if any condition of
    every clause holds.
    """

    label: Any
    form: Literal["dnf", "cnf"]
    clauses: tuple[tuple[RuleCondition, ...], ...]

    def __str__(self) -> str:
        inner, outer = (" AND ", " OR ") if self.form == "dnf" else (" OR ", " AND ")
        parts = [inner.join(map(str, clause)) for clause in self.clauses]
        if self.form == "dnf":
            return "\n".join(f"IF {part} THEN {self.label}" for part in parts)
        text = outer.join(f"({part})" if inner in part and len(parts) > 1 else part for part in parts)
        return f"IF {text or 'true'} THEN {self.label}"


class BooleanRuleClassifier(ClassifierMixin, SearchEstimator):  # type: ignore[misc]
    """Classifier by a small Boolean rule, learnt by column generation.

    The rule minimizes the Hamming loss (equation 1 of the paper) within a limit of complexity (equation 3): the number
    of clauses plus conditions. The master problem is the relaxation of equations 1 to 4; the pricing problem of
    equations 6 to 10 is solved by branch and bound. `bound_` is a proved lower bound on the loss of any such rule.

    Numbers are compared with their quantiles, text with its values, and missing values are tested for (section 4).
    With more than two classes each gets a rule against the rest; the first rule that holds decides.

    Parameters
    ----------
    form : {"dnf", "cnf"}, default="dnf"
        An OR of ANDs, or an AND of ORs.
    complexity : int, default=10
        Largest number of clauses plus conditions of a rule (C in the paper).
    quantiles : int, default=10
        Numbers are cut at these quantiles: 10 for deciles, as in the paper.
    longest : int, optional
        Most conditions of a clause. Default: no limit.
    class_weight : dict or "balanced", optional
        Weights of the classes in the loss. Default: 1 for each.
    max_iter : int, optional
        Most rounds of column generation for each rule. Default: 30 without a time limit, otherwise no limit.
    time_limit : float, optional
        Seconds for all rules. Default: no limit; then two fits are equal.
    warm_start : bool, default=False
        Whether `fit` begins with the clauses that the previous `fit` found, if the conditions are the same.
    callback : callable, optional
        Called with (incumbent, bound, gap) of the rule at hand during the search.
    verbose : int, default=0
        Whether to print the progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the search.

    Attributes
    ----------
    rules_ : list of ClassRule
        The rules as objects, in the order in which they are tried; `str` gives text.
    default_ : label
        Label of rows without a rule that holds.
    loss_ : float
        Hamming loss on the training rows, summed over all rules.
    bound_ : float
        Lower bound on the loss of any rules of this complexity over these conditions.
    gap_ : float
        Relative gap between `loss_` and `bound_`.
    complexity_ : int
        Number of clauses plus conditions of all rules.
    interrupted_ : bool
        True if Ctrl-C ended the search.
    n_iter_ : int
        Rounds of column generation, the most of any rule.
    classes_ : array of shape (classes,)
        Class labels.
    n_features_in_ : int
        Number of columns of the training rows.
    feature_names_in_ : array of shape (columns,)
        Names of the columns, if all are text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from forestc.papers import BooleanRuleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = BooleanRuleClassifier(complexity=2, random_state=0).fit(X, y)
    >>> print(model.export_text())
    IF petal length (cm) <= 1.8 THEN 0
    IF petal width (cm) > 1.55 THEN 2
    ELSE 1
    <BLANKLINE>
    >>> model.loss_ == model.bound_, model.complexity_
    (True, 4)
    """

    def __init__(
        self,
        *,
        form: Literal["dnf", "cnf"] = "dnf",
        complexity: int = 10,
        quantiles: int = 10,
        longest: int | None = None,
        class_weight: Any = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Callable[[float, float, float], None] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.form = form
        self.complexity = complexity
        self.quantiles = quantiles
        self.longest = longest
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learns rules.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, columns)
            Numbers or text; None and NaN are missing.
        y : array-like of shape (rows,)
            Labels.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows in the loss.

        Returns
        -------
        self
            The fitted classifier.

        Raises
        ------
        OptionError
            If a parameter is invalid.
        """
        rounds, seconds = self._limits("max_iter", ROUNDS)
        limits = RuleLimits(self.complexity, self.form, seconds, self._seed(), self.longest, rounds)
        if self.quantiles < 2:
            raise OptionError(f"quantiles {self.quantiles}", where=type(self).__name__, do="use at least 2")
        X, y = self._table(X, y)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X) * compute_sample_weight(self.class_weight, y)
        some = np.flatnonzero(weight > 0)
        self.classes_, label = np.unique(y[some], return_inverse=True)
        columns, weight = table_columns(X[some]), weight[some]
        names = getattr(self, "feature_names_in_", [f"x{index}" for index in range(X.shape[1])])
        conditions = conditions_of(columns, names, weight, self.quantiles)
        before: RuleSets | None = getattr(self, "_sets", None)
        again = self.warm_start and getattr(self, "_conditions", None) == conditions and before is not None
        start = [rule.candidates for rule in before.rules] if again and before and len(self.classes_) > 1 else []
        self._conditions, self._text = conditions, [column.dtype.kind != "f" for column in columns]
        self._categories = [None if column.dtype.kind == "f" else categories_of(column) for column in columns]
        if len(self.classes_) > 1:
            groups = np.array([condition.column for condition in conditions], dtype=np.int64)
            self._sets = learn_rule_sets(
                self._bits(columns, range(len(conditions))), label, limits,
                groups=groups, weight=weight, start=start, progress=self._progress,
            )  # fmt: skip
        else:
            nothing = RuleLearning((), self.form, 0.0, 0, 0.0, True, False, 0, ())
            self._sets = RuleSets(np.zeros(1, dtype=np.int64), (nothing,), (), 0)
        rules, order = self._sets.rules, list(self._sets.order)
        if order[-1:] == [self._sets.default]:  # the label of all rows that are left needs no rule
            order.pop()
        self.rules_ = [self._rule(index) for index in order if rules[index].clauses or self.form == "cnf"]
        self.default_ = self.classes_[self._sets.default]
        self.loss_, self.bound_ = sum(rule.loss for rule in rules), sum(rule.bound for rule in rules)
        self.gap_ = relative_gap(self.loss_, self.bound_)
        self.complexity_ = sum(1 + len(clause) for rule in self.rules_ for clause in rule.clauses)
        self.interrupted_ = any(rule.interrupted for rule in rules)
        self.n_iter_ = max(1, *(rule.rounds for rule in rules), 1)
        return self

    def _rule(self, index: int) -> ClassRule:
        clauses = self._sets.rules[index].clauses
        named = tuple(tuple(self._conditions[literal] for literal in clause) for clause in clauses)
        return ClassRule(self.classes_[index], self.form, named)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts labels by the rules."""
        check_is_fitted(self)
        columns = table_columns(self._table(X), self._text)
        used = {literal for rule in self._sets.rules for clause in rule.clauses for literal in clause}
        return np.asarray(self.classes_[self._sets.predict(self._bits(columns, sorted(used)))])

    def export_text(self) -> str:
        """Returns the rules as lines such as `IF width <= 0.8 THEN setosa`; the first one that holds decides."""
        check_is_fitted(self)
        return "\n".join([*map(str, self.rules_), f"ELSE {self.default_}"]) + "\n"

    def export_graphviz(self) -> str:
        """Returns a picture of the rules in Graphviz's language: conditions lead to clauses, clauses to labels."""
        check_is_fitted(self)
        inner, outer = ("AND", "OR") if self.form == "dnf" else ("OR", "AND")
        lines = ["digraph rules {", "  rankdir=LR; node [shape=box];"]
        for index, rule in enumerate(self.rules_):
            lines.append(f"  rule{index} [label={quoted(f'{outer}: {rule.label}')}, shape=ellipse];")
            for at, clause in enumerate(rule.clauses):
                lines.append(
                    f"  clause{index}_{at} [label={inner}, shape=ellipse];  clause{index}_{at} -> rule{index};"
                )
                lines += [f"  {quoted(condition)} -> clause{index}_{at};" for condition in clause]
        return "\n".join([*lines, "}"]) + "\n"

    def as_forest(self) -> Forest:
        """Returns the rules as a Forest with a chain for each clause; `forestc.compile` takes the estimator itself."""
        check_is_fitted(self)
        if len(self.classes_) < 2:
            raise ModelError("the rules decide on one class", where=type(self).__name__, do="train on rows of two")
        rules = rules_of(self._sets, self.form)
        literals = [condition.as_literal(self._categories[condition.column]) for condition in self._conditions]
        count = len(self.classes_)
        texts = {column: tuple(values) for column, values in enumerate(self._categories) if values}
        return finished(
            self, type(self).__name__, rule_trees(rules, literals, count, quantized=False), number=FLOAT64,
            categories=texts, classes=labels_of(self.classes_), **rule_scores(rules, count),
        )  # fmt: skip

    def _bits(self, columns: list[NDArray[Any]], literals: Sequence[int]) -> Bits:
        """Returns (rows, conditions) whether the given conditions hold; False for all others."""
        bits = np.zeros((len(columns[0]), len(self._conditions)), dtype=bool)
        for literal in literals:
            bits[:, literal] = self._conditions[literal].holds(columns[self._conditions[literal].column])
        return bits

    def _table(self, X: Any, y: Any = "no_validation") -> Any:
        """Returns the rows, and the labels if there are any, as scikit-learn checks them."""
        checked = validate_data(
            self, X, y, reset=not isinstance(y, str), accept_sparse="csr", dtype=None, ensure_all_finite="allow-nan"
        )
        if isinstance(y, str):
            return checked.toarray() if issparse(checked) else checked
        return (checked[0].toarray() if issparse(checked[0]) else checked[0]), checked[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.input_tags.string = True
        return tags
