"""Texts of errors: the place first, and options as the user writes them, whatever the user's data hold."""

import ast
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.cli import main
from forestc.errors import (
    HERE,
    KEYWORDS,
    ForestcError,
    MissingExtraError,
    OptionError,
    located,
    on_command_line,
    opt,
    with_flags,
    with_keywords,
)
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.batches import ArrayRows
from forestc.rows.given import rows_from

ROOT = Path(__file__).parents[1]
HOSTILE = ("{rows}", "{opt.rows}", "{0}", "{}", "{", "}}", "{x!r:{y}}", "%s", "--rows FILE")


def test_the_place_is_before_the_error_and_its_remedy():
    error = OptionError(f"{opt.label:COL} needs {opt.rows}", where=opt.label, do=f"add {opt.rows:FILE}")
    assert str(error) == "label=: label=COL needs rows=; add rows=FILE"
    assert (error.where, error.what, error.do) == ("label=", "label=COL needs rows=", "add rows=FILE")
    with on_command_line():
        assert str(error) == "--label: --label COL needs --rows; add --rows FILE"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    lacking = MissingExtraError("skops", "skops")
    assert str(pickle.loads(pickle.dumps(lacking))) == str(lacking)


def test_options_are_named_as_python_and_the_command_line_write_them():
    text = f"{opt.random:5}, {opt.prove}, {opt.no_prove}, {opt.try_} and {opt.c_layout:nodes}"
    assert with_flags(text) == "--random 5, --prove, --no-prove, --try and --c-layout nodes"
    assert with_keywords(text) == "random_rows=5, prove=True, prove=False, try_anyway=True and c_layout=nodes"


@pytest.mark.parametrize("name", HOSTILE)
def test_what_users_give_is_no_template(name):
    error = OptionError(f"there is no column {name!r}", where=name, do=f"did you mean {name}? {opt.label:{name}}")
    assert str(error) == f"{name}: there is no column {name!r}; did you mean {name}? label={name}"
    with on_command_line():
        assert str(error) == f"{name}: there is no column {name!r}; did you mean {name}? --label {name}"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_files_and_columns_are_printed_as_they_are(name, tmp_path, capsys):
    file = tmp_path / f"{name}.forest"
    file.write_text(f'forest "{name}"\nnothing')
    with pytest.raises(SystemExit):
        main(["inspect", str(file)])
    assert capsys.readouterr().err.startswith(f"forestc: {file}")
    with pytest.raises(ForestcError) as raised:
        forestc.load(file)
    assert raised.value.where.startswith(str(file))
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b,c,d\n1,2,3,4\n")
    with pytest.raises(ForestcError) as raised:
        rows_from(rows, forestc.load(model), name)
    assert name in raised.value.what


def test_each_placeholder_is_an_option():
    used = {
        f"--{node.attr.rstrip('_').replace('_', '-')}": f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("forestc", "hw_sim")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "opt"
    }
    used.pop("--on-command-line")
    assert len(used) > 50
    assert not {flag: at for flag, at in used.items() if flag not in KEYWORDS}


def test_no_error_holds_an_option_as_text():
    named = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    for path in (ROOT / "forestc").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Error"):
                texts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
                flags = {flag for text in texts if isinstance(text, str) for flag in named.findall(text)}
                commands = any("forestc " in str(text) for text in texts)
                assert commands or not flags & KEYWORDS.keys(), f"{path}:{call.lineno}"


def test_a_place_is_added_once():
    with pytest.raises(OptionError) as raised, located("pass b"), located("pass a"):
        raise OptionError("too few", where=HERE, do="give more")
    assert str(raised.value) == "pass a: too few; give more"
    with pytest.raises(OptionError) as raised, located("pass a"):
        raise OptionError("needs rows", where="tree 3", do="give some")
    assert raised.value.where == "tree 3"


def test_errors_of_a_model_name_its_file_or_its_type(tmp_path):
    (tmp_path / "damaged.forest").write_text('forest "x"\nnothing')
    with pytest.raises(ForestcError) as raised:
        forestc.load(tmp_path / "damaged.forest")
    assert raised.value.where.startswith(str(tmp_path / "damaged.forest"))
    with pytest.raises(ForestcError) as raised:
        forestc.load({"tree": DecisionTreeClassifier()})
    assert raised.value.where == "model of type dict" and "'tree'" in str(raised.value)


def test_errors_of_a_pass_name_it():
    X = np.random.default_rng(0).normal(size=(60, 3))
    forest = forestc.load(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, X[:, 0] > 0))
    for named in ("quantize-inputs", "share-thresholds", "prune-splits"):
        with pytest.raises(ForestcError) as raised:
            run_passes(forest, passes_from(named), None)
        assert raised.value.where == f"pass {named}" or raised.value.where.startswith(f"pass {named}{{")
    with pytest.raises(ForestcError) as raised:  # the second finds the forest quantized
        run_passes(forest, passes_from("quantize-inputs,round-leaves{leaf_bits=8},quantize-inputs"), ArrayRows(X))
    assert raised.value.where == "pass quantize-inputs"
