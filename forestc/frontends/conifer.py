"""Reads conifer's JSON as the experiment's emulator (conifer.h, in CMSSW and in conifer) evaluates it.

The emulator rounds inputs and thresholds to threshold_t, and leaves to score_t. A score is (init + sum) * norm, and
each step rounds to score_t. The file's `config` has the types, unless the user gives them; without types all are
float. CMSSW's emulator compares inputs as they are; conifer 1.11's first multiplies them by 1 in weight_t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CUT, ModelError, opt
from forestc.forest.builder import MAX_DEPTH, MAX_OUTPUTS, make_tree
from forestc.forest.ir import LEAF, Aggregate, Decision, Feature, Forest, Link, Order, Provenance, Tree
from forestc.forest.numbers import FLOAT32, FLOAT64, MAX_EXACT_BITS, Fixed, Float, FloatArray, round_to, word_range
from forestc.forest.reach import Reach, constant_reach, reach_of_tree
from forestc.forest.typed_sums import added
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.shared.assemble import ScoreMeaning, assembled
from forestc.frontends.shared.document import Document
from forestc.frontends.shared.emulator import ROLES, Emulator, Number, parsed_type
from forestc.frontends.shared.exact import least_keys, next_above

T = TypeVar("T")

LEAF_FEATURE = -2  # stands for the feature of a leaf


def read_model(document: object, where: str, emulator: Emulator) -> Forest:
    """Reads a parsed file into a Forest. Raises ForestcError."""
    root = Document(document, "", where)
    types, notes = _types(root, emulator)
    columns, width = root.get("n_features").integer(1, MAX_COLUMNS), root.get("n_classes").integer(1, MAX_OUTPUTS)
    width = 1 if width == 2 else width  # Two classes have one score.
    bias = root.get("init_predict").array(np.float64)
    if len(bias) < width or not np.isfinite(bias).all():
        raise root.get("init_predict").fail(f"does not hold {width} finite numbers")
    rounds = root.get("trees").items()
    if len(rounds) != root.get("n_trees").integer(1, 1 << 30):
        raise root.get("n_trees").fail(f"is {root.value['n_trees']}, and there are {len(rounds)}", CUT)
    trees = []
    for classes in rounds:
        members = classes.items()
        if len(members) < width:
            raise classes.fail(f"holds {len(members)} trees instead of {width}", CUT)
        trees += [_tree(tree, output, types, root) for output, tree in enumerate(members[:width])]
    names = _names(root, columns)

    def feature(column: int) -> Feature:
        own = types["input"]
        number = FLOAT64 if isinstance(own, Fixed) else own
        return Feature(names.get(column, f"x{column}"), number, column, raw=own, named=column in names)

    norm = float(Document([root.get("norm", 1).value], "norm", where).array(np.float64)[0])
    given, norm = norm, float(round_to(np.array([norm]), types["score"])[0])
    score, most = types["score"], MAX_EXACT_BITS // 2
    typed = isinstance(score, Fixed)
    if not np.isfinite(given) or (isinstance(score, Fixed) and (norm <= 0 or (norm != 1 and score.bits > most))):
        what = f"norm {given:g} is {norm:g} in {score}; the emulator multiplies by it"
        raise root.fail(what, f"give {opt.ap_types:score=TYPE} of at most {most} bits that holds it, or score=float")
    aggregate = Aggregate("sum", "float32" if score == FLOAT32 else "float64")
    bias = round_to(bias[:width], score)
    meaning: ScoreMeaning = {"n_outputs": width, "bias": bias, "aggregate": aggregate}
    meaning["link"] = Link() if typed else Link(slope=norm)
    if width > 1:
        meaning["decision"] = Decision("argmax", on="scores" if typed or norm == 1 else "values")
        meaning["classes"] = range(width)
    if isinstance(score, Fixed):
        own = [[tree for tree in trees if tree.outputs == (output,)] for output in range(width)]
        fit = all(_fits(*of, score, emulator.order) for of in zip(own, bias.tolist(), strict=True))
        if not fit:
            notes.append(f"sums may leave {score}: each addition overflows as its own, in {emulator.order} order")
        if not fit or norm != 1:
            meaning["aggregate"] = Aggregate("typed", score=score, order=emulator.order, norm=norm)
    provenance = Provenance("conifer", _version(root), notes=tuple(notes))
    return assembled(trees, columns, feature, provenance, where, **meaning)


def _version(root: Document) -> str:
    entries = root.get("metadata", []).value
    last = entries[-1] if isinstance(entries, list) and entries else None
    return str(last.get("version", ""))[:40] if isinstance(last, Mapping) else ""


def _types(root: Document, emulator: Emulator) -> tuple[dict[str, Number], list[str]]:
    """Returns the number types by role, and notes about them."""
    configs = [root.value[key] for key in ("config", "Config") if isinstance(root.get(key, ()).value, Mapping)]

    def said(*keys: str) -> Any:
        return next((c[key] for key in keys for c in configs if c.get(key) is not None), None)

    precision = said("precision", "Precision")
    names = {role: emulator.types.get(role, said(f"{role}_precision", f"{role.title()}Precision")) for role in ROLES}
    names["input"] = names["input"] or precision or names["threshold"]
    names["threshold"] = names["threshold"] or names["input"]
    names["score"] = names["score"] or precision
    if not any(names.values()):
        note = f"the file names no number types: all are float; {opt.ap_types} gives others"
        return dict.fromkeys(ROLES, FLOAT32), [note]
    types: dict[str, Number] = {}
    for role, name in names.items():
        number = parsed_type(name or "float")
        if isinstance(number, str):
            raise root.fail(f"{role}: {number}", f"give {opt.ap_types:{role}=TYPE} with a type that stands for it")
        types[role] = number
    own, compared = types["input"], types["threshold"]
    if isinstance(own, Fixed) and isinstance(compared, Fixed):
        ends = np.array(own.ends)
        monotone = np.array_equal(round_to(ends, compared), round_to(ends, replace(compared, overflow="AP_SAT")))
        fine = compared.overflow == "AP_SAT" or monotone
    else:
        fine = own == compared
    if not fine:
        what = f"inputs of type {own} do not fit the type of thresholds, {compared}"
        raise root.fail(what, f"give {opt.ap_types:input=TYPE,threshold=TYPE} with types that fit")
    named = [of.fixed_point(of.rounding, of.overflow) if isinstance(of, Fixed) else of for of in map(types.get, ROLES)]
    notes = [f"numbers are those of the emulator: {', '.join(map('{} {}'.format, ROLES, named))}"]
    weight = parsed_type(said("weight_precision", "WeightPrecision") or names["threshold"])
    if root.has("weight") and isinstance(weight, Fixed) and round_to(np.ones(1), weight)[0] != 1:
        notes.append(
            f"weights of type {weight} can't be 1, by which conifer 1.11 multiplies: inputs are compared as they are"
        )
    return types, notes


def _names(root: Document, columns: int) -> dict[int, str]:
    """Returns the names of columns; none if conifer made them up."""
    given = root.get("feature_map", {})
    if not isinstance(given.value, Mapping):
        raise given.fail("does not map names to columns")
    names = {given.get(name).integer(0, columns - 1): str(name) for name in given.value}
    if len(names) != len(given.value):
        raise given.fail("gives one column two names")
    return {} if all(name == f"feat_{column}" for column, name in names.items()) else names


def _tree(document: Document, output: int, types: Mapping[str, Number], root: Document) -> Tree:
    """Reads a tree without the nodes that no path reaches, and without what inner nodes have as `value`."""
    feature, left, right = (document.get(key).array(np.int64) for key in ("feature", "children_left", "children_right"))
    threshold, value = (document.get(key).array(np.float64) for key in ("threshold", "value"))
    size = len(feature)
    if not size or {size} != {len(left), len(right), len(threshold), len(value)}:
        raise document.fail("its lists differ in length, or are empty", CUT)
    reached = _reached(document, feature, left, right)
    number = np.cumsum(reached) - 1
    feature, left, right, threshold, value = (array[reached] for array in (feature, left, right, threshold, value))
    is_leaf = feature == LEAF_FEATURE
    where, ids = f"{document.where}, {document.path}", np.flatnonzero(reached)
    if not np.isfinite(np.where(is_leaf, value, threshold)).all():
        bad = ids[~np.isfinite(np.where(is_leaf, value, threshold))][0]
        raise ModelError("a number is not finite", where=f"{where}, node {bad}", do="train the model again")
    _refuse_oblique(document, dict(zip(ids[~is_leaf].tolist(), feature[~is_leaf].tolist(), strict=True)))
    return make_tree(
        where=where,
        feature=np.where(is_leaf, LEAF, feature),
        threshold=np.where(is_leaf, 0.0, _limits(np.where(is_leaf, 0.0, threshold), types, root)),
        left=np.where(is_leaf, LEAF, number[np.where(is_leaf, 0, left)]),
        right=np.where(is_leaf, LEAF, number[np.where(is_leaf, 0, right)]),
        values=round_to(value[is_leaf], types["score"]).reshape(-1, 1),
        outputs=(output,),
        ids=ids,
    )


def _reached(
    document: Document, feature: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Returns an array (nodes,): True if a path leads to the node."""
    reached, at = np.zeros(len(feature), dtype=np.bool_), np.zeros(1, dtype=np.int64)
    for _ in range(MAX_DEPTH + 2):
        reached[at] = True
        inner = at[feature[at] != LEAF_FEATURE]
        children = np.unique(np.concatenate([left[inner], right[inner]]))
        if len(children) and not 0 <= children[0] <= children[-1] < len(feature):
            raise document.fail(f"a child is outside the {len(feature)} nodes")
        at = children[~reached[children]]
        if not len(at):
            return reached
    raise document.fail(f"is deeper than {MAX_DEPTH} conditions", "train with a max_depth")


def _refuse_oblique(document: Document, features: Mapping[int, int]) -> None:
    """Raises ModelError if a node weighs its inputs otherwise than by 1 for its feature. features: by inner node."""
    if not document.has("weight"):
        return
    weights = document.get("weight").items()
    for node, feature in features.items():
        row = weights[node].array(np.float64) if node < len(weights) else np.zeros(0)
        if not 0 <= feature < len(row) or row[feature] != 1 or np.count_nonzero(row) != 1:
            raise document.fail(
                f"node {node} compares a weighted sum of inputs (an oblique split), which is not read",
                "train trees whose nodes compare one input each; docs/explanation/oblique.md says what others take",
            )


def _limits(thresholds: FloatArray, types: Mapping[str, Number], root: Document) -> FloatArray:
    """Returns thresholds t such that an input x of its own type goes left if and only if x < t."""
    own, compared = types["input"], types["threshold"]
    convention = root.get("splitting_convention", "<=")
    if convention.text() not in ("<", "<="):
        raise convention.fail(f"is {convention.text()[:20]!r}, neither < nor <=")
    strict, limits = convention.text() == "<", round_to(thresholds, compared)
    if not isinstance(own, Fixed):
        assert isinstance(own, Float)
        return limits if strict else next_above(limits, own.bits)

    def right(words: NDArray[np.int64]) -> NDArray[np.bool_]:
        inputs = round_to(np.ldexp(words.astype(np.float64), -own.fraction), compared)
        return inputs >= limits if strict else inputs > limits

    span = word_range(own, False)
    low, high = (np.full(len(limits), end, dtype=np.int64) for end in (span.low - 1, span.high + 1))
    return np.ldexp(least_keys(right, low, high).astype(np.float64), -own.fraction)


def _fits(trees: Sequence[Tree], start: float, score: Fixed, order: Order) -> bool:
    """Returns True if no sum of trees of one output can leave the type of scores. start: the initial score."""
    low, high = score.ends
    features = 1 + max(int(tree.feature.max()) for tree in trees)

    def inside(terms: Sequence[Reach]) -> bool:
        sums: list[Reach] = []

        def add(a: Reach, b: Reach) -> Reach:
            sums.append(a.plus(b))
            return sums[-1]

        total = added(constant_reach(start, start, features), terms, order, add)
        wraps = score.overflow == "AP_WRAP"  # A sum may leave the type and come back.
        return all(low <= r.span[0] and r.span[1] <= high for r in ([total] if wraps else sums))

    alone = [constant_reach(tree.values.min(), tree.values.max(), features) for tree in trees]
    return inside(alone) or inside([reach_of_tree(tree, features) for tree in trees])
