"""A proof, its parts, and the result of each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from forestc.errors import printable


@dataclass
class ProofPart:
    """asked: number of statements to prove. proved: how many were. why: the reason for the first that was not."""

    name: str
    asked: int = 0
    proved: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass
class Proof:
    """refuted: an input is known on which the design is wrong, or its ports are wrong. A proof that is neither proved
    nor refuted is undecided."""

    parts: list[ProofPart] = field(default_factory=list)
    refuted: bool = False

    @property
    def proved(self) -> bool:
        return bool(self.parts) and all(part.asked == part.proved for part in self.parts)

    @property
    def verdict(self) -> str:
        """proved, refuted or undecided."""
        return "proved" if self.proved else "refuted" if self.refuted else "undecided"


class UnprovedError(Exception):
    """A step could not be proved. words: features' words by index, for which the solver found a difference; whether the
    design itself is wrong for them is not yet known. wrong: the design is wrong for every input."""

    def __init__(self, why: str, words: dict[int, int] | None = None, wrong: bool = False) -> None:
        super().__init__(printable(why))
        self.words, self.wrong = words, wrong


class Running:
    """A part while it runs: measures its time, and records why it fails."""

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
