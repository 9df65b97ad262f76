"""Reads and writes a compiled design: the folder that `compile` writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestc.backends.base import Gives
from forestc.backends.c.options import COptions, c_options_of
from forestc.backends.engine.files import engine_of
from forestc.backends.engine.reading import capacity_in
from forestc.backends.ports import Field, packed_bytes, unpacked, width_of
from forestc.backends.shared.engine import LoadedLibrary, loaded
from forestc.backends.table import BACKENDS, TARGETS, gives, implied_roles, lowered
from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY
from forestc.errors import ForestcError, ModelError, OptionError, RowsError, opt
from forestc.forest.evaluate import Evaluation, evaluation_of_scores
from forestc.forest.ir import Forest
from forestc.forest.summary import counted
from forestc.forest.text import parse_forest
from forestc.lowering.draft import Witness
from forestc.lowering.timing import DEFAULT_FAMILY
from forestc.lowering.trees import LoweringOptions, lower_with_witness
from forestc.manifest.checked import CHECK, read_check
from forestc.manifest.content import content_bytes, design_hash, digest, field_digest, manifest, reading_schema
from forestc.manifest.fitted_estimator import FittedEstimator
from forestc.manifest.notebook import shown_as
from forestc.manifest.results import MEASURED, Command, Result, add_result, check_figures, read_results
from forestc.netlist.ir import Netlist, WordType
from forestc.netlist.ports import Clocking, Port
from forestc.rows.columns import numeric
from forestc.rows.encode import encode
from forestc.system.records import TEXT, DamagedError, Schema, hold_text, inside, read_record, read_text, refusing
from forestc.system.writing import check_name, left_by_simulator, replacing, writing

MANIFEST = "manifest.json"
MODEL = "model.forest"
QUANTIZED = "quantized.forest"
REPORT = "report.md"
AGAIN = "compile again"
MOST_BYTES = 1 << 31  # bytes of a forest's text, at most


@dataclass(frozen=True, eq=False)
class Design(FittedEstimator):
    """Compiled folder, and a fitted scikit-learn estimator that answers as its hardware does.

    Attributes
    ----------
    folder : Path
        The folder.
    manifest : dict
        The content of manifest.json.
    model : Forest
        The forest as it was read.
    forest : Forest
        The quantized forest, the reference for all checks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> design = forestc.compile(model, X, "iris", label=y).design
    >>> design.predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    folder: Path
    manifest: Mapping[str, Any]
    model: Forest
    forest: Forest

    def __repr__(self) -> str:
        return f"<Design {str(self.manifest['name'])!r:.80} in {str(self.folder)!r}: {', '.join(self.targets)}>"

    def _repr_html_(self) -> str | None:
        return shown_as(self, "html")

    def figures(self) -> dict[str, Any]:
        """Returns the figures that `forestc inspect` prints for a folder.

        Returns
        -------
        dict
            Targets, passes, guarantees, ports, files and the last check.
        """
        manifest = self.manifest
        ports = [
            f"{port['name']} ({port['direction']}, {counted(port['bits'], 'bit')})"
            for port in manifest.get("ports", ())
        ]
        return {
            "folder": str(self.folder),
            "targets": list(self.targets),
            "passes": list(manifest["passes"]),
            "guarantees": [f"{name}: {promise}" for name, promise in manifest["guarantees"].items()],
            "core": manifest.get("core"),
            "ports": ports,
            "latency_cycles": manifest.get("latency_cycles"),
            "device": manifest["options"].get("device"),
            "clock_mhz": manifest["options"].get("clock_mhz"),
            "files": sorted(manifest["files"].values()),
            "changed_files": list(self.changed_files()),
            "last_check": self.last_check(),
        }

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that were written, such as verilog and c."""
        return tuple(self.manifest["options"]["targets"])

    @cached_property
    def _library(self) -> LoadedLibrary | None:
        return loaded(self) if "shared" in self.manifest["files"] else None

    def _evaluated(self, X: Any) -> Evaluation:
        """Evaluates rows, with the design's library if this user's forestc built it on this computer."""
        if self._library is not None:
            rows, forest = numeric(self.forest, X), self.forest
            whole = [feature.column for feature in forest.features if not feature.missing]
            if rows.ndim == 2 and rows.shape[1] == forest.columns and not np.isnan(rows[:, whole]).any():
                return evaluation_of_scores(forest, self._library.run(rows))
        return super()._evaluated(X)

    @property
    def has_hardware(self) -> bool:
        """True if a file in the folder was written from a netlist; False for C and engines alone."""
        return lowered(self.targets)

    @property
    def c_options(self) -> COptions:
        """The options of the C header."""
        return c_options_of(self.manifest["options"]["c"])

    @property
    def lowering(self) -> LoweringOptions:
        """The options of the netlist: latency, outputs, device family and clocking."""
        return _lowering(self.manifest["options"])

    @property
    def engine(self) -> Capacity:
        """The capacity of the design's engine.

        Raises
        ------
        ForestcError
            If the folder has no engine.
        """
        return capacity_in(self)

    @property
    def netlist(self) -> Netlist:
        """The netlist of the written files, built again from the quantized forest.

        Raises
        ------
        ForestcError
            If the folder has no hardware, or the manifest describes another design: users pack words by its offsets.
        """
        return self._lowered[0]

    @property
    def witness(self) -> Witness:
        """The nets that hold the results of trees and votes in the netlist.

        Raises
        ------
        ForestcError
            As for `netlist`.
        """
        return self._lowered[1]

    @cached_property
    def _lowered(self) -> tuple[Netlist, Witness]:
        self._need_hardware()
        netlist, witness = lower_with_witness(self.forest, self.lowering)
        written = self.manifest
        expected = manifest(self.forest, netlist, written["files"], written["options"], written["guarantees"])
        wrong = [key for key in expected if field_digest(expected[key]) != field_digest(written.get(key))]
        if wrong:
            raise ForestcError(
                f"{MANIFEST} does not describe this design: {', '.join(wrong)}",
                where=str(self.folder),
                do="compile again",
            )
        return netlist, witness

    def quantize(self, X: ArrayLike) -> NDArray[np.int64]:
        """Returns rows as words for the hardware and C.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, columns)
            Raw rows.

        Returns
        -------
        int64 array of shape (rows, features)
            Words, in the order of the manifest's features.

        Raises
        ------
        RowsError
            If the rows do not match the model, or miss a value where the design takes none.
        """
        return encode(self.forest, X)

    def pack(self, words: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Returns words as the bytes of the port `x`.

        Parameters
        ----------
        words : int64 array of shape (rows, features)
            Words, from `quantize`.

        Returns
        -------
        uint8 array of shape (rows, bytes)
            Bit i of the port is bit i % 8 of byte i // 8. Bits past the port's width are 0.

        Raises
        ------
        RowsError
            If words are outside their features' ranges, or are not integers of shape (rows, features).
        ForestcError
            If the folder has no hardware.
        """
        fields = self._fields("features")
        words = np.asarray(words)
        if words.ndim != 2 or words.shape[1] != len(fields) or words.dtype.kind not in "iu":
            raise RowsError(
                f"words have shape {words.shape} and type {words.dtype}",
                where="words",
                do=f"give integers (rows, {len(fields)}), as quantize does",
            )
        for index, field in enumerate(fields):
            low, high = field.word.low, field.word.high
            if (outside := np.flatnonzero((words[:, index] < low) | (words[:, index] > high))).size:
                row = int(outside[0])
                where = f"row {row}, feature {field.name!r}"
                raise RowsError(
                    f"the word {words[row, index]} is outside {low}..{high}",
                    where=where,
                    do="give words within the range of their feature",
                )
        lanes = packed_bytes(fields, words.astype(np.int64)).astype("<u4")
        return lanes.view(np.uint8)[:, : max(1, -(-width_of(fields) // 8))]

    def unpack(self, data: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns the results in the bytes of the port `y`.

        Parameters
        ----------
        data : uint8 array of shape (rows, bytes)
            The port, little-endian, as in `pack`.

        Returns
        -------
        int64 array of shape (rows, results)
            Results, in the order of the manifest's outputs.

        Raises
        ------
        RowsError
            If the array has too few bytes.
        ForestcError
            If the folder has no hardware.
        """
        fields = self._fields("outputs")
        data = np.ascontiguousarray(data, dtype=np.uint8)
        if data.ndim != 2 or 8 * data.shape[1] < width_of(fields):
            raise RowsError(
                f"results have shape {data.shape}",
                where="results",
                do=f"give bytes (rows, {-(-width_of(fields) // 8)})",
            )
        lanes = np.zeros((len(data), 4 * max(1, -(-data.shape[1] // 4))), dtype=np.uint8)
        lanes[:, : data.shape[1]] = data
        return unpacked(fields, lanes.view("<u4"))

    def _need_hardware(self) -> None:
        if not self.has_hardware:
            needed = next(name for name, target in TARGETS.items() if target.lowered)
            raise ForestcError("no core of hardware", where=str(self.folder), do=f"add {opt.target:{needed}}")

    def _fields(self, key: str) -> list[Field]:
        """Returns the fields of a port from the manifest. key: `features` or `outputs`."""
        self._need_hardware()
        return [
            Field(Port(str(f["name"])), int(f["offset"]), WordType(int(f["bits"]), bool(f["signed"])))
            for f in self.manifest[key]
        ]

    def path(self, role: str) -> Path:
        """Returns the path of a file of the folder.

        Parameters
        ----------
        role : str
            The file's role in the manifest, such as verilog or c.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ForestcError
            If there is no such file.
        """
        if role not in self.manifest["files"]:
            option = f"{opt.c_project:all}" if role.startswith("c_") else opt.stream
            writer = next((name for name, target in TARGETS.items() if role in target.roles({}, ())), "")
            option = f"{opt.target:{writer}}" if writer else option
            raise ForestcError(
                f"the design has no file of the role {role}", where=str(self.folder), do=f"compile with {option}"
            )
        path = inside(self.folder, self.manifest["files"][role])
        if not path.is_file():
            raise ForestcError(f"the {role} file is missing", where=str(path), do="compile again")
        return path

    def changed_files(self) -> tuple[str, ...]:
        """Returns the files that are missing or have changed since `compile` wrote them.

        Returns
        -------
        tuple of str
            Paths within the folder.
        """
        digests = self.digests()
        return tuple(path for path, recorded in self.manifest["sha256"]["files"].items() if digests[path] != recorded)

    def digests(self) -> dict[str, str | None]:
        """Returns the present SHA-256 of each file.

        Returns
        -------
        dict of str to str or None
            By path; None for a file that can't be read.
        """
        return {path: digest_of(self.folder, path) for path in self.manifest["sha256"]["files"]}

    def check_record(self) -> dict[str, Any] | None:
        """Returns the content of check.json, which the last `check` wrote.

        Returns
        -------
        dict or None
            The record; None if there is none.

        Raises
        ------
        ForestcError
            If forestc did not write the file; names the field.
        """
        return read_check(self.folder)

    def results(self) -> list[Result]:
        """Returns the results of `synth`, `measure` and `report --place` for the design.

        Returns
        -------
        list of Result
            The content of measured.json.

        Raises
        ------
        ForestcError
            If forestc did not write the file; names the field.
        """
        return read_results(self.folder)

    def is_of_this_content(self, result: Result) -> bool:
        """Returns True if the design is unchanged since a result was measured.

        Parameters
        ----------
        result : Result
            One of `results`.

        Returns
        -------
        bool
            False if the design or any of its files has changed.
        """
        return result.hash == self.manifest["hash"] and result.files == self.digests()

    def record(self, command: Command, figures: Mapping[str, Any], *, stream: bool = False) -> str:
        """Adds a result to measured.json.

        Parameters
        ----------
        command : {"synth", "measure", "place"}
            The command that gave the figures.
        figures : dict
            Its figures.
        stream : bool, default=False
            The design had its stream wrapper.

        Returns
        -------
        str
            Why the file could not be written, or "".
        """
        return add_result(self.folder, command, figures, (self.manifest["hash"], self.digests()), stream=stream)

    def last_check(self) -> dict[str, Any] | None:
        """Returns the figures of the last `check`.

        Returns
        -------
        dict or None
            From check.json; None if there is none. `of_this_content` is True if the design and its files are unchanged.

        Raises
        ------
        ForestcError
            If forestc did not write the file; names the field.
        """
        record = self.check_record()
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
            "rows": None if rows is None else rows.get("file", "generated rows" if rows.get("made") else "an array"),
            "agreement": None if record["agreement"] is None else record["agreement"]["agreement"],
        }


def open_design(folder: str | Path) -> Design:
    """Reads a folder that `compile` wrote.

    Parameters
    ----------
    folder : str or path
        The folder.

    Returns
    -------
    Design
        The design.

    Raises
    ------
    ForestcError
        If the manifest or a forest in the folder is missing, damaged or changed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> forestc.open_design("iris")
    <Design 'forest' in 'iris': c, verilog>
    """
    folder = Path(folder)
    texts = {name: _text(folder, name) for name in (MANIFEST, MODEL, QUANTIZED)}
    manifest = hold_text(texts[MANIFEST], folder / MANIFEST, reading_schema(), AGAIN)
    with refusing(folder / MANIFEST, AGAIN):
        _check_options(manifest["options"])
        if "synthesis" in manifest["made"]:
            check_figures("synth", manifest["made"]["synthesis"], "made.synthesis")
        model, forest = (_forest(folder, name, texts[name]) for name in (MODEL, QUANTIZED))
        design = Design(folder, manifest, model, forest)
        if changed := _changed(manifest, texts):
            raise ForestcError(f"was changed after forestc wrote it: {', '.join(changed)}", where=str(folder), do=AGAIN)
        if manifest["hash"] != design_hash(texts[QUANTIZED], manifest["options"]):
            raise ForestcError(f"{QUANTIZED} and {MANIFEST} do not belong together", where=str(folder), do=AGAIN)
        _check_agrees(design)
    return design


def design_of(given: Design | str | Path) -> Design:
    """Returns a Design as it is, or reads it from its folder. Raises ForestcError."""
    return given if isinstance(given, Design) else open_design(given)


def hardware_in(given: Design | Capacity | str | Path) -> Design | Capacity:
    """Returns what a folder holds: a design, or an engine alone. Raises ForestcError."""
    if isinstance(given, str | Path) and (Path(given) / CAPACITY).is_file() and not (Path(given) / MANIFEST).exists():
        return engine_of(given)
    return given if isinstance(given, Capacity) else design_of(given)


def _text(folder: Path, name: str) -> str:
    remedy = "give a folder that forestc compile wrote"
    try:
        return read_text(folder / name, MOST_BYTES)
    except OSError:
        raise ForestcError(f"has no readable {name}", where=str(folder), do=remedy) from None
    except DamagedError as fault:
        raise ForestcError(f"{name} is damaged (it {fault})", where=str(folder), do=AGAIN) from None


def _forest(folder: Path, name: str, text: str) -> Forest:
    try:
        return parse_forest(text)
    except ModelError as error:
        raise ModelError(f"a forest in it is damaged: {name} ({error})", where=str(folder), do=AGAIN) from None


def _lowering(options: Mapping[str, Any]) -> LoweringOptions:
    clocking = Clocking(options.get("reset", "none"), options.get("enable", False))
    return LoweringOptions(options["latency"], options["outputs"], options.get("target", DEFAULT_FAMILY), clocking)


def _check_options(options: Mapping[str, Any]) -> None:
    makers: dict[str, Callable[[], object]] = {"latency": lambda: _lowering(options)}
    makers |= {name: partial(row.code().options, options[name]) for name, row in BACKENDS.items() if name in options}
    for name, make in makers.items():
        try:
            make()
        except OptionError as error:
            raise DamagedError(f"options.{name}: {error}") from None
    if gives(options["targets"], Gives.WALKERS) != ("engine" in options):
        raise DamagedError("options.engine and options.targets do not belong together")


def _check_agrees(design: Design) -> None:
    """Raises DamagedError if the manifest or the model does not belong to the quantized forest."""
    written, forest = design.manifest, design.forest
    features = [{"name": feature.name, "column": feature.column} for feature in forest.features]
    described = [{key: feature[key] for key in ("name", "column")} for feature in written["features"]]
    for name, value, expected in (
        ("name", written["name"], forest.name),
        ("columns", written["columns"], forest.columns),
        ("features", described, features),
    ):
        if value != expected:
            raise DamagedError(f"{name} is not that of {QUANTIZED}")
    if design.model.columns != forest.columns or len(design.model.classes) != len(forest.classes):
        raise DamagedError(f"{MODEL} is not the model of {QUANTIZED}")


def _changed(manifest: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    """Returns a list that names all changes since `compile`: in fields of the manifest, its lists of files, and the two
    forests."""
    sealed = manifest["sha256"]["fields"]
    present = {name: field_digest(value) for name, value in manifest.items() if name != "sha256"}
    changed = [f"{MANIFEST}: {name}" for name in sorted(present | sealed) if present.get(name) != sealed.get(name)]
    implied = implied_roles(manifest["options"])
    changed += [f"{MANIFEST}: files, {role}" for role in sorted(implied ^ manifest["files"].keys())]
    hashed = manifest["sha256"]["files"]
    changed += [f"{MANIFEST}: sha256, {path}" for path in sorted({*manifest["files"].values()} - hashed.keys())]
    return changed + [name for name in (MODEL, QUANTIZED) if hashed.get(name) != digest(texts[name])]


def digest_of(folder: Path, name: str) -> str | None:
    """Returns the SHA-256 of a file in a folder; None if it can't be read."""
    try:
        path = inside(folder, name)
        return digest(path.read_bytes()) if path.is_file() else None
    except (OSError, ForestcError):
        return None


def check_writable(folder: Path) -> None:
    """Raises ForestcError if the folder is a file, holds files that forestc did not write, or can't be written."""
    where, folder = str(folder), folder.absolute()
    check_name(folder, where)
    if folder.exists() and not folder.is_dir():
        raise ForestcError("is a file", where=where, do="give a folder")
    if folder.is_dir() and (foreign := _foreign_file(folder)):
        raise ForestcError(f"holds {foreign!r}, which forestc did not write", where=where, do="give another folder")
    above = next(parent for parent in folder.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ForestcError("can't be written", where=where, do="choose a folder you may write to")


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes all files or none. Replaces an existing folder only if forestc wrote everything in it. Raises ForestcError
    if it can't write."""
    check_writable(folder)
    with writing(folder, "choose a folder you may write to"):
        folder = folder.absolute()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as (new,):
            for name, content in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content_bytes(content))


def rewrite(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Replaces files of a folder that `write_folder` wrote. Raises ForestcError if it can't write."""
    with writing(folder, AGAIN), replacing(*(folder / name for name in files)) as new:
        for path, content in zip(new, files.values(), strict=True):
            path.write_bytes(content_bytes(content))


# Match a record of any version.
_ANY_FORMAT: Schema = {
    "type": "object",
    "required": ["format"],
    "properties": {"format": {"type": "integer", "minimum": 1}},
}
_ANY_MANIFEST: Schema = {
    "type": "object",
    "required": ["format", "hash", "options", "files"],
    "properties": _ANY_FORMAT["properties"]
    | {
        "files": {"type": "object", "additionalProperties": TEXT},
        "sha256": {"type": "object", "properties": {"files": {"type": "object"}}},
    },
}


def _foreign_file(folder: Path) -> str:
    """Returns the path in the folder of a file that forestc did not write, judging by names; "" if there is none."""
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    own: set[str] = set()
    with suppress(ForestcError):
        manifest = read_record(folder / MANIFEST, _ANY_MANIFEST, AGAIN, AGAIN)
        hashed = manifest.get("sha256", {}).get("files", {})
        own = {MANIFEST, MODEL, QUANTIZED, REPORT, *manifest["files"].values(), *hashed}
        own |= {name for name in present if name.startswith(f".{CHECK}.")}  # A killed check leaves it.
        own |= {name for name in present if name.startswith(f".{MEASURED}.")}
        own |= {name for name in present if left_by_simulator(name)}
    for name in (CHECK, MEASURED) if own else ():
        with suppress(ForestcError):
            read_record(folder / name, _ANY_FORMAT, AGAIN, AGAIN)
            own.add(name)
    return min(present - own, default="")
