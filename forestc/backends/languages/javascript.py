"""The language JavaScript: a module for browsers and Node."""

from __future__ import annotations

from forestc.backends.languages.language import Language, Runs
from forestc.backends.languages.syntax import Syntax, Table, listed


def _table(table: Table) -> str:
    kind = "Float64" if table.bytes == 8 else f"{'I' if table.signed else 'Ui'}nt{8 * table.bytes}"
    return listed(table, f"const {table.name} = new {kind}Array([", "]);")


LANGUAGE = Language(
    name="javascript",
    help="a JavaScript module, for browsers and Node",
    files={"javascript": ("{p}.mjs", "languages/javascript.mjs.j2")},
    escape=lambda character: f"\\u{{{ord(character):x}}}",
    widest=53,
    syntax=Syntax(
        table=_table,
        read=lambda table, index: f"{table.name}[{index}]",
        down="Math.floor({a} / 2 ** ({b}))",
        up="{a} * 2 ** ({b})",
        sized="if (row.length !== COLUMNS) throw new RangeError(`${row.length} values, and a row has ${COLUMNS}`);",
        words={"//": "Math.floor({} / {})", "==": "===", "!=": "!=="},
        calls={"exp": "Math.exp({0})", "narrow": "Math.fround({0})", "truncated": "Math.trunc({0}) + 0"},
    ),
    runs={
        "node": Runs("node", ("node",), {"main.mjs": "check/javascript_main.mjs.j2"}, (), ("node", "main.mjs")),
    },
)
