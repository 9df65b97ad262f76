"""The language Go: a package."""

from __future__ import annotations

from forestc.backends.languages.language import Language, Runs
from forestc.backends.languages.syntax import Syntax, Table, listed

_TAKEN = "chan defer fallthrough func go init internal interface main map range select testdata vendor"


def _name(table: Table) -> str:
    return "table" + table.name.title().replace("_", "")


def _table(table: Table) -> str:
    kind = f"{'u' * (not table.signed)}int{8 * table.bytes}"
    text = listed(table, f"var {_name(table)} = [...]{kind}{{", "}")
    return text.replace("\n}", ",\n}") if table.values else text


LANGUAGE = Language(
    name="go",
    help="a Go package",
    files={"go": ("forest.go", "languages/go.go.j2"), "go_module": ("go.mod", "languages/go.mod.j2")},
    taken=_TAKEN,
    escape=lambda character: f"\\U{ord(character):08x}",
    syntax=Syntax(
        types={"int": "int64", "label": "int64", "float": "float64", "float32": "float32"},
        taken="*[{size}]{type}",
        given="[{size}]{type}",
        table=_table,
        read=lambda table, index: f"int64({_name(table)}[{index}])",
        public="func {title}({parameters}) {type} {{",
        function="func {name}({parameters}) {type} {{",
        parameter="{name} {type}",
        declare="var {name} {type} = {value}",
        fixed="var {name} {type} = {value}",
        array="var {name} [{size}]{type}",
        assign="{name} = {value}",
        returned="return {value}",
        loop="for {name} := int64({start}); {name} < {stop}; {name}++ {{",
        loop_while="for {test} {{",
        choose="if {test} {{",
        down="{a} >> uint({b})",
        up="{a} << uint({b})",
        calls={
            "exp": "math.Exp({0})",
            "float": "float64({0})",
            "scores": "Scores({0})",
            "truncated": "int64({0})",
            "narrow": "float64(float32({0}))",
            "bits32": "int64(int32(math.Float32bits(float32({0}))))",
            "bits64": "int64(math.Float64bits({0}))",
        },
    ),
    runs={
        "go": Runs(
            "go",
            ("go",),
            {"run/main.go": "check/go_main.go.j2"},
            (("go", "build", "-o", "program", "./run"),),
            ("./program",),
        )
    },
)
