"""Prints the functions that all languages share in one language.

The functions are written once, in a small part of Python: integers and floats, arrays of a fixed size, `if`, `while`,
`for` over a range, calls. `//` is for integers that are not negative, but `a // 2**k` is a floor for all; `2**k` stands
beside `*` and `//` alone. A text that stands alone is a comment.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from forestc.errors import InternalError

A_LINE = 110  # characters of a line of a table
PUBLIC = ("words", "predict", "scores", "probabilities", "values")  # the functions of all languages


@dataclass(frozen=True)
class Table:
    """A constant table: its integers, and the bytes that each takes."""

    name: str
    values: tuple[int, ...]
    bytes: int  # 1, 2, 4 or 8
    signed: bool  # always, of 8 bytes


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """How a language writes each part of the shared functions, as formats."""

    table: Callable[[Table], str]  # the lines of a table
    read: Callable[[Table, str], str]  # an entry, by its index
    types: Mapping[str, str] = field(default_factory=dict)  # of int, float, float32 and label
    taken: str = ""  # the type of an array that a function takes
    given: str = ""  # the type of one that it makes
    public: str = "export function {name}({parameters}) {{"
    function: str = "function {name}({parameters}) {{"
    parameter: str = "{name}"
    declare: str = "let {name} = {value};"
    fixed: str = "const {name} = {value};"  # of a variable that never changes
    array: str = "const {name} = new Array({size}).fill(0);"
    assign: str = "{name} = {value};"
    returned: str = "return {value};"
    loop: str = "for (let {name} = {start}; {name} < {stop}; {name}++) {{"
    loop_while: str = "while ({test}) {{"
    choose: str = "if ({test}) {{"
    otherwise: str = "}} else {{"
    end: str = "}"
    ends: Mapping[str, str] = field(default_factory=dict)  # other ends than `end`, by the name of the block's field
    index: str = "{name}[{index}]"
    comment: str = "// {text}"
    integer: str = "{value}"  # a constant
    down: str = "{a} >> {b}"  # a // 2**b
    up: str = "{a} << {b}"  # a * 2**b
    sized: str = ""  # statement that refuses rows of another length
    words: Mapping[str, str] = field(default_factory=dict)  # other operators than those of C
    calls: Mapping[str, str] = field(default_factory=dict)  # functions that the language has or names otherwise
    call: str = "{name}({arguments})"


_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and",
    ast.Or: "or",
}  # fmt: skip
_IN_C = {"//": "/", "and": "&&", "or": "||"}
_SAME = dict.fromkeys(("wide", "float", "label"), "{0}")  # calls that most languages write as their argument


def functions_of(source: str, roots: Iterable[str]) -> tuple[list[ast.FunctionDef], set[str]]:
    """Returns the functions of a source that roots call, with these, and all names in them. Each function stands before
    those that it calls."""
    functions, names = list[ast.FunctionDef](), set(roots)
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            functions.append(node)
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return functions, names


def printed(functions: Sequence[ast.FunctionDef], tables: Sequence[Table], syntax: Syntax) -> str:
    """Returns functions in a language. Raises InternalError for what the languages do not share."""
    return "\n\n".join(_Printer(syntax, {table.name: table for table in tables}).function(node) for node in functions)


def inlined(
    functions: Sequence[ast.FunctionDef], tables: Sequence[Table], syntax: Syntax
) -> tuple[dict[str, str], str]:
    """Returns the types of the variables of functions, by name, and the statements of all of them."""
    printer, variables, lines = _Printer(syntax, {table.name: table for table in tables}), dict[str, str](), list[str]()
    for function in functions:
        for node in ast.walk(function):
            match node:
                case ast.AnnAssign(ast.Name(name), kind):
                    variables[name] = printer.type(kind, syntax.given)
                case ast.For(ast.Name(name)):
                    variables[name] = syntax.types["int"]
        lines += [line.removeprefix("    ") for line in printer.block(function.body) if line.strip()]
    return variables, "\n".join(lines)


@dataclass
class _Printer:
    syntax: Syntax
    tables: Mapping[str, Table]
    changed: set[str] = field(default_factory=set)  # variables of a function that change

    def function(self, node: ast.FunctionDef) -> str:
        syntax = self.syntax
        targets = [part.targets[0] for part in ast.walk(node) if isinstance(part, ast.Assign)]
        self.changed = {target.id for target in targets if isinstance(target, ast.Name)}
        parameters = [
            syntax.parameter.format(name=one.arg, type=self.type(one.annotation, syntax.taken))
            for one in node.args.args
        ]
        text, *body = node.body
        head = (syntax.public if node.name in PUBLIC else syntax.function).format(
            name=node.name,
            title=node.name.title(),
            parameters=", ".join(parameters),
            type=self.type(node.returns, syntax.given),
        )
        first = [f"    {syntax.sized}"] if syntax.sized and node.name == "words" else []
        return "\n".join([*self.statement(text), head, *first, *self.block(body), *self.closed("function")])

    def type(self, node: ast.expr | None, array: str) -> str:
        match node:
            case ast.Name(name):
                return self.syntax.types.get(name, "")
            case ast.Call(_, [kind, ast.Constant(int(size))]):
                return array.format(type=self.type(kind, ""), size=size, last=size - 1)
        raise InternalError("a type is unknown", where="languages/core.py.j2")

    def closed(self, block: str) -> list[str]:
        end = self.syntax.ends.get(block, self.syntax.end)
        return [end] if end else []

    def block(self, body: Sequence[ast.stmt]) -> list[str]:
        return ["    " + line for node in body for line in self.statement(node)]

    def statement(self, node: ast.stmt) -> list[str]:
        syntax = self.syntax
        match node:
            case ast.Expr(ast.Constant(str(text))):
                return [syntax.comment.format(text=line.strip()) for line in text.splitlines()]
            case ast.AnnAssign(ast.Name(name), ast.Call(_, [kind, ast.Constant(size)]), None):
                return [syntax.array.format(name=name, type=self.type(kind, ""), size=size)]
            case ast.AnnAssign(ast.Name(name), kind, ast.expr() as value):
                shape = syntax.declare if name in self.changed else syntax.fixed
                return [shape.format(name=name, type=self.type(kind, syntax.given), value=self.expression(value))]
            case ast.Assign([target], value):
                return [syntax.assign.format(name=self.expression(target), value=self.expression(value))]
            case ast.Return(ast.expr() as value):
                return [syntax.returned.format(value=self.expression(value))]
            case ast.While(test, body):
                head = syntax.loop_while.format(test=self.expression(test))
                return [head, *self.block(body), *self.closed("loop_while")]
            case ast.For(ast.Name(name), ast.Call(_, limits), body):
                first, end = [ast.Constant(0), *limits][-2:]
                start, stop, last = map(self.expression, (first, end, _before(end)))
                head = syntax.loop.format(name=name, start=start, stop=stop, last=last)
                return [head, *self.block(body), *self.closed("loop")]
            case ast.If(test, body, others):
                lines = [syntax.choose.format(test=self.expression(test)), *self.block(body)]
                lines += [syntax.otherwise.format(), *self.block(others)] if others else []
                return [*lines, *self.closed("choose")]
        raise InternalError(f"{ast.unparse(node)} has no form", where="languages/core.py.j2")

    def expression(self, node: ast.expr) -> str:
        syntax = self.syntax
        match node:
            case ast.Constant(float(value)):
                return repr(value)
            case ast.Constant(int(value)):
                return syntax.integer.format(value=value)
            case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
                return syntax.integer.format(value=-value)
            case ast.Name(name):
                return name
            case ast.UnaryOp(ast.USub(), value):
                return f"-{self.operand(value)}"
            case ast.Subscript(ast.Name(name), index) if name in self.tables:
                return syntax.read(self.tables[name], self.expression(index))
            case ast.Subscript(ast.Name(name), ast.Constant(int(index))):
                return f"{name}[{index}]"
            case ast.Subscript(ast.Name(name), index):
                return syntax.index.format(name=name, index=self.expression(index))
            case ast.BinOp(a, ast.FloorDiv() | ast.Mult() as operator, ast.BinOp(ast.Constant(2), ast.Pow(), b)):
                shape = syntax.up if isinstance(operator, ast.Mult) else syntax.down
                return shape.format(a=self.operand(a), b=self.operand(b))
            case ast.BinOp(a, operator, b):
                return self.joined(operator, [a, b])
            case ast.Compare(a, [operator], [b]):
                return self.joined(operator, [a, b])
            case ast.BoolOp(operator, values):
                return self.joined(operator, values)
            case ast.Call(ast.Name(name), arguments):
                given = [self.expression(argument) for argument in arguments]
                shape = syntax.calls.get(name, _SAME.get(name, syntax.call))
                return shape.format(*given, name=name, arguments=", ".join(given))
        raise InternalError(f"{ast.unparse(node)} has no form", where="languages/core.py.j2")

    def joined(self, operator: ast.AST, operands: Sequence[ast.expr]) -> str:
        sign = _OPERATORS[type(operator)]
        sign = self.syntax.words.get(sign, _IN_C.get(sign, sign))
        shown = [self.operand(operand) for operand in operands]
        return sign.format(*shown) if "{" in sign else f" {sign} ".join(shown)

    def operand(self, node: ast.expr) -> str:
        text = self.expression(node)
        joined = isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.UnaryOp)
        return f"({text})" if joined else text


def _before(node: ast.expr) -> ast.expr:
    """Returns a number less one."""
    match node:
        case ast.Constant(int(value)):
            return ast.Constant(value - 1)
        case ast.BinOp(a, ast.Add(), ast.Constant(1)):
            return a
    return ast.BinOp(node, ast.Sub(), ast.Constant(1))


def wrapped(entries: Sequence[str], joint: str = " ") -> list[str]:
    """Returns entries in lines of at most A_LINE characters."""
    lines, line = list[str](), ""
    for entry in entries:
        if line and len(line) + len(entry) >= A_LINE:
            lines.append(line)
            line = ""
        line += joint * bool(line) + entry
    return [*lines, line]


def listed(table: Table, head: str, tail: str) -> str:
    """Returns a table as numbers with commas between them, in a language's brackets."""
    if not table.values:
        return head + tail
    lines = wrapped([f"{value}," for value in table.values], "")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([head, *("    " + line for line in lines), tail])


def escaped(table: Table, escape: str) -> list[str]:
    """Returns lines of text that hold a table's bytes, the lowest byte of each entry first. escape: format of a byte
    that is no plain character, such as \\x{:02x}."""
    parts = []
    for byte in b"".join(value.to_bytes(table.bytes, "little", signed=table.signed) for value in table.values):
        plain = 32 <= byte < 127 and chr(byte) not in "\"\\'$"
        parts.append(chr(byte) if plain else escape.format(byte))
    return wrapped(parts, "")


def quoted(text: object, escape: Callable[[str], str]) -> str:
    """Returns a text in double quotes. escape: writes a character that is not plain."""
    clean = str(text).encode("utf-8", "replace").decode("utf-8")
    plain = (c if " " <= c <= "~" and c not in '"\\$' else escape(c) for c in clean)
    return f'"{"".join(plain)}"'
