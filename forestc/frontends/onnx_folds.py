"""The operators around ONNX's trees: those before become part of the conditions, those after of the answer.

Each is folded only where the forest then says exactly what onnxruntime says; else it is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Aggregate, Decision, Label, Link
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.exact import least_float
from forestc.frontends.onnx_attributes import TENSOR_TYPES, Attributes
from forestc.frontends.onnx_columns import NARROW, Column, Monotone, Replace, Step, bits_of
from forestc.frontends.onnx_trees import OPERATORS, Shown

Array: TypeAlias = NDArray[Any]
ML = "ai.onnx.ml"
MAX_STEPS = 50
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
WIDEN = Monotone(lambda x: x.astype(np.float64), 32)


@dataclass(frozen=True)
class Table:
    """Columns on their way to the trees. width: None where the file does not say. column: the i-th one. depth: how
    many nodes made it; `MAX_STEPS` is for Python's stack."""

    dtype: np.dtype[Any]
    width: int | None
    column: Callable[[int], Column]
    depth: int = 0

    def then(self, step: Callable[[int], Step | None], dtype: Any = None, width: int | None = None) -> Table:
        """The table with a step after each column (None: as it is)."""

        def column(index: int) -> Column:
            added = step(index)
            return self.column(index) if added is None else self.column(index).then(added)

        return Table(self.dtype if dtype is None else np.dtype(dtype), width or self.width, column, self.depth + 1)


@dataclass(frozen=True)
class Scores:
    """What the trees add up to, and what was done to it since: `Ensemble`'s fields of the same names.

    dtype: of the tensor. rounded: whether the operator rounded its sums to float32, which the forest does not. part:
    whether these are only some of the columns.
    """

    dtype: np.dtype[Any]
    outputs: int
    aggregate: Aggregate
    bias: tuple[float, ...]
    link: Link
    shown: Shown
    classifier: bool
    rounded: bool = False
    part: bool = False

    @property
    def columns(self) -> int:
        return self.outputs if self.shown == "all" else 2

    @property
    def open(self) -> bool:
        """Whether these are the forest's own numbers in its own type, so that more can be done to them."""
        return not self.rounded and not self.part and self.dtype == np.dtype(self.aggregate.precision)


@dataclass(frozen=True)
class Answer:
    """The class that was decided for. judged: the scores that an ArgMax compared."""

    classes: tuple[Label, ...]
    decision: Decision
    judged: Scores | None = None


Value: TypeAlias = Array | Table | Scores | Answer


class Node:
    """One node with the values it reads."""

    def __init__(self, node: Any, where: str, values: Mapping[str, Value], opsets: Mapping[str, int]) -> None:
        self.proto = node
        self.operator: str = node.op_type
        self.where = f"{where}, node {node.name[:60]!r} ({node.op_type[:60]})"
        self.opset = opsets.get("" if node.domain == "ai.onnx" else node.domain, 0)
        self.inputs: list[Value | None] = []
        for name in node.input:
            if name and name not in values:
                raise self.fail(f"reads {name[:60]!r}, which nothing before it makes")
            self.inputs.append(values[name] if name else None)

    def fail(self, what: str, do: str = "") -> ModelError:
        return ModelError(what, where=self.where, do=do)

    def attributes(self, *known: str) -> Attributes:
        return Attributes(self.proto, known, self.where)

    def input(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int, what: str) -> Array:
        value = self.input(index)
        if not isinstance(value, np.ndarray):
            raise self.fail(f"its {what} is not a constant")
        return value

    def whole(self, index: int, what: str) -> list[int]:
        """A constant list of whole numbers."""
        value = self.constant(index, what)
        if value.dtype.kind not in "iu":
            raise self.fail(f"its {what} is not of whole numbers")
        return [int(item) for item in value.ravel().tolist()]

    def axis(self, attributes: Attributes, name: str = "axis", default: int = 0) -> None:
        """Refuses any axis but that of the columns."""
        if attributes.integer(name, default) not in (1, -1):
            raise self.fail("works across the rows, not the columns")


def fold(node: Node) -> list[Value]:
    """What a node that is no tree operator makes."""
    ml = node.proto.domain == ML
    known = _AROUND_ML if ml else _AROUND if node.proto.domain in ("", "ai.onnx") else {}
    if node.opset < 1:
        raise node.fail("its domain of operators is not imported")
    if node.operator not in known:
        names = ", ".join(sorted({*_AROUND, *_AROUND_ML, *OPERATORS}))
        operator = f"{node.proto.domain[:40]}.{node.operator[:60]}".lstrip(".")
        raise node.fail(f"operator {operator!r} is not folded into the trees", f"known: {names}")
    subject = next((value for value in node.inputs if value is not None and not isinstance(value, np.ndarray)), None)
    alone = subject is None and node.operator not in ("Identity", "Constant")
    made = None if alone else known[node.operator](node, subject)
    if made is None:
        kind = {Table: "its columns", Scores: "the trees' scores", Answer: "the class"}.get(type(subject), "constants")
        raise node.fail(f"operator {node.operator!r} is not folded into {kind} exactly")
    if isinstance(made, Table) and made.depth > MAX_STEPS:
        raise node.fail(f"the columns are changed more than {MAX_STEPS} times before the trees")
    return [made]


_Fold: TypeAlias = Callable[[Node, Any], Value | None]


def _identity(node: Node, subject: Any) -> Value | None:
    node.attributes()
    return node.input(0)


def _constant(node: Node, subject: Any) -> Value | None:
    names = ("value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings")
    attributes = node.attributes(*names)
    if attributes.has("value"):
        return attributes.tensor("value")
    if attributes.has("value_float"):
        return np.array(attributes.number("value_float", 0), dtype=np.float32)
    if attributes.has("value_int"):
        return np.array(attributes.integer("value_int", 0), dtype=np.int64)
    if attributes.has("value_floats"):
        return attributes.floats("value_floats")
    if attributes.has("value_ints"):
        return attributes.ints("value_ints")
    if attributes.has("value_strings"):
        return np.array(attributes.texts("value_strings"), dtype=object)
    return None


def _cast(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes("to", "saturate", "round_mode")
    to = attributes.integer("to", 0)
    if isinstance(subject, Answer) and to == 8 and isinstance(subject.classes[0], str):
        return subject
    if to not in TENSOR_TYPES:
        raise node.fail(f"casts to ONNX's type {to}, which is not read")
    dtype = np.dtype(TENSOR_TYPES[to][0])
    match subject:
        case Table() if dtype == subject.dtype:
            return subject
        case Table() if dtype == np.float32 and (subject.dtype == np.float64 or subject.dtype.kind in "iu"):
            return subject.then(lambda _: NARROW, dtype)
        case Table() if dtype == np.float64 and subject.dtype.kind in "iu":
            return subject.then(lambda _: None, dtype)
        case Table() if dtype == np.float64 and subject.dtype == np.float32:
            return subject.then(lambda _: WIDEN, dtype)
        case Scores() if dtype in FLOATS and (dtype == np.float64 or subject.dtype == np.float32):
            return replace(subject, dtype=dtype)
        case Answer() if dtype.kind in "iuf" and not isinstance(subject.classes[0], str):
            classes = np.array(subject.classes)
            with np.errstate(all="ignore"):
                cast = classes.astype(dtype)
            return replace(subject, classes=tuple(cast.tolist())) if (cast == classes).all() else None
    return None


def _scaler(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes("offset", "scale")
    if not isinstance(subject, Table):
        return None
    offset, scale = attributes.floats("offset"), attributes.floats("scale")
    if len(offset) != len(scale) or not len(scale):
        raise node.fail(f"has {len(offset)} offsets and {len(scale)} scales")
    if not (np.isfinite(offset).all() and np.isfinite(scale).all() and scale.all()):
        raise node.fail("an offset or scale is zero or not finite", "drop constant columns before training")
    width = _width(node, subject, len(scale), "scales")
    inner: Any = np.float64 if subject.dtype == np.float64 else np.float32

    def function(x: Array, minus: Array, times: Array) -> Array:
        return ((x.astype(inner) - minus) * times).astype(np.float32)

    def step(index: int) -> Step:
        at = index if len(scale) > 1 else 0
        numbers = inner(offset[at]), inner(scale[at])
        return Monotone(function, bits_of(subject.dtype), bool(scale[at] > 0), numbers)

    return subject.then(step, np.float32, width)


def _width(node: Node, table: Table, count: int, what: str) -> int | None:
    """The table's width, given so many constants: one for all columns, or one each."""
    if count == 1:
        return table.width
    if table.width not in (None, count):
        raise node.fail(f"has {count} {what} for {table.width} columns")
    return count


def _imputer(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes(
        "imputed_value_floats", "replaced_value_float", "imputed_value_int64s", "replaced_value_int64"
    )
    if not isinstance(subject, Table):
        return None
    if subject.dtype == np.float32:
        by: Array = attributes.floats("imputed_value_floats")
        value: float = attributes.number("replaced_value_float", 0.0)
    elif subject.dtype == np.int64:
        by = attributes.ints("imputed_value_int64s")
        value = float(attributes.integer("replaced_value_int64", 0))
    else:
        raise node.fail(f"its input is {subject.dtype}, which onnxruntime does not take")
    if not len(by) or np.isnan(by.astype(np.float64)).any():
        raise node.fail("has no imputed values, or NaN among them")
    if subject.dtype == np.int64 and max(abs(value), float(np.abs(by.astype(np.float64)).max())) > 1 << 53:
        raise node.fail("replaces whole numbers beyond 2^53, which rows do not hold")
    if (subject.width is None and len(by) > 1) or (subject.width is not None and 1 < len(by) != subject.width):
        raise node.fail(f"has {len(by)} imputed values for {subject.width} columns")
    bits = bits_of(subject.dtype)
    return subject.then(lambda index: Replace(value, float(by[index if len(by) > 1 else 0]), bits))


def _normalizer(node: Node, subject: Any) -> Value | None:
    raise node.fail("a Normalizer mixes the columns of a row", "train without it, or normalise the rows before")


def _arithmetic(node: Node, subject: Any) -> Value | None:
    """Add, Sub, Mul or Div of columns or scores and a constant."""
    node.attributes()
    if node.opset < 7:
        raise node.fail(f"of opset {node.opset} is not read", "convert the model to opset 7 or later")
    first = isinstance(node.input(0), np.ndarray)
    constant = node.input(0 if first else 1)
    if not isinstance(constant, np.ndarray) or len(node.inputs) != 2 or (first and node.operator == "Div"):
        return None
    if isinstance(subject, Answer) or constant.dtype != subject.dtype or constant.dtype not in FLOATS:
        return None
    if not np.isfinite(constant).all() or (node.operator in ("Mul", "Div") and not constant.all()):
        raise node.fail("its constant is zero or not finite")
    if constant.ndim > 2 or (constant.ndim == 2 and len(constant) != 1):
        raise node.fail(f"its constant has the shape {list(constant.shape)}")
    if isinstance(subject, Table):
        return _table_arithmetic(node, subject, constant.ravel(), first)
    return _score_arithmetic(node.operator, subject, constant.ravel(), first)


def _table_arithmetic(node: Node, table: Table, constant: Array, first: bool) -> Table:
    width = _width(node, table, len(constant), "constants")
    if table.width == 1 != len(constant):
        raise node.fail("makes many columns of one")
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "Add": lambda x, c: x + c,
        "Sub": (lambda x, c: c - x) if first else lambda x, c: x - c,
        "Mul": lambda x, c: x * c,
        "Div": lambda x, c: x / c,
    }
    function = functions[node.operator]
    turned = first if node.operator == "Sub" else False

    def step(index: int) -> Step:
        c = constant[index if len(constant) > 1 else 0]
        falling = bool(c < 0) if node.operator in ("Mul", "Div") else turned
        return Monotone(function, bits_of(table.dtype), not falling, (c,))

    return table.then(step, None, width)


def _score_arithmetic(operator: str, scores: Scores, constant: Array, first: bool) -> Scores | None:
    """Additions become the bias, divisions the divisor, products the link's slope, where nothing came before that
    would have to be rounded in between."""
    numbers = constant.tolist()
    one = len(set(numbers)) == 1 and len(numbers) in (1, scores.columns)
    neutral = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}[operator]
    if one and numbers[0] == neutral and not (operator == "Sub" and first):
        return scores
    if operator == "Mul":
        if one and scores.link == Link() and scores.open:
            shown: Shown = "second" if scores.shown == "complement" else scores.shown
            return replace(scores, link=Link(slope=numbers[0]), shown=shown)
        return None
    if scores.link != Link() or not scores.open or scores.classifier or any(scores.bias):
        return None
    if operator == "Div":
        if one and scores.aggregate.divisor == 1.0:
            return replace(scores, aggregate=replace(scores.aggregate, divisor=numbers[0]))
        return None
    if (operator == "Sub" and first) or len(numbers) not in (1, scores.outputs):
        return None
    added = numbers * (scores.outputs // len(numbers))
    return replace(scores, bias=tuple(-x if operator == "Sub" else x for x in added))


def _clip(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes("min", "max")
    if not isinstance(subject, Table) or subject.dtype not in FLOATS:
        return None
    dtype: Any = subject.dtype.type
    limits = [dtype(np.finfo(dtype).min), dtype(np.finfo(dtype).max)]
    for index, name in enumerate(("min", "max")):
        if attributes.has(name):
            limits[index] = dtype(attributes.number(name, 0))
        elif node.input(index + 1) is not None:
            bound = node.constant(index + 1, name)
            if bound.size != 1 or bound.dtype != subject.dtype:
                raise node.fail(f"its {name} is not one {subject.dtype}")
            limits[index] = bound.ravel()[0]
    low, high = limits
    if not low <= high:
        raise node.fail(f"clips to {low} .. {high}")
    clipped = Monotone(lambda x: np.clip(x, low, high), bits_of(subject.dtype))
    return subject.then(lambda _: clipped)


def _concat(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes("axis")
    node.axis(attributes)
    tables = [value for value in node.inputs if isinstance(value, Table)]
    if len(tables) != len(node.inputs) or not tables:
        return None
    if len({table.dtype for table in tables}) != 1:
        raise node.fail("puts columns of several types side by side")
    widths = [table.width for table in tables]
    if None in widths[:-1]:
        raise node.fail("does not know how many columns it puts side by side", "give every input's shape")
    if sum(width or 0 for width in widths) > MAX_COLUMNS:
        raise node.fail(f"puts more than {MAX_COLUMNS} columns side by side")
    ends = np.cumsum([width or 0 for width in widths]).tolist()

    def column(index: int) -> Column:
        which = min(int(np.searchsorted(ends[:-1], index, side="right")), len(tables) - 1)
        return tables[which].column(index - (ends[which - 1] if which else 0))

    depth = 1 + max(table.depth for table in tables)
    return Table(tables[0].dtype, None if widths[-1] is None else ends[-1], column, depth)


def _chosen(node: Node, subject: Any) -> Value | None:
    """ArrayFeatureExtractor and Gather: some columns, or the labels of classes told by number."""
    if node.operator == "Gather":
        attributes = node.attributes("axis")
        if not isinstance(subject, Answer):
            node.axis(attributes)
    else:
        node.attributes()
    if isinstance(subject, Answer) and isinstance(node.input(0), np.ndarray) and node.input(1) is subject:
        labels = node.constant(0, "data").ravel().tolist()
        if not all(isinstance(k, int) and 0 <= k < len(labels) for k in subject.classes):
            raise node.fail(f"has {len(labels)} labels for {len(subject.classes)} classes")
        return replace(subject, classes=tuple(labels[int(k)] for k in subject.classes))
    if not isinstance(subject, Table | Scores) or node.input(0) is not subject:
        return None
    chosen = node.whole(1, "list of columns")
    width = subject.width if isinstance(subject, Table) else subject.columns
    if not chosen or min(chosen) < 0 or (width is not None and max(chosen) >= width):
        raise node.fail(f"takes columns {chosen[:5]} of {width}")
    if isinstance(subject, Scores):
        return replace(subject, part=True)
    before = subject.column
    return Table(subject.dtype, len(chosen), lambda index: before(chosen[index]), subject.depth + 1)


def _slice(node: Node, subject: Any) -> Value | None:
    """Some of the scores' columns, which converters show one by one."""
    node.attributes()
    if not isinstance(subject, Scores) or node.whole(3, "axes") not in ([1], [-1]):
        return None
    return replace(subject, part=True)


def _reshape(node: Node, subject: Any) -> Value | None:
    """Reshape, Flatten and Squeeze where rows stay rows and columns columns, or a single column loses its dimension."""
    node.attributes("allowzero", "axis", "axes")
    if not isinstance(subject, Table | Scores):
        return subject if isinstance(subject, Answer) else None
    width = subject.width if isinstance(subject, Table) else 1 if subject.part else subject.columns
    if node.operator == "Flatten":
        node.axis(node.attributes("axis"), default=1)
        return subject
    if node.operator == "Squeeze":
        axes = node.attributes("axes").ints("axes").tolist() or (
            node.whole(1, "axes") if node.input(1) is not None else []
        )
        return subject if axes in ([1], [-1]) and width == 1 and isinstance(subject, Scores) else None
    shape = node.whole(1, "shape")
    flat = shape == [-1] and width == 1 and isinstance(subject, Scores)
    return subject if flat or (width is not None and shape in ([-1, width], [0, width])) or shape == [0, -1] else None


def _zip_map(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes("classlabels_int64s", "classlabels_strings")
    if not isinstance(subject, Scores) or subject.part:
        return None
    count = max(len(attributes.ints("classlabels_int64s")), len(attributes.strings("classlabels_strings")))
    if count != subject.columns:
        raise node.fail(f"names {count} of {subject.columns} columns")
    return subject


def _linked(kind: Literal["sigmoid", "exp"]) -> _Fold:
    def link(node: Node, subject: Any) -> Value | None:
        node.attributes()
        if not isinstance(subject, Scores) or not subject.open or replace(subject.link, slope=1.0) != Link():
            return None
        shown: Shown = "all" if subject.shown == "all" else "second"
        return replace(subject, link=replace(subject.link, kind=kind), shown=shown)

    return link


def _softmax(node: Node, subject: Any) -> Value | None:
    node.axis(node.attributes("axis"), default=-1)
    if not isinstance(subject, Scores) or not subject.open or subject.link != Link() or subject.shown != "all":
        return None
    if subject.outputs < 2:
        return None
    return replace(subject, link=Link("softmax"))


def _arg_max(node: Node, subject: Any) -> Value | None:
    attributes = node.attributes("axis", "keepdims", "select_last_index")
    node.axis(attributes)
    if not isinstance(subject, Scores) or subject.part or subject.rounded:
        return None
    last = bool(attributes.integer("select_last_index", 0))
    if subject.shown == "all":
        decision = Decision("argmax", 0, "values", "last" if last else "first")
        return Answer(tuple(range(subject.outputs)), decision, judged=subject)
    if subject.shown == "second" or subject.link.slope <= 0 or subject.aggregate.precision != "float32":
        return None

    def second_wins(score: float) -> bool:
        columns = two_columns(np.array([score], dtype=np.float32), subject.link, subject.shown)
        return bool(columns[0, 1] >= columns[0, 0] if last else columns[0, 1] > columns[0, 0])

    return Answer((0, 1), Decision("threshold", least_float(second_wins, 32)), judged=subject)


def two_columns(scores: NDArray[np.float32], link: Link, shown: Shown) -> NDArray[np.float32]:
    """The two columns (rows, 2) that onnxruntime shows for single scores (rows,) of class 1."""
    one = np.float32(1)
    with np.errstate(over="ignore"):
        s = scores * np.float32(link.slope)
        if shown == "complement":
            return np.stack([one - s, s], axis=1)
        if shown == "opposite":
            return np.stack([-s, s], axis=1)
        upper = one / (one + np.exp(-np.abs(s.astype(np.float64))).astype(np.float32))
        second = np.where(s < 0, one - upper, upper)
        return np.stack([np.where(s > 0, one - upper, upper), second], axis=1)


def _label_encoder(node: Node, subject: Any) -> Value | None:
    names = [f"{side}_{kind}" for side in ("keys", "values") for kind in ("int64s", "strings", "floats")]
    names += ["default_int64", "default_string", "default_float"]
    attributes = node.attributes(*names)
    if not isinstance(subject, Answer):
        return None
    keys: list[Label] = [*attributes.ints("keys_int64s").tolist(), *attributes.texts("keys_strings")]
    values: list[Label] = [*attributes.ints("values_int64s").tolist(), *attributes.texts("values_strings")]
    table = dict(zip(keys, values, strict=False))
    if len(keys) != len(values) or len(table) != len(keys) or not all(k in table for k in subject.classes):
        raise node.fail(f"does not name all of the classes {', '.join(map(str, subject.classes[:5]))}")
    return replace(subject, classes=tuple(table[k] for k in subject.classes))


_AROUND: dict[str, _Fold] = {
    "Identity": _identity,
    "Constant": _constant,
    "Cast": _cast,
    "Add": _arithmetic,
    "Sub": _arithmetic,
    "Mul": _arithmetic,
    "Div": _arithmetic,
    "Clip": _clip,
    "Concat": _concat,
    "Gather": _chosen,
    "Slice": _slice,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Squeeze": _reshape,
    "Exp": _linked("exp"),
    "Sigmoid": _linked("sigmoid"),
    "Softmax": _softmax,
    "ArgMax": _arg_max,
}
_AROUND_ML: dict[str, _Fold] = {
    "Scaler": _scaler,
    "Imputer": _imputer,
    "Normalizer": _normalizer,
    "ArrayFeatureExtractor": _chosen,
    "ZipMap": _zip_map,
    "LabelEncoder": _label_encoder,
}
