"""Tests the prices that passes minimize, by name."""

from __future__ import annotations

import re

import pytest

from forestc.costs.devices import FAMILIES, DeviceFamily
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import OptionError
from forestc.passes import PASSES, passes_from
from forestc.passes.base import print_pass
from forestc.passes.guide import pass_guide
from forestc.passes.prune_splits.prune_splits import PruneSplits


def test_prices_by_name():
    assert PruneSplits().cost == DEFAULT_COST == "lut6" and print_pass(PruneSplits(cost="ecp5")).endswith("{cost=ecp5}")
    meaning = {option["name"]: option["meaning"] for option in pass_guide(PASSES, "prune-splits")["options"]}["cost"]
    assert all(re.search(rf"\b{name}\b", meaning) for name in FAMILIES)
    # A LUT of six inputs compares six bits; each further one compares five more with the result so far.
    plain = prices("lut6")
    assert [plain.comparison(bits) for bits in (-1, 0, 1, 2, 3, 4, 6, 7, 11, 12, 24)] == [
        0.0, 0.0, 0.05, 0.4, 0.7, 1.0, 1.0, 2.0, 2.0, 3.0, 5.0,
    ]  # fmt: skip
    assert (plain.split, plain.tree) == (0.1, 3.0)
    for cost in FAMILIES:
        own = prices(cost)
        compared = [own.comparison(bits) for bits in range(32)]
        assert compared == sorted(compared) and 0 == compared[0] < compared[2] < compared[-1]
        assert 0 < own.split < own.tree
    assert prices("ice40").comparison(16) > plain.comparison(16)  # narrower LUTs


def test_tables_of_more_conditions_than_a_lut_has_inputs():
    assert [prices("lut6").table(n) for n in range(7)] == [0.0] * 7
    for cost in ("ecp5", "ice40"):
        own = prices(cost)
        assert [own.table(n) for n in range(7)] == pytest.approx([0] * 5 + [1 + own.split, 3 * (1 + own.split)])
    processor = prices("flash")
    assert processor.table(3) == pytest.approx(7 * processor.split)


def test_unknown_costs(monkeypatch):
    for spec, named in (("xc7", "'xc7'"), ("3", "3"), ('{"a":1}', "{'a': 1}")):
        with pytest.raises(OptionError, match=f"unknown cost {named}; known: lut6, xcup, ecp5, ice40"):
            passes_from(f"prune-splits{{cost={spec}}}")
    monkeypatch.setitem(FAMILIES, "max10", DeviceFamily("max10", "lut6", ("synth_intel -top {top}",)))
    with pytest.raises(OptionError, match="unknown cost 'max10'; known: lut6, xcup, ecp5, ice40"):
        prices("max10")  # This family was never fitted.
