"""Reads forests' text form, as docs/reference/forest-text.md describes it. It shares no code with forestc."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

Lines = dict[str, list[str]]


class Text:
    """A forest in text form, read line by line. `answer` gives the leaves, scores and decisions of a row."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        first = next(at for at, line in enumerate(lines) if line.startswith("tree "))
        head: Lines = {}
        for line in lines[:first]:
            word, _, rest = line.partition(" ")
            head.setdefault(word, []).append(rest)
        self.head, self.quantized = head, "scale" in head
        self.number = int if self.quantized else float
        self.features = [_feature(line) for line in head.get("feature", [])]
        self.bias = [self.number(word) for word in head["bias"][0].split()]
        self.trees: list[tuple[list[int], list[dict[str, Any]]]] = []
        for line in lines[first:]:
            if line.startswith("tree "):
                outputs = re.match(r"tree outputs ([\d ]+)", line)
                assert outputs
                self.trees.append(([int(word) for word in outputs[1].split()], []))
            else:
                self.trees[-1][1].append(_node(line, self.number))
        count = len(head.get("part", []))
        self.parts = [_Part(head, "part-", index) for index in range(count)]
        self.whole = _Part(head, "", 0)
        self.steps = max((len(curve) for part in self.parts for curve in part.curves), default=0)

    def answer(self, row: list[float]) -> tuple[list[int], list[Any], list[Any]]:
        """Returns the leaves' numbers, the scores, and the classes (the values of a regression)."""
        words = [_encoded(feature, row[feature["column"]], self.quantized) for feature in self.features]
        reached = [self._leaf(nodes, words) for _, nodes in self.trees]
        leaves = [node["id"] for node in reached]
        results = []
        for part in self.parts or [self.whole]:
            scores = self._scores(part, reached)
            results.append((part, scores, _values(part, scores, self.quantized)))
        kind, *weights = self.head["combine"][0].split() if self.parts else ["each"]
        if kind == "each":
            decided = [_decided(*result) for result in results]
            return leaves, [score for _, scores, _ in results for score in scores], decided
        scores = self._combined(kind, [float(weight) for weight in weights] or [1.0] * len(results), results)
        return leaves, scores, [_decided(self.whole, scores, _values(self.whole, scores, self.quantized))]

    def _leaf(self, nodes: list[dict[str, Any]], words: list[Any]) -> dict[str, Any]:
        node = nodes[0]
        while "values" not in node:
            word = words[node["feature"]]
            if word is None:
                left = node["missing left"]
            elif node["set"] is None:
                left = word < node["threshold"]
            elif self.features[node["feature"]]["kind"] == "category":
                left = word in node["set"]
            else:
                left = sum(cut <= word for cut in node["set"]) % 2 == 1
            node = nodes[node["left"] if left else node["right"]]
        return node

    def _scores(self, part: _Part, reached: list[dict[str, Any]]) -> list[Any]:
        """Adds up a part's scores: floats tree by tree in the part's precision, integers exactly."""
        kind, precision, order, *divisor = part.aggregate.replace(" / ", " ").split()
        real = {"float32": np.float32, "float64": np.float64}[precision]
        stop = part.stop or len(self.bias)
        scores = []
        for output in range(part.start, stop):
            values = [
                self.number(node["values"][outputs.index(output)])
                for (outputs, _), node in zip(self.trees, reached, strict=True)
                if output in outputs
            ]
            bias = self.bias[output]
            if self.quantized:
                scores.append(bias + {"sum": sum, "min": min, "max": max}[kind](values))
                continue
            early = kind == "sum" and order == "bias-first"
            total = (
                real(bias) if early else real(0) if kind == "sum" else real({"min": math.inf, "max": -math.inf}[kind])
            )
            for value in values:
                total = {"sum": lambda a, b: a + b, "min": min, "max": max}[kind](total, real(value))
            total = total / real(float(divisor[0])) if divisor else total
            scores.append(total if early else real(np.float64(total) + bias))
        return scores

    def _combined(self, kind: str, weights: list[float], results: list[Any]) -> list[Any]:
        if kind == "vote":
            classes = json.loads(self.head["classes"][0])
            total = [0.0] * len(classes)
            for weight, (part, scores, values) in zip(weights, results, strict=True):
                total[part.classes.index(_decided(part, scores, values))] += weight
            return total
        if kind == "median":
            ordered = sorted(zip([scores[0] for _, scores, _ in results], weights, strict=True))
            seen = 0.0
            for score, weight in ordered:
                seen += weight
                if seen >= sum(weights) / 2:
                    return [score]
        assert kind == "average" and self.quantized
        said = [_levels(part, scores, self.steps) for part, scores, _ in results]
        return [sum(int(w) * values[k] for w, values in zip(weights, said, strict=True)) for k in range(len(said[0]))]


class _Part:
    """The lines of a part, or of a forest without parts."""

    def __init__(self, head: Lines, prefix: str, index: int) -> None:
        self.start, self.stop = map(int, head["part"][index].split()) if prefix else (0, 0)
        self.aggregate, self.link = head[f"{prefix}aggregate"][index], head[f"{prefix}link"][index]
        self.decision, self.classes = head[f"{prefix}decision"][index], json.loads(head[f"{prefix}classes"][index])
        self.scale = float(head[f"{prefix}scale"][index]) if f"{prefix}scale" in head else 1.0
        curves = head.get("part-curve", [""] * (index + 1))[index] if prefix else ""
        self.curves = [[int(word) for word in curve.split()] for curve in curves.split("/") if curve.strip()]


def _feature(line: str) -> dict[str, Any]:
    name = re.match(r'"(?:[^"\\]|\\.)*"', line)
    assert name
    number, _, column, _, raw, *rest = line[name.end() :].split()
    found = re.fullmatch(r"(?:ap_)?(u?)([a-z]+)(\d*)(?:<(\d+)(?:,([-\w]+))?>)?", number)
    assert found
    sign, kind, bits, first, second = found.groups()
    return {
        "column": int(column), "raw": raw, "missing": "missing" in rest, "unsigned": sign == "u", "kind": kind,
        "bits": int(bits or first), "fraction": int(first) - int(second) if kind == "fixed" else 0, "rounding": second,
    }  # fmt: skip


def _node(line: str, number: type) -> dict[str, Any]:
    at, _, rest = line.partition(": ")
    rest, _, other = rest.partition(" id ")
    rest = rest.split(" cover ")[0]
    node: dict[str, Any] = {"id": int(other or at)}
    if rest.startswith("leaf "):
        return node | {"values": rest.split()[1:]}
    condition, _, sides = rest.partition(" ? ")
    left, _, right = sides.removesuffix(" missing left").partition(" : ")
    feature, word, value = condition.split(" ", 2)
    whole = int if value[0] == "{" else number
    members = [whole(member) for member in value[1:-1].split(",") if member] if word == "in" else None
    return node | {
        "feature": int(feature), "left": int(left), "right": int(right), "set": members,
        "missing left": sides.endswith(" missing left"), "threshold": number(value) if members is None else None,
    }  # fmt: skip


def _encoded(feature: dict[str, Any], value: float, quantized: bool) -> Any:
    """Converts a value as the feature's type says; returns None if it is missing."""
    value = float(np.float32(value)) if feature["raw"] == "float32" else value
    kind, bits = feature["kind"], feature["bits"]
    if math.isnan(value):
        assert feature["missing"]
        return None
    if kind == "float":
        return value
    if kind == "category":
        value = (
            {"floor": math.floor, "trunc": math.trunc}.get(feature["rounding"], float)(value)
            if math.isfinite(value)
            else -1
        )
        return int(value) if value in range(bits) else bits
    low, high = (0, 2**bits - 1) if feature["unsigned"] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    high -= feature["missing"]
    if kind == "ordered":
        pattern = int(np.array(value, f"f{bits // 8}").view(f"i{bits // 8}"))
        return pattern if pattern >= 0 else pattern ^ (2 ** (bits - 1) - 1)
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, math.floor(value * 2.0 ** feature["fraction"])))


def _values(part: _Part, scores: list[Any], quantized: bool) -> list[Any]:
    """Applies the link, if it is one of those in the test's forests."""
    kind = part.link.split()[0]
    scores = [score * part.scale for score in scores] if quantized else scores
    if kind == "sigmoid":
        return [1 / (1 + math.exp(-score)) for score in scores]
    if kind == "softmax":
        powers = [math.exp(score - max(scores)) for score in scores]
        return [power / sum(powers) for power in powers]
    return scores


def _decided(part: _Part, scores: list[Any], values: list[Any]) -> Any:
    kind, *rest = part.decision.split()
    if kind == "none":
        return values[0]
    if kind == "threshold":
        return part.classes[int(scores[-1] >= float(rest[0]))]
    of = values if "values" in rest else scores
    best = [index for index, value in enumerate(of) if value == max(of)]
    return part.classes[best[-1 if part.decision.endswith("ties last") else 0]]


def _levels(part: _Part, scores: list[int], steps: int) -> list[int]:
    """Returns a part's values of the classes in a quantized average."""
    if not part.curves:
        return scores
    kind = part.link.split()[0]
    scores = [score - max(scores) for score in scores] if kind == "softmax" else scores
    curves = part.curves if len(part.curves) > 1 else part.curves * len(scores)
    levels = [sum(cut <= score for cut in curve) for curve, score in zip(curves, scores, strict=True)]
    if len(levels) == 1:
        return [steps - levels[0], levels[0]]
    if kind not in ("softmax", "shares"):
        return levels
    total = sum(levels)
    return [(2 * steps * level + total) // (2 * total) if total else steps // len(levels) for level in levels]
