"""Names in backticks of docstrings and comments exist."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@pytest.mark.slow
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
