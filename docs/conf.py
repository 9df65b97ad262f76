"""How Sphinx builds these pages: `make docs` writes them to out/docs. Nothing is fetched while they are built."""

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from forestc.system.version import __version__  # noqa: E402

project = "forestc"
release = version = __version__
extensions = ["myst_parser"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

smartquotes = False  # --option must stay two dashes

html_theme = "furo"
html_title = f"forestc {release}"
html_copy_source = False
html_show_sphinx = False


def copy_notes(app: Any) -> None:
    """benchmarks/NOTES.md lies outside of these pages: they get a copy, which git ignores."""
    text = (HERE.parent / "benchmarks" / "NOTES.md").read_text(encoding="utf-8").replace("](../docs/", "](../")
    copy = HERE / "benchmarks" / "notes.md"
    if not copy.is_file() or copy.read_text(encoding="utf-8") != text:
        copy.write_text(text, encoding="utf-8")


def link_notes(app: Any, name: str, source: list[str]) -> None:
    """Links to the notes lead to the copy."""
    up = "../" * name.count("/")
    source[0] = re.sub(r"\]\((?:\.\./)+benchmarks/NOTES\.md", f"]({up}benchmarks/notes.md", source[0])


def contents(app: Any, name: str, source: list[str]) -> None:
    """Adds Sphinx's tables of contents to the index: a hidden one for each heading whose list links to pages. So the
    index is plain Markdown, which reads in the repository as well."""
    if name != "index":
        return
    for section in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        pages = re.findall(r"^- \[[^\]]*\]\(([\w/-]+)\.md\)$", text, re.MULTILINE)
        source[0] += "\n```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Any) -> None:
    app.connect("builder-inited", copy_notes)
    app.connect("source-read", link_notes)
    app.connect("source-read", contents)
