"""Makes damaged and hostile copies of a file, drawn with a seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

RAW = {"@huge": "1" + "0" * 400, "@float": "1e400", "@nan": "NaN", "@inf": "-Infinity", "@surrogate": '"\\ud800"'}
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3.7, -0.0, 2**31, 2**63, -(2**70), 1e300, "", "0", "1", "telnet", "../../../x",
    "/etc/passwd", "a(); endmodule module b", "c\\..\\x", "\x00", "\x1b[31m", "a\nb", "<script>", "é", "x" * 5000,
    [], {}, [[]], [None], {"a": {}}, [1] * 3000, *RAW,
)  # fmt: skip
NAMES = ("", "../x", "__class__", "a\nb", "extra", "format", "\x00", "name", "0")


class Copy(NamedTuple):
    """A copy of a file. data: its bytes. keys: keys and indices that lead to the changed value; none for changed bytes.
    how: the change, for messages."""

    data: bytes
    keys: tuple[str | int, ...]
    how: str


def json_copies(value: Any, count: int, seed: str) -> Iterator[Copy]:
    """Yields copies of a JSON file, most with one value changed, some with bytes changed."""
    draw = random.Random(seed)
    text = json.dumps(value, indent=1)
    for number in range(count):
        if number % 4 == 3:
            yield _bytes(text.encode(), draw)
        elif number % 25 == 8:
            yield _twice(text, draw)
        elif number % 25 == 16:
            yield _deep(value, draw)
        else:
            yield _value(value, draw)


def byte_copies(data: bytes, count: int, seed: str) -> Iterator[Copy]:
    """Yields copies of any file with bytes changed."""
    draw = random.Random(seed)
    for _ in range(count):
        yield _bytes(data, draw)


def text_copies(data: bytes, count: int, seed: str) -> Iterator[Copy]:
    """Yields copies of a text, some with bytes changed, others with a word or a line changed."""
    draw = random.Random(seed)
    for number in range(count):
        yield _bytes(data, draw) if number % 3 == 0 else _words(data.decode(), draw)


def _places(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*keys, key)
        yield from _places(part, (*keys, key))


def _path(value: Any, draw: random.Random) -> tuple[str | int, ...]:
    """Draws the path of a value; half of the paths lie on the first two levels, which have few values."""
    places = list(_places(value))
    high = [keys for keys in places if len(keys) <= 2]
    return draw.choice(high if high and draw.random() < 0.5 else places)


def _value(value: Any, draw: random.Random) -> Copy:
    changed = copy.deepcopy(value)
    keys = _path(changed, draw)
    parent = changed
    for key in keys[:-1]:
        parent = parent[key]
    key, way = keys[-1], draw.randrange(10)
    if way == 0:
        del parent[key]
        how = "removed"
    elif way == 1 and isinstance(parent, dict):
        name = draw.choice(NAMES)
        parent[name] = draw.choice(VALUES)
        how, keys = f"{name!r} added", (*keys[:-1], name)
    elif way == 2 and isinstance(parent, dict):
        name = draw.choice(NAMES)
        parent[name] = parent.pop(key)
        how, keys = f"renamed {name!r}", (*keys, name)
    elif way == 3 and isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
        parent[key] = draw.choice((-parent[key] - 1, parent[key] * 2 + 1, parent[key] + 0.5, str(parent[key])))
        how = f"changed to {parent[key]!r}"
    elif way == 4 and isinstance(parent[key], list) and parent[key]:
        parent[key] = parent[key] * 2 if draw.random() < 0.5 else parent[key][:-1]
        how = "a list of another length"
    else:
        parent[key] = draw.choice(VALUES)
        how = f"set to {str(parent[key])[:40]!r}"
    return Copy(_dumped(changed), keys, how)


def _dumped(value: Any) -> bytes:
    text = json.dumps(value, indent=1)
    for mark, raw in RAW.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode()


def _twice(text: str, draw: random.Random) -> Copy:
    """Writes a key twice, with another value first."""
    lines = text.split("\n")
    keyed = [place for place, line in enumerate(lines) if line.strip().startswith('"') and '": ' in line]
    place = draw.choice(keyed)
    head = lines[place].split('": ')[0]
    lines.insert(place, f'{head}": 0,')
    return Copy("\n".join(lines).encode(), (), f"{head.strip()} twice")


def _deep(value: Any, draw: random.Random) -> Copy:
    changed = copy.deepcopy(value)
    keys = _path(changed, draw)
    parent = changed
    for key in keys[:-1]:
        parent = parent[key]
    parent[keys[-1]] = "@deep"
    depth = draw.choice((30, 60, 2000, 100_000))
    return Copy(json.dumps(changed).replace('"@deep"', "[" * depth + "]" * depth).encode(), (), f"{depth} deep")


def _bytes(data: bytes, draw: random.Random) -> Copy:
    changed, at = bytearray(data), draw.randrange(max(1, len(data)))
    way = draw.randrange(8)
    if way == 0:
        del changed[at:]
    elif way == 1:
        changed[at : at + draw.randrange(1, 40)] = b""
    elif way == 2:
        changed[at:at] = draw.choice((b"\xff\xfe", b"\x00", b"\xc3", b"\xed\xa0\x80", b"[" * 50, b"9" * 400, b"\r\n"))
    elif way == 3:
        changed = bytearray(draw.choice((b"", b"\n", b"null", b"[]", b"{}", b"0", b"\x00" * 64, b'"x"')))
    elif way == 4:
        other = draw.randrange(max(1, len(data)))
        changed[at : at + 16], changed[other : other + 16] = changed[other : other + 16], changed[at : at + 16]
    elif way == 5:
        changed[:0] = b"\xef\xbb\xbf"
    else:
        for _ in range(draw.randrange(1, 6)):
            if changed:
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return Copy(bytes(changed), (), f"bytes, way {way} at {at}")


WORDS = (
    "-1", "0", "1e400", "nan", "inf", "9" * 30, "../x", "a(); b", "", "true", "null", "\x00", "4294967296", "0x10",
    "1_0", "٣", "1.5", "[]", "{}", '"', "-", "x" * 5000,
)  # fmt: skip


def _words(text: str, draw: random.Random) -> Copy:
    """Changes a line: one of its words, or the line is dropped, doubled or swapped with the next one."""
    lines = text.split("\n")
    place, way = draw.randrange(len(lines)), draw.randrange(6)
    if way == 0:
        del lines[place]
    elif way == 1:
        lines.insert(place, lines[place])
    elif way == 2 and place + 1 < len(lines):
        lines[place], lines[place + 1] = lines[place + 1], lines[place]
    else:
        marks = draw.choice((" ", ",", ":", "["))
        words = lines[place].split(marks)
        words[draw.randrange(len(words))] = draw.choice(WORDS)
        lines[place] = marks.join(words)
    return Copy("\n".join(lines).encode(), (), f"line {place + 1}, way {way}")
