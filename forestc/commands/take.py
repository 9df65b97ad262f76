"""Implements `explore --take`: copies the design of one trial to a folder of its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from forestc.commands.explore import COMMANDS, request_of, stored_arguments
from forestc.errors import OptionError, opt
from forestc.exploration.candidate import Bench
from forestc.exploration.material import material_of
from forestc.exploration.study import Study, Trial, open_study
from forestc.manifest.design import MANIFEST, check_writable, open_design
from forestc.options.explore import ExploreOptions
from forestc.options.shared import Progress, quiet
from forestc.system.writing import replacing, writing


def take(source: str | Path, number: int, out: str | Path, progress: Progress = quiet) -> dict[str, Any]:
    """Copies the design of a trial, compiled if missing, and returns its figures.
    source: the study's folder.
    out: the new folder.

    Raises ForestcError for a trial without a design.
    """
    study, out = open_study(source), Path(out)
    trial = next((trial for trial in study.trials if trial.number == number), None)
    if trial is None:
        numbers = f"its trials are 0 to {study.trials[-1].number}" if study.trials else "it has no trials"
        raise OptionError(f"the study has no trial {number}", where=str(source), do=numbers)
    if trial.state != "complete":
        why = f"failed ({trial.reason})" if trial.state == "failed" else "is unfinished"
        raise OptionError(f"trial {number} {why}", where=str(source), do="take another")
    check_writable(out)
    folder = study.design(trial)
    if not (folder / MANIFEST).is_file():
        progress(f"compiling trial {number}")
        folder = _compiled(study, trial)
    design = open_design(folder)
    progress("copying")
    with writing(out, "choose a folder you may write to"):
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as (new,):
            shutil.copytree(folder, new)
    command = str((design.manifest.get("made") or {}).get("command") or trial.command)
    return {"study": str(source), "trial": number, "out": str(out), "targets": list(design.targets), "command": command}


def _compiled(study: Study, trial: Trial) -> Path:
    request = request_of(ExploreOptions(**{**stored_arguments(study.folder), "resume": True}))
    material = material_of(request, study.folder)
    if study.asked.get("content") not in (None, material.content):
        raise OptionError(
            "the study was scored on other rows", where=opt.rows, do="give it those again, at the same path"
        )
    return Bench(material, COMMANDS).design(trial)
