"""Holds shared fixtures, and chooses what a run holds.

By default a run takes the first case of each function; `--cases all` takes all, and `--cases rest` what a run by
default leaves out. Tests that need a library or a tool that is missing are skipped, and counted at the end;
FORESTC_REQUIRE_TOOLS=1 makes each a failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# This must be set before the libraries are imported: on small models the threads of all workers mostly wait for each
# other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))  # The helpers of tests are imported as random_forests, models, ...
# The methods of papers are imported as papers.bounded_treewidth, ...
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from needs import REQUIRED, lacking, missing

import forestc.options.keywords  # noqa: F401  (errors name Python's keywords once a public name is used)
from forestc.cli import main
from forestc.toolchain.run import find
from forestc.toolchain.verilator import find_verilator

# The time to draw examples depends on the load of the machine, so it has no limit.
settings.register_profile("forestc", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("forestc")

CASES = Path(__file__).parent / "cases"
BROWSER = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
    parser.addoption("--cases", choices=("first", "all", "rest"), default="first", help="of each test")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # A shell starts programs in the background so.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "FORESTC_CACHE" not in os.environ:  # This run, with all of its workers, has its own cache of compiled programs.
        kept = tempfile.TemporaryDirectory(prefix="forestc-tests-")
        os.environ["FORESTC_CACHE"] = kept.name
        config.add_cleanup(kept.cleanup)
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("golden files are not rewritten by CI")


@pytest.hookimpl(trylast=True)  # behind the choice by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the first case of each function, unless all are asked for, by `--cases all`, by name or by the marker; or
    all but these, which a run by default has.
    """
    cases = config.getoption("--cases")
    if cases == "all" or any("[" in argument for argument in config.args):
        return
    seen: set[str] = set()
    first, others = [], []
    for item in items:
        if cases == "rest" and any(item.get_closest_marker(name) for name in ("slow", "long")):
            others.append(item)
            continue
        function = item.nodeid.partition("[")[0]
        chosen = function not in seen or item.get_closest_marker("each_case") is not None
        (first if chosen else others).append(item)
        seen.add(function)
    items[:], left = (others, first) if cases == "rest" else (first, others)
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Counts a test that lacks a library or a program as skipped."""
    report = yield
    name = missing(call.excinfo.value) if report.failed and call.excinfo else ""
    if name:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, f"{name} is not installed")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Counts a module of tests that lacks a library as skipped."""
    report = yield
    if report.failed and (name := lacking(str(report.longrepr))):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"{name} is not installed")
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what was skipped, and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count:5}: {reason}")


def pytest_sessionstart() -> None:
    """Compiles, in one worker, a function that several need; the others read it from numba's cache."""
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compiles = Dispatcher.compile

    def one_at_a_time(self: Dispatcher, signature: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock"
        with global_compiler_lock, (Path(os.environ["FORESTC_CACHE"]) / name).open("w") as file:
            flock(file, LOCK_EX)
            return compiles(self, signature)

    Dispatcher.compile = one_at_a_time


@pytest.fixture
def need_tool() -> Callable[[str], None]:
    """Skips the test, or fails it under FORESTC_REQUIRE_TOOLS, if a program or a library is not installed."""

    def need(name: str) -> None:
        found = find_verilator() is not None if name == "verilator" else bool(find(name) or find_spec(name))
        if found:
            return
        if REQUIRED:
            pytest.fail(f"{name} is not installed and FORESTC_REQUIRE_TOOLS is set")
        pytest.skip(f"{name} is not installed")

    return need


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, by Playwright; None if it is not installed."""
    path = shutil.which("chromium")
    if path is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER)
        yield browser
        browser.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Gives the folder in which commands run. Modules with tests that share files override it."""
    return tmp_path


@pytest.fixture
def run(work: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command (words, or one line) in the folder `work`; returns status, standard output and standard error."""
    monkeypatch.chdir(work)

    def call(*words: object) -> tuple[Any, str, str]:
        parts = str(words[0]).split() if len(words) == 1 else [str(word) for word in words]
        with pytest.raises(SystemExit) as caught:
            main(parts)
        out = capfd.readouterr()
        if name := lacking(out.err):
            pytest.skip(f"{name} is not installed")
        return caught.value.code, out.out, out.err

    return call


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with tests/golden/NAME; --update-golden rewrites it."""
    folder = Path(__file__).parent / "golden"

    def compare(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        assert path.is_file(), f"{path} is missing: run pytest --update-golden and look at what it writes"
        assert text == path.read_text()

    return compare
