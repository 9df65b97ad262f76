"""What is stored and read equals, field by field, what was stored: in texts, results of passes, folders, trials and
messages to workers."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from random_forests import random_forest

import forestc
from forestc.errors import opt
from forestc.exploration.study import Goal, Limit, Score, Trial, open_study, write_request, write_trial
from forestc.forest.hashing import HashedColumn, Member
from forestc.forest.ir import Forest, Provenance
from forestc.forest.text import parse_forest, print_forest
from forestc.forest.tree import Draw, Tree
from forestc.passes import promises
from forestc.passes.base import PassResult
from forestc.search.memory import printed_result, read_result

KINDS = ("binary", "argmax", "regression", "vector", "vote", "each")
PROMISES = [
    promises.Exact(), promises.KeepsPaths(), promises.KeepsDecisions(), promises.KeepsAllButTies(3, np.inf),
    promises.FewChanges(0.1), promises.ScoresWithin(0.25), promises.Within(0.5), promises.EveryPath(True, 0.5),
]  # fmt: skip

MEMBERS = (Member(7, "a b", "is", 3.0), Member(0, "", "from", 0.25, True))


def full(forest: Forest) -> Forest:
    """Returns a forest in which all fields that rarely are set have values."""
    first = forest.features[0]
    return replace(
        forest,
        columns=10,
        hashed=(HashedColumn(9, 2, MEMBERS, (5, (1 << 63) + 1), (1, 0)),),
        carried=tuple(range(7)),
        always_missing=True,
        categories=(("a", 'b "c"'), ("é\n",)),
        features=(replace(first, named=False, labels=("x", "y z"), unknown=16.5), *forest.features[1:]),
        trees=(replace(forest.trees[0], drawn=Draw(1, 2, 3)), *forest.trees[1:]),
        provenance=Provenance("library", "1.2", "ab", ("simplify", "p{a=1}"), (f"see {opt.iterations:best}", "é")),
    )


FORESTS = [full(random_forest(seed, quantized=False, kind=kind)) for seed, kind in enumerate(KINDS)] + [
    full(random_forest(seed, quantized=True, kind=kind))
    for seed, kind in enumerate((*KINDS, "average", "median", "means"))
]


def same(one: object, other: object) -> bool:
    """Returns True if two values are equal field by field. Sets and leaf values of trees are compared by node."""
    if isinstance(one, Tree):
        return isinstance(other, Tree) and same(_by_node(one), _by_node(other))
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and bool(np.array_equal(one, other))
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return type(one) is type(other) and all(same(getattr(one, name), getattr(other, name)) for name in names)
    return type(one) is type(other) and one == other


def _by_node(tree: Tree) -> tuple[object, ...]:
    inner = tree.left >= 0
    sets = tuple(tree.sets[index] if index >= 0 else () for index in tree.set_index)
    rest = (
        getattr(tree, field.name) for field in fields(Tree) if field.name not in ("set_index", "sets", "leaf", "values")
    )
    return (sets, tree.values[tree.leaf[~inner]], *rest)


@pytest.mark.parametrize("name", [field.name for field in fields(Forest)])
def test_some_forest_here_has_each_field(name):
    plain = random_forest(0, quantized=False, kind="binary")
    assert any(not same(getattr(forest, name), getattr(plain, name)) for forest in FORESTS)


@pytest.mark.parametrize("forest", FORESTS, ids=repr)
def test_forests_keep_their_fields_in_text_and_on_the_way_to_workers(forest):
    assert same(parse_forest(print_forest(forest)), forest)
    assert same(pickle.loads(pickle.dumps(forest)), forest)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: type(promise).__name__)
def test_results_of_passes_are_read_as_they_were_or_not_kept(promise):
    result = PassResult(FORESTS[0], (promise, promises.Exact()), {"leaves": [1, 2.5], "note": "é"})
    content = printed_result(result)
    assert (content is None) == isinstance(promise, promises.EveryPath)  # Ranges have no text here.
    assert content is None or same(read_result(content), result)
    assert same(pickle.loads(pickle.dumps(result)).promises, result.promises)


def test_all_promises_are_here():
    assert {type(promise) for promise in PROMISES} == set(promises.CHECKS)


def test_a_trial_keeps_its_fields(tmp_path):
    score = Score(0.5, 0.25, 7, 0.125, 0.0625, "R squared")
    trial = Trial(
        3, "complete", {"a": 1, "b": "x", "c": 0.5, "d": None, "e": True}, {"estimate": {"lut": 3.0}}, {"lut": 2.5},
        score, replace(score, lost=None), True, "why", "forestc compile", {"train": 0.5}, True,
    )  # fmt: skip
    assert all(getattr(trial, field.name) != getattr(Trial(0, "running"), field.name) for field in fields(Trial))
    goals, limits = (Goal("lut", False, "LUTs"),), (Limit("accuracy", True, 0.5),)
    write_request(tmp_path, goals, limits, {})
    write_trial(tmp_path, trial)
    study = open_study(tmp_path)
    assert same((study.goals, study.limits, tuple(study.trials)), (goals, limits, (trial,)))
    assert same(pickle.loads(pickle.dumps(trial)), trial)


def test_a_folder_keeps_the_forests(tmp_path):
    model = replace(FORESTS[0], provenance=Provenance("library", "1.2", "ab"))
    X = np.zeros((4, 10))
    made = forestc.compile(model, X, tmp_path / "out", targets="c", missing="always").design
    read = forestc.open_design(tmp_path / "out")
    assert read.model.always_missing and read.model.carried == model.carried
    assert same(read.model, made.model) and same(read.forest, made.forest)
