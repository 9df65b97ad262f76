"""Draws histograms, trees and placed designs as SVG. All texts are escaped, and colors are CSS variables of the
page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from forestc.report.page.charts import PART_COLORS
from forestc.report.page.measured import Histogram
from forestc.report.tables import visible

SPARK = (240, 40)  # pixels: width and height of a histogram
COLUMN, LINE = 258, 22  # pixels: distance of a tree's levels, and of its leaves
LONGEST = 38  # characters that fit between two levels
FEWEST = 6  # characters of a name that must remain


def svg(width: float, height: float, parts: Iterable[Markup]) -> Markup:
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}">'
    )
    return head.format(w=width, h=height) + Markup("").join(parts) + Markup("</svg>")


def shortened(text: str, most: int = LONGEST) -> str:
    text = visible(text)
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def shortened_condition(text: str, most: int = LONGEST) -> str:
    """Returns a condition, shortened in the feature's name rather than in the compared value."""
    text = visible(text)
    for sign in (" < ", " is one of ", " in ["):
        name, separator, rest = text.rpartition(sign)
        room = most - len(separator) - len(rest)
        if separator and len(text) > most and room >= FEWEST:
            return shortened(name, room) + separator + rest
    return shortened(text, most)


def spark(histogram: Histogram | None, cuts: Sequence[float]) -> Markup:
    """Draws a feature's thresholds as lines, over the histogram if there is one."""
    width, height = SPARK
    low, high = (histogram.low, histogram.high) if histogram else (min(cuts, default=0.0), max(cuts, default=1.0))
    low, high = min([low, *cuts]), max([high, *cuts])
    half = (high / 2 - low / 2) or 0.5  # The whole range may overflow a float.

    def x(value: float) -> float:
        return 2 + (width - 4) * (value / 2 - low / 2) / half

    parts = []
    if histogram is not None and histogram.counts.any():
        step = (histogram.high / 2 - histogram.low / 2) / len(histogram.counts)  # half the width of a bar
        wide = max(0.8, (width - 4) * step / half - 0.6)
        most = float(histogram.counts.max())
        bars = [
            f"M{x(histogram.low + index * step + index * step):.1f} {height - 4}h{wide:.1f}"
            f"v{-(height - 6) * count / most:.1f}h{-wide:.1f}z"
            for index, count in enumerate(histogram.counts.tolist())
            if count
        ]
        parts.append(Markup('<path d="{}" fill="var(--gray)" fill-opacity="0.55"/>').format("".join(bars)))
    parts.append(Markup('<path d="M0 {y}h{w}" stroke="var(--line)"/>').format(y=height - 3.5, w=width))
    lines = "".join(f"M{x(cut):.1f} 1v{height - 4}" for cut in cuts)
    if lines:
        thin = 1.6 if len(cuts) < 40 else 0.6
        parts.append(Markup('<path d="{}" stroke="var(--accent)" stroke-width="{}"/>').format(lines, thin))
    return svg(width, height, parts)


def tree_svg(root: Mapping[str, Any]) -> Markup:
    """Draws a tree from left to right; upper branches are taken if the condition holds. root: from `node_figures`."""
    lines: list[Markup] = []
    whole = root.get("cover") or 0.0
    height, depth, _ = _drawn(root, 0, 0, whole, lines)
    return svg((depth + 1) * COLUMN + 10, height * LINE + 8, lines)


def _drawn(
    node: Mapping[str, Any], level: int, line: float, whole: float, lines: list[Markup]
) -> tuple[float, int, float]:
    """Draws a node and its subtree. Returns the number of lines, the deepest level, and the node's own line."""
    x = level * COLUMN + 4
    if "yes" not in node:
        leaf = "leaf" in node
        below = "" if leaf else f" \N{HORIZONTAL ELLIPSIS} {node['below']} nodes"
        text = str(node["leaf" if leaf else "condition"])
        lines.append(_label(x, line, (text, below), _rows(node), "var(--c2)" if leaf else "var(--gray)"))
        return 1.0, level, line
    used, deep, up = _drawn(node["yes"], level + 1, line, whole, lines)
    more, other, down = _drawn(node["no"], level + 1, line + used, whole, lines)
    here = (up + down) / 2
    for child, low in ((node["yes"], up), (node["no"], down)):
        share = (child.get("cover") or 0.0) / whole if whole else 0.25
        start, end = x + COLUMN - 40, x + COLUMN - 6
        path = f"M{start} {_y(here):.1f}C{start + 20} {_y(here):.1f} {end - 20} {_y(low):.1f} {end} {_y(low):.1f}"
        lines.append(
            Markup(
                '<path d="{}" fill="none" stroke="var(--gray)" stroke-opacity="0.75" stroke-width="{:.1f}"/>'
            ).format(path, 1 + 7 * share)
        )
    lines.append(_label(x, here, (str(node["condition"]), ""), _rows(node), "var(--c1)"))
    return used + more, max(deep, other), here


def _y(line: float) -> float:
    return LINE * line + LINE / 2 + 4


def _rows(node: Mapping[str, Any]) -> str:
    return "" if node.get("cover") is None else f": {node['cover']:,.6g} rows"


def _label(x: float, line: float, text: tuple[str, str], more: str, color: str) -> Markup:
    """Returns the label of a node. text: a pair: the condition or leaf, and a suffix."""
    whole, behind = text
    mark = Markup('<g><title>{}</title><circle cx="{}" cy="{:.1f}" r="4" fill="{}"/>')
    words = Markup('<text x="{}" y="{:.1f}" font-size="12" font-family="system-ui, sans-serif" fill="var(--ink)"'
                   ' stroke="var(--paper)" stroke-width="3" paint-order="stroke">{}</text></g>')  # fmt: skip
    return mark.format(visible(whole) + behind + more, x + 1, _y(line), color) + words.format(
        x + 9, _y(line) + 4, shortened_condition(whole, LONGEST - len(behind)) + behind
    )


def placed_svg(cells: Sequence[tuple[int, int, int, bool, str]]) -> Markup:
    """Draws placed cells. cells: each (tile's column, tile's row, position 0 to 7 in the tile, True for a flip-flop,
    part)."""
    columns, rows = [cell[0] for cell in cells], [cell[1] for cell in cells]
    left, top = min(columns), min(rows)
    wide, high = max(columns) - left + 1, max(rows) - top + 1
    tile = max(6.0, min(40.0, 980 / wide, 560 / high))
    step = tile / 4
    paths: dict[tuple[str, bool], list[str]] = {}
    for column, row, position, stored, part in cells:
        x = (column - left) * tile + (position % 2) * 2 * step + 1
        y = (row - top) * tile + (position // 2) * step + 1
        shape = f"M{x + 1.2 * step:.1f} {y:.1f}h{0.55 * step:.1f}v{0.8 * step:.1f}h-{0.55 * step:.1f}z"
        if not stored:
            shape = f"M{x:.1f} {y:.1f}h{1.1 * step:.1f}v{0.8 * step:.1f}h-{1.1 * step:.1f}z"
        paths.setdefault((part, stored), []).append(shape)
    frame = Markup('<path d="M0.5 0.5h{w:.1f}v{h:.1f}h-{w:.1f}z" fill="none" stroke="var(--line)"/>')
    parts = [frame.format(w=wide * tile + 1, h=high * tile + 1)]
    for (part, stored), shapes in paths.items():
        path = Markup('<path d="{}" fill="{}" fill-opacity="{}"/>')
        parts.append(path.format("".join(shapes), PART_COLORS.get(part, "var(--c5)"), 0.6 if stored else 1))
    return svg(wide * tile + 2, high * tile + 2, parts)
