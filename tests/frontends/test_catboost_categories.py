"""Compares CatBoost models with categories of random settings with their library, on rows on borders, with missing
numbers and unknown categories; and damaged exports."""

from __future__ import annotations

import json
import random
import subprocess
import time
from dataclasses import replace
from typing import Any

import catboost
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from example_counts import examples
from mutations import assert_refused, changed, mutated_bytes, mutated_document, reads_whole
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import forestc
from forestc.backends.names import feature_name
from forestc.forest.hashing import text_hash
from forestc.forest.text import parse_forest, print_forest
from forestc.frontends import read_bytes
from forestc.frontends.shared.merge import side_by_side
from forestc.rows.encode import encode
from forestc.rows.given import rows_from

ROWS = 20_000
KINDS = ("Borders", "Buckets", "BinarizedTargetMeanValue", "Counter")
LOSSES = ("RMSE", "RMSE", "Logloss", "Logloss", "MultiClass", "MultiClassOneVsAll", "Poisson", "YetiRank")
CLASSES = ("Logloss", "MultiClass", "MultiClassOneVsAll")
SPECIAL = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3e38])
CATEGORIES, NUMBERS = ["few", "two", "code", "many"], ["a", "b"]
QUIET = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}


def counters(draw: random.Random, kinds: list[str], several: bool) -> list[str]:
    """Returns descriptions of counters. Two of one type would need the same borders of the target, which an export
    does not tell apart."""
    result = []
    for kind in kinds:
        target = f":TargetBorderCount={draw.choice([1, 1, 3])}" if several and kind != "Counter" else ""
        prior = draw.choice(["", ":Prior=0.3", ":Prior=0:Prior=2.5"])
        result.append(f"{kind}{target}:CtrBorderCount={draw.choice([3, 15, 40])}{prior}")
    return result


def drawn(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    settings: dict[str, Any] = {"random_seed": seed, "iterations": draw.choice([3, 12, 40]), **QUIET}
    settings |= {"depth": draw.choice([1, 3, 4, 6, 8]), "max_ctr_complexity": draw.choice([1, 2, 3])}
    settings |= {"one_hot_max_size": draw.choice([1, 2, 6, 30]), "nan_mode": draw.choice(["Min", "Max"])}
    settings |= {"loss_function": draw.choice(LOSSES), "border_count": draw.choice([5, 64, 254])}
    kinds = [kind for kind in KINDS if draw.random() < 0.5] or ["Borders"]
    for name in ("simple_ctr", "combinations_ctr") if draw.random() < 0.8 else ():
        settings[name] = counters(draw, kinds, settings["loss_function"] in ("RMSE", "Poisson"))
    settings |= {"counter_calc_method": draw.choice(["Full", "SkipTest"])}
    if draw.random() < 0.3 and settings["loss_function"] != "YetiRank":
        settings |= {"grow_policy": draw.choice(["Lossguide", "Depthwise"])}
    return settings


def table(chance: np.random.Generator, count: int, many: int) -> pd.DataFrame:
    numbers = {name: np.round(chance.normal(size=count) * 4) / 4 for name in NUMBERS}
    for values in numbers.values():
        values[chance.random(count) < 0.08] = np.nan
    categories = {
        "few": chance.choice(["u", "v", "w", "ä", "nan", ""], count),
        "two": chance.choice(["no", "yes"], count),
        "code": chance.integers(-3, 12, count),
        "many": [f"k{k}" for k in (many * chance.random(count) ** 2).astype(int)],
    }
    return pd.DataFrame(numbers | categories)[["few", "a", "two", "code", "b", "many"]]


def trained(seed: int, count: int = 2500) -> tuple[Any, pd.DataFrame]:
    """Returns a trained model and its rows."""
    settings, chance = drawn(seed), np.random.default_rng(seed)
    X = table(chance, count, int(chance.choice([2, 40, 900, 5000])))
    sums = np.nan_to_num(X.a) + (X.few == "u") * np.sin(X.code) + (X.two == "yes") * (X.many.str.len() == 2)
    sums = sums.to_numpy() + 0.4 * chance.normal(size=count)
    loss = settings["loss_function"]
    if loss in CLASSES:
        y: Any = np.digitize(sums, [0.3] if loss == "Logloss" else [-0.5, 0.3, 1])
        y = np.array(["p", "n", "so", "x"])[y]
    else:
        y = np.clip(sums, 0, 4).round() if loss == "YetiRank" else np.abs(sums)
    kind = "Classifier" if loss in CLASSES else "Ranker" if loss == "YetiRank" else "Regressor"
    groups = np.arange(count) // 10 if loss == "YetiRank" else None
    pool = catboost.Pool(X, y, cat_features=CATEGORIES, group_id=groups)
    model = getattr(catboost, f"CatBoost{kind}")(**settings)
    return model.fit(pool), X


def hard_rows(forest: Any, X: pd.DataFrame, seed: int, count: int = ROWS) -> pd.DataFrame:
    """Returns rows on borders, with missing numbers and unknown categories."""
    chance = np.random.default_rng(seed)
    rows = X.iloc[chance.integers(0, len(X), count)].reset_index(drop=True)
    mixed = X.iloc[chance.integers(0, len(X), count)].reset_index(drop=True)
    borders = {f.name: forest.conditions.thresholds(index) for index, f in enumerate(forest.features)}
    for member in (member for hashed in forest.hashed for member in hashed.members if member.kind == "from"):
        borders[member.name] = np.append(borders.get(member.name, []), member.value)
    for name in NUMBERS:
        if len(borders.get(name, ())):
            on = chance.choice(np.minimum(borders[name], np.finfo(np.float32).max), count).astype(np.float32)
            step = chance.integers(-1, 2, count)
            with np.errstate(over="ignore"):
                beside = np.nextafter(on, np.where(step < 0, -np.inf, np.inf).astype(np.float32))
            rows[name] = np.where(chance.random(count) < 0.5, np.where(step == 0, on, beside), rows[name])
        rows[name] = np.where(chance.random(count) < 0.04, chance.choice(SPECIAL, count), rows[name])
    for name in CATEGORIES:
        chosen, other = chance.random(count), [7, -99] if name == "code" else ["", "new", "12", "x" * 70]
        rows[name] = rows[name].where(chosen > 0.2, mixed[name])
        rows[name] = rows[name].where(chosen < 0.92, pd.Series(chance.choice(other, count)))
    return rows


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 60))])
@pytest.mark.each_case
def test_random_models_are_equal(seed, tmp_path):
    model, X = trained(seed)
    forest = forestc.load(model)
    rows = hard_rows(forest, X, seed)
    found = forestc.evaluate(forest, rows)
    assert np.array_equal(found.leaves, model.calc_leaf_indexes(rows))
    raw = {} if "Ranker" in type(model).__name__ else {"prediction_type": "RawFormulaVal"}
    assert np.array_equal(found.scores, model.predict(rows, **raw).reshape(found.scores.shape))
    if forest.decides:
        assert np.array_equal(found.decision, model.predict(rows).ravel())
    assert parse_forest(print_forest(forest)).hashed == forest.hashed
    model.save_model(str(tmp_path / "m.json"), format="json")
    text = forestc.load(tmp_path / "m.json")
    assert text.hashed == forest.hashed
    assert np.array_equal(forestc.evaluate(text, rows.to_numpy(dtype=object)).scores, found.scores)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 60, 4))
def test_designs_are_equal(seed, tmp_path):
    model, X = trained(seed)
    forest = forestc.load(model)
    design = forestc.compile(model, hard_rows(forest, X, seed, 3000), tmp_path / "out").design
    checked = forestc.check(design, hard_rows(forest, X, seed + 1, 3000))
    assert checked.ok and {"verilator", "c"} <= checked.engines.keys(), checked


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A model with all four counters, and combinations with each kind of member; its rows, and its export."""
    X, path = table(np.random.default_rng(0), 300, 12), tmp_path_factory.mktemp("export") / "m.json"
    y = (np.nan_to_num(X.a) > 0) * (X.code > 4) + (X.two == "yes") * (X.few == "u")
    settings = {"depth": 5, "iterations": 8, "max_ctr_complexity": 3, "one_hot_max_size": 3, **QUIET}
    settings |= {"simple_ctr": list(KINDS), "combinations_ctr": list(KINDS)}
    for seed in range(40):
        model = catboost.CatBoostRegressor(**settings, random_seed=seed).fit(X, y, cat_features=CATEGORIES)
        pool = catboost.Pool(X, y, cat_features=CATEGORIES)
        model.save_model(str(path), format="json", pool=pool)
        document = json.loads(path.read_bytes())
        ctrs = document["features_info"]["ctrs"]
        members = {element["combination_element"] for ctr in ctrs for element in ctr["elements"]}
        if len(members) == 3 and len({ctr["ctr_type"] for ctr in ctrs}) == 4:
            return model, X, document
    raise AssertionError("no seed gives such a model")


@pytest.fixture(scope="module")
def export(known):
    return known[2]


def test_c_looks_up_codes_of_hashes(known, tmp_path):
    """The hashes are those that CatBoost itself exports."""
    model, X, document = known
    forest = forestc.load(model)
    design = forestc.compile(model, X, tmp_path / "out", targets="c").design
    hashes = {
        pair["value"]: np.uint32(pair["hash"]).astype(np.int32)
        for pair in document["features_info"]["cat_features_hash"]
    }
    rows = hard_rows(forest, X, 1, 200)
    words = encode(design.forest, rows)
    lines, columns = [], {hashed.column: hashed for hashed in forest.hashed}
    for index, feature in enumerate(design.forest.features):
        if feature.column not in columns:
            continue
        members = columns[feature.column].members
        given = dict.fromkeys(
            (member.name, member.kind == "from" and member.value, member.missing) for member in members
        )
        for row in range(len(rows)):
            values = []
            for name, border, missing in given:
                x = rows[name].iloc[row]
                values.append(
                    hashes.get(str(x), 5) if border is False else int(missing if np.isnan(x) else x >= border)
                )
            function = f"{design.forest.name}_{feature_name(index, feature.name)}_code"
            lines.append(f"    wrong += {function}({', '.join(map(str, values))}) != {words[row, index]};")
    assert any(columns[f.column].combined for f in design.forest.features if f.column in columns)
    texts = [
        *hashes,
        *("ß" * (k // 4) + "".join(random.Random(k).choices("az09 _\n\\", k=k - k // 4)) for k in range(150)),
    ]
    for data in (text.encode() for text in texts):
        shown = "".join(f"\\{byte:03o}" for byte in data)
        value = hashes.get(data.decode(), text_hash(data.decode()))
        lines.append(f'    wrong += {design.forest.name}_text_hash("{shown}", {len(data)}u) != {value};')
    (header,) = (tmp_path / "out").rglob("*.h")
    body = "\n".join(lines)
    (tmp_path / "main.c").write_text(
        f'#include "{header}"\nint main(void)\n{{\n    int wrong = 0;\n{body}\n    return wrong != 0;\n}}\n'
    )
    program = tmp_path / "main"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"]
    subprocess.run(["cc", *flags, "-fsanitize=undefined", tmp_path / "main.c", "-o", program], check=True)
    assert subprocess.run([program], check=True, capture_output=True).stderr == b""


@pytest.mark.parametrize("count", [examples(100), pytest.param(2000, marks=pytest.mark.slow)])
def test_damaged_files_have_one_clear_line(export, count):
    source, read, slowest = random.Random(1), 0, 0.0
    parts = {key: export[key] for key in ("features_info", "ctr_data")}
    for number in range(count):
        document = export | json.loads(mutated_document(parts, source)) if number % 2 else export
        data = json.dumps(document).encode()
        start = time.perf_counter()
        read += reads_whole(read_bytes, data if number % 2 else mutated_bytes(data, source))
        slowest = max(slowest, time.perf_counter() - start)
    assert 0 < read < count and slowest < 10


def test_counters_of_a_gpu_are_read_alike(export):
    """FeatureFreq and FloatTargetMeanValue, which train on a GPU alone, count as the two others do."""
    text = json.dumps(export)
    renamed = text.replace("Counter", "FeatureFreq").replace("BinarizedTargetMeanValue", "FloatTargetMeanValue")
    first, second = (print_forest(read_bytes(data.encode(), "m.json")) for data in (text, renamed))
    assert text != renamed and first == second


def test_a_model_that_loses_a_table_is_refused():
    X, counters = (
        table(np.random.default_rng(0), 300, 9),
        ["Borders:TargetBorderCount=1", "Borders:TargetBorderCount=3"],
    )
    model = catboost.CatBoostRegressor(iterations=3, simple_ctr=counters, max_ctr_complexity=1, **QUIET)
    with pytest.raises(forestc.ForestcError, match="with different borders of the target, share a table"):
        forestc.load(model.fit(X, X.code, cat_features=CATEGORIES))


def test_sums_of_models_are_equal():
    X = table(np.random.default_rng(0), 600, 20)
    models = [
        catboost.CatBoostRegressor(iterations=9, random_seed=seed, **QUIET).fit(
            X[seed * 100 :], X.code[seed * 100 :] * (X.two[seed * 100 :] == "no"), cat_features=CATEGORIES
        )
        for seed in range(2)
    ]
    both = catboost.sum_models(models, weights=[0.4, 0.6])
    assert np.array_equal(forestc.evaluate(forestc.load(both), X).scores[:, 0], both.predict(X))


def test_rows_of_many_columns_are_read():
    """forestc keeps the columns that are read, hashed or made."""
    X = table(np.random.default_rng(0), 900, 30)
    others = pd.DataFrame(np.zeros((len(X), 400)), columns=[f"n{k}" for k in range(400)])
    wide = pd.concat([others.iloc[:, :200], X.iloc[:, :3], others.iloc[:, 200:], X.iloc[:, 3:]], axis=1)
    y = (np.nan_to_num(X.a) > 0) * (X.code > 4) + (X.two == "yes") * (X.few == "u")
    settings = {"iterations": 20, "depth": 5, "one_hot_max_size": 3, "max_ctr_complexity": 3, **QUIET}
    model = catboost.CatBoostRegressor(**settings).fit(wide, y, cat_features=CATEGORIES)
    forest = forestc.load(model)
    assert len(forest.carried) < 40 and forest.columns > forest.own_columns == wide.shape[1]
    for rows in (wide, wide.to_numpy(dtype=object), wide[wide.columns[::-1]]):
        assert np.array_equal(forestc.evaluate(forest, rows).scores[:, 0], model.predict(wide))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.assign(few=None), "column 'few' holds 'None', which is no category"),
        (lambda X: X.astype({"code": float}), "which is no category"),
        (lambda X: np.zeros((3, 6)), "the codes of categories don't tell those of combined columns"),
        (lambda X: X.to_numpy(dtype=object)[:, :4], "they have shape"),
    ],
)
def test_rows_without_categories_are_refused(known, change, message):
    with pytest.raises(forestc.ForestcError) as caught:
        forestc.evaluate(forestc.load(known[0]), change(known[1].head(3)))
    assert message in str(caught.value)


def test_files_of_rows_are_read_alike(known, tmp_path):
    model, X, _ = known
    forest = forestc.load(model)
    rows = hard_rows(forest, X, 2, 400)
    rows = rows[(rows.few != "") & (rows.many != "") & (rows.few != "nan")]
    wanted = evaluated(forest, rows)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    typed = rows.astype({"few": "category", "many": "string", "code": "Int64"})
    arrow, lists = pa.Table.from_pandas(rows, preserve_index=False), rows.to_numpy(dtype=object).tolist()
    for given in (tmp_path / "rows.csv", tmp_path / "rows.parquet", typed, arrow, lists, rows[rows.columns[::-1]]):
        assert np.array_equal(evaluated(forest, given), wanted)
    codes = np.concatenate([batch.X for batch in rows_from(rows, forest).batches()])
    assert np.array_equal(forestc.evaluate(forest, codes).scores, wanted)


def evaluated(forest, rows):
    return forestc.evaluate(forest, np.concatenate([batch.X for batch in rows_from(rows, forest).batches()])).scores


def in_pipelines():
    """Yields pipelines by name, with the columns that are categories for their last step."""
    yield "alone", [], CATEGORIES
    scaled = ColumnTransformer([("numbers", StandardScaler(), NUMBERS)], remainder="passthrough")
    yield "scaled", [("columns", scaled)], [2, 3, 4, 5]
    filled = ColumnTransformer(
        [("numbers", SimpleImputer(), NUMBERS)], remainder="passthrough", verbose_feature_names_out=False
    )
    yield "filled", [("columns", filled.set_output(transform="pandas"))], CATEGORIES


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
@pytest.mark.parametrize(("name", "steps", "categories"), list(in_pipelines()))
def test_pipelines(name, steps, categories, kind):
    X = table(np.random.default_rng(0), 800, 30)
    y = (np.nan_to_num(X.a) > 0) * (X.code > 4) + (X.two == "yes") * (X.few == "u")
    model = getattr(catboost, f"CatBoost{kind}")(
        iterations=20, depth=5, max_ctr_complexity=3, one_hot_max_size=3, cat_features=categories, **QUIET
    )
    model = Pipeline([*steps, ("model", model)]).fit(X, y > 0 if kind == "Classifier" else y)
    forest = forestc.load(model)
    assert forest.columns > forest.own_columns and any("few & " in feature.name for feature in forest.features)
    rows = table(np.random.default_rng(1), 4000, 40)
    found = forestc.evaluate(forest, rows)
    assert np.array_equal(found.decision, np.asarray(model.predict(rows)).astype(found.decision.dtype))
    assert np.array_equal(found.decision, forestc.evaluate(forest, rows.astype({"few": "category"})).decision)


def test_members_with_categories_are_refused(known):
    forest = forestc.load(known[0])
    other = forestc.load(trained(4)[0])
    assert side_by_side([forest, forest], "both").hashed == forest.hashed
    with pytest.raises(forestc.ForestcError, match="hashes to codes of its own"):
        side_by_side([forest, replace(other, columns=forest.columns)], "both")


TABLE = "table of the first counter"
CTR, FEATURE = ("features_info", "ctrs", 0), ("features_info", "categorical_features", 1)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*CTR, "ctr_type"), "Guess", "counters of the type 'Guess' are not read"),
        ((*CTR, "identifier"), "other", "has no 'other'"),
        ((*CTR, "elements"), [], "a counter of 0 members"),
        ((*CTR, "elements", 0, "cat_feature_index"), 9, "is 9, which is no feature"),
        ((*CTR, "elements", 0, "combination_element"), "text", "combination_element 'text' is not known"),
        ((*CTR, "elements"), lambda old: old * 300, "a counter of 300 members"),
        ((*CTR, "borders"), [2, 1], "does not ascend"),
        ((*CTR, "target_border_idx"), 70000, "outside -1 to 65536"),
        ((*CTR, "scale"), "x", "is not an array of numbers"),
        ((TABLE, "hash_stride"), 0, "is 0, outside 2 to"),
        ((TABLE, "hash_map"), lambda old: old[:-1], "is no list of 3 values for each hash"),
        ((TABLE, "hash_map", 3), 1234, "a hash that is no text of an integer"),
        ((TABLE, "hash_map", 3), "1" * 30, "a hash that is no text of an integer"),
        ((TABLE, "hash_map", 4), 0.5, "not whole numbers"),
        ((TABLE, "hash_map"), lambda old: old + old[-3:], "has a hash twice"),
        ((*FEATURE, "flat_feature_index"), 0, "column 0 is another feature's"),
        ((*FEATURE, "feature_index"), 0, "feature_index 0 is another feature's"),
        ((*FEATURE, "values"), [7, 7], "has a value twice"),
        (("ctr_data",), KeyError, "has no"),
    ],
)
def test_damage_is_named_with_its_place(export, path, value, message):
    if path[0] == TABLE:
        path = ("ctr_data", export["features_info"]["ctrs"][0]["identifier"], *path[1:])
    assert_refused(read_bytes, changed(export, path, value), message)
