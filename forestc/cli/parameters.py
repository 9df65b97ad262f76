"""Commands whose parameters on the command line are made from the fields of a dataclass of options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
import typer.core

from forestc.cli.terminal import JSON, WIDE, show
from forestc.errors import OptionError
from forestc.options.fields import options_of, required, value_type


class _Command(typer.core.TyperCommand):
    """A command that refuses an option given twice: typer would take the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for place, parameter in enumerate(order):
            if parameter in order[:place] and not parameter.multiple and not parameter.is_eager:
                raise OptionError(f"{parameter.opts[0]} is given twice", do="give it once")
        return list(super().parse_args(ctx, args))


@dataclass(frozen=True)
class Call:
    """A command as it was called. given: by keyword, the options that are on the command line."""

    given: dict[str, Any]
    json: bool
    wide: bool

    def show(self, figures: object, tables: Callable[[], list[Any]]) -> None:
        """Prints the figures: as JSON, or as tables for people."""
        show(self.json, figures, tables, wide=self.wide)


def command(app: typer.Typer, kind: object, name: str | None = None) -> Callable[[Callable[[Call], None]], None]:
    """Adds a command. Its help is the docstring of the function that carries it out."""

    def add(run: Callable[[Call], None]) -> None:
        def called(context: typer.Context, **values: Any) -> None:
            typed = {key for key in values if getattr(context.get_parameter_source(key), "name", "") == "COMMANDLINE"}
            run(Call(_given(kind, values, typed), values["json"], values["wide"]))

        parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context), *_parameters(kind)]
        for shown, annotation in (("json", JSON), ("wide", WIDE)):
            parameters.append(Parameter(shown, Parameter.KEYWORD_ONLY, default=False, annotation=annotation))
        called.__doc__, called.__annotations__ = (
            run.__doc__,
            {parameter.name: parameter.annotation for parameter in parameters},
        )
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        app.command(name or run.__name__.strip("_"), cls=_Command)(called)

    return add


def _parameters(kind: object) -> Iterator[Parameter]:
    """The fields as typer takes them."""
    for parameter, spec in options_of(kind):
        wanted: Any = bool if spec.group else value_type(kind, parameter.name)
        switch, needed = wanted is bool, required(parameter, spec)
        shown: dict[str, Any] = {"help": spec.help, "metavar": spec.metavar or None, "min": spec.least}
        info = typer.Option(*spec.flags, **shown) if spec.flags else typer.Argument(**shown)
        wanted = list[wanted] if spec.repeated else wanted
        default = Parameter.empty if needed else False if switch else _default(parameter.default)
        annotation = wanted if needed or switch else wanted | None
        yield Parameter(parameter.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])
        if spec.group:
            for inner in _parameters(spec.group):  # their help says what they are without the group
                yield inner if inner.default is False else inner.replace(default=None)


def _default(value: object) -> Any:
    """The default that the help shows; None for those that its text tells."""
    return ",".join(value) or None if isinstance(value, tuple) else None if value is MISSING else value


def _given(kind: object, values: dict[str, Any], typed: set[str]) -> dict[str, Any]:
    """By keyword, the options of the command line. Raises OptionError for options of a group without its flag."""
    result: dict[str, Any] = {}
    for field, spec in options_of(kind):
        if spec.group:
            inner = _given(spec.group, values, typed)
            if inner and field.name not in typed:
                switches_last = sorted(options_of(spec.group), key=lambda pair: pair[0].default is False)
                flags = [own.flags[0] for _, own in switches_last]
                wanted = f"{', '.join(flags[:-1])} and {flags[-1]} need {spec.flags[0]}"
                raise OptionError(wanted, do=f"add {spec.flags[0]}")
            if field.name in typed:
                result[field.name] = spec.group(**inner)
        elif field.name in typed:
            value = values[field.name]
            if spec.listed:
                value = [part.strip() for part in value.split(",")]
            result[field.name] = not value if field.default is True else value
        elif field.default is MISSING:
            result[field.name] = None
    return result
