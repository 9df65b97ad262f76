"""Tests raw inputs of C through the complete compiler: compile, check, measure, and rows that do not fit."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from thinned import only

import forestc
from forestc.errors import OptionError, RowsError

TYPES = "adc=int16,temp=int8,level=uint8,*=float"


@pytest.fixture(scope="module")
def given():
    """Makes rows of sensors: integers, a float that may be missing, a category, and integers too large for float32."""
    random = np.random.default_rng(0)
    count = 500
    rows = pd.DataFrame(
        {
            "adc": random.integers(-20_000, 20_000, count),
            "temp": random.integers(-40, 85, count),
            "flow": random.normal(size=count),
            "level": random.integers(0, 6, count),
            "ticks": random.integers(1 << 24, 1 << 30, count),
        }
    )
    rows.loc[::9, "flow"] = np.nan
    truth = ((rows.adc > 1000) ^ (rows.temp < 20) ^ (rows.flow > 0) ^ rows.level.isin([1, 4])).astype(int)
    model = HistGradientBoostingClassifier(max_iter=12, categorical_features=["level"], random_state=0)
    return model.fit(rows, truth), rows, truth


@pytest.mark.parametrize("layout", only(["branches", "ranked", "nodes"], 0))
def test_a_design_on_sensors_is_exact(given, layout, tmp_path, need_tool):
    need_tool("arm-none-eabi-gcc")
    model, rows, truth = given
    options = {"targets": "c", "c_inputs": "raw", "c_types": f"{TYPES},ticks=uint32", "c_layout": layout}
    made = forestc.compile(model, rows, tmp_path / "d", label=truth, name="m", **options).design
    text = made.path("c").read_text()
    assert made.manifest["options"]["c"]["types"] == "1=int16,2=int8,4=uint8,5=uint32,*=float"
    assert "    int8_t x1_temp;\n    float x2_flow;\n    uint8_t x3_level;" in text
    assert "x->x2_flow flow: float, NaN means missing" in text
    assert forestc.check(made, rows, label=truth, engines=["c"], random_rows=3000).ok
    wrong = rows.copy().astype(float)
    wrong.loc[[2, 7], "temp"] = [20.5, 128]
    result = forestc.check(made, wrong, label=truth, engines=["c"], random_rows=10)
    note = "c: left out 2 rows that the types of its inputs do not hold, as row 3, 'temp' = 20.5 is no int8_t"
    assert result.ok and result.notes == (note,) and result.figures["notes"] == [note]
    found = forestc.measure(made, "cortex-m0plus", wrong, compiler="gcc", entries=["predict", "scores"])
    assert found["differences"] == 0 and found["rows"] == 498
    assert found["notes"] == [
        "left out 2 of 500 rows that the types of the inputs do not hold: 'temp' = 20.5 is no int8_t"
    ]


def test_rows_of_which_none_fits_are_all_left_out(given, tmp_path):
    model, rows, truth = given
    options = {"targets": "c", "c_inputs": "raw", "c_types": f"{TYPES},ticks=uint32", "c_layout": "nodes"}
    made = forestc.compile(model, rows, tmp_path / "d", label=truth, **options).design
    result = forestc.check(made, rows.assign(temp=20.5), engines=["c"], random_rows=10)
    assert result.ok and result.notes[0].startswith("c: left out 500 rows")


def test_a_planted_error_is_found_with_its_row(given, tmp_path):
    model, rows, truth = given
    types = {"c_inputs": "raw", "c_types": f"{TYPES},ticks=uint32"}
    made = forestc.compile(model, rows, tmp_path / "d", label=truth, targets="c", **types).design
    header = made.path("c")
    header.write_text(header.read_text().replace("x->x1_temp < ", "x->x1_temp <= ", 1))
    result = forestc.check(made, rows, label=truth, engines=["c"])
    assert result.engines["c"].differences and " vector " in result.engines["c"].first
    assert "row [" in result.engines["c"].first


def test_what_does_not_fit_is_refused(given, tmp_path):
    model, rows, truth = given

    def compile_with(types, **more):
        forestc.compile(
            model, more.pop("rows", rows), tmp_path / "d", targets="c", c_inputs="raw", c_types=types, **more
        )

    with pytest.raises(RowsError, match=r"rows=: row 1, 'adc' = .* is no uint8_t"):
        compile_with("adc=uint8", label=truth)
    with pytest.raises(RowsError, match="row 1, 'flow' = nan is no int32_t"):
        compile_with("flow=int32", label=truth)
    with pytest.raises(OptionError, match=r"c_types=: 'temperature' .* such as 'adc', 'temp'"):
        compile_with("temperature=int8", label=truth)
    ranges = dict.fromkeys(rows, (0, 100))
    with pytest.raises(
        RowsError, match="feature 'temp': its range has other values than int8_t; give a range of whole"
    ):
        compile_with("temp=int8", rows=None, ranges=ranges)


def test_the_command_line_takes_types(given, tmp_path, run):
    rows = given[1].astype(float).drop(columns="flow")
    import xgboost

    xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(rows, given[2]).save_model(tmp_path / "m.json")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    _, out, _ = run("compile m.json --rows rows.csv -o d --target c --c inputs=raw,types=*=int32 --json")
    assert json.loads(out)["targets"] == ["c"]
    text = (tmp_path / "d" / "c" / "m.h").read_text()
    assert (
        "typedef int32_t m_word;" in text
        and "they are never missing; those it reads:\n *   x[0] adc: int32_t\n" in text
    )
