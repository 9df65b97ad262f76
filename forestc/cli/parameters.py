"""Makes typer commands from dataclasses of options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, ClassVar

import typer
import typer.core

from forestc.cli.terminal import JSON, VERBOSE, WIDE, show
from forestc.errors import OptionError, known_names, with_flags
from forestc.fields.options import Group, Option, groups_of, options_of, required, value_type

_KEYS = "KEY=VALUE,..."
_FIRST_KEY = re.compile(r"[a-z][a-z_-]*=")  # tells keys after a flag that may stand alone from an argument


class _Command(typer.core.TyperCommand):
    """A command that refuses an option given twice."""

    groups: ClassVar[Mapping[str, Group]] = {}  # flags that take keys, such as `--stream tdata=64`

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        index = args.index("--help") + 1 if "--help" in args else len(args)
        if index < len(args) and args[index] in self.groups:
            typer.echo(self._help_of(ctx, self.groups[args[index]]))
            ctx.exit()
        args = self._joined(args)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for index, parameter in enumerate(order):
            if parameter in order[:index] and not parameter.multiple and not parameter.is_eager:
                raise OptionError("is given twice", where=parameter.opts[0], do="give it once")
        return list(super().parse_args(ctx, args))

    def _joined(self, args: list[str]) -> list[str]:
        """Returns the arguments, with a flag and the keys that follow it joined into one: `--stream=tdata=64`."""
        alone = {group.within.flag: group.keys for group in self.groups.values() if group.field is not None}
        joined: list[str] = []
        for argument in args:
            keys = alone.get(joined[-1].removesuffix("="), ()) if joined else ()
            if keys and (_FIRST_KEY.match(argument) or argument.partition(",")[0] in keys):
                joined[-1] += argument
            else:
                joined.append(f"{argument}=" if argument in alone else argument)
        return joined

    def _help_of(self, ctx: Any, group: Group) -> str:
        formatter, flag = ctx.make_formatter(), group.within.flag
        formatter.write_usage(ctx.command_path, f"[OPTIONS] {flag} {_KEYS}")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(group.within.help)
        rows = []
        for key, (field, spec) in group.keys.items():
            default = "" if field.default in (None, "", False, 0) else f"  [default: {field.default}]"
            rest = "; takes the rest of the text" if spec.takes_rest else ""
            rows.append(
                (
                    key if value_type(group.kind, field.name) is bool else f"{key}=...",
                    with_flags(spec.help) + rest + default,
                )
            )
        with formatter.section("Keys"):
            formatter.write_dl(rows)
        return str(formatter.getvalue().rstrip("\n"))


SHOWN = {"json": JSON, "wide": WIDE, "verbose": VERBOSE}  # options of every command


@dataclass(frozen=True)
class Call:
    given: dict[str, Any]  # options on the command line, by keyword
    json: bool
    wide: bool
    verbose: bool

    def show(self, figures: object, tables: Callable[[], list[Any]]) -> None:
        show(self.json, figures, tables, wide=self.wide)


def add_command(app: typer.Typer, kind: object, run: Callable[[Call], None]) -> None:
    """Adds a command named after the function `run`, with its docstring as help."""

    def called(context: typer.Context, **values: Any) -> None:
        typed = {key for key in values if getattr(context.get_parameter_source(key), "name", "") == "COMMANDLINE"}
        run(Call(_given(kind, values, typed), *(values[name] for name in SHOWN)))

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context), *_parameters(kind)]
    for shown, annotation in SHOWN.items():
        parameters.append(Parameter(shown, Parameter.KEYWORD_ONLY, default=False, annotation=annotation))
    called.__doc__ = run.__doc__
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    own = type("_CommandWithGroups", (_Command,), {"groups": groups_of(kind)})
    name = run.__name__.strip("_").replace("_", "-")
    app.command(name, cls=own, context_settings={"max_content_width": 100})(called)


def _parameters(kind: object) -> Iterator[Parameter]:
    """Yields typer's parameters: one for each field or group of keys, and a hidden flag for each key."""
    groups, shown = groups_of(kind), set[str]()
    for entry, spec in options_of(kind):
        for name, group in groups.items():
            if name not in shown and (group.field is entry or entry is next(iter(group.keys.values()))[0]):
                shown.add(name)
                yield _of_group(name, group)
                yield from (_of_field(group.kind, *pair, hidden=True) for pair in group.keys.values())
        if spec.group is None and spec.within is None:
            yield _of_field(kind, entry, spec)


def _of_group(name: str, group: Group) -> Parameter:
    keys = f"{group.within.help}; keys: {', '.join(group.keys)}; see --help {name}"
    info = typer.Option(group.within.flag, help=keys, metavar=f"[{_KEYS}]" if group.field else _KEYS)
    annotation = Annotated[list[str] | None, info]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _of_field(kind: object, entry: Field[Any], spec: Option, *, hidden: bool = False) -> Parameter:
    """Returns the parameter of an option. hidden: True to omit it from the help."""
    kind_of_value: Any = value_type(kind, entry.name)
    switch, needed = kind_of_value is bool, required(entry, spec)
    shown: dict[str, Any] = {
        "help": with_flags(spec.help),
        "metavar": spec.metavar or None,
        "min": spec.least,
        "hidden": hidden,
    }
    info = typer.Option(*spec.flags, **shown) if spec.flags else typer.Argument(**shown)
    kind_of_value = list[kind_of_value] if spec.repeated else kind_of_value
    default = Parameter.empty if needed else False if switch else None if hidden else _default(entry.default)
    annotation = kind_of_value if needed or switch else kind_of_value | None
    return Parameter(entry.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])


def _default(value: object) -> Any:
    return ",".join(value) or None if isinstance(value, tuple) else None if value is MISSING else value


def _given(kind: object, values: Mapping[str, Any], typed: set[str]) -> dict[str, Any]:
    """Returns the options on the command line, by field name. Raises OptionError for an invalid `KEY=VALUE`."""
    groups = groups_of(kind)
    result: dict[str, Any] = {}
    for entry, spec in options_of(kind):
        if spec.group is None and spec.within is None:
            _take(result, entry, spec, values, typed)
    for name, group in groups.items():
        own: dict[str, Any] = {}
        for entry, spec in group.keys.values():
            _take(own, entry, spec, values, typed)
        for text in values[name] or () if name in typed else ():
            _take_keys(own, group, text)
        if group.field is None:
            result |= own
        elif name in typed:
            result[group.field.name] = group.kind(**own)
        elif own:
            switches_last = sorted(group.keys.values(), key=lambda pair: pair[0].default is False)
            flags, flag = [spec.flags[0] for _, spec in switches_last], group.within.flag
            raise OptionError(f"is needed by {', '.join(flags[:-1])} and {flags[-1]}", where=flag, do=f"add {flag}")
    return result


def _take(result: dict[str, Any], entry: Field[Any], spec: Option, values: Mapping[str, Any], typed: set[str]) -> None:
    """Adds the value of an option to `result` if it was typed."""
    if entry.name in typed:
        value = values[entry.name]
        if spec.listed:
            value = [part.strip() for part in value.split(",")]
        result[entry.name] = not value if entry.default is True else value
    elif entry.default is MISSING:
        result[entry.name] = None


def _take_keys(result: dict[str, Any], group: Group, text: str) -> None:
    """Adds the options in a text such as `layout=nodes,values=q15`, or raises OptionError."""
    flag, rest = group.within.flag, text
    while rest:
        part, _, after = rest.partition(",")
        name, has_value, value = part.partition("=")
        name = name.strip().replace("_", "-")
        if name not in group.keys:
            raise OptionError(f"unknown key {name!r}", where=flag, do=known_names(name, group.keys))
        entry, spec = group.keys[name]
        if spec.takes_rest:
            value, after = rest.partition("=")[2], ""
            for other in (piece.partition("=")[0].strip() for piece in value.split(",")[1:]):
                if (key := other.replace("_", "-")) in group.keys:
                    alone = f"give {name}= in a {flag} of its own"
                    do = alone if group.keys[key][1].takes_rest else f"write {name}= last"
                    raise OptionError(f"{other}= stands behind {name}=", where=flag, do=do)
        kind = value_type(group.kind, entry.name)
        if kind is bool and not has_value:
            value = "true"
        if entry.name in result:
            raise OptionError("is given twice", where=f"{flag} {name}", do="give it once")
        result[entry.name] = _value(f"{flag} {name}", value.strip(), kind)
        rest = after


def _value(name: str, text: str, kind: type) -> str | int | bool:
    if not text:
        raise OptionError("has no value", where=name, do=f"write {name}=VALUE")
    if kind is bool and text in ("true", "false"):
        return text == "true"
    if kind is bool or (kind is int and not text.removeprefix("-").isdecimal()):
        raise OptionError(
            f"{text!r} is no value",
            where=name,
            do="give a whole number" if kind is int else "give true or false",
        )
    return int(text) if kind is int else text
