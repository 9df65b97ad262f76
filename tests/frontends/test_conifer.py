"""Tests that conifer's JSON is read as conifer's own emulator evaluates it."""

from __future__ import annotations

import json
import os
import random
import shlex
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import conifer_emulator
import numpy as np
import pytest
from conifer_models import model, rows, text
from mutations import mutated_bytes, mutated_document, reads_whole

from forestc import check, compile, evaluate
from forestc.checks.proof.whole import equal_everywhere
from forestc.cli import main
from forestc.errors import ForestcError, ModelError, OptionError
from forestc.forest.evaluate import encode_numbers, evaluate_words
from forestc.forest.numbers import Fixed, parse_number_type, round_to
from forestc.forest.text import parse_forest, print_forest
from forestc.frontends import load, read_bytes
from forestc.lowering.trees import LoweringOptions, lower
from forestc.passes import passes_from

CASES = json.loads((Path(__file__).parents[1] / "cases" / "conifer.json").read_text())
SMALL = CASES[3]["model"]  # adds one by one, halves up, saturates


def read(tmp_path, given, **options):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(given))
    return load(path, **options)


def exact(forest):
    for one in passes_from("quantize-inputs{exact=true},round-leaves{exact=true}", None, 0):
        forest = one.run(forest, None).forest
    return forest


@pytest.mark.each_case
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"]["config"]["score_precision"])
def test_scores_are_those_of_the_emulator(case, tmp_path):
    forest, X, scores = read(tmp_path, case["model"], sum=case["order"]), np.array(case["rows"]), case["scores"]
    assert (evaluate(forest, X).values == scores).all()
    whole = exact(forest)
    assert (evaluate_words(whole, encode_numbers(whole, X)).values == scores).all()
    own = parse_number_type(str(forest.features[0].raw))
    assert {feature.number for feature in whole.features} == {own.grid}
    assert print_forest(parse_forest(print_forest(whole))) == print_forest(whole)


@pytest.mark.each_case
@pytest.mark.parametrize("outputs", ["auto", "margins", "leaves", "top2"])
@pytest.mark.parametrize("case", CASES[6:], ids=lambda case: case["model"]["config"]["score_precision"])
def test_designs_of_typed_sums(case, outputs, tmp_path):
    forest = read(tmp_path, case["model"], sum=case["order"])
    assert forest.aggregate.kind == "typed"
    given = {"level": 0, "targets": "verilog,c", "outputs": outputs, "sum": case["order"]}
    if outputs == "top2" and not forest.decides:
        with pytest.raises(ForestcError, match="top2"):
            compile(tmp_path / "m.json", None, tmp_path / "out", **given)
        return
    design = compile(tmp_path / "m.json", None, tmp_path / "out", **given).design
    result = check(design, np.array(case["rows"]), engines=["netlist", "c"], prove=True)
    assert result.proof.proved and all(engine.differences == 0 for engine in result.engines.values())
    own = evaluate(forest, np.array(case["rows"]))
    whole = design.forest
    values = evaluate_words(whole, encode_numbers(whole, np.array(case["rows"]))).values
    if outputs == "leaves":
        assert (values == own.leaves).all()
    else:
        assert (values == case["scores"]).all()


def test_a_proof_refuses_another_norm():
    forest = exact(read_bytes(json.dumps(CASES[9]["model"]).encode(), "m.json"))
    netlist = lower(forest, LoweringOptions())
    assert equal_everywhere(forest, netlist, 60) is None
    other = replace(forest, aggregate=replace(forest.aggregate, norm=forest.aggregate.norm + 0.0625))
    assert equal_everywhere(other, netlist, 60)


@pytest.mark.each_case
@pytest.mark.skipif(isinstance(conifer_emulator.includes(), str), reason=str(conifer_emulator.includes()))
@pytest.mark.parametrize("seed", range(int(os.environ.get("CONIFER_MODELS", "2"))))
def test_made_models_against_the_emulator(seed, tmp_path):
    rng = np.random.default_rng(seed)
    modes = rng.choice(["AP_TRN", "AP_RND", "AP_RND_CONV"], 2), rng.choice(["AP_SAT", "AP_WRAP"], 2)
    bits, wide, signed = int(rng.integers(3, 19)), int(rng.integers(4, 20)), bool(rng.random() < 0.8)
    kind = Fixed(bits, int(rng.integers(-2, bits + 3)), signed, modes[0][0], modes[1][0])
    types = {"input": kind, "threshold": kind}
    types["score"] = Fixed(wide, int(rng.integers(0, wide - 1)), True, modes[0][1], modes[1][1])
    order, convention = str(rng.choice(["sequential", "tree"])), rng.choice(["<", "<="])
    rounds, classes = int(rng.integers(1, 12)), int(rng.integers(2, 5))
    reach = float(rng.choice([0.9 / (rounds + 1), 0.6]))  # sums overflow, or can't
    step = 2.0 ** -types["score"].fraction
    norm = float(rng.choice([1, step * rng.integers(1, 1 << wide - 1), max(step, 0.5)]))
    given = model(rng, types, rounds=rounds, classes=classes, reach=reach, convention=str(convention), norm=norm)
    X = rows(rng, given, kind, 20_000)
    program = conifer_emulator.build(tmp_path, {role: text(one) for role, one in types.items()}, order)
    scores = conifer_emulator.scores(program, given, X)
    forest = read(tmp_path, given, sum=order)
    assert (evaluate(forest, X).values == scores).all()
    whole = exact(forest)
    assert (evaluate_words(whole, encode_numbers(whole, X)).values == scores).all()
    outputs = "both" if forest.decides else "scores"
    made = compile(
        tmp_path / "m.json", None, out=tmp_path / "out", level=0, targets="verilog,vhdl,c", outputs=outputs, sum=order
    )
    assert (evaluate_words(made.design.forest, encode_numbers(made.design.forest, X)).values == scores).all()
    engines = check(made.design, X, engines=["netlist", "verilator", "ghdl", "c"]).engines
    assert all(engine.differences == 0 and engine.vectors >= len(X) for engine in engines.values())


def test_the_oldest_schema_is_read(tmp_path):
    given = deepcopy(SMALL)
    given["Config"] = {"Backend": "cpp", "Precision": "ap_fixed<9, 5, AP_RND, AP_SAT>"}
    del given["config"]
    forest = read(tmp_path, given)
    assert {str(feature.raw) for feature in forest.features} == {"ap_fixed<9,5,AP_RND,AP_SAT>"}
    assert not any(feature.named for feature in forest.features)


def test_names_types_and_versions_are_taken(tmp_path):
    given = SMALL | {"feature_map": {"pt": 0, "eta": 1, "phi": 2}, "metadata": [{"version": "1.2"}]}
    forest = read(tmp_path, given, ap_types="input=ap_fixed<8,4>,threshold=ap_fixed<8,4>")
    assert {"pt", "eta", "phi"} >= {feature.name for feature in forest.features}
    assert {feature.raw for feature in forest.features} == {Fixed(8, 4, True, overflow="AP_WRAP")}
    assert forest.provenance.version == "1.2"


def test_without_types_all_is_float(tmp_path):
    forest = read(tmp_path, {key: value for key, value in SMALL.items() if key != "config"})
    assert forest.aggregate.precision == "float32" and {str(f.raw) for f in forest.features} == {"float32"}
    assert any("ap_types" in note for note in forest.figures()["notes"])


@pytest.mark.each_case
@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [
        (0.75, "AP_TRN", 0.5), (0.75, "AP_RND", 1.0), (0.75, "AP_RND_CONV", 1.0), (0.25, "AP_RND_CONV", 0.0),
        (-0.25, "AP_TRN", -0.5), (-0.25, "AP_RND", 0.0), (-0.75, "AP_RND_CONV", -1.0),
        (-1e-300, "AP_TRN", -0.5), (-1e-300, "AP_RND", 0.0),
    ],
)  # fmt: skip
def test_rounding(value, mode, expected):
    assert round_to(np.array([value]), Fixed(4, 1, True, mode)) == expected


@pytest.mark.each_case
@pytest.mark.parametrize(("value", "saturated", "wrapped"), [(4.0, 3.5, -4.0), (-4.5, -4.0, 3.5), (1e300, 3.5, 0.0)])
def test_overflow(value, saturated, wrapped):
    assert round_to(np.array([value]), Fixed(4, 1, True)) == saturated
    assert round_to(np.array([value]), Fixed(4, 1, True, overflow="AP_WRAP")) == wrapped


def broken(change):
    given = deepcopy(SMALL)
    change(given, given["trees"][1][0])
    return given


REFUSED = {
    "oblique": (lambda m, t: t.update(weight=[[0.5, 0.5, 0]] * len(t["feature"])), r"trees\[1\]\[0\].*oblique"),
    "count": (lambda m, t: m.update(n_trees=7), "n_trees"),
    "lengths": (lambda m, t: t["value"].pop(), r"trees\[1\]\[0\].*differ in length"),
    "child": (lambda m, t: t["children_left"].__setitem__(0, 99), r"trees\[1\]\[0\].*outside"),
    "cycle": (lambda m, t: t["children_left"].__setitem__(0, 0), r"trees\[1\]\[0\], node 0.*cycle"),
    "column": (lambda m, t: t["feature"].__setitem__(0, 9), "column 9 of 3"),
    "sign": (lambda m, t: m.update(splitting_convention=">"), "splitting_convention"),
    "mode": (lambda m, t: m["config"].update(score_precision="ap_fixed<9,5,AP_RND_ZERO>"), "AP_RND_ZERO.*ap_types"),
    "names": (lambda m, t: m.update(feature_map={"a": 0, "b": 0}), "two names"),
    "norm": (lambda m, t: m.update(norm=0.01), "norm 0.01.*ap_types"),
    "finite": (lambda m, t: m.update(init_predict=[1e999]), "init_predict"),
}  # fmt: skip


@pytest.mark.each_case
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_named(name, tmp_path):
    change, message = REFUSED[name]
    with pytest.raises(ModelError, match=message):
        read(tmp_path, broken(change))


@pytest.mark.each_case
@pytest.mark.parametrize("types", ["input=int3", "weight=float", "score", "score=ap_fixed<99,5>"])
def test_types_that_are_not_read_are_refused(types, tmp_path):
    with pytest.raises(OptionError) as caught:
        read(tmp_path, SMALL, ap_types=types)
    assert "--ap-types" in caught.value.parts[0]


def test_the_recorded_command_makes_the_same_design(tmp_path):
    read(tmp_path, SMALL)
    types = {"score": "ap_fixed<10, 6, AP_RND, AP_SAT>", "input": "ap_fixed<9,5>", "threshold": "ap_fixed<9,5>"}
    given = {"level": 0, "targets": "c", "ap_types": types, "sum": "tree"}
    design = compile(tmp_path / "m.json", None, tmp_path / "out", **given).design
    options, made = design.manifest["made"]["options"], tmp_path / "again"
    assert (options["ap_types"], options["sum"]) == (",".join(f"{k}={v}" for k, v in types.items()), "tree")
    words = shlex.split(design.manifest["made"]["command"])[1:]
    words[words.index("-o") + 1], words[words.index("m.json")] = str(made), str(tmp_path / "m.json")
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    assert (made / "quantized.forest").read_text() == (tmp_path / "out" / "quantized.forest").read_text()


def test_other_models_take_no_types():
    forest = Path(__file__).parents[1] / "cases" / "small.forest"
    for option in ({"ap_types": "score=float"}, {"sum": "tree"}):
        with pytest.raises(OptionError, match="not conifer"):
            load(forest, **option)


def test_damaged_files_are_refused_in_one_line():
    source, count = random.Random(1), 1000
    data = json.dumps(SMALL).encode()
    whole = sum(reads_whole(read_bytes, mutated_document(SMALL, source)) for _ in range(count))
    whole += sum(reads_whole(read_bytes, mutated_bytes(data, source)) for _ in range(count))
    assert 0 < whole < 2 * count


def test_hostile_files_are_refused(tmp_path):
    deep = {"feature": [0] * 60_000 + [-2], "threshold": [0.0] * 60_001, "value": [0.0] * 60_001}
    deep |= {"children_left": [*range(1, 60_001), -1], "children_right": [*range(1, 60_001), -1]}
    for change in ({"n_features": 1 << 40}, {"n_classes": 1 << 30}, {"trees": [[deep]] * SMALL["n_trees"]}):
        with pytest.raises(ForestcError) as caught:
            read(tmp_path, SMALL | change)
        assert "\n" not in str(caught.value)
