"""Adds a forest as a layer to hls4ml, so that a network's features feed a forest in one project.

register()
model = prepare(onnx_model)
config = hls4ml.utils.config_from_onnx_model(model, ...)
hls_model = hls4ml.converters.convert_from_onnx_model(model, hls_config=config, backend="Vitis", ...)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forestc.backends.hls.core import ap_type, cpp_body
from forestc.backends.names import identifier
from forestc.errors import HERE, MissingExtraError, ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import Decision, Forest, Link
from forestc.forest.numbers import Fixed
from forestc.forest.text import parse_forest, print_forest
from forestc.frontends import load
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ir import WordType
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.passes.simplify import Simplify
from hdl_templates import render

if TYPE_CHECKING:
    from hls4ml.model.layers import Layer
    from onnx import GraphProto, ModelProto, NodeProto

TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
OPERATOR = "Forest"  # names the ONNX node, in the domain `forestc`, that replaces the trees
OUTPUTS = ("label", "scores")
LEAF_BITS = 16  # bits of the largest leaf by default


def on_grid(forest: Forest, number: Fixed, outputs: str = "label", leaf_bits: int = LEAF_BITS) -> Forest:
    """Returns the integer forest for inputs of the type `number`. Raises ModelError if sums of integer leaves can't
    decide. outputs: `label`, or `scores` to drop the decision."""
    features = tuple(replace(f, name=f"x{i}", missing=False, named=False) for i, f in enumerate(forest.features))
    forest = changed(forest, features=features)
    if outputs == "scores":
        forest = changed(forest, decision=Decision("none"), classes=(), link=Link())
    formats = {feature.name: str(number) for feature in features}
    words = QuantizeInputs(input="ordered", formats=formats, missing="never").run(forest, None).forest
    result = RoundLeaves(leaf_bits=leaf_bits).run(words, None).forest
    if outputs == "scores":
        divisor = forest.aggregate.divisor
        reach = max((float(np.abs(tree.values).max()) / divisor for tree in forest.trees), default=0.0)
        fraction = leaf_bits - (math.frexp(reach)[1] if reach else 0)
        bias = forest.bias / divisor if forest.aggregate.bias_first else forest.bias
        trees = tuple(
            changed_tree(new, values=np.rint(np.ldexp(old.values / divisor, fraction)).astype(np.int64))
            for old, new in zip(forest.trees, result.trees, strict=True)
        )
        bias = np.rint(np.ldexp(bias, fraction)).astype(np.int64)
        result = changed(result, trees=trees, bias=bias, scale=math.ldexp(1.0, -fraction))
    return Simplify().run(result, None).forest


def result_word(forest: Forest, outputs: str) -> WordType:
    """Returns the type of the layer's results: class indices or integer scores."""
    if outputs == "label":
        return WordType(max(1, (len(forest.classes) - 1).bit_length()), False)
    low, high = forest.bias.astype(object), forest.bias.astype(object)
    for tree in forest.trees:
        for column, output in enumerate(tree.outputs):
            low[output] += int(tree.values[:, column].min())
            high[output] += int(tree.values[:, column].max())
    least, most = min(low), max(high)
    bits = max((~least).bit_length() + 1 if least < 0 else 0, most.bit_length() + (least < 0), 1)
    return WordType(max(bits, 2) if least < 0 else bits, least < 0)


def layer_code(name: str, source: Forest, number: Fixed, n_in: int, outputs: str, leaf_bits: int) -> str:
    """Returns the layer as C++: a function on arrays and one on streams, both called `name`."""
    forest = on_grid(source, number, outputs, leaf_bits)
    netlist = lower(forest, LoweringOptions(outputs=outputs))  # type: ignore[arg-type]
    word = ap_type(WordType(number.bits, number.signed))
    body = cpp_body(
        netlist,
        name,
        f"const {word} *x",
        "x",
        lambda port: f"x[{forest.features[port.index].column}]",
        lambda port: f"y[{port.index}]",
    )
    return render(
        "hls/layer.h.j2",
        name=name,
        title=f"{len(forest.trees)} trees, {forest.n_nodes} nodes",
        input_note=number.fixed_point(),
        body=body,
        word=word,
        width=number.bits,
        n_in=n_in,
        n_out=1 if outputs == "label" else forest.n_scores,
    )


def prepare(model: ModelProto | str | Path, outputs: str = "label", leaf_bits: int = LEAF_BITS) -> ModelProto:
    """Returns the ONNX model with the trees as one Forest node, for hls4ml after `register`. Raises ModelError,
    OptionError or MissingExtraError. outputs: `label` or `scores`."""
    if outputs not in OUTPUTS:
        raise OptionError(f"{outputs!r} is unknown", where="outputs", do=f"use {' or '.join(OUTPUTS)}")
    if not isinstance(leaf_bits, int) or not 1 <= leaf_bits <= 32:
        raise OptionError(f"{leaf_bits!r} bits", where="leaf_bits", do="use 1 to 32")
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx") from None
    model = onnx.shape_inference.infer_shapes(model if isinstance(model, onnx.ModelProto) else onnx.load(str(model)))
    graph = model.graph
    trees = [node for node in graph.node if node.op_type in TREES]
    if len(trees) != 1:
        raise ModelError(
            f"the graph has {len(trees)} tree operators", where="the ONNX graph", do="leave one in the graph"
        )
    tail, from_trees = [trees[0]], set(trees[0].output)
    for node in graph.node:
        if node is not trees[0] and from_trees.intersection(node.input):
            tail.append(node)
            from_trees.update(node.output)
    if foreign := [item.name for item in graph.output if item.name not in from_trees]:
        raise ModelError(
            f"output {foreign[0][:60]!r} does not come from the trees", where=HERE, do="remove it from the graph"
        )
    makers = {name: node for node in graph.node for name in node.output}
    features = trees[0].input[0]
    n_in = _width(graph, features)
    tail_graph = helper.make_graph(
        tail, "tail", [helper.make_tensor_value_info(features, TensorProto.FLOAT, [None, n_in])], list(graph.output),
        list(graph.initializer),
    )  # fmt: skip
    forest = load(helper.make_model(tail_graph, opset_imports=list(model.opset_import)))
    n_out = _results(forest, outputs)
    while features in makers and makers[features].op_type in ("Cast", "Identity"):  # hls4ml converts types itself
        features = makers[features].input[0]
    head = [node for node in graph.node if node not in tail and node.op_type not in ("Cast", "Identity")]
    return _LayerWriter(model, features).written(head, forest, outputs, leaf_bits, n_in, n_out)


def _results(forest: Forest, outputs: str) -> int:
    if outputs == "label" and not (forest.decides and len(forest.targets) == 1):
        raise ModelError("the forest has no single class", where="the ONNX graph", do="use outputs=scores")
    return 1 if outputs == "label" else forest.n_scores


def _width(graph: GraphProto, name: str) -> int:
    for item in (*graph.value_info, *graph.input):
        if item.name == name:
            dims = item.type.tensor_type.shape.dim
            if len(dims) == 2 and dims[1].dim_value > 0:
                return int(dims[1].dim_value)
    raise ModelError(
        f"the trees' input {name[:60]!r} has no known number of columns", where=HERE, do="give the input's shape"
    )


class _LayerWriter:
    def __init__(self, model: ModelProto, features: str) -> None:
        self.model = model
        self.features = features
        self.names: dict[str, str] = {}
        self.taken: set[str] = set()
        self.constants: dict[str, Any] = {}

    def fresh(self, preferred: str) -> str:
        name, count = identifier(preferred), 0
        while name in self.taken:
            count += 1
            name = f"{identifier(preferred)}_{count}"
        self.taken.add(name)
        return name

    def tensor(self, name: str) -> str:
        if name not in self.names:
            self.names[name] = self.fresh(name)
        return self.names[name]

    def nodes(self, nodes: list[Any]) -> Iterator[Any]:
        from onnx import helper, numpy_helper

        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer}
        for index, node in enumerate(nodes):
            label = node.name or f"{node.op_type.lower()}{index}"
            if node.op_type != "Gemm":
                for name in node.input:
                    if name in constants:
                        self.constants[self.tensor(name)] = constants[name]
                inputs = [self.tensor(self.skipped(name)) for name in node.input]
                copy = helper.make_node(node.op_type, inputs, [self.tensor(name) for name in node.output])
                copy.attribute.extend(node.attribute)
                copy.domain = node.domain
                copy.name = self.fresh(label)
                yield copy
                continue
            options = {item.name: helper.get_attribute_value(item) for item in node.attribute}
            if options.get("transA") or any(name not in constants for name in node.input[1:] if name):
                raise ModelError(
                    "a Gemm whose weights are not constant is not read",
                    where=f"node {label[:60]!r}",
                    do="make its weights initializers",
                )
            weights = constants[node.input[1]]
            weights = (weights.T if options.get("transB") else weights) * np.float32(options.get("alpha", 1.0))
            name = self.fresh(label)
            self.constants[f"{name}_weight"] = weights.astype(np.float32)
            result = self.tensor(node.output[0])
            biased = len(node.input) > 2 and bool(node.input[2])
            product = f"{name}_product" if biased else result
            read = self.tensor(self.skipped(node.input[0]))
            yield helper.make_node("MatMul", [read, f"{name}_weight"], [product], name=name)
            if biased:
                bias = constants[node.input[2]].reshape(-1) * np.float32(options.get("beta", 1.0))
                bias = np.broadcast_to(bias, weights.shape[1:]).astype(np.float32)
                self.constants[f"{name}_constant"] = bias
                yield helper.make_node("Add", [product, f"{name}_constant"], [result], name=f"{name}_bias")

    def skipped(self, name: str) -> str:
        for node in self.model.graph.node:
            if name in node.output and node.op_type in ("Cast", "Identity"):
                return self.skipped(node.input[0])
        return name

    def written(self, head: list[Any], forest: Forest, outputs: str, leaf_bits: int, n_in: int, n_out: int) -> Any:
        from onnx import TensorProto, helper, numpy_helper, shape_inference

        constant = {tensor.name for tensor in self.model.graph.initializer}
        inputs = []
        for item in self.model.graph.input:
            if item.name not in constant:
                inputs.append(type(item)())
                inputs[-1].CopyFrom(item)
                inputs[-1].name = self.tensor(item.name)
        nodes = list(self.nodes(head))
        read, result = self.tensor(self.skipped(self.features)), self.fresh("forest_out")
        middle = helper.make_tensor_value_info(read, TensorProto.FLOAT, [1, n_in])
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        opsets = [item for item in self.model.opset_import if item.domain in ("", "ai.onnx")]
        network = helper.make_graph(nodes, "network", inputs, [middle], constants)
        network = shape_inference.infer_shapes(helper.make_model(network, opset_imports=opsets)).graph
        shapes = [item for item in network.value_info if item.name not in self.constants]
        shapes += [middle] if nodes else []
        shapes += [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in self.constants.items()]
        nodes.append(
            helper.make_node(
                OPERATOR, [read], [result], name=self.fresh("forest"), domain="forestc",
                forest=print_forest(forest), results=outputs, leaf_bits=leaf_bits, n_in=n_in, n_out=n_out,
            )
        )  # fmt: skip
        out = [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, n_out])]
        graph = helper.make_graph(nodes, "network_and_forest", inputs, out, constants, value_info=shapes)
        return helper.make_model(graph, opset_imports=[*opsets, helper.make_opsetid("forestc", 1)])


@cache
def register() -> None:
    """Registers the Forest layer with hls4ml, which can then read models from `prepare`, and tree operators as they
    are. Raises MissingExtraError without hls4ml."""
    try:
        import hls4ml
        from hls4ml.backends.template import FunctionCallTemplate
        from hls4ml.model.attributes import Attribute, ConfigurableAttribute
        from hls4ml.model.types import FixedPrecisionType, IntegerPrecisionType, Source
    except ImportError:
        raise MissingExtraError("hls4ml", "hls") from None

    class ForestLayer(hls4ml.model.layers.Layer):  # type: ignore[misc]
        _expected_attributes = (
            Attribute("n_in"),
            Attribute("n_out"),
            Attribute("forest", value_type=str),
            Attribute("results", value_type=str),
            ConfigurableAttribute("leaf_bits", default=LEAF_BITS),
        )

        def initialize(self) -> None:
            if len(shape := self.get_input_variable().shape) != 1:
                raise ModelError(f"a forest's input has shape {shape}", where=f"layer {self.name}", do="flatten it")
            results = self.get_attr("results")
            any_grid = on_grid(self.source, Fixed(32, 16, True), results, self.get_attr("leaf_bits"))
            word = result_word(any_grid, results)
            precision = IntegerPrecisionType(word.width, word.signed)
            if results == "scores":
                fraction = -round(math.log2(any_grid.scale or 1.0))
                precision = FixedPrecisionType(word.width, word.width - fraction, word.signed)
            self.add_output_variable([self.get_attr("n_out")], precision=precision)

        @property
        def source(self) -> Forest:
            return parse_forest(self.get_attr("forest"))

    ForestLayer.__name__ = OPERATOR

    class ForestFunctionTemplate(FunctionCallTemplate):  # type: ignore[misc]
        """A template that writes the C++ of the layer once the type of its input is final."""

        def __init__(self) -> None:
            super().__init__(ForestLayer, include_header=[])

        def format(self, node: Layer) -> str:
            name = f"forest{node.index}"
            number = input_format(node)
            source = parse_forest(node.get_attr("forest"))
            results, leaf_bits = node.get_attr("results"), node.get_attr("leaf_bits")
            code = layer_code(name, source, number, node.get_attr("n_in"), results, leaf_bits)
            node.set_attr("forest_codegen", Source(code))
            call = self._default_function_params(node)
            namespace = node.model.config.get_writer_config().get("Namespace", None) or "nnet"
            return f"{namespace}::{name}<{call['input_t']}, {call['output_t']}>({call['input']}, {call['output']});"

    hls4ml.model.layers.register_layer(OPERATOR, ForestLayer)
    hls4ml.converters.register_onnx_layer_handler(OPERATOR, _prepared)
    for operator in TREES:
        hls4ml.converters.register_onnx_layer_handler(operator, _bare)
    # Vitis uses the templates of the Vivado backend.
    hls4ml.backends.get_backend("Vivado").register_template(ForestFunctionTemplate)


def input_format(node: Layer) -> Fixed:
    """Returns the fixed-point type of a layer's input. Raises ModelError unless it is fixed point of 1 to 62 bits."""
    precision = node.get_input_variable().type.precision
    width, integer = getattr(precision, "width", None), getattr(precision, "integer", None)
    if not isinstance(width, int) or not isinstance(integer, int) or not 1 <= width <= 62:
        raise ModelError(
            f"its input's precision {precision} is not fixed point of up to 62 bits",
            where=f"layer {node.name}",
            do="give the layer before it a precision of fixed point up to 62 bits",
        )
    return Fixed(width, width - integer, bool(precision.signed))


def _prepared(
    node: NodeProto, input_names: list[str], input_shapes: list[list[int]], graph: GraphProto
) -> dict[str, Any]:
    from onnx import helper

    options = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    options |= {key: options[key].decode() for key in ("forest", "results")}
    return {"class_name": OPERATOR, "name": node.name, "inputs": input_names, "outputs": list(node.output), **options}


def _bare(node: NodeProto, input_names: list[str], input_shapes: list[list[int]], graph: GraphProto) -> dict[str, Any]:
    """Reads a tree operator of a model that `prepare` has not changed."""
    from onnx import TensorProto, helper

    outputs = "label" if node.op_type == "TreeEnsembleClassifier" else "scores"
    kind = TensorProto.INT64 if outputs == "label" else TensorProto.FLOAT
    n_in = int(input_shapes[0][-1])
    shown = [item for item in graph.output if item.name == node.output[0]]
    shown = shown or [helper.make_tensor_value_info(node.output[0], kind, None)]
    read = [helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, [None, n_in])]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 5 if node.op_type == TREES[2] else 3)]
    forest = load(helper.make_model(helper.make_graph([node], "trees", read, shown), opset_imports=opsets))
    return {
        "class_name": OPERATOR,
        "name": re.sub(r"\W", "_", node.name) or "forest",
        "inputs": input_names,
        "outputs": [node.output[0]],
        "forest": print_forest(forest),
        "results": outputs,
        "leaf_bits": LEAF_BITS,
        "n_in": n_in,
        "n_out": _results(forest, outputs),
    }
