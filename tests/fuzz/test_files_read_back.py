"""Damaged copies of each file that forestc reads back are read as they are meant, or refused by file and field."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from damage import Copy, byte_copies, json_copies, text_copies
from lightgbm import LGBMClassifier
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import forestc
from forestc.backends.engine.reading import image_in
from forestc.commands.explore import stored_arguments
from forestc.costs.fitted import FILE as FITTED
from forestc.costs.fitted import parsed as parsed_costs
from forestc.engine.folder import described, open_engine
from forestc.errors import ForestcError
from forestc.exploration import sampling
from forestc.forest.text import parse_forest, print_forest
from forestc.forest.verify import verify
from forestc.inputs.text import printed
from forestc.manifest.content import design_hash, digest, sealed
from forestc.passes.base import PassResult
from forestc.passes.promises import Exact
from forestc.report.page.assembly import html
from forestc.report.page.design_page import Given, design_page
from forestc.report.page.notebook import open_study
from forestc.report.page.peers import read_peers
from forestc.report.page.study_page import study_page
from forestc.rows.range_files import ranges_from
from forestc.search.memory import ResultStore, StoredArrays, printed_result, read_result

SLOWEST = 30.0  # seconds that one copy may take


@dataclass(frozen=True)
class Kind:
    """file: its path among those of `written`. read: what reads it, given the folder of them all and the copy; it
    raises AssertionError for what is not read as meant. then: what shows and uses some of those that were read. copies:
    of its bytes. seal: what a forger does about hashes. writes: paths that reading may change."""

    file: str
    read: Callable[[Path, Copy], object]
    copies: Callable[[bytes, int, str], Iterator[Copy]]
    then: Callable[[Path], object] | None = None
    seal: Callable[[Path], None] | None = None
    writes: tuple[str, ...] = ()


@dataclass
class Tally:
    """faults: what neither read nor refused a copy, for messages."""

    read: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


def written(folder: Path) -> None:
    """Writes files of each kind that is read back: compiled folders with their records, an engine, a study, others."""
    X, y = load_iris(return_X_y=True)
    names = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(names, y)
    forestc.compile(forest, names, folder / "logic", label=y, targets="verilog,c", latency=2, name="flowers")
    forestc.check(folder / "logic", names, label=y, engines=["netlist"], random_rows=20)
    forestc.measure(folder / "logic", "cortex-m0plus", names, entries=["predict"])

    codes = np.digitize(X[:, 3], [0.5, 1.5, 2.0])
    mixed = np.column_stack([X[:, :2], np.where(X[:, 2] > 5.5, np.nan, X[:, 2]), codes])
    boosted = LGBMClassifier(n_estimators=5, max_depth=3, min_child_samples=5, verbose=-1, random_state=0)
    boosted.fit(mixed, y > 0, categorical_feature=[3]).booster_.save_model(folder / "model.txt")
    forestc.model_inputs(folder / "model.txt", mixed, folder / "inputs.bn", samples=3)
    forestc.compile(
        folder / "model.txt", None, folder / "ranges", targets="c,verilog", c_values="float", ranges={
            "Column_0": (0, 9), "Column_1": {"smallest": 0, "step": 0.1, "largest": 9}, "Column_2": {"missing": True},
            "Column_3": {},
        },
    )  # fmt: skip

    engine, values = folder / "engine", GradientBoostingRegressor(n_estimators=4, max_depth=3, random_state=0).fit(X, y)
    forestc.make_engine(
        engine / "engine",
        trees=8,
        nodes=256,
        features=4,
        classes=1,
        walkers=2,
        scores=True,
        load="axi-lite",
        name="walk",
    )
    forestc.compile(values, X, engine / "compiled", label=y, targets="engine", engine=engine / "engine", name="values")

    names.assign(kind=y).to_csv(folder / "rows.csv", index=False)
    skops.io.dump(forest, folder / "model.skops")
    forestc.explore(
        folder / "model.skops", rows=folder / "rows.csv", out=folder / "study", label="kind", device="ecp5-25k",
        rungs="estimate", trials=2, jobs=1, prove=False,
    )  # fmt: skip
    ranges = {"a": [0, 9], "b": {"smallest": -1, "step": 0.5, "missing": False}, "c": [0, None], "d": {"largest": 7}}
    (folder / "ranges.json").write_text(json.dumps(ranges))
    (folder / "ranges.csv").write_text(
        "feature,smallest,largest,step,missing\na,0,9,1,no\nb,-1,,0.5,\nc,,,,\nd,,7,,no\n"
    )
    (folder / "peers.json").write_text(
        json.dumps([{"name": "x", "lut": 12, "accuracy": 0.5}, {"name": "y", "ff": 1.5}])
    )
    (folder / "peers.csv").write_text("name,lut,accuracy\nx,12,0.5\ny,,0.9\n")
    (folder / "fitted.json").write_text(FITTED.read_text())
    shutil.copy(folder / "ranges/manifest.json", folder)
    memory = StoredArrays(ResultStore(folder / "memory"), "key")
    memory.remember("arrays", {"a": np.arange(40.0), "b": np.zeros((3, 4), dtype=np.int32)})
    (folder / "result.bin").write_bytes(_result(folder))
    (folder / "outside").mkdir()
    (folder / "outside" / "top.v").write_text("// a file of the user's\n")


def _result(folder: Path) -> bytes:
    forest = parse_forest((folder / "ranges/quantized.forest").read_text())
    content = printed_result(PassResult(forest, (Exact(),), {"leaves": [1, 2.5], "name": "x"}))
    assert content is not None
    return content


# ---- what reads each kind -------------------------------------------------------------------------------


def _manifest(folder: Path, changed: Copy) -> None:
    """A folder as it is: a copy that is not refused holds what forestc wrote."""
    assert forestc.open_design(folder / "ranges").manifest == json.loads((folder / "manifest.json").read_text())


def _resealed(name: str) -> Callable[[Path], None]:
    """Makes the hashes of a folder anew, as a forger does."""

    def seal(folder: Path) -> None:
        path = folder / name / "manifest.json"
        with contextlib.suppress(Exception):  # what is no manifest stays as it is
            fields = json.loads(path.read_text())
            fields.pop("sha256", None)
            with contextlib.suppress(Exception):
                fields["hash"] = design_hash((folder / name / "quantized.forest").read_text(), fields["options"])
            whole = sealed(fields, {})
            files = sorted((folder / name).rglob("*"))
            whole["sha256"]["files"] = {
                str(file.relative_to(folder / name)): digest(file.read_bytes())
                for file in files
                if file.is_file() and file != path and file.name not in ("measured.json", "check.json")
            }
            path.write_text(json.dumps(whole))

    return seal


def _design(name: str) -> Callable[[Path, Copy], None]:
    def read(folder: Path, changed: Copy) -> None:
        design = forestc.open_design(folder / name)
        assert design.predict(np.zeros((2, design.model.columns))).shape[0] == 2
        json.dumps(forestc.inspect(design))

    return read


def _shown(name: str, *engines: str) -> Callable[[Path], None]:
    """Everything that shows a folder, its manifest and its records, and a check with the engines."""

    def then(folder: Path) -> None:
        design = forestc.open_design(folder / name)
        _command("inspect", folder / name)
        html(design_page(design, Given(None, None, folder)))
        if engines:
            rows = np.zeros((1, design.model.columns))
            forestc.check(design, rows, engines=engines, random_rows=20, record=False)

    return then


def _command(*words: object) -> None:
    """Runs a command. Raises ForestcError of its line for one that is refused, and AssertionError for a traceback."""
    from forestc.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            status = ended.code
    assert "Traceback" not in err.getvalue() and "--debug shows where" not in err.getvalue(), err.getvalue()
    if status:
        lines = err.getvalue().strip().split("\n")
        raise ForestcError(lines[-1], where="", do="")


def _check(folder: Path, changed: Copy) -> None:
    assert forestc.open_design(folder / "logic").check_record() == json.loads(changed.data)
    forestc.inspect(folder / "logic")


def _measured(folder: Path, changed: Copy) -> None:
    results = forestc.open_design(folder / "logic").results()
    assert [vars(result) for result in results] == json.loads(changed.data)["results"]


def _study(folder: Path, changed: Copy) -> None:
    study, record = open_study(folder / "study"), json.loads(changed.data)
    stored_arguments(folder / "study")
    assert dict(study.asked) == {key: record[key] for key in record if key not in ("format", "goals", "limits")}


def _trial(folder: Path, changed: Copy) -> None:
    trial, record = open_study(folder / "study").trials[0], json.loads(changed.data)
    assert all(getattr(trial, key) == record[key] for key in ("number", "state", "options", "figures") if key in record)


def _pages(folder: Path) -> None:
    study = open_study(folder / "study")
    html(study_page(study, ()))
    assert str(study) and study._repr_html_()


def _journal(folder: Path, changed: Copy) -> None:
    study = open_study(folder / "study")
    sampling.mend(folder / "study")
    opened = sampling.opened(folder / "study", None, study.goals, 0, resume=True)
    _ = opened.trials


def _engine(folder: Path, changed: Copy) -> None:
    capacity = open_engine(folder / "engine/engine")
    assert json.loads(json.dumps(described(capacity))) == json.loads(changed.data)
    made = forestc.make_image(folder / "engine/compiled", out=folder / "new.bin", engine=folder / "engine/engine")
    assert made["bytes"]


def _compile_for_engine(folder: Path, changed: Copy) -> None:
    model, rows = folder / "engine/compiled/model.forest", load_iris().data
    forestc.compile(model, rows, folder / "made", targets="engine", engine=folder / "engine/engine", passes="none")
    _engine(folder, changed)


def _engine_in_folder(folder: Path, changed: Copy) -> None:
    """A compiled folder: the reader of images takes engine.json and images.txt."""
    design = forestc.open_design(folder / "engine/compiled")
    image = image_in(design)
    image.walked(np.zeros((2, image.shape.features), dtype=np.int64))


def _inputs(folder: Path, changed: Copy) -> None:
    inputs = forestc.read_inputs(folder / "inputs.bn")
    assert forestc.read_inputs(folder / "inputs.bn").inputs == inputs.inputs
    assert len(printed(inputs)) > 100
    inputs.rows(20, 0)


def _forest(folder: Path, changed: Copy) -> None:
    forest = forestc.load(folder / "ranges/quantized.forest")
    verify(forest)
    assert print_forest(parse_forest(print_forest(forest))) == print_forest(forest)


def _in_folder(folder: Path, changed: Copy) -> None:
    design = forestc.open_design(folder / "ranges")
    design.predict(np.zeros((2, design.model.columns)))
    forestc.inspect(design)


def _ranges(name: str) -> Callable[[Path, Copy], None]:
    def read(folder: Path, changed: Copy) -> None:
        forest = forestc.load(folder / "logic/model.forest")
        ranges_from(folder / name, forest)

    return read


def _memory(folder: Path, changed: Copy) -> None:
    """What is damaged is made again; what is read are arrays."""
    arrays = StoredArrays(ResultStore(folder / "memory"), "key").recall("arrays")
    assert arrays is None or all(isinstance(array, np.ndarray) for array in arrays.values())


def _kept_result(folder: Path, changed: Copy) -> None:
    result = read_result((folder / "result.bin").read_bytes())
    if result is not None:
        verify(result.forest)


def _costs(folder: Path, changed: Copy) -> None:
    parsed_costs((folder / "fitted.json").read_bytes().decode("utf-8", "replace"))


def as_json(data: bytes, count: int, seed: str) -> Iterator[Copy]:
    return json_copies(json.loads(data), count, seed)


def packed_bytes(data: bytes, count: int, seed: str) -> Iterator[Copy]:
    """Copies of a compressed file: as it is stored, and with its content changed."""
    import zlib

    for number, changed in enumerate(byte_copies(zlib.decompress(data), count, seed)):
        packed = zlib.compress(changed.data)
        yield changed._replace(data=packed if number % 2 else next(byte_copies(data, 1, f"{seed} {number}")).data)


_MEMORY = "memory/*"  # one file, which is named by a hash
KINDS: Mapping[str, Kind] = {
    "manifest": Kind("ranges/manifest.json", _manifest, as_json),
    "manifest, hashes made anew": Kind(
        "ranges/manifest.json", _design("ranges"), as_json, _shown("ranges", "netlist"), _resealed("ranges")
    ),
    "manifest of an engine, hashes made anew": Kind(
        "engine/compiled/manifest.json", _design("engine/compiled"), as_json, _shown("engine/compiled", "image"),
        _resealed("engine/compiled"),
    ),
    "check.json": Kind("logic/check.json", _check, as_json, _shown("logic")),
    "measured.json": Kind("logic/measured.json", _measured, as_json, _shown("logic")),
    "study.json": Kind("study/study.json", _study, as_json, _pages),
    "trial.json": Kind("study/trials/0000/trial.json", _trial, as_json, _pages),
    "storage.log": Kind("study/storage.log", _journal, text_copies),
    "engine.json": Kind("engine/engine/engine.json", _engine, as_json, writes=("new.bin",)),
    "engine.json, compile": Kind("engine/engine/engine.json", _compile_for_engine, as_json, writes=("new.bin", "made")),
    "engine.json of a compiled folder": Kind("engine/compiled/engine/engine.json", _engine_in_folder, as_json),
    "images.txt": Kind("engine/compiled/engine/images.txt", _engine_in_folder, text_copies),
    "inputs": Kind("inputs.bn", _inputs, text_copies),
    "forest": Kind("ranges/quantized.forest", _forest, text_copies),
    "forest in a folder": Kind("ranges/model.forest", _in_folder, text_copies),
    "forest in a folder, hashes made anew": Kind(
        "ranges/quantized.forest", _in_folder, text_copies, _shown("ranges", "netlist"), _resealed("ranges")
    ),
    "ranges.json": Kind("ranges.json", _ranges("ranges.json"), as_json),
    "ranges.csv": Kind("ranges.csv", _ranges("ranges.csv"), text_copies),
    "peers.json": Kind("peers.json", lambda folder, _: read_peers(folder / "peers.json"), as_json),
    "peers.csv": Kind("peers.csv", lambda folder, _: read_peers(folder / "peers.csv"), text_copies),
    "kept arrays": Kind(_MEMORY, _memory, packed_bytes),
    "kept results": Kind("result.bin", _kept_result, as_json),
    "fitted.json": Kind("fitted.json", _costs, as_json),
}  # fmt: skip


def tally(name: str, count: int, folder: Path) -> Tally:
    """Runs a kind on its copies, in a folder that `written` filled."""
    kind, found = KINDS[name], Tally()
    path = next(folder.glob(kind.file))
    manifests = [above / "manifest.json" for above in list(path.parents)[:2]]
    kept = {file: file.read_bytes() for file in (path, *manifests) if file.is_file()}
    but = (*kind.writes, *(str(file.relative_to(folder)) for file in kept))
    before = _files(folder, but)
    for number, changed in enumerate(kind.copies(kept[path], count, name)):
        path.write_bytes(changed.data)
        if kind.seal is not None:
            kind.seal(folder)
            changed = changed._replace(data=path.read_bytes())
        began, said = time.perf_counter(), f"{number}: {changed.keys} {changed.how}"
        try:
            kind.read(folder, changed)
            if kind.then is not None and found.read < max(2, count // 25):
                kind.then(folder)
        except ForestcError as error:
            if wrong := _unnamed(str(error), (path.name, *(["manifest.json"] if kind.seal else [])), changed):
                found.faults.append(f"{said}: {wrong}: {error}")
            found.refused += 1
        except Exception:  # noqa: BLE001  whatever it is, it is a fault
            found.faults.append(f"{said}: {traceback.format_exc()[-1500:]}")
        else:
            found.read += 1
        if time.perf_counter() - began > SLOWEST:
            found.faults.append(f"{said}: took {time.perf_counter() - began:.1f} s")
        for file, data in kept.items():
            file.write_bytes(data)
        after = _files(folder, but)
        if after != before:
            wrote = sorted(name for name in {*after, *before} if after.get(name) != before.get(name))
            found.faults.append(f"{said}: wrote {wrote}")
            before = after
        for left in kind.writes:
            shutil.rmtree(folder / left, ignore_errors=True)
            (folder / left).unlink(missing_ok=True)
    return found


def _unnamed(message: str, named: tuple[str, ...], changed: Copy) -> str:
    """What a refusal does not say: the file, or the manifest that it contradicts; and the field, where one value of it
    was changed."""
    if not any(name in message for name in named):
        return "does not name the file"
    keys = [key for key in changed.keys if isinstance(key, str)]
    if keys and not any(text in message for key in keys for text in (key, json.dumps(key), repr(key))):
        # what is no JSON has no fields
        # or the place where it is contradicted
        other = ("was changed after", "which is not in", "has no", "unknown")
        return "" if any(word in message for word in other) else "does not name the field"
    return ""


def _files(folder: Path, but: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """The size and the time of all files around, but some."""
    return {
        name: (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and not (name := str(path.relative_to(folder))).startswith(but)
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    written(folder)
    return folder


@pytest.mark.parametrize("count", [10, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", KINDS)
def test_copies_are_read_or_refused(files, name, count):
    found = tally(name, count, files)
    assert found.read + found.refused == count and not found.faults, "\n".join(found.faults[:10])
