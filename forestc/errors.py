"""Defines the exceptions of forestc: each has an error, its location and a remedy."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path

KEYWORDS: dict[str, str] = {}  # maps flags of the command line to Python keywords; `forestc.options` fills it
_FLAG = re.compile(
    r"(?<![\w-])(--[a-z][a-z0-9-]*)"
    r"(?: (?!(?:an|and|are|as|ask|for|goes|if|in|is|it|needs?|of|or|out|runs|says|takes|then|to|with)\b)(?=[\w{]))?"
)
_FLAGS = re.compile(r"--[a-z][a-z0-9-]*(?:, --[a-z][a-z0-9-]*)*")

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

    The command line prints its parts. `str(error)` is the same line with Python's keywords in place of flags.

    Parameters
    ----------
    what : str
        What is wrong.
    where : str, optional
        The place: a file, tree, node or feature. Default: `usual_where`.
    do : str, optional
        The remedy. Default: `usual_do`.

    Attributes
    ----------
    what, where, do : str
        The parts.
    exit_status : int
        Exit status of the command line: 1; 2 for OptionError, 3 for CheckError and InternalError, 4 for ToolError.
    usual_where, usual_do : str
        Place and remedy of errors of the class that give none.

    Examples
    --------
    >>> import forestc
    >>> try:
    ...     forestc.load("model.json")
    ... except forestc.ForestcError as error:
    ...     print(error.what)
    there is no such file
    """

    exit_status = 1
    usual_where = ""
    usual_do = ""

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        where = where or ("" if self.usual_where in what else self.usual_where)
        self.what, self.where, self.do = (printable(part) for part in (what, where, do or self.usual_do))
        super().__init__("; ".join(part for part in (self.what, self.where, self.do) if part))

    def __str__(self) -> str:
        return in_python("; ".join(part for part in (self.what, self.where, self.do) if part))


class ModelError(ForestcError):
    """An error of the model: it can't be read, or forestc can't compile it exactly."""

    usual_do = "train or save the model again with its library; if the message stays, report it"


class RowsError(ForestcError):
    """An error of the rows: they can't be read, or do not match the model."""


class OptionError(ForestcError):
    """An error of an option: its name or value is invalid. Exit status 2."""

    exit_status = 2


class MissingExtraError(ForestcError):
    """Error for an optional library that is not installed.

    Parameters
    ----------
    library : str
        Name of the library.
    extra : str
        The extra of forestc that installs it.
    """

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            f"{library} is not installed", where=f"Python in {sys.prefix}", do=f'pip install "forestc[{extra}]"'
        )


class CheckError(ForestcError):
    """An error for differing outputs, or a pass that broke its promise. Exit status 3."""

    exit_status = 3
    usual_do = "compile again; if the difference stays, it is a bug of forestc: report it with the model"


class ToolError(ForestcError):
    """An error of an external program: it is missing, failed, or took too long. Exit status 4."""

    exit_status = 4
    usual_do = "run it again with --debug, and look at what the program printed"


class MissingToolError(ToolError):
    """An error for a missing external program, or for the missing library that runs it."""

    usual_where = "the PATH"


class BoardError(ToolError):
    """An error of a board or its port: no answer, another design, or too many damaged bytes."""

    usual_do = "check the port and the board"


class InternalError(ForestcError):
    """An error for a malformed forest or netlist: a bug in forestc. Exit status 3."""

    exit_status = 3
    usual_do = "this is a bug of forestc: report it with the model"


@contextmanager
def located(where: str, name: str = "") -> Iterator[None]:
    """Adds a location to a ForestcError that the `with` block raises without one. An error whose text contains `name`
    is unchanged."""
    try:
        yield
    except ForestcError as error:
        if not error.where and not (name and name in error.what):
            error.where = printable(where)
        raise


def in_python(text: str) -> str:
    """Returns the text with Python keywords in place of flags: `label=COL` for `--label COL`."""
    parts = text.split("; ")
    names = [", ".join(KEYWORDS.get(flag, flag).removesuffix("=") for flag in part.split(", ")) for part in parts]
    plain = [_FLAG.sub(lambda flag: KEYWORDS.get(flag[1], flag[0]), part) for part in parts]
    return "; ".join(
        name if _FLAGS.fullmatch(part) else text for part, name, text in zip(parts, names, plain, strict=True)
    )


def known_names(given: str, known: Iterable[str]) -> str:
    """Returns a remedy for an unknown name: the nearest known name, and all of them."""
    names = list(known)
    near = "".join(f"did you mean {name!r}? " for name in get_close_matches(str(given), names, 1))
    return f"{near}known: {', '.join(names)}"


def check_exists(path: Path, kind: type[ForestcError]) -> None:
    """Raises an error of type `kind` if the file does not exist. Its remedy names a similar file of the folder."""
    try:
        if path.exists():
            return
        beside = [file.name for file in path.parent.iterdir()]
    except OSError:  # The folder does not exist, or the name is too long.
        beside = []
    near = get_close_matches(path.name, beside, 1, 0.8)
    remedy = f"did you mean {str(path.parent / near[0])!r}?" if near else "check the path"
    raise kind("there is no such file", where=str(path), do=remedy)


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
        do = "; ".join(part for part in (error.do, *_notes(error)) if part)
        return Failure(type(error).__name__, error.what, error.where, do, error.exit_status)

    def tell(self, as_json: bool) -> None:
        """Writes the error to standard error, as one line or as a JSON object."""
        if as_json:
            sys.stderr.write(json.dumps({"error": asdict(self)}) + "\n")
        else:
            parts = (one_line(part) for part in (self.what, self.where, self.do))
            sys.stderr.write(f"forestc: {'; '.join(part for part in parts if part)}\n")


def interrupted(status: int, signalled: BaseException | None = None) -> Failure:
    """Returns the failure of a program that a signal ended. status: 128 plus the signal's number."""
    return Failure("Interrupted", "interrupted", do="; ".join(_notes(signalled)), status=status)


def _notes(error: BaseException | None) -> tuple[str, ...]:
    return tuple(getattr(error, "__notes__", ()))


def one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
