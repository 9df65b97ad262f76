"""Builds manifest.json, which describes a compiled design to other programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as files_of
from typing import Any, get_args

from forestc.backends.c.options import CLayout
from forestc.backends.hdl import module_name
from forestc.backends.ports import Field, input_fields, output_fields, width_of
from forestc.backends.table import TARGETS
from forestc.fields.options import options_of, record_schema, schema_of
from forestc.forest.ir import Forest
from forestc.forest.numbers import Fixed, word_range
from forestc.forest.outputs import OUTPUTS
from forestc.forest.text import print_forest
from forestc.forest.words import word_example
from forestc.lowering.draft import feature_word
from forestc.netlist.ir import Netlist
from forestc.netlist.ports import Clocking, Port, score_port, target_port
from forestc.options.compile import CompileOptions
from forestc.system.records import COUNT, FIGURE, INNER_PATH, TEXT, Schema

FORMAT = 6
# holds the schema of all fields but the options of compile, and those of targets beside C's and the engine's
FILE = files_of("forestc.manifest") / "manifest.schema.json"


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of a manifest of this format."""
    result: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    options = schema_of(CompileOptions)
    closed = {"properties": options, "required": list(options), "additionalProperties": False}
    result["properties"]["made"]["properties"]["options"] |= closed
    written = result["properties"]["options"]["properties"]
    written["targets"]["items"] = {"enum": [*TARGETS]}
    written |= {entry.name: record_schema(spec) for entry, spec in options_of(CompileOptions) if spec.group is not None}
    written["c"]["properties"]["layout"]["enum"] = [*get_args(CLayout)]
    return result


# Describes a pair of values, before and after a pass; some passes give one number.
_PAIR: Schema = FIGURE | {"type": ["array", "number", "null"], "items": FIGURE, "minItems": 2, "maxItems": 2}
_PAIRS = ("comparator_bits", "input_bits", "splits", "cost", "trees", "nodes", "comparators", "luts")
_SHARE_OR_NONE: Schema = FIGURE | {"type": ["number", "null"]}
_HELD_OUT = {"rows": COUNT, "measure": TEXT, "before": _SHARE_OR_NONE, "after": _SHARE_OR_NONE}
_PROOF = {"state": TEXT, "changes": COUNT, "refuted": COUNT, "undecided": COUNT, "not_examined": COUNT}
# Describes the fields of a pass that tables show.
_STEP: Schema = {
    "type": "object",
    "required": ["pass", "guarantee", "change", "distinct_conditions", "meaning", "inputs_checked"],
    "properties": {
        "pass": TEXT, "guarantee": TEXT, "change": FIGURE, "meaning": TEXT,
        "inputs_checked": COUNT | {"type": ["integer", "null"]},
        "distinct_conditions": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
        **dict.fromkeys(_PAIRS, _PAIR),
        **dict.fromkeys(("exceptions", "thresholds"), COUNT),
        "price": _SHARE_OR_NONE, "scores": TEXT, "chosen_on": TEXT,
        "held_out": {"type": ["object", "null"], "required": list(_HELD_OUT), "properties": _HELD_OUT},
        "proof": {"type": "object", "required": list(_PROOF), "properties": _PROOF},
    },
    "dependentRequired": {"exceptions": ["thresholds"], "splits": ["price", "scores"]},
}  # fmt: skip


@cache
def reading_schema() -> dict[str, Any]:
    """Returns the schema for reading a manifest. It allows missing options and unknown fields, and only paths inside
    the folder."""
    result = schema()
    del result["additionalProperties"]
    options = result["properties"]["made"]["properties"]["options"]
    del options["required"], options["additionalProperties"]
    result["properties"]["made"]["properties"]["steps"]["items"] = _STEP
    result["properties"]["files"]["additionalProperties"] = INNER_PATH
    result["properties"]["sha256"]["properties"]["files"]["propertyNames"] = INNER_PATH
    result["properties"]["core"]["pattern"] = "^[A-Za-z][A-Za-z0-9_]*$"
    return result


def content_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def digest(content: str | bytes) -> str:
    return hashlib.sha256(content_bytes(content)).hexdigest()


def sealed(fields: Mapping[str, Any], files: Mapping[str, str | bytes]) -> dict[str, Any]:
    """Returns the fields of a manifest and, as a further field, the SHA-256 of each of them and of each file. files:
    path -> content."""
    return {
        **fields,
        "sha256": {
            "files": {path: digest(content) for path, content in sorted(files.items())},
            "fields": {name: field_digest(value) for name, value in fields.items()},
        },
    }


def field_digest(value: object) -> str:
    """Returns the SHA-256 of a field's value. The order of keys does not matter."""
    return digest(json.dumps(value, sort_keys=True))


def design_hash(printed: str, options: Mapping[str, Any]) -> str:
    """Returns the SHA-256 over the printed quantized forest and the options."""
    hasher = hashlib.sha256(printed.encode())
    hasher.update(json.dumps(options, sort_keys=True).encode())
    return hasher.hexdigest()


def manifest(
    forest: Forest,
    netlist: Netlist | None,
    files: Mapping[str, str],
    options: Mapping[str, Any],
    guarantees: Mapping[str, str],
    printed: str | None = None,
) -> dict[str, Any]:
    """Returns the manifest as a JSON object.

    netlist: None without hardware; fields about hardware are then absent.
    files: role -> path.
    printed: the forest's text form, if it exists already.
    """
    hardware = None if netlist is None else _Hardware.of(netlist)
    fields: dict[str, Any] = {
        "format": FORMAT,
        "name": forest.name,
        "core": hardware and hardware.core,
        "files": dict(files),
        "ports": hardware and hardware.ports,
        "columns": forest.columns,
        "features": [
            {
                "name": feature.name,
                "column": feature.column,
                **({} if hardware is None else {"offset": hardware.inputs[index].offset}),
                **_number(forest, index),
            }
            for index, feature in enumerate(forest.features)
        ],
        "outputs": _results(forest, options["outputs"])
        if hardware is None
        else [_output(forest, field) for field in hardware.outputs],
        "latency_cycles": hardware and hardware.latency,
        "initiation_interval": hardware and 1,
        "classes": [list(p.classes) for p in forest.targets] if len(forest.targets) > 1 else list(forest.classes),
        "link": [p.link.kind for p in forest.targets] if len(forest.targets) > 1 else forest.link.kind,
        "passes": list(forest.provenance.passes),
        "guarantees": dict(guarantees),
        "source": {
            "library": forest.provenance.source,
            "version": forest.provenance.version,
            "sha256": forest.provenance.model_hash,
        },
        "options": dict(options),
        "hash": design_hash(print_forest(forest) if printed is None else printed, options),
    }
    return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class _Hardware:
    core: str
    inputs: list[Field]
    outputs: list[Field]
    latency: int
    clocking: Clocking

    @staticmethod
    def of(netlist: Netlist) -> _Hardware:
        fields = input_fields(netlist), output_fields(netlist)
        return _Hardware(module_name(netlist), *fields, netlist.latency, netlist.clocking)

    @property
    def ports(self) -> list[dict[str, Any]]:
        inputs = ["clk", *self.clocking.ports, "in_valid"]
        clocked = [*((name, "in") for name in inputs), ("out_valid", "out")] if self.latency else []
        return [
            *({"name": name, "direction": way, "bits": 1} for name, way in clocked),
            {"name": "x", "direction": "in", "bits": max(1, width_of(self.inputs))},
            {"name": "y", "direction": "out", "bits": width_of(self.outputs)},
        ]


def _output(forest: Forest, field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "offset": field.offset,
        "bits": field.word.width,
        "signed": field.word.signed,
        "scale": _scale_of(forest, field.port),
    }


def _results(forest: Forest, outputs: str) -> list[dict[str, Any]]:
    """Returns the manifest's list of outputs for a design without hardware. Names are those of hardware outputs."""
    count, kinds = len(forest.targets), OUTPUTS["top2" if outputs == "top2" else "label"].kinds
    ports = [target_port(kind, index, count) for index in range(count if forest.decides else 0) for kind in kinds]
    ports += [score_port(index) for index in range(forest.n_scores)]
    return [{"name": port.name, "scale": _scale_of(forest, port)} for port in ports]


def _scale_of(forest: Forest, port: Port) -> float | None:
    if port.kind in ("label", "second"):
        return 1
    return _scale(forest, port.index if port.kind == "score" else forest.targets[port.index].start)


def _scale(forest: Forest, output: int) -> float | None:
    return next(
        (p.scale for p in forest.targets if len(forest.targets) > 1 and p.start <= output < p.stop), forest.scale
    )


def _number(forest: Forest, index: int) -> dict[str, Any]:
    feature = forest.features[index]
    number = feature.number
    value, word = word_example(forest, index)
    kind = feature_word(forest, index)
    return {
        "bits": kind.width,
        "signed": kind.signed,
        "type": str(number),
        "fraction": number.fraction if isinstance(number, Fixed) else None,
        "missing": word_range(number, feature.missing).missing,
        "raw": str(feature.raw),  # the type to which a value is rounded before it becomes a word
        "example": {"value": value, "word": word},
        **({"labels": list(feature.labels)} if feature.labels else {}),  # the name of each code
        **({} if feature.unknown is None else {"unknown": feature.unknown}),
    }
