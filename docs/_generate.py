"""The pages that are made from the code: command line, passes, Python API, manifest, and the tables of benchmarks.

A Sphinx extension. Before the pages are read it writes Markdown to docs/generated, which git ignores; a page whose text
stays the same is left alone, so that it is not built again.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

import forestc
from forestc.cli import app as command_line
from forestc.manifest.content import schema
from forestc.options.fields import options_of
from forestc.passes import PASSES
from forestc.passes.guide import pass_guide
from forestc.passes.levels import levels_guide

HERE = Path(__file__).parent
GENERATED = HERE / "generated"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _codes(text: str) -> str:
    """Several, separated by semicolons."""
    return "; ".join(map(_code, text.split("; ")))


def _plain(text: str) -> str:
    """A text from the code, in which <, { and * are meant as they stand. What is in backticks stays as it is."""
    parts = text.split("`")
    return "`".join(part if at % 2 else re.sub(r"([<{*_\[\]])", r"\\\1", part) for at, part in enumerate(parts))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


# The command line


def commands_page() -> str:
    """Every command with its arguments and options, read from the program itself."""
    top = typer.main.get_command(command_line)
    parts = ["# Command line", _sentence(_plain(top.help or "")), _options_table(top)]
    parts.append("`forestc COMMAND --help` shows the same for one command.")
    for name, command in top.commands.items():
        usage = " ".join(_usage(command))
        parts += [f"## {name}", f"    forestc {name} {usage}", _sentence(_plain(command.help or ""))]
        parts.append(_options_table(command))
    return "\n\n".join(parts) + "\n"


def _usage(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield parameter.metavar or parameter.name.upper()
        elif parameter.required:
            yield f"{parameter.opts[-1]}{_value_of(parameter)}"
    yield "[OPTIONS]"


def _value_of(option: Any) -> str:
    """What stands for an option's value, after a blank; nothing for a flag."""
    longest = max(option.opts, key=len).strip("-").replace("-", "_")
    return "" if option.is_flag else f" {option.metavar or longest.upper()}"


def _options_table(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            spelt = _code(parameter.metavar or parameter.name.upper())
        else:
            spelt = ", ".join(_code(option + _value_of(parameter)) for option in parameter.opts)
        default = parameter.default
        shown = "" if default is None or isinstance(default, bool) or callable(default) else _code(str(default))
        rows.append((spelt, "required" if parameter.required else shown, _plain(parameter.help or "")))
    return table(("option", "default", "meaning"), rows) if rows else ""


# The passes


def passes_page() -> str:
    """Every pass with its promise and its options, read from the passes' own docstrings and fields."""
    parts = [
        "# Passes",
        "A pass turns one Forest into another. `-p` lists the passes to run, in their order, each with its options:\n\n"
        '    forestc compile model.json --rows train.csv -o out -p "simplify,quantize{leaf_bits=4},simplify"\n\n'
        "In Python, `passes=` takes the same text. `forestc passes` prints this page in the terminal. "
        "[Promises](../explanation/promises.md) explains what is promised and how it is checked.",
    ]
    levels = [
        [
            _code(level["level"]),
            level["keeps"],
            _code(level["passes"]),
            "; ".join(map(_code, level["otherwise"].split("; "))),
        ]
        for level in levels_guide()
    ]
    parts += [
        "## Levels",
        "A level is a list of passes. Models that one of these passes does not take get the list in the last column.",
        table(("level", "keeps", "passes", "for other models"), levels),
    ]
    for name in PASSES:
        guide = pass_guide(PASSES, name)
        rows = [
            (_code(option["name"]), _code(_value(option["default"])), _plain(option["meaning"]))
            for option in guide["options"]
        ]
        parts += [f"## {name}", _sentence(_plain(guide["for"])), f"**Promises** {_plain(guide['promises'])}"]
        if rows:
            parts.append(table(("option", "default", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _value(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default)


# The Python API

# What the keywords of `compile` mean beyond their help on the command line.
OPTIONS = {
    "forestc.options.compile.CompileOptions": "What they mean in Python",
    "forestc.backends.c.COptions": "Those of the C header, each with c_ before its name (c_inputs)",
}


def api_page() -> str:
    """An entry for each public name, filled in by autodoc."""
    parts = [
        "# Python API",
        "These are the public names of `forestc`. `import forestc` is quick: each name loads what it needs when it is "
        "first used.",
    ]
    kinds = {"Functions": inspect.isfunction, "Classes": inspect.isclass}
    for title, is_one in kinds.items():
        parts.append(f"## {title}")
        for name in forestc.__all__:
            if not is_one(thing := getattr(forestc, name)):
                continue
            directive = "autofunction" if title == "Functions" else "autoclass"
            members = "" if title == "Functions" or issubclass(thing, Exception) else _members(thing)
            parts.append(f"```{{eval-rst}}\n.. {directive}:: forestc.{name}\n{members}```")
            if hasattr(thing, "options"):
                parts.append(_keywords_table(thing.options))
        if title == "Functions":
            parts.append("## Options of compile")
            parts += [f"### {what}\n\n```{{eval-rst}}\n.. autoclass:: {name}\n```" for name, what in OPTIONS.items()]
    return "\n\n".join(parts) + "\n"


def _keywords_table(kind: type) -> str:
    """The parameters of a command's function, with the flags that give them on the command line."""
    rows = [
        (_code(each.name), _codes("; ".join(told.flags)), _code(_default(each)), _plain(told.help))
        for each, told in options_of(kind)
    ]
    return table(("parameter", "on the command line", "default", "meaning"), rows)


def _default(each: dataclasses.Field[Any]) -> str:
    return "" if each.default is dataclasses.MISSING else repr(each.default)


def _members(thing: type) -> str:
    """What a class says of itself; not what scikit-learn's classes or an IR's bring along."""
    own = [
        name
        for kind in thing.__mro__
        if kind.__module__.startswith("forestc.")
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and not (name.startswith("set_") and name.endswith("_request"))  # scikit-learn's own, made for each estimator
        and inspect.getdoc(member)
        and hasattr(member, "__get__")
    ]
    return f"   :members: {', '.join(dict.fromkeys(own))}\n" if own else ""


def fields_of_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turns `name: meaning.` sentences about parameters or fields into a list of them. A name that ends in _ would be
    a link in reStructuredText: it becomes code."""
    lines[:] = [re.sub(r"(?<![\w`])(\w+_)(?![\w`])", r"`\1`", line) for line in lines]
    try:
        known = set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return
    if dataclasses.is_dataclass(thing):
        known |= {field.name for field in dataclasses.fields(thing)}
    if not known:
        return
    names = "|".join(sorted(map(re.escape, known)))
    start = re.compile(rf"(?:^|(?<=[.;] ))((?:{names})(?:, (?:{names}))*): ")
    made: list[str] = []
    for paragraph in "\n".join(lines).split("\n\n"):
        text = paragraph if paragraph.startswith((" ", "|")) else " ".join(paragraph.split())
        before, *entries = start.split(text)
        if not entries:
            made += [text, ""]
            continue
        entries[-1], rest = _result(entries[-1])
        if before.strip():
            made += [before.strip(), ""]
        for own, told in zip(entries[::2], entries[1::2], strict=True):
            made.append(f"* {', '.join(f'`{each}`' for each in own.split(', '))}: {told.strip().rstrip(';')}")
        made += ["", *([rest, ""] if rest else [])]
    lines[:] = made


def _result(text: str) -> tuple[str, str]:
    """What is said of the last parameter, and what follows of results and errors."""
    found = re.search(r" (?=(?:Raises|Returns) )", text)
    return (text, "") if found is None else (text[: found.start()], text[found.end() :])


# The manifest


def manifest_page() -> str:
    """The JSON Schema of manifest.json as tables, an object a section."""
    whole = schema()
    parts = [
        "# manifest.json",
        "Every compiled folder holds a `manifest.json`, which other programs read. It tells the ports, the format of "
        "each feature, how a value becomes a word, the outputs, and how the folder was made. Its "
        "{download}`JSON Schema <manifest.schema.json>` is what `forestc.manifest.content.schema()` returns.",
    ]
    waiting = [("The manifest", whole)]
    while waiting:
        title, told = waiting.pop(0)
        rows, below = [], []
        for name, field in told["properties"].items():
            kind, inner = _kind(whole, field)
            if inner is not None:
                place = f"`{name}`" if told is whole else f"{title}.`{name}`".replace("`.`", ".")
                below.append((place, inner))
            missing = "" if name in told["required"] else " (may be absent)"
            meaning = field.get("description") or (inner or {}).get("description", "")
            rows.append((_code(name), kind + missing, _plain(meaning)))
        waiting[:0] = below
        parts += [f"## {title}", table(("field", "type", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def _kind(whole: Mapping[str, Any], field: Mapping[str, Any]) -> tuple[str, Any]:
    """A field's type in words, and the schema of the object in it that gets a table of its own."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return ("SHA-256", None) if name == "sha256" else _kind(whole, whole["$defs"][name])
    if "const" in field:
        return _code(json.dumps(field["const"])), None
    if "anyOf" in field:
        found = [_kind(whole, one) for one in field["anyOf"]]
        return " or ".join(kind for kind, _ in found), next((inner for _, inner in found if inner), None)
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


# The benchmarks


def benchmark_tables() -> dict[str, str]:
    """A table for each result in docs/benchmarks/*.json, as text that the pages there include."""
    made = {}
    for path in sorted((HERE / "benchmarks").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        own = ("title", "rows", "command", "date", "machine")
        more = {key: value for key, value in result.items() if key not in own}
        parts = [f"**{_plain(result['title'])}**", _rows_table(result["rows"])]
        for key, value in more.items():
            title = key.replace("_", " ")
            rows = isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
            parts += [f"**{title}**", _rows_table(value)] if rows else [f"{title}: {_figure(value)}"]
        if "command" in result:
            parts.append(f"Measured on {result['date']} ({result['machine']}) with `{result['command']}`.")
        made[path.stem] = "\n\n".join(parts) + "\n"
    return made


def _rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = [name.replace("_", " ") for name in rows[0]]
    return table(head, [[_figure(value) for value in row.values()] for row in rows])


def _figure(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


PAGES: Mapping[str, Callable[[], str]] = {
    "command-line": commands_page,
    "passes": passes_page,
    "api": api_page,
    "manifest": manifest_page,
}


def generate(app: Any = None) -> None:
    texts = {f"{name}.md": page() for name, page in PAGES.items()}
    texts |= {f"tables/{name}.md": text for name, text in benchmark_tables().items()}
    texts["manifest.schema.json"] = json.dumps(schema(), indent=1) + "\n"
    for name, text in texts.items():
        path = GENERATED / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", generate)
    app.connect("autodoc-process-docstring", fields_of_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
