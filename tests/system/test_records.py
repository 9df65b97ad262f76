"""Tests records: JSON's loose ends are refused, and a field that breaks the schema is named."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import jsonschema
import pytest

from forestc.errors import ForestcError
from forestc.manifest.content import reading_schema
from forestc.system.records import INNER_PATH, DamagedError, hold, inside, parse_json, read_record, record_of


@dataclass(frozen=True)
class Point:
    x: int
    name: str
    kind: Literal["a", "b"] = "a"
    parts: Sequence[float] = ()
    more: Mapping[str, bool] | None = None


GOOD = {"x": 3, "name": "n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON"),
        ("", "it is not JSON"),
        ('{"a": 1, "a": 1}', '"a" appears twice'),
        ("[NaN]", r"\[0\] is no finite number"),
        ('{"a": [-Infinity]}', r"a\[0\] is no finite number"),
        ("1e400", "it is no finite number"),
        ('{"a": {"b": ' + "1" * 5000 + "}}", r"a\.b is no finite number of 64 bits"),
        ('{"a": "\\ud800"}', "a is or holds text that is no Unicode"),
        ('{"\\ud800": 1}', "no Unicode"),
        ("[" * 50 + "]" * 50, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_json_leaves_open_is_refused(text, said):
    with pytest.raises(DamagedError, match=said):
        parse_json(text)


def test_json_is_read_as_the_library_reads_it():
    for value in (None, 1, -(2**63), 0.1, "é\n\x00", [], {"a": [{"b": True}]}, "😀"):
        assert parse_json(json.dumps(value)) == value and parse_json(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": True}, "x is true, not a whole number"),
        ({"x": 3.0}, "x is 3.0, not a whole number"),
        ({"x": 10**16}, "x is 10000000000000000, not -1,000,000,000,000,000.0 to"),
        ({"name": None}, "name is null, not text"),
        ({"kind": "c"}, 'kind is "c", not one of "a", "b"'),
        ({"parts": [1, "2"]}, r'parts\[1\] is "2", not a number'),
        ({"more": {"p": 1}}, r"more\.p is 1, not true or false"),
    ],
)
def test_a_field_that_does_not_hold_is_named(change, said):
    hold(GOOD | {"unknown": 1, "more": None}, record_of(Point))
    with pytest.raises(DamagedError, match=said):
        hold(GOOD | change, record_of(Point))


def test_a_field_that_is_missing_is_named():
    with pytest.raises(DamagedError, match="name is missing"):
        hold({"x": 1}, record_of(Point))


@pytest.mark.parametrize("path", ["a", "c/x.h", "a.b/..c", "...", "x/.hidden", "a b"])
def test_a_path_inside(path):
    hold(path, INNER_PATH)


@pytest.mark.parametrize(
    "path", ["", "/a", "..", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "C:\\x", "a\\b", "a\n", "a\x00b", "c:x"]
)
def test_a_path_that_leads_out_or_is_none(path):
    with pytest.raises(DamagedError, match="not a path inside of the folder"):
        hold(path, INNER_PATH)


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").write_text("x")
    (tmp_path / "folder/link").symlink_to(tmp_path / "other")
    (tmp_path / "folder/round").symlink_to(tmp_path / "folder/round")
    (tmp_path / "folder/own").symlink_to(tmp_path / "folder/file")
    for name in ("link", "round/x", "../other", str(tmp_path / "other"), "a\x00"):
        with pytest.raises(ForestcError, match="leads out of the folder"):
            inside(tmp_path / "folder", name)
    assert inside(tmp_path / "folder", "own").name == "own"


def test_a_file_is_bounded_before_it_is_read(tmp_path):
    path = tmp_path / "big.json"
    path.write_text("[" + "1," * 1000 + "1]")
    with pytest.raises(ForestcError, match=r"big\.json is damaged \(it is larger than 100 bytes\).*.*.*mend it"):
        read_record(path, {}, "give one", "mend it", most=100)
    path.write_bytes(b"\xff")
    with pytest.raises(ForestcError, match=r"big\.json is damaged \(it is not UTF-8"):
        read_record(path, {}, "give one", "mend it")
    with pytest.raises(ForestcError, match=r"has no readable none\.json.*.*.*give one"):
        read_record(tmp_path / "none.json", {}, "give one", "mend it")


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99}, {"columns": -1}, {"columns": True}, {"files": {"c": "../x"}}, {"features": [{"name": 3}]},
        {"hash": "0"}, {"hash": "0" * 64 + "\n"}, {"classes": [None]}, {"link": 3}, {"core": "a b"}, {"made": {}},
    ],
)  # fmt: skip
def test_it_refuses_what_the_library_refuses(change):
    """Compares this reader with the library jsonschema on the manifest's schema."""
    schema = reading_schema()
    part = {"properties": {name: schema["properties"][name] for name in change}, "$defs": schema["$defs"]}
    with pytest.raises(DamagedError, match=next(iter(change))):
        hold(change, part)
    valid = jsonschema.Draft202012Validator(part).is_valid(change)
    assert not valid or change in ({"hash": "0" * 64 + "\n"},)  # The library's `$` also matches before a last line end.


def test_every_keyword_of_the_manifests_schema_is_known():
    known = {
        "type", "const", "enum", "pattern", "minimum", "maximum", "items", "minItems", "maxItems", "properties",
        "required", "additionalProperties", "propertyNames", "anyOf", "$ref", "dependentRequired", "means",
        "description", "title", "$schema", "$defs",
    }  # fmt: skip

    def check(part):
        assert part.keys() <= known, part.keys() - known
        inner = [*part.get("properties", {}).values(), *part.get("$defs", {}).values(), *part.get("anyOf", ())]
        inner += [part[key] for key in ("items", "propertyNames") if key in part]
        more = part.get("additionalProperties")
        for schema in [*inner, *([more] if isinstance(more, dict) else ())]:
            check(schema)

    check(reading_schema())
