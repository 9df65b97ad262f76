"""Writes the files of a language."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from forestc.backends.base import Artifact, artifacts
from forestc.backends.c.types import labels_are_text
from forestc.backends.languages.core import VALUE_ERROR, Core, core_of, integer_bits
from forestc.backends.languages.language import Language
from forestc.backends.languages.syntax import PUBLIC, inlined, printed, quoted
from forestc.backends.names import for_comments
from forestc.errors import opt
from forestc.forest.ir import Forest
from forestc.forest.refusals import Refusal
from forestc.forest.words import word_note
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source


def written(language: Language, source: Source, *_: object) -> list[Artifact]:
    """Returns the files of a design in a language."""
    p, texts = language.named(source.forest.name), rendered(language, source.forest)
    return artifacts(
        language.name, {role: (path.format(p=p), texts[role]) for role, (path, _) in language.files.items()}
    )


def rendered(language: Language, forest: Forest) -> dict[str, str]:
    """Returns the texts of a forest's files in a language, by role."""
    view = view_of(language, forest)
    return {role: render(template, **view) for role, (_, template) in language.files.items()}


def view_of(language: Language, forest: Forest) -> dict[str, Any]:
    """Returns the variables of a language's templates."""
    core, syntax, variables = core_of(forest, language.functions), language.syntax, dict[str, str]()
    if language.functions == PUBLIC:
        functions = printed(core.functions, core.tables, syntax)
    else:
        variables, functions = inlined(core.functions, core.tables, syntax)
    shown = "probabilities" if forest.decides else "values"
    view = {
        "p": language.named(forest.name),
        "head": "\n".join(
            [f"{len(forest.trees)} trees, {forest.n_nodes} nodes. Written by forestc.", *_notes(forest, core)]
        ),
        "core": core,
        "tables": "\n".join(map(syntax.table, core.tables)),
        "functions": functions,
        "variables": variables,
        "n_inputs": max(1, len(forest.features)),
        "labels": [_labels(language, list(part.classes)) for part in forest.targets if part.classes],
        "text": [labels_are_text(part) for part in forest.targets if part.classes],
        "features": [quoted(feature.name, language.escape) for feature in forest.features],
        "words": _words(forest),
        "n_scores": forest.n_scores,
        "values": shown if core.values else "",
    }
    return language.view(forest, view)


def _labels(language: Language, classes: list[Any]) -> list[str]:
    numbers = all(isinstance(label, int) and abs(label) < 1 << 53 for label in classes)
    return [str(int(label)) if numbers else quoted(label, language.escape) for label in classes]


def _words(forest: Forest) -> list[str]:
    return [f"x[{index}] {for_comments(f)}: {word_note(forest, index)}" for index, f in enumerate(forest.features)]


def _notes(forest: Forest, core: Core) -> list[str]:
    """Returns lines that say what the functions take and give."""
    scales = ", ".join(repr(float(part.scale)) for part in forest.targets)
    error = [f"Probabilities and values are off from the model's link of the scores by at most {VALUE_ERROR:g}, or"]
    error += ["by this part of them."]
    return [
        f"words makes the words x of a row of {forest.columns} columns, as the model was trained with them:",
        *_words(forest),
        f"scores gives integers, in units of {scales}.",
        *(["predict gives the index of the class in LABELS, of each target."] if forest.decides else []),
        *(error if core.values else []),
    ]


def refusals(language: Language) -> tuple[Refusal, ...]:
    """Returns the forests that a language does not take."""
    if language.widest >= 64:
        return ()
    found = partial(_wider, language.widest)
    do = f"give fewer input bits, or {opt.passes} with round-leaves{{leaf_bits=16}}"
    return (Refusal(f"words or scores of more than {language.widest} bits", found, do),)


def _wider(bits: int, forest: Forest) -> bool:
    return integer_bits(forest) > bits
