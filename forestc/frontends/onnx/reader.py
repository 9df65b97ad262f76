"""Reads ONNX models with tree ensembles as onnxruntime evaluates them: `.onnx` files and ModelProto objects."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from forestc.errors import CUT, DAMAGED, MissingExtraError, ModelError
from forestc.forest.ir import LEAF, Decision, Forest, Provenance
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.catboost.reader import AS_JSON
from forestc.frontends.onnx.columns import RawColumn, raw_features
from forestc.frontends.onnx.graph import TreeGraph, read_graph
from forestc.frontends.onnx.text import TextColumn, text_features
from forestc.frontends.onnx.trees import OPERATORS, make_trees
from forestc.frontends.onnx.values import ML
from forestc.frontends.shared.assemble import assembled

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

NEWEST_ML = 5  # limits the version of ai.onnx.ml to the latest known one


def read_bytes(data: bytes, where: str) -> Forest:
    """Reads the bytes of a `.onnx` file into a Forest. Raises ModelError, and MissingExtraError without the onnx
    package."""
    ModelProto, _, DecodeError = _library()
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(f"not a readable ONNX file ({_line(error)})", where=where, do=DAMAGED) from None
    return _forest(model, where)


def read_live(model: object) -> Forest:
    """Reads a ModelProto in memory into a Forest. Raises ModelError, and MissingExtraError without the onnx package."""
    ModelProto, EncodeError, _ = _library()
    where = f"ONNX {type(model).__name__}"
    if not isinstance(model, ModelProto):
        raise ModelError("is not a ModelProto", where=where, do="pass the whole model")
    try:
        model.SerializeToString()  # Raises EncodeError or ValueError for values that protobuf can't hold.
    except (EncodeError, ValueError) as error:
        raise ModelError(
            f"can't be read ({_line(error)})",
            where=where,
            do="rebuild the ModelProto: onnx.checker.check_model tells more",
        ) from None
    return _forest(model, where)


def _library() -> tuple[Any, Any, Any]:
    try:
        import onnx

        errors: Any = import_module("google.protobuf.message")  # This module has no types.
    except ImportError:
        raise MissingExtraError("onnx", "onnx") from None
    return onnx.ModelProto, errors.EncodeError, errors.DecodeError


def _line(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__


def _forest(model: ModelProto, where: str) -> Forest:
    if not model.HasField("graph"):
        raise ModelError("not an ONNX model: it has no graph", where=where, do=CUT)
    _refuse_treeless(model.graph, where)
    opsets = _opsets(model, where)
    try:
        return _over_rows(read_graph(model.graph, opsets, where), Provenance("onnx", _producer(model)), where)
    except ModelError as error:
        if model.producer_name == "CatBoost":  # It writes models of several targets, for example, as no valid operator.
            error.parts = (*error.parts[:2], AS_JSON)
        raise


def _producer(model: ModelProto) -> str:
    """Returns the program that wrote the file and its version, in one line."""
    version = str(model.producer_version)
    if "\n" in version:  # CatBoost writes what its build was made from.
        version = next(iter(re.findall(r"\d+(?:\.\d+)+", version)), "")
    return " ".join(f"{model.producer_name} {version}".split())


def _refuse_treeless(graph: GraphProto, where: str) -> None:
    operators = {str(node.op_type)[:40] for node in graph.node}
    if operators.isdisjoint(OPERATORS):
        names = ", ".join(sorted(operators)[:8]) or "none"
        raise ModelError(
            f"the ONNX model holds no decision trees; its operators: {names}",
            where=where,
            do=f"convert an ensemble of trees, whose operator is one of {', '.join(OPERATORS)}",
        )


def _opsets(model: ModelProto, where: str) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for item in model.opset_import:
        domain = "" if item.domain == "ai.onnx" else item.domain
        if opsets.setdefault(domain, item.version) != item.version:
            raise ModelError(
                f"imports two versions of {domain or 'ai.onnx'}", where=where, do="keep one opset_import of this domain"
            )
    version = opsets.get(ML)
    if version is None:
        raise ModelError(
            f"does not import {ML}, whose operators are the tree ensembles",
            where=where,
            do=f"add opset_import {ML}, version {NEWEST_ML}",
        )
    if not 1 <= version <= NEWEST_ML:
        raise ModelError(f"{ML} version {version} is not known", where=where, do=f"1 to {NEWEST_ML} are read")
    return opsets


def _over_rows(graph: TreeGraph, provenance: Provenance, where: str) -> Forest:
    """Builds the forest over the columns of the rows."""
    nodes, table = graph.ensemble.nodes, graph.table
    read = np.unique(nodes.feature[nodes.true != LEAF]).tolist()
    if read and (read[0] < 0 or (table.width is not None and read[-1] >= table.width)):
        bad = read[0] if read[0] < 0 else read[-1]
        node = int(np.flatnonzero((nodes.feature == bad) & (nodes.true != LEAF))[0])
        what = f"a condition reads column {bad} of {'?' if table.width is None else table.width}"
        raise ModelError(
            what,
            where=f"{where}, {nodes.location(node)}",
            do="read columns of the input alone, or give the input its true shape",
        )
    if read and read[-1] >= MAX_COLUMNS:
        raise ModelError(
            f"a condition reads column {read[-1]}", where=where, do=f"train on {MAX_COLUMNS} columns at most"
        )
    columns = {index: table.column(index) for index in read}
    width = graph.columns
    if width is None:  # A single input without a width has at least the columns that trees read.
        last = -1 if table.width is None else table.column(table.width - 1).index
        width = 1 + max([last, *(column.index for column in columns.values())])
    texts = {key: column for key, column in columns.items() if isinstance(column, TextColumn)}
    numbers = {key: column for key, column in columns.items() if isinstance(column, RawColumn)}
    of_text, vocabularies = text_features(texts, graph.names, where)
    of_numbers, numbers = raw_features(numbers, graph.names)
    trees = make_trees(graph.ensemble, numbers, texts, vocabularies, where)
    by_column = {feature.column: feature for feature in (*of_numbers, *of_text)}
    scores, answer = graph.scores, graph.answer
    return assembled(
        trees,
        width,
        by_column.__getitem__,
        provenance,
        where,
        n_outputs=scores.outputs,
        bias=scores.bias,
        aggregate=scores.aggregate,
        link=scores.link,
        decision=answer.decision if answer else Decision("none"),
        classes=answer.classes if answer else (),
    )
