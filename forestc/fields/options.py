"""Defines options as fields of frozen dataclasses.

A field's metadata, an `Option`, holds the flag and the help. A field without an `Option` exists in Python only. The
help also describes the parameters of the function that takes the options.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from forestc.errors import OptionError, known_names, opt, with_flags

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

AN_OBJECT = "given in Python"  # replaces values in records that are Python objects
FILES = ("FILE", "DIR", "MODEL", "MODEL|DIR", "DIR|STUDY", "[MODEL]")  # lists the metavars of paths
PATH = "str or path"
_SECTION = re.compile(r"^(?:Returns|Raises|Notes|References|Examples)\n-+$", re.MULTILINE)  # of a numpydoc docstring
_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


@dataclass(frozen=True)
class KeyedFlag:
    """A flag with a value that sets several options: `--c layout=nodes,values=q15`."""

    flag: str
    help: str


@dataclass(frozen=True)
class Option:
    """The properties of an option that its field's name, type and default do not tell."""

    flags: tuple[str, ...]  # flags, the recorded one first; none for a positional argument
    help: str
    metavar: str = ""
    kind: type | None = None  # type on the command line, unless the field's type tells it
    least: float | None = None  # smallest number allowed
    listed: bool = False  # True for a list of texts, separated by commas
    repeated: bool = False  # True if the flag may be given several times
    needed: bool | None = None  # True if the command line requires it; None if the default decides
    recorded: bool = True  # True if manifests store the option
    key: str = ""  # name in manifests, if not the field's
    schema: Mapping[str, Any] | None = None  # JSON Schema of the stored value, unless the annotation tells it
    group: Any = None  # dataclass whose options are the keys of this flag
    within: KeyedFlag | None = None  # flag of which this option is a key
    takes_rest: bool = False  # True if the value of this key may hold commas
    takes: str = PATH  # what Python takes, if the annotation is Any


def argument(metavar: str, help: str, **more: Any) -> dict[str, Option]:
    return {"option": Option((), help, metavar, recorded=False, **more)}


def flag(flags: str, help: str, metavar: str = "", **more: Any) -> dict[str, Option]:
    """Returns the metadata of an option. flags: its flags, separated by blanks."""
    return {"option": Option(tuple(flags.split()), help, metavar, **more)}


def option(default: object, flags: str, help: str, metavar: str = "", **more: Any) -> Any:
    """Returns a dataclass field that is an option. If the default is True, the flag turns the option off."""
    return field(default=default, metadata=flag(flags, help, metavar, **more))


def keyword(default: object, help: str, takes: str = "") -> Any:
    """Returns a dataclass field that exists in Python only."""
    return field(default=default, metadata={"keyword": help, "takes": takes})


def options_of(kind: Any) -> Iterator[tuple[Field[Any], Option]]:
    """Yields each field of a dataclass that is an option, with its Option."""
    return ((entry, entry.metadata["option"]) for entry in fields(kind) if "option" in entry.metadata)


def grouped(options: Any) -> Iterator[tuple[str, Any, type]]:
    """Yields the name, value and type of each option that is given and holds options of its own."""
    for entry, spec in options_of(options):
        if spec.group is not None and (value := getattr(options, entry.name)) is not None:
            yield entry.name, value, spec.group


@dataclass(frozen=True)
class Group:
    """Options that are keys of the flag `within`."""

    within: KeyedFlag
    field: Field[Any] | None  # field that holds an instance of `kind`, or None
    kind: Any  # dataclass that declares the options
    keys: Mapping[str, tuple[Field[Any], Option]]  # for each key the field and its Option


def groups_of(kind: Any) -> dict[str, Group]:
    """Returns the groups of options that share a flag, by name, such as `stream`."""
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
    """Returns an option's key within a flag: `layout` for `--c-layout` within `--c`."""
    return spec.flags[0].strip("-").removeprefix(f"{within.flag.strip('-')}-")


def value_type(kind: object, name: str) -> type:
    """Returns the type into which the command line parses the value of a field."""
    described: Option = {entry.name: spec for entry, spec in options_of(kind)}[name]
    if described.kind is not None:
        return described.kind
    if described.metavar in FILES:
        return Path
    hint = get_type_hints(kind)[name]
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((choice for choice in choices if choice in _JSON_TYPES), str)


def described(kind: type[T]) -> type[T]:
    """Decorates a dataclass of options: its docstring gets a section on its parameters."""
    kind.__doc__ = _with_parameters(kind.__doc__ or "", kind)
    return kind


def _with_parameters(text: str, kind: Any) -> str:
    """Returns a docstring with numpydoc's section Parameters, made from the help of each field."""
    hints, names = get_type_hints(kind), {flag: entry.name for entry, spec in options_of(kind) for flag in spec.flags}
    lines = ["Parameters", "----------"]
    for entry in sorted(fields(kind), key=lambda entry: bool(entry.kw_only)):  # in the order of the signature
        spec = entry.metadata.get("option")
        if spec is None:
            help, taken = entry.metadata.get("keyword", ""), entry.metadata.get("takes", "")
        else:
            help, taken = spec.help, spec.takes
        # "--no-prove": "check without proofs" describes the value False
        help = with_flags(help)
        help = f"False: {help}" if entry.default is True and spec is not None else help[:1].upper() + help[1:]
        help = re.sub(r"--[a-z-]+", lambda flag: f"`{names[flag[0]]}`" if flag[0] in names else flag[0], help)
        if entry.default is MISSING:
            default = ""
        elif entry.default is None or entry.default in ((), "") or callable(entry.default):
            default = ", optional"
        else:
            default = f", default={entry.default!r}"
        lines.append(f"{entry.name} : {_taken(hints[entry.name], taken)}{default}")
        lines.append(textwrap.fill(f"{help}.", 100, initial_indent="    ", subsequent_indent="    "))
    text, first = cleandoc(text), _SECTION.search(cleandoc(text))
    at = len(text) if first is None else first.start()
    return "\n\n".join(part for part in (text[:at].strip(), "\n".join(lines), text[at:]) if part)


def _taken(hint: Any, otherwise: str) -> str:
    """Returns a type in words, without None. otherwise: the words for Any."""
    if hint is Any:
        return otherwise
    origin, parts = get_origin(hint), [part for part in get_args(hint) if part is not NoneType]
    if origin in (Union, UnionType):
        return " or ".join(_taken(part, "object") for part in parts)
    if origin is Literal:
        return f"{{{', '.join(map(repr, parts))}}}"
    if origin is None:
        return str(hint.__name__)
    name = origin.__name__.lower()
    return f"{name} of {_taken(parts[0], 'object')}" if name == "sequence" else str(name)


def takes(kind: Callable[P, T]) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Decorates a function of one options object: callers give the object's fields as arguments instead, which its
    docstring then describes. The function raises TypeError for wrong arguments."""
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
            options = kind(*args, **given)
            for name, known in choices_of(kind).items():
                if (value := getattr(options, name)) is not None and value not in known:
                    do = known_names(value, known)
                    raise OptionError(f"{value!r} is unknown", where=getattr(opt, name), do=do)
            return run(options)

        own = signature(kind).replace(return_annotation=signature(run).return_annotation)
        del call.__wrapped__
        call.__doc__ = _with_parameters(run.__doc__ or "", kind)
        call.__signature__ = own  # type: ignore[attr-defined]
        call.options = kind  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in own.parameters.values()}
        return call

    return decorate


@cache
def choices_of(kind: Callable[..., object]) -> dict[str, tuple[str, ...]]:
    """Returns the values of each field that takes one of some texts."""
    found = dict[str, tuple[str, ...]]()
    for name, hint in get_type_hints(kind).items():
        for part in (hint, *(get_args(hint) if get_origin(hint) in (Union, UnionType) else ())):
            if get_origin(part) is Literal:
                found[name] = get_args(part)
    return found


def _spoken(taken: Signature) -> str:
    positional = [name for name, given in taken.parameters.items() if given.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return f"{', '.join(positional)} by position (rows=None: without rows), all else as keywords, such as label="


class Flag(NamedTuple):
    """A recorded option with its manifest key, flag, and JSON values."""

    key: str
    flag: str
    value: Any
    default: Any


def recorded(options: object) -> Iterator[Flag]:
    """Yields the recorded options of a dataclass, in order. Files are recorded by name, and Python objects as
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
    if isinstance(value, str | Path):
        return Path(value).name if spec.metavar in FILES else value
    if isinstance(value, tuple | list) and all(isinstance(part, str) for part in value):
        return list(value)
    return value if isinstance(value, int | float | NoneType) else AN_OBJECT


def schema_of(kind: object) -> dict[str, Any]:
    """Returns the JSON Schema of each recorded option, by its key in the manifest."""
    hints, properties = get_type_hints(kind), dict[str, Any]()
    for entry, spec in options_of(kind):
        if spec.recorded:
            own = spec.schema or _schema(bool if spec.group else hints[entry.name], spec)
            properties[spec.key or entry.name] = {**own, "description": f"{spec.flags[0]}: {with_flags(spec.help)}"}
            properties |= {} if spec.group is None else schema_of(spec.group)
    return properties


def record_schema(spec: Option) -> dict[str, Any]:
    """Returns the JSON Schema of the object that holds a group of options by the names of their fields."""
    names = [entry.name for entry, _ in options_of(spec.group)]
    properties = dict(zip(names, schema_of(spec.group).values(), strict=True))
    return {
        "type": "object",
        "description": f"options of {spec.flags[0]}; absent without it",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


def _schema(hint: object, spec: Option) -> dict[str, Any]:
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
    return entry.default is MISSING if spec.needed is None else spec.needed
