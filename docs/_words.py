"""Checks the texts of the code: docstrings and comments that a reader understands the first time.

    python docs/_words.py [FILE ...]    # all of forestc, hw_sim, benchmarks, docs and examples without FILE

It prints a line for each fault and exits with status 1 if there are any. `make lint` runs it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _sections import parsed

ROOT = Path(__file__).parents[1]
FOLDERS = ("forestc", "hw_sim", "benchmarks", "docs", "examples")
CHAINED = re.compile(r"\b(?:which|whose|that|those|what)\b", re.IGNORECASE)
SENTENCES = re.compile(r"(?<=[.;:?!])\s+|\n\s*\n|\n\s*[-*|]\s|\n\s*(?=\w+(?:, \w+)*: )")
ARGUMENTS = re.compile(r"(?:^|(?<=[.;)] ))\**((?:[a-z_]\w*, )*[a-z_]\w*): ", re.MULTILINE)
CODE = re.compile(r"`[^`]*`|^ {4,}.*$|^>>> .*$", re.MULTILINE)
# Plural nouns and others on s, with which the docstring of a function does not begin.
_NOUNS = """bits bytes as arguments classes columns conditions constants counts names nodes options rows splits trees
    values words results inputs outputs ports signals fields files paths labels leaves numbers parts pairs lines its
    this thus less always minus plus cells nets is has was does errors codes keys levels members models"""
NOUNS = frozenset(_NOUNS.split())
# Units, with which a comment on a constant may begin, as with a verb.
_UNITS = """bits bit bytes byte rows inputs LUTs nodes seconds s ms milliseconds pixels px steps clocks cycles percent
    share MHz Hz MB MiB KiB kB GB baud characters lines words trees times conditions per 1 columns instructions designs
    entries trials points folds samples iterations features classes files runs nanoseconds ns volts literals clauses
    variables members vectors thresholds leaves ports cells flip-flops"""
UNITS = frozenset(_UNITS.split())


def texts(path: Path) -> Iterator[tuple[int, str, str, set[str] | None]]:
    """Yields line, kind and text of each docstring and of each comment of a whole line or on a constant; with the
    parameters or fields that the docstring of a function or class may describe."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, _kind(node), text, _described(node)
    lines = source.split("\n")
    block, start = [], 0
    for number, line in enumerate([*lines, ""], 1):
        if comment := re.match(r"\s*#\s+(?!type:|noqa|ruff:|pragma|pyright)(.+)", line):
            start = start if block else number
            block.append(comment[1])
        elif block:
            yield start, "comment", "\n".join(block), None
            block = []
        if constant := re.match(r"_?[A-Z][A-Z0-9_]*(?:: [^=]+)? = .*?[^\"']  # (?!type:|noqa|ruff:)(.+)", line):
            yield number, "constant", constant[1], None


def _kind(node: ast.AST) -> str:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return "class" if isinstance(node, ast.ClassDef) else "module"
    decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    return "property" if "property" in decorators else "function"


def _described(node: ast.AST) -> set[str] | None:
    """Returns the names that a docstring may describe as `name: meaning`; None for a module."""
    if isinstance(node, ast.Module):
        return None
    inside = list(ast.walk(node))
    names = {part.arg for part in inside if isinstance(part, ast.arg)}
    if isinstance(node, ast.ClassDef):
        stored = [part.target for part in inside if isinstance(part, ast.AnnAssign)]
        stored += [target for part in inside if isinstance(part, ast.Assign) for target in part.targets]
        names |= {target.attr for target in stored if isinstance(target, ast.Attribute)}
        names |= {target.id for target in stored if isinstance(target, ast.Name)}
        names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def faults(kind: str, text: str, described: set[str] | None) -> Iterator[str]:
    """Yields the faults of a text. described: the names that it may describe; None for any."""
    doc = parsed(text)
    if doc.entries:
        meanings = (f"{entry.kind}\n\n{entry.meaning}" for entries in doc.entries.values() for entry in entries)
        text = "\n\n".join((doc.summary, doc.more, *meanings))
    plain = CODE.sub("`", text)
    for sentence in SENTENCES.split(plain):
        if len(words := CHAINED.findall(sentence)) > 1:
            yield f"{', '.join(words)} in one sentence: {' '.join(sentence.split())[:90]}"
    if described is not None:
        named = {name for match in ARGUMENTS.finditer(plain) for name in match[1].split(", ")}
        for name in sorted(named - described):
            yield f"describes {name!r}, which is no parameter or field here"
    first = re.match(r"\W*([\w-]+)", text)
    word = first[1] if first else ""
    if kind == "function" and not (word.endswith("s") and word.lower() not in NOUNS):
        yield f"begins with {word!r}, not with a verb: {text[:70]!r}"
    if kind == "constant" and not (word in UNITS or (word.endswith("s") and word.lower() not in NOUNS)):
        yield f"begins with {word!r}, neither a verb nor a unit: {text[:70]!r}"


def main(arguments: list[str]) -> int:
    """Checks the given files, or all; returns the exit status."""
    named = [Path(name) for name in arguments]
    paths = named or [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    count = 0
    for path in paths:
        for line, kind, text, described in texts(path):
            for fault in faults(kind, text, described):
                count += 1
                sys.stdout.write(f"{path}:{line}: {fault}\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
