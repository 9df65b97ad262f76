"""How Sphinx builds these pages: `make docs` writes them to build/docs. Nothing is fetched while they are built."""

import ast
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from forestc.system.version import __version__  # noqa: E402

project = "forestc"
release = version = __version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]

autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the docstrings say what arguments are
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
default_role = "code"
# Types in docstrings are words, of which some are attributes, too.
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

smartquotes = False  # --option must stay two dashes

html_theme = "furo"
html_title = f"forestc {release}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]

# Commands and programs have a button to copy them; what they print has none.
copybutton_selector = ", ".join(
    f"div.highlight-{name} pre" for name in ("sh", "python", "Python", "c", "verilog", "vhdl")
)
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Examples named plot_* are run while the pages are built, the others are shown. docs/gallery keeps what they gave until
# their text changes, or `make clean`.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "_gallery.Order",
    "reset_modules": ("matplotlib", "_gallery.style"),
    "abort_on_example_error": True,
    "notebook_extensions": set(),
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (480, 320),
    "min_reported_time": 10**6,  # seconds: no time of this machine on any page
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
}
# firmware_qemu/demo.py is no part of the gallery
suppress_warnings = ["sphinx_gallery.duplicate_filename", "ref.python"]

# Files outside of these pages, with the page for each.
OUTSIDE = {
    "benchmarks/NOTES.md": "benchmarks/notes.md",
    "examples/README.rst": "gallery/index.rst",
    "forestc/cli/verbs.py": "reference/command-line.md",
}
COMMAND = re.compile(
    r"(?:[A-Z]+=\S+ )?(?:forestc|pip|python|make|cd|diff|yosys|iverilog|ghdl|v\+\+|vitis\S+|uvx|docker) "
)
NUMBER = re.compile(r"[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?")
NO_NUMBER = ("", "-", "\u2013", "none")  # stands for a missing number in a column of numbers


def make_pages(app: Any) -> None:
    """Copies benchmarks/NOTES.md into these pages, and writes the page of the command line; git ignores both."""
    from _generate import commands_page

    notes = (HERE.parent / "benchmarks" / "NOTES.md").read_text(encoding="utf-8").replace("](../docs/", "](../")
    for name, text in {"benchmarks/notes.md": notes, "reference/command-line.md": commands_page()}.items():
        page = HERE / name
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def make_live_design(app: Any) -> None:
    """Writes the page of a live design; git ignores it."""
    from _live import live_design, live_page

    (HERE / "_static" / "live.html").write_text(live_page(live_design()), encoding="utf-8")


def show_live_design(app: Any, name: str, source: list[str]) -> None:
    """Puts the live design in the place of `<!-- live design -->`, which the repository does not show."""
    frame = '<iframe class="live" src="_static/live.html" title="A design in your browser"></iframe>'
    source[0] = source[0].replace("<!-- live design -->", frame)


def link_outside(app: Any, name: str, source: list[str]) -> None:
    """Leads links to files outside of these pages to the pages that stand for them."""
    up = "../" * name.count("/")
    for file, page in OUTSIDE.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(file)}", f"]({up}{page}", source[0])


def contents(app: Any, name: str, source: list[str]) -> None:
    """Adds Sphinx's tables of contents to the index: a hidden one for each heading whose list links to pages. So the
    index is plain Markdown, which reads in the repository as well."""
    if name != "index":
        return
    for section in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        pages = re.findall(r"^- \[[^\]]*\]\(([\w/-]+)\.(?:md|rst)\)$", text, re.MULTILINE)
        source[0] += "\n```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(pages) + "\n```\n"


def tabs(app: Any, name: str, source: list[str]) -> None:
    """Makes tabs of what stands between `<!-- tabs -->` and `<!-- end of tabs -->`: one of each line `**Title**` and
    what follows it. In the repository these parts stand one below the other."""

    def made(match: re.Match[str]) -> str:
        _, *parts = re.split(r"^\*\*(.+)\*\*$", match[1], flags=re.MULTILINE)
        items = [
            f"::::{{tab-item}} {title}\n:sync: {title}\n\n{text.strip(chr(10))}\n::::\n"
            for title, text in zip(parts[::2], parts[1::2], strict=True)
        ]
        return ":::::{tab-set}\n" + "\n".join(items) + ":::::"

    source[0] = re.sub(r"^<!-- tabs -->\n(.*?)^<!-- end of tabs -->", made, source[0], flags=re.DOTALL | re.MULTILINE)


def name_languages(app: Any, doctree: nodes.document) -> None:
    """Sets the language of indented code: commands, Python, or text."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") in (None, "default", "none"):
            block["language"] = _language(block.astext())


def _language(text: str) -> str:
    if COMMAND.match(text):
        return "sh"
    try:
        return "python" if ast.parse(text).body and re.search(r"[=(]|^import ", text) else "text"
    except SyntaxError:
        return "text"


def align_numbers(app: Any, doctree: nodes.document) -> None:
    """Gives the class `number` to the cells of columns of numbers alone; CSS sets it at the right."""
    for table in doctree.findall(nodes.tgroup):
        lines = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        heads = sum(len(list(head.findall(nodes.row))) for head in table.findall(nodes.thead))
        for column in zip(*lines, strict=False):
            texts = [cell.astext().strip() for cell in column[heads:]]
            if any(map(NUMBER.fullmatch, texts)) and all(NUMBER.fullmatch(text) or text in NO_NUMBER for text in texts):
                for cell in column:
                    cell["classes"].append("number")


def mark_pictures(app: Any, doctree: nodes.document) -> None:
    """Gives the class `result` to the pictures of results and of the flow; CSS sets its width."""
    for image in doctree.findall(nodes.image):
        if "pictures/" in image["uri"] or image["uri"].endswith("flow.svg"):
            image["classes"].append("result")


def leave_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leaves out members of public classes that come from scikit-learn or from Python."""
    maker = getattr(thing, "fget", None) or getattr(thing, "func", thing)  # of a property, or a cached one
    return None if str(getattr(maker, "__module__", "")).startswith("forestc.") else True


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", leave_out)
    for of_build in (make_pages, make_live_design):
        app.connect("builder-inited", of_build)
    for of_text in (link_outside, contents, tabs, show_live_design):
        app.connect("source-read", of_text)
    for of_nodes in (name_languages, align_numbers, mark_pictures):
        app.connect("doctree-read", of_nodes)
