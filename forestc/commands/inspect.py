"""Implements `inspect` and `print`: figures, single trees and the text form of a model."""

from __future__ import annotations

from typing import Any

from forestc.commands.source import open_source
from forestc.errors import OptionError, opt
from forestc.fields.options import takes
from forestc.forest.node_text import feature_figures, node_figures
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.manifest.design import Design
from forestc.options.commands import InspectOptions, PrintOptions


@takes(InspectOptions)
def inspect(options: InspectOptions) -> dict[str, Any]:
    """Returns the figures of a model or of a compiled folder, or one of its trees.

    Returns
    -------
    dict
        The figures of `forestc inspect --json`: `per_feature` lists the features, `compiled` describes a folder's
        files. A tree is a nested node instead: an inner node has `condition`, and its children `yes` (the condition
        holds) and `no`; a leaf has `leaf`, its values; `cover` is the number of training rows at the node, None if
        unknown. At the last level `below` counts the nodes below.

    Raises
    ------
    OptionError
        If there is no such tree.
    ForestcError
        If the model or the folder can't be read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> forestc.inspect(model)["leaves"]
    5
    >>> forestc.inspect(model, tree=0, depth=1)["condition"]
    '...'
    """
    tree = options.tree
    source = open_source(options.source, trust_pickle=options.trust_pickle, iterations=options.iterations)
    forest = source.forest if isinstance(source, Design) else source
    if tree is not None:
        if not 0 <= tree < len(forest.trees):
            raise OptionError(
                f"there is no tree {tree}", where=opt.tree, do=f"the forest has trees 0 to {len(forest.trees) - 1}"
            )
        return node_figures(forest, tree, 0, options.depth)
    compiled = {"compiled": source.figures()} if isinstance(source, Design) else {}
    return {**forest.figures(), **compiled, "per_feature": feature_figures(forest)}


@takes(PrintOptions)
def model_text(options: PrintOptions) -> str:
    """Returns the text form of a model, as `forestc print` prints it. Raises ForestcError."""
    given = {name: getattr(options, name) for name in ("trust_pickle", "iterations", "ap_types", "sum")}
    return print_forest(load(options.model, **given))
