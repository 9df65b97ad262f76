"""Reads weight files of TMVA, ROOT's library: XML with boosted decision trees (BDT).

They mean what TMVA::Reader of today's ROOT computes. Rows, cuts and leaves are float32; a row goes right if
`x >= Cut`, or left where cType is 0. Sums are float64, tree by tree.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from xml.parsers.expat import ExpatError, ParserCreate

import numpy as np

from forestc.errors import CUT, DAMAGED, ModelError
from forestc.forest.builder import make_tree
from forestc.forest.ir import LEAF, Aggregate, Decision, Feature, Forest, Link, Provenance, Tree
from forestc.forest.numbers import FLOAT32
from forestc.frontends.shared.assemble import ScoreMeaning, assembled
from forestc.frontends.shared.exact import least_float

MEANS = ("AdaBoost", "RealAdaBoost", "AdaCost", "Bagging")  # boosting types that average weighted leaves
TWO_WAYS = ("Classification", "Regression")
LEAF_VALUES = ("res", "purity", "nType")  # attributes of a leaf, one of which is its value
RESPONSE, PURITY, NODE_TYPE = range(3)
UNREAD = -2  # stands for a node below a leaf, where TMVA never looks
FLAGS = {**dict.fromkeys(("true", "t", "1"), True), **dict.fromkeys(("false", "f", "0"), False)}

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"\s*[-+]?\d{1,9}\s*", re.ASCII)


@dataclass
class _Nodes:
    """The nodes of a tree that rows can reach, in the order of the file."""

    weight: float  # boostWeight
    column: list[int] = field(default_factory=list)  # LEAF at leaves
    cut: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    mirrored: list[bool] = field(default_factory=list)  # True if cType is 0
    values: list[tuple[float, ...]] = field(default_factory=list)  # LEAF_VALUES; NaN for what is not there


def read_weights(data: bytes, where: str) -> Forest:
    """Reads the bytes of a weight file into a Forest. Raises ModelError."""
    file = _File(where)
    file.parse(data.removeprefix(b"\xef\xbb\xbf").lstrip())  # mlglue writes blanks before the XML declaration.
    return _forest(file)


class _File:
    """The content of a weight file. Without a document type, which is refused, there are no entities to expand."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.method = ""
        self.responses = False  # True if the trees are regression trees, which a gradient boosting of classes has, too
        self.info: dict[str, str] = {}
        self.options: dict[str, str] = {}
        self.variables: list[dict[str, str]] = []
        self.classes: list[dict[str, str]] = []
        self.trees: list[_Nodes] = []
        self._tree: _Nodes | None = None
        self._path: list[int] = []  # indices of the open nodes
        self._option = ""  # name of the open option
        self._parser = ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype

    def parse(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except ExpatError as error:
            raise self.fail(f"not readable XML ({error})", CUT) from None
        except (ValueError, LookupError) as error:  # Python does not know the encoding.
            raise self.fail(f"not readable XML ({error})", "write it in UTF-8") from None
        except ModelError as error:
            error.parts = (f"{self.where}, line {self._parser.CurrentLineNumber}", *error.parts[1:])
            raise

    def fail(self, what: str, do: str = DAMAGED) -> ModelError:
        return ModelError(what, where=self.where, do=do)

    def transformed(self, kind: str) -> ModelError:
        do = "train with VarTransform=None; transform the columns before training if need be"
        return self.fail(f"the transformation {kind[:40]!r} of variables is not read", do)

    def indexed(self, rows: list[dict[str, str]], key: str) -> list[dict[str, str]]:
        """Returns elements in the order of their index."""
        order = {row.get(key, "").strip(): row for row in rows}
        if order.keys() != set(map(str, range(len(rows)))):
            raise self.fail(f"{key} does not count from 0 to {len(rows) - 1}")
        return [order[str(index)] for index in range(len(rows))]

    def flag(self, name: str, default: bool) -> bool:
        text = self.options.get(name, str(default)).strip()
        if text.lower() not in FLAGS:
            raise self.fail(f"the option {name} is {text[:40]!r}, not True or False")
        return FLAGS[text.lower()]

    def _doctype(self, *_: object) -> None:
        raise self.fail("a document type is declared, as TMVA never does", "take the declaration out")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "MethodSetup":
                method = attributes.get("Method", "").partition("::")[0]
                if method != "BDT" or self.method:
                    do = "give a weight file of the method BDT alone: boosted decision trees"
                    raise self.fail(f"TMVA's method {method[:40]!r} is not read", do)
                self.method = method
            case "Info":
                self.info[attributes.get("name", "")] = attributes.get("value", "")
            case "Option":
                self._option = attributes.get("name", "")
                self.options[self._option] = ""
            case "Variable":
                self.variables.append(attributes)
            case "Class":
                self.classes.append(attributes)
            case "Transform":
                raise self.transformed(attributes.get("Name", ""))
            case "Weights":  # Before TMVA 4.1 the attribute was called TreeType.
                self.responses = attributes.get("TreeType", attributes.get("AnalysisType", "")).strip() == "1"
            case "BinaryTree":
                if self._tree is not None:
                    raise self.fail("a tree inside a tree")
                self._tree = _Nodes(number(attributes, "boostWeight"))
            case "Node":
                self._node(attributes)

    def _end(self, name: str) -> None:
        self._option = ""
        tree = self._tree
        if name == "Node" and tree and (at := self._path.pop()) != UNREAD:
            inner = tree.column[at] != LEAF
            if inner and LEAF in (tree.left[at], tree.right[at]):
                raise self.fail("a node with nType 0 has not two nodes below it")
        elif name == "BinaryTree" and tree:
            self.trees.append(tree)
            self._tree = None

    def _text(self, text: str) -> None:
        if self._option:
            self.options[self._option] += text

    def _node(self, attributes: dict[str, str]) -> None:
        tree, path = self._tree, self._path
        if tree is None or (tree.column and not path):
            raise self.fail("a node is outside of the trees, or a tree has a second root")
        if path and (path[-1] == UNREAD or tree.column[path[-1]] == LEAF):
            path.append(UNREAD)
            return
        if path:
            side = {"l": tree.left, "r": tree.right}.get(attributes.get("pos", ""))
            if side is None or side[path[-1]] != LEAF:
                raise self.fail("a node is neither the left nor the right one below its parent")
            side[path[-1]] = len(tree.column)
        path.append(len(tree.column))
        is_leaf = self._integer(attributes, "nType") != 0
        tree.column.append(LEAF if is_leaf else self._column(attributes))
        tree.cut.append(0.0 if is_leaf else number(attributes, "Cut"))
        tree.mirrored.append(not is_leaf and self._integer(attributes, "cType") == 0)
        tree.values.append(tuple(number(attributes, name) for name in LEAF_VALUES))
        tree.left.append(LEAF)
        tree.right.append(LEAF)
        if math.isnan(tree.cut[-1]):
            raise self.fail(f"Cut {attributes.get('Cut', '')[:40]!r} is no finite float32")

    def _column(self, attributes: dict[str, str]) -> int:
        if "NCoef" in attributes and self._integer(attributes, "NCoef"):
            do = "train with UseFisherCuts=False"
            raise self.fail("a cut on several variables at once (a Fisher cut: NCoef above 0) is not read", do)
        column = self._integer(attributes, "IVar")
        if column < 0:
            raise self.fail(f"IVar is {column} at a node with nType 0")
        return column

    def _integer(self, attributes: dict[str, str], name: str) -> int:
        text = attributes.get(name, "")
        if not _INTEGER.fullmatch(text):
            raise self.fail(f"{name} {text[:40]!r} is no whole number")
        return int(text)


def number(attributes: dict[str, str], name: str) -> float:
    """Returns the float32 in an attribute; NaN if it holds no decimal number, or one that is too large."""
    text = attributes.get(name, "")
    if not _NUMBER.fullmatch(text):
        return math.nan
    with np.errstate(over="ignore"):
        value = float(np.float32(float(text)))
    return value if math.isfinite(value) else math.nan


def _forest(file: _File) -> Forest:
    if not file.trees:
        raise file.fail("there are no trees in it", CUT)
    if (transform := file.options.get("VarTransform", "").strip()) not in ("", "None", "I"):
        raise file.transformed(transform)
    if file.flag("DoPreselection", False):
        raise file.fail("cuts before the trees are not read", "train with DoPreselection=False")
    rows = file.indexed(file.variables, "VarIndex")
    names = [row.get("Label") or row.get("Expression") or f"x{index}" for index, row in enumerate(rows)]
    kind = file.info.get("AnalysisType", "Classification").strip().capitalize()
    boost = file.options.get("BoostType", "AdaBoostR2" if kind == "Regression" else "AdaBoost").strip()
    averages = boost in MEANS
    if kind not in (TWO_WAYS if averages else (*TWO_WAYS, "Multiclass") if boost == "Grad" else ()):
        do = f"train with BoostType=Grad; for two classes and regressions {', '.join(MEANS)} are read, too"
        raise file.fail(f"BoostType {boost[:40]!r} with AnalysisType {kind[:40]!r} is not read", do)
    yes_no = averages and kind == "Classification" and file.flag("UseYesNoLeaf", True)
    value = RESPONSE if file.responses else NODE_TYPE if yes_no else PURITY
    meaning = _meaning(file, kind, averages, value)
    trees = [
        _tree(nodes, value, averages, index % meaning["n_outputs"], f"{file.where}, tree {index}")
        for index, nodes in enumerate(file.trees)
    ]
    return assembled(
        trees,
        len(names),
        lambda column: Feature(names[column], FLOAT32, column),
        Provenance("tmva", file.info.get("TMVA Release", "").partition(" ")[0]),
        file.where,
        **meaning,
    )


def _tree(nodes: _Nodes, value: int, weighted: bool, output: int, where: str) -> Tree:
    left, right, mirrored = np.array(nodes.left), np.array(nodes.right), np.array(nodes.mirrored)
    leaves = np.array(nodes.values).reshape(-1, len(LEAF_VALUES))[left == LEAF, value]
    leaves = leaves * nodes.weight if weighted else leaves
    if not np.isfinite(leaves).all():
        raise ModelError(f"a leaf's {LEAF_VALUES[value]} or the boostWeight is no number", where=where, do=DAMAGED)
    return make_tree(
        where=where,
        feature=nodes.column,
        threshold=nodes.cut,
        left=np.where(mirrored, right, left),
        right=np.where(mirrored, left, right),
        values=leaves[:, np.newaxis],
        outputs=(output,),
    )


def _meaning(file: _File, kind: str, averages: bool, value: int) -> ScoreMeaning:
    """Returns what the scores mean. averages: they are averages of the trees' values, otherwise sums."""
    weights = [nodes.weight for nodes in file.trees]
    total = float(np.add.accumulate(weights)[-1]) if averages else 1.0  # rounds as TMVA does
    if not total > np.finfo(np.float64).eps:
        raise file.fail("the trees' boostWeights add up to no number above 0")
    aggregate = Aggregate(bias_first=False, divisor=total)
    if kind == "Regression":  # The first weight of a gradient boosting is its start.
        return {"n_outputs": 1, "bias": [0.0 if averages else weights[0]], "aggregate": aggregate}
    classes = [row.get("Name", "") for row in file.indexed(file.classes, "Index")]
    if kind == "Multiclass":
        decision = Decision("argmax")
        return {"n_outputs": len(classes), "link": Link("softmax"), "decision": decision, "classes": classes}
    classes = classes or ["Signal", "Background"]
    signal = [name.lower() for name in classes].index("signal") if "signal" in map(str.lower, classes) else 0
    if averages:
        limit = number({"NodePurityLimit": "0.5", **file.options}, "NodePurityLimit") if value == PURITY else 0.0
        least = float(np.nextafter(limit, np.inf))
    else:
        least = least_float(lambda score: bool(2 / (1 + np.exp(-2 * score)) - 1 > 0), 64)
    return {
        "n_outputs": 1,
        "aggregate": aggregate,
        "link": Link("identity" if averages else "tanh"),
        "decision": Decision("threshold", least),
        "classes": [*classes[:signal], *classes[signal + 1 :], classes[signal]],
    }
