"""Makes environments that hold the packages of a page's install line, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from docs.page_runner import Block

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_LINE = re.compile(r'^    pip install (".*)$', re.MULTILINE)
_NO_ENVIRONMENT = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "YOSYS")


def install_line(page: Path) -> list[str]:
    """Returns pip's arguments in the first install line of a page, which is an indented block of its own."""
    found = _LINE.search(page.read_text(encoding="utf-8"))
    assert found is not None, f"{page} has no install line"
    return shlex.split(found[1], comments=True)


def uv() -> list[str]:
    return [sys.executable, "-m", "uv"] if find_spec("uv") else [shutil.which("uv") or "uv"]


def find_python(version: str) -> str | None:
    """Returns an interpreter of a version such as 3.13: pyenv's, else one on the PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob(f"{version}.*/bin/python3")
    for python in (*map(str, pyenv), shutil.which(f"python{version}")):
        if python and not subprocess.run([python, "-c", ""], capture_output=True).returncode:
            return python
    return None


def outside(first: Path) -> dict[str, str]:
    """Returns this process's variables without its environment; its PATH begins with a folder."""
    ours = str(Path(sys.executable).parent)
    paths = [path for path in os.environ["PATH"].split(os.pathsep) if path != ours]
    variables = {name: value for name, value in os.environ.items() if name not in _NO_ENVIRONMENT}
    return {**variables, "PATH": os.pathsep.join([str(first), *paths])}


class Environment:
    """A new environment. Its programs see neither the environment of this process nor the folder of the project.

    given: arguments of pip, relative to the project's folder.
    python: a version, or an interpreter.
    options: of `uv pip install`.
    """

    def __init__(
        self, folder: Path, given: list[str], python: str = sys.executable, options: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.env = outside(folder / "bin")
        self.run([*uv(), "venv", "--quiet", "--python", python, str(folder)], ROOT)
        self.python = str(folder / "bin" / "python")
        self.run([*uv(), "pip", "install", "--quiet", "--python", self.python, *options, *given], ROOT)

    def run(self, command: list[str], cwd: Path) -> str:
        done = subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_page(self, page: Path, blocks: list[Block], cwd: Path) -> int:
        """Runs blocks of a page; returns how many were run."""
        given = self.folder / f"{page.stem}.json"
        given.write_text(json.dumps([asdict(block) for block in blocks]))
        shutil.copy(Path(__file__).with_name("page_runner.py"), self.folder)
        return int(self.run([self.python, str(self.folder / "page_runner.py"), str(given)], cwd).split()[-3])
