"""Defines the exceptions of forestc: each has an error, its location and a remedy."""

from __future__ import annotations

import copyreg
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

# An option in a text stands between two characters that Unicode leaves to programs, never to texts.
_OPTION = re.compile("\ufdd0(--[a-z0-9-]+) ?\ufdd1")
KEYWORDS: dict[str, str] = {}  # maps flags of the command line to Python keywords; `forestc.options` fills it


class Placeholder(str):
    """An option in the text of an error, a note or a help; see `opt`."""

    def __format__(self, value: str) -> str:
        return f"{self[:-1]} {self[-1]}{value}" if value else str(self)


class _Options:
    """Makes placeholders: `opt.held_out` is the option `--held-out`. A name that is a word of Python ends with `_`."""

    on_command_line = False

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("_"):
            raise AttributeError(name)
        return Placeholder(f"\ufdd0--{name.rstrip('_').replace('_', '-')}\ufdd1")


opt = _Options()  # in texts: f"give {opt.rows}" or, with a value, f"give {opt.rows:FILE}"


def with_flags(text: str) -> str:
    """Returns a text with flags in place of placeholders: `--label COL`."""
    return text.replace("\ufdd0", "").replace("\ufdd1", "")


def with_keywords(text: str) -> str:
    """Returns a text with Python's keywords in place of placeholders: `label=COL`."""
    return with_flags(_OPTION.sub(lambda option: KEYWORDS.get(option[1], option[1]), text))


def said(text: str) -> str:
    """Returns a text as this program's user writes options: as flags on the command line, otherwise as keywords."""
    return with_flags(text) if opt.on_command_line else with_keywords(text)


@contextmanager
def on_command_line() -> Iterator[None]:
    """Makes errors and notes name flags while the `with` block runs."""
    opt.on_command_line = True
    try:
        yield
    finally:
        opt.on_command_line = False


# Matches commands to a terminal: escape sequences, control characters, marks of text direction.
_COMMANDS = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    """Returns a text without control sequences for the terminal."""
    return _COMMANDS.sub("", text)


class ForestcError(Exception):
    """Error that the user can fix.

    `str(error)` is one line: the place, what is wrong, and the remedy. It names options as Python's keywords, on the
    command line as flags.

    Parameters
    ----------
    what : str
        What is wrong.
    where : str
        The place: a file, tree, node, feature or option. HERE if `located` gives it.
    do : str
        What the user can do.

    Attributes
    ----------
    what, where, do : str
        The parts.
    parts : tuple of str
        Place, error and remedy, with placeholders of options.
    exit_status : int
        Exit status of the command line: 2 for OptionError, 3 for CheckError and InternalError, 4 for ToolError and
        MissingExtraError, else 1.

    Examples
    --------
    >>> import forestc
    >>> try:
    ...     forestc.load("model.json")
    ... except forestc.ForestcError as error:
    ...     print(error)
    model.json: there is no such file; check the path
    """

    exit_status = 1

    def __init__(self, what: str, *, where: str, do: str) -> None:
        self.parts = (printable(where), printable(what), printable(do))
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return line(self.where, self.what, self.do)

    @property
    def where(self) -> str:
        return said(self.parts[0])

    @property
    def what(self) -> str:
        return said(self.parts[1])

    @property
    def do(self) -> str:
        return said(self.parts[2])


class ModelError(ForestcError):
    """An error of the model: it can't be read, or forestc can't compile it exactly."""


class RowsError(ForestcError, ValueError):
    """An error of the rows: they can't be read, or do not match the model. A ValueError too, as scikit-learn asks."""


class OptionError(ForestcError):
    """An error of an option: its name or value is invalid. Exit status 2."""

    exit_status = 2


class MissingExtraError(ForestcError):
    """Error for an optional library that is not installed. Exit status 4.

    Parameters
    ----------
    library : str
        Name of the library.
    extra : str
        The extra of forestc that installs it.
    """

    exit_status = 4

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed", where=PYTHON, do=f'pip install "forestc[{extra}]"')


class CheckError(ForestcError):
    """An error for differing outputs, or a pass that broke its promise. Exit status 3."""

    exit_status = 3

    def __init__(
        self,
        what: str,
        *,
        where: str,
        do: str = "compile again; if the difference stays, it is a bug of forestc: report it with the model",
    ) -> None:
        super().__init__(what, where=where, do=do)


class ToolError(ForestcError):
    """An error of an external program: it is missing, failed, or took too long. Exit status 4."""

    exit_status = 4

    def __init__(
        self, what: str, *, where: str, do: str = "run it again with --debug, and look at what the program printed"
    ) -> None:
        super().__init__(what, where=where, do=do)


class MissingToolError(ToolError):
    """An error for a missing external program, or for the missing library that runs it."""

    def __init__(self, what: str, *, where: str = "PATH", do: str) -> None:
        super().__init__(what, where=where, do=do)


class BoardError(ToolError):
    """An error of a board or its port: no answer, another design, or too many damaged bytes."""

    def __init__(self, what: str, *, where: str, do: str = "check the port and the board") -> None:
        super().__init__(what, where=where, do=do)


class InternalError(ForestcError):
    """An error for a malformed forest or netlist: a bug in forestc. Exit status 3."""

    exit_status = 3

    def __init__(
        self, what: str, *, where: str, do: str = "this is a bug of forestc: report it with the model"
    ) -> None:
        super().__init__(what, where=where, do=do)


HERE = ""  # `where` of an error whose place a caller knows: `located` gives it
DAMAGED = "it is damaged or was changed by hand: copy, save or fit it again"  # what can be done about such a model
CUT = "it may be cut off: copy, download or save it again"  # what can be done about a model of which a part is missing
PYTHON = f"Python in {sys.prefix}"  # the place of a library that is not installed


@contextmanager
def located(where: str) -> Iterator[None]:
    """Gives the place `where` to a ForestcError that the `with` block raises with HERE."""
    try:
        yield
    except ForestcError as error:
        if not error.where:
            error.parts = (printable(where), *error.parts[1:])
        raise


def line(where: str, what: str, do: str) -> str:
    """Returns an error as one line."""
    return "; ".join(part for part in (f"{where}: {what}" if where else what, do) if part)


def known_names(given: str, known: Iterable[str]) -> str:
    """Returns a remedy for an unknown name: the nearest known name, and all of them."""
    names = list(known)
    near = "".join(f"did you mean {name!r}? " for name in get_close_matches(str(given), names, 1))
    return f"{near}known: {', '.join(names)}"


@dataclass(frozen=True)
class Failure:
    """An error as the command line reports it."""

    kind: str  # class name of the error, UsageError or Interrupted
    what: str
    where: str = ""
    do: str = ""
    status: int = 1  # exit status

    @staticmethod
    def of(error: ForestcError) -> Failure:
        do = "; ".join((error.do, *_notes(error)))
        return Failure(type(error).__name__, error.what, error.where, do, error.exit_status)

    def tell(self, as_json: bool) -> None:
        """Writes the error to standard error, as one line or as a JSON object."""
        if as_json:
            sys.stderr.write(json.dumps({"error": asdict(self)}) + "\n")
        else:
            sys.stderr.write(f"forestc: {line(*map(one_line, (self.where, self.what, self.do)))}\n")


def interrupted(status: int, signalled: BaseException | None = None) -> Failure:
    """Returns the failure of a program that a signal ended. status: 128 plus the signal's number."""
    return Failure("Interrupted", "interrupted", do="; ".join(_notes(signalled)), status=status)


def _notes(error: BaseException | None) -> tuple[str, ...]:
    return tuple(getattr(error, "__notes__", ()))


def one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
