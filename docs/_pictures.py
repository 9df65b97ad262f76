"""Pictures of results: each is drawn from one file of docs/benchmarks, as an SVG that is light or dark as the page is.

    <!-- picture: NAME -->    the picture of docs/benchmarks/NAME.json, up to <!-- end of picture -->

`python docs/_generate.py` writes the SVGs to docs/benchmarks/pictures, and the links with their texts into the pages.
The same result gives the same bytes. Ours are blue circles, other tools orange diamonds, so that they differ without
color as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

WIDTH = 480  # units; 34em on a wide page, all of a narrow one: letters are 15 and 10 pixels high
SIZE = 13.5  # units: height of the letters
LETTER = 0.55  # share of a letter's height that is its width
LIGHT = {"page": "#ffffff", "ink": "#1b1f24", "soft": "#57606a", "grid": "#dde1e6",
         "ours": "#0068a8", "peer": "#b85000", "third": "#00785a"}  # fmt: skip
DARK = {"page": "#131416", "ink": "#e6e8ea", "soft": "#a3abb3", "grid": "#33383e",
        "ours": "#56b4e9", "peer": "#f0a050", "third": "#3ac79b"}  # fmt: skip
KINDS = ("ours", "peer", "third")
FOLDER = "benchmarks/pictures"  # of docs
NAMES = {"bc": "breast cancer"}  # spells out data sets that the results abbreviate

Result = Mapping[str, Any]


def _colors(colors: Mapping[str, str]) -> str:
    rules = [
        f".page{{fill:{colors['page']}}}text{{fill:{colors['ink']}}}.soft{{fill:{colors['soft']}}}",
        f".grid{{stroke:{colors['grid']}}}.axis{{stroke:{colors['soft']}}}",
    ]
    for kind in KINDS:
        color = colors[kind]
        rules.append(f"text.{kind},.{kind}.full{{fill:{color}}}.{kind}.line{{stroke:{color}}}")
        rules.append(f".{kind}.open{{stroke:{color};fill:{colors['page']}}}")
    return "".join(rules)


STYLE = (
    f"text{{font:{SIZE}px system-ui,-apple-system,'Segoe UI',sans-serif}}.bold{{font-weight:600}}"
    ".axis,.grid{stroke-width:1}.line{fill:none;stroke-width:2}.open{stroke-width:1.7}"
    f"{_colors(LIGHT)}@media(prefers-color-scheme:dark){{{_colors(DARK)}}}"
)


@dataclass(frozen=True)
class Axis:
    """Maps values from `low` to `high` to units from `start` to `stop`. ticks: the values written beside it."""

    low: float
    high: float
    start: float
    stop: float
    ticks: Sequence[float]
    log: bool = True

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(each) if self.log else each for each in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.stop - self.start)


@dataclass
class Picture:
    """Parts of an SVG, with the boxes in which something stands: labels look for room beside them."""

    height: float
    parts: list[str] = field(default_factory=list)
    taken: list[tuple[float, float, float, float]] = field(default_factory=list)

    def add(self, part: str) -> None:
        self.parts.append(part)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        self.add(f'<text x="{_n(x)}" y="{_n(y)}"{_class(kind)}{_anchor(anchor)}>{escape(text)}</text>')
        left = x - _width(text) * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        self.taken.append((left - 5, y - SIZE, left + _width(text) + 5, y + 2))

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        text = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        for (x, y), (to_x, to_y) in pairwise(points):
            steps = max(1, round(max(abs(to_x - x), abs(to_y - y)) / 6))
            middles = [((each + 0.5) / steps, 3) for each in range(steps)]
            self.taken += [
                (x + at * (to_x - x) - r, y + at * (to_y - y) - r, x + at * (to_x - x) + r, y + at * (to_y - y) + r)
                for at, r in middles
            ]
        self.add(f'<polyline points="{text}"{_class(kind)}/>')

    def mark(self, x: float, y: float, kind: str, full: bool = True) -> None:
        """Draws a circle for ours, a diamond for others, a square for a third kind."""
        style = f"{kind} {'full' if full else 'open'}"
        if kind == "ours":
            self.add(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{4.2 if full else 3.6}"{_class(style)}/>')
        else:
            shape = ((0, -5), (5, 0), (0, 5), (-5, 0)) if kind == "peer" else ((-4, -4), (4, -4), (4, 4), (-4, 4))
            text = " ".join(f"{_n(x + a)},{_n(y + b)}" for a, b in shape)
            self.add(f'<polygon points="{text}"{_class(style)}/>')
        self.taken.append((x - 5, y - 5, x + 5, y + 5))

    def label(self, x: float, y: float, text: str, kind: str = "") -> None:
        """Writes a text beside a mark, where it covers the least of what stands there."""
        width = _width(text)
        places = [(9, 4), (-9 - width, 4), (-width / 2, -9), (-width / 2, 19), (7, -6), (7, 15), (-7 - width, -6),
                  (-7 - width, 15)]  # fmt: skip

        def hidden(place: tuple[float, float]) -> float:
            box = (x + place[0], y + place[1] - SIZE + 2, x + place[0] + width, y + place[1] + 2)
            outside = max(0.0, -box[0]) + max(0.0, box[2] - WIDTH)
            return 1000 * outside + sum(_common(box, other) for other in self.taken)

        left, down = min(places, key=hidden)
        self.text(x + left, y + down, text, kind)

    def frame(self, across: Axis, up: Axis, title: str, side: str) -> None:
        """Draws a grid with its ticks, and what the axes count: `title` below, `side` above."""
        left, right = across.start, across.stop
        for tick in across.ticks:
            self.add(_rule(across(tick), up.start, across(tick), up.stop, "grid"))
            self.text(across(tick), up.start + 16, _figure(tick), "soft", "middle")
        for tick in up.ticks:
            self.add(_rule(left, up(tick), right, up(tick), "grid"))
            self.text(left - 6, up(tick) + 4, _figure(tick), "soft", "end")
        self.add(_rule(left, up.start, right, up.start, "axis"))
        self.text(right, up.start + 32, title, "soft", "end")
        self.text(max(2.0, left - 30), up.stop - 9, side, "soft")
        self.taken = [box for box in self.taken if box[1] < up.stop or box[3] > up.start]  # ticks outside the grid

    def keys(self, x: float, y: float, entries: Iterable[tuple[str, bool, str]]) -> None:
        """Draws a legend in one line: kind, whether its mark is filled, its meaning."""
        for kind, full, text in entries:
            self.mark(x + 5, y - 4, kind, full)
            self.text(x + 14, y, text)
            x += 30 + _width(text)

    def svg(self, title: str) -> str:
        head = f'viewBox="0 0 {WIDTH} {_n(self.height)}" width="{WIDTH}" height="{_n(self.height)}" role="img"'
        body = "\n".join([f'<rect class="page" width="{WIDTH}" height="{_n(self.height)}" rx="4"/>', *self.parts])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {head} aria-label="{escape(title)}">\n'
            f"<style>{STYLE}</style>\n{body}\n</svg>\n"
        )


def _n(value: float) -> str:
    return f"{round(value, 1):g}"


def _width(text: str) -> float:
    return LETTER * SIZE * len(text)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _anchor(anchor: str) -> str:
    return "" if anchor == "start" else f' text-anchor="{anchor}"'


def _rule(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line x1="{_n(x)}" y1="{_n(y)}" x2="{_n(to_x)}" y2="{_n(to_y)}" class="{kind}"/>'


def _common(box: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> float:
    """Returns the area that two boxes share."""
    across = min(box[2], other[2]) - max(box[0], other[0])
    down = min(box[3], other[3]) - max(box[1], other[1])
    return max(0.0, across) * max(0.0, down)


def _figure(value: float) -> str:
    """Writes 20000 as 20 k, 3000000 as 3 M, and numbers below 1000 as they are."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _ticks(low: float, high: float) -> list[float]:
    """Returns the powers of ten from `low` to `high`, and three times these where there are few."""
    powers = [10.0**each for each in range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)]
    ticks = [each for each in powers if low <= each]
    return ticks if len(ticks) > 2 else [tick for each in powers for tick in (each, 3 * each) if low <= tick <= high]


def _panel(picture: Picture, top: float, height: float, title: str) -> tuple[float, float]:
    """Writes a panel's title, and returns where its grid starts, below, and ends, above."""
    picture.text(44, top + 12, title, "bold")
    return top + height - 38, top + 40


# One function for each result returns its picture, and a sentence on its content


def shipped_models(result: Result) -> tuple[Picture, str]:
    rows = result["rows"]
    models = list(dict.fromkeys(row["model"] for row in rows))
    luts, right = [row["LUTs_estimated"] for row in rows], [row["test_%"] for row in rows]
    picture = Picture(290)
    low, high = math.floor(min(right)), math.ceil(max(right))
    across = Axis(min(luts) / 2, max(luts) * 2.5, 44, WIDTH - 8, _ticks(min(luts) / 2, max(luts) * 2))
    up = Axis(low - 0.5, high + 0.5, 246, 36, range(low, high + 1), log=False)
    picture.frame(across, up, "LUTs, estimated", "% of test rows right")
    said = []
    for name, kind in zip(models, ("ours", "third"), strict=True):
        own = [row for row in rows if row["model"] == name]
        names: dict[tuple[float, float], list[str]] = {}
        for row in own:
            at = (across(row["LUTs_estimated"]), up(row["test_%"]))
            names.setdefault(at, []).append(row["level"].replace(" --held-out FILE", " FILE"))
        for at in names:
            picture.mark(*at, kind)
        for at, levels in names.items():
            picture.label(*at, ", ".join(levels), kind)
        sizes = [row["LUTs_estimated"] for row in own]
        said.append(f"{name} from {max(sizes):,} to {min(sizes):,} LUTs")
    picture.keys(210, 16, [(kind, True, name) for kind, name in zip(("ours", "third"), models, strict=True)])
    return picture, f"From -O0 to -O3 the shipped models shrink: {', '.join(said)}"


def hardware(result: Result) -> tuple[Picture, str]:
    models = list(dict.fromkeys(row["model"] for row in result["rows"]))
    height = 210
    picture = Picture(26 + height * len(models))
    picture.keys(44, 16, [("ours", False, "0 cycles"), ("ours", True, "pipelined"), ("peer", True, "others")])
    said = []
    for place, model in enumerate(models):
        rows = [row for row in result["rows"] if row["model"] == model]
        start, stop = _panel(picture, 22 + height * place, height, NAMES.get(model, model))
        luts, right = [row["xcup_LUT"] for row in rows], [row["test_%"] for row in rows]
        low, high = math.floor(min(right)), math.ceil(max(right))
        across = Axis(10, 20000, 44, WIDTH - 8, _ticks(10, 20000))
        up = Axis(low - 0.2, high + 0.2, start, stop, range(low, high + 1), log=False)
        picture.frame(across, up, "LUTs of an UltraScale+", "% of test rows right")
        points = [(across(row["xcup_LUT"]), up(row["test_%"]), row) for row in rows]
        for x, y, row in points:
            ours = row["design"].startswith("-O")
            picture.mark(x, y, "ours" if ours else "peer", not ours or row["latency"] > 0)
        shown: set[str] = set()
        for x, y, row in points:
            name = row["design"].partition(",")[0]
            if name not in shown:
                shown.add(name)
                picture.label(x, y, name, "ours" if name.startswith("-O") else "peer")
        ours, theirs = ([row for row in rows if row["design"].startswith("-O") is own] for own in (True, False))
        best, peer = (
            f"{least['xcup_LUT']:,} LUTs at {least['test_%']:.1f} %"
            for least in (min(some, key=lambda row: row["xcup_LUT"]) for some in (ours, theirs))
        )
        said.append(f"{model}: {best}, the smallest other design {peer}")
        assert min(luts) > across.low and max(luts) < across.high
    return picture, f"-O3 beside designs of other tools, {'; '.join(said)}"


BELOW = 5  # points of accuracy below the least accurate level or peer; the curve's picture ends there


def curve(result: Result) -> tuple[Picture, str]:
    named = [row for row in result["rows"] if not row.get("tried")]
    low, high = (math.floor(each(row["test_%"] for row in named)) for each in (min, max))
    rows = sorted((row for row in result["rows"] if row["test_%"] >= low - BELOW), key=lambda row: row["LUT"])
    luts = [row["LUT"] for row in rows]
    picture = Picture(270)
    across = Axis(luts[0] / 2, luts[-1] * 2, 44, WIDTH - 8, _ticks(luts[0] / 2, luts[-1] * 2))
    up = Axis(low - BELOW - 0.3, high + 1.3, 226, 40, range(low - BELOW, high + 2), log=False)
    picture.frame(across, up, "LUTs of an UltraScale+", "% of test rows right")
    picture.keys(176, 16, [("ours", True, "a level"), ("ours", False, "-O3 tried"), ("peer", True, "others")])
    points = [(across(row["LUT"]), up(row["test_%"]), row) for row in rows]
    picture.line([(x, y) for x, y, row in points if row["design"].startswith("-O")], "ours line")
    for x, y, row in points:
        picture.mark(x, y, "ours" if row["design"].startswith("-O") else "peer", not row.get("tried"))
    for x, y, row in points:
        if not row.get("tried"):
            picture.label(x, y, row["design"], "ours" if row["design"].startswith("-O") else "peer")
    said = [f"{row['design']} has {row['LUT']:,} LUTs and {row['test_%']:.1f} %" for row in named]
    return picture, f"LUTs and accuracy on test rows: {', '.join(said)}"


def compile_scale(result: Result) -> tuple[Picture, str]:
    rows = result["rows"]
    picture = Picture(260)
    most = max(row["seconds"] for row in rows)
    ticks = [10.0 * each for each in range(int(most // 10) + 2)]
    across = Axis(1000, 2e6, 44, WIDTH - 8, [1e4, 1e5, 1e6])
    up = Axis(0, ticks[-1], 216, 32, ticks, log=False)
    picture.frame(across, up, "nodes of the model", "seconds to the written files")
    names = (
        ("Verilog", "ours", True, "Verilog"),
        ("c", "third", True, "C"),
        ("clock", "ours", False, "Verilog for a clock"),
    )
    for case, kind, full, title in names:
        points = [(across(row["nodes"]), up(row["seconds"])) for row in rows if row["case"] == case]
        picture.line(points, f"{kind} line")
        for point in points:
            picture.mark(*point, kind, full)
        picture.label(*points[0], title, kind)
    code, logic = (max(row["nodes"] for row in rows if row["case"] == case) for case in ("c", "Verilog"))
    return picture, f"Models of up to {code:,} nodes to C, and {logic:,} to Verilog, in at most {most:.0f} seconds"


def firmware(result: Result) -> tuple[Picture, str]:
    own = [row for row in result["rows"] if row["cpu"] == "Cortex-M4F"]
    rows = [row for row in own if row["flash"] != "" and "max_leaf_nodes" not in row["options"]]
    models = list(dict.fromkeys(row["model"] for row in rows))
    height = 190
    picture = Picture(30 + height * math.ceil(len(models) / 2))
    picture.keys(4, 16, [("ours", True, "-O1"), ("ours", False, "-O0"), ("peer", True, "others, exact"),
                         ("peer", False, "others, not exact")])  # fmt: skip
    smaller = faster = 0
    for place, model in enumerate(models):
        own = [row for row in rows if row["model"] == model]
        left, top = 44 + 240 * (place % 2), 26 + height * (place // 2)
        across_values, up_values = ([row[key] for row in own] for key in ("instructions", "flash"))
        across = Axis(min(across_values) / 1.5, max(across_values) * 1.5, left, left + 188, ())
        up = Axis(min(up_values) / 1.5, max(up_values) * 1.5, top + 150, top + 40, ())
        across, up = (
            Axis(axis.low, axis.high, axis.start, axis.stop, _ticks(axis.low, axis.high)) for axis in (across, up)
        )
        trees, _, data = model.removeprefix("rf").partition("_")
        picture.text(left, top + 14, f"{trees} trees, {NAMES.get(data, data)}", "bold")
        picture.frame(across, up, "instructions a row", "bytes of flash")
        for row in sorted(own, key=lambda row: row["who"] == "forestc"):
            ours = row["who"] == "forestc"
            full = row["options"].startswith("-O1") if ours else row["exact"] == "yes"
            picture.mark(across(row["instructions"]), up(row["flash"]), "ours" if ours else "peer", full)
        mine, others = ([row for row in own if (row["who"] == "forestc") is is_ours] for is_ours in (True, False))
        smaller += min(row["flash"] for row in mine) < min(row["flash"] for row in others)
        faster += min(row["instructions"] for row in mine) < min(row["instructions"] for row in others)
    return picture, (
        f"Flash against instructions of {len(models)} forests on a Cortex-M4F: forestc, -O1 included, has the smallest "
        f"code of {smaller} and the fastest of {faster}"
    )


PICTURES: Mapping[str, Callable[[Result], tuple[Picture, str]]] = {
    draw.__name__: draw
    for draw in (
        shipped_models, hardware, curve, compile_scale, firmware,
    )
}  # fmt: skip


def drawn(name: str, known: Mapping[str, Result]) -> str:
    """Returns the SVG of a result. Raises KeyError for a result that has no picture."""
    picture, said = PICTURES[name](known[name])
    return picture.svg(said)


def linked(name: str, known: Mapping[str, Result], folder: str = "") -> str:
    """Returns the Markdown that shows a picture, with its alternative text. folder: leads from the page to
    docs/benchmarks."""
    _, said = PICTURES[name](known[name])
    return f"![{said}]({folder}pictures/{name}.svg)"


# Cards of the gallery for examples without a plot: input and output
CARDS = {
    "first_files": (("model.json",), ("train.csv", "test.csv")),
    "demo": (("XGBoost",), ("Verilog", "C header", "report")),
    "engine_digits": (("model 1", "model 2"), ("one engine",)),
    "hls4ml_forest": (("network", "forest"), ("hls4ml",)),
    "litex_stream": (("forest",), ("LiteX module",)),
    "train_models": (("rows",), ("XGBoost", "random forest")),
}
CARD_FOLDER = "images/cards"  # of docs


def card(name: str) -> str:
    """Returns the SVG of an example's card. Its colors are light: a dark page turns them around, as it does plots."""
    parts = []
    for column, (lines, kind) in enumerate(zip(CARDS[name], ("peer", "ours"), strict=True)):
        for place, line in enumerate(lines):
            x, y = 128 + 224 * column, 160 + 72 * (place - (len(lines) - 1) / 2)
            parts.append(f'<rect x="{x - 96}" y="{_n(y - 28)}" width="192" height="56" rx="8" fill="{LIGHT[kind]}"/>')
            parts.append(f'<text x="{x}" y="{_n(y + 9)}">{escape(line)}</text>')
    style = "text{font:26px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#fff;text-anchor:middle}"
    arrow = f'<path d="M228 152h12v-8l14 16l-14 16v-8h-12z" fill="{LIGHT["soft"]}"/>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 320" width="480" height="320">'
    page = '<rect width="480" height="320" fill="#fff"/>'
    return "\n".join([head, f"<style>{style}</style>", page, arrow, *parts, "</svg>"]) + "\n"
