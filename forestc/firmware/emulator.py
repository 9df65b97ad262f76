"""Runs a C function in the emulator unicorn: its results, the instructions of each call, and the stack that it used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError, ToolError
from forestc.firmware.image import FirmwareImage
from forestc.toolchain.firmware import Cpu

if TYPE_CHECKING:
    from unicorn import Uc

MOST_INSTRUCTIONS = 100_000_000  # instructions of a call after which it is taken for an endless loop
FLASH_BYTES, RAM_BYTES, STACK_BYTES, PAGE = 1 << 24, 1 << 20, 1 << 20, 1 << 12  # bytes of the emulated memories
INPUTS, RESULTS, STACK = 0x3000_0000, 0x3400_0000, 0x3800_0000  # addresses of these areas, behind flash and RAM
CHUNK_BYTES = 1 << 22  # bytes of inputs that are written to memory at once
PAINT = 0xA5  # fills the stack before a run; bytes with another value have been written to
_REGISTERS = {  # gives registers: first argument and result, second argument, stack pointer, return address
    "ARCH_ARM": ("ARM_REG_R0", "ARM_REG_R1", "ARM_REG_SP", "ARM_REG_LR"),
    "ARCH_RISCV": ("RISCV_REG_A0", "RISCV_REG_A1", "RISCV_REG_SP", "RISCV_REG_RA"),
}


@dataclass(frozen=True)
class Run:
    """The results of calls, one call for each row of inputs."""

    results: NDArray[np.generic]  # (rows, count)
    instructions: NDArray[np.int64] | None  # (rows,); None if not counted
    stack: int  # the most bytes of any call
    cycles: NDArray[np.int64] | None = None  # (rows,); None if not counted


# Tests the first two bytes of an instruction, by architecture: True if it has 4 bytes, False if it has 2.
# A wide Thumb instruction starts with 11101, 11110 or 11111 (ARMv6-M and ARMv7-M Architecture Reference Manuals, A5.1).
# A wide RISC-V instruction has the lowest bits 11 (The RISC-V Instruction Set Manual, volume I, 1.5).
_WIDE: dict[str, Callable[[int, int], bool]] = {
    "ARCH_ARM": lambda _, second: second >> 3 in (0b11101, 0b11110, 0b11111),
    "ARCH_RISCV": lambda first, _: first & 3 == 3,
}


def instructions(family: str, code: bytes) -> int:
    """Returns the number of instructions in machine code. family: a key of `_REGISTERS`, such as "ARCH_ARM"."""
    at = count = 0
    while at < len(code):
        at += 4 if _WIDE[family](code[at], code[at + 1]) else 2
        count += 1
    return count


class Machine(Protocol):
    """A processor with a C function to run."""

    aligned: bool  # True if numbers in memory must be aligned to their sizes

    def run(self, inputs: NDArray[np.uint8], gives: np.dtype[np.generic], count: int, returned: bool) -> Run:
        """Calls the function with each input (rows, bytes).
        gives, count: type and number of its results.
        returned: True if a register holds the result, otherwise memory."""


class Emulator(Machine):
    """A processor in unicorn with an image loaded."""

    aligned = True

    def __init__(self, cpu: Cpu, image: FirmwareImage) -> None:
        import unicorn
        from unicorn import arm_const, riscv_const

        def constant(name: str) -> int:
            return next(
                int(value)
                for module in (unicorn, arm_const, riscv_const)
                if (value := getattr(module, f"UC_{name}", None)) is not None
            )

        family, *modes = cpu.machine
        models = [constant(name) for name in modes if name.startswith("CPU_")]
        self.error: type[Exception] = unicorn.UcError
        self.machine: Uc = unicorn.Uc(
            constant(family), sum(constant(name) for name in modes if name.startswith("MODE_"))
        )
        for model in models:
            self.machine.ctl_set_cpu_model(model)
        self.registers = [constant(name) for name in _REGISTERS[family]]
        self.thumb = int(family == "ARCH_ARM")
        self.start, self.stop = image.entry | self.thumb, cpu.flash + FLASH_BYTES
        for at, size in (
            (cpu.flash, FLASH_BYTES + PAGE), (cpu.ram, RAM_BYTES), (STACK, STACK_BYTES),
            (INPUTS, 2 * CHUNK_BYTES), (RESULTS, 2 * CHUNK_BYTES),
        ):  # fmt: skip
            self.machine.mem_map(at, size)
        for at, data in image.segments:
            room = FLASH_BYTES if at < cpu.ram else RAM_BYTES
            if at + len(data) > (cpu.flash if at < cpu.ram else cpu.ram) + room:
                raise ToolError(
                    f"the firmware takes more than the emulator's {room >> 20} MiB",
                    where="the emulator",
                    do="prune the model",
                )
            self.machine.mem_write(at, data)
        self.machine.mem_write(STACK, bytes([PAINT]) * STACK_BYTES)
        self.count = 0
        self.trace: list[tuple[int, int, int]] | None = None
        self.family, self.sizes = family, dict[tuple[int, int], int]()
        self.machine.hook_add(unicorn.UC_HOOK_BLOCK, self._block)

    def _block(self, machine: Uc, at: int, size: int, _: object) -> None:
        """Adds the number of a basic block's instructions to the count, including skipped instructions of IT blocks."""
        counted = self.sizes.get((at, size))
        if counted is None:
            counted = self.sizes[at, size] = instructions(self.family, bytes(machine.mem_read(at, size)))
        self.count += counted
        if self.trace is not None:
            self.trace.append((at, at + size, counted))
        if self.count > MOST_INSTRUCTIONS:
            machine.emu_stop()

    def traces(
        self, inputs: NDArray[np.uint8], gives: np.dtype[np.generic], count: int, returned: bool
    ) -> list[NDArray[np.int64]]:
        """Calls the function as `run` does. Returns for each call the start, end and instructions of each basic block
        that runs, in order: (blocks, 3)."""
        found = []
        for row in inputs:
            self.trace = []
            self.run(row[None], gives, count, returned)
            found.append(np.array(self.trace, dtype=np.int64))
        self.trace = None
        return found

    def run(self, inputs: NDArray[np.uint8], gives: np.dtype[np.generic], count: int, returned: bool) -> Run:
        stride = -(-max(inputs.shape[1], count * gives.itemsize, 1) // 16) * 16
        padded = np.zeros((len(inputs), stride), dtype=np.uint8)
        padded[:, : inputs.shape[1]] = inputs
        results, taken = np.zeros((len(inputs), count), dtype=gives), np.zeros(len(inputs), dtype=np.int64)
        step = max(1, CHUNK_BYTES // stride)
        for first in range(0, len(inputs), step):
            batch = padded[first : first + step]
            self.machine.mem_write(INPUTS, batch.tobytes())
            for row in range(len(batch)):
                value = self._call(first + row, INPUTS + row * stride, RESULTS + row * stride)
                taken[first + row] = self.count
                if returned:
                    results[first + row, 0] = np.array([value], dtype="<u4").view(gives)[0]
            if not returned:
                out = np.frombuffer(bytes(self.machine.mem_read(RESULTS, batch.size)), np.uint8).reshape(batch.shape)
                packed = np.ascontiguousarray(out[:, : count * gives.itemsize])
                results[first : first + len(batch)] = packed.view(gives)
        painted = np.frombuffer(bytes(self.machine.mem_read(STACK, STACK_BYTES)), dtype=np.uint8) == PAINT
        used = STACK_BYTES - int(painted.argmin()) if not painted.all() else 0
        return Run(results, taken, used)

    def _call(self, row: int, x: int, out: int) -> int:
        """Calls the function and returns the value of its result register."""
        values = (x, out, STACK + STACK_BYTES, self.stop | self.thumb)
        for register, value in zip(self.registers, values, strict=True):
            self.machine.reg_write(register, value)
        self.count = 0
        try:
            self.machine.emu_start(self.start, self.stop)
        except self.error as error:
            raise CheckError(
                f"the firmware fails in the emulator ({error})", where=f"input {row}", do="compile again"
            ) from None
        if self.count > MOST_INSTRUCTIONS:
            raise CheckError(
                f"the firmware does not return within {MOST_INSTRUCTIONS:,} instructions", where=f"input {row}",
                do="compile again",
            )  # fmt: skip
        return int(self.machine.reg_read(self.registers[0]))
