"""Prints and parses the Forest's text form, which docs/reference/forest-text.md defines.

Floats are printed with enough digits to be read back exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import get_args

import numpy as np

from forestc.errors import HERE, ModelError
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.hashing import HashedColumn
from forestc.forest.hashing import Member as HashMember
from forestc.forest.ir import (
    LEAF,
    Aggregate,
    Combine,
    Decision,
    Feature,
    Forest,
    Label,
    Link,
    LinkKind,
    Part,
    Provenance,
    Tree,
)
from forestc.forest.numbers import Category, parse_number_type
from forestc.forest.tree import Draw


def print_forest(forest: Forest) -> str:
    """Returns a forest's text form, which ends in a newline."""
    return "".join(f"{line}\n" for line in _lines(forest))


def _lines(forest: Forest) -> Iterator[str]:
    origin = forest.provenance
    yield f"forest {json.dumps(forest.name)}"
    yield f"source {json.dumps(origin.source)} {json.dumps(origin.version)} {json.dumps(origin.model_hash)}"
    for spec in origin.passes:
        yield f"pass {json.dumps(spec)}"
    for note in origin.notes:
        yield f"note {json.dumps(note)}"
    yield f"columns {forest.columns}"
    if forest.carried:
        yield f"carried {' '.join(map(str, forest.carried))}"
    if forest.always_missing:
        yield _ALWAYS
    for texts in forest.categories:
        yield f"categories {json.dumps(list(texts))}"
    for hashed in forest.hashed:
        members = json.dumps([astuple(member) for member in hashed.members])
        codes = "".join(f" {key}:{code}" for key, code in zip(hashed.hashes, hashed.codes, strict=True))
        yield f"hashed {hashed.column} {hashed.count} of {members} codes{codes}"
    for feature in forest.features:
        origin_column = f"column {feature.column} raw {feature.raw}{' missing' * feature.missing}"
        labels = f" labels {json.dumps(list(feature.labels))}" if feature.labels else ""
        made_up = " unnamed" * (not feature.named)
        unknown = "" if feature.unknown is None else f" unknown {feature.unknown!r}"
        yield f"feature {json.dumps(feature.name)} {feature.number} {origin_column}{labels}{made_up}{unknown}"
    aggregate, *rest = _result_lines(forest.as_part, "")
    yield from (aggregate, f"bias {' '.join(repr(b) for b in forest.bias.tolist())}", *rest)
    for part in () if forest.single else forest.parts:
        yield f"part {part.start} {part.stop}"
        yield from _result_lines(part, "part-")
        yield f"part-scale {part.scale!r}"
        if forest.steps:
            yield f"part-curve {' / '.join(' '.join(map(str, curve)) for curve in part.curves)}".strip()
    if not forest.single:
        yield " ".join(["combine", forest.combine.kind, *map(repr, forest.combine.weights)])
    if forest.scale is not None:
        yield f"scale {forest.scale!r}"
    elif forest.on_words:
        yield "words"
    categories = [isinstance(feature.number, Category) for feature in forest.features]
    for tree in forest.trees:
        draw = tree.drawn
        drawn = f" drawn {draw.count} of {draw.rows} seed {draw.seed}" if draw is not None else ""
        yield f"tree outputs {' '.join(map(str, tree.outputs))}{drawn}"
        yield from _tree_lines(tree, categories)


def _result_lines(part: Part, prefix: str) -> Iterator[str]:
    aggregate, link, decision = part.aggregate, part.link, part.decision
    order = "bias-first" if aggregate.bias_first else "bias-last"
    divisor = f" / {aggregate.divisor!r}" if aggregate.divisor != 1.0 else ""
    typed = "" if aggregate.score is None else f" in {aggregate.score} {aggregate.order}"
    typed += "" if aggregate.norm == 1 else f" times {aggregate.norm!r}"
    yield f"{prefix}aggregate {aggregate.kind} {aggregate.precision} {order}{divisor}{typed}"
    yield f"{prefix}link {_link_text(link)}"
    at = f" {decision.threshold!r}" if decision.kind == "threshold" else ""
    yield f"{prefix}decision {decision.kind}{at} on {decision.on}{' ties last' * (decision.ties == 'last')}"
    yield f"{prefix}classes {json.dumps(list(part.classes))}"


def _link_text(link: Link) -> str:
    slope = f" slope {link.slope!r}" if link.slope != 1.0 else ""
    shift = f" shift {link.shift!r}" if link.shift else ""
    intercept = f" intercept {link.intercept!r}" if link.intercept else ""
    points = ",".join(f"{x!r}:{y!r}" for x, y in link.points)
    links = "; ".join(map(_link_text, link.each))
    return f"{link.kind}{slope}{intercept}{f' through {points}' * bool(points)}{shift}{f' of {links}' * bool(links)}"


def _tree_lines(tree: Tree, categories: Sequence[bool]) -> Iterator[str]:
    feature, left, right = tree.feature.tolist(), tree.left.tolist(), tree.right.tolist()
    threshold, leaf, ids = tree.threshold.tolist(), tree.leaf.tolist(), tree.ids.tolist()
    values, sets = tree.values.tolist(), tree.set_index.tolist()
    missing = tree.missing_left.tolist()
    cover = None if tree.cover is None else tree.cover.tolist()
    for n in range(tree.size):
        tail = f" cover {cover[n]!r}" if cover is not None else ""
        tail += f" id {ids[n]}" if ids[n] != n else ""
        if left[n] == LEAF:
            yield f"{n}: leaf {' '.join(map(repr, values[leaf[n]]))}{tail}"
            continue
        tail = " missing left" * missing[n] + tail
        if sets[n] == NO_SET:
            condition = f"{feature[n]} < {threshold[n]!r}"
        else:
            members = ",".join(map(repr, tree.sets[sets[n]]))
            condition = f"{feature[n]} in " + (f"{{{members}}}" if categories[feature[n]] else f"[{members}]")
        yield f"{n}: {condition} ? {left[n]} : {right[n]}{tail}"


_ALWAYS = "missing always"
_RESULT = ("aggregate", "link", "decision", "classes")
_PART = ("part", *(f"part-{word}" for word in _RESULT), "part-scale", "part-curve")
_HEADER = frozenset(
    (
        *("forest", "source", "pass", "note", "columns", "carried", "missing", "categories", "hashed", "feature"),
        *("bias", "scale", "words", "combine"),
        *_RESULT,
        *_PART,
    )
)
_FLOAT = r"[-+\w.]+"
_STRING = r'"(?:[^"\\]|\\.)*"'
_FEATURE = re.compile(
    rf"feature ({_STRING}) (\S+) column (\d{{1,9}}) raw (\S+)( missing)?(?: labels (\[.*\]))?( unnamed)?"
    rf"(?: unknown ({_FLOAT}))?"
)
_HASHED = re.compile(r"hashed (\d{1,9}) (\d{1,9}) of (\[.*\]) codes((?: \d{1,20}:\d{1,9})*)")
_AGGREGATE = re.compile(
    rf"(sum|min|max|typed) (float32|float64) bias-(first|last)(?: / ({_FLOAT}))?(?: in (\S+) (sequential|tree))?"
    rf"(?: times ({_FLOAT}))?"
)
_POINTS = rf"{_FLOAT}:{_FLOAT}(?:,{_FLOAT}:{_FLOAT})*"
_LINK = re.compile(
    rf"({'|'.join(get_args(LinkKind))})(?: slope ({_FLOAT}))?(?: intercept ({_FLOAT}))?(?: through ({_POINTS}))?"
    rf"(?: shift ({_FLOAT}))?"
)
_DECISION = re.compile(rf"(none|threshold|argmax)(?: ({_FLOAT}))? on (scores|values)(?: ties (last))?")
_COMBINE = re.compile(rf"(each|vote|average|median)((?: {_FLOAT})*)")
_SOURCE = re.compile(rf"source ({_STRING}) ({_STRING}) ({_STRING})")
_TREE = re.compile(r"tree outputs (\d{1,9}(?: \d{1,9})*)(?: drawn (\d{1,10}) of (\d{1,10}) seed (\d{1,10}))?")
_NODE = re.compile(
    r"(?P<node>\d{1,9}): (?:leaf (?P<values>\S+(?: -?[\d.]\S*)*)"
    r"|(?P<feature>\d{1,9}) (?:< (?P<threshold>\S+)|in (?P<set>\{[\d,]*\}|\[[-+\w.,]*\]))"
    r" \? (?P<left>\d{1,9}) : (?P<right>\d{1,9})(?P<missing> missing left)?)"
    r"(?: cover (?P<cover>\S+))?(?: id (?P<id>\d{1,9}))?"
)


def matched(pattern: re.Pattern[str], text: str, where: str = "") -> re.Match[str]:
    """Matches a pattern with the whole text, and returns the match. Raises ModelError, naming `where`, if it does not
    match."""
    match = pattern.fullmatch(text)
    if not match:
        raise ModelError(
            f"can't read {text[:60]!r}", where=where, do="correct the line; docs/reference/forest-text.md describes it"
        )
    return match


def parse_forest(text: str) -> Forest:
    """Parses a forest's text form. Raises ModelError for any other text, or if the forest is invalid."""
    lines = text.splitlines()
    number = 0
    try:
        header: dict[str, list[str]] = {}
        while number < len(lines) and not lines[number].startswith("tree "):
            header.setdefault(lines[number].split(" ", 1)[0], []).append(lines[number])
            number += 1
        if number == len(lines):
            raise ModelError("has no trees", where=HERE, do="a tree starts with a line: tree outputs 0")
        quantized = "scale" in header
        words = quantized or "words" in header
        trees: list[Tree] = []
        while number < len(lines):
            end = number + 1
            while end < len(lines) and not lines[end].startswith("tree "):
                end += 1
            trees.append(_parse_tree(lines, number, end, words, quantized, len(trees)))
            number = end
        return _parse_header(header, trees, quantized)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(
            f"not a forest's text form ({error})",
            where=f"near line {number + 1}",
            do="correct it there; docs/reference/forest-text.md describes each line",
        ) from None


def _one(header: dict[str, list[str]], word: str) -> str:
    if len(header.get(word, ())) != 1:
        raise ModelError(
            f"has {len(header.get(word, ()))} lines that start with {word!r} instead of one",
            where=HERE,
            do="write one such line",
        )
    return header[word][0][len(word) + 1 :]


def _parse_header(header: dict[str, list[str]], trees: list[Tree], quantized: bool) -> Forest:
    if unknown := set(header) - _HEADER:
        raise ModelError(f"unknown line {sorted(unknown)[0]!r}", where=HERE, do=f"known: {', '.join(sorted(_HEADER))}")
    source = matched(_SOURCE, header["source"][0])
    features = []
    for line in header.get("feature", []):
        match = matched(_FEATURE, line)
        features.append(
            Feature(
                name=str(json.loads(match[1])),
                number=parse_number_type(match[2]),
                column=int(match[3]),
                raw=parse_number_type(match[4]),
                missing=match[5] is not None,
                labels=tuple(str(label) for label in json.loads(match[6] or "[]")),
                named=match[7] is None,
                unknown=None if match[8] is None else float(match[8]),
            )
        )
    number = int if quantized else float
    bias = [number(b) for b in _one(header, "bias").split(" ")]
    aggregate, link, decision, classes = _parse_result(header, "", 0)
    parts = []
    for index, line in enumerate(header.get("part", [])):
        start, stop = map(int, line.split(" ")[1:])
        scale = float(header["part-scale"][index].split(" ")[1])
        curves = header.get("part-curve")
        text = curves[index].removeprefix("part-curve").strip() if curves else ""
        curve = tuple(tuple(map(int, levels.split())) for levels in text.split(" / ")) if text else ()
        parts.append(Part(start, stop, *_parse_result(header, "part-", index), scale, curve))
    combine = Combine()
    if parts:
        match = matched(_COMBINE, _one(header, "combine"))
        combine = Combine(match[1], tuple(float(w) for w in match[2].split()))  # type: ignore[arg-type]
    if header.get("missing", [_ALWAYS]) != [_ALWAYS]:
        raise ModelError(
            f"can't read {header['missing'][0][:60]!r}", where=HERE, do=f"write {_ALWAYS}, or no such line"
        )
    forest = make_forest(
        name=str(json.loads(_one(header, "forest"))),
        features=features,
        columns=int(_one(header, "columns")),
        trees=trees,
        n_outputs=len(bias),
        bias=bias,
        aggregate=aggregate,
        link=link,
        decision=decision,
        classes=classes,
        scale=float(_one(header, "scale")) if quantized else None,
        provenance=Provenance(
            source=str(json.loads(source[1])),
            version=str(json.loads(source[2])),
            model_hash=str(json.loads(source[3])),
            passes=tuple(str(json.loads(line[len("pass ") :])) for line in header.get("pass", [])),
            notes=tuple(str(json.loads(line[len("note ") :])) for line in header.get("note", [])),
        ),
        parts=parts,
        combine=combine,
        carried=[int(column) for column in _one(header, "carried").split(" ")] if "carried" in header else (),
        hashed=[_parse_hashed(line) for line in header.get("hashed", [])],
    )
    categories = (json.loads(line.split(" ", 1)[1]) for line in header.get("categories", []))
    return replace(
        forest,
        always_missing="missing" in header,
        categories=tuple(tuple(str(text) for text in texts) for texts in categories),
    )


def _parse_hashed(line: str) -> HashedColumn:
    match = matched(_HASHED, line)
    members = tuple(
        HashMember(int(column), str(name), kind, float(value), bool(missing))
        for column, name, kind, value, missing in json.loads(match[3])
    )
    pairs = [pair.split(":") for pair in match[4].split()]
    return HashedColumn(
        int(match[1]),
        int(match[2]),
        members,
        tuple(int(key) for key, _ in pairs),
        tuple(int(code) for _, code in pairs),
    )


def _parse_result(
    header: dict[str, list[str]], prefix: str, index: int
) -> tuple[Aggregate, Link, Decision, tuple[Label, ...]]:
    """Parses the lines on aggregate, link, decision and classes, of the forest or of a part."""
    texts = []
    for word in _RESULT:
        if not prefix:
            _one(header, word)
        texts.append(header[prefix + word][index].split(" ", 1)[1])
    aggregate, decision = matched(_AGGREGATE, texts[0]), matched(_DECISION, texts[2])
    classes = json.loads(texts[3])
    if not isinstance(classes, list) or not all(isinstance(c, str | int | float | bool) for c in classes):
        raise ModelError("classes are not a list of labels", where=HERE, do='write for example: classes ["no", "yes"]')
    threshold = (int if re.fullmatch(r"-?\d+", decision[2] or "0") else float)(decision[2] or 0)
    return (
        Aggregate(
            aggregate[1],  # type: ignore[arg-type]
            aggregate[2],  # type: ignore[arg-type]
            aggregate[3] == "first",
            float(aggregate[4] or 1.0),
            parse_number_type(aggregate[5]) if aggregate[5] else None,  # type: ignore[arg-type]
            aggregate[6] or "sequential",  # type: ignore[arg-type]
            float(aggregate[7] or 1.0),
        ),
        _parse_link(texts[1]),
        Decision(decision[1], threshold, decision[3], decision[4] or "first"),  # type: ignore[arg-type]
        tuple(classes),
    )


def _parse_link(text: str) -> Link:
    first, _, rest = text.partition(" of ")
    link = matched(_LINK, first)
    points = link[4].split(",") if link[4] else []
    return Link(
        link[1],  # type: ignore[arg-type]
        slope=float(link[2] or 1.0),
        intercept=float(link[3] or 0.0),
        points=tuple((float(x), float(y)) for x, y in (point.split(":") for point in points)),
        shift=float(link[5] or 0.0),
        each=tuple(_parse_link(part) for part in rest.split("; ")) if rest else (),
    )


def _parse_tree(lines: list[str], start: int, end: int, words: bool, quantized: bool, index: int) -> Tree:
    head = matched(_TREE, lines[start], f"line {start + 1}")
    outputs = [int(k) for k in head[1].split(" ")]
    number, word = int if quantized else float, int if words else float
    n = end - start - 1
    feature, left, right = np.full((3, n), LEAF, dtype=np.int64)
    threshold = np.zeros(n, dtype=np.int64 if words else np.float64)
    set_index = np.full(n, NO_SET, dtype=np.int64)
    missing = np.zeros(n, dtype=bool)
    ids = np.arange(n)
    cover: list[float] = []
    sets: list[list[Member]] = []
    values: list[list[float]] = []
    for node in range(n):
        line = lines[start + 1 + node]
        match = _NODE.fullmatch(line)
        if not match or int(match["node"]) != node:
            raise ModelError(
                f"can't read {line[:60]!r}",
                where=f"line {start + 2 + node}",
                do="correct the line; docs/reference/forest-text.md describes it",
            )
        if match["cover"]:
            cover.append(float(match["cover"]))
        if match["id"]:
            ids[node] = int(match["id"])
        if match["values"]:
            values.append([number(v) for v in match["values"].split(" ")])
            continue
        feature[node], left[node], right[node] = map(int, match.group("feature", "left", "right"))
        missing[node] = match["missing"] is not None
        if match["threshold"]:
            threshold[node] = word(match["threshold"])
        else:
            set_index[node] = len(sets)
            integer = words or match["set"][0] == "{"
            sets.append([int(m) if integer else float(m) for m in match["set"][1:-1].split(",") if m])
    if cover and len(cover) != n:
        raise ModelError(
            f"{len(cover)} covers for {n} nodes", where=f"tree {index}", do="give each node a cover, or none"
        )
    return make_tree(
        where=f"tree {index}",
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        values=np.array(values, dtype=np.int64 if quantized else np.float64).reshape(len(values), -1),
        outputs=outputs,
        missing_left=missing,
        set_index=set_index,
        sets=sets,
        cover=cover or None,
        ids=ids,
        drawn=None if head[2] is None else Draw(int(head[4]), int(head[2]), int(head[3])),
        quantized=quantized,
        words=words,
    )
