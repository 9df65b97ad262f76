"""Says what a message or an error shows this machine to lack."""

from __future__ import annotations

import os
import re
import shutil
from importlib.util import find_spec

from forestc.errors import ForestcError
from forestc.toolchain.compilers import ap_types

REQUIRED = bool(os.environ.get("FORESTC_REQUIRE_TOOLS"))  # True if what is missing fails a test instead of skipping it
PATH = os.environ.get("PATH")  # as it is before a test changes it
LACKS = re.compile(
    r"([\w-]+)(?: headers)? (?:is|are) not installed|([\w-]+) was not found|no compiler for ([\w-]+) was|"
    r"No module named '(\w+)"
)


def lacking(text: str) -> str:
    """Returns the library or program that a message names if this machine lacks it and need not have it, or ""."""
    found = LACKS.search(text) if not REQUIRED else None
    name = next(filter(None, found.groups())) if found else ""
    return "" if shutil.which(name, path=PATH) or find_spec(name.lower() or "os") else name


def missing(error: BaseException | None) -> str:
    """Returns the library or program whose lack led to an error, or to what a failed test shows of one, or ""."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError | ForestcError | AssertionError) and (name := lacking(str(error))):
            return name
        error = error.__cause__ or error.__context__
    return ""


def ap_headers() -> str:
    """Returns the folder of hls4ml's headers. Raises ModuleNotFoundError without hls4ml."""
    folder = ap_types()
    if folder is None:
        raise ModuleNotFoundError("No module named 'hls4ml'")
    return str(folder)
