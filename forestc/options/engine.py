"""Defines the options of `engine` and `image`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from forestc.errors import opt
from forestc.fields.options import argument, flag, option
from forestc.options.shared import (
    HELD_OUT,
    LABELS,
    RANGES,
    Progress,
    iterations_option,
    label_option,
    progress_keyword,
    rows_option,
    sampled_option,
    trust_option,
)


@dataclass(frozen=True)
class EngineOptions:
    """The options of `engine`. If `word_bits` or `banks` is 0, forestc chooses the number."""

    out: Any = field(metadata=flag("-o --out", "the folder to write", "DIR", recorded=False))
    _: KW_ONLY
    trees: int = option(100, "--trees", "trees of the largest model", "N", least=1)
    nodes: int = option(16384, "--nodes", "nodes of the largest model, leaves included", "N", least=1)
    features: int = option(32, "--features", "columns of a row", "N", least=1)
    classes: int = option(
        1,
        "--classes",
        "outputs of the largest model: number of classes; 1 for two classes with one score, and for regression",
        "N",
        least=1,
    )
    device: str | None = option(
        None, "--device", "device whose memory limits the engine: ecp5-85k, ice40-up5k, ..., or a board"
    )
    walkers: int | str = option(
        "auto",
        "--walkers",
        "walkers: trees that are evaluated at once; auto: as many as the device's memory allows",
        "N",
        kind=str,
    )
    word_bits: int = option(
        0, "--word-bits", "bits of a column's word; default: as many as fit into a node, up to 16", "N", least=0
    )
    score_bits: int = option(32, "--score-bits", "bits of a score", "N", least=8)
    scores: bool = option(False, "--scores", "return scores beside the label; needed for regression")
    banks: int = option(
        0,
        "--banks",
        "memories for images, 1 or 2; 2: load a model while another one answers; default: 2 if both fit, otherwise 1",
        "N",
        least=0,
    )
    load: Literal["stream", "axi-lite"] = option("stream", "--load", "how images are loaded: stream or axi-lite")
    user_bits: int = option(1, "--tuser", "bits of tuser", "N", least=1)
    name: str = option("engine", "--name", "name of the module")


@dataclass(frozen=True)
class ImageOptions:
    """The options of `image`. out: None to write no file."""

    source: Any = field(
        metadata=argument(
            "MODEL|DIR",
            "a model file or a compiled folder; two or more get common words",
            repeated=True,
            takes="str, path, fitted model or Design; or a list of them",
        )
    )
    rows: Any = rows_option(
        "rows for the passes, if MODEL is not a folder; CSV, Parquet, Arrow or NumPy; for several models once, or once "
        "for each",
        repeated=True,
    )
    out: Any = option(
        None, "-o --out", "the image to write; of several models the folder of their images", "FILE", needed=True
    )
    _: KW_ONLY
    engine: Any = option(None, "--engine", "a folder that forestc engine wrote", "DIR", needed=True)
    ranges: Any = option(
        None, "--ranges", f"instead of {opt.rows}: ranges as CSV or JSON, as for forestc compile", "FILE", takes=RANGES
    )
    held_out: Any = option(
        None,
        "--held-out",
        "file of held-out rows, on which passes are scored; or a share of the given rows to set aside: 0.2 "
        "is every fifth row",
        "FILE",
        kind=str,
        takes=HELD_OUT,
    )
    label: Any = label_option(takes=LABELS)
    rows_are_sampled: bool = sampled_option()
    level: int | str | None = option(
        None,
        "-O --level",
        "how much of the model may change, 0 (exact but for near ties) to 3 (smallest); default: 1",
        "LEVEL",
        kind=str,
    )
    tolerance: float | str | None = option(
        None, "--tolerance", "with -O2 and -O3: accuracy that may be lost on held-out rows", "T", kind=str
    )
    passes: str | Sequence[Any] | None = option(None, "--passes -p", "passes to run instead of a level")
    trust_pickle: bool = trust_option()
    iterations: int | str | None = iterations_option()
    progress: Progress = progress_keyword()
