"""Builds shared libraries, and runs them for `check` and for designs."""

from __future__ import annotations

import ctypes
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.base import Written
from forestc.backends.c.inputs import numpy_type
from forestc.backends.c.options import c_options_of
from forestc.backends.running import Difference, copied, difference, rows_of_numbers
from forestc.backends.shared.core import FOLDER, Library
from forestc.backends.shared.options import SharedKeyword
from forestc.backends.vectors import Vectors, disturbed, values_of
from forestc.errors import MissingToolError, opt
from forestc.forest.evaluate import Evaluation, evaluate_words
from forestc.rows.encode import encode
from forestc.toolchain.compilers import c_compiler, version
from forestc.toolchain.program_cache import cached_program, is_own, remember
from forestc.toolchain.run import package_folders, run_tool

HERE = {"win32": "{}.dll", "darwin": "lib{}.dylib"}.get(sys.platform, "lib{}.so")
# For each platform the name of a library, and zig's target.
PLATFORMS = {
    "here": (HERE, ""),
    "linux-x86_64": ("lib{}.so", "x86_64-linux-gnu"),
    "linux-arm64": ("lib{}.so", "aarch64-linux-gnu"),
    "macos-x86_64": ("lib{}.dylib", "x86_64-macos"),
    "macos-arm64": ("lib{}.dylib", "aarch64-macos"),
    "windows-x86_64": ("{}.dll", "x86_64-windows-gnu"),
}
FLAGS = ("-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden")
ELEMENTS = 1 << 22  # numbers of rows in memory at once


def compiler(options: SharedKeyword) -> tuple[str, ...]:
    """Returns the command of the compiler for a platform. Raises MissingToolError."""
    program, target = c_compiler(), PLATFORMS[options.platform][1]
    if not target and program is not None:
        return (program,)
    if not package_folders("ziglang"):
        ways = "pip install ziglang" if target else "install gcc or clang, or set CC, or pip install ziglang"
        what = f"for {options.platform}" if target else "for the target shared"
        raise MissingToolError(f"no C compiler {what} was found", where=opt.target, do=ways)
    return (sys.executable, "-m", "ziglang", "cc", *(["-target", target] if target else []))


def built(options: SharedKeyword, files: Mapping[str, str]) -> dict[str, bytes]:
    """Returns the library of the sources among files, by its path. Raises ToolError if the compiler fails."""
    sources = {PurePosixPath(path).name: text for path, text in files.items() if path.startswith(f"{FOLDER}/")}
    source = next(name for name in sources if name.endswith(".c"))
    name = PLATFORMS[options.platform][0].format(PurePosixPath(source).stem)
    command = [*compiler(options), *FLAGS, source, "-o", name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8")

        def make() -> Path:
            run_tool(command, folder, seconds=3600, writes=[name])
            return folder / name

        content = cached_program([version(command[0]), *command, *sources.values()], folder / name, make).read_bytes()
    remember(content)
    return {f"{FOLDER}/{name}": content}


def library_of(design: Written) -> Library:
    return Library(design.forest, c_options_of(design.manifest["options"]["c"]))


class SharedEngine:
    """Runs a design's library through its Python module, in a process of its own."""

    def __init__(self, design: Written, folder: Path) -> None:
        self.library, self.folder = library_of(design), folder
        path = design.path("shared").with_name(HERE.format(self.library.name))
        if not path.is_file():
            raise MissingToolError(f"the design has no {path.name}", do=f"compile with {opt.platform:here}")
        (folder / path.name).write_bytes(path.read_bytes())
        self.module = Path(copied(design, "shared_python", folder)).stem
        self.tool = path.name

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        forest, hard = self.library.forest, disturbed(self.library.forest, vectors.raw)
        with np.errstate(over="ignore"):
            runs = [(vectors.raw, evaluation), *((hard.astype(kind), None) for kind in (np.float64, np.float32))]
        got, expected = list[NDArray[Any]](), list[NDArray[Any]]()
        for rows, known in runs:
            right = known or evaluate_words(forest, encode(forest, rows))
            columns = [right.scores] if not forest.decides else [right.index.reshape(len(rows), -1), right.scores]
            results = self._run(rows)
            width = sum(part.shape[1] for part in columns)
            expected.append(np.concatenate(columns, axis=1))
            got.append(results[:, :width])
            if (values := self.library.values) is not None:
                reals = results[:, width:].copy().view(np.float64)
                wrong = np.abs(reals - values_of(forest, right)) > values.bound
                got.append(wrong.astype(np.int64))
                expected.append(np.zeros_like(got[-1]))
        return difference(np.concatenate(got, axis=1), np.concatenate(expected, axis=1))

    def _run(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Returns labels, scores and values, these as the bits of doubles: (rows, results)."""
        forest = self.library.forest
        given = {"kind": rows.dtype.str, "width": forest.width, "columns": forest.columns}
        given |= {"at": list(forest.carried or range(forest.columns)), "part": max(1, ELEMENTS // forest.columns)}
        script = f"import {self.module} as module\ngiven = {given!r}\n{DRIVER}"
        out = run_tool([sys.executable, "-c", script], self.folder, data=rows.tobytes(), seconds=3600)
        return rows_of_numbers(out, "=i8", sum(count for *_, count in self.library.outputs))


DRIVER = """
import sys
import numpy as np
rows = np.frombuffer(sys.stdin.buffer.read(), given["kind"]).reshape(-1, given["width"])
for start in range(0, len(rows), given["part"]):
    part = np.zeros((len(rows[start : start + given["part"]]), given["columns"]), rows.dtype)
    part[:, given["at"]] = rows[start : start + given["part"]]
    functions = [getattr(module, name, None) for name in ("labels", "scores", "probabilities", "values")]
    results = [function(part).reshape(len(part), -1) for function in functions if function]
    columns = [one.astype("f8").view("i8") if one.dtype.kind == "f" else one.astype("i8") for one in results]
    sys.stdout.buffer.write(np.concatenate(columns, axis=1).tobytes())
"""


class LoadedLibrary:
    """A design's library in this process."""

    def __init__(self, design: Written, path: Path) -> None:
        library = library_of(design)
        self.kind, self.scores = numpy_type(library.score), library.forest.n_scores
        self.place = int(library.forest.decides)
        self.others = len(library.outputs) - self.place - 1
        self.call = ctypes.CDLL(str(path.resolve()))[f"{library.name}_rows_double"]
        self.call.restype = None

    def run(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns the scores of rows (rows, columns): (rows, scores)."""
        rows = np.ascontiguousarray(rows)
        out = np.empty((len(rows), self.scores), self.kind)
        sizes = ctypes.c_int64(len(rows)), ctypes.c_int64(rows.shape[1])
        results = [None] * self.place + [ctypes.c_void_p(out.ctypes.data)] + [None] * self.others
        self.call(ctypes.c_void_p(rows.ctypes.data), *sizes, *results)
        return out.astype(np.int64)


def loaded(design: Written) -> LoadedLibrary | None:
    """Returns a design's library for this computer; None unless this user's forestc has built the file."""
    path = design.path("shared").with_name(HERE.format(library_of(design).name))
    return LoadedLibrary(design, path) if path.is_file() and is_own(path.read_bytes()) else None
