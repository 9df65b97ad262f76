"""Implements `report`: writes the page of a design, or of a study and the designs on its front."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from forestc.compilation.synthesis import placement
from forestc.errors import ForestcError, MissingExtraError, OptionError, opt
from forestc.exploration.choice import unpruned
from forestc.exploration.study import STUDY, Study, Trial, open_study
from forestc.fields.options import takes
from forestc.manifest.design import MANIFEST, Design, open_design
from forestc.options.commands import ReportOptions
from forestc.options.shared import Progress
from forestc.report.page.assembly import check_writable, html, write
from forestc.report.page.charts import altair, converter
from forestc.report.page.design_page import Given, design_page, relative_link
from forestc.report.page.measured import measured
from forestc.report.page.peers import read_peers
from forestc.report.page.study_page import Links, study_page
from forestc.report.tables import Shown, titled, visible
from forestc.system.writing import writing

SUFFIXES = (".html", ".htm")  # lists the suffixes of pages; a file with another suffix gets .html


@takes(ReportOptions)
def report(options: ReportOptions) -> Shown:
    """Writes the page of a folder, and returns the figures of `forestc report --json`. A study also gets a folder of
    pages for the designs on its front. Raises ForestcError."""
    source, out = Path(options.source), Path(options.out)
    with writing(out):
        out = out if out.suffix.lower() in SUFFIXES or out.is_dir() else out.with_name(f"{out.name}.html")
    if not source.is_dir():
        raise ForestcError("is not a folder", where=str(source), do="give a folder of forestc compile or explore")
    study, design = ((source / name).is_file() for name in (STUDY, MANIFEST))
    if not study and not design:
        what = f"holds neither {MANIFEST} nor {STUDY}"
        raise ForestcError(what, where=str(source), do="give a folder that forestc compile or forestc explore wrote")
    _refuse(options, study)
    check_writable(out, pages_folder(out) if study else None)
    _ = altair(), converter()  # raises if they are not installed
    if study:
        return _of_study(open_study(source), out, options)
    return _of_design(open_design(source), out, options)


def _refuse(options: ReportOptions, study: bool) -> None:
    if not study and options.peers is not None:
        raise OptionError("peers are for studies, and this is a design", where=opt.peers, do=f"remove {opt.peers}")
    for name, value in (("rows", options.rows), ("label", options.label), ("place", options.place)):
        if study and value not in (None, False):
            raise OptionError("this is for designs, and a study is given", where=getattr(opt, name), do="leave it out")
    if options.label is not None and options.rows is None:
        raise OptionError("labels need rows", where=opt.label, do=f"add {opt.rows:FILE}")
    for name, value in (("native", options.native), ("device", options.device)):
        if value and not options.place:
            raise OptionError(f"this needs {opt.place}", where=getattr(opt, name), do=f"add {opt.place}")


def _of_design(design: Design, out: Path, options: ReportOptions) -> Shown:
    on_rows, progress = None, options.progress
    if options.rows is not None:
        progress("rows")
        name = Path(options.rows).name if isinstance(options.rows, str | Path) else ""
        on_rows = measured(design, options.rows, options.label, name)
    placed = placement(design, options.device, native=options.native, progress=progress) if options.place else None
    if placed is not None:
        design.record("place", placed.figures())
    text = html(design_page(design, Given(on_rows, placed, out.absolute().parent), progress))
    progress("writing")
    write(out, text)
    return _figures(out, "design", text)


def _of_study(study: Study, out: Path, options: ReportOptions) -> Shown:
    progress = options.progress
    peers = () if options.peers is None else read_peers(options.peers, [goal.figure for goal in study.goals])
    beside = pages_folder(out)
    pages, notes = _front_pages(study, beside, out, progress)
    folders = {trial.number: relative_link(study.design(trial), out.parent) for trial in _shown(study)}
    links = Links(
        {number: f"{quote(beside.name)}/{_name(number)}" for number in pages},
        {number: f"{address}/" for number, address in folders.items() if address},
    )
    text = html(study_page(study, peers, links, progress))
    progress("writing")
    write(out, text, beside, {_name(number): page for number, page in pages.items()})
    names = [str(beside / _name(number)) for number in pages]
    return _figures(out, "study", text, names, notes)


def _figures(out: Path, kind: str, text: str, pages: Sequence[str] = (), notes: Sequence[str] = ()) -> Shown:
    figures = {"out": str(out), "kind": kind, "bytes": len(text.encode()), "pages": [*pages], "notes": [*notes]}
    return Shown(figures, titled(f"page of a {kind}"))


def pages_folder(out: Path) -> Path:
    """Returns the folder for the pages of a study's designs, beside the study's page."""
    return out.with_name(f"{out.stem}_designs")


def _name(number: int) -> str:
    return f"{number:04d}.html"


def _shown(study: Study) -> list[Trial]:
    """Returns the compiled trials of the front, and the unpruned model's."""
    first = unpruned(study.trials)
    beside = [first] if study.front and first is not None and first not in study.front else []
    return [trial for trial in (*study.front, *beside) if (study.design(trial) / MANIFEST).is_file()]


def _front_pages(study: Study, beside: Path, out: Path, progress: Progress) -> tuple[dict[int, str], list[str]]:
    pages: dict[int, str] = {}
    notes = []
    shown = _shown(study)
    for number, trial in enumerate(shown, 1):
        folder = study.design(trial)
        progress(f"design {number} of {len(shown)}")
        try:
            page = design_page(open_design(folder), Given(None, None, beside.absolute()))
        except MissingExtraError:
            raise
        except ForestcError as error:
            notes.append(f"trial {trial.number} has no page: {error}")
            continue
        name = visible(study.folder.resolve().name)
        back = (f"../{quote(os.fsencode(out.name))}", f"The study in {name}, trial {trial.number}")
        pages[trial.number] = html(replace(page, back=back))
    return pages, notes
