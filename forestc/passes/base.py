"""Defines the interface of passes, and their text form: `round-leaves{leaf_bits=4,change=0}`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from forestc.errors import ForestcError, ModelError, OptionError, known_names, opt
from forestc.forest.ir import Forest
from forestc.passes.promises import Promise
from forestc.passes.scorer import Scorer
from forestc.rows.batches import Rows


@dataclass(frozen=True)
class PassResult:
    """The result of a pass: a forest, promises, and figures for the report."""

    forest: Forest
    promises: tuple[Promise, ...]  # what the pass guarantees; the pipeline checks each promise
    report: dict[str, Any] = field(default_factory=dict)  # figures, and perhaps `note`, a sentence for the user


def most_changed(results: Iterable[PassResult]) -> float:
    """Returns how many decisions of the given rows passes may change together, by what they promise."""
    return sum(min(promise.most_changed for promise in result.promises) for result in results)


@runtime_checkable
class Pass(Protocol):
    """A step from one forest to another: a frozen dataclass whose fields are its options."""

    name: ClassVar[str]

    def run(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """Applies the pass. rows: rows that the pass may use, `Ranges` of the features, or None.
        scorer: scores forests on held-out rows; None without such rows."""


def required(scorer: Scorer | None, step: Pass) -> Scorer:
    """Returns the scorer. Raises OptionError if it is None."""
    if scorer is None:
        raise OptionError(
            "needs held-out rows",
            where=f"pass {step.name}",
            do=f"give {opt.held_out:FILE} or 0.2, or remove it from the passes",
        )
    return scorer


@runtime_checkable
class Refusing(Protocol):
    """A pass that can reject a model or its rows before any pass has run."""

    name: ClassVar[str]

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        """Raises an error if the pass can't work on this model or these rows. source: the model, or the forest that the
        pass gets."""


def refusal(step: Pass, source: Forest, rows: Rows | None, scorer: Scorer | None = None) -> str | None:
    """Returns the error text if a pass refuses a model or its rows; otherwise None."""
    if isinstance(step, Refusing):
        try:
            step.refuse(source, rows, scorer)
        except ForestcError as error:
            return error.what
    return None


class Memory(Protocol):
    """A store of arrays from earlier runs of passes. A pass must check the arrays that it gets back."""

    def recall(self, name: str) -> Mapping[str, NDArray[Any]] | None: ...

    def remember(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None: ...


@runtime_checkable
class Remembering(Pass, Protocol):
    """A pass that can resume from arrays of an earlier run. The result equals that of `run`."""

    def run_remembering(self, forest: Forest, rows: Rows | None, memory: Memory) -> PassResult: ...


def accepted(step: Refusing, forest: Forest, rows: Rows | None, scorer: Scorer | None) -> Rows:
    """Returns the rows if the pass accepts the forest and the rows. Raises an error if the pass refuses, or if the
    forest is not quantized."""
    if not forest.quantized:
        raise ModelError(
            "works on integer forests", where=f"pass {step.name}", do="put quantize-inputs,round-leaves before it"
        )
    step.refuse(forest, rows, scorer)
    assert rows is not None
    return rows


def need_words(step: Pass, forest: Forest) -> None:
    """Raises ModelError if the features of the forest are still floats."""
    if not forest.on_words:
        raise ModelError("works on words", where=f"pass {step.name}", do="put quantize-inputs before it")


def already_quantized(step: Pass) -> ModelError:
    """Returns the error for a quantized forest, given to a pass that takes forests of floats alone."""
    what = "the forest is already quantized"
    return ModelError(what, where=f"pass {step.name}", do="give the model that it was made of")


def print_pass(step: Pass) -> str:
    """Returns the pass as text for the option `-p`, without options that have their default value."""
    options = []
    for option in fields(step):  # type: ignore[arg-type]
        value = getattr(step, option.name)
        if value != option.default:
            options.append(f"{option.name}={value if isinstance(value, str) and _plain(value) else _json(value)}")
    return f"{step.name}{{{','.join(options)}}}" if options else step.name


def _plain(text: str) -> bool:
    return text != "" and not set(text) & set('{}[],="') and _value(text) == text


def _json(value: object) -> str:
    return "inf" if value == math.inf else json.dumps(value, separators=(",", ":"))


def _value(text: str) -> Any:
    if text == "inf":
        return math.inf
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_passes(text: str, table: Mapping[str, type[Pass]]) -> list[Pass]:
    """Returns a list of the passes in a text such as `simplify,round-leaves{leaf_bits=4}`. Raises OptionError."""
    passes: list[Pass] = []
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and text[end] not in ",{":
            end += 1
        name = text[at:end].strip()
        if name not in table:
            raise OptionError(f"unknown pass {name!r}", where=opt.passes, do=known_names(name, table))
        options: dict[str, Any] = {}
        if end < len(text) and text[end] == "{":
            options, end = _parse_options(text, end + 1, name)
        passes.append(_make(table[name], name, options))
        if end < len(text) and text[end] != ",":
            raise OptionError(
                f"can't read the passes at {text[end:][:20]!r}", where=opt.passes, do="separate passes by commas"
            )
        at = end + 1
    return passes


def _parse_options(text: str, at: int, name: str) -> tuple[dict[str, Any], int]:
    options: dict[str, Any] = {}
    decoder = json.JSONDecoder()
    while True:
        key, equals, _ = text[at:].partition("=")
        if not equals or "}" in key:
            if text[at : at + 1] == "}":
                return options, at + 1
            raise OptionError(
                f"can't read the options of {name} at {text[at:][:20]!r}", where=opt.passes, do="write {key=value,...}"
            )
        at += len(key) + 1
        if text[at : at + 1] in ("{", "[", '"'):
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                raise OptionError(
                    f"{name}: {key.strip()} is not readable JSON", where=opt.passes, do="put strings in double quotes"
                ) from None
        else:
            end = at
            while end < len(text) and text[end] not in ",}":
                end += 1
            value, at = _value(text[at:end].strip()), end
        if key.strip() in options:
            raise OptionError(f"{name}: option {key.strip()!r} is given twice", where=opt.passes, do="remove one")
        options[key.strip()] = value
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "}":
            raise OptionError(f"the options of {name} have no end", where=opt.passes, do="close them with }")


def _make(kind: type[Pass], name: str, options: dict[str, Any]) -> Pass:
    names = [option.name for option in fields(kind)]  # type: ignore[arg-type]
    for key in options:
        if key not in names:
            raise OptionError(f"has no option {key!r}", where=f"pass {name}", do=f"known: {', '.join(names) or 'none'}")
    return kind(**options)
