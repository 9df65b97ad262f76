"""Holds the values between the nodes of an ONNX graph while it is folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Aggregate, Decision, Label, Link
from forestc.frontends.onnx.attributes import UNREAD, Attributes
from forestc.frontends.onnx.columns import RawColumn, Step
from forestc.frontends.onnx.text import TextColumn

if TYPE_CHECKING:
    from onnx import NodeProto

Array: TypeAlias = NDArray[Any]
ML = "ai.onnx.ml"
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

# Names what a classifier's output shows: all scores, or two columns computed from a single score s.
# "complement" means the columns (1 - s, s), and "opposite" means (-s, s).
# "logistic" means the logistic function of (-s, s); for "second" only the second column is known.
Shown: TypeAlias = Literal["all", "complement", "opposite", "logistic", "second"]


@dataclass(frozen=True)
class Tensor:
    """Columns before the trees, as an ONNX tensor."""

    dtype: np.dtype[Any]
    width: int | None  # number of columns; None if unknown
    column: Callable[[int], RawColumn | TextColumn]  # returns the i-th column
    depth: int = 0  # length of the longest chain of nodes before the tensor
    text: bool = False  # True if all columns come from text
    dims: int = 2  # 2 is a table, 1 a column, 3 encoded text
    inner: int = 0  # last dimension of encoded text or numbers
    truncated: bool = False  # True for floats cast to integers: none stands for NaN, so that only an encoder reads them

    def then(
        self, step: Callable[[int], Step | None], dtype: DTypeLike | None = None, width: int | None = None
    ) -> Tensor:
        """Returns the table with a further step on each column. step: returns the step for a column index; None leaves
        the column unchanged."""

        def column(index: int) -> RawColumn | TextColumn:
            added = step(index)
            return self.column(index) if added is None else self.column(index).then(added)

        return self.with_columns(column, self.dtype if dtype is None else dtype, width or self.width)

    def with_columns(
        self, column: Callable[[int], RawColumn | TextColumn], dtype: DTypeLike, width: int | None
    ) -> Tensor:
        """Returns a node's output with the same dimensions and other columns."""
        return replace(self, dtype=np.dtype(dtype), width=width, column=column, depth=self.depth + 1)

    def shaped(self, dims: int, inner: int = 0) -> Tensor:
        """Returns the same columns in other dimensions. inner: the size of the last of three dimensions."""
        return replace(self, dims=dims, inner=inner if dims == 3 else 0)

    def texts(self, index: int) -> TextColumn:
        return cast("TextColumn", self.column(index))


@dataclass(frozen=True)
class TreeScores:
    """The scores of the trees after the operators applied to them."""

    dtype: np.dtype[Any]  # type of the tensor
    outputs: int
    aggregate: Aggregate
    bias: tuple[float, ...]  # (outputs,), added last
    link: Link
    shown: Shown
    classifier: bool  # True if a classifier made the scores
    rounded: bool = False  # True if the operator rounded its sums to float32
    part: bool = False  # True if columns may be left out

    @property
    def columns(self) -> int:
        return self.outputs if self.shown == "all" else 2

    @property
    def open(self) -> bool:
        """True if further operators can be folded: no column is left out, sums are not rounded, and the type is the
        forest's."""
        return not self.rounded and not self.part and self.dtype == np.dtype(self.aggregate.precision)


@dataclass(frozen=True)
class Predicted:
    """The decided class. compared: the scores that an ArgMax compared; None without one."""

    classes: tuple[Label, ...]
    decision: Decision
    compared: TreeScores | None = None


Value: TypeAlias = Array | Tensor | TreeScores | Predicted
Fold: TypeAlias = "Callable[[Node, Value | None], Value | list[Value] | None]"


class Node:
    """A node with the values of its inputs."""

    def __init__(self, node: NodeProto, where: str, values: Mapping[str, Value], opsets: Mapping[str, int]) -> None:
        self.proto = node
        self.operator: str = node.op_type
        self.where = f"{where}, node {node.name[:60]!r} ({node.op_type[:60]})"
        self.opset = opsets.get("" if node.domain == "ai.onnx" else node.domain, 0)
        self.inputs: list[Value | None] = []
        for name in node.input:
            if name and name not in values:
                raise self.fail(f"reads {name[:60]!r}, which no node before it writes")
            self.inputs.append(values[name] if name else None)

    def fail(self, what: str, do: str = UNREAD) -> ModelError:
        return ModelError(what, where=self.where, do=do)

    def attributes(self, *allowed: str) -> Attributes:
        return Attributes(self.proto, allowed, self.where)

    def input(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def constant(self, index: int, what: str) -> Array:
        value = self.input(index)
        if not isinstance(value, np.ndarray):
            raise self.fail(f"its {what} is not a constant")
        return value

    def integers(self, index: int, what: str) -> list[int]:
        """Returns a constant list of integers. Raises ModelError for any other input."""
        value = self.constant(index, what)
        if value.dtype.kind not in "iu":
            raise self.fail(f"its {what} does not hold integers")
        return [int(item) for item in value.ravel().tolist()]

    def axis(self, attributes: Attributes, default: int = 0) -> None:
        """Raises ModelError unless the axis is the axis of the columns."""
        if attributes.integer("axis", default) not in (1, -1):
            raise self.fail("works across the rows, not the columns")
