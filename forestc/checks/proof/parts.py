"""The results of a proof: its parts, and for each the statements proved."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from forestc.errors import printable


@dataclass
class ProofPart:
    """A part of a proof. asked: number of statements to prove. proved: number of statements that were proved. why: the
    reason why the first statement failed."""

    name: str
    asked: int = 0
    proved: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass
class Proof:
    """A proof. refuted: an input with a wrong result was found, or the ports are wrong. A proof that is neither proved
    nor refuted is undecided."""

    parts: list[ProofPart] = field(default_factory=list)
    refuted: bool = False

    @property
    def proved(self) -> bool:
        return bool(self.parts) and all(part.asked == part.proved for part in self.parts)

    @property
    def verdict(self) -> str:
        """The text "proved", "refuted" or "undecided"."""
        return "proved" if self.proved else "refuted" if self.refuted else "undecided"


class UnprovedError(Exception):
    """Raised if a step can't be proved. words: an input on which the solver found a difference, by feature index (for
    an engine, by column); the design itself may be right on it. wrong: the design is known to be wrong."""

    def __init__(self, why: str, words: dict[int, int] | None = None, wrong: bool = False) -> None:
        super().__init__(printable(why))
        self.words, self.wrong = words, wrong


class Running:
    """A context manager that runs one part: measures its time, and records why it fails."""

    def __init__(self, proof: Proof, part: ProofPart) -> None:
        self.part = part
        proof.parts.append(part)

    def __enter__(self) -> ProofPart:
        self.start = time.perf_counter()
        return self.part

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.part.seconds += time.perf_counter() - self.start
        if isinstance(error, UnprovedError | TimeoutError):
            self.part.why = str(error)
