"""Writes YDF's model folders by hand: files by name, as YDF and TensorFlow Decision Forests save them.

A tree is a leaf's number, or (condition, negative branch, positive branch); a condition is (column, field of its kind,
message, branch of missing values).
"""

from __future__ import annotations

import gzip
import struct
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

NUMBER, CATEGORY, SET, BOOLEAN, DISCRETIZED = 1, 4, 5, 7, 9
TEXTS = {"<OOD>": 0, "red": 1, "green": 2, "blue": 3, "grey": 4}
BOUNDARIES = (0.5, 2.0, 7.25)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    result = b""
    while value > 127:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def message(**fields: Any) -> bytes:
    """Returns a message of fields f1, f2, ...: int, float (32 bits), bytes or text, or a list of these."""
    result = b""
    for name, values in fields.items():
        number = int(name[1:])
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, float):
                result += varint(number << 3 | 5) + struct.pack("<f", value)
            elif isinstance(value, int):
                result += varint(number << 3) + varint(value)
            else:
                data = value.encode() if isinstance(value, str) else value
                result += varint(number << 3 | 2) + varint(len(data)) + data
    return result


def doubles(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def column(name: str, kind: int, mean: float = 0.0, integers: bool = False, offset: bool = False) -> bytes:
    items = [message(f1=text, f2=message(f1=index, f2=9)) for text, index in ({} if integers else TEXTS).items()]
    more: dict[str, Any] = {
        NUMBER: {"f5": varint(1 << 3 | 1) + doubles(mean)},
        CATEGORY: {"f6": message(f1=1, f2=len(TEXTS), f5=int(integers), f7=items, f8=int(offset))},
        SET: {"f6": message(f1=1, f2=len(TEXTS), f7=items)},
        BOOLEAN: {"f9": message(f1=5, f2=5)},
        DISCRETIZED: {"f5": varint(1 << 3 | 1) + doubles(mean), "f8": message(f1=list(BOUNDARIES))},
    }.get(kind, {})
    return message(f1=kind, f2=name, **more)


def higher(place: int, threshold: float, missing: int = 0) -> tuple[Any, ...]:
    return place, 2, message(f1=float(threshold)), missing


def contains(place: int, *indices: int, missing: int = 0, bitmap: bool = False) -> tuple[Any, ...]:
    bits = sum(1 << index for index in indices).to_bytes(1, "little")
    packed = b"".join(map(varint, sorted(indices)))
    return place, 5 if bitmap else 4, message(f1=bits if bitmap else packed), missing


def nodes(tree: Any, leaf: Any) -> list[bytes]:
    """Returns the nodes of a tree in preorder. leaf: returns the node of a leaf's number."""
    if not isinstance(tree, tuple):
        return [leaf(tree)]
    (place, kind, condition, missing), negative, positive = tree
    inner = message(f3=message(f1=missing, f2=place, f3=message(**{f"f{kind}": condition})))
    return [inner, *nodes(negative, leaf), *nodes(positive, leaf)]


def number_leaf(value: float) -> bytes:
    return message(f2=message(f1=float(value)))


def vote_leaf(counts: Any) -> bytes:
    """counts: [index of the class with most votes, counts of all classes from index 0 on]."""
    top, *each = counts
    total = varint(2 << 3 | 1) + doubles(sum(each))
    return message(f1=message(f1=top, f2=message(f1=doubles(*each)) + total))


def path_leaf(examples: int) -> bytes:
    return message(f6=message(f1=examples))


@dataclass
class Folder:
    """The parts of a model's folder. label: a class per entry of the label column, none for numbers."""

    columns: list[bytes]
    trees: list[Any]
    name: str = "GRADIENT_BOOSTED_TREES"
    task: int = 1
    leaf: Any = number_leaf
    own: bytes = b""  # fields of the kind's header, beside numbers of files and trees
    label: tuple[str, ...] = ("no", "yes")
    inputs: list[int] | None = None

    def files(self, form: str = "BLOB_SEQUENCE", shards: int = 1, prefix: str = "") -> dict[str, bytes]:
        items = [message(f1=text, f2=message(f1=index)) for index, text in enumerate(("<OOD>", *self.label))]
        label = message(f1=CATEGORY, f2="label", f6=message(f2=len(items), f7=items))
        count = len(self.columns)
        inputs = list(range(count)) if self.inputs is None else self.inputs
        records = [node for tree in self.trees for node in nodes(tree, self.leaf)]
        own = {"GRADIENT_BOOSTED_TREES": 7, "RANDOM_FOREST": 7, "ISOLATION_FOREST": 3}.get(self.name, 7)
        kind = message(f1=shards, f2=len(self.trees), **{f"f{own}": form}) + self.own
        result = {
            "header.pb": message(f1=self.name, f2=self.task, f3=count, f5=b"".join(map(varint, inputs))),
            "data_spec.pb": message(f1=[*self.columns, label]),
            f"{self.name.lower()}_header.pb": kind,
            "done": b"",
        }
        cuts = [len(records) * shard // shards for shard in range(shards + 1)]
        for shard in range(shards):
            part = records[cuts[shard] : cuts[shard + 1]]
            result[f"nodes-{shard:05d}-of-{shards:05d}"] = node_file(part, form)
        return {prefix + name: data for name, data in result.items()}

    def write(self, path: Path, **how: Any) -> Path:
        path.mkdir(exist_ok=True, parents=True)
        for name, data in self.files(**how).items():
            (path / name).write_bytes(data)
        return path


def archived(files: dict[str, bytes]) -> bytes:
    """Returns a zip archive of a folder's files."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def node_file(records: list[bytes], form: str) -> bytes:
    if form.startswith("TFE"):
        return b"".join(struct.pack("<QI", len(r), 0) + r + bytes(4) for r in records)
    body = b"".join(struct.pack("<I", len(r)) + r for r in records)
    if form.endswith("GZIP"):
        return b"BS\1\0\1\0\0\0" + gzip.compress(body, mtime=0)
    return b"BS" + bytes(6) + body


COLUMNS = [
    column("x", NUMBER, mean=0.1),
    column("colour", CATEGORY),
    column("flag", BOOLEAN),
    column("binned", DISCRETIZED, mean=1.0),
    column("code", CATEGORY, integers=True),
    column("shifted", CATEGORY, integers=True, offset=True),
]
BOOSTED = message(f3=1, f4=0.25, f5=1)  # header fields: binomial loss, an initial prediction, one tree an iteration
# One tree for each kind of condition; the values tell all branches apart.
EACH = [
    (higher(0, 0.1, missing=1), 1.0, 2.0),
    (contains(1, 0, 2, missing=0), 4.0, 8.0),
    ((2, 3, b"", 1), 16.0, 32.0),
    ((3, 6, message(f1=2), 0), 64.0, 128.0),
    (contains(4, 1, 3, bitmap=True, missing=1), 256.0, 512.0),
    (contains(5, 0, 1, bitmap=True), 1024.0, 2048.0),
    ((0, 1, b"", 0), 4096.0, 8192.0),
    ((1, 1, b"", 0), 16384.0, 32768.0),
]
MODELS = {
    "boosted": Folder(COLUMNS, EACH, own=BOOSTED),
    "several": Folder(
        COLUMNS, EACH * 3, own=message(f3=3, f4=struct.pack("<3f", 0.5, 0.0, -0.5), f5=3), label=("a", "b", "c")
    ),
    "poisson": Folder(COLUMNS, [(higher(0, 0.5), 0.5, 1.0)], task=2, own=message(f3=7, f4=0.25, f5=1)),
    "forest": Folder(
        COLUMNS,
        [(condition, [1, 0.0, 3.0, 1.0], [2, 0.0, 1.0, 4.0]) for condition, *_ in EACH],
        "RANDOM_FOREST",
        leaf=vote_leaf,
    ),
    "shares": Folder(
        COLUMNS,
        [(condition, [1, 0.0, 3.0, 1.0, 1.0], [3, 0.0, 1.0, 1.0, 4.0]) for condition, *_ in EACH],
        "RANDOM_FOREST",
        leaf=vote_leaf,
        own=message(f3=0),
        label=("a", "b", "c"),
    ),
    "mean": Folder(COLUMNS, EACH, "RANDOM_FOREST", task=2),
    "isolation": Folder(
        COLUMNS,
        [(condition, 1, (condition, 3, 40)) for condition, *_ in EACH],
        "ISOLATION_FOREST",
        task=6,
        leaf=path_leaf,
        own=message(f4=50),
    ),
}  # fmt: skip
