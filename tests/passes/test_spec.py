from __future__ import annotations

import pytest
from forestc.passes.quantize.quantize import Quantize

from forestc.errors import OptionError
from forestc.passes import PASSES, passes_from
from forestc.passes.base import Pass, parse_passes, print_pass
from forestc.passes.simplify import Simplify


def test_the_table_names_every_pass_as_it_names_itself():
    for name, kind in PASSES.items():
        assert kind.name == name
        assert isinstance(kind(), Pass)
        assert kind.__module__.rsplit(".", 1)[1].replace("_", "-") == name


@pytest.mark.parametrize(
    "passes",
    [
        [Simplify()],
        [Quantize(input_bits=8, leaf_bits=4), Simplify()],
        [Quantize(input="ordered", change=0.5, missing="never")],
        [Quantize(formats={"a, b": "uint8", 'odd "name"}': "fixed<12,4>"})],
    ],
)
def test_passes_print_and_parse(passes):
    text = ",".join(map(print_pass, passes))
    assert parse_passes(text, PASSES) == passes


def test_options_at_their_defaults_are_not_printed():
    assert print_pass(Quantize()) == "quantize"
    assert print_pass(Quantize(leaf_bits=4)) == "quantize{leaf_bits=4}"


def test_what_a_list_leaves_out_is_added():
    assert [p.name for p in passes_from("none")] == ["quantize"]
    assert [p.name for p in passes_from("simplify")] == ["simplify", "quantize"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("simplfy", "unknown pass 'simplfy'; did you mean 'simplify'? known: simplify, share-thresholds, quantize"),
        ("quantize{bits=3}", "quantize has no option 'bits'; known: input, input_bits"),
        ("quantize{leaf_bits=3", "the options of quantize have no end"),
        ("quantize{leaf_bits}", "can't read the options of quantize"),
        ("quantize{leaf_bits=3,leaf_bits=4}", "option 'leaf_bits' is given twice"),
        ("quantize{formats={}", "have no end"),
        ("quantize{formats={x}}", "not readable JSON"),
        ("quantize{leaf_bits=99}", "leaf_bits=99; use auto or 1 to 32"),
        ("quantize{leaf_bits=few}", "leaf_bits=few"),
        ("quantize{input=best}", "input=best; use auto, fixed or ordered"),
        ("quantize{missing=no}", "missing=no"),
        ("quantize{change=2}", "change=2"),
        ("quantize{tolerance=2}", "tolerance=2"),
        ("simplify{} quantize", "can't read the passes at ' quantize'"),
    ],
)
def test_misspelt_passes_are_refused_with_what_is_known(text, message):
    with pytest.raises(OptionError) as caught:
        passes_from(text)
    assert message in str(caught.value)
    assert caught.value.exit_status == 2
