"""Builds a microcontroller image from one C function, with GCC or ziglang. It holds the table of processors."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forestc.errors import MissingToolError, OptionError, opt
from forestc.toolchain.compilers import version
from forestc.toolchain.run import find, package_folders, run_tool

ENTRY = "forestc_entry"  # names the function that an image holds with its callees
COMPILERS = ("auto", "ziglang", "gcc")
OPTIMIZE = ("s", "2", "3")
FREESTANDING = ("-std=c99", "-ffreestanding")
SECONDS = 1800  # seconds before a run of a compiler is stopped
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
_ARM, _RISCV, _AVR = ("arm-none-eabi-gcc",), ("riscv64-unknown-elf-gcc", "riscv32-unknown-elf-gcc"), ("avr-gcc",)


@dataclass(frozen=True)
class Cpu:
    """A processor, with the options of its compilers."""

    name: str
    gcc: tuple[str, ...]  # names of GCC; the first on the PATH is used
    gcc_flags: tuple[str, ...]  # select the processor
    package: str  # Debian's packages with this GCC
    target: str = ""  # ziglang's target; empty if ziglang is not used
    model: str = ""  # ziglang's name of the processor
    machine: tuple[str, ...] = ()  # names of unicorn's constants; empty for AVR
    flash: int = 0x0800_0000  # start address
    ram: int = 0x2000_0000  # start address
    doubles: bool = True  # True if GCC's double has 64 bits
    libraries: tuple[str, ...] = ("-lgcc",)  # linked by GCC


def _arm(name: str, flags: str, abi: str, model: str, unicorn: str) -> Cpu:
    machine = ("ARCH_ARM", "MODE_THUMB", "MODE_MCLASS", f"CPU_ARM_CORTEX_{unicorn}")
    return Cpu(
        name, _ARM, ("-mthumb", *flags.split()), "gcc-arm-none-eabi", f"thumb-freestanding-{abi}", model, machine
    )


CPUS = {
    cpu.name: cpu
    for cpu in (
        _arm("cortex-m0plus", "-mcpu=cortex-m0plus", "eabi", "cortex_m0plus", "M0"),
        _arm("cortex-m4", "-mcpu=cortex-m4 -mfloat-abi=soft", "eabi", "cortex_m4", "M4"),
        _arm("cortex-m4f", "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard", "eabihf", "cortex_m4+vfp4d16sp", "M4"),
        _arm("cortex-m7", "-mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard", "eabihf", "cortex_m7+fp_armv8d16", "M7"),
        Cpu("rv32imc", _RISCV, ("-march=rv32imc", "-mabi=ilp32"), "gcc-riscv64-unknown-elf",
            "riscv32-freestanding-none", "generic_rv32+m+c", ("ARCH_RISCV", "MODE_RISCV32")),
        Cpu("avr", _AVR, ("-mmcu=atmega2560",), "gcc-avr avr-libc", doubles=False,
            libraries=("-lgcc", "-lm", "-lgcc")),
    )
}  # fmt: skip

# Links code and constants to flash and variables to RAM, without unwind tables.
_SCRIPT = """ENTRY({entry})
SECTIONS
{{
    .text {flash:#x} : {{ *(.text .text.*) *(.rodata .rodata.* .srodata .srodata.*) }}
    .data {ram:#x} : {{ *(.data .data.* .sdata .sdata.*) }}
    .bss : {{ *(.bss .bss.* .sbss .sbss.* COMMON) }}
    /DISCARD/ : {{ *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note*) }}
}}
"""


@dataclass(frozen=True)
class Compiler:
    """A cross compiler for one processor."""

    kind: str
    command: tuple[str, ...]  # program and options that select the processor
    version: str


@dataclass(frozen=True)
class Build:
    """The files of a compilation."""

    image: Path  # linked ELF file
    object: Path
    usage: Path | None  # stack of each function; None if the object file has it
    memory: str = ""  # object file with memcpy for GCC; empty for ziglang


def find_compiler(cpu: Cpu, kind: str = "auto") -> Compiler:
    """Returns a processor's compiler. kind: ziglang, gcc, or auto (GCC before ziglang). Raises MissingToolError if
    there is none, OptionError if `kind` is ziglang and the processor is not supported."""
    program = find(*cpu.gcc)
    zig = next(
        (package / "zig" for package in package_folders("ziglang") if (package / "zig").is_file()),
        None,
    )
    if kind == "ziglang" and not cpu.target:
        raise OptionError(f"ziglang does not compile for {cpu.name} here", where=opt.cpu, do=f"use {opt.compiler:gcc}")
    if kind != "ziglang" and program is not None:
        return Compiler("gcc", (program, *cpu.gcc_flags), version(program))
    if kind != "gcc" and cpu.target and zig is not None:
        number = importlib.metadata.version("ziglang")
        return Compiler("ziglang", (str(zig), "cc", "-target", cpu.target, f"-mcpu={cpu.model}"), f"ziglang {number}")
    pip, apt = 'pip install "forestc[firmware]"', f"install {cpu.gcc[0]} (Debian: apt install {cpu.package})"
    ways = {"ziglang": [pip], "gcc": [apt]}.get(kind, [pip, apt] if cpu.target else [apt])
    what = {"ziglang": "ziglang is not installed", "gcc": f"{cpu.gcc[0]} is not on the PATH"}
    raise MissingToolError(what.get(kind, f"no compiler for {cpu.name} was found"), do=", or ".join(ways))


def build(
    cpu: Cpu,
    compiler: Compiler,
    source: str,
    folder: Path,
    optimize: str,
    *,
    language: Sequence[str] = FREESTANDING,
) -> Build:
    """Compiles a source file in `folder` to an image that holds `forestc_entry` and its callees. language: flags for
    the language. Raises ToolError."""
    stem = Path(source).stem
    common, gcc = (*_SECTIONS, f"-O{optimize}"), compiler.kind == "gcc"
    object_, image = folder / f"{stem}.o", folder / f"{stem}.elf"
    flags = ("-fstack-usage",) if gcc else ("-fstack-size-section", "-fno-sanitize=undefined")
    run = partial(run_tool, cwd=folder, seconds=SECONDS)
    command = [*compiler.command, *language, *common, *flags, "-c", source, "-o", object_.name]
    run(command, writes=[object_.name, *([f"{stem}.su"] if gcc else [])])
    link = [*compiler.command, f"-O{optimize}", "-Wl,--gc-sections", f"-Wl,-e,{ENTRY}"]
    if cpu.machine:
        script = folder / f"{stem}.ld"
        script.write_text(_SCRIPT.format(entry=ENTRY, flash=cpu.flash, ram=cpu.ram), encoding="utf-8")
        link += [f"-Wl,-T,{script.name}"]
    if not gcc:
        run([*link, object_.name, "-o", image.name], writes=[image.name])
        return Build(image, object_, None)
    (folder / f"{stem}_memory.c").write_text(_MEMORY, encoding="utf-8")
    more = ["-fno-tree-loop-distribute-patterns", "-c", f"{stem}_memory.c", "-o", f"{stem}_memory.o"]
    memory = f"{stem}_memory.o"
    run([*compiler.command, *FREESTANDING, *common, *more], writes=[memory])
    run([*link, "-nostdlib", object_.name, memory, *cpu.libraries, "-o", image.name], writes=[image.name])
    return Build(image, object_, folder / f"{stem}.su", memory)


# GCC may call these functions even if the source does not.
_MEMORY = """#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);

void *memcpy(void *to, const void *from, size_t count)
{
    size_t k;
    for (k = 0; k < count; k++) {
        ((char *)to)[k] = ((const char *)from)[k];
    }
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    if ((char *)to < (const char *)from) {
        return memcpy(to, from, count);
    }
    while (count > 0) {
        count--;
        ((char *)to)[count] = ((const char *)from)[count];
    }
    return to;
}

void *memset(void *to, int value, size_t count)
{
    size_t k;
    for (k = 0; k < count; k++) {
        ((char *)to)[k] = (char)value;
    }
    return to;
}
"""
