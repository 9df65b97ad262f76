"""Changes one thing of the code at a time, and shows the changes that no test notices.

    python tests/mutants.py --sample 40 forestc/lowering tests/lowering tests/backends

The first argument is a folder or module of forestc, the others are tests (words for pytest). A mutant has one
comparison, sum, constant, `not`, `and` or `or` replaced. Each mutant runs the tests in its own process, up to the first
failure. If a mutant lives, either a test is missing or its change has no effect, as with an unreachable bound. Tests
that start forestc in another process see no mutant.
"""

from __future__ import annotations

import argparse
import ast
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

LIBRARIES = (  # lists libraries that are imported once, before the processes fork
    "lightgbm", "xgboost", "sklearn.ensemble", "sklearn.pipeline", "catboost", "onnx", "onnxruntime", "skl2onnx",
    "treelite", "pandas", "pyarrow.dataset", "scipy.optimize", "hypothesis", "amaranth", "jsonschema", "highspy",
)  # fmt: skip
SLOWER = 60, 4  # seconds, and factor of the unchanged code's seconds, after which a mutant's tests hang
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """Returns the node with one thing replaced; None if there is nothing to replace."""
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


@dataclass(frozen=True)
class Mutant:
    """A change of a file. number: counts the changes of the file in the order of visits, from 0."""

    file: str
    number: int
    line: int
    was: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was} -> {self.becomes}"


class Replace(ast.NodeTransformer):
    """A visitor that lists all changes of a file, and makes the one numbered `wanted`. It skips annotations."""

    def __init__(self, file: str, wanted: int = -1) -> None:
        self.file, self.wanted, self.found = file, wanted, list[Mutant]()

    def visit(self, node: ast.AST) -> ast.AST:
        annotations = {name: getattr(node, name) for name in ("annotation", "returns") if getattr(node, name, None)}
        for name in annotations:
            setattr(node, name, None)
        new = changed(node)
        if new is not None:
            line = getattr(node, "lineno", 0)
            self.found.append(Mutant(self.file, len(self.found), line, ast.unparse(node), ast.unparse(new)))
        if new is not None and self.found[-1].number == self.wanted:
            node = ast.copy_location(new, node)
        else:
            node = self.generic_visit(node)
        for name, annotation in annotations.items():
            setattr(node, name, annotation)
        return node

    def read(self) -> ast.Module:
        return ast.fix_missing_locations(self.visit(ast.parse(Path(self.file).read_text())))  # type: ignore[arg-type]


def mutants(place: Path) -> Iterator[Mutant]:
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        listed = Replace(path.as_posix())
        listed.read()
        yield from listed.found


def replace(mutant: Mutant) -> None:
    """Replaces a module's code on import by the mutant's."""
    path = Path.cwd() / mutant.file
    code = compile(Replace(mutant.file, mutant.number).read(), path, "exec")
    read, keep = SourceFileLoader.get_code, Dispatcher.enable_caching

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return code if Path(loader.path) == path else read(loader, name)

    def enable_caching(function: Any) -> None:
        if Path(function.py_func.__code__.co_filename) != path:  # numba would compile the file's own text instead
            keep(function)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    Dispatcher.enable_caching = enable_caching


def tested(mutant: Mutant | None, tests: list[str], folder: str) -> None:
    """Runs the tests in this process and ends it with pytest's status."""
    os.setpgid(0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # If memory runs out, the mutant ends first.
    os.environ.update(TMPDIR=folder, HYPOTHESIS_STORAGE_DIRECTORY=f"{folder}/hypothesis")
    tempfile.tempdir = None
    if mutant:
        replace(mutant)
    words = [*tests, "-xq", "-p", "no:cacheprovider", "--hypothesis-seed=50", f"--basetemp={folder}/tests",
             "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # a plugin's library is imported before  # fmt: skip
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        status = int(pytest.main(words))
    os._exit(status)


def outcome(mutant: Mutant | None, tests: list[str], seconds: float | None) -> str:
    """Runs the tests on a mutant for some seconds; returns "lives", "fails" or "hangs"."""
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        child = get_context("fork").Process(target=tested, args=(mutant, tests, folder))
        child.start()
        child.join(seconds)
        hangs = child.is_alive()
        with suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)  # This also ends all programs that the tests began.
        child.join()
    return "hangs" if hangs else "fails" if child.exitcode else "lives"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", type=Path, help="a folder or module of forestc")
    parser.add_argument("tests", nargs="+", help="tests that try")
    parser.add_argument("--sample", type=int, metavar="N", help="that many, drawn at random; all by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.path[0] = str(Path.cwd())
    os.environ.update(PYTHONPATH=sys.path[0], OMP_NUM_THREADS="1")
    every = list(mutants(options.place))
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    start = time.monotonic()
    if outcome(None, options.tests, None) != "lives":
        sys.exit("the tests fail without a mutant")
    seconds = SLOWER[0] + SLOWER[1] * (time.monotonic() - start)
    counts = Counter[str]()
    for mutant in Random(options.seed).sample(every, options.sample) if options.sample else every:
        said = outcome(mutant, options.tests, seconds)
        counts[said] += 1
        print(f"{said:6} {mutant}", flush=True)
    print(f"{counts['lives']} of {counts.total()} mutants live")


if __name__ == "__main__":
    main()
