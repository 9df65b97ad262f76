"""Reads compiled ELF files: segments to load, bytes of flash and RAM, and the deepest stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from forestc.errors import ToolError
from forestc.toolchain.firmware import ENTRY, Build

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

Frames: TypeAlias = Mapping[str, int | None]  # bytes of stack by function; None if unknown

_WRITE, _ALLOC = 1, 2  # flags of ELF sections


@dataclass(frozen=True)
class FirmwareImage:
    """A linked program."""

    entry: int  # address of the first instruction
    segments: tuple[tuple[int, bytes], ...]  # (address, bytes) to load
    flash: int  # bytes of code, constants and initial values
    ram: int  # bytes of variables


def read_image(path: Path) -> FirmwareImage:
    """Reads a linked ELF file. Raises ToolError if it can't be read."""
    from elftools.elf.elffile import ELFFile

    with _reading(path), path.open("rb") as file:
        elf = ELFFile(file)
        sections = [(s["sh_size"], s["sh_flags"], s["sh_type"] == "SHT_NOBITS") for s in elf.iter_sections()]
        loaded = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_memsz"]]
        segments = tuple((int(s["p_vaddr"]), s.data().ljust(s["p_memsz"], b"\0")) for s in loaded)
        flash = sum(size for size, flags, empty in sections if flags & _ALLOC and not empty)
        ram = sum(size for size, flags, _ in sections if flags & _ALLOC and flags & _WRITE)
        return FirmwareImage(int(elf.header["e_entry"]), segments, flash, ram)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raises ToolError if a compiler's file can't be read."""
    from elftools.common.exceptions import ELFError

    try:
        yield
    except (ELFError, OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
        what = f"the compiler's file can't be read ({error or type(error).__name__})"
        raise ToolError(what, where=path.name, do="use another compiler") from None


@dataclass(frozen=True)
class StackUse:
    """The stack of a function."""

    size: int | None  # bytes, with the functions that it calls; None if unknown
    why: str = ""  # reason why the size is unknown


def static_stack(build: Build) -> StackUse:
    """Returns the deepest stack of the measured function with its callees, from the compiler's frame sizes. Its size is
    None for recursion and variable frames."""
    from elftools.elf.elffile import ELFFile

    with _reading(build.object), build.object.open("rb") as file:
        functions = _Functions.of(elf := ELFFile(file))
        references = list(_references(elf, functions))
    with _reading(build.usage or build.object):
        frames = _gcc_frames(build.usage) if build.usage else _clang_frames(references)
    calls: dict[str, set[str]] = {}
    for reference in references:
        if reference.section.startswith(".text"):
            calls.setdefault(reference.within, set()).add(reference.to)
    depths: dict[str, int] = {}
    waiting, above = [ENTRY], set()
    while waiting:  # depth first, by a list instead of Python's recursion
        name = waiting[-1]
        sizes = (_frame(frames, alias) for alias in functions.names.get(name, [name]))
        frame = next((size for size in sizes if size is not None), None)
        if frame is None:
            return StackUse(None, f"the frame of {name} is not known")
        below = calls.get(name, set())
        if name in above:
            waiting.pop()
            above.discard(name)
            depths[name] = frame + max((depths[other] for other in below), default=0)
            continue
        if name in depths:
            waiting.pop()
            continue
        above.add(name)
        if below & above:
            return StackUse(None, f"{name} is recursive")
        waiting += sorted(below - depths.keys())
    return StackUse(depths[ENTRY])


def _frame(frames: Frames, name: str) -> int | None:
    """Returns a function's frame size, also for clones such as f.constprop.0."""
    stem, _, number = name.rpartition(".")
    return frames.get(name, frames.get(stem) if number.isdigit() else None)


def _gcc_frames(path: Path) -> Frames:
    """Reads frame sizes from lines "x.c:3:5:name<TAB>24<TAB>static". Of functions with the same name, the largest frame
    counts."""
    frames: dict[str, int | None] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        position, size, kind = line.rsplit("\t", 2)
        name = position.rsplit(":", 1)[1]
        before = frames.get(name, 0)
        fixed = before is not None and kind in ("static", "dynamic,bounded")
        frames[name] = max(before or 0, int(size)) if fixed else None
    return frames


@dataclass(frozen=True)
class _Functions:
    """The functions of an object file, in which each has its own section."""

    starts: Mapping[tuple[int, int], str]  # {(section, offset): name}
    homes: Mapping[int, str]  # {section: name}
    names: Mapping[str, Sequence[str]]  # all names of each function; compilers merge equal functions

    @staticmethod
    def of(elf: ELFFile) -> _Functions:
        starts: dict[tuple[int, int], str] = {}
        homes: dict[int, str] = {}
        names: dict[str, list[str]] = {}
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            section = symbol["st_shndx"]
            if symbol["st_info"]["type"] == "STT_FUNC" and isinstance(section, int):
                name = starts.setdefault((section, symbol["st_value"] & ~1), symbol.name)
                homes.setdefault(section, name)
                names.setdefault(name, []).append(symbol.name)
        return _Functions(starts, homes, names)


@dataclass(frozen=True)
class _Reference:
    """A relocation that refers to a function."""

    section: str
    offset: int  # position in the section
    data: bytes  # bytes of the section
    within: str  # function that contains the position
    to: str  # function that it refers to


def _references(elf: ELFFile, functions: _Functions) -> Iterator[_Reference]:
    """Yields all relocations in an object file that refer to functions."""
    symbols = elf.get_section_by_name(".symtab")
    for section in elf.iter_sections():
        if section["sh_type"] not in ("SHT_REL", "SHT_RELA"):
            continue
        index = section["sh_info"]
        target = elf.get_section(index)
        name, data = target.name, target.data()  # read once, not for each of many relocations
        for relocation in section.iter_relocations():
            symbol = symbols.get_symbol(relocation["r_info_sym"])
            kind, home = symbol["st_info"]["type"], symbol["st_shndx"]
            within = functions.homes.get(index, "")
            if kind == "STT_FUNC":
                to = functions.starts.get((home, symbol["st_value"] & ~1), symbol.name)
            elif home == "SHN_UNDEF":
                to = symbol.name
            # A relocation to a label (RISC-V) or offset (AVR) within a function is no call.
            else:
                to = functions.starts.get((home, symbol["st_value"] + relocation.entry.get("r_addend", 0)), "")
                to = "" if name.startswith(".text") and to == within else to
            if to:
                yield _Reference(name, relocation["r_offset"], data, within, to)


def _clang_frames(references: Iterable[_Reference]) -> Frames:
    """Reads frame sizes from clang's .stack_sizes sections: an address, then a LEB128 number."""
    frames: dict[str, int | None] = {}
    for reference in references:
        if reference.section == ".stack_sizes":
            size, shift = 0, 0
            for byte in reference.data[reference.offset + 4 :]:
                size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            frames[reference.to] = size
    return frames
