"""The target wasm: the C header as a WebAssembly module, and a JavaScript module that loads it."""

from __future__ import annotations

from dataclasses import replace

from forestc.backends.languages.javascript import LANGUAGE as JAVASCRIPT
from forestc.backends.languages.language import Runs, View
from forestc.forest.ir import Forest

BUILD = (
    "cc", "-target", "wasm32-freestanding", "-Oz", "-Dinline=", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,-z,stack-size=4096",
)  # fmt: skip
# The type of each C type in JavaScript's arrays, and in Python's struct.
ARRAYS = {"float": ("Float32", "f"), "uint64_t": ("BigUint64", "Q"), "int64_t": ("BigInt64", "q")}
ARRAYS |= {f"{s}int{8 << k}_t": (f"{name}{8 << k}", "bhi"[k] if not s else "BHI"[k])
           for s, name in (("", "Int"), ("u", "Uint")) for k in range(3)}  # fmt: skip


def _view(forest: Forest, view: View) -> View:
    from forestc.backends.c.header import emit
    from forestc.backends.c.inputs import inputs_of
    from forestc.backends.c.options import COptions, Layout
    from forestc.backends.c.quantizer import row_type
    from forestc.backends.c.types import label_type, score_type
    from forestc.backends.c.values import shown

    p, values = view["p"], shown(forest, view["p"], "float")
    layout: Layout = "nodes" if forest.adds else "branches"
    options = COptions(c_layout=layout, c_values="float" if values is not None else "none")
    word = inputs_of(forest, "words").kinds[0]
    buffers = [
        ("words", word, max(1, len(forest.features)), f"{p}_quantize(row, words);"),
        ("scores", score_type(forest), forest.n_scores, f"{p}_scores(words, scores);"),
    ]
    if forest.decides:
        call = f"predict[0] = {p}_predict(words);" if len(forest.targets) == 1 else f"{p}_predict(words, predict);"
        buffers.append(("predict", label_type(forest), len(forest.targets), call))
    if values is not None:
        name = view["values"]
        call = f"values[0] = {p}_value(words);" if values.single else f"{p}_{name}(words, {name});"
        buffers.append((name, "float", values.count, call))
    return {
        **view,
        "header": emit(forest, options)[f"{p}.h"],
        "real": row_type(forest, "auto").name,
        "buffers": [(name, kind, ARRAYS[kind][0], count, call) for name, kind, count, call in buffers],
        "codes": {kind: code for kind, (_, code) in ARRAYS.items()},
        "build": BUILD,
        "bound": 0.0 if values is None else values.bound,
    }


LANGUAGE = replace(
    JAVASCRIPT,
    name="wasm",
    help="a WebAssembly module, and a JavaScript module that loads it",
    widest=64,
    files={
        "wasm": ("{p}.c", "languages/wasm.c.j2"),
        "wasm_header": ("{p}.h", "languages/wasm.h.j2"),
        "wasm_loader": ("{p}.mjs", "languages/wasm.mjs.j2"),
    },
    runs={
        "wasm": Runs(
            "`pip install ziglang wasmtime`",
            (),
            {"main.py": "check/wasm_main.py.j2"},
            (("{python}", "-m", "ziglang", *BUILD, "{p}.c", "-o", "{p}.wasm"),),
            ("{python}", "main.py"),
            packages=("ziglang", "wasmtime"),
        )
    },
    module=BUILD,
    view=_view,
)
