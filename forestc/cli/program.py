"""Runs the program `forestc`: its commands, errors in one line, and the exit status.

Exit status: 0 success; 1 invalid input; 2 wrong usage; 3 failed check; 4 failing outside tool; 128 plus the number of a
signal.
"""

from __future__ import annotations

import logging
import signal
import sys
from typing import Annotated, Any

import typer
import typer.core

from forestc.cli.verbs import add_commands
from forestc.errors import Failure, ForestcError, interrupted, on_command_line, one_line
from forestc.system.interrupts import Interrupted, ctrl_c_ends, interruptible
from forestc.system.version import __version__

# The class of typer's usage errors; typer contains click under varying names.
_UsageProblem: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class _Commands(typer.core.TyperGroup):
    """The group of commands. Ctrl-C is raised as `Interrupted`, because typer would catch KeyboardInterrupt."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        with ctrl_c_ends():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with ctrl_c_ends():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    name="forestc",
    help="Compiles trained tree ensembles into FPGA logic and microcontroller C, exactly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


add_commands(app)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"forestc {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="show the version")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="show the traceback of an error")] = False,
) -> None:
    """Compiles trained tree ensembles into FPGA logic and microcontroller C, exactly."""


def _usage(error: Exception) -> Failure:
    message = one_line(str(error.format_message())).rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    command = "forestc" if context is None else context.command_path
    return Failure("UsageError", message, do=f"see {command} --help", status=2)


@on_command_line()
def main(arguments: list[str] | None = None) -> None:
    """Runs the program and exits with its status. An error is one line on standard error, or a JSON object under
    --json."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    # With --json, standard error contains only errors, no warnings.
    logging.getLogger("forestc").setLevel(logging.ERROR if "--json" in arguments else logging.NOTSET)
    failure = None
    try:
        with interruptible():
            app([a for a in arguments if a != "--debug"], standalone_mode=False, prog_name="forestc")
    except Interrupted as signalled:
        failure = interrupted(signalled.status, signalled)
    except KeyboardInterrupt as signalled:
        failure = interrupted(128 + signal.SIGINT, signalled)
    except ForestcError as error:
        if debug:
            raise
        failure = Failure.of(error)
    except _UsageProblem as error:
        failure = _usage(error)
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{error.format_message()}\n")  # type: ignore[attr-defined]
            sys.exit(failure.status)
    except BrokenPipeError:
        # The reader of standard output has closed it, as `head` does.
        sys.stderr.close()
    except (OSError, MemoryError, RecursionError) as error:
        if debug:
            raise
        failure = Failure(type(error).__name__, str(error) or type(error).__name__, do="--debug shows where")
    if failure is not None:
        failure.tell("--json" in arguments)
    sys.exit(0 if failure is None else failure.status)
