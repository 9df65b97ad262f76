"""All built pages in a real browser: nothing is cut at 1280 pixels, and at 400 no page scrolls sideways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS, BUILT = ROOT / "docs", ROOT / "build" / "docs"
LEAST_PAGES = 60
pytestmark = pytest.mark.long

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
