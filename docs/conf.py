"""How Sphinx builds these pages: `make docs` writes them to out/docs. Nothing is fetched while they are built."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import forestc  # noqa: E402

project = "forestc"
release = version = forestc.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "_generate"]
exclude_patterns = ["generated/tables"]  # included by other pages
default_role = "code"  # docstrings write `name` as Markdown does

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # docstrings say what arguments are
# Types of other libraries: no inventories are fetched to link to.
nitpick_ignore_regex = [("py:.*", r"(?!forestc).*"), ("py:.*", r"forestc\.(predictor|estimators)\..*")]

smartquotes = False  # --option must stay two dashes

html_theme = "furo"
html_title = f"forestc {release}"
html_copy_source = False
html_show_sphinx = False
