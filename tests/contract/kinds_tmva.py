"""Defines weight files of TMVA: random trees as TMVA writes them, and the answers of a plain recursive reading."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from contract.kind import Rows, Trained

COLUMNS = 4
X = np.random.default_rng(0).normal(size=(300, COLUMNS)).astype(np.float32)
GRAD, ADA = {"BoostType": "Grad"}, {"BoostType": "AdaBoost"}
TWO, THREE = ("Signal", "Background"), ("a", "b", "c")


def node(draw: random.Random, depth: int, pos: str = "s") -> str:
    """Returns a random subtree. Every eighth leaf has nodes below it, which TMVA never reads."""
    is_leaf = depth == 0 or draw.random() < 0.1
    kind = draw.choice((-1, 1)) if is_leaf else 0
    below = "" if depth == 0 or (is_leaf and draw.random() < 0.9) else "".join(node(draw, depth - 1, p) for p in "lr")
    single = lambda low, high: f"{float(np.float32(draw.uniform(low, high))):.16e}"  # noqa: E731
    return (
        f'<Node pos="{pos}" depth="{depth}" NCoef="0" IVar="{-1 if is_leaf else draw.randrange(COLUMNS)}" '
        f'Cut="{single(-2, 2)}" cType="{draw.randrange(2)}" res="{single(-1, 1)}" rms="0" '
        f'purity="{single(0, 1)}" nType="{kind}">{below}</Node>\n'
    )


def weight_file(
    options: dict[str, str], kind: str = "Classification", names: tuple[str, ...] = TWO, responses: bool = True,
    trees: int = 7, seed: int = 0,
) -> str:  # fmt: skip
    """Returns a weight file. responses: the trees are regression trees, as gradient boosting has."""
    draw = random.Random(seed)
    made = "".join(
        f'<BinaryTree type="DecisionTree" boostWeight="{draw.uniform(0.1, 2):.16e}" itree="{i}">\n{node(draw, 4)}'
        "</BinaryTree>\n" for i in range(trees)
    )  # fmt: skip
    chosen = "".join(f'<Option name="{name}" modified="Yes">{value}</Option>\n' for name, value in options.items())
    columns = "".join(
        f'<Variable VarIndex="{i}" Expression="v{i}*2" Label="v{i}" Title="v{i}" Unit="" Internal="v{i}" Type="F"/>\n'
        for i in range(COLUMNS)
    )
    classes = "".join(f'<Class Name="{name}" Index="{i}"/>\n' for i, name in enumerate(names))
    return f"""<?xml version="1.0"?>
<MethodSetup Method="BDT::BDTG">
<GeneralInfo>
<Info name="TMVA Release" value="4.2.1 [262657]"/>
<Info name="AnalysisType" value="{kind}"/>
</GeneralInfo>
<Options>
{chosen}</Options>
<Variables NVar="{COLUMNS}">
{columns}</Variables>
<Spectators NSpec="1">
<Spectator SpecIndex="0" Expression="event" Label="event" Type="F"/>
</Spectators>
<Classes NClass="{len(names)}">
{classes}</Classes>
<Transformations NTransformations="0"/>
<MVAPdfs/>
<Weights NTrees="{trees}" AnalysisType="{int(responses)}">
{made}</Weights>
</MethodSetup>
"""


def leaves(at: ElementTree.Element, rows: Rows, value: str) -> Rows:
    """Returns an attribute of the leaf that each row reaches, as float64."""
    if at.get("nType") != "0":
        return np.full(len(rows), np.float32(at.get(value)), dtype=np.float64)
    right = rows[:, int(at.get("IVar", ""))].astype(np.float32) >= np.float32(at.get("Cut"))
    right = right if at.get("cType") == "1" else ~right
    below = {child.get("pos"): child for child in at}
    found = np.empty(len(rows))
    found[right] = leaves(below["r"], rows[right], value)
    found[~right] = leaves(below["l"], rows[~right], value)
    return found


def answers(text: str, rows: Rows) -> tuple[Rows, Rows]:
    """Returns the scores and values of a file as TMVA's reader computes them."""
    root = ElementTree.fromstring(text.strip())
    option = {part.get("name"): part.text for part in root.iter("Option")}
    kind = next(part.get("value") for part in root.iter("Info") if part.get("name") == "AnalysisType")
    trees = [(np.float64(np.float32(tree.get("boostWeight"))), tree[0]) for tree in root.iter("BinaryTree")]
    averages = option["BoostType"] != "Grad"
    yes_no = averages and kind == "Classification" and option.get("UseYesNoLeaf", "True") == "True"
    responses = next(root.iter("Weights")).get("AnalysisType") == "1"
    value = "res" if responses else "nType" if yes_no else "purity"
    if kind == "Multiclass":
        count = len(list(root.iter("Class")))
        scores = np.zeros((len(rows), count))
        for index, (_, tree) in enumerate(trees):
            scores[:, index % count] += leaves(tree, rows, value)
        return scores, np.stack([1 / np.exp(scores - scores[:, [k]]).sum(axis=1) for k in range(count)], axis=1)
    total, norm = np.zeros(len(rows)), 0.0
    for weight, tree in trees:
        total += (weight if averages else 1.0) * leaves(tree, rows, value)
        norm += float(weight)
    if averages:
        return total / norm, total / norm
    if kind == "Regression":
        return total + trees[0][0], total + trees[0][0]
    return total, 2.0 / (1.0 + np.exp(-2.0 * total)) - 1.0


def written(text: str) -> Path:
    path = Path(tempfile.mkdtemp()) / "weights.xml"
    path.write_text(text)
    return path


def trained(*given: Any, **more: Any) -> Callable[[], Trained]:
    """Returns a function that writes a file, and gives it with its answers. Signal counts from the middle on."""

    def make() -> Trained:
        text = weight_file(*given, **more)

        def decision(rows: Rows) -> Rows:
            values = answers(text, rows)[1]
            if 'value="Classification"' in text:
                middle = 0.5 if "False" in text else 0.0
                return np.where(values > middle, "Signal", "Background")
            return np.array(THREE)[values.argmax(axis=1)] if values.ndim == 2 else values

        return Trained(
            written(text),
            X,
            decision,
            lambda rows: answers(text, rows)[0],
            values=lambda rows: answers(text, rows)[1],
            value_ulps=4 if 'value="Multiclass"' in text else 0,
        )

    return make


KINDS: dict[str, Callable[[], Trained]] = {
    "tmva-grad": trained(GRAD),
    "tmva-grad-background-first": trained(GRAD, names=TWO[::-1], seed=1),
    "tmva-grad-regression": trained(GRAD, "Regression", (), seed=2),
    "tmva-grad-multiclass": trained(GRAD, "Multiclass", THREE, trees=8, seed=3),
    "tmva-adaboost": trained(ADA, responses=False, seed=4),
    "tmva-adaboost-purity": trained({**ADA, "UseYesNoLeaf": "False"}, responses=False, seed=5),
    "tmva-bagging": trained({"BoostType": "Bagging", "UseYesNoLeaf": "True"}, responses=False, seed=6),
    "tmva-bagging-regression": trained({"BoostType": "Bagging"}, "Regression", (), seed=7),
}
FILES: dict[str, Callable[[], bytes]] = {"tmva": lambda: weight_file(GRAD, trees=2).encode()}
