"""The target wasm: the C header as a WebAssembly module, and a JavaScript module that loads it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from forestc.backends.base import Artifact, Code, Runner, Target, named
from forestc.backends.languages.javascript import LANGUAGE as JAVASCRIPT
from forestc.backends.languages.language import Runs

if TYPE_CHECKING:
    from forestc.backends.source import Source
    from forestc.forest.ir import Forest

BUILD = (
    "cc", "-target", "wasm32-freestanding", "-Oz", "-fno-inline", "-flto", "-nostdlib", "-s", "-Wl,--no-entry",
    "-Wl,-z,stack-size=4096",
)  # fmt: skip
# The type of each C type in JavaScript's arrays, and in Python's struct.
ARRAYS = {"float": ("Float32", "f"), "uint64_t": ("BigUint64", "Q"), "int64_t": ("BigInt64", "q")}
ARRAYS |= {f"{s}int{8 << k}_t": (f"{name}{8 << k}", "bhi"[k] if not s else "BHI"[k])
           for s, name in (("", "Int"), ("u", "Uint")) for k in range(3)}  # fmt: skip


def view_of(forest: Forest) -> dict[str, Any]:
    """Returns the variables of the templates."""
    from forestc.backends.c.header import emit
    from forestc.backends.c.inputs import inputs_of
    from forestc.backends.c.options import COptions, Layout
    from forestc.backends.c.quantizer import row_type
    from forestc.backends.c.types import label_type, score_type
    from forestc.backends.c.values import shown
    from forestc.backends.languages.files import view_of as view_of_language

    view = view_of_language(JAVASCRIPT, forest)
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


def written(source: Source, *_: object) -> list[Artifact]:
    """Returns the loader, the header and the source of the module."""
    from hdl_templates import render

    view = view_of(source.forest)
    loader, c = (render(f"languages/wasm.{kind}.j2", **view) for kind in ("mjs", "c"))
    paths = [path.format(p=view["p"]) for path, _ in LANGUAGE.files.values()]
    return named("wasm", tuple(LANGUAGE.files), dict(zip(paths, (c, view["header"], loader), strict=True)))


LANGUAGE = replace(
    JAVASCRIPT,
    name="wasm",
    widest=64,
    files={"wasm": ("{p}.c", ""), "wasm_header": ("{p}.h", ""), "wasm_loader": ("{p}.mjs", "")},
    runs={
        "wasm": Runs(
            "`pip install ziglang wasmtime`",
            (),
            {"main.py": "check/wasm_main.py.j2"},
            (("{python}", "-m", "ziglang", *BUILD, "{p}.c", "-o", "{p}.wasm"),),
            ("{python}", "main.py"),
            packages=("ziglang", "wasmtime"),
            view=view_of,
        )
    },
)


def _code() -> Code:
    from forestc.backends.languages.engine import LanguageEngine, built, need_zig

    engines = {"wasm": partial(LanguageEngine, LANGUAGE, "wasm")}
    return Code(written, engines, tools=need_zig, built=partial(built, BUILD))


TARGET = Target(
    name="wasm",
    help="a WebAssembly module, and a JavaScript module that loads it",
    layout=(
        (
            "`wasm/NAME.wasm`, `NAME.mjs`, `NAME.c`, `NAME.h`",
            "a WebAssembly module, a loader for browsers and Node, and its source: see [Other languages]"
            "(../howto/languages.md)",
        ),
    ),
    roles=lambda *_: tuple(LANGUAGE.files),
    code=_code,
    runners=(Runner("wasm", "wasm", "runs the WebAssembly module", LANGUAGE.runs["wasm"].needs),),
    lowered=False,
)
