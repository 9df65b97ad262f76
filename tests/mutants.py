"""Small changes of the code, one at a time, and whether the tests of its folder notice.

    python tests/mutants.py --sample 60
    python tests/mutants.py --only forestc/lowering/sums.py

A mutant has one comparison, sum, constant, `not`, `and` or `or` replaced. It is tried by the tests of its folder:
`test_text.py`, which is quick, then the files that are named after its module, then the others (`--near` leaves these
out). One that lives shows a missing test, or is a change that says the same, such as a bound that is never reached.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import lightgbm  # noqa: F401
import numba  # noqa: F401
import pytest
import sklearn.ensemble  # noqa: F401
import xgboost  # noqa: F401

ROOT = Path(__file__).parents[1]
FOLDERS = ("forestc/lowering", "forestc/passes")
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one thing replaced; None if there is nothing to replace."""
    match node:
        case ast.Compare(left, [op], right) if type(op) in SWAPPED:
            return ast.Compare(left, [SWAPPED[type(op)]()], right)
        case ast.BinOp(left, (ast.Add() | ast.Sub()) as op, right):
            return ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.BoolOp(op, values):
            return ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool(value)):
            return ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            return ast.Constant(value + 1)
    return None


class Replace(ast.NodeTransformer):
    """Replaces the node of a number, counted in the order of visits; annotations are left out."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted, self.seen, self.what = wanted, 0, ""

    def visit(self, node: ast.AST) -> ast.AST:
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Name("put_back_after_the_visit"))
        new = changed(node)
        if new is not None:
            if self.seen == self.wanted:
                self.what = f"{getattr(node, 'lineno', 0)}: {ast.unparse(node)} -> {ast.unparse(new)}"
                self.seen += 1
                return ast.copy_location(new, node)
            self.seen += 1
        return self.generic_visit(node)


def mutated(path: Path, number: int) -> tuple[str, str]:
    """The text of a file's mutant, and what is changed in which line."""
    replace = Replace(number)
    tree = _with_annotations(ast.parse(path.read_text()), replace)
    return ast.unparse(tree), replace.what


def _with_annotations(tree: ast.Module, replace: Replace) -> ast.Module:
    """The changed tree. Dataclasses need their fields' annotations, which are put back after the visit."""
    kept = {id(node): (node, getattr(node, name), name) for node in ast.walk(tree) for name in ("annotation", "returns")
            if getattr(node, name, None) is not None}  # fmt: skip
    made = replace.visit(tree)
    for node, annotation, name in kept.values():
        setattr(node, name, annotation)
    return ast.fix_missing_locations(made)


def test_files(path: Path) -> tuple[list[str], list[str], list[str]]:
    """The test files of a module's folder: the quick one, those named after the module or its folder, the others."""
    folder = ROOT / "tests" / path.relative_to(ROOT / "forestc").parts[0]
    words = {path.stem, path.parent.name} - {folder.name}
    quick, near, others = list[str](), list[str](), list[str]()
    for file in sorted(folder.glob("test_*.py")):
        named = any(word in file.stem for word in words)
        group = quick if file.name == "test_text.py" else near if named else others
        group.append(str(file.relative_to(ROOT)))
    return quick, near, others


def noticed(path: Path, text: str, near_alone: bool, seconds: float) -> bool:
    """Whether a test fails, or takes too long, where the module has this text."""
    quick, near, others = test_files(path)
    for files in (quick, near, () if near_alone and near else others):
        if files:
            child = get_context("fork").Process(target=tested, args=(path, text, files))  # libraries are imported once
            child.start()
            child.join(seconds)
            if child.is_alive():
                child.kill()
                return True
            if child.exitcode:
                return True
    return False


def tested(path: Path, text: str, files: list[str]) -> None:
    """Ends this process with pytest's status, with another text in place of a module's."""
    read = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return compile(text, path, "exec") if Path(loader.path) == path else read(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        status = pytest.main(["-p", "no:cacheprovider", "-q", "-x", *files])
    os._exit(status)


def mutants(only: list[str]) -> Iterator[tuple[Path, int]]:
    for name in only:
        place = ROOT / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            count = Replace()
            _with_annotations(ast.parse(path.read_text()), count)
            yield from ((path, number) for number in range(count.seen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FOLDERS), metavar="PATHS", help="folders or modules of forestc")
    parser.add_argument("--sample", type=int, metavar="N", help="that many, drawn at random; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--near", action="store_true", help="only test files that are named after the module")
    parser.add_argument("--seconds", type=float, default=600, help="a mutant that takes longer counts as noticed")
    options = parser.parse_args()
    every = list(mutants(options.only.split(",")))
    chosen = random.Random(options.seed).sample(every, options.sample) if options.sample else every
    living = 0
    for path, number in chosen:
        text, what = mutated(path, number)
        lives = not noticed(path, text, options.near, options.seconds)
        living += lives
        print(f"{'LIVES  ' if lives else 'noticed'} {path.relative_to(ROOT)}:{what}", flush=True)
    print(f"{living} of {len(chosen)} mutants live (of {len(every)})")


if __name__ == "__main__":
    main()
