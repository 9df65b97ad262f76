"""Draws trees as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree as Drawing

from forestc.report.tables import visible


def drawn_tree(title: str, root: Mapping[str, Any]) -> Drawing:
    """Draws a tree from the figures of `forestc.inspect(source, tree=N)`. The branch where a condition holds comes
    first."""
    drawing = Drawing(Text(visible(title)))
    waiting = [(drawing, root, "")]
    while waiting:
        parent, node, branch = waiting.pop()
        rows = "" if node["cover"] is None else f"   ({node['cover']:,.6g} rows)"
        if "leaf" in node:
            parent.add(Text(visible(f"{branch}leaf {node['leaf']}{rows}"), style="bold"))
        elif "yes" not in node:
            parent.add(Text(visible(f"{branch}{node['condition']} ... {node['below']} nodes below{rows}")))
        else:
            here = parent.add(Text(visible(f"{branch}{node['condition']}{rows}")))
            waiting += [(here, node["no"], "no: "), (here, node["yes"], "yes: ")]
    return drawing
