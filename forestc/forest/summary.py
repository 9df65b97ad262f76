"""Figures of a forest, for `inspect` and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from forestc.forest.ir import Forest
from forestc.forest.numbers import Category, Float, word_range


def forest_figures(forest: Forest) -> dict[str, Any]:
    """The keys of `forestc inspect --json`, without the features one by one."""
    used = forest.features_used()
    classes = [list(part.classes) for part in forest.targets]
    return {
        "name": forest.name,
        "source": f"{forest.provenance.source} {forest.provenance.version}".strip(),
        "trees": len(forest.trees),
        "nodes": forest.n_nodes,
        "leaves": forest.n_leaves,
        "depth": forest.depth,
        "features": forest.columns,
        "features_used": len(used),
        "distinct_conditions": len(forest.conditions.comparators),
        "outputs": forest.n_outputs,
        "classes": classes if len(classes) > 1 else classes[0],
        "missing": any(forest.features[i].missing for i in used),
        "categorical": any(isinstance(forest.features[i].number, Category) for i in used),
        "parts": 0 if forest.single else len(forest.parts),
        "combine": "none" if forest.single else forest.combine.kind,
        "aggregate": _kinds(part.aggregate.kind for part in forest.parts),
        "link": _kinds(part.link.kind for part in forest.parts),
        "decision": _kinds(part.decision.kind for part in forest.parts),
        "quantized": forest.quantized,
        "notes": list(forest.provenance.notes),
    }


def feature_figures(forest: Forest) -> list[dict[str, Any]]:
    """One entry for each declared feature, in their order.

    name, column, type, missing; uses: nodes that read it; conditions: distinct conditions among these; lowest, highest:
    thresholds, in the units of `type` (None without thresholds); words: lowest and highest word once quantized.
    """
    table = forest.conditions
    uses = np.zeros(len(forest.features), dtype=np.int64)
    for tree in forest.trees:
        np.add.at(uses, tree.feature[tree.inner], 1)
    compared = np.bincount(table.feature[table.comparators], minlength=len(forest.features))
    figures = []
    for index, feature in enumerate(forest.features):
        thresholds = table.thresholds(index)
        word = None if isinstance(feature.number, Float) else word_range(feature.number, feature.missing)
        figures.append(
            {
                "name": feature.name,
                "column": feature.column,
                "type": str(feature.number),
                "missing": feature.missing,
                "uses": int(uses[index]),
                "conditions": int(compared[index]),
                "lowest": thresholds[0].item() if len(thresholds) else None,
                "highest": thresholds[-1].item() if len(thresholds) else None,
                "words": None if word is None else [word.low, word.top],
            }
        )
    return figures


def _kinds(kinds: Iterable[str]) -> str:
    """The distinct kinds, in order of appearance."""
    return ", ".join(dict.fromkeys(kinds))


def counted(count: int, noun: str) -> str:
    """A number of things: 1 cycle, 2,000 cycles."""
    return f"{count:,} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def shown(value: object, most: int = 12) -> str:
    """A figure as text for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')}: {shown(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:most])) + (f" and {len(value) - most} more" if len(value) > most else "")
    return f"{value:,}" if isinstance(value, int) else str(value)


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in HTML, for notebooks. All texts are escaped, as they come from model files."""
    heads = "".join(f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in head)
    cells = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"


def html_figures(title: str, figures: Mapping[str, Any]) -> str:
    """A table of figures in HTML, with the columns what and figure."""
    return html_table(title, ("what", "figure"), ((key.replace("_", " "), shown(v)) for key, v in figures.items()))
