"""Makes what `forestc compile` prints: a table of answers and a closing line, and on request all other tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rich.table import Table
from rich.text import Text

from forestc.checks.agreement import quality
from forestc.forest.summary import counted
from forestc.report.tables import (
    estimate_tables,
    firmware_tables,
    level_tables,
    noted,
    pass_tables,
    synth_tables,
    table,
    units_of,
)
from forestc.rows.accuracy import GENERATED

HEADS = ("what", "model", "compiled", "known by")
Answer: TypeAlias = tuple[str, str, str, str]  # a cell for each of HEADS


def compile_tables(figures: Mapping[str, Any], *, verbose: bool = False) -> list[Table | Text]:
    """Returns the answers, what the user should know, and the closing line. verbose: True to add all other tables,
    all notes and the seconds of each stage."""
    first = table(f"{figures['name']}: {', '.join(figures['targets'])}", HEADS, answers(figures), "left")
    if not verbose:
        return [first, *noted(figures["warnings"]), Text(closing(figures))]
    seconds = [(stage, f"{took:.1f}") for stage, took in figures["seconds"].items()]
    seconds.append(("all", f"{sum(figures['seconds'].values()):.1f}"))
    return [
        first,
        *level_tables(figures["level"], table),
        *pass_tables(figures["passes"], table, hardware=figures["latency_cycles"] is not None),
        *estimate_tables(figures.get("estimate", []), table),
        *firmware_tables(figures.get("firmware"), table),
        *(synth_tables(figures["name"], figures["synthesis"], table) if "synthesis" in figures else []),
        table("time of each stage", ("stage", "seconds"), seconds),
        *noted(figures["notes"]),
        Text(closing(figures)),
    ]


def answers(figures: Mapping[str, Any]) -> list[Answer]:
    """Returns the size of the design on devices, and its accuracy beside the model's."""
    return [*_sizes(figures), *_accuracy(figures)]


def _sizes(figures: Mapping[str, Any]) -> Iterator[Answer]:
    size, synthesis, firmware = (figures.get(key) for key in ("size", "synthesis", "firmware"))

    def before(figure: str, on: str) -> str:
        return f"about {size['before']:,.0f} at -O1" if size and (size["figure"], size["on"]) == (figure, on) else ""

    if synthesis and "area" in synthesis:
        by = f"synthesis, area {synthesis['area']:,.1f}"
        yield f"cells, {synthesis['device']}", "", f"{synthesis['cells']:,}", by
    elif synthesis:
        device, fmax = synthesis["device"], synthesis["fmax_mhz"]
        by = "synthesis" if fmax is None else f"synthesis; routed at {fmax:.0f} MHz"
        yield f"LUTs, {device}", before("lut", device), f"{synthesis['lut']:,}", by
    else:
        estimates = figures.get("estimate", [])
        searched = [own for own in estimates if size and (size["figure"], size["on"]) == ("lut", own["device"])]
        for own in searched or estimates:
            device, (low, high), fmax = own["device"], own["lut_range"], own["fmax_mhz"]
            by = f"estimate, {low:,} to {high:,}" + (f"; {fmax:.0f} MHz" if fmax is not None else "")
            others = [f"{other['device']}: {other['lut']:,}" for other in estimates if searched and other is not own]
            yield f"LUTs, {device}", before("lut", device), f"{own['lut']:,}", "; ".join([by, *others])
    if firmware:
        own, cpu = firmware["layouts"][firmware["layout"]], firmware["cpu"]
        least, flash = min((each["flash"], name) for name, each in firmware["layouts"].items())[::-1]
        smaller = "" if flash == own["flash"] else f" ({least}: {flash:,})"
        by = f"measured, {firmware['entry']} alone, layout {firmware['layout']}{smaller}"
        alike = len(firmware["layouts"]) > 1 and not smaller and before("flash", cpu)  # -O1's is of the smallest layout
        yield f"bytes of flash, {cpu}", alike or "", f"{own['flash']:,}", f"{by}; -O1 estimated" if alike else by
        yield "bytes of RAM and stack", "", f"{own['ram']:,}", ""
        most, inputs = (own["most"], "the inputs run") if own["bound"] is None else (own["bound"], "any input")
        yield f"most {'cycles' if cpu == 'avr' else 'instructions'}", "", f"{most:,}", inputs
    elif flash := figures["flash"]:
        by = f"rough estimate, layout {flash['layout']}"
        yield f"bytes of flash, {flash['on']}", before("flash", flash["on"]), f"{flash['bytes']:,.0f}", by
    if engine := figures.get("engine"):
        yield "walkers of the engine", "", f"{engine['walkers']:,}", f"image of {engine['bytes']:,} bytes"
        yield "clocks for a row", "", f"{engine['clocks']:,}", ""
    if figures["latency_cycles"]:
        yield "latency", "", counted(figures["latency_cycles"], "cycle"), ", ".join(figures["clocking"])
    first = next((f"{step['distinct_conditions'][0]:,}" for step in figures["passes"]), "")
    if figures["missing_dropped"]:
        where = "column" if figures["missing_dropped"] == 1 else "columns"
        not_taken = f"not in {figures['missing_dropped']:,} {where}"
        yield "missing values", "taken", not_taken, "refused; else --missing always"
    yield "comparators", first, f"{figures['distinct_conditions']:,}", f"{figures['comparator_bits']:,} bits compared"


def _accuracy(figures: Mapping[str, Any]) -> Iterator[Answer]:
    measured, level = figures["measured"], figures["level"] or {}
    evidence, held_out = level.get("evidence"), measured["held_out"]
    on = held_out or measured["given"]
    kind = "held-out" if held_out else "generated" if measured["measured_on"] == GENERATED else "given"
    used = " that chose it" if held_out and evidence else " that passes fitted" if kind == "given" else ""
    where = f"{on['rows']:,} {kind} rows"
    (name, model), (_, compiled), *others = quality(measured["measure"], on).items()
    name = name.removesuffix(", model")
    if evidence and not held_out:
        chosen = next(trial for trial in level["table"] if trial["chosen"])
        scores = {**on, "model": chosen["accuracy"] + chosen["lost"], "compiled": chosen["accuracy"]}
        (_, model), (_, compiled), *_ = quality(measured["measure"], scores).items()
        yield name, model, compiled, f"{chosen['rows']:,} answers of cross-validation"
    elif compiled != "-":
        yield name, model, compiled, where + used
    if evidence:
        unit, shown = units_of(evidence["measure"])
        low, high = map(shown, evidence["interval"])
        word = evidence["word"] or f"above {shown(level['tolerance'])}"
        by = f"{word}, with what choosing adds; 95 %: {low} to {high}"
        yield f"{name} lost{unit}", "", shown(evidence["lost"]), by
    for name, text in others:
        yield name.removesuffix(" from the model"), "", text, where


def closing(figures: Mapping[str, Any]) -> str:
    """Returns a sentence each on the promises kept, the files written, and the curve, if there is one."""
    level, size, curve, out = (figures.get(key) for key in ("level", "size", "curve", "out"))
    kept = f"kept: {', '.join(dict.fromkeys(step['guarantee'] for step in figures['passes']))}"
    if level and level.get("evidence", {}).get("word", "kept"):  # A level's word is empty if too much is lost.
        keeps = level["keeps"].replace("accuracy", figures["measured"]["measure"])
        kept = f"-{level['level']} kept {keeps}"
        if not figures["measured"]["held_out"]:
            kept = kept.replace("held-out rows", "rows held out in cross-validation")
    if not figures["measured"]["held_out"] and "exact-on-data" in {
        step["guarantee"][:13] for step in figures["passes"]
    }:
        kept += ". On other rows: forestc check"
    main = [path for role, path in figures["files"].items() if role in figures["targets"]]
    text = f"{kept[0].upper()}{kept[1:]}. {out} holds {', '.join(main)} and report.md, which tells the rest."
    if curve and size:
        unit, shown = units_of(curve["measure"])
        sizes = f"about {size['before']:,.0f} {size['unit']} at -O1, {size['after']:,.0f} here"
        least = (
            f"smallest {curve['smallest']:,.0f}, losing {shown(curve['lost'])}{unit.strip(',')} of {curve['measure']}"
        )
        text += f"\n{out}/curve, {counted(curve['designs'], 'design')}: {sizes}, {least}"
        text += f": forestc report {out}/curve -o curve.html"
    return text
