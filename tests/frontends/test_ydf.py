"""Tests YDF's model folders, written by hand: the meaning of conditions and scores, the forms of files, what is
refused, and damaged files."""

from __future__ import annotations

import gzip
import random
import struct
import zipfile
from io import BytesIO

import numpy as np
import pytest
from example_counts import examples
from mutations import assert_refused, mutated_bytes, reads_whole
from ydf_models import (
    BOOSTED,
    CATEGORY,
    COLUMNS,
    EACH,
    MODELS,
    NUMBER,
    SET,
    Folder,
    archived,
    column,
    contains,
    higher,
    message,
    number_leaf,
    varint,
    vote_leaf,
)  # fmt: skip

import forestc
from forestc.errors import ModelError
from forestc.forest.builder import MAX_DEPTH
from forestc.forest.text import print_forest
from forestc.frontends import read_bytes

NAN = float("nan")
JUST = float(np.float32(0.1))
BELOW = float(np.nextafter(np.float32(0.1), np.float32(0)))


def read(files, where="m.zip"):
    return read_bytes(archived(files), where)


def loaded(name, **how):
    return read(MODELS[name].files(**how))


def text(forest):
    return print_forest(forest).split("\n", 2)[2]


# Rows of x, colour, flag, binned, code, shifted, and whether each of EACH takes its positive branch. Colours are red 0,
# green 1, blue 2, grey 3; the index in YDF's dictionary is larger by 1, as for `shifted`, but not for `code`.
BRANCHES = [
    ([JUST, 1, 1, 2.0, 3, 0], [1, 1, 1, 1, 1, 1, 0, 0]),
    ([BELOW, 0, 0, 1.9999999, 1, 1], [0, 0, 0, 0, 1, 0, 0, 0]),
    ([NAN, NAN, NAN, NAN, NAN, NAN], [1, 0, 1, 0, 1, 0, 1, 1]),
    ([-np.inf, -1, 0, np.inf, 0, -1], [0, 1, 0, 1, 0, 1, 0, 0]),
    ([np.inf, 7, 1, -np.inf, 99, 5], [1, 1, 1, 0, 0, 1, 0, 0]),
    ([-0.0, 3, 0, 7.25, 2, 3], [0, 0, 0, 1, 0, 0, 0, 0]),
]


def test_each_condition_takes_its_branch():
    forest = loaded("boosted")
    scores = forestc.evaluate(forest, np.array([row for row, _ in BRANCHES])).scores[:, 0]
    expected = [
        0.25 + sum(tree[1 + positive] for tree, positive in zip(EACH, branches, strict=True))
        for _, branches in BRANCHES
    ]
    assert scores.tolist() == expected
    assert [f.name for f in forest.features] == ["x", "colour", "flag", "binned", "code", "shifted"]
    assert forest.features[1].labels == ("red", "green", "blue", "grey")
    assert forest.classes == ("no", "yes")


def test_texts_are_categories_and_others_count_as_unknown():
    import pandas

    frame = pandas.DataFrame(
        {"x": [0.0] * 4, "colour": ["red", "green", "pink", None], "flag": [True, False, True, False]}
        | {"binned": [1.0] * 4, "code": [0, 1, 2, 3], "shifted": [0, 1, 2, 3]}
    )
    rows = np.array([[0, 0, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1], [0, -1, 1, 1, 2, 2], [0, NAN, 0, 1, 3, 3]])
    forest = loaded("boosted")
    assert forestc.evaluate(forest, frame).scores.tolist() == forestc.evaluate(forest, rows).scores.tolist()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.each_case
def test_all_forms_of_a_folder_are_one_forest(name, tmp_path):
    whole = text(loaded(name))
    for index, how in enumerate(
        (
            {"form": "BLOB_SEQUENCE_GZIP"},
            {"form": "TFE_RECORDIO"},
            {"shards": 3},
            {"prefix": "1a2b", "form": "TFE_RECORDIO", "shards": 2},
        )
    ):
        folder = MODELS[name].write(tmp_path / str(index), **how)
        (folder / "README.md").write_text("of the model")
        assert text(forestc.load(folder)) == whole
        assert text(read({f"saved/{file}": data for file, data in MODELS[name].files(**how).items()})) == whole
    assert forestc.load(folder).name == "3"
    assert forestc.load(folder).provenance.model_hash == forestc.load(str(folder)).provenance.model_hash


def test_links_and_decisions():
    rows = np.array([row for row, _ in BRANCHES])
    poisson, shares, isolation = (forestc.evaluate(loaded(k), rows) for k in ("poisson", "shares", "isolation"))
    assert np.allclose(poisson.decision, np.exp(np.where(rows[:, 0] >= 0.5, 1.25, 0.75)))
    assert shares.values.sum(axis=1) == pytest.approx(1)
    assert shares.decision[0] == "c"
    length = 2 * (np.log(49) + 0.5772156649) - 2 * 49 / 50
    depths = {0: 1.0, 1: 2 + 2 * (np.log(2) + 0.5772156649) - 4 / 3, 2: 2 + 2 * (np.log(39) + 0.5772156649) - 78 / 40}
    # A tree asks twice for the same condition: the leaf of 3 examples is never reached.
    taken = np.array([[depths[2 * positive] for positive in branches] for _, branches in BRANCHES])
    assert isolation.decision == pytest.approx(2.0 ** -(taken.mean(axis=1) / length), rel=1e-5)


@pytest.mark.parametrize("trees", [1, 2, 3, 6, 7, 10, 14, 49, 100, 300])
@pytest.mark.each_case
def test_half_of_the_votes_count_as_ydf_adds_them(trees):
    """YDF adds float32 shares of votes, whose sum may be below 0.5 for half of them."""
    no, yes = [1, 0.0, 1.0, 0.0], [2, 0.0, 0.0, 1.0]
    columns = [column(f"x{k}", NUMBER, mean=0.0) for k in range(trees)]
    folder = Folder(columns, [(higher(k, 0.5), no, yes) for k in range(trees)], "RANDOM_FOREST", leaf=vote_leaf)
    rows = np.tri(trees + 1, trees, -1)
    shares = np.concatenate([[0], np.cumsum(np.full(trees, 1 / trees, np.float32))])
    result = forestc.evaluate(read(folder.files()), rows)
    assert result.scores[:, 0].tolist() == shares.tolist()
    assert result.decision.tolist() == np.where(shares >= 0.5, "yes", "no").tolist()


def test_ydf_s_engines_add_in_their_own_order():
    order = [(higher(0, 0.5), 0.0, value) for value in (1.0, 2.0**24, 1.0)]
    local = [(higher(0, 0.5, missing=1), *leaves) for _, *leaves in order]
    deep = (higher(0, 0.0, missing=1), 0.0, 0.0)
    for _ in range(6):
        deep = (higher(0, 0.0, missing=1), deep, deep)
    folder = Folder(COLUMNS, order, own=message(f3=2, f4=1.0, f5=1), task=2)
    asks = ((0, 1, b"", 0), 0.0, 0.0)
    scores = {
        name: forestc.evaluate(read(Folder(COLUMNS, trees, own=folder.own, task=2).files()), np.ones((1, 6))).decision[
            0
        ]
        for name, trees in {"quick": order, "generic": [*order, deep], "asks": [*order, asks], "slow": local}.items()
    }
    # Beyond 2 ** 24 a float32 is even. QuickScorer starts with the initial prediction, and generic trees add float64.
    assert scores == {"quick": 2.0**24 + 4, "generic": 2.0**24, "asks": 2.0**24, "slow": 2.0**24 + 3}


REFUSED = {
    "oblique": (
        Folder([column("x", NUMBER)], [((0, 7, message(f1=[0, 1], f2=[0.5, 0.5], f3=1.0), 0), 1.0, 2.0)], own=BOOSTED),
        "m.zip, nodes-00000-of-00001, node 0; an oblique condition",
    ),
    "vectors": (Folder([column("x", 11)], [((0, 8, b"", 0), 1.0, 2.0)], own=BOOSTED), "sequences of vectors"),
    "sets": (Folder([column("x", SET)], [(contains(0, 1), 1.0, 2.0)], own=BOOSTED), "'x'; a set of categories"),
    "uplift": (Folder(COLUMNS, EACH, "RANDOM_FOREST", task=4), "header.pb; uplift"),
    "survival": (Folder(COLUMNS, EACH, task=7), "header.pb; survival"),
    "kind": (Folder(COLUMNS, EACH, "MULTITASKER"), "MULTITASKER; RANDOM_FOREST"),
    "loss": (Folder(COLUMNS, EACH, task=2, own=message(f3=10, f4=0.0)), "loss 10"),
    "form": (Folder(COLUMNS, EACH, own=BOOSTED + message(f7="PROTO")), "'PROTO'"),
    "one example": (MODELS["isolation"].__class__(**vars(MODELS["isolation"]) | {"own": message(f4=1)}), "one example"),
    "no trees": (Folder(COLUMNS, [], own=BOOSTED), "0 trees"),
    "more nodes": (Folder(COLUMNS, [1.0], own=BOOSTED + message(f2=0)), "0 trees"),
    "input": (Folder(COLUMNS, EACH, own=BOOSTED, inputs=[1, 2, 3, 4, 5]), "column 0"),
    "boundary": (Folder(COLUMNS, [((3, 6, message(f1=4), 0), 1.0, 2.0)], own=BOOSTED), "boundary 4; 'binned'"),
    "category": (Folder(COLUMNS, [(contains(1, 5), 1.0, 2.0)], own=BOOSTED), "category 5; 'colour'"),
    "leaf": (Folder(COLUMNS, EACH, own=BOOSTED, leaf=lambda value: b""), "a leaf without a value"),
    "several fields": (
        Folder(COLUMNS, [((0, 2, b"", 0), 1.0, 2.0)], own=BOOSTED, leaf=lambda v: number_leaf(v) + message(f3=b"")),
        "fields []",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.each_case
def test_what_is_not_read_is_named(name):
    folder, parts = REFUSED[name]
    assert_refused(read_bytes, archived(folder.files()), parts, "m.zip")


def test_folders_that_are_no_single_model(tmp_path):
    MODELS["boosted"].write(tmp_path / "saved" / "assets", prefix="ab")
    (tmp_path / "saved" / "saved_model.pb").touch()
    with pytest.raises(ModelError, match=r"a YDF model.*the folder assets"):
        forestc.load(tmp_path / "saved")
    assert len(forestc.load(tmp_path / "saved" / "assets").trees) == 8
    MODELS["forest"].write(tmp_path / "saved" / "assets", prefix="cd")
    with pytest.raises(ModelError, match=r"holds 2 models: abdata_spec\.pb, cddata_spec\.pb"):
        forestc.load(tmp_path / "saved" / "assets")
    for name in ("header.pb", "gradient_boosted_trees_header.pb", "nodes-00000-of-00001"):
        files = MODELS["boosted"].files()
        del files[name]
        assert_refused(lambda _, where, files=files: read(files, where), b"", f"has no {name}")


def record(node):
    return struct.pack("<I", len(node)) + node


def hostile():
    """Yields files of a model with one replaced, and what the error says."""
    whole = MODELS["boosted"].files()
    nodes, own = "nodes-00000-of-00001", "gradient_boosted_trees_header.pb"
    inner, leaf = record(message(f3=message(f2=0, f3=message(f2=message(f1=0.5))))), record(number_leaf(1.0))
    one = {own: message(f1=1, f2=1, f7="BLOB_SEQUENCE") + BOOSTED}
    yield (
        {nodes: b"BS" + bytes(6) + inner * (MAX_DEPTH + 1) + leaf * (MAX_DEPTH + 2), **one},
        f"deeper than {MAX_DEPTH}",
    )
    yield {nodes: b"BS" + bytes(6) + inner * 100, **one}, "ends within a tree"
    yield {nodes: whole[nodes] + leaf}, "more nodes"
    bomb = Folder(COLUMNS, [1.0], own=BOOSTED).files("BLOB_SEQUENCE_GZIP")
    yield bomb | {nodes: b"BS\1\0\1\0\0\0" + gzip.compress(bytes(1 << 28))}, "unpacks to more"
    yield bomb | {nodes: bomb[nodes][:-12]}, "gzip"
    for size in (5, 1 << 20, (1 << 32) - 1):
        yield {nodes: b"BS" + bytes(6) + struct.pack("<I", size) + b"\x1a\x01"}, "ends within a node"
    for count in (9, 1 << 40, -1):
        yield {own: message(f1=1, f2=count, f7="BLOB_SEQUENCE") + BOOSTED}, "tree"
        yield {own: message(f1=count, f2=8, f7="BLOB_SEQUENCE") + BOOSTED}, "nodes-" if count > 0 else "a tree"
    for size in (1 << 20, 1 << 60, -1):
        label = message(f1=CATEGORY, f2="label", f6=message(f2=size, f5=1))
        yield {"data_spec.pb": message(f1=[*COLUMNS, label])}, "label"
        yield {"data_spec.pb": message(f1=[*COLUMNS, message(f1=CATEGORY, f2="y", f6=message(f2=size))])}, "'y'"
        wide = message(f1=CATEGORY, f2="wide", f6=message(f2=size, f5=1))
        yield Folder([wide], [(contains(0, 1), 1.0, 2.0)], own=BOOSTED).files(), "'wide'"
    yield {"data_spec.pb": b"\x0a\x00" * (3 << 20)}, "more than 2,097,152 fields"
    yield {"data_spec.pb": b"\x0a" + b"\xff" * 12}, "a number; too long"
    yield {"data_spec.pb": b"\x0a" + varint(1 << 62)}, "ends within a field"
    yield {"header.pb": b"\x0b" * 100}, "begins no protobuf field"
    yield {"header.pb": message(f1="GRADIENT_BOOSTED_TREES", f2=1, f3=6, f5=varint(0) * (4 << 20))}, "inputs"
    yield {"header.pb": message(f1="GRADIENT_BOOSTED_TREES", f2=1, f3=99, f5=[0, 1])}, "label"
    yield {"header.pb": message(f1=b"\xff\x00" * 5000, f2=1)}, "kind"
    yield {"header.pb": message(f1=1)}, "field 1"


def test_hostile_files_have_one_clear_line():
    whole = MODELS["boosted"].files()
    for changes, parts in hostile():
        assert_refused(lambda _, where, changes=changes: read(whole | changes, where), b"", parts)
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (whole | {"header.pb": bytes(1 << 28)}).items():
            archive.writestr(name, data)
    assert_refused(read_bytes, stream.getvalue(), "unpacks to more", "m.zip")


@pytest.mark.parametrize("name", MODELS)
def test_damaged_files_are_refused_or_a_valid_forest(name):
    source, count, whole = random.Random(name), examples(300), 0
    for _ in range(count):
        form = source.choice(["BLOB_SEQUENCE", "BLOB_SEQUENCE_GZIP", "TFE_RECORDIO"])
        files = MODELS[name].files(form)
        chosen = source.choice([name for name in files if name != "done"])
        files[chosen] = mutated_bytes(files[chosen], source)
        whole += reads_whole(lambda _, where, files=files: read(files, where), b"")
    assert 0 < whole < count
    data = archived(MODELS[name].files())
    for _ in range(count // 10):
        reads_whole(read_bytes, mutated_bytes(data, source))
