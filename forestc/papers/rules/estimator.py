"""Learns Boolean rules as a scikit-learn classifier (Dash, Gunluk and Wei, "Boolean Decision Rules via Column
Generation", NeurIPS 2018)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.covers.boolean_rules import Form, RuleLimits, RuleSets, learn_rule_sets
from forestc.errors import MissingExtraError, ModelError
from forestc.forest.ir import Forest
from forestc.forest.numbers import FLOAT64
from forestc.frontends.shared.exact import labels_of
from forestc.frontends.sklearn.trees import finished
from forestc.papers.rules.boolean_rules_table import categories_of, condition_bits, conditions_of, table_columns
from forestc.papers.rules.rule_conditions import ClassRule, as_literal, rules_picture
from forestc.papers.search_estimator import Callback, SearchEstimator, relative_gap
from forestc.passes.extract_rules.rule_forest import rule_scores, rule_trees, rules_of

try:
    from sklearn.base import ClassifierMixin
    from sklearn.utils import compute_sample_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("scikit-learn", "papers") from None

CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": "allow-nan"}
ROUNDS = 30  # rounds of column generation for each rule if neither rounds nor time are limited


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
    max_iter, time_limit : int and float, optional
        Most rounds of column generation for each rule, and seconds for all rules. Default: 30 rounds without a time
        limit; then two fits are equal, and each proof ends after 3e8 steps (some seconds).
    warm_start : bool, default=False
        Whether `fit` begins with the clauses that the previous `fit` found, if the conditions are the same.
    callback : callable, optional
        Called with (incumbent, bound, gap) of the rule at hand during the search.
    verbose : bool or int, optional
        Whether to print the progress. None: a line a second, after the first, to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the search.

    Attributes
    ----------
    rules_ : list of ClassRule
        The rules as objects, in the order in which they are tried; `str` gives text.
    default_ : label
        Label of rows without a rule that holds.
    loss_, bound_, gap_ : float
        Hamming loss on the training rows, summed over all rules; a lower bound on the loss of any rules of this
        complexity over these conditions; the relative gap between the two.
    complexity_ : int
        Number of clauses plus conditions of all rules.
    interrupted_, n_iter_ : bool and int
        Whether Ctrl-C ended the search, and the most rounds of column generation of any rule.

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
        self, *, form: Form = "dnf", complexity: int = 10, quantiles: int = 10, longest: int | None = None,
        class_weight: Any = None, max_iter: int | None = None, time_limit: float | None = None,
        warm_start: bool = False, callback: Callback | None = None, verbose: bool | int | None = None,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.form, self.complexity, self.quantiles, self.longest = form, complexity, quantiles, longest
        self.class_weight, self.max_iter, self.time_limit = class_weight, max_iter, time_limit
        self.warm_start, self.callback, self.verbose, self.random_state = warm_start, callback, verbose, random_state

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
        X, y = validate_data(self, X, y, **CHECKS)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X) * compute_sample_weight(self.class_weight, y)
        some = np.flatnonzero(weight > 0)
        self.classes_, label = np.unique(y[some], return_inverse=True)
        columns, weight = table_columns(X[some]), weight[some]
        names = getattr(self, "feature_names_in_", [f"x{index}" for index in range(X.shape[1])])
        conditions = conditions_of(columns, names, weight, self.quantiles)
        before = self._sets.rules if self.warm_start and getattr(self, "_conditions", None) == conditions else ()
        self._conditions, self._categories = conditions, [categories_of(column) for column in columns]
        self._sets: RuleSets = learn_rule_sets(
            condition_bits(conditions, columns), label, limits, progress=self._progress(), weight=weight,
            groups=np.array([condition.column for condition in conditions], dtype=np.int64),
            start=[rule.candidates for rule in before] if len(before) == len(self.classes_) else [],
        )  # fmt: skip
        rules, named = self._sets.rules, conditions.__getitem__
        clauses = [tuple(tuple(map(named, clause)) for clause in rule.clauses) for rule in rules]
        self.rules_ = [ClassRule(self.classes_[index], self.form, clauses[index]) for index in self._sets.tried]
        self.default_ = self.classes_[self._sets.default]
        self.loss_, self.bound_ = sum(rule.loss for rule in rules), sum(rule.bound for rule in rules)
        self.gap_ = relative_gap(self.loss_, self.bound_)
        self.complexity_ = sum(1 + len(clause) for rule in self.rules_ for clause in rule.clauses)
        self.interrupted_ = any(rule.interrupted for rule in rules)
        self.n_iter_ = max([1, *(rule.rounds for rule in rules)])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts labels by the rules."""
        check_is_fitted(self)
        columns = table_columns(validate_data(self, X, reset=False, **CHECKS), self._categories)
        bits = np.zeros((len(columns[0]), len(self._conditions)), dtype=bool)
        used = sorted({literal for rule in self._sets.rules for clause in rule.clauses for literal in clause})
        bits[:, used] = condition_bits([self._conditions[literal] for literal in used], columns)
        return np.asarray(self.classes_[self._sets.predict(bits)])

    def export_text(self) -> str:
        """Returns the rules as lines such as `IF width <= 0.8 THEN setosa`; the first one that holds decides."""
        check_is_fitted(self)
        return "\n".join([*map(str, self.rules_), f"ELSE {self.default_}"]) + "\n"

    def export_graphviz(self) -> str:
        """Returns a picture of the rules in Graphviz's language: conditions lead to clauses, clauses to labels."""
        check_is_fitted(self)
        return rules_picture(self.rules_)

    def as_forest(self) -> Forest:
        """Returns the rules as a Forest with a chain for each clause; `forestc.compile` takes the estimator itself."""
        check_is_fitted(self)
        if len(self.classes_) < 2:
            raise ModelError("the rules decide on one class", where=type(self).__name__, do="train on rows of two")
        rules, count = rules_of(self._sets, self.form), len(self.classes_)
        literals = [as_literal(condition, self._categories[condition.column]) for condition in self._conditions]
        texts = {column: values for column, values in enumerate(self._categories) if values}
        return finished(
            self, type(self).__name__, rule_trees(rules, literals, count, quantized=False), number=FLOAT64,
            categories=texts, classes=labels_of(self.classes_), **rule_scores(rules, count),
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.input_tags.string = True
        return tags
