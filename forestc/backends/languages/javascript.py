"""The language JavaScript: a module for browsers and Node."""

from __future__ import annotations

from forestc.backends.languages.language import Language, Runs
from forestc.backends.languages.syntax import Syntax, Table, listed

_ARRAYS = {(1, 0): "Uint8", (1, 1): "Int8", (2, 0): "Uint16", (2, 1): "Int16", (4, 0): "Uint32", (4, 1): "Int32"}


def _table(table: Table) -> str:
    kind = _ARRAYS.get((table.bytes, int(table.signed)), "Float64")
    return listed(table, f"const {table.name} = new {kind}Array([", "]);")


LANGUAGE = Language(
    name="javascript",
    help="a JavaScript module, for browsers and Node",
    files={"javascript": ("{p}.mjs", "languages/javascript.mjs.j2")},
    content="a JavaScript module: see [Other languages](../howto/languages.md)",
    taken=frozenset(),
    escape=lambda character: f"\\u{{{ord(character):x}}}",
    widest=53,
    syntax=Syntax(
        types=dict.fromkeys(("int", "float", "words", "ints", "floats", "row", "row32"), ""),
        table=_table,
        read=lambda table, index: f"{table.name}[{index}]",
        down="Math.floor({a} / 2 ** ({b}))",
        up="{a} * 2 ** ({b})",
        words={"//": "Math.floor({} / {})", "==": "===", "!=": "!=="},
        calls={"exp": "Math.exp({0})", "float": "{0}", "wide": "{0}", "narrow": "Math.fround({0})"},
    ),
    runs={
        "node": Runs("node", ("node",), {"main.mjs": "check/javascript_main.mjs.j2"}, (), ("node", "main.mjs")),
    },
)
