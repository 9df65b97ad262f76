"""Folds the operators before ONNX's trees into conditions, and the operators after the trees into scores and decision.

An operator is refused if the forest would not equal onnxruntime exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Decision, Link
from forestc.frontends.onnx.attributes import TENSOR_TYPES, Attributes
from forestc.frontends.onnx.columns import NARROW, Monotone, Replace, Step, bits_of
from forestc.frontends.onnx.shapes import concat, reduce_sum, reshape, select_columns, slice_, split
from forestc.frontends.onnx.text_folds import TEXT_OPERATORS, cast_text, equal, label_encoder, one_hot, where
from forestc.frontends.onnx.trees import OPERATORS
from forestc.frontends.onnx.values import FLOATS, ML, Array, Fold, Node, Predicted, Shown, Tensor, TreeScores, Value
from forestc.frontends.shared.exact import least_float

MAX_STEPS = 50  # limits nodes in a chain, because columns are built recursively
# Lists the operators that accept tables of other than two dimensions.
ANY_SHAPE = {
    *("Identity", "Cast", "Concat", "Gather", "Split", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "ReduceSum"),
    *("LabelEncoder", "OneHotEncoder"),
}
WIDEN = Monotone(lambda x: x.astype(np.float64), 32)


def fold(node: Node) -> list[Value]:
    """Folds a node before or after the trees, and returns its outputs. Raises ModelError if it can't be folded."""
    ml = node.proto.domain == ML
    operators = _AROUND_ML if ml else _AROUND if node.proto.domain in ("", "ai.onnx") else {}
    if node.opset < 1:
        raise node.fail("its domain of operators is not imported")
    if node.operator not in operators:
        names = ", ".join(sorted({*_AROUND, *_AROUND_ML, *OPERATORS}))
        operator = f"{node.proto.domain[:40]}.{node.operator[:60]}".lstrip(".")
        raise node.fail(f"operator {operator!r} is not folded into the trees", f"known: {names}")
    subject = next((value for value in node.inputs if value is not None and not isinstance(value, np.ndarray)), None)
    constant = subject is None and node.operator not in ("Identity", "Constant", "LabelEncoder")
    tables = [value for value in node.inputs if isinstance(value, Tensor)]
    if any(table.dims != 2 for table in tables) and node.operator not in ANY_SHAPE:
        raise node.fail("its input is not a table of rows and columns", "reshape the encoders' outputs before")
    if any(table.dtype.kind in "Ob" for table in tables) and node.operator not in TEXT_OPERATORS:
        raise node.fail(
            f"operator {node.operator!r} on text is not read", f"known: {', '.join(sorted(TEXT_OPERATORS))}"
        )
    if any(table.truncated for table in tables) and node.operator != "OneHotEncoder":
        raise node.fail("reads floats that are cast to integers")
    outputs = None if constant else operators[node.operator](node, subject)
    if outputs is None:
        kind = {Tensor: "its columns", TreeScores: "the trees' scores", Predicted: "the class"}.get(
            type(subject), "constants"
        )
        raise node.fail(f"operator {node.operator!r} is not folded into {kind} exactly")
    outputs = outputs if isinstance(outputs, list) else [outputs]
    if any(isinstance(value, Tensor) and value.depth > MAX_STEPS for value in outputs):
        raise node.fail(f"the columns are changed more than {MAX_STEPS} times before the trees")
    return outputs


def _identity(node: Node, subject: Value | None) -> Value | None:
    node.attributes()
    return node.input(0)


def _constant(node: Node, subject: Value | None) -> Value | None:
    readers: dict[str, Callable[[Attributes, str], Value | None]] = {
        "value": Attributes.tensor,
        "value_float": lambda attributes, name: np.array(attributes.number(name, 0), dtype=np.float32),
        "value_int": lambda attributes, name: np.array(attributes.integer(name, 0), dtype=np.int64),
        "value_floats": Attributes.floats,
        "value_ints": Attributes.ints,
        "value_strings": lambda attributes, name: np.array(attributes.texts(name), dtype=object),
    }
    attributes = node.attributes(*readers, "value_string")
    return next((read(attributes, name) for name, read in readers.items() if attributes.has(name)), None)


def _cast(node: Node, subject: Value | None) -> Value | None:
    attributes = node.attributes("to", "saturate", "round_mode")
    to = attributes.integer("to", 0)
    if isinstance(subject, Predicted) and to == 8 and isinstance(subject.classes[0], str):
        return subject
    if to not in TENSOR_TYPES:
        raise node.fail(f"casts to ONNX's type {to}, which is not read")
    dtype = np.dtype(TENSOR_TYPES[to][0])
    match subject:
        case Tensor() if dtype == subject.dtype:
            return subject
        case Tensor() if subject.text and "b" in (dtype.kind, subject.dtype.kind):
            return cast_text(subject, dtype)
        case Tensor() if dtype == np.float32 and (subject.dtype == np.float64 or subject.dtype.kind in "iu"):
            return subject.then(lambda _: NARROW, dtype)
        case Tensor() if dtype == np.int64 and subject.dtype in FLOATS and not subject.text:
            return replace(subject.then(lambda _: Monotone(np.trunc, bits_of(subject.dtype)), dtype), truncated=True)
        case Tensor() if dtype == np.float64 and subject.dtype.kind in "iu":
            return subject.then(lambda _: None, dtype)
        case Tensor() if dtype == np.float64 and subject.dtype == np.float32:
            return subject.then(lambda _: WIDEN, dtype)
        case TreeScores() if dtype in FLOATS and (dtype == np.float64 or subject.dtype == np.float32):
            return replace(subject, dtype=dtype)
        case Predicted() if dtype.kind in "iuf" and not isinstance(subject.classes[0], str):
            classes = np.array(subject.classes)
            with np.errstate(all="ignore"):
                cast = classes.astype(dtype)
            return replace(subject, classes=tuple(cast.tolist())) if (cast == classes).all() else None
    return None


def _scaler(node: Node, subject: Value | None) -> Value | None:
    attributes = node.attributes("offset", "scale")
    if not isinstance(subject, Tensor):
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


def _width(node: Node, table: Tensor, count: int, what: str) -> int | None:
    """Returns the table's number of columns; None if unknown. count: number of constants, 1 or one per column."""
    if count == 1:
        return table.width
    if table.width not in (None, count):
        raise node.fail(f"has {count} {what} for {table.width} columns")
    return count


def _imputer(node: Node, subject: Value | None) -> Value | None:
    attributes = node.attributes(
        "imputed_value_floats", "replaced_value_float", "imputed_value_int64s", "replaced_value_int64"
    )
    if not isinstance(subject, Tensor):
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
        raise node.fail("replaces integers beyond 2^53, which rows can't hold")
    if (subject.width is None and len(by) > 1) or (subject.width is not None and 1 < len(by) != subject.width):
        raise node.fail(f"has {len(by)} imputed values for {subject.width} columns")
    bits = bits_of(subject.dtype)
    return subject.then(lambda index: Replace(value, float(by[index if len(by) > 1 else 0]), bits))


def _normalizer(node: Node, subject: Value | None) -> Value | None:
    raise node.fail("a Normalizer mixes the columns of a row", "train without it, or normalize the rows before")


def _arithmetic(node: Node, subject: Value | None) -> Value | None:
    node.attributes()
    if node.opset < 7:
        raise node.fail(f"of opset {node.opset} is not read", "convert the model to opset 7 or later")
    first = isinstance(node.input(0), np.ndarray)
    constant = node.input(0 if first else 1)
    if not isinstance(constant, np.ndarray) or len(node.inputs) != 2 or (first and node.operator == "Div"):
        return None
    if not isinstance(subject, Tensor | TreeScores) or constant.dtype != subject.dtype or constant.dtype not in FLOATS:
        return None
    if not np.isfinite(constant).all() or (node.operator in ("Mul", "Div") and not constant.all()):
        raise node.fail("its constant is zero or not finite")
    if constant.ndim > 2 or (constant.ndim == 2 and len(constant) != 1):
        raise node.fail(f"its constant has the shape {list(constant.shape)}")
    if isinstance(subject, Tensor):
        return _table_arithmetic(node, subject, constant.ravel(), first)
    return _score_arithmetic(node.operator, subject, constant.ravel(), first)


def _table_arithmetic(node: Node, table: Tensor, constant: Array, first: bool) -> Tensor:
    width = _width(node, table, len(constant), "constants")
    if table.width == 1 != len(constant):
        raise node.fail("broadcasts one column to several")
    from_constant = first and node.operator == "Sub"
    functions: dict[str, Callable[[Array, Array], Array]] = {
        "Add": lambda x, c: x + c,
        "Sub": (lambda x, c: c - x) if first else lambda x, c: x - c,
        "Mul": lambda x, c: x * c,
        "Div": lambda x, c: x / c,
    }
    function = functions[node.operator]

    def step(index: int) -> Step:
        c = constant[index if len(constant) > 1 else 0]
        falling = bool(c < 0) if node.operator in ("Mul", "Div") else from_constant
        return Monotone(function, bits_of(table.dtype), not falling, (c,))

    return table.then(step, None, width)


def _score_arithmetic(operator: str, scores: TreeScores, constant: Array, first: bool) -> TreeScores | None:
    """Folds a constant into bias, divisor or slope; returns None if that is not exact."""
    numbers = constant.tolist()
    uniform = len(set(numbers)) == 1 and len(numbers) in (1, scores.columns)
    neutral = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}[operator]
    if uniform and numbers[0] == neutral and not (operator == "Sub" and first):
        return scores
    if operator == "Mul":
        if uniform and scores.link == Link() and scores.open:
            shown: Shown = "second" if scores.shown == "complement" else scores.shown
            return replace(scores, link=Link(slope=numbers[0]), shown=shown)
        return None
    if scores.link != Link() or not scores.open or scores.classifier or any(scores.bias):
        return None
    if operator == "Div":
        if uniform and scores.aggregate.divisor == 1.0:
            return replace(scores, aggregate=replace(scores.aggregate, divisor=numbers[0]))
        return None
    if (operator == "Sub" and first) or len(numbers) not in (1, scores.outputs):
        return None
    added = numbers * (scores.outputs // len(numbers))
    return replace(scores, bias=tuple(-x if operator == "Sub" else x for x in added))


def _clip(node: Node, subject: Value | None) -> Value | None:
    attributes = node.attributes("min", "max")
    if not isinstance(subject, Tensor) or subject.dtype not in FLOATS:
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


def _zip_map(node: Node, subject: Value | None) -> Value | None:
    attributes = node.attributes("classlabels_int64s", "classlabels_strings")
    if not isinstance(subject, TreeScores) or subject.part:
        return None
    count = max(len(attributes.ints("classlabels_int64s")), len(attributes.strings("classlabels_strings")))
    if count != subject.columns:
        raise node.fail(f"names {count} of {subject.columns} columns")
    return subject


def _linked(kind: Literal["sigmoid", "exp"]) -> Fold:
    def link(node: Node, subject: Value | None) -> Value | None:
        node.attributes()
        if not isinstance(subject, TreeScores) or not subject.open or replace(subject.link, slope=1.0) != Link():
            return None
        shown: Shown = "all" if subject.shown == "all" else "second"
        return replace(subject, link=replace(subject.link, kind=kind), shown=shown)

    return link


def _softmax(node: Node, subject: Value | None) -> Value | None:
    node.axis(node.attributes("axis"), default=-1)
    if not isinstance(subject, TreeScores) or not subject.open or subject.link != Link() or subject.shown != "all":
        return None
    if subject.outputs < 2:
        return None
    return replace(subject, link=Link("softmax"))


def _arg_max(node: Node, subject: Value | None) -> Value | None:
    attributes = node.attributes("axis", "keepdims", "select_last_index")
    node.axis(attributes)
    if not isinstance(subject, TreeScores) or subject.part or subject.rounded:
        return None
    last = bool(attributes.integer("select_last_index", 0))
    if subject.shown == "all":
        decision = Decision("argmax", 0, "values", "last" if last else "first")
        return Predicted(tuple(range(subject.outputs)), decision, compared=subject)
    if subject.shown == "second" or subject.link.slope <= 0 or subject.aggregate.precision != "float32":
        return None

    def second_wins(score: float) -> bool:
        columns = two_columns(np.array([score], dtype=np.float32), subject.link, subject.shown)
        return bool(columns[0, 1] >= columns[0, 0] if last else columns[0, 1] > columns[0, 0])

    return Predicted((0, 1), Decision("threshold", least_float(second_wins, 32)), compared=subject)


def two_columns(scores: NDArray[np.float32], link: Link, shown: Shown) -> NDArray[np.float32]:
    """Returns the two columns (rows, 2) that onnxruntime shows for single scores (rows,) of class 1."""
    unit = np.float32(1)
    with np.errstate(over="ignore"):
        s = scores * np.float32(link.slope)
        if shown == "complement":
            return np.stack([unit - s, s], axis=1)
        if shown == "opposite":
            return np.stack([-s, s], axis=1)
        upper = unit / (unit + np.exp(-np.abs(s.astype(np.float64))).astype(np.float32))
        second = np.where(s < 0, unit - upper, upper)
        return np.stack([np.where(s > 0, unit - upper, upper), second], axis=1)


_AROUND: dict[str, Fold] = {
    "Identity": _identity,
    "Constant": _constant,
    "Cast": _cast,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _arithmetic),
    "Clip": _clip,
    "Concat": concat,
    "Gather": select_columns,
    "Split": split,
    "Slice": slice_,
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), reshape),
    "ReduceSum": reduce_sum,
    "Equal": equal,
    "Where": where,
    "Exp": _linked("exp"),
    "Sigmoid": _linked("sigmoid"),
    "Softmax": _softmax,
    "ArgMax": _arg_max,
}
_AROUND_ML: dict[str, Fold] = {
    "Scaler": _scaler,
    "Imputer": _imputer,
    "Normalizer": _normalizer,
    "ArrayFeatureExtractor": select_columns,
    "ZipMap": _zip_map,
    "LabelEncoder": label_encoder,
    "OneHotEncoder": one_hot,
}
