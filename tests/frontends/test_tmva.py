"""Tests that weight files of TMVA are read as TMVA's reader evaluates them, and that others are refused by name."""

from __future__ import annotations

import random
import re
import time

import numpy as np
import pytest
from contract.agree import assert_agrees
from contract.kinds_tmva import ADA, GRAD, KINDS, THREE, answers, weight_file, written
from damage import byte_copies, text_copies
from mutations import assert_refused, reads_whole

import forestc
from forestc.errors import RowsError
from forestc.frontends import read_bytes
from forestc.frontends.tmva import read_weights
from forestc.rows.encode import evaluate

FILE = weight_file(GRAD, trees=3)
STUMP = FILE[: FILE.index("<BinaryTree")] + (
    '<BinaryTree boostWeight="0.5" itree="0">\n<Node pos="s" NCoef="0" IVar="1" Cut="1.5" cType="1" nType="0">\n'
    '<Node pos="l" res="0.25" purity="0.1" nType="-1"/>\n<Node pos="r" res="-0.5" purity="0.9" nType="1"/>\n'
    "</Node>\n</BinaryTree>\n</Weights>\n</MethodSetup>\n"
)


def change(*pairs: str, text: str = STUMP) -> bytes:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text.encode()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_on_and_beside_its_cuts(kind):
    forest = assert_agrees(KINDS[kind](), 3_000, seed=1)
    assert [feature.name for feature in forest.features] == [f"v{feature.column}" for feature in forest.features]
    assert forest.provenance.source == "tmva" and forest.provenance.version == "4.2.1"


def test_a_row_on_a_cut_goes_right_and_left_where_c_type_is_0():
    below, on = np.nextafter(np.float32(1.5), np.float32(0)), 1.5
    rows = np.array([[0, below, 0, 0], [0, on, 0, 0], [0, np.inf, 0, 0]])
    assert evaluate(read_weights(STUMP.encode(), "m"), rows).scores[:, 0].tolist() == [0.25, -0.5, -0.5]
    mirrored = read_weights(change('cType="1"', 'cType="0"'), "m")
    assert evaluate(mirrored, rows).scores[:, 0].tolist() == [-0.5, 0.25, 0.25]


def test_missing_values_are_refused_as_tmva_computes_nothing_from_them():
    with pytest.raises(RowsError, match=r"missing \(NaN\)"):
        evaluate(read_weights(STUMP.encode(), "m"), np.full((1, 4), np.nan))


def test_the_order_of_the_elements_and_the_place_of_the_declaration_do_not_matter():
    weights = STUMP[STUMP.index("<Weights") : STUMP.index("</MethodSetup")]
    moved = STUMP.replace(weights, "").replace("<GeneralInfo>", weights + "<GeneralInfo>")
    for text in (moved, "\n\t  " + STUMP, "\ufeff" + STUMP, STUMP.replace('<?xml version="1.0"?>\n', "")):
        assert evaluate(read_bytes(text.encode(), "m"), np.zeros((1, 4))).decision.tolist() == ["Signal"]


def test_names_and_classes():
    def read(*pairs):
        return read_weights(change(*pairs), "m")

    assert read('Label="v1"', 'Label=""').features[0].name == "v1*2"
    assert read(' Label="v1"', "", ' Expression="v1*2"', "").features[0].name == "x1"
    assert read("Signal", "b").classes == ("Background", "b")  # The first one counts as signal.
    assert read("Signal", "noise", "Background", "SIGNAL").classes == ("noise", "SIGNAL")
    none = re.sub(r"<Class .*\n", "", STUMP).encode()
    assert read_weights(none, "m").classes == ("Background", "Signal")


def test_the_type_of_the_trees_and_the_options_choose_what_a_leaf_is_worth():
    def score(options, responses):
        text = weight_file(options, responses=responses)
        forest = read_weights(text.encode(), "m")
        rows = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
        assert np.array_equal(evaluate(forest, rows).scores[:, 0], answers(text, rows)[0])

    for options in (GRAD, ADA, {**ADA, "UseYesNoLeaf": "False"}):
        for responses in (False, True):
            score(options, responses)
    old = weight_file(GRAD).replace('AnalysisType="1"', 'TreeType="1"')
    assert read_weights(old.encode(), "m").trees[0].values.min() < 0


# Each refusal has changes of the stump's file, and parts of the message.
REFUSED = {
    "method": (("BDT::BDTG", "MLP::MLP"), "line 2; TMVA's method 'MLP' is not read; boosted decision trees"),
    "fisher": (('NCoef="0"', 'NCoef="3" fC0="1"'), "line 27; Fisher; NCoef; UseFisherCuts=False"),
    "transform": (
        ('<Transformations NTransformations="0"/>', '<Transformations><Transform Name="PCA"/></Transformations>'),
        "line 23; 'PCA'; VarTransform=None",
    ),
    "option": (("</Options>", '<Option name="VarTransform">N,D</Option></Options>'), "'N,D'; VarTransform=None"),
    "preselection": (("</Options>", '<Option name="DoPreselection">True</Option></Options>'), "DoPreselection=False"),
    "boost": ((">Grad<", ">AdaBoostR2<"), "BoostType 'AdaBoostR2'; train with BoostType=Grad"),
    "unnamed boost": (('"BoostType"', '"B"', '"Classification"', '"Regression"'), "BoostType 'AdaBoostR2'"),
    "multiclass": ((">Grad<", ">AdaBoost<", '"Classification"', '"Multiclass"'), "'AdaBoost' with AnalysisType 'Mult"),
    "analysis": (('"Classification"', '"x"'), "AnalysisType 'X' is not read"),
    "yes or no": (
        (">Grad<", ">AdaBoost<", "</Options>", '<Option name="UseYesNoLeaf">2</Option></Options>'),
        "UseYesNoLeaf is '2'",
    ),
    "weights": ((">Grad<", ">AdaBoost<", '"0.5"', '"-0.5"'), "boostWeights add up to no number above 0"),
    "no weight": ((">Grad<", ">AdaBoost<", '"0.5"', '"nan"'), "boostWeights add up to no number above 0"),
    "no response": (('res="0.25"', ""), "tree 0; a leaf's res"),
    "infinite leaf": (('res="0.25"', 'res="1e39"'), "tree 0; a leaf's res"),
    "cut": (('Cut="1.5"', 'Cut="nan"'), "line 27; Cut 'nan' is no finite float32"),
    "large cut": (('Cut="1.5"', 'Cut="4e38"'), "line 27; Cut '4e38'"),
    "no cut": (('Cut="1.5"', ""), "line 27; Cut ''"),
    "column": (('IVar="1"', 'IVar="4"'), "tree 0; column 4 of 4"),
    "negative column": (('IVar="1"', 'IVar="-1"'), "line 27; IVar is -1"),
    "side": (('pos="l"', 'pos="r"'), "line 29; neither the left nor the right"),
    "one child": (('<Node pos="l" res="0.25" purity="0.1" nType="-1"/>', ""), "line 30; not two nodes below it"),
    "no type": (('nType="0"', ""), "line 27; nType ''"),
    "no trees": (("<BinaryTree", "<Tree", "</BinaryTree", "</Tree"), "line 27; outside of the trees"),
    "empty tree": (("</BinaryTree>", "</BinaryTree><BinaryTree/>"), "tree 1; 0 nodes"),
    "two roots": (("</BinaryTree>", '<Node nType="1"/></BinaryTree>'), "line 31; a second root"),
    "nested": (("</Node>\n</Bin", "<BinaryTree/></Node>\n</Bin"), "line 30; a tree inside a tree"),
    "indices": (('VarIndex="3"', 'VarIndex="2"'), "VarIndex does not count from 0 to 3"),
    "classes": (('<Class Name="Background" Index="1"/>', ""), "one class alone"),
    "cut off": (("</Weights>\n</MethodSetup>\n", ""), "not readable XML; cut off"),
    "encoding": (('version="1.0"', 'version="1.0" encoding="x-none"'), "not readable XML"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_read_is_refused_by_name(case):
    changes, message = REFUSED[case]
    assert_refused(read_weights, change(*changes), message, "m.xml")


def doctype(content: str, use: str) -> bytes:
    return change("<MethodSetup", f"<!DOCTYPE m [{content}]>\n<MethodSetup", 'Label="v1"', f'Label="{use}"')


LAUGHS = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{k + 1} "{f"&a{k};" * 10}">' for k in range(12))
HOSTILE = {
    "billion laughs": doctype(LAUGHS, "&a12;"),
    "quadratic": doctype(f'<!ENTITY a "{"x" * 100_000}">', "&a;" * 10_000),
    "external entity": doctype('<!ENTITY x SYSTEM "file:///etc/passwd">', "&x;"),
    "external document type": change("<MethodSetup", '<!DOCTYPE m SYSTEM "http://127.0.0.1:9/x">\n<MethodSetup'),
    "unknown entity": change('Label="v1"', 'Label="&x;"'),
    "deep elements": change("<MVAPdfs/>", "<a>" * 1_000_000),
    "deep nodes": change(
        "</Node>\n</Bin",
        "</Node>\n</BinaryTree>\n<BinaryTree>" + '<Node pos="l" nType="0" IVar="0" Cut="0" cType="1">' * 200_000,
    ),
    "deep tree": change(
        "</BinaryTree>",
        '</BinaryTree><BinaryTree boostWeight="1">'
        + '<Node pos="l" nType="0" IVar="0" Cut="0" cType="1"><Node pos="r" nType="1" res="0"/>' * 20_000
        + '<Node pos="l" nType="1" res="0"/>' + "</Node>" * 20_000 + "</BinaryTree>",
    ),
    "long numbers": change('Cut="1.5"', f'Cut="{"1" * 5_000_000}"', 'IVar="1"', f'IVar="{"1" * 5_000_000}"'),
    "a null": change('Cut="1.5"', 'Cut="\0"'),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_and_soon(case):
    start = time.monotonic()
    assert_refused(read_bytes, HOSTILE[case], "", "m.xml")
    assert time.monotonic() - start < 10


def test_damaged_files_are_refused_or_read_as_valid_forests():
    texts = (FILE, weight_file(ADA, responses=False), weight_file(GRAD, "Multiclass", THREE))
    read = count = 0
    for seed, text in enumerate(texts):
        for copies in (text_copies, byte_copies):
            for changed in copies(text.encode(), 340, f"{seed}"):
                read += reads_whole(read_weights, changed.data)
                count += 1
    assert 0 < read < count == 2040


def test_damaged_nodes_are_refused_or_read_as_valid_forests():
    draw, values = (
        random.Random(0),
        ("nan", "-inf", "1e999", "-1", "0", "1", "99", "", "l", "1_0", "٣", "0x1", "9" * 99),
    )
    places = [found.span(1) for found in re.finditer(r'<Node[^>]*? \w+="([^"]*)"', FILE)]
    places += [found.span(1) for found in re.finditer(r' (?:nType|IVar|Cut|cType|pos|res)="([^"]*)"', FILE)]
    read = 0
    for _ in range(1000):
        start, end = draw.choice(places)
        read += reads_whole(read_weights, (FILE[:start] + draw.choice(values) + FILE[end:]).encode())
    assert 0 < read < 1000


def test_a_design_of_a_weight_file_keeps_its_decisions(tmp_path):
    rows = np.random.default_rng(2).normal(size=(300, 4))
    path = written(weight_file(GRAD, trees=5))
    design = forestc.compile(path, rows, tmp_path / "out", outputs="both", targets="verilog,c").design
    result = forestc.check(design, rows, engines=["netlist", "c"])
    assert result.ok and result.agreement.agreement == 1.0
