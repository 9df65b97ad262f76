"""Tests the parts of the former pass quantize under their own names."""

from __future__ import annotations

import pytest
from models import trained

import forestc
from forestc.cli import main
from forestc.errors import OptionError
from forestc.exploration.space import passes_of
from forestc.passes import passes_from, renamed_passes
from forestc.passes.base import print_pass

NOW = {
    "quantize": "quantize-inputs,round-leaves",
    "simplify,quantize{input_bits=8,leaf_bits=auto}": "simplify,quantize-inputs{input_bits=8},round-leaves",
    "quantize{change=auto,scores=0.01}": "quantize-inputs{change=auto},round-leaves{change=auto,scores=0.01}",
    "quantize{exact=true}": "quantize-inputs{exact=true},round-leaves{exact=true}",
    "quantize{input=ordered,leaf_bits=4}": "quantize-inputs{input=ordered},round-leaves{leaf_bits=4}",
    "quantize{missing=never}": "quantize-inputs{missing=never},round-leaves",
    'quantize{formats={"a":"uint8"},cost=null}': 'quantize-inputs{formats={"a":"uint8"}},round-leaves',
    "quantize{cost=flash,tolerance=0.02}": "quantize-inputs{tolerance=0.02,cost=flash},round-leaves{tolerance=0.02}",
    "quantize{fit=true,noise=0}": "quantize-inputs,fit-leaves",
    "quantize{fit=true,leaf_bits=2}": "quantize-inputs,fit-leaves{leaf_bits=2}",
    "quantize{fit=true,tolerance=0.1}": "quantize-inputs{tolerance=0.1},fit-leaves{tolerance=0.1}",
    # The promise of fitted leaves also covers narrower words.
    "quantize{fit=true,input_bits=6}": "quantize-inputs{input_bits=6,tolerance=0.01},fit-leaves",
}


@pytest.mark.parametrize(("text", "now"), NOW.items())
def test_every_option_of_quantize_is_understood_with_a_note(text, now):
    assert ",".join(map(print_pass, passes_from(text))) == now
    (note,) = renamed_passes(text)
    assert note.startswith("quantize") and " is now written quantize-inputs" in note
    assert passes_from(now) == passes_from(text) and renamed_passes(now) == ()


@pytest.mark.parametrize(("text", "said"), [
    ("quantize{fit=true,noise=0.1}", "noise is no longer an option: on twelve data sets it gained nothing; remove it"),
    ("quantize{bits=3}", "quantize has no option 'bits'; known: input, input_bits"),
    ("quantize{fit=1}", "quantize: fit=1; use true or false"),
    ("quantize{fit=true,scores=0.1}", "can't keep scores; remove fit or scores"),
    ("quantize{cost=flash,scores=0.1}", "cost rounds thresholds, which scores do not allow"),
    ("quantize{fit=true,exact=true}", "exact=true uses no rows, but fit does"),
    ("round-leaves{exact=true},quantize-inputs", "needs words that are exact; write quantize-inputs{exact=true}"),
])  # fmt: skip
def test_what_is_no_longer_possible_is_refused_by_name(text, said):
    with pytest.raises(OptionError) as caught:
        passes_from(text)
    assert said in str(caught.value)


def test_compile_says_the_new_names(tmp_path):
    model, X, _ = trained("xgboost-binary")
    done = forestc.compile(model, X, tmp_path / "d", passes="simplify,quantize{leaf_bits=8},simplify", targets="c")
    assert "quantize{leaf_bits=8} is now written quantize-inputs,round-leaves{leaf_bits=8}" in done.figures["notes"]
    assert done.design.manifest["passes"] == ["simplify", "quantize-inputs", "round-leaves{leaf_bits=8}", "simplify"]


def test_the_guide_of_quantize_names_its_successors(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["passes", "quantize"])
    assert "quantize became quantize-inputs, round-leaves, fit-leaves" in " ".join(capsys.readouterr().err.split())


def test_trials_of_earlier_studies_name_the_passes_of_today():
    asked = type("Asked", (), {"device": None, "cpu": None})()
    former = {"shrink": "none", "quantize.input_bits": 6, "quantize.leaf_bits": 3}
    for fit, now in ((True, "fit-leaves"), (False, "round-leaves")):
        passes = passes_of({**former, "quantize.fit": fit, "quantize.noise": 0.0}, asked)
        assert [print_pass(step) for step in passes][2:4] == [
            "quantize-inputs{input_bits=6,tolerance=inf}", f"{now}{{leaf_bits=3,tolerance=inf}}",
        ]  # fmt: skip
