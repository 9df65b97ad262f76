"""Tests that the form of a design's page answers as the design does, words of categories too."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import forestc
from forestc.report.page.form import form_blocks

ELEMENT = "{ addEventListener(type, run) { this.f = run } }"
PAGE = f"const E = {{}}; const document = {{ getElementById: (i) => E[i] || (E[i] = {ELEMENT}) }};"
TYPE = "E.row.value = text; E.row.f(); console.log(E.answer.textContent.split('\\n')[0]);"


def test_the_form_answers_as_the_design(tmp_path, need_tool):
    need_tool("node")
    source = np.random.default_rng(0)
    X = pd.DataFrame({"age": source.integers(18, 80, 300), "city": source.choice(["Bern", "Basel", "St. Gallen"], 300)})
    X["income"] = np.where(np.arange(300) % 7, source.normal(size=300), np.nan)
    y = np.where((X.city == "Basel") ^ (X.income.fillna(0) > 0.2), "a", np.where(X.age > 50, "b", "c"))
    columns = [("numbers", SimpleImputer(), ["age", "income"])]
    columns.append(("words", OneHotEncoder(handle_unknown="ignore"), ["city"]))
    steps = [("columns", ColumnTransformer(columns)), ("forest", RandomForestClassifier(20, random_state=0))]
    design = forestc.compile(Pipeline(steps).fit(X, y), X, tmp_path / "out", label=y, targets="c").design
    rows = pd.DataFrame({"age": [50, 30, 41], "city": ["Lugano", "St. Gallen", "Basel"], "income": [0.3, np.nan, -2]})
    typed = ["50, Lugano,0.3", '30;"St. Gallen";nan', "41\tBasel\t-2", "a,Bern,1", ",Bern,1", "1 2"]
    (form,) = form_blocks(design.forest)
    (tmp_path / "form.js").write_text(f"{PAGE}{form.script}for (const text of {json.dumps(typed)}) {{ {TYPE} }}")
    done = subprocess.run(["node", tmp_path / "form.js"], capture_output=True, text=True, check=True)
    *answers, words, missing, short = done.stdout.splitlines()
    assert answers == [f"class {label}" for label in design.predict(rows)]
    assert (words, short) == ("age: a is not a number", "2 of 3 values")
    assert missing == "age is missing, and may not be"
