"""Makes charts with Altair, as SVG and as specifications for the page's scripts. Colors are CSS variables of
the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from xml.etree import ElementTree

from markupsafe import Markup

from forestc.errors import InternalError, MissingExtraError
from forestc.report.page.blocks import Chart
from forestc.report.tables import visible

WIDTH, WIDE = 520, 900  # pixels of width: a chart in a column, and across the page
PADDING = {"left": 40, "right": 24, "top": 5, "bottom": 5}  # pixels: about a sixth of the longest label
PART_COLORS = {
    "inputs": "var(--gray)",
    "comparators": "var(--c1)",
    "trees": "var(--c2)",
    "sums": "var(--c3)",
    "decision": "var(--c4)",
}
_FONT = "system-ui, sans-serif"
_TEXT = {"labelColor": "var(--soft)", "titleColor": "var(--ink)", "labelFont": _FONT, "titleFont": _FONT}
_CONFIG: Mapping[str, Any] = {
    "aria": False,  # the page describes each chart in words and has its figures in a table
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": "transparent"},
    "axis": {
        **_TEXT,
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "gridColor": "var(--line)",
        "gridOpacity": 0.6,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "labelLimit": 260,
    },
    "legend": {**_TEXT, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500, "labelLimit": 260},
    "header": {**_TEXT, "labelFontSize": 12},
    "title": {"color": "var(--ink)", "font": _FONT},
    "text": {"color": "var(--ink)", "font": _FONT, "fontSize": 12},
    "rule": {"color": "var(--soft)"},
    "bar": {"color": "var(--c1)"},
    "point": {"color": "var(--c1)"},
    "line": {"color": "var(--c1)"},
    "range": {"category": ["var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--gray)"]},
}
_TAGS = {"svg", "g", "path", "text", "tspan", "rect", "line", "defs", "clipPath", "title", "circle"}
_ACTIVE = re.compile(r"^on|href$|^style$", re.IGNORECASE)


def altair() -> Any:
    """Imports Altair. Raises MissingExtraError if it is not installed."""
    try:
        import altair
    except ImportError:
        raise MissingExtraError("altair", "report") from None
    return altair


def converter() -> Any:
    """Imports vl-convert, which draws charts without a browser. Raises MissingExtraError if it is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", "report") from None
    return vl_convert


Rows: TypeAlias = Sequence[Mapping[str, Any]]
Encoding: TypeAlias = Any  # an encoding of Altair, which functions import when they use it
Drawn: TypeAlias = Any  # a chart of Altair


def tooltips(*fields: tuple[str, str] | tuple[str, str, str]) -> list[Any]:
    """Returns tooltips. fields: each (field, title) or (field, title, format)."""
    tooltip = altair().Tooltip
    return [tooltip(name, title=title, **({"format": form[0]} if form else {})) for name, title, *form in fields]


def data(name: str = "rows") -> Any:
    """Returns a reference to the rows that `finished` gets under this name."""
    return altair().NamedData(name)


def finished(title: str, alt: str, drawn: Drawn, rows: Rows, foot: str = "", **more: Rows) -> Chart:
    """Returns the block of an Altair chart. rows, more: the chart's data, under the names given to `data`."""
    spec = drawn.to_dict(validate=False)
    spec.pop("$schema", None)
    spec["config"] = dict(_CONFIG)
    spec["usermeta"] = {"across": spec.get("width") == WIDE}
    spec["datasets"] = {name: [_plain(row) for row in values] for name, values in {"rows": rows, **more}.items()}
    # The converter's fonts may be narrower than the reader's, so labels get padding.
    svg = checked_svg(converter().vegalite_to_svg({**spec, "padding": PADDING}))
    return Chart(title, alt, svg, foot, spec=spec)


def checked_svg(text: str) -> Markup:
    """Returns the SVG as markup. Raises InternalError if it contains scripts or links, which names from models might
    smuggle in."""
    for element in ElementTree.fromstring(text).iter():
        tag = element.tag.rpartition("}")[2]
        active = [name for name in element.attrib if _ACTIVE.search(name.rpartition("}")[2])]
        if tag not in _TAGS or active:
            raise InternalError(
                f"a chart holds <{tag} {' '.join(active)}>", where="the report's page", do="report this bug"
            )
    return Markup(text)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: visible(value) if isinstance(value, str) else value for key, value in row.items()}
