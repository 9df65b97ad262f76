"""Makes the form in which readers of a design's page type a row; the design's own JavaScript answers."""

from __future__ import annotations

import json

from forestc.backends.languages.files import refusals, rendered
from forestc.backends.languages.javascript import LANGUAGE
from forestc.forest.ir import Forest
from forestc.report.page.blocks import Block, Form
from hdl_templates import page_file

MOST_COLUMNS, MOST_BYTES = 1000, 1_000_000  # limit the rows that readers type, and what the page takes for them


def form_blocks(forest: Forest) -> list[Block]:
    """Returns the form; nothing for rows that nobody types, a large forest, or one that JavaScript does not take."""
    if forest.columns > MOST_COLUMNS or any(refusal.found(forest) for refusal in refusals(LANGUAGE)):
        return []
    design = rendered(LANGUAGE, forest)["javascript"].replace("export ", "")
    if len(design) > MOST_BYTES:
        return []
    read = {
        own.column: {
            "name": own.name or f"column {own.column}", "texts": own.labels, "other": own.other_text,
            "missing": own.missing,
        }
        for own in forest.features
    }  # fmt: skip
    form = page_file("form.js").replace("COLUMNS_READ", json.dumps(read))
    script = f'"use strict";\n(function () {{\n{design}{form}}})();\n'.replace("</", "<\\/").replace("<!--", "<\\!--")
    names = [""] * forest.columns
    for feature in forest.features:
        names[feature.column] = feature.name
    return [Form(", ".join(name or "any" for name in names), script)]
