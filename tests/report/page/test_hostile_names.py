"""Names from models, rows and studies can't act in a page, wherever they stand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from made_studies import GOALS
from markupsafe import Markup
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.commands.report import report
from forestc.errors import InternalError
from forestc.exploration.study import Score, Trial, write_request, write_trial
from forestc.report.page.assembly import _json
from forestc.report.page.charts import checked_svg

HOSTILE = [
    "</script><img src=x onerror=alert(1)>", "<img src=x onerror=alert(2)>", "\"'><svg onload=alert(3)>", "<!--",
    "]]><script>alert(4)</script>", "{{7*7}}{% raw %}", "javascript:alert(5)", "datum.x", "a'\"b\\", "&lt;b&gt;",
    "\u2028\u2029", "a" * 300, "\u202eevil", "\x00\x1b[31m",
]  # fmt: skip


def page_acts(page):
    """What a hostile name would have made."""
    return page.evaluate(
        "document.querySelectorAll('img, iframe, object, script:not([type]) ~ svg').length"
    ) or page.evaluate(
        "Array.from(document.querySelectorAll('*')).filter(one => Array.from(one.attributes).some("
        "each => each.name.startsWith('on') || /^\\s*javascript:/i.test(each.value))).length"
    )


def test_names_of_models_do_not_act(visit, tmp_path):
    y = np.arange(300) % 3
    X = np.random.default_rng(0).normal(size=(300, len(HOSTILE))) + 0.5 * y[:, None]
    labels = np.array(["</script><img src=x onerror=alert(6)>", "<b>b</b>", "c'\");alert(7)//"])[y]
    frame = pd.DataFrame(X, columns=HOSTILE)
    model = RandomForestClassifier(6, max_depth=4, random_state=0).fit(frame, labels)
    done = forestc.compile(
        model, frame, tmp_path / "<b>out</b>", label=labels, targets="verilog,c", latency=1, cpu="avr",
        name="</title></script><img src=x onerror=alert(8)>",
    )  # fmt: skip
    frame.assign(y=labels).to_parquet(tmp_path / "<i>rows.parquet")
    out = tmp_path / "page.html"
    report(done.design.folder, out, rows=tmp_path / "<i>rows.parquet", label="y")
    with visit(out) as page:
        assert not page_acts(page)
        assert page.locator(".live svg").count() == page.locator("[data-chart]").count() == 5
        assert page.locator("h1").text_content() == "</title></script><img src=x onerror=alert(8)>"
        shown = page.locator("section#features tbody th").all_text_contents()
        assert {HOSTILE[0], HOSTILE[2], HOSTILE[4], HOSTILE[9]} <= set(shown)
        cell = page.locator("section#accuracy .live .mark-rect path").first
        cell.hover(force=True)
        tooltip = page.locator("#vg-tooltip-element.visible")
        assert "<img" in tooltip.text_content() and page.locator("#vg-tooltip-element img").count() == 0
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><html data-ready=yes><meta charset=utf-8>{done.design._repr_html_()}")
    with visit(notebook) as page:
        assert not page_acts(page) and page.locator("svg").count() == 2


def test_names_of_studies_do_not_act(visit, tmp_path):
    folder = tmp_path / "study"
    asked = {key: HOSTILE[place] for place, key in enumerate(("command", "source", "rows", "device"))}
    asked["versions"] = {HOSTILE[4]: HOSTILE[4]}
    write_request(folder, GOALS[:2], (), asked)
    rng = np.random.default_rng(0)
    for number in range(40):
        lut, right = float(rng.integers(10, 1000)), float(rng.random())
        options = {name: HOSTILE[int(rng.integers(len(HOSTILE)))] for name in HOSTILE[:8]}
        found = {"figures": {"estimate": {"lut": lut}}, "validation": Score(right, 0.01, 100)}
        state = {"state": "failed"} if number % 5 == 0 else {"state": "complete", **found}
        write_trial(folder, Trial(number, options=options, reason=HOSTILE[number % 8], command=HOSTILE[1], **state))
    peers = tmp_path / "peers.json"
    peers.write_text(json.dumps([{"name": name, "lut": 100, "accuracy": 0.5} for name in HOSTILE[:8]]))
    report(folder, tmp_path / "study.html", peers=peers)
    with visit(tmp_path / "study.html") as page:
        assert not page_acts(page) and page.locator(".live svg").count() == 2
        assert page.locator("h1").text_content() == HOSTILE[1]
        assert HOSTILE[0] in page.locator("section#front").inner_text()
        assert page.locator("section#trials tbody tr").count() == 40


def test_what_could_act_is_no_chart():
    for text in (
        "<svg><script>1</script></svg>", "<svg onload='1'/>", "<svg><a href='x'/></svg>",
        "<svg xmlns:x='y'><g x:href='javascript:1'/></svg>", "<svg><foreignObject/></svg>", "<svg style='a'/>",
    ):  # fmt: skip
        with pytest.raises(InternalError, match="a chart holds"):
            checked_svg(text)
    assert checked_svg("<svg><g><path d=''/></g></svg>") == Markup("<svg><g><path d=''/></g></svg>")
    output = str(_json({"</script>": "\u2028<!--&"}))
    assert json.loads(output) == {"</script>": "\u2028<!--&"} and not set("<>&\u2028") & set(output)
