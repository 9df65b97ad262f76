"""Writes what all languages share: the tables of a forest, and the functions that read them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, get_args

import numpy as np

from forestc.backends.c.quantizer import row_type
from forestc.backends.c.types import score_type, size_of
from forestc.backends.c.values import shown
from forestc.backends.languages.syntax import Table, functions_of
from forestc.errors import OptionError, opt
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import OneOf, toggled
from forestc.forest.ir import Aggregate, Decision, Feature, Forest, Link, Part
from forestc.forest.numbers import FLOAT32, Category, Fixed, Ordered, Rounding, word_range
from forestc.forest.typed_sums import integer_type
from forestc.layouts.nodes import NodeTables, nodes_of
from forestc.layouts.slots import FeatureSlot, width_of
from hdl_templates import render

Facts = dict[str, Any]
VALUE_ERROR = 1e-12  # bounds the error of values against exact ones of the same scores, relative above 1


@dataclass(frozen=True)
class Core:
    """The tables of a forest and the functions that read them, in the language of `syntax.py`."""

    tables: tuple[Table, ...]
    functions: tuple[ast.FunctionDef, ...]
    names: frozenset[str]  # in the functions
    columns: int  # of a raw row
    narrow: bool  # True if raw rows are of float32
    bits: int  # that hold all integers but those of the quantizer, with the sign
    values: int  # per row; 0 if the forest has none

    def calls(self, *names: str) -> bool:
        """Returns True if the functions call one of these."""
        return not self.names.isdisjoint(names)


def core_of(forest: Forest, roots: Sequence[str]) -> Core:
    """Returns the shared part of a quantized forest's files. roots: its public functions; without `words` they are one
    block that has their variables. Raises OptionError if no language makes a feature's words."""
    writer = _Writer(forest)
    narrow = row_type(forest, "auto").bits == 32
    source = render("languages/core.py.j2", narrow=narrow, block="words" not in roots, **writer.facts())
    functions, names = functions_of(source, roots)
    values = writer.given.count if writer.given is not None else 0
    tables = tuple(table for table in writer.tables if table.name in names)
    columns, bits = max(1, forest.columns), integer_bits(forest)
    return Core(tables, tuple(functions), frozenset(names), columns, narrow, bits, values)


def integer_bits(forest: Forest) -> int:
    """Returns how many bits hold each word, score and number on the way to it, with a sign."""
    spans = [word_range(feature.number, feature.missing) for feature in forest.features]
    ends = [1, *(span.top + 1 for span in spans), *(-span.low for span in spans)]
    ends += [1 << feature.raw.bits for feature in forest.features if isinstance(feature.raw, Fixed)]
    ends += [2 * norm.start for norm in [_norm(forest.aggregate)] if norm]
    own = 8 * size_of(score_type(forest))
    return max(own, 1 + max(ends).bit_length())


@dataclass(frozen=True)
class _Norm:
    """A product that is rounded to a number type: (sum * factor + start) // divisor - raised, an integer."""

    factor: int
    divisor: int
    start: int  # makes the products positive, and rounds
    raised: int  # a multiple of what wraps
    even: bool  # True if halves are rounded to even


def _norm(aggregate: Aggregate) -> _Norm | None:
    """Returns how sums are multiplied by the norm; None if it is 1."""
    if aggregate.norm == 1:
        return None
    number, (factor, divisor) = integer_type(aggregate), aggregate.norm.as_integer_ratio()
    raised = (factor // divisor + 1) << number.bits
    start = raised * divisor + (divisor // 2 if number.rounding != "AP_TRN" else 0)
    return _Norm(factor, divisor, start, raised, number.rounding == "AP_RND_CONV" and divisor > 1)


class _Writer:
    """Collects the tables of a forest and the variables of the template."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.tables: list[Table] = []
        self.given = shown(forest, "m", "float")

    def table(self, name: str, values: Iterable[int]) -> None:
        entries = tuple(map(int, values))
        width = width_of(np.array([0, *entries], dtype=np.int64))
        self.tables.append(Table(name, entries, width, width == 8 or min(entries, default=0) < 0))

    def facts(self) -> Facts:
        forest = self.forest
        summed = forest if forest.adds else _apart(forest)
        laid = nodes_of(summed)
        return {
            "n_inputs": max(1, len(forest.features)),
            "n_columns": max(1, forest.columns),
            "n_scores": forest.n_scores,
            "n_sums": summed.n_outputs,
            **self._slots(laid),
            **self._trees(summed, laid),
            **self._combination(),
            "targets": [self._decision(part) for part in forest.targets] if forest.decides else [],
            **self._values(),
            "quantizer": [_word(feature) for feature in forest.features],
        }

    def _slots(self, laid: NodeTables) -> Facts:
        slots, features = laid.slots.slots, self.forest.features
        if laid.slots.plain or not laid.splits:
            return {"fills": False}
        spans = [word_range(features[slot.feature].number, features[slot.feature].missing) for slot in slots]
        plain = sum(slot.condition is None for slot in slots)
        cuts = [slot.cuts * laid.slots.ranked if slot.condition is None else self._cuts(slot) for slot in slots]
        lows = [slot.missing_low and slot.condition is None for slot in slots]
        self.table("SLOT_INPUTS", (slot.feature for slot in slots))
        if any(lows):
            self.table("SLOT_TOPS", (span.top for span in spans))
            self.table("SLOT_LOWS", (span.low if low else span.top for span, low in zip(spans, lows, strict=True)))
        if any(cuts):
            self.table("SLOT_CUTS", accumulate(map(len, cuts), initial=0))
            self.table("CUTS", (cut for own in cuts for cut in own))
        mixed = 0 < plain < len(slots)
        return {
            "fills": True,
            "n_slots": len(slots),
            "lows": any(lows),
            "ranks": any(cuts),
            "unranked": plain * (mixed and not laid.slots.ranked),
            "parities": None if plain == len(slots) else plain,
        }

    def _cuts(self, slot: FeatureSlot) -> tuple[int, ...]:
        """Returns the cuts of a slot with a condition of its own: an odd number of them is <= the word if the condition
        fails."""
        assert slot.condition is not None
        condition, feature = self.forest.conditions[slot.condition], self.forest.features[slot.feature]
        span, test = word_range(feature.number, feature.missing), condition.test
        held = toggled(end for code in test.codes for end in (code, code + 1)) if isinstance(test, OneOf) else test.cuts
        cuts = toggled((span.low, *(int(max(cut, span.low)) for cut in held)))
        fails = sum(cut <= span.top for cut in cuts) % 2 == 1
        if span.missing is not None and fails == condition.missing_left:
            cuts = toggled((*cuts, span.top))
        return tuple(int(cut) for cut in cuts if cut <= span.top)

    def _trees(self, summed: Forest, laid: NodeTables) -> Facts:
        leaves = laid.leaves
        self.table("STARTS", leaves.starts.tolist())
        if not leaves.trees:
            return {"n_trees": 0}
        self.table("TREES", laid.starts.tolist())
        self.table("NODES", laid.stream.tolist())
        if laid.code != "split" and laid.splits:
            self.table("NODE_SLOTS", laid.slots.slot[laid.conditions].tolist())
            self.table("THRESHOLDS", laid.slots.threshold[laid.conditions].tolist())
        outputs = [summed.trees[index].outputs for index in leaves.trees]
        kind, width = leaves.kind, len(outputs[0])
        if kind == "pairs":
            self.table("LEAVES", accumulate(map(len, leaves.pairs), initial=0))
            self.table("OUTPUTS", (output for pairs in leaves.pairs for output, _ in pairs))
            self.table("VALUES", (value for pairs in leaves.pairs for _, value in pairs))
        elif kind == "bits":
            self.table("VALUES", (int(row) >> k & 1 for row in leaves.table[:, 0].tolist() for k in range(width)))
        elif len(leaves.table):
            self.table("VALUES", leaves.table.ravel().tolist())
        if kind == "value" and summed.n_outputs > 1:
            self.table("OUTPUTS", (output for (output,) in outputs))
        return {
            "nodes": laid,
            "n_trees": len(leaves.trees),
            "leaves": "rows" if kind == "bits" else kind,
            "tabled": len(leaves.table) > 0,
            "width": width,
            "first": outputs[0][0],
        }

    def _combination(self) -> Facts:
        forest = self.forest
        if not forest.adds:
            return self._members()
        if not forest.combined:
            return {"combine": ""}
        self.table("WEIGHTS", forest.integer_weights)
        if forest.combine.kind != "median":
            self.table("FIRSTS", (part.start for part in forest.parts))
            self.table("LASTS", (part.stop - 1 for part in forest.parts))
        return {
            "combine": forest.combine.kind,
            "n_parts": len(forest.parts),
            "half": -(-sum(forest.integer_weights) // 2),
            **(self._votes() if forest.combine.kind == "vote" else {}),
            **(self._averages() if forest.combine.kind == "average" else {}),
        }

    def _members(self) -> Facts:
        """Returns the variables of trees that are not added: each has sums of its own, and scores come from these."""
        forest, aggregate = self.forest, self.forest.aggregate
        place, members = 0, [list[int]() for _ in range(forest.n_outputs)]
        for tree in forest.trees:
            for output in tree.outputs:
                members[output].append(place)
                place += 1
        self.table("MEMBERS_OF", accumulate(map(len, members), initial=0))
        self.table("MEMBERS", (member for own in members for member in own))
        self.table("BIASES", forest.bias.tolist())
        if aggregate.score is None:
            return {"combine": aggregate.kind}
        number = integer_type(aggregate)
        span = word_range(number, False)
        return {
            "combine": "typed",
            "balanced": aggregate.order == "tree",
            "wraps": number.overflow == "AP_WRAP",
            "least": span.low,
            "most": span.high,
            "turn": 1 << number.bits,
            "norm": _norm(aggregate),
        }

    def _votes(self) -> Facts:
        decisions = [self._decision(part) for part in self.forest.parts]
        kinds = sorted({kind for kind, *_ in decisions})
        self.table("DECISIONS", (kinds.index(kind) for kind, *_ in decisions))
        self.table("CLASS_CUTS", (threshold for *_, threshold in decisions))
        return {"part_kinds": [(kind, number) for number, kind in enumerate(kinds)]}

    def _averages(self) -> Facts:
        forest = self.forest
        curves = [part.curve_of(k) if part.curves else () for part in forest.parts for k in range(part.width)]
        self.table("CURVES", accumulate(map(len, curves), initial=0))
        self.table("CURVE_CUTS", (cut for curve in curves for cut in curve))
        kinds = {"softmax": 2, "shares": 1}
        self.table("SHARES", (kinds.get(part.link.kind, 0) * bool(part.curves) for part in forest.parts))
        return {"steps": forest.steps, "most_levels": max(part.width for part in forest.parts)}

    def _decision(self, part: Part) -> tuple[str, int, int, int]:
        """Returns (kind, first score, last score, threshold) of a decision. Kinds: threshold, first and last, of equal
        scores."""
        kind = part.decision.ties if part.decision.kind == "argmax" else "threshold"
        most = 1 << (8 * size_of(score_type(self.forest)) - 1)
        threshold = int(part.decision.threshold) if kind == "threshold" else 0
        return kind, part.start, part.stop - 1, max(-most, min(most - (most >> 63), threshold))

    def _values(self) -> Facts:
        forest, parts, first = self.forest, [], 0
        if self.given is None:
            return {"values": []}
        for part in forest.targets:
            link, two = part.link, part.width == 1 and len(part.classes) == 2
            slope = link.slope * part.scale
            factor = {"exp2": np.log(2.0), "isolation": -np.log(2.0)}.get(link.kind, 1.0)
            kinds = {"logistic": "sigmoid", "exp2": "exp", "isolation": "exp"}
            parts.append(
                {
                    "kind": kinds.get(link.kind, link.kind),
                    "slope": repr(float(slope * factor)),
                    "sign": -1.0 if link.kind == "isolation" else 1.0,
                    "shift": float(link.shift),
                    "capped": forest.decides,
                    "two": int(two),
                    "start": part.start,
                    "stop": part.stop,
                    "first": first,
                }
            )
            first += part.width + two
        return {
            "values": parts,
            "n_values": first,
            "classes": forest.decides,
            "links": {part["kind"] for part in parts},
        }


def _apart(forest: Forest) -> Forest:
    """Returns a forest that gives each output of each tree as a sum of its own."""
    ends = list(accumulate((len(tree.outputs) for tree in forest.trees), initial=0))
    trees = [
        changed_tree(tree, outputs=tuple(range(start, start + len(tree.outputs))))
        for start, tree in zip(ends, forest.trees, strict=False)
    ]
    return changed(
        forest,
        trees=tuple(trees),
        n_outputs=ends[-1],
        bias=np.zeros(ends[-1], dtype=np.int64),
        aggregate=Aggregate(),
        link=Link(),
        decision=Decision("none"),
        classes=(),
        parts=(),
    )


def _word(feature: Feature) -> str:
    """Returns the call that makes a feature's word."""
    number, raw, span = feature.number, feature.raw, word_range(feature.number, feature.missing)
    narrow = raw == FLOAT32 or number == Ordered(32)
    value = f"{'narrow' if narrow else 'wide'}(row[{feature.column}])"
    if isinstance(raw, Fixed):
        own = word_range(raw, False)
        if not isinstance(number, Fixed) or not 0 <= (drop := raw.fraction - number.fraction) < 63:
            raise OptionError(
                f"{feature.name!r} is rounded to {raw}, and a word of {number} is no part of it",
                where="the quantizer of rows",
                do=f"let the passes choose its format, or leave the language out of {opt.target}",
            )
        mode, turn = get_args(Rounding).index(raw.rounding), (raw.overflow == "AP_WRAP") << raw.bits
        ends = (own.low, own.high, span.low, span.high, span.top)
        return f"typed({', '.join(map(str, (value, raw.fraction, mode, turn, drop, *ends)))})"
    match number:
        case Fixed(_, fraction):
            return f"fixed({value}, {fraction}, {span.low}, {span.high}, {span.top})"
        case Category(count, rounding):
            function = "code" if rounding == "none" else rounding
            return f"{function}({value}, {count}, {span.top})"
        case Ordered(bits):
            return f"key{bits}({value}, {span.top})"
    raise OptionError(f"{number} has no words", where="the quantizer of rows", do="quantize the forest first")
