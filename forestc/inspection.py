"""inspect: figures of a model or of a compiled folder, and of single trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.design import Design, open_design
from forestc.errors import OptionError
from forestc.forest.conditions import Below, Condition, OneOf, Within
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import word_value
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
    return _node_figures(forest, tree, 0, depth)


def _node_figures(forest: Forest, index: int, node: int, depth: int) -> dict[str, Any]:
    tree = forest.trees[index]
    cover = None if tree.cover is None else float(tree.cover[node])
    if tree.left[node] == LEAF:
        return {"leaf": _leaf_text(forest, tree, node), "cover": cover}
    condition = forest.conditions[forest.conditions.places[index][node]]
    figures = {"condition": _condition_text(forest, condition), "cover": cover}
    if depth <= 0:
        return {**figures, "below": _nodes_below(tree, node)}
    sides = {"yes": int(tree.left[node]), "no": int(tree.right[node])}
    return {**figures, **{side: _node_figures(forest, index, child, depth - 1) for side, child in sides.items()}}


def _leaf_text(forest: Forest, tree: Tree, node: int) -> str:
    values = tree.values[tree.leaf[node]].tolist()
    numbers = ", ".join(f"{value:.6g}" for value in values)
    if len(values) > 1 and len(values) == len(forest.classes) and not forest.parts:
        return f"{forest.classes[values.index(max(values))]}: {numbers}"
    return numbers


def _condition_text(forest: Forest, condition: Condition) -> str:
    """A condition as text; words of a quantised forest are followed by the value they represent."""
    feature = forest.features[condition.feature]
    missing = " or missing" if feature.missing and condition.missing_left else ""

    def number(value: Any) -> str:
        if not forest.quantised:
            return f"{value:.9g}"
        real = word_value(int(value), feature.number)
        return f"{value}" if real == value else f"{value} ({real:.6g})"

    match condition.test:
        case Below(threshold):
            return f"{feature.name} < {number(threshold)}{missing}"
        case OneOf(codes):
            names = [feature.labels[code] if code < len(feature.labels) else str(code) for code in codes]
            return f"{feature.name} is one of {', '.join(names)}{missing}"
        case Within(cuts):
            ends = [*map(number, cuts), *(["inf"] if len(cuts) % 2 else [])]
            spans = [f"[{low}, {high})" for low, high in zip(ends[::2], ends[1::2], strict=True)]
            return f"{feature.name} in {' or '.join(spans)}{missing}"


def _nodes_below(tree: Tree, node: int) -> int:
    count, waiting = 0, [node]
    while waiting:
        here = waiting.pop()
        if tree.left[here] != LEAF:
            waiting += [int(tree.left[here]), int(tree.right[here])]
            count += 2
    return count
