"""Holds shared fixtures. FORESTC_REQUIRE_TOOLS=1 turns every "tool missing, skipped" into a failure."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
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


def pytest_configure(config: pytest.Config) -> None:
    if "FORESTC_CACHE" not in os.environ:  # This run, with all of its workers, has its own cache of compiled programs.
        kept = tempfile.TemporaryDirectory(prefix="forestc-tests-")
        os.environ["FORESTC_CACHE"] = kept.name
        config.add_cleanup(kept.cleanup)
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("golden files are not rewritten by CI")


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
        if os.environ.get("FORESTC_REQUIRE_TOOLS"):
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
