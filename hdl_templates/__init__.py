"""Jinja2 templates of everything forestc writes. They loop and substitute; Python computes the rest."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("hdl_templates", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, **view: Any) -> str:
    """The template's text with the view filled in; an undefined name is an error."""
    return _environment().get_template(template).render(**view)
