"""The language Structured Text (IEC 61131-3): a function block of integers, for CODESYS, TwinCAT and TIA (SCL)."""

from __future__ import annotations

from forestc.backends.languages.language import Language
from forestc.backends.languages.syntax import Syntax, Table, listed

_KINDS = {1: "SINT", 2: "INT", 4: "DINT", 8: "LINT"}
_TAKEN = """
    abs acos action add and any array asin at atan bool by byte case char configuration constant concat continue cos
    date delete dint div do dt dword else elsif end eq exit exp expt extends f_edge false final find for from
    function ge global gt if implements in insert int interface internal jmp label le left len limit lint ln log
    lreal lt lword max method mid min mod move mul mux namespace ne not null of on or overlap override pragma
    private program protected public r_edge real ref ref_to repeat replace resource retain return right rol ror sel
    shl shr sin single sint sqrt step string struct sub super tan task then this time to tod transition true trunc
    type udint uint ulint until usint using var while with word wstring xor
    """


def _kind(table: Table) -> str:
    return "U" * (not table.signed) + _KINDS[table.bytes]


def _table(table: Table) -> str:
    values = listed(table, "", "").strip("\n") or "    0"
    return f"    {table.name} : ARRAY[0..{max(0, len(table.values) - 1)}] OF {_kind(table)} := [\n{values}\n    ];"


# The template replaces <int> by the narrowest integer type that holds all, and <index> <end> by what makes an index.
LANGUAGE = Language(
    name="st",
    help="Structured Text of IEC 61131-3, for CODESYS and TwinCAT, and as SCL for TIA",
    files={"st": ("{p}.st", "languages/st.st.j2"), "scl": ("{p}.scl", "languages/scl.st.j2")},
    taken=_TAKEN,
    escape=lambda character: "?",
    functions=("scores", "predict"),
    syntax=Syntax(
        types={"int": "<int>", "label": "<int>"},
        given="ARRAY[0..{last}] OF {type}",
        table=_table,
        read=lambda table, index: f"{_kind(table)}_TO_<int>({table.name}[<index>{index}<end>])",
        declare="{name} := {value};",
        fixed="{name} := {value};",
        array="",
        assign="{name} := {value};",
        returned="",
        loop="FOR {name} := {start} TO {last} DO",
        loop_while="WHILE {test} DO",
        choose="IF {test} THEN",
        otherwise="ELSE",
        ends={"loop": "END_FOR;", "loop_while": "END_WHILE;", "choose": "END_IF;"},
        index="{name}[<index>{index}<end>]",
        words={"==": "=", "!=": "<>", "and": "AND", "or": "OR", "%": "MOD"},
    ),
)
