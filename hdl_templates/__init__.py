"""Jinja2 templates of all files that forestc writes. They only loop and substitute; Python computes the rest."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment(folder: str, escaping: bool) -> Environment:
    return Environment(
        loader=PackageLoader("hdl_templates", folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=escaping,
    )


def render(template: str, **view: Any) -> str:
    """Returns the text of a template with the variables in `view`. Raises UndefinedError for a name that is not among
    them."""
    return _environment(".", False).get_template(template).render(**view)


def render_page(template: str, **view: Any) -> str:
    """Returns the text of a template in the folder `page`. HTML in variables is escaped unless it is marked as safe."""
    return _environment("page", True).get_template(template).render(**view)


def page_file(name: str) -> str:
    """Returns the text of a style sheet or script in the folder `page`."""
    return files("hdl_templates").joinpath("page", name).read_text(encoding="utf-8")
