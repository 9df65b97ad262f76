"""Writes the reference pages from the code, and measured figures into other pages.

    python docs/_generate.py            writes docs/reference, the pictures of benchmarks, and their figures in pages
    python docs/_generate.py --check    writes nothing; status 1, and the names of files that it would change

These pages are committed: they can be read in the repository, too. Sphinx makes those of the command line and of the
Python API (docs/conf.py).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from _figures import filled, plain, results, table
from _pictures import CARD_FOLDER, CARDS, FOLDER, PICTURES, card, drawn

from forestc.backends.table import BACKENDS, RUNNERS, TARGETS
from forestc.cli import app as command_line
from forestc.costs.boards import FPGAS, PROCESSORS, Board
from forestc.errors import with_flags
from forestc.fields.options import Group
from forestc.manifest import evidence
from forestc.manifest.content import schema
from forestc.passes import PASSES
from forestc.passes.guide import pass_guide
from forestc.search.levels import levels_guide

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COMMAND = "python docs/_generate.py"
MADE = f"<!-- Made by `{COMMAND}` from the code. -->"
COPIED = DOCS / "benchmarks" / "notes.md"  # of benchmarks/NOTES.md, by docs/conf.py
OF_THE_SHELL = ("install_completion", "show_completion")  # leaves out options with help texts that depend on the shell


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


# The command line


def commands_page() -> str:
    """Returns the page of every command with its arguments and options, read from the program itself."""
    top = typer.main.get_command(command_line)
    parts = ["# Command line", MADE, _sentence(plain(top.help or "")), _options_table(top)]
    parts.append("`forestc COMMAND --help` shows the same for one command.")
    for name, command in top.commands.items():
        usage = " ".join(_usage(command))
        parts += [f"## {name}", f"    forestc {name} {usage}", _sentence(plain(command.help or ""))]
        parts.append(_options_table(command))
        parts += [part for group in command.groups.items() for part in _keys(name, *group)]
    return _page(parts)


def _keys(command: str, name: str, group: Group) -> list[str]:
    """Returns a table of the keys of a flag, each with the flag that sets it alone."""
    rows = [
        (_code(key), _code(str(field.default)) * bool(field.default), _code(spec.flags[0]), plain(spec.help))
        for key, (field, spec) in group.keys.items()
    ]
    last = " and ".join(_code(key) for key, (_, spec) in group.keys.items() if spec.takes_rest)
    head = (
        f"Keys of `{group.within.flag}`, which `forestc {command} --help {name}` shows; each is a flag of its own, too."
    )
    head += f" The values of {last} have commas, and take the rest of the text." if last else ""
    return [head, table(("key", "default", "as a flag", "meaning"), rows)]


def _usage(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield parameter.metavar or parameter.name.upper()
        elif parameter.required:
            yield f"{parameter.opts[-1]}{_value_of(parameter)}"
    yield "[OPTIONS]"


def _value_of(option: Any) -> str:
    """Returns the placeholder of an option's value, after a blank; nothing for a flag."""
    longest = max(option.opts, key=len).strip("-").replace("-", "_")
    return "" if option.is_flag else f" {option.metavar or longest.upper()}"


def _options_table(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if parameter.name in ("help", *OF_THE_SHELL) or getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            spelt = _code(parameter.metavar or parameter.name.upper())
        else:
            spelt = ", ".join(_code(option + _value_of(parameter)) for option in parameter.opts)
        default = parameter.default
        shown = "" if default is None or isinstance(default, bool) or callable(default) else _code(str(default))
        rows.append((spelt, "required" if parameter.required else shown, plain(parameter.help or "")))
    return table(("option", "default", "meaning"), rows) if rows else ""


# The passes


def passes_page() -> str:
    """Returns the page of every pass, its promise and its options, read from the passes' docstrings and fields."""
    parts = [
        "# Passes",
        MADE,
        "A pass turns one Forest into another. `-p` lists the passes to run, in their order, each with its options:\n\n"
        '    forestc compile model.json --rows train.csv -o out -p "simplify,round-leaves{leaf_bits=4},simplify"\n\n'
        "In Python, `passes=` takes the same text. `forestc passes` prints this page in the terminal. "
        "[Promises](../explanation/promises.md) explains what is promised and how it is checked.",
    ]
    levels = [(_code(level["level"]), level["keeps"], _code(level["passes"])) for level in levels_guide()]
    parts += [
        "## Levels",
        "`-O0` and `-O1` are lists of passes; `-O2` and `-O3` search, and leave out passes that do not take the model. "
        "With `--scores` both are `-O1`.",
        table(("level", "keeps", "passes"), levels),
    ]
    for name in PASSES:
        guide = pass_guide(PASSES, name)
        rows = [
            (_code(option["name"]), _code(_value(option["default"])), option["values"], plain(option["meaning"]))
            for option in guide["options"]
        ]
        parts += [f"## {name}", _sentence(plain(guide["for"])), f"**Promises** {plain(guide['promises'])}"]
        if rows:
            parts.append(table(("option", "default", "values", "meaning"), rows))
    return _page(parts)


def _value(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default)


# The manifest


def manifest_page() -> str:
    """Returns the page of the JSON Schema of manifest.json: a table for each object."""
    whole = schema()
    parts = [
        "# manifest.json",
        MADE,
        "Every compiled folder holds a `manifest.json`, which other programs read. It holds the ports, the format of "
        "each feature, how a value becomes a word, the outputs, and how the folder was made. Its "
        "[JSON Schema](manifest.schema.json) is what `forestc.manifest.content.schema()` returns.",
    ]
    waiting = [("The manifest", whole)]
    while waiting:
        title, part = waiting.pop(0)
        rows, below = [], []
        for name, field in part["properties"].items():
            kind, inner = _kind(whole, field)
            if inner is not None:
                place = f"`{name}`" if part is whole else f"{title}.`{name}`".replace("`.`", ".")
                below.append((place, inner))
            missing = "" if name in part["required"] else " (may be absent)"
            meaning = field.get("description") or (inner or {}).get("description", "")
            rows.append((_code(name), kind + missing, plain(meaning)))
        waiting[:0] = below
        parts += [f"## {title}", table(("field", "type", "meaning"), rows)]
    return _page(parts)


def _kind(whole: Mapping[str, Any], field: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns a field's type in words, and the schema of an object in it if that object gets a table of its own."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return ("SHA-256", None) if name == "sha256" else _kind(whole, whole["$defs"][name])
    if "const" in field:
        return _code(json.dumps(field["const"])), None
    if "anyOf" in field:
        kinds_of = [_kind(whole, part) for part in field["anyOf"]]
        return " or ".join(kind for kind, _ in kinds_of), next((inner for _, inner in kinds_of if inner), None)
    kinds = field.get("type", "string")
    text = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    inner = field if "properties" in field else None
    if "items" in field and "array" in text:
        kind, inner = _kind(whole, field["items"])
        text = text.replace("array", f"array of {_several(kind)}")
    if isinstance(field.get("additionalProperties"), Mapping):
        kind, inner = _kind(whole, field["additionalProperties"])
        text += f" of {_several(kind)}"
    if "enum" in field:
        text = ", ".join(_code("null" if one is None else str(one)) for one in field["enum"])
    return text, inner


def _several(kind: str) -> str:
    return re.sub(r"\b(string|number|boolean|integer|object|array)\b", r"\1s", kind)


# The boards

_PIP = "yosys and nextpnr, which come with `pip`"


def boards_page() -> str:
    """Returns the page of boards, from the table in forestc/costs/boards.py and the boards' descriptions."""
    from forestc.boards.platforms import serial_pins  # needs Amaranth's boards, which conf.py does without

    return _page(
        (
            "# Boards",
            MADE,
            "`--cpu` and `--device` take the names in these tables. Several names in a row stand for the same board "
            "or chip. The C header also compiles for other microcontrollers with a C99 compiler; only estimates, "
            "budgets and `forestc measure` need to know the processor.",
            "## Microcontrollers",
            "    forestc compile model.json --rows train.csv --target c --cpu pico -o out\n"
            "    forestc measure out --cpu pico --rows test.csv",
            table(
                ("board", "chip", "value of `--cpu`", "processor of forestc", "remark"),
                [_board(board, board.cpu, board.remark) for board in PROCESSORS],
            ),
            "[Figures on a microcontroller](../howto/measure.md#processors-and-tools) lists compilers and emulators.",
            "## FPGAs",
            "    forestc compile model.json --rows train.csv --device icebreaker --clock 12 -o out\n"
            "    forestc synth out --device icebreaker    # again, for a compiled folder; compile --device ran it",
            table(
                ("board", "chip", "value of `--device`", "device of forestc", "tools", "remark"),
                [(*_board(board, board.device)[:4], _tools(board), plain(with_flags(board.remark))) for board in FPGAS],
            ),
            "`forestc synth` places the core alone, to measure it. For another board, name the [device](devices.md) on "
            "it.",
            "## Bitstreams",
            "    forestc bitstream out --board icebreaker\n    forestc program NAME-icebreaker.bin --board icebreaker",
            "A bitstream answers rows over a serial line: see [Boards](../howto/boards.md).",
            table(
                ("board", "value of `--board`", "serial line", "chip's pins: receives, sends", "description"),
                [
                    (
                        board.title,
                        ", ".join(map(_code, board.names)),
                        plain(board.uart),
                        ", ".join(map(_code, serial_pins(board))),
                        _code(board.platform),
                    )
                    for board in FPGAS
                    if board.platform
                ],
            ),
        )
    )


def _board(board: Board, target: str, remark: str = "") -> tuple[str, ...]:
    shown = _code(target) or "none"
    return (
        board.title,
        board.chip,
        ", ".join(map(_code, board.names)) if target else "none",
        shown,
        plain(with_flags(remark)),
    )


def _tools(board: Board) -> str:
    if not board.device:
        return "none that forestc runs"
    return "Vivado, on the PATH" if board.device.startswith("vivado:") else _PIP


# What is written

PAGES: Mapping[str, Callable[[], str]] = {
    "passes": passes_page,
    "manifest": manifest_page,
    "boards": boards_page,
}


def targets() -> dict[str, Any]:
    """Returns the table of targets as a result, from which pages take tables."""
    files = [{"file": file, "content": content} for row in BACKENDS.values() for file, content in row.layout]
    engines = [{"engine": f"`{name}`", "does": own.runs, "needs": own.needs} for name, own in RUNNERS.items()]
    refused = {name: [refusal.what for refusal in target.code().refusals] for name, target in TARGETS.items()}
    rows = [
        {"target": f"`{name}`", "writes": target.help, "takes no": "; ".join(refused[name])}
        for name, target in TARGETS.items()
    ]
    return {"targets": rows, "files": files, "engines": engines}


def texts() -> dict[Path, str]:
    """Returns the text of every file that this program writes."""
    made = {DOCS / "reference" / f"{name}.md": page() for name, page in PAGES.items()}
    for name, kind in (("manifest", schema()), ("evidence", evidence.schema())):
        made[DOCS / "reference" / f"{name}.schema.json"] = json.dumps(kind, indent=1) + "\n"
    known = results(DOCS / "benchmarks") | {"targets": targets()}
    made |= {DOCS / FOLDER / f"{name}.svg": drawn(name, known) for name in PICTURES if name in known}
    made |= {DOCS / CARD_FOLDER / f"{name}.svg": card(name) for name in CARDS}
    pages = (path for path in sorted(DOCS.rglob("*.md")) if path != COPIED)
    for path in (*pages, ROOT / "benchmarks" / "NOTES.md", *ROOT.glob("README.md")):
        if path not in made:
            folder = "docs/benchmarks/" if path.parent == ROOT else ""
            made[path] = filled(path.read_text(encoding="utf-8"), known, folder)
    return made


def outdated() -> dict[Path, str]:
    """Returns the texts of the files that differ from the repository or are not in it."""
    return {
        path: text for path, text in texts().items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    }


def main(arguments: Sequence[str]) -> int:
    check, old = "--check" in arguments, outdated()
    for path, text in old.items():
        sys.stdout.write(f"{path.relative_to(ROOT)}{' is not up to date' if check else ''}\n")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and old:
        sys.stderr.write(f"run: {COMMAND}\n")
    return int(check and bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
