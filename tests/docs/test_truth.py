"""What docstrings state of names holds: errors named are raised, names in backticks exist."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Interrupted)\b")
RAISES = re.compile(r"\bRaises?\s([^.;:]*)")
SECTION = re.compile(r"^Raises\n-+\n((?:.+\n?)+)", re.MULTILINE)  # of numpydoc: an error, and below it why
BACKTICKS = re.compile(r"`([^`\n]+)`")
OTHERS = {
    "NAME_registered",
    "x3_width",
    "label0",
    "cross_val_score",
    "Booster",
    "dump_model",
    "ifdef",
}  # names of libraries, languages and examples
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@cache
def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    return [name for name in listed if name]


@cache
def trees():
    names = [name for name in files() if name.endswith(".py") and name.startswith(("forestc/", "hw_sim/"))]
    return {name: ast.parse((ROOT / name).read_text(encoding="utf-8")) for name in names}


def documented(tree):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    return [(node, text) for node in ast.walk(tree) if isinstance(node, kinds) and (text := ast.get_docstring(node))]


@cache
def functions():
    """The functions of all modules by name; a class stands for its constructor."""
    found = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                makers = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                found.setdefault(node.name, []).extend(
                    part for part in makers if part.name in ("__init__", "__post_init__", "of")
                )
    return found


@cache
def mentioned(node):
    """The names that the code of a function or class mentions, without its docstring."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return frozenset(names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)})


def is_stub(node):
    """Whether a method leaves its work to those of other classes: it has a docstring alone, or returns a constant."""
    code = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    return not [part for part in code if not (isinstance(part, ast.Return) and not mentioned(part))]


def reached(node):
    """The names that a function mentions, and the functions that it may call mention."""
    names, left = set(), [node]
    while left:
        for name in mentioned(left.pop()) - names:
            names.add(name)
            left += functions().get(name, [])
    return names


@cache
def subclasses():
    """For each class of errors the names of the classes derived from it, and its own."""
    bases = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]
    families = {}
    for name in bases:
        line = [name]
        for member in line:
            line += bases.get(member, [])
            families.setdefault(member, set()).add(name)
    return families


def test_errors_that_a_docstring_names_are_raised_here_or_below():
    count, wrong = 0, []
    for file, tree in trees().items():
        for node, text in documented(tree):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            clauses = RAISES.findall(SECTION.sub("", text))
            clauses += re.findall(r"^\w+$", "\n".join(SECTION.findall(text)), re.MULTILINE)
            named = {error for clause in clauses for error in ERROR.findall(clause)}
            below = reached(node) if named else set()
            if named and is_stub(node):
                below = below.union(*map(reached, functions()[node.name]))
            for error in named:
                count += 1
                if not (subclasses().get(error, {error}) | {error}) & below:
                    wrong.append(f"{file}:{node.lineno} {node.name}: {error}")
    assert count > 200
    assert not wrong


@cache
def known_words():
    """All words of the code and the templates outside of docstrings and comments, and the names of files."""
    words = set(WORD.findall(" ".join(files()))) | OTHERS
    for name in files():
        if name.endswith((".j2", ".toml", ".json", ".cfg", "Makefile")):
            words |= set(WORD.findall((ROOT / name).read_text(encoding="utf-8", errors="replace")))
    for name in files():
        if name.endswith(".py") and not name.startswith("tests/"):
            tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
            texts = {id(node.body[0].value) for node, _ in documented(tree)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant):
                    words |= (
                        set(WORD.findall(node.value))
                        if isinstance(node.value, str) and id(node) not in texts
                        else set()
                    )
                for field in ("id", "attr", "arg", "name", "asname", "module"):
                    if isinstance(value := getattr(node, field, None), str):
                        words |= set(WORD.findall(value))
    return words


def test_names_in_backticks_exist():
    count, wrong = 0, []
    for file, tree in trees().items():
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        texts = [(node.name if hasattr(node, "name") else "head", text) for node, text in documented(tree)]
        texts += [(n, m[1]) for n, line in enumerate(lines, 1) if (m := re.match(r"\s*# (.*)", line))]
        for where, text in texts:
            for quoted in BACKTICKS.findall(text):
                count += 1
                if re.search(r"[ <{%]|\.\.\.|\bIF\b", quoted):  # a piece of a text, not a name
                    continue
                unknown = [word for word in WORD.findall(quoted) if len(word) > 2 and word not in known_words()]
                if unknown:
                    wrong.append(f"{file}:{where}: `{quoted}`")
    assert count > 500
    assert not wrong
