"""The targets of other programming languages: a row and a template each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from forestc.backends.base import Code, Runner, Target
from forestc.backends.languages import go, java, javascript, python, rust, st, wasm
from forestc.backends.languages.language import Language

LANGUAGES = {one.LANGUAGE.name: one.LANGUAGE for one in (python, javascript, rust, go, java, st, wasm)}


def _code(language: Language) -> Code:
    from forestc.backends.languages.engine import LanguageEngine, built, need_zig
    from forestc.backends.languages.files import refusals, written

    code = Code(
        partial(written, language),
        {name: partial(LanguageEngine, language, name) for name in language.runs},
        refusals(language),
    )
    return replace(code, tools=need_zig, built=partial(built, language.module)) if language.module else code


def _target(language: Language) -> Target:
    paths = [path for path, _ in language.files.values()] + ["{p}.wasm"] * bool(language.module)
    names = ", ".join(f"`{language.name}/{path.format(p='NAME')}`" for path in paths)
    return Target(
        name=language.name,
        help=language.help,
        layout=((names, f"{language.help}: see [Other languages](../howto/languages.md)"),),
        roles=lambda *_: tuple(language.files),
        code=partial(_code, language),
        runners=tuple(
            Runner(name, language.name, f"runs the file of the target {language.name}", run.needs, run.sample)
            for name, run in language.runs.items()
        ),
        lowered=False,
    )


TARGETS = tuple(map(_target, LANGUAGES.values()))
