"""Tests random models of data frames with categories, with rows as frames and files in any order of columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from example_counts import examples
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import forestc
from forestc.errors import ForestcError
from forestc.rows.given import rows_from

TEXTS = (
    ("red", "green", "blue"), ("NA", "DE", "FR"), ("null", "none", "nan", "x"), ("a b", "a_b", "A,B", 'q"'),
    ("5", "7", "9"), ("yes", "no"), ("ä", "ß", "€"),
)  # fmt: skip
NAMES = ("color", "x1", "f0", "Column_1", "size of it", "x0", "kind")
ROWS, LATER = 160, 60
FORMS = ("frame", "frame", "csv", "parquet")


def random_frame(random: np.random.Generator) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Draws rows with columns of text categories, of integers, of booleans and of numbers. Returns them with the names
    of the columns of the first two kinds."""
    count = ROWS + LATER
    texts, wholes, columns = [], [], {}
    for name in random.permutation(NAMES)[: int(random.integers(2, 6))].tolist():
        kind = int(random.integers(4))
        if kind == 0:
            some = TEXTS[int(random.integers(len(TEXTS)))]
            values = np.array(some, dtype=object)[random.integers(0, len(some), count)]
            if random.random() < 0.4:
                values[random.random(count) < 0.1] = None
            columns[name] = pd.Categorical(values, categories=random.permutation(some).tolist())
            texts.append(name)
        elif kind == 1:
            columns[name] = random.integers(0, int(random.integers(2, 9)), count)
            wholes.append(name)
        elif kind == 2:
            columns[name] = random.random(count) < 0.5
        else:
            columns[name] = np.round(random.normal(size=count), int(random.integers(1, 4)))
    return pd.DataFrame(columns), texts, wholes


def random_labels(random: np.random.Generator, frame: pd.DataFrame) -> Any:
    score = 0.2 * random.normal(size=len(frame))
    for name in frame.columns:
        values = frame[name].cat.codes if hasattr(frame[name], "cat") else frame[name].astype(float)
        score = score + np.sin(3.0 * np.asarray(values, dtype=float) * random.normal())
    return (score > np.median(score)).astype(int)


def random_fit(random: np.random.Generator, frame: pd.DataFrame, y: Any, texts: list[str], wholes: list[str]) -> Any:
    """Trains a model of XGBoost, LightGBM or scikit-learn on the frame."""
    weights = random.random(len(y)) + 0.1 if random.random() < 0.3 else None
    kind = int(random.integers(4))
    if kind == 0:
        options = {"max_cat_to_onehot": int(random.integers(1, 6)), "base_score": float(random.uniform(0.1, 0.9))}
        model = xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1, enable_categorical=True, **options)
        return model.fit(frame, y, sample_weight=weights)
    if kind == 1:
        options = {"max_cat_to_onehot": int(random.integers(1, 6)), "cat_smooth": 1.0, "min_data_per_group": 2}
        model = lightgbm.LGBMClassifier(
            n_estimators=4, num_leaves=6, min_child_samples=3, verbose=-1, n_jobs=1, **options
        )
        listed: Any = "auto"
        if random.random() < 0.5:
            listed = [name for name in [*texts, *wholes] if random.random() < 0.6] or "auto"
        return model.fit(frame, y, sample_weight=weights, categorical_feature=listed)
    if kind == 2:
        return HistGradientBoostingClassifier(
            max_iter=4, max_depth=3, min_samples_leaf=3, categorical_features="from_dtype"
        ).fit(frame, y, sample_weight=weights)
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    encoders = (
        OrdinalEncoder(**unknown, encoded_missing_value=-2, dtype=(np.float64, np.float32)[int(random.integers(2))]),
        OneHotEncoder(handle_unknown="ignore", sparse_output=bool(random.random() < 0.5)),
    )
    steps = ColumnTransformer([("c", encoders[int(random.integers(2))], texts)], remainder="passthrough")
    model = (RandomForestClassifier, ExtraTreesClassifier)[int(random.integers(2))](4, max_depth=4, random_state=0)
    return make_pipeline(steps, model).fit(frame, y)


def differences(seed: int, folder: Path) -> tuple[str, str, int, int]:
    """Compares a random model. Returns its library, whether it was compared (or why not), how many rows, and how many
    differ."""
    random = np.random.default_rng(seed)
    frame, texts, wholes = random_frame(random)
    y = random_labels(random, frame)
    try:
        model = random_fit(random, frame[:ROWS], y[:ROWS], texts, wholes)
    except (ValueError, TypeError, lightgbm.basic.LightGBMError, xgboost.core.XGBoostError) as error:
        return "untrained", type(error).__name__, 0, 0
    library = type(model).__module__.partition(".")[0]
    later = frame[ROWS:].reset_index(drop=True)
    expected = model.predict(later)
    columns = random.permutation(later.columns).tolist()
    form = FORMS[int(random.integers(len(FORMS)))]
    try:
        forest = forestc.load(model)
        found = _decided(forest, later[columns].assign(truth=y[ROWS:]), form, folder)
    except ForestcError as error:
        return library, f"refused: {str(error).partition(';')[0][:70]}", 0, 0
    return library, f"compared: {form}", LATER, int((np.asarray(found) != expected).sum())


def _decided(forest: Any, rows: pd.DataFrame, form: str, folder: Path) -> Any:
    if form == "frame":
        return forestc.evaluate(forest, rows.drop(columns="truth")).decision
    path = folder / f"rows.{form}"
    if form == "csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_parquet(path, index=False)
    batches = list(rows_from(path, forest, "truth").batches())
    return forestc.evaluate(forest, np.concatenate([batch.X for batch in batches])).decision


@pytest.mark.filterwarnings("ignore")
def test_random_models_with_categories_decide_as_their_library(tmp_path):
    found = {seed: differences(seed, tmp_path) for seed in range(examples(80))}
    assert {seed: each for seed, each in found.items() if each[3]} == {}
    compared = Counter(library for library, what, *_ in found.values() if what.startswith("compared"))
    assert min(compared[library] for library in ("xgboost", "lightgbm", "sklearn")) >= 6
