"""The targets of other programming languages: a row and a template each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from forestc.backends.base import Code, Runner, Target
from forestc.backends.languages import go, java, javascript, python, rust, st, wasm
from forestc.backends.languages.language import Language

LANGUAGES = {one.LANGUAGE.name: one.LANGUAGE for one in (python, javascript, rust, go, java, st)}


def _code(language: Language) -> Code:
    from forestc.backends.languages.engine import LanguageEngine
    from forestc.backends.languages.files import refusals, written

    engines = {name: partial(LanguageEngine, language, name) for name in language.runs}
    return Code(partial(written, language), engines, refusals(language))


def _target(language: Language) -> Target:
    names = ", ".join(f"`{language.name}/{path.format(p='NAME')}`" for path, _ in language.files.values())
    code: Callable[[], Code] = partial(_code, language)
    return Target(
        name=language.name,
        help=language.help,
        layout=((names, language.content),),
        roles=lambda *_: tuple(language.files),
        code=code,
        runners=tuple(
            Runner(name, language.name, f"runs the file of the target {language.name}", run.needs, run.sample)
            for name, run in language.runs.items()
        ),
        lowered=False,
    )


TARGETS = (*map(_target, LANGUAGES.values()), wasm.TARGET)
