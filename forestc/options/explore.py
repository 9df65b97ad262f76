"""Defines the options of `explore`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from forestc.errors import opt
from forestc.fields.options import flag, option
from forestc.options.shared import (
    Progress,
    iterations_option,
    label_option,
    native_option,
    progress_keyword,
    rows_option,
    sampled_option,
    trust_option,
)

_PAIR = "str, path or pair (rows, labels)"  # of rows for test and validation in Python


@dataclass(frozen=True)
class ExploreOptions:
    model: Any = option(
        None,
        "",
        "a model file, for which explore searches the options of the passes",
        "[MODEL]",
        takes="str, path or fitted model",
    )
    train: str | Sequence[str] | Callable[[Any], Any] | None = field(
        default=None,
        kw_only=True,
        metadata=flag(
            "--train", "instead of MODEL: a list of trainers of new models, such as xgboost,lightgbm", "NAMES"
        ),
    )
    rows: Any = rows_option()
    out: Any = option("study", "-o --out", "the folder of the study", "DIR")
    _: KW_ONLY
    label: Any = label_option("column of the true labels", "str or array of shape (rows,)")
    rows_are_sampled: bool = sampled_option()
    test: Any = option(
        None, "--test", "test rows, which are read once, at the end, to measure the front", "FILE", takes=_PAIR
    )
    validation: Any = option(
        None, "--validation", f"rows that score designs; default: a part of {opt.rows}", "FILE", takes=_PAIR
    )
    regression: bool = option(False, "--regression", f"with {opt.train}: the labels are values, not classes")
    device: str | None = option(
        None, "--device", "device of the designs: lut6, xcup, ice40-hx8k, ecp5-25k, ecp5-85k, ..."
    )
    cpu: str | None = option(None, "--cpu", "processor of C, or a board, such as cortex-m0plus")
    goals: Sequence[Any] | None = option(
        None,
        "--goal",
        "figures to optimize, a list of: accuracy, lut, ff, latency, fmax, flash, ram, instructions; default: size"
        " and accuracy",
        "FIGURES",
    )
    limits: Sequence[Any] = option(
        (),
        "--limit",
        "limit that every design of the front keeps, as in 'fmax>=150'; may be given several times",
        "LIMIT",
        repeated=True,
    )
    tolerance: float | str | None = option(
        None,
        "--tolerance",
        "accuracy that the recommended design may lose against the model, such as 0.01 or 1%, including a "
        "standard error; default: about one standard error",
        "SHARE",
        kind=str,
    )
    trials: int = option(200, "--trials", "number of designs to try", "N", least=1)
    seconds: float | None = option(None, "--seconds", "time limit of the whole command; default: none", "SECONDS")
    seed: int = option(0, "--seed", "seed of all random numbers", least=0)
    jobs: int | None = option(None, "--jobs", "worker processes; default: one for each core", "N", least=1)
    scheduler: str | None = option(None, "--scheduler", "address of a Dask cluster that runs the trials", "ADDRESS")
    storage: str | None = option(
        None, "--storage", "database of Optuna, as sqlite:///study.db; default: a file in DIR", "ADDRESS"
    )
    rungs: str | None = option(
        None,
        "--rungs",
        "last step of measuring designs: estimate, synthesis, placed, measured (firmware); default: the "
        "last possible one",
    )
    trial_seconds: float = option(
        600.0, "--trial-seconds", f"time limit of one step of a trial, in seconds; not with {opt.scheduler}", "SECONDS"
    )
    trial_mb: int | None = option(
        None, "--trial-mb", f"memory limit of a trial, in MB; not with {opt.scheduler}", "MB", least=1
    )
    native: bool = native_option()
    prove: bool = option(True, "--no-prove", "check the front without proofs")
    trust_pickle: bool = trust_option()
    iterations: int | str | None = iterations_option()
    classes: Sequence[str] = option(
        (), "--classes", "names of the classes in the label column, in the order of MODEL: a,b", "NAMES", listed=True
    )
    missing: Literal["auto", "always"] = option(
        "auto",
        "--missing",
        "features that accept missing values; auto: features with missing values in the rows; always: "
        "wherever the model does",
    )
    take: int | None = option(
        None,
        "--take",
        "write the design of trial N instead of searching; MODEL is then the study, and -o the folder to write",
        "N",
        least=0,
    )
    resume: bool = option(False, "--resume", "continue the study in DIR, with the options that it began with")
    progress: Progress = progress_keyword()
