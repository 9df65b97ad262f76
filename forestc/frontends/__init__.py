"""Frontends: from a model file or a fitted model to a Forest, by two explicit tables."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from forestc.errors import ModelError, OptionError, check_exists
from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest
from forestc.frontends import catboost, treelite
from forestc.frontends.lightgbm import reader as lightgbm
from forestc.frontends.onnx import reader as onnx
from forestc.frontends.shared.document import read_document
from forestc.frontends.sklearn import meta as sklearn_meta
from forestc.frontends.sklearn import reader as sklearn
from forestc.frontends.xgboost import reader as xgboost
from forestc.rows.columns import carrying

MAX_BYTES = 4 << 30  # of a model file, which is read into memory as a whole


def _read_text(data: bytes, where: str) -> Forest:
    try:
        return parse_forest(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ModelError("not UTF-8 text", where=where) from None
    except ModelError as error:
        raise ModelError(error.what, where=f"{where}, {error.where}".rstrip(", "), do=error.do) from None


def _read_json(data: bytes, where: str) -> Forest:
    """A Forest from a JSON document; its keys tell the library."""
    document = read_document(data, where)
    if isinstance(document, dict) and "tree_info" in document:
        return lightgbm.read_dump(document, where)
    if isinstance(document, dict) and "features_info" in document:
        return catboost.read_export(document, where)
    return xgboost.read_saved(document, where)


# File suffix -> reader of the file's bytes.
FILES: dict[str, Callable[[bytes, str], Forest]] = {
    ".json": _read_json,
    ".ubj": xgboost.read_ubj,
    ".onnx": onnx.read_bytes,
    ".txt": lightgbm.read_text,
    ".model": lightgbm.read_text,
    ".lgb": lightgbm.read_text,
    ".tl": treelite.read_bytes,
    ".treelite": treelite.read_bytes,
    ".forest": _read_text,
}
PICKLES = (".pkl", ".pickle", ".joblib")

# Top-level package of a fitted model -> reader.
OBJECTS: dict[str, Callable[[Any], Forest]] = {
    "xgboost": xgboost.read_live,
    "lightgbm": lightgbm.read_live,
    "catboost": catboost.read_live,
    "sklearn": sklearn.read_live,
    "treelite": treelite.read_live,
    "onnx": onnx.read_live,
}


def load(source: object, *, trust_pickle: bool = False) -> Forest:
    """A Forest from a model file's path or a fitted model.

    Files: XGBoost `.json` and `.ubj`, LightGBM `.txt`, `.model`, `.lgb` and dumps in `.json`, CatBoost exports in
    `.json`, ONNX `.onnx`, skops `.skops`, forestc `.forest`; pickles (`.pkl`, `.joblib`) only with `trust_pickle`,
    because opening one runs the code it holds. Raises ModelError for a model that can't be read exactly, OptionError
    for an unknown file suffix.
    """
    if isinstance(source, Forest):
        return carrying(source)
    if isinstance(source, str | Path):
        return carrying(_load_file(Path(source), trust_pickle))
    return carrying(load_object(source))


def load_object(model: object) -> Forest:
    """A Forest from a fitted model of a known library, or from a search's best estimator. Raises ModelError."""
    if getattr(model, "__dict__", {}).get("best_estimator_") is not None:
        return sklearn_meta.read_search(model, type(model).__name__)
    for base in type(model).__mro__:
        package = base.__module__.split(".")[0]
        if package in OBJECTS:
            if base is not type(model):
                raise ModelError(
                    f"{type(model).__name__} is a subclass of {base.__name__}",
                    do=f"pass the {base.__name__} itself: a subclass may predict differently",
                )
            return OBJECTS[package](model)
    raise ModelError(
        f"objects of type {type(model).__name__} are not read",
        do=f"known: models of {', '.join(OBJECTS)}, and paths of model files",
    )


def _load_file(path: Path, trust_pickle: bool) -> Forest:
    suffix = path.suffix.lower()
    check_exists(path, ModelError)
    if suffix not in (*FILES, *PICKLES, ".skops"):
        raise OptionError(
            f"unknown kind of model file {path.suffix!r}",
            where=str(path),
            do=f"known: {', '.join((*FILES, '.skops', *PICKLES))}",
        )
    if suffix in PICKLES and not trust_pickle:
        raise ModelError(
            "a pickle runs code when it is opened",
            where=str(path),
            do="pass --trust-pickle if you made it yourself, or save the model with skops",
        )
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ModelError(f"the file has {size} bytes", where=str(path), do=f"at most {MAX_BYTES} are read")
        data = path.read_bytes()
        with ThreadPoolExecutor(1) as pool:  # hashing releases the GIL, so it runs alongside
            digest = pool.submit(lambda: hashlib.sha256(data).hexdigest())
            if suffix == ".skops":
                forest = sklearn.read_skops(path)
            elif suffix in PICKLES:
                forest = load_object(sklearn.read_pickle(path))
            else:
                forest = FILES[suffix](data, str(path))
    except OSError as error:
        raise ModelError(f"can't be read ({error.strerror})", where=str(path)) from None
    if suffix == ".forest":
        return forest
    return replace(forest, name=path.stem, provenance=replace(forest.provenance, model_hash=digest.result()))
