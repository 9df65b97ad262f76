"""Makes the page of a compiled design: its model, passes, accuracy, checks, hardware, trees and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from forestc.backends.base import Gives
from forestc.backends.table import gives
from forestc.checks.agreement import quality
from forestc.checks.result import VERDICTS
from forestc.compilation.synthesis import Placement
from forestc.costs.devices import DEVICES, FAMILIES
from forestc.costs.estimate import estimates
from forestc.forest.ir import Tree
from forestc.forest.node_text import node_figures
from forestc.forest.summary import counted, shown
from forestc.manifest.design import Design
from forestc.passes.extract_rules.rules_text import is_rules, rules_text
from forestc.report.page import design_charts
from forestc.report.page.blocks import (
    Block,
    Cell,
    Code,
    Drawing,
    KeyFigures,
    Page,
    Paragraph,
    Section,
    percent,
    table,
    texts,
)
from forestc.report.page.features import feature_table
from forestc.report.page.form import form_blocks
from forestc.report.page.hardware import hardware_blocks, placed_blocks
from forestc.report.page.measured import Measured
from forestc.report.page.results import firmware_results, result_blocks, result_items, synthesized
from forestc.report.page.stream import stream_blocks
from forestc.report.page.svg import shortened, tree_svg
from forestc.report.tables import (
    estimate_tables,
    firmware_tables,
    level_tables,
    pass_tables,
    quality_rows,
    visible,
)
from forestc.rows.accuracy import GENERATED, MEASURED_ON

LEVELS = 4  # limits the levels of a tree that are drawn
MOST_CLASSES = design_charts.MOST_CLASSES


@dataclass(frozen=True)
class Given:
    """Additions to a design's page."""

    measured: Measured | None = None  # figures on the user's rows
    placed: Placement | None = None  # the placed cells
    beside: Path | None = None  # folder of the page, for links to files


def design_page(design: Design, additions: Given = Given(), progress: Callable[[str], None] = lambda _: None) -> Page:
    """Returns the page of a design. Raises ForestcError; without Altair, MissingExtraError."""
    manifest, made = design.manifest, design.manifest.get("made", {})
    name = visible(str(manifest["name"]))
    if design.has_hardware:
        progress("netlist")
        _ = design.netlist
    progress("charts")
    sections = (
        Section("overview", "Overview", (summary(design, additions), *result_blocks(design))),
        Section("model", "The model", tuple(_about(design, made))),
        Section("passes", "What the passes did", tuple(_passes(made))),
        Section("accuracy", "Accuracy", tuple(_accuracy(design, made, additions.measured))),
        Section("checks", "Checks and proof", tuple(_checks(design))),
        Section("hardware", "Where the logic goes", tuple(_hardware(design))),
        Section("stream", "The stream wrapper", tuple(stream_blocks(design))),
        Section("placed", "On the device", tuple(placed_blocks(design, additions.placed))),
        Section("features", "Features", (feature_table(design.forest, additions.measured),)),
        Section("try", "Try a row", tuple(form_blocks(design.forest))),
        Section("trees", "Trees", tuple(_trees(design))),
        Section("firmware", "Firmware", tuple(_firmware(design))),
        Section("files", "Files", tuple(_files(design, made, additions.beside))),
    )
    return Page("Compiled design", name, _lead(design), sections)


def _lead(design: Design) -> str:
    figures, source = design.model.figures(), design.manifest["source"]
    read, left = figures["features_used"], len(design.forest.features_used())
    reads = f"reads {read:,} of {counted(figures['features'], 'feature')}"
    reads += f", {left:,} after the passes" if left != read else ""
    library = " ".join(visible(str(source[key])) for key in ("library", "version") if source[key])
    model = design.model
    answers = counted(len(model.classes), "class") if model.decides else counted(model.n_scores, "value")
    return (
        f"{counted(figures['trees'], 'tree')}{f' of {library}' if library else ''} for {answers}; it "
        f"{reads}; compiled to {', '.join(design.targets)}."
    )


def summary(design: Design, additions: Given = Given()) -> KeyFigures:
    """Returns the most important figures of a design."""
    items = [*_accuracy_items(design, additions.measured), *result_items(design)]
    check = design.last_check()
    if check is None:
        items.append(("last check", "none", "run forestc check"))
    else:
        state = "ok" if check["result"] == "ok" else "failed"
        state = state if check["of_this_content"] else "out of date"
        items.append(("last check", state, "proved for every input" if check["proof"] == "proved" else ""))
    if (
        not synthesized(design)
        and gives(design.targets, Gives.VERILOG, Gives.VHDL)
        and (devices := estimates(design.netlist, design.manifest["options"].get("device")))
    ):
        first = devices[0]
        low, high = first["lut_range"]
        items.append((f"LUTs on {first['device']}, estimated", f"{first['lut']:,}", f"{low:,} to {high:,}"))
        if timed := next((device for device in devices if device["fmax_mhz"] is not None), None):
            low, high = timed["fmax_range"]
            clock = f"{timed['fmax_mhz']:.0f} MHz", f"{low:.0f} to {high:.0f} MHz"
            items.append((f"Fmax on {timed['device']}, estimated", *clock))
    items.append(
        ("comparators", f"{len(design.forest.conditions.comparators):,}", counted(len(design.forest.trees), "tree"))
    )
    if design.has_hardware:
        ports = ", ".join(["a row every cycle", *design.lowering.clocking.words])
        items.append(("latency", counted(design.manifest["latency_cycles"], "cycle"), ports))
    return KeyFigures(tuple(items))


def _accuracy_items(design: Design, on: Measured | None) -> list[tuple[str, str, str]]:
    accuracy = design.manifest.get("made", {}).get("accuracy")
    if on is not None:
        measure, figures = on.agreed.measure, vars(on.agreed)
        where = f"on {on.agreed.rows:,} rows given"
        remark = f"\N{PLUS-MINUS SIGN} {100 * on.standard_error:.2f} %, {where}" if on.standard_error else where
    elif (checked := _checked(design)) is not None:
        figures = dict(checked)
        measure = "accuracy" if design.forest.decides else "R squared"
        remark = where = f"{figures['rows']:,} rows of the last check"
    elif accuracy is not None:
        figures = accuracy["held_out"] or accuracy["given"]
        measure = accuracy["measure"]
        remark = where = f"{figures['rows']:,} rows, {'held out' if accuracy['held_out'] else accuracy['measured_on']}"
    else:
        return []
    _, *texts = quality(measure, figures, compiled="").items()
    return [(name, text, remark if name == measure else where) for name, text in texts if text != "-"]


def _checked(design: Design) -> Mapping[str, Any] | None:
    """Returns the figures of an Agreement from a check of this content on rows with labels; None without one."""
    record, last = design.check_record(), design.last_check()
    agreed: Mapping[str, Any] | None = record["agreement"] if record and last and last["of_this_content"] else None
    return agreed if agreed and agreed["compiled"] is not None else None


def _about(design: Design, made: Mapping[str, Any]) -> list[Block]:
    before, after = design.model.figures(), design.forest.figures()
    keys = ("trees", "nodes", "leaves", "depth", "features_used", "distinct_conditions")
    rows = [(key.replace("_", " "), before[key], after[key]) for key in keys]
    same = {"aggregate": "trees are combined by", "link": "link", "decision": "decision", "classes": "classes",
            "missing": "takes missing values", "categorical": "takes categories"}  # fmt: skip
    answers = [(same[key], shown(before[key]) or "none") for key in same]
    blocks: list[Block] = [
        table("The model, and what is left of it", ("what", "model", "compiled"), rows),
        table("What the model answers", ("what", "figure"), answers),
    ]
    if made.get("command"):
        blocks += [Code(visible(made["command"]), "The command that makes the same folder")]
    return blocks


def _passes(made: Mapping[str, Any]) -> list[Block]:
    steps = made["steps"]
    if not steps:
        return []
    level = made.get("level")
    lead = f"Level {level['level']} keeps {level['keeps']}." if level else "The passes were named by the user."
    promises = [(step["pass"], step["guarantee"], step["meaning"], step["inputs_checked"]) for step in steps]
    guarantees = table(
        "What each pass promises, as it was checked", ("pass", "guarantee", "meaning", "inputs checked"), promises
    )
    return [
        Paragraph(lead),
        design_charts.passes_chart(steps),
        *pass_tables(steps, texts),
        guarantees,
        *level_tables(made.get("level"), texts),
    ]


def _accuracy(design: Design, made: Mapping[str, Any], on: Measured | None) -> list[Block]:
    blocks: list[Block] = []
    measure = "accuracy" if design.forest.decides else "R squared"
    if on is not None:
        agreed, error = on.agreed, on.standard_error
        plus = "" if error is None else f" \N{PLUS-MINUS SIGN} {100 * error:.2f} %"
        rows = [("rows", f"{agreed.rows:,}"), *quality_rows(measure, [vars(agreed)], " of the model", " of the design")]
        rows[2] = (rows[2][0], rows[2][1] + plus)
        blocks.append(texts(f"On {visible(on.name) or 'the rows given'}", ("what", "figure"), rows))
        if on.confusion is not None:
            blocks += _confusion(on, [str(label) for label in design.forest.classes])
    if (accuracy := made.get("accuracy")) is not None:
        both = [accuracy["given"], *([accuracy["held_out"]] if accuracy["held_out"] else [])]
        heads = (
            "what",
            "generated rows" if accuracy["measured_on"] == GENERATED else "rows of compile",
            "rows held out",
        )
        lines = [
            ("rows", *(f"{figures['rows']:,}" for figures in both)),
            *quality_rows(accuracy["measure"], both, " of the model", " of the design"),
        ]
        title = f"When it was compiled, on {MEASURED_ON[accuracy['measured_on']]}"
        blocks.append(texts(title, heads[: 1 + len(both)], lines))
    if on is None:
        blocks.append(
            Paragraph("A confusion matrix and histograms are shown if rows are given: --rows FILE --label COLUMN.")
        )
    return blocks


def _confusion(on: Measured, classes: Sequence[str]) -> list[Block]:
    counts = on.confusion
    assert counts is not None
    true, answered, right = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    rows = [
        (classes[k], int(true[k]), percent(right[k], true[k]), percent(right[k], answered[k]))
        for k in range(len(classes))
    ]
    foot = f"{on.other:,} rows have a label that is no class of the model." if on.other else ""
    heads = ("class", "rows", "found (recall)", "right where answered (precision)")
    by_class = table("By class", heads, rows, wide=len(classes) > MOST_CLASSES, foot=foot)
    small = len(classes) <= MOST_CLASSES and int(true.sum()) > 0
    return [*([design_charts.confusion_chart(counts, classes)] if small else []), by_class]


def _checks(design: Design) -> list[Block]:
    record, last = design.check_record(), design.last_check()
    if record is None or last is None:
        ask = "The design was not checked yet. This compares all its files with its forest, and proves it"
        return [Code("forestc check DIR --rows FILE --prove", ask)]
    good = record["result"] == "ok"
    state = (
        "The last check found no difference."
        if good
        else f"The last check failed: {visible(str(record.get('problem')))}."
    )
    if not last["of_this_content"]:
        state += " The design or its files have changed since then: check it again."
    lead = Paragraph(f"{state} forestc {visible(record['forestc'])}, {visible(record['date'])}.")
    engines = [
        (
            name,
            _engine(engine["differences"]),
            engine.get("vectors"),
            engine.get("tool") or None,
            engine.get("why") or engine.get("first") or None,
        )
        for name, engine in record["engines"].items()
        if isinstance(engine, Mapping)
    ]
    heads = ("engine", "differences", "vectors", "tool", "remark")
    blocks: list[Block] = [lead, table("What was run against the quantized forest, bit for bit", heads, engines)]
    proof = record.get("proof")
    if proof is not None:
        parts = [
            (str(part["name"]), _proved(part), part.get("why") or None)
            for part in proof.get("parts", [])
            if {"name", "asked", "proved"} <= part.keys()
        ]
        verdict = VERDICTS.get(proof["verdict"], str(proof["verdict"]))
        blocks.append(
            table(f"Proof that the design equals the quantized forest: {verdict}", ("part", "proved", "remark"), parts)
        )
    return blocks


def _engine(differences: int | None) -> Cell:
    if differences is None:
        return Cell("not run")
    return Cell(f"{differences:,}", float(differences), tone="bad" if differences else "good")


def _proved(part: Mapping[str, Any]) -> Cell:
    all_proved = part["proved"] == part["asked"]
    return Cell(f"{part['proved']:,} of {part['asked']:,}", float(part["proved"]), tone="good" if all_proved else "bad")


def _hardware(design: Design) -> list[Block]:
    if not design.has_hardware:
        return []
    device = design.manifest["options"].get("device")
    family = DEVICES[device].family if device in DEVICES else FAMILIES["lut6"]
    by_tool = synthesized(design)
    others = [figures for figures in estimates(design.netlist, device) if figures["device"] not in by_tool]
    return [*hardware_blocks(design, family), *estimate_tables(others, texts)]


def _trees(design: Design) -> list[Block]:
    forest = design.forest
    if not forest.trees or not any(tree.size > 1 for tree in forest.trees):
        return []
    deepest = max(range(len(forest.trees)), key=lambda index: (forest.trees[index].depth, forest.trees[index].size))
    steps = [_comparisons(tree) for tree in forest.trees]
    titles = {deepest: f"Tree {deepest}, the deepest: {forest.trees[deepest].depth} comparisons"}
    if max(steps) > 0:
        busiest = int(np.argmax(steps))
        what = "the deepest and the most used" if busiest == deepest else "the most used"
        titles[busiest] = f"Tree {busiest}, {what}: {steps[busiest]:.2f} comparisons of a row"
    blocks: list[Block] = []
    if is_rules(forest) and (rules := rules_text(forest)):
        blocks += [Paragraph("The forest is a set of rules:"), Code("\n".join(map(visible, rules.splitlines())))]
    for index, title in titles.items():
        figures = node_figures(forest, index, 0, LEVELS)
        size = forest.trees[index].size
        words = f"A tree of {size:,} nodes, of which {min(LEVELS, forest.trees[index].depth)} levels are drawn. "
        words += f"At its root: {shortened(str(figures.get('condition', 'a leaf')), 80)}."
        foot = "The upper branch is taken where the condition holds. "
        if figures["cover"] is not None:
            foot += "Branches are as thick as the share of training rows that take them."
        key = (("k1", "condition"), ("k2", "leaf"), ("k0", "not drawn further"))
        blocks.append(Drawing(title, words, tree_svg(figures), foot, key))
    return blocks


def _comparisons(tree: Tree) -> float:
    """Returns the mean number of comparisons for a training row; 0 without covers."""
    return 0.0 if tree.cover is None or not tree.cover[0] else float(tree.cover[tree.inner].sum() / tree.cover[0])


def _firmware(design: Design) -> list[Block]:
    if not gives(design.targets, Gives.HEADER):
        return []
    layouts, measured = design.manifest["made"].get("firmware"), firmware_results(design)
    if not layouts:
        layout = design.c_options.c_layout
        lead = f"The C header has the layout {layout}. Compile with --cpu to see what each layout takes."
        return [*measured, Paragraph(lead)]
    return [*measured, design_charts.firmware_chart(layouts), *firmware_tables(layouts, texts)]


def _files(design: Design, made: Mapping[str, Any], beside: Path | None) -> list[Block]:
    roles = {path: role for role, path in design.manifest["files"].items()}
    digests, hashes = design.digests(), design.manifest["sha256"]["files"]
    names = sorted({*hashes, *roles, "manifest.json"})
    rows = [
        (
            Cell(visible(path), link="" if beside is None else relative_link(design.folder / path, beside)),
            roles.get(path, "").replace("_", " "),
            _size(design.folder / path),
            ""
            if path not in hashes
            else Cell("as written", tone="good")
            if digests.get(path) == hashes[path]
            else Cell("changed", tone="bad"),
        )
        for path in names
    ]
    blocks: list[Block] = [table("Files of the folder", ("file", "role", "bytes", "state"), rows)]
    if made:
        versions = [(visible(str(k)), visible(str(v))) for k, v in made["versions"].items()]
        inputs = [
            (
                what,
                shown(source.get("file") or source.get("class") or source.get("shape")),
                str(source.get("sha256", "")),
            )
            for what, source in (("model", made["model"]), ("rows", made["rows"]), ("rows held out", made["held_out"]))
            if source
        ]
        blocks += [
            table("What it was made of", ("input", "what", "SHA-256"), inputs),
            table("Made with", ("library", "version"), versions),
        ]
    return blocks


def _size(path: Path) -> int | Cell:
    try:
        return path.stat().st_size
    except OSError:
        return Cell("missing", tone="bad")


def relative_link(path: Path, beside: Path) -> str:
    """Returns the address of a file for a page in the folder `beside`; empty if they are on different drives."""
    try:
        related = os.path.relpath(path.absolute(), beside.absolute())
    except ValueError:
        return ""
    return "./" + quote(Path(related).as_posix())
