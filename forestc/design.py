"""A compiled design: the folder that `compile` writes and `check`, `simulate` and the rest read."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from forestc.backends import amaranth
from forestc.backends.c import COptions
from forestc.backends.manifest import FORMAT, design_hash, digest, field_digest, implied_roles, manifest
from forestc.errors import ForestcError, ModelError, OptionError
from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, Witness, lower_with_witness
from forestc.netlist.ir import Netlist

MANIFEST = "manifest.json"
MODEL = "model.forest"
QUANTISED = "quantised.forest"
REPORT = "report.md"


@dataclass(frozen=True, eq=False)
class Design:
    """folder: where it lies. model: the forest as it was read. forest: the quantised one, the law."""

    folder: Path
    manifest: Mapping[str, Any]
    model: Forest
    forest: Forest

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.manifest["options"]["targets"])

    @property
    def c_options(self) -> COptions:
        return COptions(**self.manifest["options"]["c"])

    @property
    def lowering(self) -> LoweringOptions:
        options = self.manifest["options"]
        return LoweringOptions(options["latency"], options["outputs"], options.get("target", "lut6"))

    @property
    def netlist(self) -> Netlist:
        """Lowered again from the quantised forest: the same cells that the files were written from. Raises ForestcError
        if the manifest says otherwise of them: users pack words by its offsets."""
        return self._lowered[0]

    @property
    def witness(self) -> Witness:
        """Where the netlist holds what trees and votes say. Raises ForestcError as `netlist` does."""
        return self._lowered[1]

    @cached_property
    def _lowered(self) -> tuple[Netlist, Witness]:
        netlist, witness = lower_with_witness(self.forest, self.lowering)
        told = self.manifest
        due = manifest(self.forest, netlist, told["files"], told["options"], told["guarantees"])
        wrong = [key for key in due if field_digest(due[key]) != field_digest(told.get(key))]
        if wrong:
            raise ForestcError(
                f"{MANIFEST} says of {', '.join(wrong)} what is not so", where=str(self.folder), do="compile again"
            )
        return netlist, witness

    def path(self, role: str) -> Path:
        """The file of a role, such as verilog or c. Raises ForestcError if the folder has none."""
        if role not in self.manifest["files"]:
            raise ForestcError(f"the design has no {role}", where=str(self.folder), do=f"compile with --target {role}")
        path = self.folder / str(self.manifest["files"][role])
        if not path.is_file():
            raise ForestcError(f"its {role} file is missing", where=str(path), do="compile again")
        return path

    def changed_files(self) -> tuple[str, ...]:
        """The files that are not as `compile` wrote them, or not there."""
        sealed: Mapping[str, str] = self.manifest["sha256"]["files"]
        return tuple(path for path, wanted in sealed.items() if _digest_of(self.folder / path) != wanted)


def open_design(folder: str | Path) -> Design:
    """Reads a folder that `compile` wrote. Raises ForestcError naming the file that is missing or damaged."""
    folder = Path(folder)
    texts = {}
    for name in (MANIFEST, MODEL, QUANTISED):
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ForestcError(
                f"has no readable {name}", where=str(folder), do="give a folder that forestc compile wrote"
            ) from None
    try:
        told = json.loads(texts[MANIFEST])
        if told["format"] != FORMAT:
            raise ForestcError(
                f"was written by another version (format {told['format']})",
                where=str(folder),
                do="compile again",
            )
        design = Design(folder, told, parse_forest(texts[MODEL]), parse_forest(texts[QUANTISED]))
        matching = told["hash"] == design_hash(design.forest, told["options"])
        changed = _changed(told, texts)
        # read once here, so that whoever uses them later need not ask whether they are there
        _, _, _, _ = design.targets, design.c_options, design.lowering, dict(told["guarantees"])
        inside = all(_stays_inside(str(path)) for path in [*told["files"].values(), *told["sha256"]["files"]])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ForestcError(f"{MANIFEST} is damaged ({error})", where=str(folder), do="compile again") from None
    except OptionError as error:
        raise ForestcError(f"{MANIFEST} is damaged ({error})", where=str(folder), do="compile again") from None
    except ModelError as error:
        raise ModelError(f"a forest in it is damaged ({error})", where=str(folder), do="compile again") from None
    if not inside:
        raise ForestcError(f"{MANIFEST} names files outside the folder", where=str(folder), do="compile again")
    if changed:
        raise ForestcError(
            f"was changed after forestc wrote it: {', '.join(changed)}", where=str(folder), do="compile again"
        )
    if not matching:
        raise ForestcError(f"{QUANTISED} and {MANIFEST} do not belong together", where=str(folder), do="compile again")
    return design


def _changed(told: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    """What is not as `compile` left it: fields of the manifest, its forests, and files that its options imply."""
    sealed = told["sha256"]["fields"]
    held = {name: field_digest(value) for name, value in told.items() if name != "sha256"}
    changed = [f"{MANIFEST}: {name}" for name in sorted(held | sealed) if held.get(name) != sealed.get(name)]
    lacking = sorted(implied_roles(told["options"]) ^ told["files"].keys())
    changed += [f"{MANIFEST}: files, {role}" for role in lacking]
    hashed = told["sha256"]["files"]
    changed += [f"{MANIFEST}: sha256, {path}" for path in sorted({*told["files"].values()} - hashed.keys())]
    return changed + [name for name in (MODEL, QUANTISED) if hashed.get(name) != digest(texts[name])]


def _digest_of(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:
        return None


def _stays_inside(path: str) -> bool:
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def hardware(design: Design | str | Path, *, stream: bool = True) -> Any:
    """A compiled design as an Amaranth component, to be a submodule of your own: made new at each call.

    stream: with the ports `i` and `o`, streams of features and results; else the core with `x` and `y`, and with
    `in_valid` and `out_valid` if it has registers. Raises ForestcError for a folder that can't be read, or if Amaranth
    is not installed.
    """
    opened = design if isinstance(design, Design) else open_design(design)
    made = amaranth.module(opened.forest, opened.netlist)
    return getattr(made, amaranth.core_name(opened.netlist) + ("Stream" if stream else ""))()


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """All of the files or none: written beside the folder, then moved into place.

    A folder that is there already is replaced only if forestc wrote everything in it. Raises ForestcError.
    """
    where, folder = str(folder), folder.absolute()
    staged = replaced = None
    try:
        if folder.exists() and not folder.is_dir():
            raise ForestcError("is a file", where=where, do="give a folder")
        if folder.is_dir() and (foreign := _foreign_file(folder)):
            raise ForestcError(f"holds {foreign!r}, which forestc did not write", where=where, do="give another folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        for name, text in files.items():
            path = staged / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        staged.chmod(0o777 & ~_umask())
        if folder.is_dir():
            replaced = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            folder.replace(replaced / "old")
            try:
                staged.replace(folder)
            except BaseException:  # an interrupt too
                (replaced / "old").replace(folder)
                raise
        else:
            staged.replace(folder)
    except OSError as error:
        raise ForestcError(
            f"can't be written ({error.strerror})", where=where, do="choose a folder you may write to"
        ) from None
    finally:
        for left in (staged, replaced):
            if left is not None:
                shutil.rmtree(left, ignore_errors=True)


def _foreign_file(folder: Path) -> str:
    """A file in the folder that a manifest of forestc's does not account for; "" if there is none."""
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    known: set[str] = set()
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if told["format"] == FORMAT and {"core", "hash", "options"} <= told.keys():
            known = {MANIFEST, MODEL, QUANTISED, REPORT, *map(str, told["files"].values())}
    return min(present - known, default="")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
