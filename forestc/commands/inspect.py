"""Implements `inspect` and `print`: figures, single trees and the text form of a model."""

from __future__ import annotations

from typing import Any

from forestc.commands.source import open_source
from forestc.errors import OptionError
from forestc.forest.node_text import feature_figures, node_figures
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.manifest.design import Design
from forestc.options.commands import InspectOptions, PrintOptions
from forestc.options.fields import takes


@takes(InspectOptions)
def inspect(options: InspectOptions) -> dict[str, Any]:
    """The figures of `forestc inspect --json`.

    source: a model that `load` takes, a compiled folder, or a Design. For the latter two the forest is the quantized
    one, and `compiled` describes the written files. `per_feature` lists the features.

    tree: gives instead one tree as nested nodes. An inner node has `condition` and its children where the condition
    holds (`yes`) and where it does not (`no`), a leaf has `leaf`, its values. `cover`: the training rows that reached
    the node, None if the source does not record them. At level `depth` a node has `below`, the number of nodes below
    it, instead of its children. Raises OptionError for a tree that does not exist, ForestcError.
    """
    tree = options.tree
    source = open_source(options.source, trust_pickle=options.trust_pickle, iterations=options.iterations)
    forest = source.forest if isinstance(source, Design) else source
    if tree is not None:
        if not 0 <= tree < len(forest.trees):
            raise OptionError(
                f"there is no tree {tree}", where="--tree", do=f"the forest has trees 0 to {len(forest.trees) - 1}"
            )
        return node_figures(forest, tree, 0, options.depth)
    compiled = {"compiled": source.figures()} if isinstance(source, Design) else {}
    return {**forest.figures(), **compiled, "per_feature": feature_figures(forest)}


@takes(PrintOptions)
def model_text(options: PrintOptions) -> str:
    """Returns the text form of a model, as `forestc print` prints it. Raises ForestcError."""
    return print_forest(load(options.model, trust_pickle=options.trust_pickle, iterations=options.iterations))
