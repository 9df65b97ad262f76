"""Small changes of the code, one at a time, and whether a test notices.

    python tests/mutants.py --sample 60
    python tests/mutants.py --only forestc/lowering/sums.py
    python tests/mutants.py --sample 200 --seed 50 --calls calls.jsonl --json before.json
    python tests/mutants.py --again before.json --tests-from ../other --calls calls.jsonl --json after.json

A mutant has one comparison, sum, constant, `not`, `and` or `or` replaced. All tests of TESTS run once, which shows the
functions that each test calls (`--calls` keeps them in a file: only tests that it lacks run again). A mutant is tried
by the tests that call its function, the quickest first, until one fails or the limit of processor time is reached. One
that lives shows a missing test, or is a change that says the same, such as a bound that is never reached.

`--json` is written after each mutant; the same command goes on where it stopped, and tries what lives by tests that
are new. `--again` tries the mutants that were noticed before, first by the test that noticed them, on the code and the
tests of another checkout if `--tests-from` names one; a mutant is found by its file, function and change.

Left out are slow tests and LEFT_OUT: other processes run the code there, which sees no mutant.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout, suppress
from cProfile import Profile
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

FOLDERS = (
    "forestc/lowering", "forestc/passes", "forestc/backends", "forestc/checks", "forestc/engine", "forestc/frontends",
)  # fmt: skip
TESTS = ("tests",)
LEFT_OUT = (
    "tests/algorithms", "tests/papers", "tests/hw_sim", "tests/netlist",  # what the folders are built on
    "tests/docs", "tests/test_examples.py", "tests/test_interrupt.py", "tests/rows/test_cluster.py",
    "tests/exploration/test_pool.py",
)  # fmt: skip
LIBRARIES = (  # imported once, before the processes fork
    "lightgbm", "xgboost", "sklearn.ensemble", "sklearn.pipeline", "catboost", "onnx", "onnxruntime", "skl2onnx",
    "treelite", "pandas", "pyarrow.dataset", "scipy.optimize", "hypothesis", "amaranth", "jsonschema", "highspy",
)  # fmt: skip
LIMIT = 90  # seconds of processor time for the tests of a mutant
SLOWER = 20.0, 10.0  # a test hangs after these seconds of processor time, and this many times what it usually takes
SILENCE = 150.0  # seconds without word from a test, and ten times what it usually takes, after which it hangs
BATCHES = (12, 60, 300)  # tests that one process tries, after which the next gets the rest
SEED = 50  # of hypothesis: the same examples in each run
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


@dataclass
class Mutant:
    """A change, and what tests said to it. `number` counts equal changes of one function, from 0."""

    file: str
    function: str  # "" outside of functions
    number: int
    was: str
    becomes: str
    line: int
    before: str = ""  # the test that noticed it in an earlier run
    outcome: str = ""  # one of NOTICED, "lives", "lives within the limit", "is not in the code"; "" before it is tried
    test: str = ""  # the first test that noticed
    seconds: float = 0.0  # of processor time
    reached: int = 0  # tests that call the function
    tried: list[str] = field(default_factory=list)

    @property
    def change(self) -> tuple[str, str, str, str, int]:
        return self.file, self.function, self.was, self.becomes, self.number

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was} -> {self.becomes}"


NOTICED = ("fails", "hangs", "dies")  # what the test does: "dies" ends its process, "hangs" never ends


class Replace(ast.NodeTransformer):
    """Lists all changes of a file in the order of visits, and makes one of them; annotations are left out."""

    def __init__(self, file: str, wanted: tuple[str, str, str, str, int] | None = None) -> None:
        self.file, self.wanted, self.found = file, wanted, list[Mutant]()
        self.scope, self.equal = [""], Counter[tuple[str, str, str]]()

    def visit(self, node: ast.AST) -> ast.AST:
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Name("put_back_after_the_visit"))
        new = changed(node)
        if new is not None:
            key = self.scope[-1].removesuffix(".<locals>."), ast.unparse(node), ast.unparse(new)
            if self.scope[-1].endswith("class."):  # a class's body runs once, as the module does
                key = "", *key[1:]
            self.found.append(Mutant(self.file, key[0], self.equal[key], *key[1:], getattr(node, "lineno", 0)))
            self.equal[key] += 1
            if self.found[-1].change == self.wanted:
                return ast.copy_location(new, node)
        match node:
            case ast.FunctionDef(name):
                self.scope.append(f"{self.scope[-1].removesuffix('class.')}{name}.<locals>.")
            case ast.ClassDef(name):
                self.scope.append(f"{self.scope[-1].removesuffix('class.')}{name}.class.")
            case _:
                return self.generic_visit(node)
        node = self.generic_visit(node)
        self.scope.pop()
        return node

    def read(self) -> ast.Module:
        """The changed tree. Dataclasses need their fields' annotations, which are put back after the visit."""
        tree = ast.parse(Path(self.file).read_text())
        kept = [(node, name, getattr(node, name)) for node in ast.walk(tree) for name in ("annotation", "returns")
                if getattr(node, name, None) is not None]  # fmt: skip
        self.visit(tree)
        for node, name, annotation in kept:
            setattr(node, name, annotation)
        return ast.fix_missing_locations(tree)


def mutants(places: Iterable[str]) -> Iterator[Mutant]:
    for place in map(Path, places):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            listed = Replace(path.as_posix())
            listed.read()
            yield from listed.found


class Calls:
    """A plugin of pytest that writes each test's seconds, and the functions of FOLDERS that it calls, to a file."""

    def __init__(self, path: Path, known: Iterable[str]) -> None:
        self.lines, self.known = path.open("a"), set(known)
        self.numbers: dict[str, int] = {}
        self.main, self.others = Profile(builtins=False, subcalls=False), list[Profile]()
        self.counts: dict[tuple[int, CodeType], int] = {}
        self.root = Path.cwd()  # some tests change it
        self.folders = tuple(f"{self.root}/{folder}/" for folder in FOLDERS)
        self.codes, self.failed, self.called = set[CodeType](), False, False
        sys.getprofile = lambda: None  # a test that counts calls puts back what it found: here it ends the profile

    def write(self, **line: object) -> None:
        self.lines.write(json.dumps(line) + "\n")
        self.lines.flush()

    def other(self, frame: object, event: str, argument: object) -> None:
        """Begins the profile of another thread."""
        sys.setprofile(None)
        self.others.append(Profile(builtins=False, subcalls=False))
        self.others[-1].enable()

    def take(self) -> None:
        """Adds to `codes` what was called since the last time."""
        self.main.disable()
        for entry in self.main.getstats():
            if isinstance(entry.code, CodeType) and entry.code.co_filename.startswith(self.folders):
                self.codes.add(entry.code)
        self.main.clear()
        for number, profile in enumerate(self.others):
            for entry in profile.getstats():
                if isinstance(entry.code, CodeType) and entry.code.co_filename.startswith(self.folders):
                    if self.counts.get((number, entry.code)) != entry.callcount:
                        self.codes.add(entry.code)
                    self.counts[number, entry.code] = entry.callcount

    def begin(self) -> None:
        threading.setprofile(self.other)
        self.main.enable()

    def end(self) -> list[str]:
        """The functions called, by file and name."""
        self.take()
        threading.setprofile(None)
        names = {f"{Path(code.co_filename).relative_to(self.root)}::{code.co_qualname}" for code in self.codes}
        self.codes = set()
        return sorted(names)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.known]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.failed = self.called = False
        start = processor_seconds()
        self.begin()
        yield
        calls = self.end()
        passed = self.called and not self.failed
        self.write(test=item.nodeid, seconds=round(processor_seconds() - start, 3), passed=passed, calls=calls)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= not report.passed
        self.called |= report.when == "call"

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[None]:
        if fixturedef.scope == "function":
            yield
            return
        self.take()
        before, self.codes = self.codes, set()
        self.begin()
        yield
        kept = self.end()
        self.write(file=request.node.nodeid.split("::")[0], calls=kept)
        self.codes = before
        self.begin()


class Reach:
    """The tests that pass, with their seconds and the functions that they call."""

    def __init__(self, path: Path, collected: Iterable[str]) -> None:
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, set[str]] = {}  # of a function, and of a file
        exist, shared, every = set(collected), dict[str, list[str]](), dict[str, list[str]]()
        for line in map(json.loads, path.read_text().splitlines()):
            if "file" in line:
                shared.setdefault(line["file"], []).extend(line["calls"])
            elif line["passed"] and line["test"] in exist:
                self.seconds[line["test"]], every[line["test"]] = line["seconds"], line["calls"]
        for test, calls in every.items():
            for called in {*calls, *shared.get(test.split("::")[0], [])}:
                self.tests.setdefault(called, set()).add(test)
                self.tests.setdefault(called.split("::")[0], set()).add(test)

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that call the function of a mutant, the one that noticed it before and then the quickest first.

        For a line of no function, and a function that only compiled code calls, the tests that call any of the module.
        """
        names = self.tests.get(f"{mutant.file}::{mutant.function}") or self.tests.get(mutant.file, set())
        return sorted(names, key=lambda name: (name != mutant.before, self.seconds[name], name))


class Trial:
    """A plugin of pytest that runs the named tests in their order, and says how each ends."""

    def __init__(self, names: list[str], reach: Reach, seconds: float, say: Any) -> None:
        self.order, self.reach, self.seconds, self.say = {name: n for n, name in enumerate(names)}, reach, seconds, say

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(kept, key=lambda item: self.order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say(("fails", report.nodeid))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        usual = self.reach.seconds[item.nodeid]
        if processor_seconds() + usual > self.seconds:
            self.say(("stops", ""))
            item.session.shouldstop = "the limit"
            return True  # the test does not run
        signal.setitimer(signal.ITIMER_PROF, SLOWER[0] + SLOWER[1] * usual)
        self.say(("starts", item.nodeid))
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.say(("fails", report.nodeid))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


def processor_seconds(who: tuple[int, ...] = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who))


def tested(mutant: Mutant | None, names: list[str], reach: Reach, seconds: float, folder: str, sender: Any) -> None:
    """Runs tests in a process of their own, with a mutant's code in place of its module's, and sends how they end."""
    os.setpgid(0, 0)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # a mutant that fills the memory ends first
    if mutant:
        replace(mutant)
    files = dict.fromkeys(name.split("::")[0] for name in names)
    status = quietly(["-x", *files], [Trial(names, reach, seconds, sender.send)], folder)
    sender.send(("ends", "") if status in (0, 1, 2, 5) else ("fails", f"pytest with status {status}"))
    os._exit(0)


def replace(mutant: Mutant) -> None:
    path = Path.cwd() / mutant.file
    code = compile(Replace(mutant.file, mutant.change).read(), path, "exec")
    read, keep = SourceFileLoader.get_code, Dispatcher.enable_caching

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return code if Path(loader.path) == path else read(loader, name)

    def enable_caching(function: Any) -> None:
        if Path(function.py_func.__code__.co_filename) != path:  # numba would take the kernel of the file's own text
            keep(function)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    Dispatcher.enable_caching = enable_caching


def quietly(words: list[str], plugins: list[object], folder: str) -> int:
    """pytest's status. What tests and libraries keep goes to a folder of this run."""
    os.environ.update(TMPDIR=folder, HYPOTHESIS_STORAGE_DIRECTORY=f"{folder}/hypothesis")
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts with it ignored
    words = [*words, "-q", "-p", "no:cacheprovider", f"--hypothesis-seed={SEED}", f"--basetemp={folder}/tests",
             "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # a plugin's library is imported before  # fmt: skip
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        return int(pytest.main(words, plugins))


def trial(mutant: Mutant | None, names: list[str], reach: Reach, seconds: float) -> tuple[str, str, list[str]]:
    """How the tests end (one of NOTICED, "stops" at the limit, "ends"), at which test, and the tests that began."""
    receiver, sender = FORK.Pipe(duplex=False)
    began: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        child = FORK.Process(target=tested, args=(mutant, names, reach, seconds, folder, sender))
        child.start()
        sender.close()
        says, which = "starts", ""
        while says == "starts":
            silence = SILENCE + 10 * (reach.seconds[began[-1]] if began else 0)
            try:
                says, which = receiver.recv() if receiver.poll(silence) else ("hangs", "")
            except EOFError:
                child.join()
                says, which = "hangs" if child.exitcode == -signal.SIGPROF else "dies", ""
            if says == "starts":
                began.append(which)
        with suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)  # with all that the tests began
        child.join()
    return says, which or (began[-1] if began else "before the first test"), began


def tried(mutant: Mutant, reach: Reach, limit: float) -> Mutant:
    """The mutant with what the tests say that did not try it before."""
    reached = reach.of(mutant)
    mutant.reached = len(reached)
    if mutant.change not in {other.change for other in mutants([mutant.file])}:
        mutant.outcome = "is not in the code"
        return mutant
    left, sizes, says = [name for name in reached if name not in set(mutant.tried)], iter(BATCHES), ""
    while left and says != "stops" and mutant.seconds < limit:
        start, size = processor_seconds(), 1 if mutant.before == left[0] else next(sizes, len(left))
        batch = sorted(left[:size], key=lambda name: name.split("::")[0])  # a module's fixtures are made once
        says, which, began = trial(mutant, batch, reach, limit - mutant.seconds)
        mutant.seconds = round(mutant.seconds + processor_seconds() - start, 2)
        over = set(batch if says == "ends" else began)  # a test that is not there, as a mutant left it out, is over
        mutant.tried += [name for name in batch if name in over]
        left = [name for name in left if name not in over]
        if says in NOTICED and (which not in reach.seconds or sound(which, reach)):
            mutant.outcome, mutant.test = says, which
            return mutant
    mutant.outcome = "lives within the limit" if left else "lives"
    return mutant


@cache
def sound(name: str, reach: Reach) -> bool:
    """Whether a test passes alone, without a mutant: one that needs others, or what they left, shows nothing."""
    says, _, began = trial(None, [name], reach, 10 * LIMIT)
    if says != "ends" or not began:
        print(f"        {name} {says} without a mutant", flush=True)
    return says == "ends" and bool(began)


def collected(words: list[str], calls: Path) -> list[str]:
    """The names of all tests; those that the file of calls lacks are run before."""

    class Names:
        names: list[str]

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            self.names = [item.nodeid for item in session.items]

    def run() -> None:
        known = [json.loads(line).get("test", "") for line in calls.read_text().splitlines()] if calls.exists() else []
        ignored = [f"--ignore={place}" for place in LEFT_OUT]
        with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
            names = Names()
            quietly([*words, *ignored, "--collect-only"], [names], folder)
            sender.send(names.names)
            if set(names.names) - set(known):
                os.environ.pop("FORESTC_CACHE", None)  # the folder of the run before
                status = quietly([*words, *ignored, "-o", "timeout=3000"], [Calls(calls, known)], folder)
                assert status in (0, 1), f"pytest ended with status {status}"
        sender.send(None)
        os._exit(0)

    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=run)
    child.start()
    sender.close()  # an end without words raises EOFError here
    names: list[str] = receiver.recv()
    receiver.recv()
    child.join()
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(FOLDERS), metavar="PATHS", help="folders or modules of forestc")
    parser.add_argument("--sample", type=int, metavar="N", help="that many, drawn at random; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default 2)")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help=f"a mutant (default {LIMIT})")
    parser.add_argument("--tests", default=",".join(TESTS), metavar="PATHS", help="tests that try (default: all)")
    parser.add_argument("--tests-from", type=Path, default=Path(__file__).parents[1], metavar="DIR", help="a checkout")
    parser.add_argument("--calls", type=Path, metavar="FILE", help="what each test calls, kept between runs")
    parser.add_argument("--only-calls", action="store_true", help="run the tests that --calls lacks, and no mutant")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the mutants and what noticed them")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try those that were noticed in this --json FILE")
    options = parser.parse_args()
    kept, again = (path and path.resolve() for path in (options.json, options.again))
    calls = (options.calls or Path(tempfile.mkdtemp(prefix="mutants-")) / "calls.jsonl").resolve()
    root = str(options.tests_from.resolve())
    os.chdir(root)
    sys.path[0] = root
    os.environ.update(PYTHONPATH=root, OMP_NUM_THREADS="1")
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)

    names = collected(options.tests.split(","), calls)
    reach = Reach(calls, names)
    print(f"{len(names)} tests, {len(reach.seconds)} pass, in {sum(reach.seconds.values()):.0f} s", flush=True)
    if options.only_calls:
        return

    every = chosen(options, kept, again)
    todo = [mutant for mutant in every if mutant.outcome not in NOTICED]
    with ProcessPoolExecutor(options.jobs, FORK) as pool:
        each = pool.map if options.jobs > 1 else map
        for mutant in each(tried, todo, repeat(reach), repeat(options.limit)):
            every = [mutant if other.change == mutant.change else other for other in every]
            print(f"{mutant.outcome:7} {mutant}  {mutant.test}", flush=True)
            if mutant.before and mutant.outcome not in NOTICED:
                print(f"LOST    {mutant}  {mutant.before}", flush=True)
            if kept:
                write(kept, options.seed, every)
    print(f"{sum(mutant.outcome not in NOTICED for mutant in every)} of {len(every)} mutants live")


def chosen(options: argparse.Namespace, kept: Path | None, again: Path | None) -> list[Mutant]:
    """The mutants of a file, or drawn."""
    if kept and kept.exists():
        return [Mutant(**record) for record in json.loads(kept.read_text())["mutants"]]
    if again:
        records = json.loads(again.read_text())["mutants"]
        places = ("file", "function", "number", "was", "becomes", "line")
        return [Mutant(**{name: record[name] for name in places}, before=record["test"]) for record in records
                if record["outcome"] in NOTICED]  # fmt: skip
    every = list(mutants(options.only.split(",")))
    return Random(options.seed).sample(every, options.sample) if options.sample else every


def write(path: Path, seed: int, every: list[Mutant]) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    half = path.with_name(path.name + ".half")
    half.write_text(json.dumps({"seed": seed, "commit": commit, "mutants": [asdict(m) for m in every]}, indent=1))
    half.replace(path)


if __name__ == "__main__":
    main()
