"""Defines the Forest, a trained tree ensemble.

A row goes left at a node if the value it tests is below the threshold, or in the set. An aggregate combines leaf values
into scores; a link transforms scores; a decision chooses the class.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import said
from forestc.forest.conditions import ConditionTable, table_of
from forestc.forest.hashing import HashedColumn
from forestc.forest.numbers import FLOAT32, Category, Fixed, NumberType
from forestc.forest.summary import described, html_figures
from forestc.forest.tree import LEAF as LEAF  # other modules import these from here
from forestc.forest.tree import Draw as Draw
from forestc.forest.tree import Tree as Tree

Label: TypeAlias = str | int | float | bool
Order: TypeAlias = Literal["sequential", "tree"]
LinkKind: TypeAlias = Literal[
    "identity",
    "order",
    "sigmoid",
    "logistic",
    "tanh",
    "softmax",
    "softmax-zero",
    "exp",
    "exp2",
    "softplus",
    "square",
    "step",
    "sorted",
    "rising",
    "probit",
    "isolation",
    "interpolated",
    "shares",
]


@dataclass(frozen=True)
class Feature:
    """A column that the model reads, with its number type."""

    name: str
    number: NumberType  # number type of the compared values
    column: int  # index in the source's rows, from 0
    missing: bool = False  # True if missing values (NaN) are accepted
    raw: NumberType = FLOAT32  # number type to which the source first rounds values
    labels: tuple[str, ...] = ()  # texts of a category's codes, if the source has texts
    named: bool = True  # False for a generated name, which matches no table column
    unknown: float | None = None  # number, unknown to an encoder of numbers, that stands for texts; None refuses texts

    @property
    def other_text(self) -> float | None:
        """The number that stands for a text that is no label; None if such texts are refused."""
        return -1.0 if self.labels else self.unknown


@dataclass(frozen=True)
class Aggregate:
    """The rule that combines the trees' values into scores.

    A typed sum adds the trees to the bias in this `order`: one by one, or all of them in a balanced tree and then the
    bias. Each addition saturates or wraps as the type `score` does, and so does the product of the sum and `norm`, once
    it is rounded to the type; a quantized forest's scores have no fraction bits.
    """

    kind: Literal["sum", "min", "max", "typed"] = "sum"
    precision: Literal["float32", "float64"] = "float64"  # float type of the source library's additions
    bias_first: bool = True  # True if a sum starts with the bias, False if last
    divisor: float = 1.0  # divides the sum, but not a bias that is added last
    score: Fixed | None = None  # number type of a typed sum
    order: Order = "sequential"  # of the additions of a typed sum
    norm: float = 1.0  # factor of a typed sum, a number of the type `score` above 0


@dataclass(frozen=True)
class Link:
    """The function from scores to values: value = f(slope * score + intercept) - shift.

    | kind         | f(s)                                    |
    |--------------|-----------------------------------------|
    | identity     | s                                       |
    | order        | s; only the order of these values is that of the library's values |
    | sigmoid      | 1 / (1 + exp(-s)), each output by itself |
    | logistic     | the same, computed from -abs(s) and mirrored (onnxruntime) |
    | tanh         | 2 / (1 + exp(-2 * s)) - 1 (TMVA)        |
    | softmax      | exp(s_k) / sum of exp(s)                |
    | softmax-zero | the same with s_k in place of exp(s_k) where abs(s_k) <= 1e-7 (ONNX) |
    | exp, exp2    | exp(s), 2 ** s                          |
    | softplus     | log(1 + exp(s))                         |
    | square       | s * abs(s)                              |
    | step         | 1 where s > 0, else 0                   |
    | sorted       | the scores of the outputs, ascending    |
    | rising       | s_0 for output 0; f_(k-1) + 1e-6 + log(1 + exp(s_k)) for output k (XGBoost's expectiles) |
    | probit       | the standard normal quantile of s as Winitzki approximates it (ONNX) |
    | isolation    | -(2 ** -s)                              |
    | interpolated | linear between `points` (s, f(s)), s ascending; constant outside |
    | shares       | each output's value by its own link in `each`, divided by their sum; equal shares if the sum is 0 |

    shares ignores its own slope, intercept and shift.
    """

    kind: LinkKind = "identity"
    slope: float = 1.0
    shift: float = 0.0
    intercept: float = 0.0
    points: tuple[tuple[float, float], ...] = ()
    each: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The rule that turns scores or values into a class.

    | kind      | class                                                                       |
    |-----------|-----------------------------------------------------------------------------|
    | none      | no class: a regression                                                      |
    | threshold | 1 if the last score (of one or two) >= `threshold`, else 0                  |
    | argmax    | the index of the largest score, or of the largest value after the link (`on`) |

    ties: whether argmax takes the first or the last of equal numbers.
    """

    kind: Literal["none", "threshold", "argmax"]
    threshold: float | int = 0
    on: Literal["scores", "values"] = "scores"
    ties: Literal["first", "last"] = "first"


@dataclass(frozen=True)
class Part:
    """A member model or prediction target. It has the outputs `start` to `stop` - 1, and its own aggregate, link and
    decision."""

    start: int
    stop: int
    aggregate: Aggregate
    link: Link
    decision: Decision
    classes: tuple[Label, ...] = ()
    scale: float = 1.0  # factor from a quantized forest's scores to the source's scores
    curves: tuple[tuple[int, ...], ...] = ()  # one curve for each score, or for all; used in a quantized average

    @property
    def width(self) -> int:
        return self.stop - self.start

    def curve_of(self, index: int) -> tuple[int, ...]:
        """Returns the curve (ascending integers) of the part's score `index`. All scores may share one curve."""
        return self.curves[index if len(self.curves) > 1 else 0]


@dataclass(frozen=True)
class Combine:
    """The rule that combines the results of several parts.

    | kind    | scores                                                                               |
    |---------|--------------------------------------------------------------------------------------|
    | each    | the scores of all parts, side by side: several prediction targets, each with its decision |
    | vote    | for each class the sum of the weights of the parts that decided for it               |
    | average | the weighted mean of the parts' values; a single value v of two classes counts as (1 - v, v) |
    | median  | the weighted median of the parts' single values (AdaBoost.R2)                         |

    After a vote, average or median the forest's own link and decision apply. A quantized median takes the parts'
    scores. A quantized average is the weighted sum of the values below. A curve has `steps` integers; the level of a
    score is the number of these integers that are <= the score:

    | quantized part  | value for class k                                                               |
    |-----------------|---------------------------------------------------------------------------------|
    | without curves  | score k                                                                         |
    | of one score    | with level v: steps - v for class 0, v for class 1                              |
    | softmax, shares | level k's share, (2 * steps * level k + total) // (2 * total); total is the sum |
    |                 | of all levels. If it is 0: steps // classes                                     |
    | any other link  | level k                                                                         |

    A softmax takes the levels of its scores minus the largest score.

    weights: one for each part; empty means equal weights.
    """

    kind: Literal["each", "vote", "average", "median"] = "each"
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """The origin of a forest, and what passes did to it."""

    source: str = ""  # name of the library
    version: str = ""
    model_hash: str = ""  # SHA-256 of the model
    passes: tuple[str, ...] = ()  # passes that ran, in order
    notes: tuple[str, ...] = ()  # messages to users on how the model was read


@dataclass(frozen=True, eq=False)
class Forest:
    """Tree ensemble, as `load` reads it and passes change it.

    Parts are consecutive outputs with an aggregate, a link and a decision of their own. A forest of one part (`single`)
    repeats the fields `aggregate`, `link`, `decision`, `classes` and `scale` of the part: change the forest's own. If
    parts are combined, the last four of these fields hold after the combination; if each part is a target, nothing uses
    them.

    Attributes
    ----------
    name : str
        Name of the model.
    features : tuple of Feature
        The columns that the model may read, each with its number type.
    columns : int
        Number of columns of the source's rows.
    trees : tuple of Tree
        The trees, each with its nodes as arrays.
    n_outputs : int
        Number of scores before parts are combined.
    aggregate : Aggregate
        How the trees' values become scores: their sum, smallest or largest.
    bias : float64 array of shape (n_outputs,)
        Added to the scores. int64 if the forest is quantized.
    link : Link
        Function from scores to values, such as sigmoid.
    decision : Decision
        Rule from scores or values to a class.
    classes : tuple of str, int, float or bool
        The source's labels by index; empty for a regression.
    scale : float, optional
        Factor from a quantized forest's scores to the source's scores; None for a float forest.
    provenance : Provenance
        Library and hash of the model, passes that ran, and notes.
    parts : tuple of Part
        The parts; never empty.
    combine : Combine
        How the results of several parts become one.
    carried : tuple of int
        If the source is very wide: its columns that rows hold in forestc, ascending. Empty if rows hold all columns.
    always_missing : bool
        True if designs accept all missing values that the model accepts, even if no given row misses one.
    categories : tuple of tuple of str
        Names of the categories of each categorical column, if the source does not say which columns these are.
    hashed : tuple of HashedColumn
        The columns of codes that forestc makes of hashes. Combinations of columns follow the source's own columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = forestc.load(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y))
    >>> forest.depth, forest.n_leaves, [feature.column for feature in forest.features]
    (3, 5, [2, 3])
    """

    name: str
    features: tuple[Feature, ...]
    columns: int
    trees: tuple[Tree, ...]
    n_outputs: int
    aggregate: Aggregate
    bias: NDArray[Any]
    link: Link
    decision: Decision
    classes: tuple[Label, ...]
    scale: float | None = None
    provenance: Provenance = field(default_factory=Provenance)
    parts: tuple[Part, ...] = ()
    combine: Combine = field(default_factory=Combine)
    carried: tuple[int, ...] = ()
    always_missing: bool = False
    categories: tuple[tuple[str, ...], ...] = ()
    hashed: tuple[HashedColumn, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "combine", Combine())
        if not self.parts or self.single:
            object.__setattr__(self, "parts", (self.as_part,))

    def __repr__(self) -> str:
        answers = f"{len(self.classes)} classes" if self.classes else f"{self.n_scores} scores"
        kind = "quantized" if self.quantized else "of words and float leaves" if self.on_words else "of floats"
        sizes = f"{len(self.trees):,} trees, {self.n_nodes:,} nodes, {self.columns:,} columns"
        return f"<Forest {self.name!r:.80}, {kind}: {sizes}, {answers}>"

    def _repr_html_(self) -> str:
        return html_figures(f"Forest {self.name}", described(self.figures()))

    @property
    def quantized(self) -> bool:
        """True if all features, thresholds and leaves are integers."""
        return self.scale is not None

    @property
    def on_words(self) -> bool:
        """True if features and thresholds are integers; the leaves may still be floats."""
        return self.quantized or any(tree.threshold.dtype.kind == "i" for tree in self.trees[:1])

    @property
    def width(self) -> int:
        """Number of columns of rows in forestc: of the columns in `carried` if any, otherwise of all columns."""
        return len(self.carried) or self.columns

    @property
    def own_columns(self) -> int:
        """Number of columns of the source's rows, without combinations."""
        return self.columns - sum(column.combined for column in self.hashed)

    @cached_property
    def row_columns(self) -> tuple[int, ...]:
        """The index of each feature's column, in rows of `width` columns."""
        return tuple(self.place(feature.column) for feature in self.features)

    def place(self, column: int) -> int:
        """Finds a column of the source's rows in rows of `width` columns.

        Parameters
        ----------
        column : int
            Index in the source's rows, from 0. The forest must carry it.

        Returns
        -------
        int
            Its index, from 0.
        """
        return bisect_left(self.carried, column) if self.carried else column

    @property
    def as_part(self) -> Part:
        """A part over all scores, with the forest's own aggregate, link, decision, classes and scale."""
        scale = 1.0 if self.scale is None else self.scale
        return Part(0, self.n_scores, self.aggregate, self.link, self.decision, self.classes, scale)

    @property
    def combined(self) -> bool:
        """True if a vote, average or median turns the parts' results into one."""
        return self.combine.kind != "each"

    @property
    def single(self) -> bool:
        """True if the forest has one part and nothing to combine."""
        return len(self.parts) == 1 and not self.combined

    @property
    def adds(self) -> bool:
        """True unless the forest is a single part whose aggregate is not a plain sum."""
        return not self.single or self.aggregate.kind == "sum"

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each part in the combination."""
        return self.combine.weights or (1.0,) * len(self.parts)

    @property
    def integer_weights(self) -> tuple[int, ...]:
        """The weights of a quantized forest's parts, as integers."""
        return tuple(map(int, self.weights))

    @property
    def targets(self) -> tuple[Part, ...]:
        """The prediction targets: each part, or, if the parts are combined, a single part over all scores."""
        return (self.as_part,) if self.combined else self.parts

    @property
    def decides(self) -> bool:
        """True if the forest answers with classes rather than values."""
        return any(part.classes for part in self.targets)

    @property
    def steps(self) -> int:
        """The integer that stands for probability 1 in a quantized average; 0 without curves."""
        return max((len(curve) for part in self.parts for curve in part.curves), default=0)

    @property
    def n_scores(self) -> int:
        """The number of columns of `Evaluation.scores`."""
        return max(1, len(self.classes)) if self.combined else self.n_outputs

    def trees_of(self, part: Part) -> list[int]:
        """Returns the trees that feed a part. A tree may feed several parts.

        Parameters
        ----------
        part : Part
            One of `parts` or `targets`.

        Returns
        -------
        list of int
            Indices of the trees.
        """
        fed = range(part.start, part.stop)
        return [index for index, tree in enumerate(self.trees) if any(output in fed for output in tree.outputs)]

    @property
    def n_nodes(self) -> int:
        """The number of nodes of all trees, leaves included."""
        return sum(tree.size for tree in self.trees)

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return sum(int((tree.left == LEAF).sum()) for tree in self.trees)

    @property
    def depth(self) -> int:
        """The number of comparisons on the longest path of any tree."""
        return max((tree.depth for tree in self.trees), default=0)

    def features_used(self) -> NDArray[np.int64]:
        """Returns the features that some condition reads.

        Returns
        -------
        int64 array of shape (features,)
            Indices of the features, ascending.
        """
        return np.unique(self.conditions.feature).astype(np.int64)

    @cached_property
    def conditions(self) -> ConditionTable:
        """The distinct conditions, with the index of each node's condition among them."""
        categories = [isinstance(feature.number, Category) for feature in self.features]
        return table_of(self.trees, categories, self.on_words)

    def figures(self) -> dict[str, Any]:
        """Returns the figures of `forestc inspect --json`, without the figures of single features.

        Returns
        -------
        dict
            Numbers of trees, nodes, leaves and conditions, classes, kinds of aggregate, link and decision, and notes.
        """

        def kinds(names: Iterable[str]) -> str:  # Joins distinct names in their order of appearance.
            return ", ".join(dict.fromkeys(names))

        used = [self.features[index] for index in self.features_used()]
        classes = [list(part.classes) for part in self.targets]
        return {
            "name": self.name,
            "source": f"{self.provenance.source} {self.provenance.version}".strip(),
            "trees": len(self.trees),
            "nodes": self.n_nodes,
            "leaves": self.n_leaves,
            "depth": self.depth,
            "features": self.columns,
            "features_used": len(used),
            "distinct_conditions": len(self.conditions.comparators),
            "outputs": self.n_outputs,
            "classes": classes if len(classes) > 1 else classes[0],
            "missing": any(feature.missing for feature in used),
            "categorical": any(isinstance(feature.number, Category) for feature in used),
            "parts": 0 if self.single else len(self.parts),
            "combine": "none" if self.single else self.combine.kind,
            "aggregate": kinds(part.aggregate.kind for part in self.parts),
            "link": kinds(part.link.kind for part in self.parts),
            "decision": kinds(part.decision.kind for part in self.parts),
            "quantized": self.quantized,
            "notes": list(map(said, self.provenance.notes)),
        }
