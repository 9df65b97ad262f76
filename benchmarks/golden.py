"""Compiles about a dozen small designs, and finds the results in docs/benchmarks that were measured with an older
forestc.

    python benchmarks/golden.py             names the results that are stale; status 1 if there are any
    python benchmarks/golden.py --print     the digest of each design, as JSON

Each golden design shows the behaviour of some folders of forestc; its digest covers its bytes and figures. A result
lists the folders that it measures, and records the digests of their golden designs. It is stale if one of these digests
has changed. Models come from examples/models and rows from scikit-learn, so that only forestc changes a digest. Changes
of speed go unseen, and so does code that no golden design uses.
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
from forestc.backends.stream.options import StreamOptions
from forestc.forest.text import print_forest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import MODELS, split_breast_cancer, split_digits

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks"
SPLITS = {"breast_cancer.json": split_breast_cancer, "digits.skops": split_digits}
FIGURES = ("estimate", "trees", "conditions", "distinct_conditions", "comparator_bits")
DIGITS = 12  # keeps this number of hex digits of a digest


@dataclass(frozen=True)
class Golden:
    """A golden design. folders: it shows their behaviour. made: yields the bytes that are hashed, given an empty
    folder."""

    folders: tuple[str, ...]
    made: Callable[[Path], Iterable[bytes]]


def compiled(model: str, *files: str, figures: Sequence[str] = (), **options: Any) -> Callable[[Path], Iterator[bytes]]:
    """Returns a function that compiles a model and yields the files with the given suffixes, and figures of the
    compilation."""

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
    """Yields the bytes of all files with these suffixes, except test benches."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in suffixes and not path.stem.endswith("_tb"):
            yield path.read_bytes()


def loaded(folder: Path) -> Iterator[bytes]:
    """Yields both models as text after loading, without rows."""
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
    """Returns a function that compiles with a list of passes and yields the predictions for all rows. The test rows are
    held out."""

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
    """Returns a function that does the same as `compiled` for both models."""

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
    "forestc/backends/verilog",
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
        ("forestc/backends/vhdl", "forestc/backends/hls", "forestc/backends/amaranth"),
        compiled("breast_cancer.json", ".vhd", ".py", ".cpp", ".h", level=1, targets="vhdl,hls,amaranth"),
    ),
    "stream wrapper": Golden(
        ("forestc/backends/stream",),
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
    "input model": Golden(("forestc/inputs", "forestc/papers/networks"), inputs),
    "engine": Golden(("forestc/engine", "forestc/backends/engine", "hdl_templates"), an_engine),
}  # fmt: skip


@cache
def digest(name: str) -> str:
    """Compiles a golden design and returns its digest."""
    total = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        for part in GOLDEN[name].made(Path(folder)):
            total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:DIGITS]


def shown_by(measures: Iterable[str]) -> list[str]:
    """Returns the golden designs that show the behaviour of any of these folders or modules."""
    return [name for name, golden in GOLDEN.items() if any(_within(a, b) for a in measures for b in golden.folders)]


def _within(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def digests(measures: Iterable[str]) -> dict[str, str]:
    """Returns the digests that a result records if it measures these folders."""
    return {name: digest(name) for name in shown_by(measures)}


def stale() -> Iterator[tuple[str, str]]:
    """Yields each stale result with the reason."""
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        names, recorded = shown_by(result["measures"]), result.get("golden", {})
        changed = [name for name in names if recorded.get(name) != digest(name)]
        if changed:
            yield path.name, f"{', '.join(changed)} changed"


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
