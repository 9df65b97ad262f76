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
    kind = f"{'ui'[table.signed]}{8 * table.bytes}"
    return listed(table, f"static {table.name}: [{kind}; {len(table.values)}] = [", "];")


LANGUAGE = Language(
    name="rust",
    help="a Rust crate without the standard library and without unsafe code",
    files={
        "rust": ("lib.rs", "languages/rust.rs.j2"),
        "rust_crate": ("Cargo.toml", "languages/cargo.toml.j2"),
    },
    taken=_TAKEN,
    escape=lambda character: f"\\u{{{ord(character):x}}}",
    syntax=Syntax(
        types={"int": "i64", "label": "usize", "float": "f64", "float32": "f32"},
        taken="&[{type}; {size}]",
        given="[{type}; {size}]",
        table=_table,
        read=lambda table, index: f"i64::from({table.name}[({index}) as usize])",
        public="pub fn {name}({parameters}) -> {type} {{",
        function="fn {name}({parameters}) -> {type} {{",
        parameter="{name}: {type}",
        declare="let mut {name}: {type} = {value};",
        fixed="let {name}: {type} = {value};",
        array="let mut {name} = [0{type}; {size}];",
        loop="for {name} in {start}..{stop} {{",
        loop_while="while {test} {{",
        choose="if {test} {{",
        index="{name}[({index}) as usize]",
        comment="/// {text}",
        calls={
            "float": "({0} as f64)",
            "narrow": "f64::from({0} as f32)",
            "bits32": "i64::from(({0} as f32).to_bits() as i32)",
            "bits64": "{0}.to_bits() as i64",
            "truncated": "{0} as i64",
            "label": "{0} as usize",
        },
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
