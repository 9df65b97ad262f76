"""Compares the code of two versions without docstrings, comments, messages and names.

    python benchmarks/same_code.py BASE    # BASE: a commit; it is compared with the files of the working folder

It lists renamed names and changed texts. Raised errors and imports are not compared. Exit status 1 if any statement
differs.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROOMS = ("forestc", "hw_sim", "hdl_templates", "benchmarks", "examples", "docs")
# Lists the field of each node that holds a name.
NAMES: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
}
LISTS = {"names": (ast.Global, ast.Nonlocal), "kwd_attrs": (ast.MatchClass,)}


class Bare(ast.NodeTransformer):
    """Removes docstrings, imports and the texts of errors from a syntax tree."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return None
        if isinstance(node, ast.Raise):
            return ast.Raise(ast.Name("RAISED"), None)
        if isinstance(node, ast.JoinedStr):
            values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            return self.generic_visit(ast.Call(ast.Name("TEXT"), values, []))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            node.body = [part for part in node.body if part is not first and not isinstance(part, ast.Pass)]
        return self.generic_visit(node)


def parts_of(node: Any, names: list[str], texts: list[str]) -> Any:
    """Returns a tree as nested tuples without its names and texts, which are added to the lists."""
    if isinstance(node, list):
        return tuple(parts_of(part, names, texts) for part in node)
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        texts.append(node.value)
        return "text"
    field = NAMES.get(type(node))
    names += [] if field is None else [str(getattr(node, field))]
    parts = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in LISTS and isinstance(node, LISTS[name]):
            names += value
        elif name not in (field, "ctx", "type_comment", "kind"):
            parts.append(parts_of(value, names, texts))
    return tuple(parts)


def git(*command: str) -> str:
    """Runs git in the project; returns its output."""
    return subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True).stdout


def moved(base: str) -> dict[str, str]:
    """Returns the new path of each file that was renamed since `base`."""
    lines = [line.split("\t") for line in git("diff", "-M30%", "--name-status", base, "--", *ROOMS).splitlines()]
    return {line[1]: line[2] for line in lines if line[0].startswith("R")}


def compare(before: str, after: str, renamed: Counter[str], texts: list[str]) -> list[str]:
    """Returns what differs between two sources, a line each. Adds renamed names and changed texts to the arguments."""
    old, new = Bare().visit(ast.parse(before)).body, Bare().visit(ast.parse(after)).body
    if len(old) != len(new):
        return [f"{len(old)} statements became {len(new)}"]
    wrong = []
    for left, right in zip(old, new, strict=True):
        names: tuple[list[str], list[str]] = ([], [])
        words: tuple[list[str], list[str]] = ([], [])
        if parts_of(left, names[0], words[0]) != parts_of(right, names[1], words[1]):
            wrong.append(f"line {right.lineno}: {getattr(right, 'name', type(right).__name__)}")
            continue
        for was, now in zip(*names, strict=True):
            renamed.update([f"{was} -> {now}"] if was != now else [])
        texts += [f"{was!r:.60} -> {now!r:.60}" for was, now in zip(*words, strict=True) if was != now]
    return wrong


def main() -> int:
    """Compares all modules; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE")
    base = parser.parse_args().base
    paths = moved(base)
    renamed: Counter[str] = Counter()
    texts: list[str] = []
    wrong = []
    for file in git("ls-tree", "-r", "--name-only", base, "--", *ROOMS).splitlines():
        path = ROOT / paths.get(file, file)
        if file.endswith(".py"):
            after = path.read_text(encoding="utf-8") if path.is_file() else ""
            wrong += [f"{file}, {fault}" for fault in compare(git("show", f"{base}:{file}"), after, renamed, texts)]
    for title, lines in (("differs", wrong), ("renamed", sorted(renamed)), ("texts", texts)):
        sys.stdout.writelines(f"{title}: {line}\n" for line in lines)
    print(f"{len(wrong)} statements differ, {len(renamed)} names, {len(texts)} texts of the code")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
