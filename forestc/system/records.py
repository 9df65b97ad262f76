"""Records: JSON files that forestc writes and reads back, each checked against a JSON Schema.

A record may come from anywhere, so its size is limited. Only common keywords of JSON Schema are supported.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from forestc.errors import ForestcError

MOST_BYTES = 1 << 27  # bytes that a record has at most
MOST_DEPTH = 40  # limits the nesting of objects and lists
MOST_DIGITS = 20  # limits the digits of a whole number: 64 bits need 20
LARGEST = 1e15  # limits a figure; a larger number counts as damage

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": int(LARGEST)}
FIGURE: Schema = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
# Maps paths to the SHA-256 of files; null for a file that can't be read.
FILES: Schema = {"type": "object", "additionalProperties": {"anyOf": [SHA256, {"type": "null"}]}}
# Accepts a path inside the record's folder, with / as separator.
INNER_PATH: Schema = {
    "type": "string",
    "pattern": r"^(?!(.*/)?\.{1,2}(/|$))[^/\\:\x00-\x1f]+(/[^/\\:\x00-\x1f]+)*$",
    "means": "a path inside of the folder",
}

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": NoneType,
}  # fmt: skip
_WORDS = {
    "object": "an object", "array": "a list", "string": "text", "integer": "a whole number", "number": "a number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


class DamagedError(ValueError):
    pass


def parse_json(text: str) -> Any:
    """Parses a JSON text. Raises DamagedError for other texts, repeated keys, infinite or very long numbers, and deep
    nesting."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except DamagedError:
        raise
    except RecursionError:
        raise DamagedError("it is nested too deeply") from None
    except ValueError as error:
        raise DamagedError(f"it is not JSON: {error}") from None
    _check_values(value, "", MOST_DEPTH)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DamagedError(f"{shown(twice)} appears twice")
    return result


def _integer(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= MOST_DIGITS else math.inf


def _check_values(value: object, path: str, depth: int) -> None:
    if isinstance(value, dict | list) and depth == 0:
        raise DamagedError(f"{path[:60]}... is nested too deeply")
    if isinstance(value, dict):
        for name, part in value.items():
            _check_text(name, path)
            _check_values(part, _inside(path, name), depth - 1)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check_values(part, f"{path}[{index}]", depth - 1)
    elif isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float) and not math.isfinite(value):
        raise DamagedError(f"{path or 'it'} is no finite number of 64 bits")


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DamagedError(f"{path or 'it'} is or holds text that is no Unicode") from None


def hold(value: object, schema: Schema, path: str = "") -> None:
    """Raises DamagedError if a JSON value does not satisfy a schema. path: the value's field, for the message."""
    _Holding(schema).hold(value, schema, path)


def shown(value: object) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Holding:
    """Checks values against schemas. root: the schema that `$ref` refers to."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def hold(self, value: object, schema: Schema, path: str) -> None:
        if "$ref" in schema:
            self.hold(value, self._meant(schema["$ref"]), path)
        if "anyOf" in schema:
            self._any(value, schema["anyOf"], path)
        types = schema.get("type", ())
        types = (types,) if isinstance(types, str) else types
        if types and not any(_is(value, name) for name in types):
            raise _wrong(path, value, " or ".join(_WORDS[name] for name in types))
        if "const" in schema and not _same(value, schema["const"]):
            raise _wrong(path, value, shown(schema["const"]))
        if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
            raise _wrong(path, value, "one of " + ", ".join(map(shown, schema["enum"])))
        if isinstance(value, str):
            if "pattern" in schema and not re.search(re.sub(r"\$$", r"\\Z", schema["pattern"]), value):
                raise _wrong(path, value, schema.get("means", f"of the form {schema['pattern']}"))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(value, schema, path)
        elif isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
                raise _wrong(path, f"a list of {len(value)}", _range(schema, "minItems", "maxItems"))
            for index, part in enumerate(value) if "items" in schema else ():
                self.hold(part, schema["items"], f"{path}[{index}]")
        elif isinstance(value, dict):
            self._object(value, schema, path)

    def _object(self, value: Mapping[str, Any], schema: Schema, path: str) -> None:
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in schema.get("required", ()):
            if name not in value:
                raise DamagedError(f"{_inside(path, name)} is missing")
        for name, needed in schema.get("dependentRequired", {}).items():
            for other in needed if name in value else ():
                if other not in value:
                    raise DamagedError(f"{_inside(path, other)} is missing, and {name} is there")
        for name, part in value.items():
            inner = _inside(path, name)
            if "propertyNames" in schema:
                self.hold(name, schema["propertyNames"], f"{path}, the name {shown(name)}".lstrip(", "))
            if name in properties:
                self.hold(part, properties[name], inner)
            elif more is False:
                raise DamagedError(f"{inner} is unknown")
            elif more is not True:
                self.hold(part, more, inner)

    def _any(self, value: object, choices: Sequence[Schema], path: str) -> None:
        faults = []
        for choice in choices:
            try:
                return self.hold(value, choice, path)
            except DamagedError as fault:
                faults.append((str(fault).startswith((f"{path}.", f"{path}[")) if path else True, fault))
        raise max(faults, key=lambda fault: fault[0])[1]  # the fault that is found deeper inside the value

    @staticmethod
    def _number(value: float, schema: Schema, path: str) -> None:
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not low <= value <= high:
            raise _wrong(path, value, _range(schema, "minimum", "maximum"))

    def _meant(self, reference: str) -> Schema:
        part: Any = self.root
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
        meant: Schema = part
        return meant


def _is(value: object, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _same(value: object, constant: object) -> bool:
    return value == constant and isinstance(value, bool) == isinstance(constant, bool)


def _inside(path: str, name: str) -> str:
    if not name.isprintable() or not 0 < len(name) <= 60:
        return f"{path}[{shown(name)}]"
    return f"{path}.{name}" if path else name


def _range(schema: Schema, low: str, high: str) -> str:
    ends = [f"{schema[end]:,}" if end in schema else "" for end in (low, high)]
    return " to ".join(ends) if all(ends) else f"at least {ends[0]}" if ends[0] else f"at most {ends[1]}"


def _wrong(path: str, value: object, expected: str) -> DamagedError:
    return DamagedError(f"{path or 'it'} is {shown(value)}, not {expected}")


def record_of(kind: Any, /, **own: Schema) -> dict[str, Any]:
    """Returns the JSON Schema of a dataclass, from its fields' types. own: schemas for single fields. Fields with a
    default may be missing."""
    hints = get_type_hints(kind)
    entries = [entry for entry in fields(kind) if entry.init]
    return {
        "type": "object",
        "properties": {entry.name: own.get(entry.name) or _of_type(hints[entry.name]) for entry in entries},
        "required": [e.name for e in entries if e.default is MISSING and e.default_factory is MISSING],
    }


def _of_type(hint: Any) -> Schema:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if is_dataclass(hint):
        return record_of(hint)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, UnionType):
        return {"anyOf": [_of_type(part) for part in parts]}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of_type(parts[1])}
    if origin is not None and issubclass(origin, Sequence):
        return {"type": "array", "items": _of_type(parts[0])}
    return FIGURE | {"type": _KINDS[hint]} if hint in (int, float) else {"type": _KINDS[hint]}


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Reads a UTF-8 file. Raises OSError if it can't be read, DamagedError if it is too large or not UTF-8."""
    if not path.is_file():  # reading from a pipe would wait for ever
        raise FileNotFoundError(2, "No such file", str(path))
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(size, most) + 1)  # A read allocates as many bytes as it is asked for.
    if len(data) > most:
        raise DamagedError(f"is larger than {most:,} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedError(f"is not UTF-8, from byte {error.start} on") from None


def read_record(path: Path, schema: Schema, missing: str, damaged: str, most: int = MOST_BYTES) -> Any:
    """Reads a JSON file and checks it against a schema. missing, damaged: remedies for a missing or damaged file.
    Raises ForestcError."""
    try:
        text = read_text(path, most)
    except OSError:
        raise ForestcError(f"has no readable {path.name}", where=str(path.parent), do=missing) from None
    except DamagedError as fault:
        raise ForestcError(f"{path.name} is damaged (it {fault})", where=str(path.parent), do=damaged) from None
    return hold_text(text, path, schema, damaged)


def hold_text(text: str, path: Path, schema: Schema, damaged: str) -> Any:
    with refusing(path, damaged):
        value = parse_json(text)
        expected = schema.get("properties", {}).get("format", {}).get("const")
        version = value.get("format") if isinstance(value, dict) else None
        if expected is not None and _is(version, "integer") and version != expected:
            raise ForestcError(
                f"was written by another version of forestc ({path.name}: format {version})", where=str(path.parent),
                do=damaged,
            )  # fmt: skip
        hold(value, schema)
        return value


@contextmanager
def refusing(path: Path, do: str, kind: type[ForestcError] = ForestcError) -> Iterator[None]:
    """Turns a DamagedError raised inside into an error of `kind` that names the file. do: the remedy."""
    try:
        yield
    except DamagedError as fault:
        raise kind(f"{path.name} is damaged ({fault})", where=str(path.parent), do=do) from None


def inside(folder: Path, name: str) -> Path:
    """Returns the path of a file in a folder. Raises ForestcError for a name or a link that leads out of the folder."""
    path = folder / name
    try:
        within = not Path(name).is_absolute() and path.resolve().is_relative_to(folder.resolve())
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # `resolve` of Python 3.13 keeps links in a circle
    except (OSError, RuntimeError, ValueError):  # links in a circle, or a name with a zero byte
        within = False
    if not within:
        raise ForestcError(f"{shown(name)} leads out of the folder", where=str(folder), do="remove it")
    return path
