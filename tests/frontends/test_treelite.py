"""Tests treelite checkpoints: they are read like live models, and damage is an error."""

from __future__ import annotations

import random

import numpy as np
import pytest
from contract.kinds_treelite import KINDS

from forestc import load
from forestc.errors import ModelError


def test_what_is_no_checkpoint_is_refused(tmp_path):
    for data in (b"", b"x", b"\0" * 100, bytes(range(256)) * 4):
        (tmp_path / "forest.tl").write_bytes(data)
        with pytest.raises(ModelError, match="not a readable treelite checkpoint"):
            load(tmp_path / "forest.tl")


def test_a_cut_off_checkpoint_is_refused(tmp_path):
    data = KINDS["treelite-by-hand"]().source.serialize_bytes()
    source = random.Random(0)
    for end in sorted(source.sample(range(len(data)), 4)):
        (tmp_path / "forest.tl").write_bytes(data[:end])
        with pytest.raises(ModelError):
            load(tmp_path / "forest.tl")


def test_leaves_that_are_not_finite_are_refused():
    model = KINDS["treelite-by-hand"]().source
    tree = model.get_tree_accessor(0)
    tree.set_field("leaf_value", np.full_like(tree.get_field("leaf_value"), np.inf))
    with pytest.raises(ModelError, match="a leaf value is not finite"):
        load(model)
