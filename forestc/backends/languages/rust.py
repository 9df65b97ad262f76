"""The language Rust: a crate without the standard library."""

from __future__ import annotations

from forestc.backends.languages.language import Language, Runs
from forestc.backends.languages.syntax import Syntax, Table, listed

_RUSTC = ("rustc", "--edition=2021")
_TAKEN = """
    alloc async await core crate dyn fn impl in let loop match mod move mut proc_macro pub ref self static std super
    test trait unsafe use where yield
    """


def _table(table: Table) -> str:
    kind = f"{'iu'[not table.signed and table.bytes < 8]}{8 * table.bytes}"
    return listed(table, f"static {table.name}: [{kind}; {len(table.values)}] = [", "];")


LANGUAGE = Language(
    name="rust",
    help="a Rust crate without the standard library and without unsafe code",
    files={
        "rust": ("lib.rs", "languages/rust.rs.j2"),
        "rust_crate": ("Cargo.toml", "languages/cargo.toml.j2"),
    },
    content="a Rust crate, `no_std`: see [Other languages](../howto/languages.md)",
    taken=frozenset(_TAKEN.split()),
    escape=lambda character: f"\\u{{{ord(character):x}}}",
    syntax=Syntax(
        types={
            "int": "i64",
            "float": "f64",
            "words": "&[i64; {size}]",
            "ints": "&mut [i64; {size}]",
            "floats": "&mut [f64; {size}]",
            "row": "&[f64; {size}]",
            "row32": "&[f32; {size}]",
        },
        table=_table,
        read=lambda table, index: f"i64::from({table.name}[({index}) as usize])",
        function="fn {name}({parameters}){returns} {{",
        parameter="{name}: {type}",
        returns=" -> {type}",
        declare="let mut {name}: {type} = {value};",
        fixed="let {name}: {type} = {value};",
        array="let mut {name} = [0i64; {size}];",
        loop="for {name} in {start}..{stop} {{",
        loop_while="while {test} {{",
        choose="if {test} {{",
        index="{name}[({index}) as usize]",
        comment="/// {text}",
        calls={"narrow": "f64::from({0} as f32)", "wide": "{0}"},
    ),
    runs={
        "rust": Runs(
            "rustc",
            ("rustc",),
            {"main.rs": "check/rust_main.rs.j2"},
            (
                (*_RUSTC, "-Cdebug-assertions", "-Dwarnings", "--crate-type=rlib", "--crate-name={p}", "lib.rs"),
                (*_RUSTC, "--extern={p}=lib{p}.rlib", "main.rs", "-o", "program"),
            ),
            ("./program",),
        )
    },
)
