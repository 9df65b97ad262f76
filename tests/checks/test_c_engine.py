"""Tests that the C engine compares everything in a header with the encoder and the evaluator: words, codes of names,
scores."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from models import trained
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from thinned import only, thinned

import forestc
from forestc.backends.c.options import COptions
from forestc.cli import main
from forestc.commands.check import check
from forestc.errors import OptionError
from forestc.toolchain.compilers import STRICT, c_compiler

COLORS = {"xgboost": "blue \\", "lightgbm": "blü", "sklearn": 'b"?'}
CATEGORICAL = {
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=6, max_depth=3, enable_categorical=True),
    "lightgbm": lambda: lightgbm.LGBMClassifier(
        n_estimators=6, num_leaves=7, min_child_samples=3, cat_smooth=1, min_data_per_group=2, verbose=-1
    ),
    "sklearn": lambda: HistGradientBoostingClassifier(max_iter=6, categorical_features="from_dtype"),
}


@cache
def categorical(library):
    """Trains a model on a frame with a text category, integers past 16 bits, fractions, and missing values."""
    random = np.random.default_rng(0)
    names = ["red", "green", COLORS[library], "a b"]
    count = 400
    frame = pd.DataFrame(
        {
            "color": pd.Categorical(random.choice(names, count), categories=names),
            "weight": random.normal(size=count),
            "steps": random.integers(-1000, 200_000, count).astype(float),
            "level": random.integers(0, 9, count).astype(float),
        }
    )
    truth = ((frame.color == "red") ^ (frame.weight > 0) ^ (frame.steps > 90_000) ^ (frame.level > 4)).astype(int)
    frame.loc[::7, "weight"] = np.nan
    frame.loc[::9, "color"] = np.nan
    return CATEGORICAL[library]().fit(frame, truth), frame, truth


@pytest.mark.parametrize("library", CATEGORICAL)
@pytest.mark.parametrize(("inputs", "row"), [("words", "auto"), ("struct", "float"), ("struct", "double")])
def test_names_of_categories_and_rows_become_words(library, inputs, row, tmp_path):
    model, frame, truth = categorical(library)
    made = forestc.compile(
        model, frame, tmp_path / "d", label=truth, targets=("c",), c_inputs=inputs, c_quantizer=row, name="cats"
    )
    result = check(made.design, frame, label=truth, engines=["c"], random_rows=2000)
    assert result.ok and result.engines["c"].vectors > 3_000
    text = (tmp_path / "d" / "c" / "cats.h").read_text()
    assert "cats_x0_color_code(const char *name)" in text
    expected = {"auto": "float" if library == "xgboost" else "double"}.get(row, row)
    assert f"cats_quantize(const {expected} row[CATS_COLUMNS]" in text
    if inputs == "struct":
        assert re.search(r"uint8_t x0_color;\n    \w+ x1_weight;\n    u?int32_t x2_steps;\n    uint8_t x3_level;", text)


MUTANTS = [
    (r"shift \+ fraction\) - (\d+)", lambda m: f"shift + fraction) - {int(m[1]) - 1}"),
    (r" \+ up;", lambda m: ";"),
    (r"== UINT32_C\(2139095040\)\) \? 32", lambda m: "== UINT32_C(2139095040)) ? -99"),
    (r"UINT32_C\(0\), UINT32_C\((\d+)\)", lambda m: f"UINT32_C(1), UINT32_C({m[1]})"),
    (r"word = absent;", lambda m: "word = absent - 1;"),
    (r"above != -code", lambda m: "above == -1"),
    (r"cats_row_bits\(&row\[2\]\)", lambda m: "cats_row_bits(&row[3])"),
    (r'"red"', lambda m: '"rot"'),
    (r"code = 4;", lambda m: "code = 3;"),
    (r"return \(a\[k\] == b\[k\]\)", lambda m: "return (1)"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Writes a header with every part of a quantizer of float rows: fixed point of either sign, integer
    codes, names."""
    random = np.random.default_rng(3)
    names = ["red", "green", "blue"]
    frame = pd.DataFrame(
        {
            "color": pd.Categorical(random.choice(names, 300), categories=names),
            "weight": random.normal(size=300),
            "steps": random.integers(0, 200, 300).astype(float),
            "level": random.integers(0, 9, 300).astype(float),
        }
    )
    frame.loc[::9, "color"] = np.nan
    truth = ((frame.color == "red") ^ (frame.weight > 0) ^ (frame.steps > 90) ^ (frame.level > 4)).astype(int)
    model = CATEGORICAL["sklearn"]().fit(frame, truth)
    out = tmp_path_factory.mktemp("whole") / "d"
    forestc.compile(model, frame, out, label=truth, targets=("c",), c_quantizer="float", name="cats")
    return out, frame


def small(kind):
    """Returns a model of a few trees with its rows and labels. More trees take longer to compile and test
    nothing new."""
    model, X, y = trained(kind)
    return clone(model).set_params(n_estimators=3, max_depth=3).fit(X, y), X, y


def assert_found(header, pattern, change, rows):
    """Asserts that the check of the folder finds a change of its header."""
    good = header.read_text()
    assert re.search(pattern, good)
    try:
        header.write_text(re.sub(pattern, change, good, count=1))
        result = check(header.parents[1], rows, engines=["c"], random_rows=100)
    finally:
        header.write_text(good)
    assert result.engines["c"].differences > 0 and not result.ok


@pytest.mark.parametrize("mutant", only(range(len(MUTANTS)), *range(0, len(MUTANTS), 2)))
def test_planted_errors_in_a_quantizer_are_found(whole, mutant):
    folder, frame = whole
    assert_found(folder / "c" / "cats.h", *MUTANTS[mutant], frame)


def test_several_targets_and_float64_models_take_structs(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    several = RandomForestClassifier(4, max_depth=5, random_state=0).fit(X, np.stack([y > 140, y > 200], axis=1))
    wide = lightgbm.LGBMRegressor(n_estimators=9, verbose=-1).fit(X, y)
    for model, name in ((several, "several"), (wide, "wide")):
        options = {
            "targets": ("c",),
            "c_inputs": "struct",
            "passes": "simplify,quantize-inputs{input=ordered},simplify",
        }
        made = forestc.compile(model, X, tmp_path / name, name=name, **options)
        assert check(made.design, X, engines=["c"]).ok
    text = (tmp_path / "wide" / "c" / "wide.h").read_text()
    assert "int64_t x0" in text and "const double row" in text


VALUE_MUTANTS = [
    (r"UINT32_C\(2147483648\), UINT32_C\(2101", lambda m: "UINT32_C(2147483648), UINT32_C(2100"),
    (r"2977044472", lambda m: "2977000000"),
    (r"/ 3u", lambda m: "/ 2u"),
    (r"\* power\) >> 33", lambda m: "* power) >> 32"),
    (r"distance \* rate,", lambda m: "distance * (rate + (rate >> 16)),"),
    (r"\(t >> 27\)", lambda m: "(t >> 26)"),
    (r"return \(a > b\) \?", lambda m: "return (a < b) ?"),
    (r"best = \(scores\[k\] > ", lambda m: "best = (scores[k] < "),
    (r"\+ \(total >> 1\)\) / total", lambda m: ") / (total + 64u)"),
]


@pytest.fixture(scope="module")
def softmax(tmp_path_factory):
    model, X, y = trained("boosting-multi")
    out = tmp_path_factory.mktemp("softmax") / "d"
    forestc.compile(model, X, out, label=y, targets=("c",), name="m", scores=0.001)
    return out, X


@pytest.mark.parametrize("mutant", thinned(range(len(VALUE_MUTANTS)), keep=2))
def test_planted_errors_in_probabilities_are_found(softmax, mutant):
    folder, X = softmax
    assert_found(folder / "c" / "m.h", *VALUE_MUTANTS[mutant], X[:300])


@pytest.mark.parametrize("values", ["q15", "q31", "float"])
def test_probabilities_that_are_all_zero_are_found(values, tmp_path):
    """Checks zeros: some probabilities are rightly rounded to zero, but a zero must not pass for the others."""
    model, X, y = small("forest-multi")
    forestc.compile(model, X, tmp_path / "d", label=y, targets=("c",), name="SCORE_m", c_values=values)
    change = (r"(_probabilities\([^)]*\)\n\{)(.*?)\n\}\n", r"\1 memset(out, 0, sizeof out[0] * 3); (void)x; }\n")
    header = tmp_path / "d" / "c" / "SCORE_m.h"
    assert check(tmp_path / "d", X[:50], engines=["c"], random_rows=10).ok
    header.write_text(header.read_text().replace("#include <stdint.h>", "#include <stdint.h>\n#include <string.h>"))
    assert_found(header, f"(?s){change[0]}", change[1], X[:50])


@pytest.mark.parametrize("values", only(["q15", "q31", "float"], 0, 2))
def test_a_header_gives_the_probabilities_that_the_library_shows(values, tmp_path):
    """Runs a program of its own on raw rows: it quantizes, then compares probabilities with predict_proba."""
    model, X, y = small("xgboost-multi")
    X = X.astype(np.float32)
    forestc.compile(model, X, tmp_path / "d", label=y, targets=("c",), name="m", scores=0.002, c_values=values)
    kind, step = {"q15": ("uint16_t", 2.0**-15), "q31": ("uint32_t", 2.0**-31), "float": ("float", 1.0)}[values]
    (tmp_path / "main.c").write_text(
        f"""#include <stdio.h>
#include "d/c/m.h"
int main(void) {{
    static float row[M_COLUMNS]; static m_word x[M_INPUTS]; {kind} p[M_PROBABILITIES];
    while (fread(row, sizeof row[0], M_COLUMNS, stdin) == M_COLUMNS) {{
        m_quantize(row, x);
        m_probabilities(x, p);
        fwrite(p, sizeof p[0], M_PROBABILITIES, stdout);
    }}
    return 0;
}}
"""
    )
    subprocess.run([c_compiler(), *STRICT, "-O1", "main.c", "-o", "m"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "m"], input=X.tobytes(), capture_output=True, check=True).stdout
    got = np.frombuffer(out, np.dtype(kind.removesuffix("_t").replace("float", "f4"))).reshape(len(X), 10) * step
    assert np.abs(got - model.predict_proba(X)).max() <= 0.002 + 2.0**-15
    assert np.array_equal(got.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("shift", only(range(3), 0))
def test_regressions_give_their_value_and_links_without_a_function_give_scores_alone(shift, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    kinds = {
        "poisson": HistGradientBoostingRegressor(loss="poisson", max_iter=4),
        "gamma": lightgbm.LGBMRegressor(objective="gamma", n_estimators=4, verbose=-1),
        "several": RandomForestRegressor(4, max_depth=4, random_state=0),
        "logistic": xgboost.XGBRegressor(objective="reg:logistic", n_estimators=5, max_depth=3),
        "isolation": IsolationForest(n_estimators=5, random_state=0),
    }
    for place, (name, model) in enumerate(kinds.items()):
        truth = {"several": np.stack([y, -y / 1000], axis=1), "logistic": y / y.max()}.get(name, y)
        model.fit(X, truth)
        values = ("q15", "q31", "float")[(place + shift) % 3]
        made = forestc.compile(model, X, tmp_path / name, targets=("c",), name=name, c_values=values)
        text = (tmp_path / name / "c" / f"{name}.h").read_text()
        called = {"several": "several_values(", "isolation": "isolation_probabilities("}.get(name, f"{name}_value(")
        assert (called in text) == (name != "isolation")
        assert ("floating-point arithmetic but" in text) == (values == "float" and name != "isolation")
        assert check(made.design, X[:60], engines=["c"], random_rows=300).ok
    forestc.compile(kinds["poisson"], X, tmp_path / "none", targets=("c",), c_values="none", name="bare")
    assert "bare_value" not in (tmp_path / "none" / "c" / "bare.h").read_text()


def test_averages_give_probabilities_and_medians_values(tmp_path):
    X, y = load_iris(return_X_y=True)
    base = RandomForestClassifier(4, max_depth=3, random_state=0)
    models = {
        "two": (CalibratedClassifierCV(base, cv=3), y == 1, "two_probabilities("),
        "three": (CalibratedClassifierCV(base, cv=3, method="isotonic"), y, "three_probabilities("),
        "median": (AdaBoostRegressor(n_estimators=5, random_state=0), X[:, 0] * y, "median_value("),
        "vote": (VotingClassifier([("a", base), ("b", base)]), y, "vote_predict("),
    }
    for (name, (model, truth, function)), values in zip(models.items(), ("q15", "q31", "float", "q31"), strict=True):
        options = {"targets": "c", "name": name, "c_values": values}
        made = forestc.compile(model.fit(X, truth), X, tmp_path / name, label=truth, **options)
        text = made.design.path("c").read_text()
        assert function in text and ("_PROBABILITIES " in text) == ("probabilities" in function)
        assert check(made.design, X, engines=["c"], random_rows=500).ok


def test_the_command_line_and_the_manifest_hold_the_options(tmp_path, capfd):
    model, X, _ = trained("xgboost-binary")
    model.save_model(tmp_path / "m.json")
    np.save(tmp_path / "rows.npy", X)
    paths = [str(tmp_path / "m.json"), "--rows", str(tmp_path / "rows.npy"), "-o", str(tmp_path / "d")]
    for quantizer, has in (("none", False), ("double", True)):
        with pytest.raises(SystemExit) as caught:
            main(
                [
                    "compile",
                    *paths,
                    "--target",
                    "c",
                    "--c-inputs",
                    "struct",
                    "--c-quantizer",
                    quantizer,
                    "--c-values",
                    "q15",
                ]
            )
        assert caught.value.code in (0, None)
        design = forestc.open_design(tmp_path / "d")
        assert replace(design.c_options, c_layout="auto") == COptions(
            c_inputs="struct", c_quantizer=quantizer, c_values="q15"
        )
        text = next((tmp_path / "d" / "c").iterdir()).read_text()
        assert ("_quantize(const double row" in text) == has
        assert ("<float.h>" in text) == has
    with pytest.raises(OptionError, match=r"c_inputs=: .*needs no quantizer; use c_inputs=words or struct"):
        forestc.compile(model, X, tmp_path / "e", targets=("c",), c_inputs="float", c_quantizer="double")
    with pytest.raises(OptionError, match=r"c_values=: .*; known: none, q15, q31, float"):
        forestc.compile(model, X, tmp_path / "e", targets=("c",), c_values="q7")
    with pytest.raises(OptionError, match=r"c_quantizer=: .*; known: auto, none, float, double"):
        forestc.compile(model, X, tmp_path / "e", targets=("c",), c_quantizer="half")
