"""All built pages in a real browser: nothing is cut at 1280 pixels, and at 400 no page scrolls sideways."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS, BUILT = ROOT / "docs", ROOT / "out" / "docs"
PICTURES = [DOCS / "flow.svg", *sorted((DOCS / "benchmarks" / "pictures").glob("*.svg"))]
LEAST_PAGES = 60

# Lists what is cut or sticks out, tabs opened. Where a screen is narrow, tables and code may scroll in their boxes.
CUT = """(narrow) => {
  const style = document.createElement("style");
  style.textContent = ".sd-tab-content { display: block !important }";
  document.head.append(style);
  const found = [], width = document.documentElement.clientWidth;
  const say = (what, has, room, element) =>
    found.push(`${what}: ${has} in ${room} pixels: ${(element.innerText || element.src || "").trim().slice(0, 60)}`);
  if (document.documentElement.scrollWidth > width) {
    say("page", document.documentElement.scrollWidth, width, document.body);
  }
  const main = document.querySelector("article") || document.body;
  const room = main.getBoundingClientRect();
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  for (const element of main.querySelectorAll("*")) {
    const style = getComputedStyle(element), name = element.tagName.toLowerCase();
    if (style.display === "none" || style.display === "inline" || element.clientWidth === 0) continue;
    const hidden = style.position === "absolute" || style.opacity === "0" || element.closest("svg, button");
    if (style.overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1 && !hidden) {
      if (!(narrow && scrolls(element))) say(name, element.scrollWidth, element.clientWidth, element);
    }
    const holds = ["p", "li", "td", "th", "dd", "dt", "figcaption"].includes(name) && style.overflowX === "visible";
    if (holds && !hidden && element.scrollWidth > element.clientWidth + 1) {
      if (!(narrow && element.closest(".table-wrapper"))) say(name, element.scrollWidth, element.clientWidth, element);
    }
    if (["table", "pre", "img", "figure", "svg", "object"].includes(name) && !hidden) {
      let box = element.parentElement;
      while (box !== main && !scrolls(box)) box = box.parentElement;
      const right = element.getBoundingClientRect().right;
      if (box === main && right > room.right + 7) say(name, Math.round(right), Math.round(room.right), element);
    }
  }
  return found;
}"""

# Lists texts of a picture that its edges cut.
CUT_TEXT = """() => {
  const box = document.documentElement.viewBox.baseVal, texts = [...document.querySelectorAll("text")];
  const out = (text) => text.getBBox().x < 0 || text.getBBox().x + text.getBBox().width > box.width
    || text.getBBox().y < 0 || text.getBBox().y + text.getBBox().height > box.height;
  return texts.length ? texts.filter(out).map((text) => text.textContent) : ["no text"];
}"""


@pytest.fixture
def view(chromium, need_tool):
    """Opens a file at a width, runs a script there, and fails on requests that leave this folder."""
    need_tool("chromium")
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: request.url.startswith("file:") or asked.append(request.url))

    def ask(path: Path, width: int, script: str) -> list[str]:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.absolute().as_uri())
        found = page.evaluate(script, width < 1000)
        assert not asked, f"{path} asks for {asked}"
        return found

    yield ask
    page.close()


@pytest.fixture
def pages(need_tool) -> list[Path]:
    """The pages as `make docs` builds them, which has little to do where it was run before."""
    need_tool("sphinx")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--builder", "html", str(DOCS), str(BUILT)]
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / ".building").open("w") as file:  # one worker builds, others wait
        fcntl = pytest.importorskip("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = sorted(BUILT.rglob("*.html"))
    assert len(found) >= LEAST_PAGES
    return found


def test_nothing_is_cut_on_any_page(pages, view):
    wide, narrow = (
        {str(page.relative_to(BUILT)): cut for page in pages if (cut := view(page, width, CUT))}
        for width in (1280, 400)
    )
    assert not wide and not narrow


def test_commands_have_a_button_to_copy_them_and_what_they_print_has_none(pages, view):
    count = """() => ["sh", "python", "text"].map((language) => {
      const blocks = [...document.querySelectorAll(`article div.highlight-${language}`)];
      return [blocks.length, blocks.filter((block) => block.querySelector("button.copybtn")).length];
    })"""
    commands, programs, printed = view(BUILT / "tutorials" / "fpga.html", 1280, count)
    assert commands[0] == commands[1] >= 5 and programs[0] == programs[1] >= 3
    assert printed[0] >= 5 and printed[1] == 0


def test_every_example_is_in_the_gallery_with_a_picture_of_its_own(pages):
    text = (BUILT / "gallery" / "index.html").read_text(encoding="utf-8")
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    shown = set(re.findall(r'src="\.\./_images/sphx_glr_(\w+)_thumb\.(?:svg|png)"', text))
    assert shown == examples
    plots = {path.stem for path in (ROOT / "examples").glob("plot_*.py")}
    drawn = {path.stem.removeprefix("sphx_glr_") for path in (BUILT / "_images").glob("sphx_glr_*_001.png")}
    assert drawn == {f"{plot}_001" for plot in plots} and len(plots) >= 6


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_no_text_of_a_picture_is_cut(picture, view):
    assert not view(picture, 1280, CUT_TEXT)


@pytest.mark.parametrize(
    ("inside", "wide", "narrow"),
    [
        ("<p>short</p>", False, False),
        ("<pre style='overflow-x:auto'>" + "x" * 300 + "</pre>", True, False),
        ("<pre>" + "x" * 300 + "</pre>", True, True),
        ("<div style='overflow-x:auto'><table><td>" + "x" * 300 + "</td></table></div>", True, False),
        ("<div style='overflow:hidden'><table><td>" + "x" * 300 + "</td></table></div>", True, True),
        ("<p><code>" + "x" * 300 + "</code></p>", True, True),
        ("<img src='x.svg' width='1400' height='10'>", True, True),
        ("<div class='sd-tab-content' style='display:none'><pre>" + "x" * 300 + "</pre></div>", True, True),
    ],
)
def test_what_is_cut_is_found(inside, wide, narrow, view, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><body style='margin:0'><article style='margin:20px'>{inside}</article>")
    assert [bool(view(path, width, CUT)) for width in (1280, 400)] == [wide, narrow]


def test_a_text_that_an_edge_cuts_is_found(view, tmp_path):
    head = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 60 30'>"
    for text, wrong in (("short", []), ("longer than that", ["longer than that"])):
        (tmp_path / "a.svg").write_text(f"{head}<text x='2' y='20' font-size='10'>{text}</text></svg>")
        assert view(tmp_path / "a.svg", 1280, CUT_TEXT) == wrong
