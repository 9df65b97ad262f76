"""Options as fields of frozen dataclasses.

A field holds an option's name in Python, its type and its default; its metadata, an `Option`, holds the flag, the help
and the rest. The command line, the keywords of Python, the record in the manifest, its JSON Schema and the reference
documentation are all made from these. A field without an `Option` is for Python alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

AN_OBJECT = "given in Python"  # stands in records for values that no file or text names
FILES = ("FILE", "DIR", "MODEL", "MODEL|DIR", "DIR|STUDY", "[MODEL]")  # metavars of paths
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


@dataclass(frozen=True)
class KeyedFlag:
    """A flag whose value sets several options: `--c layout=nodes,values=q15`. Their own flags are understood, too."""

    flag: str
    help: str


@dataclass(frozen=True)
class Option:
    """What a field does not say of its option.

    flags: on the command line, the one that records use first; none for a positional argument. help: for the command
    line and the documentation. metavar: what stands for the value; those of FILES are paths. kind: of the value on the
    command line, where the field's annotation has several. least: the smallest number. listed: several texts, on the
    command line separated by commas. repeated: the flag is given once for each value. needed: whether the command line
    requires the option, where that is not as in Python. recorded: whether manifests keep it. key: its name there, if
    not the field's. schema: JSON Schema of the recorded value, where the annotation does not give it. group: the
    dataclass of further options, keys of the flag. within: the flag of which the option is a key.
    takes_rest: as a key it takes the rest of the text, commas and all.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    kind: type | None = None
    least: float | None = None
    listed: bool = False
    repeated: bool = False
    needed: bool | None = None
    recorded: bool = True
    key: str = ""
    schema: Mapping[str, Any] | None = None
    group: Any = None
    within: KeyedFlag | None = None
    takes_rest: bool = False


def argument(metavar: str, help: str) -> dict[str, Option]:
    """Metadata of a positional argument."""
    return {"option": Option((), help, metavar, recorded=False)}


def flag(flags: str, help: str, metavar: str = "", **more: Any) -> dict[str, Option]:
    """Metadata of an option. flags: separated by blanks."""
    return {"option": Option(tuple(flags.split()), help, metavar, **more)}


def option(default: object, flags: str, help: str, metavar: str = "", **more: Any) -> Any:
    """A field with a default. A switch whose default is True is turned off by its flag."""
    return field(default=default, metadata=flag(flags, help, metavar, **more))


def options_of(kind: Any) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of a dataclass that the command line has, in their order."""
    return ((entry, entry.metadata["option"]) for entry in fields(kind) if "option" in entry.metadata)


@dataclass(frozen=True)
class Group:
    """The options of a flag, by key. within: the flag. field: holds a dataclass of them; None if they are fields of
    `kind` beside others."""

    within: KeyedFlag
    field: Field[Any] | None
    kind: Any
    keys: Mapping[str, tuple[Field[Any], Option]]


def groups_of(kind: Any) -> dict[str, Group]:
    """By name, the groups of a dataclass of options: `c`, `stream`."""
    groups: dict[str, Group] = {}
    for entry, spec in options_of(kind):
        if spec.group is not None:
            within = KeyedFlag(spec.flags[0], spec.help)
            keys = {_key(own, within): (inner, own) for inner, own in options_of(spec.group)}
            groups[_key(spec, within)] = Group(within, entry, spec.group, keys)
        elif spec.within is not None:
            name = spec.within.flag.strip("-")
            earlier = groups[name].keys if name in groups else {}
            groups[name] = Group(spec.within, None, kind, {**earlier, _key(spec, spec.within): (entry, spec)})
    return groups


def _key(spec: Option, within: KeyedFlag) -> str:
    """The key of an option: its own flag without dashes, and without the name of the flag it is within."""
    return spec.flags[0].strip("-").removeprefix(f"{within.flag.strip('-')}-")


def value_type(kind: object, name: str) -> type:
    """The type of a field's value on the command line."""
    found: Option = {entry.name: spec for entry, spec in options_of(kind)}[name]
    if found.kind is not None:
        return found.kind
    if found.metavar in FILES:
        return Path
    hint = get_type_hints(kind)[name]
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((choice for choice in choices if choice in _JSON_TYPES), str)


def takes(kind: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Makes a function of a dataclass of options a function of its fields, by position and keyword as the dataclass
    takes them. It raises TypeError for arguments that it does not take, and says which it takes."""
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]

    def decorate(run: Callable[[T], R]) -> Callable[P, R]:
        @wraps(run)
        def call(*args: P.args, **given: P.kwargs) -> R:
            for name in given:
                if name not in names:
                    near = "".join(f"; did you mean {match!r}?" for match in get_close_matches(name, names, 1))
                    raise TypeError(f"{run.__name__}() got an unexpected keyword argument {name!r}{near}")
            try:
                own.bind(*args, **given)
            except TypeError as error:
                raise TypeError(f"{run.__name__}(): {error}; it takes {_spoken(own)}") from None
            return run(kind(*args, **given))

        own = signature(kind).replace(return_annotation=signature(run).return_annotation)
        del call.__wrapped__
        call.__signature__ = own  # type: ignore[attr-defined]
        call.options = kind  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in own.parameters.values()}
        return call

    return decorate


def _spoken(taken: Signature) -> str:
    """What a function takes by position, and that all else are keywords."""
    positional = [name for name, given in taken.parameters.items() if given.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return f"{', '.join(positional)} by position (rows=None: without rows), all else as keywords, such as label="


class Flag(NamedTuple):
    """A recorded option: its key in the manifest, its flag on the command line, its value and default as JSON."""

    key: str
    flag: str
    value: Any
    default: Any


def recorded(options: object) -> Iterator[Flag]:
    """The recorded options of a dataclass, in the order of its fields: files by their names, Python objects as
    AN_OBJECT."""
    for entry, spec in options_of(options):
        if not spec.recorded:
            continue
        value, key = getattr(options, entry.name), spec.key or entry.name
        if spec.group is None:
            yield Flag(key, spec.flags[0], _plain(value, spec), _plain(entry.default, spec))
        else:
            yield Flag(key, spec.flags[0], value is not None, False)
            yield from recorded(spec.group() if value is None else value)


def _plain(value: object, spec: Option) -> Any:
    """A value as JSON."""
    if isinstance(value, str | Path):
        return Path(value).name if spec.metavar in FILES else value
    if isinstance(value, tuple | list) and all(isinstance(part, str) for part in value):
        return list(value)
    return value if isinstance(value, int | float | NoneType) else AN_OBJECT


def schema_of(kind: object) -> dict[str, Any]:
    """The JSON Schema of the recorded options, by key."""
    hints, properties = get_type_hints(kind), dict[str, Any]()
    for entry, spec in options_of(kind):
        if spec.recorded:
            own = spec.schema or _schema(bool if spec.group else hints[entry.name], spec)
            properties[spec.key or entry.name] = {**own, "description": f"{spec.flags[0]}: {spec.help}"}
            properties |= {} if spec.group is None else schema_of(spec.group)
    return properties


def _schema(hint: object, spec: Option) -> dict[str, Any]:
    """The schema of an annotation: a type, a Literal of texts, several texts, and None beside one of these."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if spec.metavar in FILES:
        parts = (str, NoneType)
    names = [name for part in parts if get_origin(part) is Literal for name in get_args(part)]
    types = ["string"] if names else [_JSON_TYPES[part] for part in parts if part in _JSON_TYPES]
    listed = spec.listed or not types
    types = ["array"] if listed else types + ["null"] * (NoneType in parts)
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    if spec.least is not None:
        schema["minimum"] = spec.least
    if listed:
        schema["items"] = {"type": "string"}
    return schema | ({"enum": names} if names else {})


def required(entry: Field[Any], spec: Option) -> bool:
    """Whether the command line needs an option."""
    return entry.default is MISSING if spec.needed is None else spec.needed
