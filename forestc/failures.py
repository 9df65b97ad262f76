"""How the command line reports a failure: one line of text, or one JSON object."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from forestc.errors import ForestcError


@dataclass(frozen=True)
class Failure:
    """kind: the error's class name, UsageError or Interrupted. what, where, do: as in ForestcError. status: the exit
    status."""

    kind: str
    what: str
    where: str = ""
    do: str = ""
    status: int = 1

    @staticmethod
    def of(error: ForestcError) -> Failure:
        do = "; ".join(part for part in (error.do, *_notes(error)) if part)
        return Failure(type(error).__name__, error.what, error.where, do, error.exit_status)

    def tell(self, as_json: bool) -> None:
        """Writes one line to standard error; standard output is for results."""
        if as_json:
            sys.stderr.write(json.dumps({"error": asdict(self)}) + "\n")
        else:
            parts = (one_line(part) for part in (self.what, self.where, self.do))
            sys.stderr.write(f"forestc: {'; '.join(part for part in parts if part)}\n")


def interrupted(status: int, signalled: BaseException | None = None) -> Failure:
    """The failure of a program ended by a signal, with the notes of what it left. status: 128 plus the signal's
    number."""
    return Failure("Interrupted", "interrupted", do="; ".join(_notes(signalled)), status=status)


def _notes(error: BaseException | None) -> tuple[str, ...]:
    return tuple(getattr(error, "__notes__", ()))


def one_line(text: str) -> str:
    """The text without line breaks and control characters."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
