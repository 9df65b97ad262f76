"""The results of a proof, part by part."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from forestc.errors import printable


@dataclass
class ProofPart:
    """A part of a proof: statements that are proved together."""

    name: str
    asked: int = 0  # number of statements to prove
    proved: int = 0  # number of statements proved
    seconds: float = 0.0
    why: str = ""  # reason of a failure


@dataclass
class Proof:
    """A proof with its parts. refuted: True if the design is known to be wrong."""

    parts: list[ProofPart] = field(default_factory=list)
    refuted: bool = False

    @property
    def proved(self) -> bool:
        return bool(self.parts) and all(part.asked == part.proved for part in self.parts)

    @property
    def verdict(self) -> str:
        return "proved" if self.proved else "refuted" if self.refuted else "undecided"

    @property
    def covered(self) -> str:
        """What was proved equal to the quantized forest."""
        names = {part.name for part in self.parts}
        cores = [f"the {kind} core" for kind in ("Verilog", "VHDL") if kind.lower() in names]
        cores += ["the engine's image, walked by its step"] if "image" in names else []
        return " and ".join(cores) or "the netlist, no written file"


class UnprovedError(Exception):
    """Raised if a part can't be proved. words: input for which results may differ. wrong: True if the design is
    certainly wrong."""

    def __init__(self, why: str, words: dict[int, int] | None = None, wrong: bool = False) -> None:
        super().__init__(printable(why))
        self.words, self.wrong = words, wrong


class Running:
    """A context manager for one part of a proof: measures its time, and records why it fails."""

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
