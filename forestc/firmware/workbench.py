"""Builds functions of a C header for a processor and loads them into its emulator."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from forestc.errors import PYTHON, MissingToolError, ToolError, opt
from forestc.firmware import avr
from forestc.firmware.emulator import Emulator, Machine
from forestc.firmware.entries import Entry
from forestc.firmware.image import FirmwareImage, StackUse, read_image, static_stack
from forestc.toolchain.firmware import Build, Compiler, Cpu, build
from forestc.toolchain.run import find


@dataclass(frozen=True)
class Built:
    """A linked entry."""

    files: Build
    image: FirmwareImage
    stack: StackUse
    seconds: float  # time of the build


@dataclass(frozen=True)
class Workbench:
    """The tools for one processor, and a folder that holds the header."""

    cpu: Cpu
    compiler: Compiler
    optimize: str
    folder: Path

    def built(self, entry: Entry, stem: str = "") -> Built:
        """Compiles an entry. stem: name of the files; by default the entry's."""
        start = time.perf_counter()
        source = f"{stem or entry.name}.c"
        (self.folder / source).write_text(entry.source, encoding="utf-8")
        try:
            files = build(self.cpu, self.compiler, source, self.folder, self.optimize)
        except ToolError as error:
            # Of branches that are too far apart for AVR, tables beyond its memory, or its arrays of up to 32,767 bytes.
            far = r"relocation truncated to fit|will not fit in region|overflowed by|size of array .* is too large"
            if not re.search(far, error.parts[1]):
                raise
            do = f"make the forest smaller, as by -O2, or compile it with another {opt.c_layout}"
            raise ToolError(f"the trees are larger than {self.cpu.name} reaches", where=source, do=do) from None
        return Built(files, read_image(files.image), static_stack(files), time.perf_counter() - start)

    def machine(self, built: Built) -> Machine | None:
        """Returns an emulator with a compiled entry; None if simavr is needed and not installed."""
        if self.cpu.machine:
            return Emulator(self.cpu, built.image)
        simavr = find("simavr")
        if simavr is None:
            return None
        return avr.Simavr(simavr, self.compiler, built.files, built.image.flash, self.folder)


def need_libraries(cpu: Cpu) -> None:
    """Raises MissingToolError if a library that reads or runs images is not installed."""
    modules = {"pyelftools": "elftools", **({"unicorn": "unicorn"} if cpu.machine else {})}
    missing = [name for name, module in modules.items() if find_spec(module) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingToolError(
            f"{' and '.join(missing)} {verb} not installed", where=PYTHON, do='pip install "forestc[firmware]"'
        )
