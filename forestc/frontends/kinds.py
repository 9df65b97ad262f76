"""The table of the kinds of model: how a file is recognized by its content, or else by its suffix; the readers of files
and of fitted models; how an estimator is trained again. A kind that is not read has a remedy."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forestc.errors import CUT, HERE, ModelError, opt
from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest
from forestc.frontends import conifer, tmva, treelite
from forestc.frontends.catboost import reader as catboost
from forestc.frontends.lightgbm import reader as lightgbm
from forestc.frontends.onnx import reader as onnx
from forestc.frontends.shared.content import Content
from forestc.frontends.shared.iterations import Iterations, refuse_cut
from forestc.frontends.sklearn import reader as sklearn
from forestc.frontends.sklearn.meta import read_search
from forestc.frontends.subclasses import read_subclass
from forestc.frontends.xgboost import reader as xgboost
from forestc.frontends.ydf import reader as ydf
from forestc.frontends.ydf.files import MEMBER as YDF_MEMBER

SAVE_XGBOOST = "save it with Booster.save_model('model.json')"
TRAINED = "give forestc the model that it was made from, as the library that trained it saves it"
RETRAIN = "train the trees with scikit-learn, XGBoost, LightGBM or CatBoost"
UNPACK = "unpack it, and give the model file in it"
NO_TREES = f"forestc reads ensembles of decision trees only: {RETRAIN}"
AS_ROWS = f"give the model file first, and the rows with {opt.rows}"


@dataclass(frozen=True)
class Training:
    """How a copy of a library's estimator is trained."""

    threads: str = ""  # parameter for the number of threads, which need not be set; "" if threads change nothing
    settings: Mapping[str, Any] = field(default_factory=dict)  # what gives the same sums each time, beside one thread
    # Lists the parameters of early stopping, the parameter for the number of rounds, the attribute with the last round
    # and the number of the first round there. A copy is trained without them, for as many rounds as the estimator took.
    early: tuple[tuple[tuple[str, ...], str, str, int], ...] = ()
    clone: Callable[[Any], Any] | None = None  # returns an unfitted copy; None for scikit-learn's `clone`


@dataclass(frozen=True)
class Kind:
    """A kind of model that forestc reads or refuses."""

    name: str  # name in messages, with an article if the kind is refused
    matches: Callable[[Content], bool]  # tests whether a file is of the kind
    read: Callable[[Content], Forest] | None = None  # reads a file
    do: str = ""  # remedy if the kind is refused
    opens: Callable[[Content], Any] | None = None  # returns the object in a file that holds one, such as an estimator
    cut: bool = False  # True if the readers can stop after a number of iterations
    pickled: bool = False  # True if reading the file runs code
    suffixes: tuple[str, ...] = ()  # file suffixes that decide if no content matches
    package: str = ""  # Python package of the fitted models that `live` reads
    live: Callable[[Any, Iterations], Forest] | None = None  # reads a fitted model
    training: Training = Training()


def _begins(*starts: bytes) -> Callable[[Content], bool]:
    return lambda content: content.data.startswith(starts)


def _keys(*keys: str) -> Callable[[Content], bool]:
    return lambda content: content.has(*keys)


def _matches(pattern: bytes) -> Callable[[Content], bool]:
    """Returns a function that tests if a file begins with the pattern, after white space."""
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda content: compiled.match(content.head) is not None


def _member(pattern: str) -> Callable[[Content], bool]:
    return lambda content: any(re.fullmatch(pattern, name) for name in content.members)


def _unpacks(pattern: bytes) -> Callable[[Content], bool]:
    """Returns a function that tests if a compressed file, once unpacked, begins with the pattern."""
    return lambda content: re.match(pattern, content.unpacked, re.DOTALL) is not None


# Matches the first bytes of pickles, newer and older, and of compressed joblib files.
_PICKLE, _OLD_PICKLE = rb"\x80[\x02-\x05]", rb"\(?[ci][\w.]+\n[\w.]+\n"
_LZ4, _OLD_JOBLIB = b"\x04\x22\x4d\x18", b"ZF0x"


def _is_pickle(content: Content) -> bool:
    if content.data.endswith(b".") and re.match(_OLD_PICKLE, content.data):
        return True
    plain = re.match(_PICKLE, content.data) is not None
    return plain or _unpacks(_PICKLE)(content) or content.data.startswith((_LZ4, _OLD_JOBLIB))


def _is_old_xgboost(content: Content) -> bool:
    """Returns True for XGBoost's old binary format: parameters, then names of objective and booster."""
    if content.data.startswith((b"binf", b"bs64\t", b"CONFIG-offset:")):
        return True
    names, at = [], 136
    for _ in range(2):
        length = int.from_bytes(content.data[at : at + 8], "little")
        if not 0 < length < 64:
            return False
        names.append(content.data[at + 8 : at + 8 + length])
        at += 8 + length
    return re.fullmatch(rb"[\w:@-]+", names[0]) is not None and names[1] in (b"gbtree", b"gblinear", b"dart")


def _is_treelite(content: Content) -> bool:
    if len(content.data) < 14:
        return False
    *version, threshold, leaf = struct.unpack("<iiiBB", content.data[:14])
    return 1 <= version[0] < 16 and all(0 <= part < 1000 for part in version) and {threshold, leaf} <= {1, 2, 3}


def _message(content: Content) -> bytes | None:
    """Returns the first byte of field 2 if this may be a protobuf message (b"" without the field), otherwise None."""
    if content.data[:1] != b"\x08" or not 0 < int.from_bytes(content.data[1:2], "little") < 64:
        return None
    if content.data[2:3] != b"\x12":
        return b"" if content.data[2:3] in (b"\x1a", b"\x22", b"\x28", b"\x32", b"\x3a", b"\x42") else None
    length = re.match(rb"[\x80-\xff]{0,8}[\x00-\x7f]", content.data[3:])
    return content.data[3 + length.end() : 4 + length.end()] if length else None


def _is_onnx(content: Content) -> bool:
    first = _message(content)
    return first is not None and first != b"\n"


def _is_safetensors(content: Content) -> bool:
    return content.data[8:10] == b'{"' and int.from_bytes(content.data[:8], "little") < len(content.data)


def _items(*keys: str) -> Callable[[Content], bool]:
    """Returns a function that tests if a document is a list of which an object has one of the keys."""
    return lambda content: (
        isinstance(content.document, list)
        and any(isinstance(item, dict) and item.keys() & set(keys) for item in content.document)
    )


def _is_npz(content: Content) -> bool:
    return bool(content.members) and all(name.endswith(".npy") for name in content.members)


def _text(content: Content) -> Forest:
    try:
        return parse_forest(content.data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ModelError("not UTF-8 text", where=content.where, do="write it again with forestc print") from None
    except ModelError as error:
        raise ModelError(error.what, where=f"{content.where}, {error.where}".rstrip(", "), do=error.do) from None


# A file is of the first kind that matches. JSON and UBJSON come last, because a damaged document raises ModelError.

TEXT = Kind("forestc text", _begins(b'forest "'), _text, suffixes=(".forest",))

CONIFER = Kind(
    "conifer's JSON",
    _keys("trees", "n_trees", "n_features", "init_predict"),
    lambda c: conifer.read_model(c.document, c.where, c.emulator),
)

KINDS = (
    TEXT,
    Kind(
        "LightGBM text model",
        _begins(b"tree\n", b"tree\r"),
        lambda c: lightgbm.read_text(c.data, c.where, c.iterations),
        cut=True,
        suffixes=(".lgb",),
        package="lightgbm",
        live=lightgbm.read_live,
        training=Training(
            "n_jobs",
            {"deterministic": True, "force_col_wise": True},
            ((("early_stopping_rounds", "early_stopping_round"), "n_estimators", "best_iteration_", 1),),
        ),
    ),
    Kind(
        "ONNX model",
        _is_onnx,
        lambda c: onnx.read_bytes(c.data, c.where),
        suffixes=(".onnx",),
        package="onnx",
        live=lambda model, _: onnx.read_live(model),
    ),
    Kind(
        "treelite checkpoint",
        _is_treelite,
        lambda c: treelite.read_bytes(c.data, c.where),
        suffixes=(".tl", ".treelite"),
        package="treelite",
        live=lambda model, _: treelite.read_live(model),
    ),
    Kind(
        "skops file",
        _member(r"schema\.json"),
        opens=lambda c: sklearn.open_skops(c.data, c.where),
        suffixes=(".skops",),
        package="sklearn",
        live=lambda model, _: sklearn.read_live(model, load_object),
        training=Training(
            early=(
                (("n_iter_no_change",), "n_estimators", "n_estimators_", 1),
                (("early_stopping",), "max_iter", "n_iter_", 1),
            )
        ),
    ),
    Kind(
        "YDF model folder",
        _member(YDF_MEMBER),
        lambda c: ydf.read_archive(c.data, c.where),
        package="ydf",
        live=lambda model, _: ydf.read_live(model),
    ),
    Kind(
        "pickle",
        _is_pickle,
        opens=lambda c: sklearn.open_pickle(c.data, c.where),
        pickled=True,
        suffixes=(".pkl", ".pickle", ".joblib"),
    ),
    Kind(
        "a model in XGBoost's old binary format",
        _is_old_xgboost,
        do="load it with XGBoost 1.7 to 3.0, and save it with Booster.save_model as .json or .ubj",
    ),
    Kind(
        "a dump of XGBoost's trees as text, without base score and objective",
        _matches(rb"(booster\[\d+\]:?\s*)?0:(\[[^\]\n]*\] yes=|leaf=)"),
        do=SAVE_XGBOOST,
    ),
    Kind(
        "a text in UTF-16, as PowerShell writes it",
        _begins(b"\xff\xfe", b"\xfe\xff"),
        do="make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW",
    ),
    Kind(
        "a text model after a byte order mark",
        _begins(b"\xef\xbb\xbftree", b'\xef\xbb\xbfforest "'),
        do="take off its first three bytes: tail -c +4 FILE > NEW",
    ),
    Kind(
        "a JSON document in quotes",
        _matches(rb'"\s*\{\s*\\"'),
        do="write what json.loads(text) returns, without the quotes",
    ),
    Kind("a drawing of a tree", _matches(rb"(strict\s+)?(di)?graph\b[^\n]*\{"), do=TRAINED),
    Kind("a binary model of CatBoost (.cbm)", _begins(b"CBM1"), do=catboost.AS_JSON, suffixes=(".cbm",)),
    Kind(
        "an export of CatBoost as source code",
        _matches(rb"(#|class )[^\x00]{0,4000}?CatBoost_?Model"),
        do="save the model that it was made from as JSON: model.save_model('model.json', format='json')",
    ),
    Kind(
        "a PMML document", _matches(rb"(<\?xml[^\x00]{0,4000}?)?<(\w{1,20}:)?PMML\b"), do=TRAINED, suffixes=(".pmml",)
    ),
    Kind(
        "TMVA weight file",
        _matches(rb"(<\?xml[^\x00]{0,4000}?)?<MethodSetup\b"),
        lambda c: tmva.read_weights(c.data, c.where),
    ),
    Kind("a web page", _matches(rb"<(!doctype\s+)?html\b"), do="download the model file itself: the raw file"),
    Kind("an XML document", _matches(rb"<\?xml\b"), do=TRAINED),
    Kind(
        "a pointer of Git LFS to the model",
        _begins(b"version https://git-lfs"),
        do="fetch the file: git lfs pull",
    ),
    Kind(
        "a Core ML or TensorFlow model",
        lambda content: _message(content) == b"\n",
        do=TRAINED,
        suffixes=(".mlmodel", ".pb"),
    ),
    Kind("a TensorFlow Lite model", lambda content: content.data[4:8] == b"TFL3", do=NO_TREES),
    Kind("an HDF5 file, as Keras writes", _begins(b"\x89HDF\r\n\x1a\n"), do=NO_TREES, suffixes=(".h5", ".hdf5")),
    Kind("a Keras model", _member(r"model\.weights\.h5"), do=NO_TREES, suffixes=(".keras",)),
    Kind("a PyTorch model", _member(r"([^/]+/)?(data|constants)\.pkl"), do=NO_TREES, suffixes=(".pt", ".pth")),
    Kind("a file of tensors", _is_safetensors, do=NO_TREES, suffixes=(".safetensors", ".gguf")),
    Kind("an H2O model (MOJO)", _member(r"([^/]+/)?model\.ini"), do=RETRAIN),
    Kind(
        "an R object (saveRDS)",
        lambda content: _unpacks(rb"[XAB]\n|RD[XAB]\d\n")(content) or content.data.startswith((b"X\n\0\0", b"RDX")),
        do="save the model in R with xgb.save(model, 'model.json') or lgb.save(model, 'model.txt')",
        suffixes=(".rds", ".rdata"),
    ),
    Kind(
        "a file of rows",
        lambda content: _is_npz(content) or content.data.startswith((b"PAR1", b"ARROW1", b"\x93NUMPY")),
        do=AS_ROWS,
        suffixes=(".csv", ".tsv", ".parquet", ".arrow", ".feather", ".npy", ".npz"),
    ),
    Kind(
        "a compressed file",
        lambda content: bool(content.unpacked) or content.data.startswith(b"\x28\xb5\x2f\xfd"),
        do=UNPACK,
        suffixes=(".gz", ".bz2", ".xz", ".zst"),
    ),
    Kind("a zip archive", lambda content: bool(content.members), do=UNPACK, suffixes=(".zip",)),
    Kind("a tar archive", lambda content: content.data[257:262] == b"ustar", do=UNPACK, suffixes=(".tar", ".tgz")),
    Kind(
        "LightGBM dump", _keys("tree_info"), lambda c: lightgbm.read_dump(c.document, c.where, c.iterations), cut=True
    ),
    Kind(
        "CatBoost export",
        _keys("features_info"),
        lambda c: catboost.read_export(c.document, c.where, c.iterations),
        cut=True,
        package="catboost",
        live=catboost.read_live,
        training=Training("thread_count", clone=catboost.cloned),
    ),
    Kind("an XGBoost configuration, without trees", _keys("learner.learner_train_param"), do=SAVE_XGBOOST),
    Kind("an XGBoost Booster as pickles hold it", _keys("Config", "Model"), do=SAVE_XGBOOST),
    Kind(
        "XGBoost model",
        _keys("learner"),
        lambda c: xgboost.read_saved(c.document, c.where, c.iterations),
        cut=True,
        package="xgboost",
        live=xgboost.read_live,
        training=Training(
            "n_jobs", early=((("early_stopping_rounds", "callbacks"), "n_estimators", "best_iteration", 0),)
        ),
    ),
    Kind("a dump of XGBoost's trees as JSON, without base score and objective", _items("nodeid"), do=SAVE_XGBOOST),
    Kind("a dump of one XGBoost tree", _keys("nodeid"), do=SAVE_XGBOOST),
    CONIFER,
    Kind(
        "a treelite dump",
        _keys("trees", "num_feature", "average_tree_output"),
        do="save a checkpoint with model.serialize('model.tl')",
    ),
    Kind(
        "a list around JSON models",
        _items("learner", "tree_info", "features_info"),
        do="give each model a file of its own, without the list",
    ),
    Kind("a Keras configuration", _keys("class_name", "config"), do=NO_TREES),
    Kind(
        "the manifest of a folder that forestc wrote",
        _keys("guarantees", "passes", "files"),
        do="give the folder, or the model.forest in it",
    ),
)

LIVE = {kind.package: kind for kind in KINDS if kind.package}

# Maps patterns of the files that identify a kind of folder to its description and a remedy.
FOLDERS: dict[tuple[str, ...], tuple[str, str]] = {
    ("manifest.json", "model.forest"): (
        "a folder that forestc compiled",
        "give the model.forest in it, the model as it was read, or use a command that takes folders",
    ),
    ("engine.json",): ("a folder of a forestc engine", f"give the model here, and the folder with {opt.engine}"),
    ("study.json",): ("a folder of a forestc study", "give the model.forest in the folder of one of its designs"),
    ("saved_model.pb", "assets/*data_spec.pb"): (
        "a TensorFlow model around a YDF model",
        "give the folder assets in it: what TensorFlow computes before the trees is not read",
    ),
    ("saved_model.pb",): ("a TensorFlow model, which is not read", RETRAIN),
    ("MLmodel",): ("an MLflow model", "give the model file in the folder"),
    ("metadata", "data"): ("a Spark model, which is not read", RETRAIN),
    ("predictor.pkl",): ("an AutoGluon predictor, which is not read", RETRAIN),
}


def kind_of(content: Content) -> Kind:
    """Returns the kind of a file. Raises ModelError for an unknown kind or a damaged document."""
    for kind in KINDS:
        if kind.matches(content):
            return kind
    for kind in KINDS:
        if content.suffix in kind.suffixes:
            return kind
    if not content.data:
        raise ModelError("the file is empty", where=content.where, do=CUT)
    document = content.document
    if isinstance(document, dict):
        keys = ", ".join(sorted(map(repr, map(str, document))))
        begins = f"a JSON document with the keys {keys[:120]}" if keys else "an empty JSON document"
    else:
        begins = f"it begins with {content.data[:24]!r}"
    raise ModelError(
        f"the model is of no known kind: {begins}",
        where=content.where,
        do=f"known: {', '.join(kind.name for kind in KINDS if not kind.do)}",
    )


def read(content: Content, kind: Kind, *, trust_pickle: bool = False) -> Forest:
    """Reads a file of a kind into a Forest. Raises ForestcError."""
    if kind.read is None:
        model = opened(content, kind, trust_pickle=trust_pickle)
        return sklearn.read_saved(model, lambda model: load_object(model, content.iterations))
    if not kind.cut:
        refuse_cut(content.iterations)
    if kind is not CONIFER:
        content.emulator.refuse()
    return kind.read(content)


def opened(content: Content, kind: Kind, *, trust_pickle: bool = False) -> Any:
    """Returns the object in a file; None for a kind of file that holds none. Raises ForestcError."""
    if kind.do:
        raise ModelError(f"the file is {kind.name}, which is not read", where=content.where, do=kind.do)
    if kind.pickled and not trust_pickle:
        raise ModelError(
            "a pickle runs code when it is opened",
            where=content.where,
            do=f"pass {opt.trust_pickle} if you made it yourself, or save the model with skops",
        )
    return None if kind.opens is None else kind.opens(content)


def library_of(model: object) -> tuple[Kind, type] | None:
    """Returns the kind of a fitted model, with the class of its library that it is of; None for other objects."""
    for base in type(model).__mro__:
        kind = LIVE.get(base.__module__.partition(".")[0])
        if kind and (base is type(model) or hasattr(base, "predict")):  # Mixins have no `predict`.
            return kind, base
    return None


def _key_of_model(held: object) -> object:
    """Returns the key of the first model in a dict, list or tuple; None without one."""
    pairs = held.items() if isinstance(held, Mapping) else enumerate(held) if isinstance(held, list | tuple) else ()
    return next((key for key, value in pairs if library_of(value) is not None), None)


def load_object(model: object, iterations: Iterations = None) -> Forest:
    """Reads a fitted model into a Forest; for a parameter search, it reads the best estimator. Raises ForestcError."""
    if getattr(model, "__dict__", {}).get("best_estimator_") is not None:
        refuse_cut(iterations)
        return read_search(model, type(model).__name__, load_object)
    if type(model).__module__.startswith("forestc.") and hasattr(model, "as_forest"):
        refuse_cut(iterations)
        forest: Forest = model.as_forest()
        return forest
    found = library_of(model)
    if found is None and (key := _key_of_model(model)) is not None:
        raise ModelError(
            f"a {type(model).__name__} that holds a model under {key!r}",
            where=HERE,
            do=f"pass that model alone: from a pickle joblib.load(FILE)[{key!r}]",
        )
    if found is None:
        raise ModelError(
            f"objects of type {type(model).__name__} are not read",
            where=HERE,
            do=f"known: models of {', '.join(LIVE)}, and paths of model files",
        )
    kind, base = found
    if not kind.cut:
        refuse_cut(iterations)
    live = kind.live
    assert live is not None
    if base is not type(model):
        return read_subclass(model, base, lambda parent: live(parent, iterations))
    return live(model, iterations)


def refuse_folder(path: Path) -> ModelError:
    for patterns, (what, do) in FOLDERS.items():
        if all(any(path.glob(pattern)) for pattern in patterns):
            return ModelError(f"{what}, not a model file", where=str(path), do=do)
    return ModelError("a folder, not a model file", where=str(path), do="give the model file in it")
