"""Collects the error messages of forestc: what is wrong, the place, and the remedy.

    python docs/_messages.py            # all of them, one a line
    python docs/_messages.py --lacking  # those without a place or a remedy

A message is a call of an error class of forestc, or of a function that makes one from its own first parameter
(`Document.fail`). The place is the argument `where`; or the text names it: an option, a pass, a file, a value.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
PASSES = sorted(
    path.stem.replace("_", "-") for path in (ROOT / "forestc/passes").iterdir() if (path / "__init__.py").exists()
)
# Names a place within the text: an option, a pass, a field with its value, or a value in quotes.
NAMED = re.compile(
    r"--[a-z{]|\{flag|(?:self|step)\.name|print_pass|stream: \w|"
    r"\{name\}|opts\[0\]|\bquantize\b|\w=\{|!r\}|" + "|".join(PASSES)
)
# Names the code that adds a place to errors of a folder.
ADDED = {
    "forestc/frontends/": "load",
    "forestc/forest/": "load",
}
TEXTS = {"what", "why", "problem", "reason"}  # parameters of functions that make an error of a text


@dataclass(frozen=True)
class Message:
    """A call that makes an error. where and do: its arguments as code, empty if there are none."""

    file: str
    line: int
    kind: str
    what: str
    where: str
    do: str


@dataclass(frozen=True)
class Maker:
    """A class or function that makes an error. what, where and do: the names of its parameters, or the code that it
    gives itself. parameters: all names, in order. defaults: of parameters, as code. file: of a function."""

    what: str
    where: str
    do: str
    parameters: tuple[str, ...]
    defaults: dict[str, str]
    file: str = ""


def modules() -> dict[str, ast.Module]:
    """Returns the syntax trees of forestc and of the simulator by file name."""
    paths = [path for folder in ("forestc", "hw_sim") for path in sorted((ROOT / folder).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def place_of(message: Message) -> str:
    """Returns how users learn the place: from `where`, from the text, or from the code that passes the error on; empty
    if they do not."""
    if message.where:
        return "where"
    if NAMED.search(message.what):
        return "text"
    return next((added for folder, added in ADDED.items() if message.file.startswith(folder)), "")


def base_names(node: ast.ClassDef) -> list[str]:
    """Returns the last names of the bases of a class."""
    return [ast.unparse(base).split(".")[-1] for base in node.bases]


def error_classes(trees: dict[str, ast.Module]) -> dict[str, Maker]:
    """Returns ForestcError and its subclasses, with the place and remedy that a class gives to all of its errors."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    makers: dict[str, Maker] = {}
    bases = {"ForestcError": Maker("what", "where", "do", ("what",), {"where": "", "do": ""})}
    while bases:
        makers |= bases
        bases = {
            node.name: _of_class(node, makers[base])
            for node in nodes
            for base in base_names(node)
            if base in makers and node.name not in makers
        }
    return makers


def _of_class(node: ast.ClassDef, base: Maker) -> Maker:
    given = {
        target.id: ast.unparse(part.value)
        for part in node.body
        if isinstance(part, ast.Assign)
        for target in part.targets
        if isinstance(target, ast.Name) and target.id in ("usual_where", "usual_do")
    }
    defaults = base.defaults | {name.removeprefix("usual_"): text for name, text in given.items()}
    base = replace(base, defaults=defaults)
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            names = tuple(arg.arg for arg in part.args.args if arg.arg != "self")
            calls = [call for call in ast.walk(part) if isinstance(call, ast.Call) and _called(call) == "__init__"]
            given = _given(calls[0], base)
            return Maker(names[0], given["where"], given["do"], names, {})
    return base


def makers_of(trees: dict[str, ast.Module]) -> dict[str, list[Maker]]:
    """Returns the makers of errors by name: error classes, and functions that make an error of a text."""
    classes = error_classes(trees)
    makers = {name: [maker] for name, maker in classes.items()}
    nodes = [
        (file, node) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    added: dict[str, list[Maker]] = {"": []}
    seen: set[int] = set()
    while added:
        added = {}
        known = {name: kinds[0] for name, kinds in makers.items()}
        for file, node in nodes:
            if id(node) not in seen and node.name != "__init__" and (made := _of_function(node, known)):
                seen.add(id(node))
                added.setdefault(node.name, []).append(replace(made, file=file))
        for name, found in added.items():
            makers[name] = makers.get(name, []) + found
    return makers


def _of_function(node: ast.FunctionDef, makers: dict[str, Maker]) -> Maker | None:
    """Returns a maker for a function that makes an error from a text in its parameters; None for another function."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    names = tuple(arg.arg for arg in arguments if arg.arg != "self")
    defaults = dict(
        zip([arg.arg for arg in arguments][::-1], [ast.unparse(d) for d in node.args.defaults][::-1], strict=False)
    )
    for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        names += (arg.arg,)
        defaults |= {} if default is None else {arg.arg: ast.unparse(default)}
    for call in ast.walk(node):
        maker = makers.get(_called(call))
        if not isinstance(call, ast.Call) or maker is None:
            continue
        given = _given(call, maker)
        used = {part.id for part in ast.walk(ast.parse(given["what"] or "''")) if isinstance(part, ast.Name)}
        for own in TEXTS & used & set(names):
            usual = {name: maker.defaults.get(part, "") for part in ("where", "do") if (name := given[part]) in names}
            empty = {name: text for name, text in usual.items() if defaults.get(name, "''") == "''"}
            return Maker(own, given["where"], given["do"], names, defaults | empty)
    return None


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""


def _given(call: ast.Call, maker: Maker) -> dict[str, str]:
    """Returns what, where and do of a call as code; a parameter of the maker is replaced by its argument or default."""
    arguments = dict(maker.defaults)
    arguments |= dict(zip(maker.parameters, [ast.unparse(argument) for argument in call.args], strict=False))
    arguments |= {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg}
    parts = {"what": maker.what, "where": maker.where, "do": maker.do}
    texts = {
        part: arguments.get(code, "" if code in (*maker.parameters, part) else code) for part, code in parts.items()
    }
    return {part: "" if text in ("''", '""') else text for part, text in texts.items()}


def messages() -> Iterator[Message]:
    """Yields the messages of all modules."""
    trees = modules()
    makers = makers_of(trees)
    for file, tree in trees.items():
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            name = _called(node)
            if isinstance(node, ast.Call) and name in makers:
                near = [maker for maker in makers[name] if maker.file == file]
                if not near and (name in defined or ast.unparse(node.func).startswith("self.")):
                    continue  # another function of this name
                near = near or makers[name]
                parts = [_given(node, maker) for maker in near]
                parts = [part for part in parts if part["what"]] or parts
                worst = min(parts, key=lambda part: (bool(part["where"]), bool(part["do"])))
                yield Message(file, node.lineno, name, worst["what"], worst["where"], worst["do"])


def main(arguments: list[str]) -> int:
    """Prints the messages; returns the exit status."""
    for message in messages():
        place = place_of(message)
        if "--lacking" not in arguments or not (place and message.do):
            parts = (f"{message.file}:{message.line}", message.kind, message.what, message.where or place, message.do)
            sys.stdout.write(" | ".join(parts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
