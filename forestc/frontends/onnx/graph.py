"""Reads the graph of an ONNX model, from its inputs through its single tree operator to its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forestc.errors import ModelError
from forestc.forest.ir import Link
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.onnx.attributes import TENSOR_TYPES, TEXT_TENSOR, tensor_array
from forestc.frontends.onnx.columns import NARROW, RawColumn, bits_of
from forestc.frontends.onnx.folds import fold
from forestc.frontends.onnx.text import TextColumn
from forestc.frontends.onnx.trees import OPERATORS, TreeOperator, read_operator
from forestc.frontends.onnx.values import ML, Node, Predicted, Tensor, TreeScores, Value

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

SEVERAL = "one is read from ONNX: give the ensemble as its own library saves it, such as a VotingClassifier with skops"
TENSORS = "save the model with whole tensors inside, of texts or numbers of their shape and type"
_INPUTS = {kind: np.dtype(dtype) for kind, (dtype, _) in TENSOR_TYPES.items() if dtype is not np.bool_}
_INPUTS[TEXT_TENSOR] = np.dtype(object)


@dataclass(frozen=True)
class TreeGraph:
    """The contents of a graph: the trees, the columns before them, and the scores and class that the graph outputs."""

    ensemble: TreeOperator
    table: Tensor
    columns: int | None  # width of the rows; None if unknown
    names: dict[int, str]  # column -> name, for columns with a name
    scores: TreeScores
    answer: Predicted | None


def read_graph(graph: GraphProto, opsets: Mapping[str, int], where: str) -> TreeGraph:
    """Folds the graph of a ModelProto into its single tree operator. Raises ModelError if that is not possible."""
    values: dict[str, Value] = {}
    for tensor in graph.initializer:
        name = tensor.name
        values[name] = tensor_array(
            tensor,
            lambda what: ModelError(what, where=f"{where}, initializer {name[:60]!r}", do=TENSORS),  # noqa: B023
        )
    if len(graph.sparse_initializer):
        raise ModelError("sparse initializers are not read", where=where, do="make the initializers dense")
    columns, names = _inputs(graph, values, where)
    outputs = [output.name for output in graph.output]
    trees: tuple[TreeOperator, Tensor] | None = None
    for proto in _needed(graph.node, outputs):
        node = Node(proto, where, values, opsets)
        if proto.domain == ML and proto.op_type in OPERATORS:
            if trees is not None:
                raise node.fail("is a second tree operator", SEVERAL)
            trees, results = _trees(node)
        else:
            results = fold(node)
        for name, value in zip(proto.output, results, strict=False):
            if name:
                if name in values:
                    raise node.fail(f"writes {name[:60]!r}, which already exists")
                values[name] = value
    if trees is None:
        raise ModelError("no output comes from a tree operator", where=where, do=f"known: {', '.join(OPERATORS)}")
    scores, answer = _shown(trees[0], outputs, values, where)
    return TreeGraph(*trees, columns, names, scores, answer)


def _inputs(graph: GraphProto, values: dict[str, Value], where: str) -> tuple[int | None, dict[int, str]]:
    """Adds the graph's inputs to `values`. Returns the width of the rows (None if unknown) and {column: name}."""
    real = [item for item in graph.input if item.name not in values]
    start: int | None = 0
    names: dict[int, str] = {}
    for item in real:
        if not isinstance(item.name, str):
            raise ModelError(f"the name of input {item.name!r} is not UTF-8", where=where, do="rename the input")
        location = f"{where}, input {item.name[:60]!r}"
        if item.name in values:
            raise ModelError("appears twice", where=location, do="give each input a name of its own")
        kind = item.type.tensor_type
        dtype = _INPUTS.get(kind.elem_type) if item.type.HasField("tensor_type") else None
        if dtype is None:
            raise ModelError(
                "is not a tensor of floats, doubles, integers or texts",
                where=location,
                do="cast the input to one of these types within the model",
            )
        dims = kind.shape.dim
        if kind.HasField("shape") and len(dims) != 2:
            raise ModelError(f"has {len(dims)} dimensions", where=location, do="rows and columns are read")
        width = int(dims[1].dim_value) if len(dims) == 2 and dims[1].HasField("dim_value") else None
        if width is not None and not 0 < width <= MAX_COLUMNS:
            raise ModelError(f"has {width} columns", where=location, do=f"1 to {MAX_COLUMNS} are read")
        if start is None or (width is None and len(real) > 1):
            raise ModelError("does not say how many columns it has", where=location, do="give every input's shape")
        values[item.name] = _raw(dtype, width, start)
        if width == 1:
            names[start] = item.name
        start = None if width is None else start + width
    return start, names


def _raw(dtype: np.dtype[Any], width: int | None, start: int) -> Tensor:
    if dtype.kind == "O":
        return Tensor(dtype, width, lambda index: TextColumn(start + index), text=True)
    return Tensor(dtype, width, lambda index: RawColumn(start + index, bits_of(dtype), dtype.kind in "iu"))


def _needed(nodes: Sequence[NodeProto], outputs: list[str]) -> list[NodeProto]:
    names = set(outputs)
    needed = []
    for node in reversed(nodes):
        if names.intersection(node.output):
            needed.append(node)
            names.update(name for name in node.input if name)
    return needed[::-1]


def _trees(node: Node) -> tuple[tuple[TreeOperator, Tensor], list[Value]]:
    table = node.input(0)
    if isinstance(table, Tensor) and table.truncated:
        raise node.fail("reads floats that are cast to integers")
    if not isinstance(table, Tensor):
        raise node.fail("its input does not depend on the model's inputs only")
    if table.dims != 2:
        raise node.fail("its input is not a table of rows and columns", "reshape the encoders' outputs before")
    if table.dtype.kind == "O":
        raise node.fail("its input is text", "encode it")
    if table.dtype.itemsize < 4:
        raise node.fail(f"its input is {table.dtype}", "cast it to float")
    ensemble = read_operator(node.operator, node.proto, node.opset, table.dtype, node.where)
    if table.dtype.kind in "iu":
        if node.operator == "TreeEnsembleRegressor":
            raise node.fail(f"its input is {table.dtype}, which onnxruntime does not take", "cast it to float")
        table = table.then(lambda _: NARROW, np.float32)
    scores = ensemble.scores
    if node.operator != "TreeEnsemble" and table.dtype == np.float64:
        scores = replace(scores, dtype=np.dtype(np.float32), rounded=True)
    return (ensemble, table), [ensemble.answer, scores] if ensemble.answer else [scores]


def _shown(
    ensemble: TreeOperator, outputs: list[str], values: Mapping[str, Value], where: str
) -> tuple[TreeScores, Predicted | None]:
    """Returns (scores, class) that the outputs show. Without an output for scores, returns the scores that decide the
    class."""

    def fail(name: str, what: str, do: str) -> ModelError:
        return ModelError(f"output {name[:60]!r} {what}", where=where, do=do)

    scores: TreeScores | None = None
    answer: Predicted | None = None
    for name in outputs:
        value = values.get(name)
        if isinstance(value, TreeScores):
            before, scores = scores, _as_output(value)
            if before not in (None, scores):
                raise fail(name, "shows other scores than the one before", "keep one of these outputs")
        elif isinstance(value, Predicted):
            if answer not in (None, value):
                raise fail(name, "shows another class than the one before", "keep one of these outputs")
            answer = value
        else:
            raise fail(name, "does not come from the trees", "remove this output from the graph")
    answer = answer or ensemble.answer
    if answer is None or answer.compared is None:
        return scores or _as_output(ensemble.scores), answer
    compared = _as_output(answer.compared)
    if scores in (None, compared) or answer.decision.kind == "threshold":
        return scores or compared, answer
    if (
        scores is not None
        and replace(scores, link=compared.link, shown=compared.shown) == compared
        and compared.link == Link()
    ):
        return scores, replace(answer, decision=replace(answer.decision, on="scores"))
    raise ModelError(
        "an output shows other scores than those that decided the class", where=where, do="remove one of the outputs"
    )


def _as_output(scores: TreeScores) -> TreeScores:
    """Returns the scores with dtype, rounded and part reset, so that outputs can be compared."""
    return replace(scores, dtype=np.dtype(np.float32), rounded=False, part=False)
