"""Runs the files of a language on rows, and compares their results with the evaluator's."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from forestc.backends.languages.core import VALUE_ERROR
from forestc.backends.languages.files import view_of
from forestc.backends.languages.language import Language
from forestc.backends.running import Difference, copied, difference, rows_of_numbers
from forestc.backends.vectors import Vectors, disturbed, values_of
from forestc.errors import MissingToolError, opt
from forestc.rows.encode import encode
from forestc.toolchain.compilers import version
from forestc.toolchain.run import find, package_folders, run_tool
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.base import Written
    from forestc.forest.evaluate import Evaluation


class LanguageEngine:
    """Runs a driver that reads words and raw rows, and writes labels, scores, words and values."""

    def __init__(self, language: Language, engine: str, design: Written, folder: Path) -> None:
        run = language.runs[engine]
        missing = [name for name in run.programs if find(name) is None]
        missing += [name for name in run.packages if not package_folders(name)]
        if missing:
            raise MissingToolError(f"{missing[0]} was not found", do=f"install {run.needs}")
        self.forest, self.folder = design.forest, folder
        for role in language.files:
            copied(design, role, folder)
        view = view_of(language, self.forest)
        self.bound = view.get("bound")
        self.narrow, self.n_values = view["core"].narrow and language.syntax.types != {}, view["core"].values
        held = self.forest.carried or range(self.forest.columns)
        view |= {"engine": engine, "held": list(held), "n_words": len(self.forest.features)}
        for name, template in run.drivers.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(render(template, **view, n_values=self.n_values))
        fields = {"p": view["p"], "python": sys.executable}
        self.command, *build = [[part.format(**fields) for part in command] for command in (run.run, *run.build)]
        for command in build:
            run_tool([find(command[0]) or command[0], *command[1:]], folder, seconds=1800)
        self.tool = version(find(run.programs[0]) or "") if run.programs else f"Python {sys.version.split()[0]}"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        rows = disturbed(self.forest, vectors.raw)
        if self.narrow:
            with np.errstate(over="ignore"):
                rows = rows.astype(np.float32).astype(np.float64)
        data = np.concatenate([vectors.words, rows.view(np.int64)], axis=1)
        expected = [evaluation.index.reshape(len(rows), -1)] * self.forest.decides
        expected += [evaluation.scores, encode(self.forest, rows)]
        joined = np.concatenate(expected, axis=1).astype(np.int64)
        command = [find(self.command[0]) or self.command[0], *self.command[1:]]
        out = run_tool(command, self.folder, data=data.astype("<i8").tobytes(), seconds=3600)
        got = rows_of_numbers(out, "<i8", joined.shape[1] + self.n_values).copy()
        if self.n_values:
            first, common = joined.shape[1], min(len(got), len(rows))
            exact = values_of(self.forest, evaluation)
            exact = exact.clip(0, 1) if self.forest.decides and self.bound is None else exact
            bound = self.bound or VALUE_ERROR * np.maximum(1.0, np.abs(exact[:common]))
            near = np.zeros(exact.shape, dtype=np.int64)
            near[:common] = np.abs(got[:common, first:].view("<f8") - exact[:common]) <= bound
            got[:, first:], joined = 1, np.concatenate([joined, near], axis=1)
        return difference(got, joined)


def need_zig(_: object) -> None:
    """Raises MissingToolError without the compiler of WebAssembly."""
    if not package_folders("ziglang"):
        raise MissingToolError("ziglang is not installed", where=opt.target, do="pip install ziglang")


def built(arguments: tuple[str, ...], _: object, files: Mapping[str, str]) -> dict[str, bytes]:
    """Returns the WebAssembly module of the source among files, by its path. arguments: those of zig. Raises ToolError
    if the compiler fails."""
    own = {PurePosixPath(path).name: text for path, text in files.items() if path.startswith("wasm/")}
    source = next(name for name in own if name.endswith(".c"))
    module = f"{source[:-2]}.wasm"
    with tempfile.TemporaryDirectory() as temporary:
        for name, text in own.items():
            (Path(temporary) / name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ziglang", *arguments, source, "-o", module]
        run_tool(command, Path(temporary), seconds=1800, writes=[module])
        return {f"wasm/{module}": (Path(temporary) / module).read_bytes()}
