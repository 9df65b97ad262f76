"""inspect: figures of a model or of a compiled folder, and of single trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.design import Design, open_design
from forestc.errors import OptionError
from forestc.forest.node_text import node_figures
from forestc.forest.summary import feature_figures, forest_figures
from forestc.frontends import load


def inspect(source: Any, *, trust_pickle: bool = False) -> dict[str, Any]:
    """The figures of `forestc inspect --json`.

    source: a model that `load` takes, a compiled folder, or a Design. For the latter two the forest is the quantised
    one, and `compiled` describes the written files. `per_feature` lists the features. Raises ForestcError.
    """
    if isinstance(source, str | Path) and Path(source).is_dir():
        source = open_design(source)
    if not isinstance(source, Design):
        forest = load(source, trust_pickle=trust_pickle)
        return {**forest_figures(forest), "per_feature": feature_figures(forest)}
    figures = forest_figures(source.forest)
    return {**figures, "compiled": source.figures(), "per_feature": feature_figures(source.forest)}


def tree_figures(source: Any, tree: int, depth: int = 6, *, trust_pickle: bool = False) -> dict[str, Any]:
    """One tree as nested nodes: the figures of `forestc inspect --tree N --json`. source: as for `inspect`.

    An inner node has `condition` and its children where the condition holds (`yes`) and where it does not (`no`), a
    leaf has `leaf`, its values. `cover`: the training rows that reached the node, None if the source does not record
    them. At level `depth` a node has `below`, the number of nodes below it, instead of its children. Raises OptionError
    for a tree that does not exist, ForestcError.
    """
    if isinstance(source, str | Path) and Path(source).is_dir():
        source = open_design(source)
    forest = source.forest if isinstance(source, Design) else load(source, trust_pickle=trust_pickle)
    if not 0 <= tree < len(forest.trees):
        raise OptionError(f"there is no tree {tree}", do=f"the forest has trees 0 to {len(forest.trees) - 1}")
    return node_figures(forest, tree, 0, depth)
