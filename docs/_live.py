"""Makes the page of a design that answers rows in the reader's browser; the first page shows it in a frame."""

from __future__ import annotations

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.forest.ir import Forest
from forestc.report.page.assembly import html
from forestc.report.page.blocks import Page, Section
from forestc.report.page.form import form_blocks

FLOWER = "5.9,3,5.1,1.8"


def live_design() -> Forest:
    """Returns the integer forest of five trees on iris."""
    flowers = load_iris(as_frame=True)
    names = {name: name.removesuffix(" (cm)") for name in flowers.data}
    X, species = flowers.data.rename(columns=names), flowers.target_names[flowers.target]
    return forestc.quantize(RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, species), X)


def live_page(forest: Forest) -> str:
    """Returns the page's HTML."""
    lead = f"Type a flower's sizes in cm, such as {FLOWER}: this page holds the design as JavaScript."
    return html(
        Page("a design in your browser", "Iris", lead, (Section("live", "Try a row", (*form_blocks(forest),)),))
    )
