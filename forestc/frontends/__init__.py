"""Reads a model file or a fitted model into a Forest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from forestc.errors import ModelError, located
from forestc.forest.ir import Forest
from forestc.frontends.kinds import TEXT, kind_of, load_object, opened, read, refuse_folder
from forestc.frontends.shared.content import Content
from forestc.frontends.shared.emulator import Emulator
from forestc.frontends.shared.iterations import parsed, refuse_cut
from forestc.frontends.ydf.files import is_model, packed
from forestc.system.reading import file_bytes

__all__ = ["load", "load_object", "read_bytes", "read_estimator"]

SPARE = 256  # columns that rows may have unread; with more, only read columns stay
MAX_BYTES = 4 << 30  # limits a model file's bytes, all read into memory


def load(
    source: object,
    *,
    trust_pickle: bool = False,
    iterations: int | str | None = None,
    ap_types: str | Mapping[str, str] | None = None,
    sum: str = "sequential",
) -> Forest:
    """Reads a model file, or takes a fitted model, as a Forest.

    Files are recognized by their content, under any name: XGBoost (JSON, UBJSON), LightGBM (text models, dumps),
    CatBoost (JSON exports), ONNX, treelite, YDF (folders), TMVA (XML), conifer (JSON), skops, forestc's own text, and
    pickles.

    Parameters
    ----------
    source : str, path or fitted model
        A model file, or the folder of a YDF model; a model object of one of these libraries or of scikit-learn; or a
        Forest.
    trust_pickle : bool, default=False
        Allow opening pickles. Opening a pickle runs the code in it.
    iterations : int or "best", optional
        Boosting iterations to read from XGBoost, LightGBM and CatBoost: the first N, or those up to the best one.
        Default: as many as the library predicts with.
    ap_types : str or dict, optional
        Number types of conifer's emulator instead of those in the file, such as
        "input=ap_fixed<10,5>,threshold=ap_fixed<10,5>,score=ap_fixed<12,6,AP_RND,AP_SAT>".
    sum : {'sequential', 'tree'}, default='sequential'
        Order in which conifer's emulator adds the trees.

    Returns
    -------
    Forest
        The model as its library evaluates it.

    Raises
    ------
    ModelError
        If the model can't be read, or has a property that forestc can't preserve exactly.
    OptionError
        If `iterations` is invalid, or larger than the model's number of iterations; or if a type is not read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> forestc.load(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y))
    <Forest 'forest', of floats: 1 trees, 9 nodes, 4 columns, 3 classes>
    """
    asked, emulator = parsed(iterations), Emulator.of(ap_types, sum)
    if not isinstance(source, str | Path):
        emulator.refuse()
    if isinstance(source, Forest):
        refuse_cut(asked)
        return carrying(source)
    if not isinstance(source, str | Path):
        with located(f"model of type {type(source).__name__}"):
            return carrying(load_object(source, asked))
    path = Path(source)
    content = Content(_bytes(path), str(path), asked, emulator)
    with ThreadPoolExecutor(1) as pool:  # Hashing releases the GIL, so a thread can do it alongside.
        digest = pool.submit(lambda: hashlib.sha256(content.data).hexdigest())
        with located(str(path)):
            kind = kind_of(content)
            forest = carrying(read(content, kind, trust_pickle=trust_pickle))
    if kind is TEXT:  # forestc text holds a name and a hash
        return forest
    return replace(forest, name=path.stem, provenance=replace(forest.provenance, model_hash=digest.result()))


def carrying(forest: Forest) -> Forest:
    """Returns the forest with `carried` set, so rows hold only the columns it reads; unchanged if at most `SPARE`
    columns are unread."""
    read = {feature.column for feature in forest.features}
    read |= {c for hashed in forest.hashed for c in (hashed.column, *(member.column for member in hashed.members))}
    if forest.carried or forest.columns - len(read) <= SPARE:
        return forest
    return replace(forest, carried=tuple(sorted(read)) or (0,))


def read_bytes(data: bytes, where: str) -> Forest:
    """Reads the bytes of a model file into a Forest. where: the file's path; its suffix tells the kind of file if the
    bytes do not. Raises ForestcError."""
    content = Content(data, where)
    return read(content, kind_of(content))


def read_estimator(model: object, *, trust_pickle: bool = False) -> Any:
    """Returns the estimator that can train a model again: the model itself, the object in its skops file or pickle, or
    the best estimator of a parameter search. Returns None if the model holds only trees, or a part of it is frozen.
    Raises ForestcError."""
    if isinstance(model, str | Path):
        content = Content(_bytes(Path(model)), str(model))
        with located(str(model)):
            model = opened(content, kind_of(content), trust_pickle=trust_pickle)
    model = getattr(model, "best_estimator_", model)
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        return None
    frozen = any(type(part).__name__ == "FrozenEstimator" for part in (model, *model.get_params().values()))
    return None if frozen else model


def _bytes(path: Path) -> bytes:
    with suppress(OSError):  # `file_bytes` refuses a folder whose files can't be listed.
        if path.is_dir() and is_model(path):
            return packed(path, MAX_BYTES)
        if path.is_dir():
            raise refuse_folder(path)
    return file_bytes(path, ModelError, MAX_BYTES)
