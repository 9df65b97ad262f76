"""Jinja2 templates of everything forestc writes. They loop and substitute; Python computes the rest."""

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
    """The template's text with the view filled in; an undefined name is an error."""
    return _environment(".", False).get_template(template).render(**view)


def render_page(template: str, **view: Any) -> str:
    """The same for a template of HTML, in which every text of the view is escaped that is not markup."""
    return _environment("page", True).get_template(template).render(**view)


def page_file(name: str) -> str:
    """A style sheet or a script of pages, as it is."""
    return files("hdl_templates").joinpath("page", name).read_text(encoding="utf-8")
