"""What the nodes of an ONNX graph hand to one another while it is folded, and a node with the values it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Aggregate, Decision, Label, Link
from forestc.frontends.onnx.attributes import Attributes
from forestc.frontends.onnx.columns import Column, Step
from forestc.frontends.onnx.text import Text
from forestc.frontends.onnx.trees import Shown

Array: TypeAlias = NDArray[Any]
ML = "ai.onnx.ml"
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Table:
    """Columns on their way to the trees. width: None where the file does not say. column: the i-th one. depth: how
    many nodes made it; `MAX_STEPS` is for Python's stack. text: whether all columns are made of the inputs' text.

    dims: 2 for rows and columns; 1 for a single column without its dimension; 3 for what an encoder makes of columns
    of text, (rows, width / inner, inner), which are counted as if they lay side by side.
    """

    dtype: np.dtype[Any]
    width: int | None
    column: Callable[[int], Column | Text]
    depth: int = 0
    text: bool = False
    dims: int = 2
    inner: int = 0

    def then(self, step: Callable[[int], Step | None], dtype: Any = None, width: int | None = None) -> Table:
        """The table with a step after each column (None: as it is)."""

        def column(index: int) -> Column | Text:
            added = step(index)
            return self.column(index) if added is None else self.column(index).then(added)

        return self.made(column, self.dtype if dtype is None else dtype, width or self.width)

    def made(self, column: Callable[[int], Column | Text], dtype: Any, width: int | None) -> Table:
        """What one node makes of the table, in the same dimensions."""
        return replace(self, dtype=np.dtype(dtype), width=width, column=column, depth=self.depth + 1)

    def shaped(self, dims: int, inner: int = 0) -> Table:
        """The same columns in other dimensions. inner: only of three."""
        return replace(self, dims=dims, inner=inner if dims == 3 else 0)

    def texts(self, index: int) -> Text:
        """The i-th column of a table of text."""
        return cast("Text", self.column(index))


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
Fold: TypeAlias = "Callable[[Node, Any], Value | list[Value] | None]"


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
