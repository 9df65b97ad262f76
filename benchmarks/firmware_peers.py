"""Generates C from scikit-learn's forests with other tools (the peers), each behind the same entry point.

The entry point gets a row as an array of the peer's input type and returns the index of the class: the peer's own
prediction or, if the peer returns values, the first of the largest. Quirks are worked around, so that each peer is
measured at its best; its answers are left as they are. A peer's library is imported only where it is used; ImportError
is raised if it is not installed.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

Rows = NDArray[np.float64]
C99 = ("-std=gnu99", "-w")
CPP = ("-std=gnu++20", "-fno-exceptions", "-fno-rtti", "-w")
LARGEST = """
    int best = 0;
    for (int k = 1; k < {classes}; k++) {{
        if (out[k] > out[best]) {{
            best = k;
        }}
    }}
    return best;
"""


@dataclass(frozen=True)
class Model:
    """A fitted forest and the rows that trained it."""

    name: str
    forest: Any
    X: Rows
    y: NDArray[np.int64]

    @property
    def columns(self) -> int:
        return self.X.shape[1]

    @property
    def classes(self) -> int:
        return len(self.forest.classes_)


@dataclass(frozen=True)
class Source:
    """The C that a peer generated. files: texts by name; the first defines `forestc_entry`. takes: the numpy type of a
    row's numbers. forest: its labels are the right ones. rows: turns raw rows into rows that `forest` and the entry
    take. language: flags of the compiler. include: folders of headers."""

    files: dict[str, str]
    takes: str
    forest: Any
    rows: Callable[[Rows], Rows] = np.asarray
    language: tuple[str, ...] = C99
    include: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Peer:
    """A tool with options. smaller: it trains a smaller model on purpose, so it does not do the same job."""

    name: str
    options: str
    make: Callable[[Model], Source]
    smaller: bool = False


def _entry(takes: str, body: str, before: str) -> str:
    return f"{before}\nint forestc_entry({takes} *x);\nint forestc_entry({takes} *x)\n{{\n{body}\n}}\n"


def _emlearn(method: str, dtype: str, leaf_bits: int, most_leaves: int | None = None) -> Callable[[Model], Source]:
    """Returns a maker for emlearn. For int16, rows are scaled to the whole range and the model is trained again on
    them, as emlearn's documentation advises ("Feature quantization" of its tree-based models)."""

    def make(model: Model) -> Source:
        import emlearn
        from emlearn.preprocessing.quantizer import Quantizer

        forest, rows = model.forest, np.asarray
        if dtype == "int16_t":
            scaler = make_pipeline(MinMaxScaler(), Quantizer(max_value=1.0, dtype="int16")).fit(model.X)

            def rows(X: Rows) -> Rows:
                return np.asarray(scaler.transform(X), dtype=np.float64)

            forest = clone(forest).set_params(max_leaf_nodes=most_leaves).fit(rows(model.X), model.y)
        made = emlearn.convert(forest, method=method, dtype=dtype, leaf_bits=leaf_bits)
        text = made.save(name="m", include_proba=False)
        kind = {"int16_t": "<i2", "float": "<f4"}[dtype]
        entry = _entry(f"const {dtype}", f"    return m_predict(x, {model.columns});", text)
        return Source({"peer.c": entry}, kind, forest, rows, include=(Path(emlearn.__file__).parent,))

    return make


def _m2cgen(model: Model) -> Source:
    import m2cgen

    before, _ = sys.getrecursionlimit(), sys.setrecursionlimit(100_000)
    text = m2cgen.export_to_c(model.forest)
    sys.setrecursionlimit(before)
    body = f"    double out[{model.classes}];\n    score(x, out);" + LARGEST.format(classes=model.classes)
    return Source({"peer.c": _entry("double", body, text)}, "<f8", model.forest)


def _micromlgen(model: Model) -> Source:
    import micromlgen

    text = str(micromlgen.port(model.forest))
    before = f'#include <stdint.h>\n{text}\nextern "C" int forestc_entry(float *x);'
    body = "    Eloquent::ML::Port::RandomForest model;\n    return model.predict(x);"
    entry = f'{before}\nextern "C" int forestc_entry(float *x)\n{{\n{body}\n}}\n'
    return Source({"peer.cpp": entry}, "<f4", model.forest, language=CPP)


def _tl2cgen(**options: int) -> Callable[[Model], Source]:
    """Returns a maker for tl2cgen. Its entry takes scikit-learn's rows as doubles, which are as wide as its union."""

    def make(model: Model) -> Source:
        import tl2cgen
        import treelite

        with tempfile.TemporaryDirectory() as folder:
            tl2cgen.generate_c_code(treelite.sklearn.import_model(model.forest), folder, dict(options))
            files = {path.name: path.read_text() for path in Path(folder).glob("*.[ch]")}
        assert "double fvalue" in files["header.h"]
        # Both sources become one file, which would include the header twice.
        files["header.h"] = "#pragma once\n" + files["header.h"]
        sources = "".join(f'#include "{name}"\n' for name in sorted(files) if name.endswith(".c"))
        body = f"    double out[{model.classes}] = {{0}};\n    predict((union Entry *)x, 0, out);"
        body += LARGEST.format(classes=model.classes)
        return Source({"peer.c": _entry("double", body, sources), **files}, "<f8", model.forest)

    return make


def _ydf(algorithm: str) -> Callable[[Model], Source]:
    def make(model: Model) -> Source:
        import ydf

        text = ydf.from_sklearn(model.forest).to_standalone_cc(name="m", algorithm=algorithm)
        assert isinstance(text, str)
        body = "    return (int)m::Predict(*(const m::Instance *)x);"
        entry = f'{text}\nextern "C" int forestc_entry(const float *x);\n'
        entry += f'extern "C" int forestc_entry(const float *x)\n{{\n{body}\n}}\n'
        return Source({"peer.cpp": entry}, "<f4", model.forest, language=CPP)

    return make


def _timber(model: Model) -> Source:
    from timber.codegen.c99 import C99Emitter, TargetSpec
    from timber.frontends.auto_detect import parse_model
    from timber.optimizer.pipeline import OptimizerPipeline

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pkl"
        path.write_bytes(pickle.dumps(model.forest))
        made = C99Emitter(TargetSpec()).emit(OptimizerPipeline().run(parse_model(str(path))).ir)
    single = "#define TIMBER_N_OUTPUTS  1\n" in made.model_h
    body = "    float out[TIMBER_N_OUTPUTS];\n    timber_infer_single(x, out, 0);"
    body += "\n    return out[0] >= 0.5f;" if single else LARGEST.format(classes="TIMBER_N_OUTPUTS")
    files = {"model.h": made.model_h, "model.c": made.model_c, "model_data.c": made.model_data_c}
    entry = _entry("const float", body, '#include "model.c"')
    return Source({"peer.c": entry, **files}, "<f4", model.forest)


PEERS = (
    Peer("emlearn", "inline, float", _emlearn("inline", "float", 0)),
    Peer("emlearn", "inline, float, leaf_bits=8", _emlearn("inline", "float", 8)),
    Peer("emlearn", "inline, int16, retrained", _emlearn("inline", "int16_t", 0)),
    Peer("emlearn", "inline, int16, leaf_bits=8, retrained", _emlearn("inline", "int16_t", 8)),
    Peer("emlearn", "loadable, int16, retrained", _emlearn("loadable", "int16_t", 0)),
    Peer("emlearn", "loadable, int16, leaf_bits=4, retrained", _emlearn("loadable", "int16_t", 4)),
    Peer("emlearn", "loadable, int16, leaf_bits=8, retrained", _emlearn("loadable", "int16_t", 8)),
    Peer("m2cgen", "", _m2cgen),
    Peer("micromlgen", "", _micromlgen),
    Peer("tl2cgen", "", _tl2cgen()),
    Peer("tl2cgen", "quantize=1", _tl2cgen(quantize=1)),
    Peer("ydf", "routing", _ydf("ROUTING")),
    Peer("ydf", "if-else", _ydf("IF_ELSE")),
    Peer("timber-compiler", "", _timber),
    *(
        Peer("emlearn", f"loadable, int16, max_leaf_nodes={n}", _emlearn("loadable", "int16_t", 0, n), smaller=True)
        for n in (8, 16, 32)
    ),
)  # fmt: skip
