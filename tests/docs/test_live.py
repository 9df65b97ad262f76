"""The design that the documentation's first page shows answers as the evaluator does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import forestc


@pytest.fixture
def page(chromium, need_tool):
    need_tool("chromium")
    page = chromium.new_page()
    yield page
    page.close()


def test_the_live_design_answers_as_the_evaluator(page, tmp_path, monkeypatch, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath / "docs"))
    from _live import FLOWER, live_design, live_page

    forest = live_design()
    (tmp_path / "live.html").write_text(live_page(forest), encoding="utf-8")
    page.goto((tmp_path / "live.html").as_uri())
    field, answer = page.get_by_role("textbox", name="A row"), page.locator("#answer")
    typed = np.array(FLOWER.split(","), np.float64)
    for row in (typed, *load_iris().data[::15]):
        field.click()
        field.fill(",".join(map(repr, row.tolist())))
        said = dict(line.split(" ", 1) for line in answer.text_content().splitlines())
        assert said["class"] == forestc.evaluate(forest, row[None]).decision[0]
