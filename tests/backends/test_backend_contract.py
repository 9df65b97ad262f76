"""Tests the contract of every target: `pytest tests/backends/test_backend_contract.py -k NAME` runs that of one.

A new target in the table is done when it passes. Its engines run its files on all kinds of forest, on thresholds and
beside them, and they must notice files in which `<` has become `<=`.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import PurePosixPath

import numpy as np
import pytest
from forest_designs import design, differences
from forest_kinds import FORESTS, LARGE
from needs import REQUIRED
from random_forests import random_forest

import forestc
from forestc.backends.base import Gives
from forestc.backends.c.selftest import Answers
from forestc.backends.source import Source
from forestc.backends.table import BACKENDS, CORES, TARGETS, implied_roles, roles, written
from forestc.checks.proof.netlist import prove_netlist
from forestc.engine.capacity import Capacity
from forestc.engine.image import DoesNotFitError
from forestc.errors import MissingToolError, ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import LEAF, Aggregate, Decision, Link
from forestc.forest.numbers import Category, Fixed
from forestc.forest.outputs import OUTPUTS
from forestc.lowering.trees import LoweringOptions, lower

pytestmark = pytest.mark.each_case

HOSTILE = 'x"; rm -rf / #\n*/ $finish; `include "y" ../../etc'
CAPACITY = Capacity(3, 512, 8, 8, outputs=5, scores=True)


def options_of(name):
    """Returns options that make a backend write something."""
    targets = [name] if name in TARGETS else ["verilog"]
    more = {"stream": {"registers": True}, "c": {"project": "all"}, "engine": asdict(CAPACITY)}
    return {"targets": targets, "outputs": "both", **({name: more[name]} if name in more else {})}


def refused(row, forest):
    return any(refusal.found(forest) for refusal in row.code().refusals)


def forest_for(name, seed):
    """Makes a random forest that a row takes; for an engine, added trees on narrow words."""
    small = (("binary", "argmax", "regression", "vector")[seed % 4], [Fixed(8), Category(11)])
    more = small if name in TARGETS and TARGETS[name].gives is Gives.WALKERS else ()
    forests = (random_forest(seed + 6 * turn, True, *more) for turn in range(100))
    return next(forest for forest in forests if not refused(BACKENDS[name], forest))


def source_of(forest, options, latency=2):
    outputs = "both" if forest.decides else "scores"
    netlist = lower(forest, LoweringOptions(latency=latency, outputs=outputs))
    n = len(forest.features)
    answers = Answers(((0,) * n,), ((0.0,) * forest.columns,), ((0,) * len(forest.targets),), ((0,) * forest.n_scores,))
    return Source(
        forest, netlist, options, "ab" * 32, lambda: "0 0\n", lambda: "0,0\n", answers=lambda: answers,
        words=lambda: np.zeros((2, n), dtype=np.int64),
    )  # fmt: skip


def own(name, forest, latency=2):
    """Returns the files of a backend that its options alone do not bring."""
    options = options_of(name)
    found = written(source_of(forest, options, latency))
    return [one for one in found if one.role in roles(BACKENDS[name], options)]


@pytest.mark.parametrize("name", BACKENDS)
def test_it_writes_the_roles_it_names_and_the_same_bytes_each_time(name):
    for seed in range(6):
        forest = forest_for(name, seed)
        found = own(name, forest, seed % 3)
        assert [one.role for one in found] == list(dict.fromkeys(one.role for one in found))
        assert {one.role for one in found} == set(roles(BACKENDS[name], options_of(name)))
        assert found == own(name, forest, seed % 3)
        for one in found:
            path = PurePosixPath(one.path)
            assert not path.is_absolute() and ".." not in path.parts
            assert len(path.parts) == 2 or name == "c"
            assert one.text.endswith("\n")
            assert not re.search(r"[^\x09\x0a\x20-\x7e]", one.text), one.path


@pytest.mark.parametrize("name", BACKENDS)
def test_names_of_a_model_stay_names(name):
    forest = forest_for(name, 3)
    features = tuple(replace(feature, name=f"{HOSTILE} {index}") for index, feature in enumerate(forest.features))
    for one in own(name, replace(forest, name=HOSTILE, features=features)):
        assert re.fullmatch(r"[\w./-]+", one.path)
        for line in one.text.splitlines():
            code = line.split("//")[0] if one.path.endswith((".v", ".vhd", ".cpp", ".h", ".c", ".ino", ".txt")) else ""
            assert "rm -rf" not in code and "$finish; `" not in code


@pytest.mark.parametrize("name", BACKENDS)
def test_it_is_silent_where_nobody_asks_for_it(name):
    served = (name,) if name in TARGETS else CORES
    others = [target for target in TARGETS if target not in served]
    assert roles(BACKENDS[name], {"targets": others}) == ()


def test_roles_and_paths_are_distinguished():
    options = {name: value for row in BACKENDS for name, value in options_of(row).items()} | {"targets": [*TARGETS]}
    found = written(source_of(forest_for("engine", 3), options))
    assert len({one.role for one in found}) == len({one.path for one in found}) == len(found)
    assert {one.role for one in found} == implied_roles(options)


def cases():
    """Returns (target, engine, kind of forest). Engines that need a tool run on two kinds by default."""
    found = []
    for place, target in enumerate(TARGETS.values()):
        for runner in [one for one in target.runners if not one.asked]:
            for number, kind in enumerate(FORESTS):
                quick = kind not in LARGE and (runner.needs == "nothing" or number in (0, place + 1))
                marks = () if quick else pytest.mark.slow
                name = f"{target.name}-{runner.name}-{kind}"
                found.append(pytest.param(target, runner, kind, marks=marks, id=name))
    return found


def run(made, runner, folder, seed, truth=None):
    """Returns an engine's differences from the evaluator. Skips the test if the engine's tool is missing."""
    try:
        return differences(runner.name, made, folder, seed, truth=truth).count
    except MissingToolError as error:
        if REQUIRED and runner.name != "nvc":
            raise
        pytest.skip(str(error))


NARROW = [Fixed(8), Fixed(6, 2, True), Category(11)]


@pytest.mark.parametrize(("target", "runner", "kind"), cases())
def test_an_engine_answers_as_the_evaluator_or_the_target_refuses(target, runner, kind, tmp_path):
    first = 3 + list(FORESTS).index(kind)
    for seed in range(first, first + 4):
        forest = FORESTS[kind](seed, NARROW)
        if not refused(target, forest):
            break
        with pytest.raises(ModelError):
            design(forest, tmp_path, targets=(target.name,))
    else:
        return
    try:
        made = design(forest, tmp_path, seed % 3, targets=(target.name,))
    except (
        OptionError,
        DoesNotFitError,
    ):  # wider words, more classes or longer walks than any capacity
        assert target.gives is Gives.WALKERS and kind in ("doubles", "hard-types", *LARGE)
        return
    assert not run(made, runner, tmp_path, seed)


NEW = ("margins", "leaves", "top2")


def read(outputs, kind):
    """Returns a forest of a kind that gives these words, and its seed."""
    seed = 5 + list(FORESTS).index(kind)
    forest, make = FORESTS[kind](seed, NARROW), OUTPUTS[outputs].read
    if outputs == "top2" and not forest.decides:
        pytest.skip("a regression has no classes")
    return forest if make is None else make(forest), seed


def cases_of_outputs():
    """Returns (outputs, target, engine, kind of forest). By default an engine runs each of the outputs on two kinds."""
    found = []
    for target, runner, kind in (case.values for case in cases()):
        for number, outputs in enumerate(NEW):
            quick = list(FORESTS).index(kind) in (number, number + 4)
            name = f"{outputs}-{target.name}-{runner.name}-{kind}"
            marks = pytest.mark.long if kind in LARGE else () if quick else pytest.mark.slow
            found.append(pytest.param(outputs, target, runner, kind, marks=marks, id=name))
    return found


@pytest.mark.parametrize(("outputs", "target", "runner", "kind"), cases_of_outputs())
def test_an_engine_gives_these_outputs(outputs, target, runner, kind, tmp_path):
    forest, seed = read(outputs, kind)
    if refused(target, forest):
        pytest.skip("the target takes no such forest")
    try:
        made = design(forest, tmp_path, seed % 3, outputs, targets=(target.name,))
    except (OptionError, DoesNotFitError):
        assert target.gives is Gives.WALKERS
        return
    assert not run(made, runner, tmp_path, seed)


@pytest.mark.parametrize("kind", [kind for kind in FORESTS if kind not in LARGE])
@pytest.mark.parametrize("outputs", NEW)
def test_the_netlist_of_these_outputs_is_simulated_and_proved(outputs, kind, tmp_path):
    forest, seed = read(outputs, kind)
    made = design(forest, tmp_path, seed % 3, outputs, targets=("verilog",))
    assert not differences("netlist", made, tmp_path, seed).count
    found = prove_netlist(forest, made.netlist, made.witness)
    assert found.proved and not found.refuted
    wrong = changed(forest, bias=forest.bias + np.arange(1, forest.n_outputs + 1))
    if forest.single:
        assert prove_netlist(wrong, made.netlist, made.witness).refuted


@pytest.mark.parametrize(
    "runner",
    [pytest.param(one, id=f"{t.name}-{one.name}") for t in TARGETS.values() for one in t.runners if not one.asked],
)
def test_an_engine_notices_less_or_equal_in_place_of_less(runner, tmp_path):
    (target,) = [one for one in TARGETS.values() if runner in one.runners]
    forests = (random_forest(seed, True, "regression", [Fixed(8)]) for seed in range(100))
    forest = next(one for one in forests if len(one.conditions.comparators) > 5 and not refused(target, one))
    above = [
        changed_tree(tree, threshold=np.where(tree.left != LEAF, tree.threshold + 1, tree.threshold))
        for tree in forest.trees
    ]
    assert run(design(changed(forest, trees=above), tmp_path, targets=(target.name,)), runner, tmp_path, 5, forest)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_what_a_target_refuses_is_among_the_kinds_of_forest(target):
    forests = [FORESTS[kind](seed, NARROW) for kind in FORESTS for seed in range(4)]
    forests += [replace(forests[0], link=Link("softmax"), decision=Decision("argmax", on="values"))]
    same = tuple(replace(feature, column=0) for feature in forests[0].features)
    wrapping = replace(forests[0].features[0], raw=Fixed(8, 0, overflow="AP_WRAP"))
    forests += [replace(forests[0], features=same), replace(forests[0], features=(wrapping, *same[1:]))]
    forests += [replace(forests[0], aggregate=Aggregate("typed", score=Fixed(9, 4, True), norm=0.5))]
    for refusal in target.code().refusals:
        assert any(refusal.found(forest) for forest in forests), refusal.what
        assert not all(refusal.found(forest) for forest in forests), refusal.what


@pytest.mark.parametrize("target", TARGETS)
def test_a_folder_of_one_target_has_its_files(target, tmp_path):
    from models import trained

    model, X, _ = trained("xgboost-binary")
    done = forestc.compile(model, X[:100], tmp_path / "d", targets=target, name="m")
    assert {runner.role for runner in TARGETS[target].runners} <= set(done.design.manifest["files"])
    assert set(done.design.manifest["files"]) == implied_roles(done.design.manifest["options"])
    assert done.design.targets == (target,)


def test_a_target_that_is_none_is_refused(tmp_path):
    with pytest.raises(OptionError, match="unknown target 'chisel'"):
        forestc.compile(None, None, tmp_path / "d", targets="chisel")


def test_a_part_and_a_clock_reach_the_hls_scripts():
    options = {"targets": ["hls"], "device": "vivado:xcvu9p-flga2104-2-i", "clock_mhz": 400.0}
    found = written(source_of(random_forest(3, True), options))
    (script,) = [one.text for one in found if one.role == "hls_config"]
    assert "part=xcvu9p-flga2104-2-i" in script and "2.5" in script
