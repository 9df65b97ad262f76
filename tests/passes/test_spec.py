from __future__ import annotations

import pytest

from forestc.errors import OptionError
from forestc.passes import PASSES, passes_from
from forestc.passes.base import Pass, parse_passes, print_pass
from forestc.passes.fit_leaves.fit_leaves import FitLeaves
from forestc.passes.guide import pass_guide
from forestc.passes.options import options_of
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.round_leaves import RoundLeaves
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
        [QuantizeInputs(input_bits=8), RoundLeaves(leaf_bits=4, scores=0.01), Simplify()],
        [QuantizeInputs(input="ordered", change=0.5, missing="never"), FitLeaves(1, 0.1)],
        [QuantizeInputs(formats={"a, b": "uint8", 'odd "name"}': "ap_fixed<12,8>"})],
    ],
)
def test_passes_print_and_parse(passes):
    text = ",".join(map(print_pass, passes))
    assert parse_passes(text, PASSES) == passes


def test_options_at_their_defaults_are_not_printed():
    assert print_pass(RoundLeaves()) == "round-leaves"
    assert print_pass(RoundLeaves(leaf_bits=4)) == "round-leaves{leaf_bits=4}"


@pytest.mark.parametrize("name", PASSES)
def test_every_option_of_every_pass_prints_and_parses(name):
    """Gives each option a value other than its default: one that a search tries, a name, or a number in the range."""
    for option in options_of(PASSES[name]):
        values = [True, False, *option.names, 1, 2, 0.5, *getattr(option.space, "values", ())]
        made = []
        for value in values:
            if option.values and option.allows(value) and value != option.default:
                try:
                    made.append(PASSES[name](**{option.name: value}))
                except OptionError:  # The option needs another one.
                    continue
        assert not option.values or made or option.name in ("tolerance", "noise", "scores"), option.name
        for step in made:
            assert parse_passes(print_pass(step), PASSES) == [step]


@pytest.mark.parametrize("name", PASSES)
def test_the_guide_says_what_each_option_may_be(name):
    for option, shown in zip(options_of(PASSES[name]), pass_guide(PASSES, name)["options"], strict=True):
        assert shown["meaning"] and shown["default"] == option.default and shown["values"] == option.values
        assert option.allows(option.default)


def test_the_seed_of_the_run_is_that_of_passes_without_their_own():
    text = "simplify,prune-trees,quantize-inputs,round-leaves,prune-splits{seed=3},extract-rules"
    assert print_all(passes_from(text, seed=5)) == (
        "simplify,prune-trees{seed=5},quantize-inputs,round-leaves,prune-splits{seed=3},extract-rules{seed=5}"
    )
    assert print_all(passes_from(text)) == text


def print_all(passes):
    return ",".join(map(print_pass, passes))


def test_what_a_list_leaves_out_is_added():
    for text, expected in (
        ("none", "quantize-inputs,round-leaves"),
        ("simplify", "simplify,quantize-inputs,round-leaves"),
        ("quantize-inputs{input_bits=8},simplify", "quantize-inputs{input_bits=8},round-leaves,simplify"),
        ("simplify,fit-leaves,simplify", "simplify,quantize-inputs,fit-leaves,simplify"),
        ("round-leaves{exact=true}", "quantize-inputs{exact=true},round-leaves{exact=true}"),
    ):
        assert ",".join(map(print_pass, passes_from(text))) == expected
    assert passes_from("round-leaves", 0.1)[1] == RoundLeaves(scores=0.1)
    with pytest.raises(OptionError, match="keeps no scores"):
        passes_from("fit-leaves", 0.1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "simplfy",
            "unknown pass 'simplfy'; did you mean 'simplify'? known: simplify, share-thresholds, quanti",
        ),
        ("round-leaves{bits=3}", "pass round-leaves: has no option 'bits'; known: leaf_bits, change"),
        ("round-leaves{leaf_bits=3", "the options of round-leaves have no end"),
        ("round-leaves{leaf_bits}", "can't read the options of round-leaves"),
        ("round-leaves{leaf_bits=3,leaf_bits=4}", "option 'leaf_bits' is given twice"),
        ("quantize-inputs{formats={}", "have no end"),
        ("quantize-inputs{formats={x}}", "not readable JSON"),
        ("round-leaves{leaf_bits=99}", "leaf_bits=99; use auto or 1 to 32"),
        ("round-leaves{leaf_bits=few}", "leaf_bits=few"),
        ("quantize-inputs{input=best}", "input=best; use auto, fixed or ordered"),
        ("quantize-inputs{missing=no}", "missing=no"),
        ("quantize-inputs{change=2}", "change=2"),
        ("quantize-inputs{tolerance=2}", "tolerance=2"),
        ("simplify{} quantize", "can't read the passes at ' quantize'"),
    ],
)
def test_misspelt_passes_are_refused_with_what_is_known(text, message):
    with pytest.raises(OptionError) as caught:
        passes_from(text)
    assert message in str(caught.value)
    assert caught.value.exit_status == 2
