"""A dozen small designs whose bytes and figures tell which results in docs/benchmarks are of an older forestc.

    python benchmarks/golden.py             names the results that are stale; status 1 if there are any
    python benchmarks/golden.py --print     the digest of each design, as JSON

A result holds the folders that it measures, and the digests of the designs that show what these folders do, of the time
when it was measured. It is stale once one of them is another. Models come from examples/models, and rows from
scikit-learn, so that only forestc changes a digest. Not seen: times, and what no design here does.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import forestc
from forestc.forest.text import print_forest
from forestc.options.stream import StreamOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import MODELS, split_breast_cancer, split_digits

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks"
SPLITS = {"breast_cancer.json": split_breast_cancer, "digits.skops": split_digits}
FIGURES = ("estimate", "trees", "conditions", "distinct_conditions", "comparator_bits")
DIGITS = 12  # hex digits of a digest


@dataclass(frozen=True)
class Golden:
    """folders: those whose behaviour it shows. made: what is hashed, given an empty folder."""

    folders: tuple[str, ...]
    made: Callable[[Path], Iterable[bytes]]


def compiled(model: str, *files: str, figures: Sequence[str] = (), **options: Any) -> Callable[[Path], Iterator[bytes]]:
    """Files of a compiled folder, by suffix, and figures of its compilation."""

    def made(folder: Path) -> Iterator[bytes]:
        rows, test, labels, test_labels = SPLITS[model]()
        given: dict[str, Any] = {"rows": None}
        if options.get("level") != 0:
            given = {"rows": rows, "label": labels}
        if options.get("level") not in (0, 1):
            given["held_out"] = (test, test_labels)
        done = forestc.compile(MODELS / model, out=folder / "out", name="golden", **given, **options)
        yield from contents(folder / "out", files)
        yield json.dumps([done.figures[figure] for figure in figures]).encode()

    return made


def contents(folder: Path, suffixes: Sequence[str]) -> Iterator[bytes]:
    """The bytes of all files with these suffixes, test benches left out."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in suffixes and not path.stem.endswith("_tb"):
            yield path.read_bytes()


def loaded(folder: Path) -> Iterator[bytes]:
    """The text of both models as they are read, without rows."""
    for model in SPLITS:
        yield print_forest(forestc.load(MODELS / model)).encode()


def an_engine(folder: Path) -> Iterator[bytes]:
    rows, _, labels, _ = SPLITS["breast_cancer.json"]()
    forestc.make_engine(folder / "engine", trees=20, nodes=512, features=30, walkers=2)
    forestc.make_image(MODELS / "breast_cancer.json", rows, folder / "a.bin", engine=folder / "engine", label=labels)
    yield from contents(folder, (".v", ".bin"))


def inputs(folder: Path) -> Iterator[bytes]:
    rows, _, labels, _ = SPLITS["breast_cancer.json"]()
    model = MODELS / "breast_cancer.json"
    made, _ = forestc.model_inputs(model, rows, label=labels, treewidth=2, samples=1)
    yield made.log_likelihood(rows.to_numpy()).round(6).tobytes()


def with_pass(text: str) -> Callable[[Path], Iterator[bytes]]:
    """What a list of passes answers for all rows, with the test rows held out."""

    def made(folder: Path) -> Iterator[bytes]:
        rows, test, labels, test_labels = SPLITS["breast_cancer.json"]()
        model = MODELS / "breast_cancer.json"
        given = {"label": labels, "held_out": (test, test_labels), "passes": text, "targets": "c"}
        done = forestc.compile(model, rows, folder / "out", name="golden", **given)
        for part in (rows, test):
            yield done.design.predict(part).tobytes()
        yield json.dumps([done.figures[figure] for figure in ("trees", "distinct_conditions")]).encode()

    return made


BOTH = ("breast_cancer.json", "digits.skops")


def each(*files: str, **options: Any) -> Callable[[Path], Iterator[bytes]]:
    """The same of both models."""

    def made(folder: Path) -> Iterator[bytes]:
        for number, model in enumerate(BOTH):
            (folder / str(number)).mkdir()
            yield from compiled(model, *files, **options)(folder / str(number))

    return made


QUANTIZED = (
    "forestc/passes/quantize_inputs",
    "forestc/passes/round_leaves",
    "forestc/passes/simplify.py",
    "forestc/passes/share_thresholds",
)
LOGIC = (
    "forestc/lowering",
    "forestc/netlist",
    "forestc/backends/verilog.py",
    "hw_sim",
    "forestc/compilation",
)
CODE = (*QUANTIZED, "forestc/layouts", "forestc/backends/c", "forestc/firmware")
SEARCH = ("forestc/search", "forestc/exploration")
GOLDEN: Mapping[str, Golden] = {
    "models read": Golden(("forestc/frontends", "forestc/forest"), loaded),
    "Verilog, -O0": Golden(LOGIC, each(".v", level=0, targets="verilog", latency=2)),
    "Verilog, -O1": Golden(LOGIC, each(".v", level=1, targets="verilog")),
    "C, -O0": Golden(CODE, each(".h", level=0, targets="c", c_layout="nodes")),
    "C, -O1": Golden(CODE, each(".h", level=1, targets="c", c_layout="ranked")),
    "other languages": Golden(
        ("forestc/backends/vhdl.py", "forestc/backends/hls.py", "forestc/backends/amaranth.py"),
        compiled("breast_cancer.json", ".vhd", ".py", ".cpp", ".h", level=1, targets="vhdl,hls,amaranth"),
    ),
    "stream wrapper": Golden(
        ("forestc/backends/axi_stream.py",),
        compiled("breast_cancer.json", ".v", level=1, targets="verilog", stream=StreamOptions(tdata_bits=64)),
    ),
    "estimates": Golden(("forestc/costs",), each(".h", level=1, targets="verilog,c", figures=FIGURES)),
    "-O2": Golden(
        (*SEARCH, "forestc/passes/prune_splits"),
        compiled("breast_cancer.json", ".v", level=2, targets="verilog"),
    ),
    "-O3": Golden(
        (*SEARCH, "forestc/passes/regrow_trees"),
        compiled("breast_cancer.json", ".v", level=3, tolerance=0.03, targets="verilog"),
    ),
    "trees pruned": Golden(
        ("forestc/passes/prune_trees", "forestc/algorithms/members"),
        with_pass("simplify,round-leaves,prune-trees{tolerance=0.05},simplify"),
    ),
    "rules": Golden(
        ("forestc/passes/extract_rules", "forestc/algorithms/covers"),
        with_pass("round-leaves,extract-rules{tolerance=0.1},simplify"),
    ),
    "input model": Golden(("forestc/inputs", "forestc/algorithms/networks"), inputs),
    "engine": Golden(("forestc/engine", "forestc/backends/engine.py", "hdl_templates"), an_engine),
}  # fmt: skip


@cache
def digest(name: str) -> str:
    """The digest of a golden design, by compiling it; of a failure, if it fails."""
    total = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        for part in GOLDEN[name].made(Path(folder)):
            total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:DIGITS]


def shown_by(measures: Iterable[str]) -> list[str]:
    """The golden designs that show what the folders or modules do."""
    return [name for name, golden in GOLDEN.items() if any(_within(a, b) for a in measures for b in golden.folders)]


def _within(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def digests(measures: Iterable[str]) -> dict[str, str]:
    """What a result that measures these folders records."""
    return {name: digest(name) for name in shown_by(measures)}


def stale() -> Iterator[tuple[str, str]]:
    """Each result that is stale, and why."""
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        wanted, known = shown_by(result["measures"]), result.get("golden", {})
        changed = [name for name in wanted if known.get(name) != digest(name)]
        if changed:
            yield path.name, f"{', '.join(changed)} changed since {result['date']} ({result['commit'][:8]})"


def main() -> int:
    if "--print" in sys.argv[1:]:
        print(json.dumps(digests(GOLDEN[name].folders[0] for name in GOLDEN), indent=1))
        return 0
    found = list(stale())
    for name, why in found:
        print(f"docs/benchmarks/{name} is stale: {why}; measure it again with its command")
    print(f"{len(found)} of {len(list(RESULTS.glob('*.json')))} results are stale")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
