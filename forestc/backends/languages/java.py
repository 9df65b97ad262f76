"""The language Java: a class, for Java 8 and later."""

from __future__ import annotations

from forestc.backends.languages.language import Language, Runs
from forestc.backends.languages.syntax import Syntax, Table, escaped

_TAKEN = """
    abstract boolean byte class double exports extends finally implements instanceof interface java long main math
    modules native object permits provides record requires sealed short string strictfp super synchronized system throws
    transient uses var void yield
    """
_TOGETHER = 16  # lines of a table that are one constant; a constant holds up to 65,535 bytes


def _table(table: Table) -> str:
    lines = escaped(table, "\\{:03o}")
    kind = "int" if table.bytes + (not table.signed) <= 4 else "long"
    parts = [
        " +\n        ".join(f'"{line}"' for line in lines[start : start + _TOGETHER])
        for start in range(0, len(lines), _TOGETHER)
    ]
    signed = str(table.signed).lower()
    head = f"    private static final {kind}[] {table.name} = {kind}s({table.bytes}, {signed},\n        "
    return head + ",\n        ".join(parts) + ");"


def _escape(character: str) -> str:
    halves = character.encode("utf-16-be")
    if len(halves) == 2 and ord(character) < 128:
        return f"\\{ord(character):03o}"  # Java reads \u000a before it reads texts
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


LANGUAGE = Language(
    name="java",
    help="a Java class, for Java 8 and later",
    files={"java": ("{p}.java", "languages/java.java.j2")},
    taken=_TAKEN,
    escape=_escape,
    syntax=Syntax(
        types={"int": "long", "label": "int", "float": "double", "float32": "float"},
        taken="{type}[]",
        given="{type}[]",
        table=_table,
        read=lambda table, index: f"{table.name}[(int) ({index})]",
        public="public static {type} {name}({parameters}) {{",
        function="private static {type} {name}({parameters}) {{",
        parameter="{type} {name}",
        declare="{type} {name} = {value};",
        fixed="final {type} {name} = {value};",
        array="{type}[] {name} = new {type}[{size}];",
        loop="for (long {name} = {start}; {name} < {stop}; {name}++) {{",
        index="{name}[(int) ({index})]",
        integer="{value}L",
        calls={
            "exp": "Math.exp({0})",
            "float": "(double) {0}",
            "label": "(int) {0}",
            "truncated": "(long) {0}",
            "narrow": "(double) (float) {0}",
            "bits32": "(long) Float.floatToRawIntBits((float) {0})",
            "bits64": "Double.doubleToRawLongBits({0})",
        },
    ),
    runs={
        "java": Runs(
            "a JDK",
            ("javac", "java"),
            {"Main.java": "check/java_main.java.j2"},
            (("javac", "-Xlint:all,-options,-cast", "-Werror", "--release", "8", "{p}.java", "Main.java"),),
            ("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "Main"),
        )
    },
)
