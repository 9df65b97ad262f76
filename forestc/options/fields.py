"""Defines options as fields of frozen dataclasses.

A field holds the option's Python name, type and default; its metadata, an `Option`, holds the flag, the help and the
rest. The command line, Python keywords, the record in the manifest, its JSON Schema and the reference pages are all
derived from these fields. A field without an `Option` exists in Python only.
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

AN_OBJECT = "given in Python"  # replaces a value in records that no file or text can name
FILES = ("FILE", "DIR", "MODEL", "MODEL|DIR", "DIR|STUDY", "[MODEL]")  # lists the metavars of paths
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


@dataclass(frozen=True)
class KeyedFlag:
    """A flag whose value sets several options: `--c layout=nodes,values=q15`. Each option also has its own flag."""

    flag: str
    help: str


@dataclass(frozen=True)
class Option:
    """The properties of an option beyond its name, type and default.
    flags: its flags, the one for records first; empty for a positional argument. help: for command line and
    documentation.
    metavar: the placeholder of the value; those in FILES are paths. kind: type of the value on the command line, if the
    field has several types.
    least: the smallest number. listed: True if the value is several texts, separated by commas on the command line.
    repeated: True if the flag is given once for each value. needed: whether the command line requires the option, if
    not as in Python. recorded: True if manifests store it. key: its name in manifests, if not the field's.
    schema: JSON Schema of the stored value, if the annotation does not give it. group: a dataclass of further options,
    which are keys of the flag.
    within: the flag of which this option is a key. takes_rest: True if as a key it takes the rest of the text with its
    commas."""

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
    """Returns the metadata of a positional argument."""
    return {"option": Option((), help, metavar, recorded=False)}


def flag(flags: str, help: str, metavar: str = "", **more: Any) -> dict[str, Option]:
    """Returns the metadata of an option. flags: separated by blanks."""
    return {"option": Option(tuple(flags.split()), help, metavar, **more)}


def option(default: object, flags: str, help: str, metavar: str = "", **more: Any) -> Any:
    """Returns a field with a default. If the default is True, the flag turns the option off."""
    return field(default=default, metadata=flag(flags, help, metavar, **more))


def options_of(kind: Any) -> Iterator[tuple[Field[Any], Option]]:
    """Returns the fields of a dataclass that are on the command line, in order, each with its Option."""
    return ((entry, entry.metadata["option"]) for entry in fields(kind) if "option" in entry.metadata)


@dataclass(frozen=True)
class Group:
    """Options that are keys of one flag. within: the flag. field: the field that holds a dataclass of them; None if
    they are fields of `kind` itself."""

    within: KeyedFlag
    field: Field[Any] | None
    kind: Any
    keys: Mapping[str, tuple[Field[Any], Option]]


def groups_of(kind: Any) -> dict[str, Group]:
    """Returns the groups of a dataclass of options by name: `c`, `stream`."""
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
    """Returns the key of an option: its flag without dashes and without the name of the group's flag."""
    return spec.flags[0].strip("-").removeprefix(f"{within.flag.strip('-')}-")


def value_type(kind: object, name: str) -> type:
    """Returns the type of a field's value on the command line."""
    found: Option = {entry.name: spec for entry, spec in options_of(kind)}[name]
    if found.kind is not None:
        return found.kind
    if found.metavar in FILES:
        return Path
    hint = get_type_hints(kind)[name]
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((choice for choice in choices if choice in _JSON_TYPES), str)


def takes(kind: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Turns a function of a dataclass of options into a function of its fields, by position and keyword as the
    dataclass takes them. The new function raises TypeError for other arguments and lists the right ones."""
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
    """Returns the arguments that a function takes, as a phrase for an error."""
    positional = [name for name, given in taken.parameters.items() if given.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return f"{', '.join(positional)} by position (rows=None: without rows), all else as keywords, such as label="


class Flag(NamedTuple):
    """A recorded option: its key in the manifest, its flag on the command line, its value and default as JSON."""

    key: str
    flag: str
    value: Any
    default: Any


def recorded(options: object) -> Iterator[Flag]:
    """Yields the recorded options of a dataclass, in the order of its fields. Files are recorded by name, and Python
    objects as AN_OBJECT."""
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
    if isinstance(value, str | Path):
        return Path(value).name if spec.metavar in FILES else value
    if isinstance(value, tuple | list) and all(isinstance(part, str) for part in value):
        return list(value)
    return value if isinstance(value, int | float | NoneType) else AN_OBJECT


def schema_of(kind: object) -> dict[str, Any]:
    """Returns the JSON Schema of the recorded options, by key."""
    hints, properties = get_type_hints(kind), dict[str, Any]()
    for entry, spec in options_of(kind):
        if spec.recorded:
            own = spec.schema or _schema(bool if spec.group else hints[entry.name], spec)
            properties[spec.key or entry.name] = {**own, "description": f"{spec.flags[0]}: {spec.help}"}
            properties |= {} if spec.group is None else schema_of(spec.group)
    return properties


def _schema(hint: object, spec: Option) -> dict[str, Any]:
    """Returns the schema of an annotation: a type, a Literal of texts, or several texts; each also with None."""
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
    """Returns True if the command line requires the option."""
    return entry.default is MISSING if spec.needed is None else spec.needed
