"""What docs/conf.py tells sphinx-gallery by name: the order of the examples, and how their plots look."""

from __future__ import annotations

from typing import Any

PLOTS = "levels boundary words latency layouts activity inputs front"
PAPERS = "rules sharing pruning factorization network"
FIRST = (
    *(f"plot_{name}.py" for name in PLOTS.split()),
    *(f"plot_papers_{name}.py" for name in PAPERS.split()),
    "first_files.py",
    "demo.py",
)


class Order:
    """Sorts examples: FIRST in this order, then the others by name."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __call__(self, name: str) -> tuple[int, str]:
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def style(gallery_conf: dict[str, Any], name: str) -> None:
    """Sets matplotlib's defaults before each example: size, resolution, colors that color-blind readers tell apart."""
    import matplotlib
    from cycler import cycler

    matplotlib.rcParams.update(
        {
            "figure.figsize": (6.4, 4.0),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": cycler(color=["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "font.size": 11,
            "savefig.bbox": "tight",
        }
    )
