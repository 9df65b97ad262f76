"""Small changes of the code, one at a time, and whether a test notices.

    python tests/mutants.py --sample 60
    python tests/mutants.py --only forestc/lowering/sums.py

A mutant has one comparison, sum, constant, `not`, `and` or `or` replaced. All tests of TESTS run once, which shows the
functions that each test calls; a mutant is tried by the tests that call its function, the quickest first. One that
lives shows a missing test, or is a change that says the same, such as a bound that is never reached.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lightgbm  # noqa: F401
import pytest
import sklearn.ensemble  # noqa: F401
import xgboost  # noqa: F401
from numba.core.dispatcher import Dispatcher

ROOT = Path(__file__).parents[1]
FOLDERS = ("forestc/lowering", "forestc/passes")
TESTS = (
    "tests/lowering", "tests/passes", "tests/backends/test_backends.py", "tests/test_combined.py",
    "tests/test_without_rows.py",
)  # fmt: skip
FORK = get_context("fork")
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


Place = tuple[str, int]  # a file, and the line in which a function begins, with its decorators


class Calls:
    """A plugin of pytest that notes the functions of FOLDERS that each test calls, and how long the test takes."""

    def __init__(self) -> None:
        self.codes: dict[int, CodeType] = {}  # by identity: hashing a code object reads all of it
        self.tests: dict[str, tuple[float, set[Place]]] = {}
        self.shared: dict[str, set[Place]] = {}  # a test file's name -> what its fixtures for several tests call

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self.codes[id(frame.f_code)] = frame.f_code

    def taken(self) -> set[Place]:
        """The places of the functions called since the last time."""
        codes, self.codes = self.codes, {}
        folders = tuple(str(ROOT / folder) for folder in FOLDERS)
        return {(c.co_filename, c.co_firstlineno) for c in codes.values() if c.co_filename.startswith(folders)}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.codes, start = {}, time.perf_counter()
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        yield
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        self.tests[item.nodeid] = (time.perf_counter() - start, self.taken())

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[None]:
        before, self.codes = self.codes, {}
        yield
        if fixturedef.scope != "function":
            self.shared.setdefault(request.node.nodeid.split("::")[0], set()).update(self.taken())
        self.codes = before | self.codes


def calls_of_tests() -> dict[str, tuple[float, set[Place]]]:
    """Each test's name to its seconds and the functions that it calls, by running all tests in another process."""

    def run() -> None:
        calls = Calls()
        _quietly([*TESTS], [calls])
        for name, (_, places) in calls.tests.items():
            places |= calls.shared.get(name.split("::")[0], set())
        sender.send(calls.tests)
        os._exit(0)

    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=run)
    child.start()
    tests: dict[str, tuple[float, set[Place]]] = receiver.recv()
    child.join()
    return tests


def tests_for(path: Path, line: int, tests: dict[str, tuple[float, set[Place]]]) -> tuple[list[str], float]:
    """The tests that call the function around a line, the quickest first, and their seconds.

    For a line of no function, and a function that only compiled code calls, the tests that call any of the module.
    """
    begins = 0
    for node in ast.walk(ast.parse(path.read_text())):  # outer functions come before those inside
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or line):
            begins = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    names = [name for name, (_, places) in tests.items() if (str(path), begins) in places]
    if not names:
        names = [name for name, (_, places) in tests.items() if any(file == str(path) for file, _ in places)]
    names.sort(key=lambda name: tests[name][0])
    return names, sum(tests[name][0] for name in names)


def noticed(path: Path, text: str, names: list[str], seconds: float) -> bool:
    """Whether one of the tests fails, or they take too long, where the module has this text."""
    if not names:
        return False
    child = FORK.Process(target=tested, args=(path, text, names))  # libraries are imported once
    child.start()
    child.join(seconds)
    if child.is_alive():
        child.kill()
        return True
    return bool(child.exitcode)


def tested(path: Path, text: str, names: list[str]) -> None:
    """Ends this process with pytest's status, with another text in place of a module's."""
    read, cache = SourceFileLoader.get_code, Dispatcher.enable_caching

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return compile(text, path, "exec") if Path(loader.path) == path else read(loader, name)

    def enable_caching(function: Any) -> None:
        if Path(function.py_func.__code__.co_filename) != path:  # numba would take the kernel of the file's own text
            cache(function)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    Dispatcher.enable_caching = enable_caching
    os._exit(_quietly(["-x", *names], []))


def _quietly(words: list[str], plugins: list[object]) -> int:
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        return int(pytest.main(["-p", "no:cacheprovider", "-q", *words], plugins))


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
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default 2)")
    options = parser.parse_args()
    every = list(mutants(options.only.split(",")))
    chosen = random.Random(options.seed).sample(every, options.sample) if options.sample else every
    tests = calls_of_tests()
    print(f"{len(tests)} tests in {sum(seconds for seconds, _ in tests.values()):.0f} s", flush=True)

    living = 0
    with ProcessPoolExecutor(options.jobs, FORK) as pool:
        for what, lives in pool.map(tried, chosen, repeat(tests)):
            living += lives
            print(f"{'LIVES  ' if lives else 'noticed'} {what}", flush=True)
    print(f"{living} of {len(chosen)} mutants live (of {len(every)})")


def tried(mutant: tuple[Path, int], tests: dict[str, tuple[float, set[Place]]]) -> tuple[str, bool]:
    """What is changed where, and whether no test notices."""
    path, number = mutant
    text, what = mutated(path, number)
    names, seconds = tests_for(path, int(what.split(":")[0]), tests)
    return f"{path.relative_to(ROOT)}:{what}", not noticed(path, text, names, 60 + 5 * seconds)


if __name__ == "__main__":
    main()
