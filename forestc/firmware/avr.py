"""Runs a C function on an AVR in simavr: its results, the clock cycles of each call, and the stack that it used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError, ToolError, opt
from forestc.firmware.emulator import PAINT, Run
from forestc.toolchain.firmware import ENTRY, Build, Compiler
from forestc.toolchain.run import run_tool, together
from hdl_templates import render

MCU = "atmega2560"
FLASH_BYTES, RAM_BYTES = 1 << 18, 1 << 13  # bytes of an ATmega2560
# Bytes of flash reserved for the calling program, and the most bytes of inputs in one run.
HARNESS_BYTES, MOST_BYTES = 4096, 60_000
STACK_BYTES = 1024  # bytes of RAM reserved for the stack
RETURN = 5  # cycles of the entry's `ret`, which the subtracted empty call has, too
HEAD = 6  # bytes before the results: 4 of cycles, 2 of stack
INSTALL = "install simavr (Debian: apt install simavr)"


@dataclass(frozen=True)
class Simavr:
    """An ATmega2560 with the function to measure."""

    program: str
    compiler: Compiler
    made: Build
    flash: int  # bytes of the function
    folder: Path  # holds the compiled files
    aligned = False

    def run(self, inputs: NDArray[np.uint8], gives: np.dtype[np.generic], count: int, returned: bool) -> Run:
        """Runs the function as `Emulator.run` does. Raises ToolError if the memory is too small for a row or code."""
        size, results = inputs.shape[1], count * gives.itemsize
        if size + results + STACK_BYTES > RAM_BYTES:
            raise ToolError(
                f"a row and its results take {size + results:,} of {RAM_BYTES:,} bytes of RAM on {MCU}",
                where=f"{opt.cpu:avr}",
            )
        room = min(MOST_BYTES, FLASH_BYTES - HARNESS_BYTES - self.flash)
        if room < size:
            raise ToolError(
                f"{self.flash:,} bytes of code leave no flash for inputs on {MCU}",
                where=f"{opt.cpu:avr}",
                do="prune the model",
            )
        step = room // size
        parts = [inputs[first : first + step] for first in range(0, len(inputs), step)]
        tables = together([partial(self._batch, part, gives, results, returned, at) for at, part in enumerate(parts)])
        table = np.concatenate(tables)
        cycles = np.ascontiguousarray(table[:, :4]).view("<u4")[:, 0].astype(np.int64) + RETURN
        stack = np.ascontiguousarray(table[:, 4:HEAD]).view("<u2")[:, 0]
        answers = np.ascontiguousarray(table[:, HEAD:]).view(gives)
        return Run(answers, None, int(stack.max()), cycles)

    def _batch(
        self, inputs: NDArray[np.uint8], gives: np.dtype[np.generic], results: int, returned: bool, number: int
    ) -> NDArray[np.uint8]:
        """Returns an array of bytes (rows, bytes): the cycles, the stack and the results of the call for each input."""
        stem = f"{self.made.object.stem}_{len(inputs)}_{number}"
        (self.folder / f"{stem}.bin").write_bytes(inputs.tobytes())
        main = render(
            "firmware/avr_main.c.j2",
            entry=ENTRY,
            rows=len(inputs),
            bytes=inputs.shape[1],
            results=results,
            paint=PAINT,
            gives=f"uint{8 * gives.itemsize}_t",
            returned=returned,
            file=f"{stem}.bin",
        )
        (self.folder / f"{stem}.c").write_text(main, encoding="utf-8")
        files = [f"{stem}.c", self.made.object.name, self.made.memory, "-o", f"{stem}.elf"]
        run_tool(
            [*self.compiler.command, "-std=gnu99", "-Os", "-Wl,--gc-sections", *files], self.folder, writes=files[-1:]
        )
        command = [self.program, "-m", MCU, "-f", "16000000", f"{stem}.elf"]
        output = run_tool(command, self.folder, errors=True, seconds=3600)
        letters = np.frombuffer(b"".join(re.findall(rb"@([a-p]*)", output)), dtype=np.uint8) - ord("a")
        if len(letters) != 2 * len(inputs) * (HEAD + results):
            raise CheckError("the firmware did not give all answers in simavr", where="simavr", do="compile again")
        return (letters[::2] | letters[1::2] << 4).astype(np.uint8).reshape(len(inputs), HEAD + results)
