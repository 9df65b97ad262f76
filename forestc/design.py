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

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c import COptions
from forestc.backends.manifest import FORMAT, design_hash, digest, field_digest, manifest
from forestc.backends.ports import Field, packed_bytes, unpacked, width_of
from forestc.backends.table import TARGETS, implied_roles
from forestc.costs.devices import DEFAULT_TARGET
from forestc.errors import ForestcError, ModelError, OptionError, RowsError
from forestc.forest.ir import Forest
from forestc.forest.summary import html_figures
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, Witness, lower_with_witness
from forestc.netlist.ir import Netlist, WordType
from forestc.netlist.ports import Port
from forestc.predictor import Predictor
from forestc.rows.encode import encode

MANIFEST = "manifest.json"
MODEL = "model.forest"
QUANTISED = "quantised.forest"
REPORT = "report.md"
CHECK = "check.json"
CHECK_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Design(Predictor):
    """A compiled folder, and a fitted scikit-learn estimator that answers as its hardware does.

    folder: where it lies. model: the forest as it was read. forest: the quantised one, the reference.
    """

    folder: Path
    manifest: Mapping[str, Any]
    model: Forest
    forest: Forest

    def __repr__(self) -> str:
        return f"<Design {str(self.manifest['name'])!r:.80} in {str(self.folder)!r}: {', '.join(self.targets)}>"

    def _repr_html_(self) -> str:
        return html_figures(f"Design {self.manifest['name']}", self.figures())

    def figures(self) -> dict[str, Any]:
        """What was written, as `forestc inspect` tells it."""
        told = self.manifest
        ports = {port["name"]: f"{port['direction']}, {port['bits']} bits" for port in told["ports"]}
        return {
            "folder": str(self.folder),
            "targets": list(self.targets),
            "passes": list(told["passes"]),
            "guarantees": [f"{name}: {promise}" for name, promise in told["guarantees"].items()],
            "core": told["core"],
            "ports": [f"{name} ({what})" for name, what in ports.items()],
            "latency_cycles": told["latency_cycles"],
            "device": told["options"].get("device"),
            "clock_mhz": told["options"].get("clock_mhz"),
            "files": sorted(told["files"].values()),
            "changed_files": list(self.changed_files()),
            "last_check": self.last_check(),
        }

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.manifest["options"]["targets"])

    @property
    def c_options(self) -> COptions:
        return COptions(**self.manifest["options"]["c"])

    @property
    def lowering(self) -> LoweringOptions:
        options = self.manifest["options"]
        return LoweringOptions(options["latency"], options["outputs"], options.get("target", DEFAULT_TARGET))

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

    def quantise(self, X: Any) -> NDArray[np.int64]:
        """Words (rows, features) that the hardware and C take, from rows (rows, columns): an array or a data frame.

        The features are those of the manifest, in its order. Raises RowsError for rows that do not fit the model, and
        for missing values that the design does not take.
        """
        return encode(self.forest, X)

    def pack(self, words: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The port `x` as little-endian bytes, (rows, bytes): bit i of the port is bit i % 8 of byte i // 8.

        words: (rows, features), from `quantise`. Bits past the port's width are 0. Raises RowsError for words outside
        their features' ranges.
        """
        fields = self._fields("features")
        words = np.asarray(words)
        if words.ndim != 2 or words.shape[1] != len(fields) or words.dtype.kind not in "iu":
            told = f"words of shape {words.shape} and type {words.dtype}"
            raise RowsError(told, do=f"give integers (rows, {len(fields)}), as quantise does")
        for index, field in enumerate(fields):
            low, high = field.word.low, field.word.high
            if (outside := np.flatnonzero((words[:, index] < low) | (words[:, index] > high))).size:
                row = int(outside[0])
                where = f"row {row}, feature {field.name!r}"
                raise RowsError(f"the word {words[row, index]} is outside of {low}..{high}", where=where)
        lanes = packed_bytes(fields, words.astype(np.int64)).astype("<u4")
        return lanes.view(np.uint8)[:, : max(1, -(-width_of(fields) // 8))]

    def unpack(self, data: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The results (rows, results) in `y`, given as little-endian bytes (rows, bytes): the manifest's outputs."""
        fields = self._fields("outputs")
        data = np.ascontiguousarray(data, dtype=np.uint8)
        if data.ndim != 2 or 8 * data.shape[1] < width_of(fields):
            raise RowsError(f"results of shape {data.shape}", do=f"give bytes (rows, {-(-width_of(fields) // 8)})")
        lanes = np.zeros((len(data), 4 * max(1, -(-data.shape[1] // 4))), dtype=np.uint8)
        lanes[:, : data.shape[1]] = data
        return unpacked(fields, lanes.view("<u4"))

    def _fields(self, key: str) -> list[Field]:
        """The fields of a port as the manifest tells them."""
        told = self.manifest[key]
        return [
            Field(Port(str(f["name"])), int(f["offset"]), WordType(int(f["bits"]), bool(f["signed"]))) for f in told
        ]

    def path(self, role: str) -> Path:
        """The file of a role, such as verilog or c. Raises ForestcError if the folder has none."""
        if role not in self.manifest["files"]:
            option = f"--target {role}" if role in TARGETS else "--stream"
            raise ForestcError(f"the design has no {role}", where=str(self.folder), do=f"compile with {option}")
        path = self.folder / str(self.manifest["files"][role])
        if not path.is_file():
            raise ForestcError(f"its {role} file is missing", where=str(path), do="compile again")
        return path

    def changed_files(self) -> tuple[str, ...]:
        """The files that are not as `compile` wrote them, or not there."""
        digests = self.digests()
        return tuple(path for path, wanted in self.manifest["sha256"]["files"].items() if digests[path] != wanted)

    def digests(self) -> dict[str, str | None]:
        """The SHA-256 of the files as they are now, None where one can't be read."""
        return {path: _digest_of(self.folder / path) for path in self.manifest["sha256"]["files"]}

    def last_check(self) -> dict[str, Any] | None:
        """What `check` wrote to check.json when it ran last; None where there is none that can be read.

        of_this_content: whether the design and all of its files are those that were checked.
        """
        record = _check_record(self.folder)
        if record is None:
            return None
        same = record["hash"] == self.manifest["hash"] and record["files"] == self.digests()
        engines, proof, rows = record["engines"], record["proof"], record["rows"]
        return {
            "result": record["result"],
            "of_this_content": same,
            "date": record["date"],
            "forestc": record["forestc"],
            "differences": {name: engine["differences"] for name, engine in engines.items()},
            "proof": None if proof is None else proof["verdict"],
            "rows": None if rows is None else rows.get("file", "made rows" if rows.get("made") else "an array"),
            "agreement": None if record["agreement"] is None else record["agreement"]["agreement"],
        }


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


def _check_record(folder: Path) -> dict[str, Any] | None:
    """What check.json holds, None where it is not one that forestc wrote."""
    try:
        record = json.loads((folder / CHECK).read_text(encoding="utf-8"))
        forms = {"result": str, "date": str, "forestc": str, "hash": str, "files": dict, "engines": dict}
        parts = [*record["engines"].items(), *((key, record[key]) for key in ("proof", "agreement", "rows"))]
        due = {"proof": "verdict", "agreement": "agreement", "rows": "sha256"}
        fit = record["format"] == CHECK_FORMAT and all(isinstance(record[key], kind) for key, kind in forms.items())
        fit &= all(
            (part is None and key in due) or (isinstance(part, dict) and due.get(key, "differences") in part)
            for key, part in parts
        )
        return record if fit else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _digest_of(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:
        return None


def _stays_inside(path: str) -> bool:
    return not Path(path).is_absolute() and ".." not in Path(path).parts


def check_writable(folder: Path) -> None:
    """Raises ForestcError for a folder that `write_folder` could not write: before the work whose outcome it is for."""
    where, folder = str(folder), folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise ForestcError("is a file", where=where, do="give a folder")
    if folder.is_dir() and (foreign := _foreign_file(folder)):
        raise ForestcError(f"holds {foreign!r}, which forestc did not write", where=where, do="give another folder")
    above = next(parent for parent in folder.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ForestcError("can't be written", where=where, do="choose a folder you may write to")


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """All of the files or none: written beside the folder, then moved into place.

    A folder that is there already is replaced only if forestc wrote everything in it. Raises ForestcError.
    """
    where, folder = str(folder), folder.absolute()
    staged = replaced = None
    check_writable(Path(where))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        for name, text in files.items():
            path = staged / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        staged.chmod(0o777 & ~umask())
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
        if 2 <= told["format"] <= FORMAT and {"core", "hash", "options"} <= told.keys():
            known = {MANIFEST, MODEL, QUANTISED, REPORT, *map(str, told["files"].values())}
            known |= {name for name in present if name.startswith(f".{CHECK}.")}  # left by a check that was killed
            known |= set() if _check_record(folder) is None else {CHECK}
    return min(present - known, default="")


def umask() -> int:
    """The process's mask of permissions."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
