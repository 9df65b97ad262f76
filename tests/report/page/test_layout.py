"""Tests pages on wide and narrow screens and on paper."""

from __future__ import annotations

import re

import pytest

WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 400, "height": 800}

# This script finds words of more than one line: the rectangles of a word's range, in the page's text and outside of
# scrolled code.
BROKEN = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (node.parentElement.closest("script, style, pre, svg, .skip, .command")) continue;
    for (const word of node.textContent.matchAll(/[A-Za-z]{2,}/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set(Array.from(range.getClientRects(), (box) => Math.round(box.top)));
      if (lines.size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
# This script returns the smallest height of letters in visible charts, in pixels of the screen.
SMALLEST = """() => Math.min(...Array.from(document.querySelectorAll("figure svg text"))
  .filter((text) => text.getClientRects().length)
  .map((text) => [parseFloat(getComputedStyle(text).fontSize), text.getScreenCTM()])
  .map(([size, drawn]) => size * Math.hypot(drawn.a, drawn.b)))"""
SILENT = """() => Array.from(document.querySelectorAll(".scroll"))
  .filter((place) => place.scrollWidth > place.clientWidth + 1)
  .filter((place) => !getComputedStyle(place, "::before").content.includes("scrolls sideways")).length"""
# This script returns, by section, the share of the page's width that its widest block or row of blocks reaches.
REACHED = """() => Array.from(document.querySelectorAll("section"), (section) => {
  const whole = section.getBoundingClientRect();
  const blocks = Array.from(section.querySelectorAll(".blocks > figure, .blocks > .table, .blocks > .block, dl"));
  const ends = blocks.map((block) => block.getBoundingClientRect().right);
  return [section.id, ends.length ? (Math.max(...ends) - whole.left) / whole.width : 1];
})"""


@pytest.fixture(params=["design_file", "study_file"])
def page_file(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_narrow_page_is_readable(visit, page_file, scripts):
    with visit(page_file, viewport=NARROW, java_script_enabled=scripts) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.evaluate(SMALLEST) >= 9
        assert page.evaluate(BROKEN) == []
        if scripts:
            assert page.locator(".scroll.more").count() > 0 and page.evaluate(SILENT) == 0


def test_the_width_is_used(visit, page_file):
    with visit(page_file, viewport=WIDE) as page:
        reached, short = dict(page.evaluate(REACHED)), ("failures", "model", "firmware")  # sections of small tables
        assert {name: part for name, part in reached.items() if part < 0.6 and name not in short} == {}
        assert page.evaluate("document.documentElement.scrollWidth") <= 1400 and page.evaluate(BROKEN) == []


def test_paper_keeps_colors_and_headings_with_what_follows(visit, page_file, tmp_path):
    with visit(page_file) as page:
        page.emulate_media(media="print")
        for key in page.locator(".legend span").all():
            assert key.evaluate("one => getComputedStyle(one).printColorAdjust") == "exact"
        heads = page.locator("h2, figcaption, caption")
        assert set(heads.evaluate_all("all => all.map(one => getComputedStyle(one).breakAfter)")) == {"avoid"}
        assert page.locator(".command button:visible, nav:visible, input:visible").count() == 0
        assert page.evaluate(SMALLEST) >= 7
        page.pdf(path=tmp_path / "page.pdf", format="A4", outline=True, tagged=True)
    pdf = (tmp_path / "page.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) > 1
    assert len(pdf) < 3_000_000
