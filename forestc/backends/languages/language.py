"""A language: its syntax, its files, and how its programs are run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forestc.backends.languages.syntax import PUBLIC, Syntax
from forestc.backends.names import identifier
from forestc.forest.ir import Forest

View = dict[str, Any]


@dataclass(frozen=True)
class Runs:
    """How `check` runs the files of a language."""

    needs: str  # in words
    programs: tuple[str, ...]  # that must be on the PATH; the first says its version
    drivers: Mapping[str, str]  # files that read rows and write results, and their templates
    build: tuple[tuple[str, ...], ...]  # commands that compile, with {p} for the model's name
    run: tuple[str, ...]
    packages: tuple[str, ...] = ()  # of Python, that must be installed
    sample: int = 0  # rows of each origin that run by default; 0 for all


@dataclass(frozen=True, kw_only=True)
class Language:
    """A row of the table of languages."""

    name: str  # of the target, its folder and its file's role
    help: str
    files: Mapping[str, tuple[str, str]]  # by role: name of the file, with {p} for the model's name, and its template
    syntax: Syntax
    taken: str = ""  # words; no file may have these names, in lower case
    escape: Callable[[str], str]  # writes a character that is not plain within a text
    functions: tuple[str, ...] = PUBLIC  # those that a file has; others than all are one block
    widest: int = 64  # bits of the widest integer, with its sign
    runs: Mapping[str, Runs] = field(default_factory=dict)  # by engine
    module: tuple[str, ...] = ()  # arguments of zig that make the language's file {p}.wasm, if it has one
    view: Callable[[Forest, View], View] = lambda _, view: view  # completes the variables of templates

    def named(self, model: str) -> str:
        """Returns a model's name as an identifier of the language, which begins the names of files."""
        name = identifier(model)
        return f"m_{name}" if name.lower() in self.taken.split() else name
