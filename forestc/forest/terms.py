"""Shared terms: how the logic of a forest's clauses may be built from ANDs and ORs that are computed once.

A tree is a clause if one of its leaves alone has the higher of its two values (the lower one where the smallest value
counts): the AND of the literals on the way to that leaf. A root says that some clauses, joined by OR, are a term. It
adds nothing to what the forest means: evaluators and C ignore it, `verify` shows that it is right, and lowering builds
gates by it.

The text form, with `#k` for the k-th term:

    term 0 < 5 & not 3 in {1,4} missing left
    term #0 | 2 < 7
    root 0 1 2 = #1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOfThese
from typing import TypeAlias

from forestc.errors import ModelError
from forestc.forest.conditions import Below, Condition, OneOf, Within, members_of

Kind: TypeAlias = OneOfThese["and", "or"]
SIGNS: dict[Kind, str] = {"and": " & ", "or": " | "}


@dataclass(frozen=True)
class Literal:
    """A condition, or that it does not hold."""

    condition: Condition
    holds: bool = True


Operand: TypeAlias = Literal | int  # a literal, or the number of an earlier term


@dataclass(frozen=True)
class Term:
    """The AND or OR of two operands or more."""

    kind: Kind
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Root:
    """The OR of the clauses of these trees is the operand."""

    trees: tuple[int, ...]
    operand: Operand


@dataclass(frozen=True)
class SharedTerms:
    """A tree is in one root at most; trees without one are lowered by themselves."""

    terms: tuple[Term, ...] = ()
    roots: tuple[Root, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms or self.roots)


def term_lines(shared: SharedTerms) -> Iterator[str]:
    """The text form."""
    for term in shared.terms:
        yield f"term {SIGNS[term.kind].join(map(_operand_text, term.operands))}"
    for root in shared.roots:
        yield f"root {' '.join(map(str, root.trees))} = {_operand_text(root.operand)}"


def _operand_text(operand: Operand) -> str:
    if isinstance(operand, int):
        return f"#{operand}"
    condition = operand.condition
    if isinstance(condition.test, Below):
        test = f"< {condition.test.threshold!r}"
    else:
        members = ",".join(map(repr, members_of(condition.test)))
        test = f"in {{{members}}}" if isinstance(condition.test, OneOf) else f"in [{members}]"
    return f"{'not ' * (not operand.holds)}{condition.feature} {test}{' missing left' * condition.missing_left}"


_NUMBERS = r"-?\d{1,20}(?:,-?\d{1,20})*"
_OPERAND = re.compile(
    rf"#(?P<term>\d{{1,9}})|(?P<not>not )?(?P<feature>\d{{1,9}}) "
    rf"(?:< (?P<below>-?\d{{1,20}})|in (?:\{{(?P<codes>{_NUMBERS})?\}}|\[(?P<cuts>{_NUMBERS})?\]))"
    r"(?P<missing> missing left)?"
)
_ROOT = re.compile(r"root (\d{1,9}(?: \d{1,9})*) = (.*)")


def parse_terms(terms: Iterable[str], roots: Iterable[str]) -> SharedTerms:
    """Parses the lines of the text form. Raises ModelError."""
    parsed, joined = [], []
    for line in terms:
        kind: Kind = "or" if SIGNS["or"] in line else "and"
        parsed.append(Term(kind, tuple(map(_parse_operand, line.removeprefix("term ").split(SIGNS[kind])))))
    for line in roots:
        match = matched(_ROOT, line)
        joined.append(Root(tuple(map(int, match[1].split(" "))), _parse_operand(match[2])))
    return SharedTerms(tuple(parsed), tuple(joined))


def matched(pattern: re.Pattern[str], text: str, where: str = "") -> re.Match[str]:
    """The match of a whole text. Raises ModelError, naming `where`, for a text that does not match."""
    match = pattern.fullmatch(text)
    if not match:
        raise ModelError(f"can't read {text[:60]!r}", where=where)
    return match


def _parse_operand(text: str) -> Operand:
    match = matched(_OPERAND, text)
    if match["term"]:
        return int(match["term"])
    test: Below | OneOf | Within
    if match["below"]:
        test = Below(int(match["below"]))
    elif " in {" in text:
        test = OneOf(_numbers(match["codes"]))
    else:
        test = Within(_numbers(match["cuts"]))
    return Literal(Condition(int(match["feature"]), test, match["missing"] is not None), match["not"] is None)


def _numbers(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def reads_of(operands: Sequence[Operand]) -> list[int]:
    """The terms among operands."""
    return [operand for operand in operands if isinstance(operand, int)]
