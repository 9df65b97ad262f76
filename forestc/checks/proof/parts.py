"""What a proof consists of: its parts, and what became of each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Part:
    """One part: how many questions, how many of them proved, seconds, and why the first that was not."""

    name: str
    asked: int = 0
    proved: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass
class Proof:
    """What was asked and what was proved. refuted: an input is known on which the design is wrong, or its ports are
    others; what is neither proved nor refuted is undecided."""

    parts: list[Part] = field(default_factory=list)
    refuted: bool = False

    @property
    def proved(self) -> bool:
        return bool(self.parts) and all(part.asked == part.proved for part in self.parts)

    @property
    def verdict(self) -> str:
        """proved, refuted or undecided."""
        return "proved" if self.proved else "refuted" if self.refuted else "undecided"


class UnprovedError(Exception):
    """A step could not be shown. words: those of the features, by index, where the solver saw a difference; whether the
    design itself is wrong there is not yet known. wrong: it is, whatever the input."""

    def __init__(self, why: str, words: dict[int, int] | None = None, wrong: bool = False) -> None:
        super().__init__(why)
        self.words, self.wrong = words, wrong


class Running:
    """A part while it runs: its time is taken, and what stops it is kept."""

    def __init__(self, proof: Proof, part: Part) -> None:
        self.part = part
        proof.parts.append(part)

    def __enter__(self) -> Part:
        self.start = time.perf_counter()
        return self.part

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.part.seconds += time.perf_counter() - self.start
        if isinstance(error, UnprovedError | TimeoutError):
            self.part.why = str(error)
