"""Reads and runs function blocks in the part of Structured Text that forestc writes.

Integers are in two's complement, arrays have bounds, and nothing is implicit: both sides of an operation or an
assignment must have one type."""

from __future__ import annotations

import re

TOKEN = re.compile(r"""\s+|//[^\n]*|("\w+"|'\w+'|[A-Za-z_]\w*)|(0\.1|\d+)|(:=|<>|<=|>=|\.\.|[-+*/()\[\],;:=<>{}])""")
WIDTHS = {"SINT": 8, "INT": 16, "DINT": 32, "LINT": 64}
RANGES = {name: (-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in WIDTHS.items()}
RANGES |= {f"U{name}": (0, (1 << bits) - 1) for name, bits in WIDTHS.items()}
COMPARED = {
    "=": int.__eq__, "<>": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__,
}  # fmt: skip
SCL = ("{", "S7_Optimized_Access", ":=", "'TRUE'", "}", "VERSION", ":", "0.1")  # Siemens' head
LITERAL, BOOL = "a literal", "BOOL"


def wrapped(value, kind):
    low, high = RANGES[kind]
    return (value - low) % (high - low + 1) + low


class Block:
    """A function block. It is read once; `run` gives its outputs for inputs."""

    def __init__(self, text):
        self.tokens, at = [], 0
        while at < len(text):
            found = TOKEN.match(text, at)
            assert found, text[at : at + 40]
            self.tokens += [found[0]] * (found.lastindex is not None)
            at = found.end()
        self.at, self.types, self.values, self.outputs, self.inputs = 0, {}, {}, [], []
        self.take("FUNCTION_BLOCK")
        self.name = self.take()
        scl = self.name.startswith('"')
        for token in SCL * scl:
            self.take(token)
        while self.tokens[self.at].startswith("VAR"):
            self.section()
        for token in ("BEGIN",) * scl:
            self.take(token)
        self.body = self.statements("END_FUNCTION_BLOCK")
        assert self.at == len(self.tokens)

    def run(self, **inputs):
        assert set(inputs) == set(self.inputs)
        for name, given in inputs.items():
            kind, count = self.types[name]
            assert len(given) == count and all(wrapped(value, kind) == value for value in given)
            self.values[name] = list(given)
        for statement in self.body:
            statement()
        return {name: list(self.values[name]) for name in self.outputs}

    def take(self, *wanted):
        token = self.tokens[self.at]
        assert not wanted or token in wanted, (wanted, self.tokens[self.at - 5 : self.at + 5])
        self.at += 1
        return token

    def sight(self, *wanted):
        return self.tokens[self.at] in wanted

    def section(self):
        kind = self.take()
        constant = self.sight("CONSTANT") and self.take() == "CONSTANT"
        while not self.sight("END_VAR"):
            name = self.take()
            assert name.lower() not in {other.lower() for other in self.types}, name
            self.take(":")
            count = 0
            if self.sight("ARRAY"):
                for token in ("ARRAY", "[", "0", ".."):
                    self.take(token)
                count = int(self.take()) + 1
                self.take("]"), self.take("OF")
            self.types[name] = (self.take(*RANGES), count)
            self.values[name] = [0] * count if count else 0
            assert self.sight(":=") or not constant
            if self.sight(":="):
                self.take(), self.take("[")
                values = []
                while not values or self.take(",", "]") == ",":
                    sign = -1 if self.sight("-") and self.take() else 1
                    values.append(sign * int(self.take()))
                assert len(values) == count and all(wrapped(v, self.types[name][0]) == v for v in values), name
                self.values[name] = values
            self.take(";")
            self.inputs += [name] * (kind == "VAR_INPUT")
            self.outputs += [name] * (kind == "VAR_OUTPUT")
        self.take("END_VAR")

    def statements(self, *ends):
        found = []
        while not self.sight(*ends):
            found.append(self.statement())
        self.take(*ends)
        return found

    def statement(self):
        if self.sight("IF"):
            self.take()
            test = self.expression(BOOL)
            self.take("THEN")
            body, other = self.statements("END_IF", "ELSE"), []
            if self.tokens[self.at - 1] == "ELSE":
                other = self.statements("END_IF")
            self.take(";")
            return lambda: [each() for each in (body if test() else other)]
        if self.sight("WHILE"):
            self.take()
            test = self.expression(BOOL)
            self.take("DO")
            body = self.statements("END_WHILE")
            self.take(";")

            def repeat():
                while test():
                    for each in body:
                        each()

            return repeat
        loop = self.sight("FOR") and self.take() == "FOR"
        name = self.take()
        kind, index = self.types[name][0], self.index(name)
        self.take(":=")
        value, values = self.expression(kind), self.values
        if not loop:
            self.take(";")
            if index is None:
                return lambda: values.update({name: value()})

            def store():
                values[name][index()] = value()

            return store
        self.take("TO")
        last = self.expression(kind)
        self.take("DO")
        body = self.statements("END_FOR")
        self.take(";")

        def count():
            end = last()
            values[name] = value()
            while values[name] <= end:
                for each in body:
                    each()
                values[name] = wrapped(values[name] + 1, kind)

        return count

    def index(self, name):
        count = self.types[name][1]
        if not count:
            return None
        self.take("[")
        found = self.expression("DINT")
        self.take("]")

        def checked():
            place = found()
            assert 0 <= place < count, (name, place)
            return place

        return checked

    def expression(self, wanted):
        kind, value = self.joined()
        if kind == LITERAL:
            low, high = RANGES[wanted]
            assert low <= value() <= high
        else:
            assert kind == wanted, (kind, wanted, self.tokens[self.at - 9 : self.at])
        return value

    def joined(self, level=0):
        signs = [("OR",), ("AND",), tuple(COMPARED), ("+", "-"), ("*", "/", "MOD")]
        if level == len(signs):
            return self.unary()
        kind, value = self.joined(level + 1)
        while self.sight(*signs[level]):
            sign = self.take()
            other, right = self.joined(level + 1)
            kind, value = self.operation(sign, kind, value, other, right)
        return kind, value

    def operation(self, sign, kind, left, other, right):
        if sign in ("AND", "OR"):
            assert kind == other == BOOL
            # Both sides are evaluated, as the standard lets a controller do.
            return BOOL, (lambda: left() & right()) if sign == "AND" else (lambda: left() | right())
        assert BOOL not in (kind, other) and (kind == other or LITERAL in (kind, other)), (kind, sign, other)
        common = other if kind == LITERAL else kind
        if sign in COMPARED:
            return BOOL, lambda: COMPARED[sign](left(), right())

        def computed():
            a, b = left(), right()
            whole = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if sign in ("/", "MOD") else 0
            value = {"+": a + b, "-": a - b, "*": a * b, "/": whole}.get(sign, a - whole * b)
            return value if common == LITERAL else wrapped(value, common)

        return common, computed

    def unary(self):
        token = self.take()
        if token == "-":
            kind, value = self.unary()
            return kind, (lambda: -value()) if kind == LITERAL else (lambda: wrapped(-value(), kind))
        if token == "(":
            kind, value = self.joined()
            self.take(")")
            return kind, value
        if token.isdigit():
            return LITERAL, lambda: int(token)
        if "_TO_" in token:
            source, target = token.split("_TO_")
            self.take("(")
            value = self.expression(source)
            self.take(")")
            return target, lambda: wrapped(value(), target)
        index, values = self.index(token), self.values
        if index is None:
            return self.types[token][0], lambda: values[token]
        return self.types[token][0], lambda: values[token][index()]
