"""Tests that the smallest candidates of a search are measured, and that the measured sizes choose."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.passes.scorer import Loss
from forestc.search.choice import Evidence
from forestc.search.finalists import MEASURED, NEARLY, measured_finalists

GOOD = Loss(0.9, 0.0, 0.0, 100, "accuracy")
CHOSEN = Evidence(Loss(0.8, 0.1, 0.0, 100, "accuracy"), 0.01)


@dataclass(frozen=True)
class _Trial:
    forest: str
    size: float
    family: str = "family"
    loss: Loss = GOOD

    @property
    def passes(self):
        return (self.forest,)


@dataclass(frozen=True)
class _Plan:
    finalists: tuple[_Trial, ...]
    chosen: _Trial | None
    passes: tuple[str, ...] = ()
    evidence: Evidence | None = CHOSEN
    curve: tuple[_Trial, ...] = ()


def test_measured_sizes_choose_among_those_that_are_nearly_as_small():
    trials = (
        _Trial("chosen", 100), _Trial("near", 120), _Trial("far", 100 * NEARLY + 1),
        _Trial("nearer", 110), _Trial("fourth", 125),
    )  # fmt: skip
    sizes = {"chosen": 90, "near": 70, "nearer": 80, "fourth": 1, "far": 1}
    seen = []

    def size_of(forest):
        seen.append(forest)
        return sizes[forest]

    plan = measured_finalists(_Plan(trials, trials[0]), size_of, lambda _: None)
    assert seen == ["chosen", "nearer", "near"] and len(seen) == MEASURED
    assert plan.chosen.forest == "near" and plan.passes == ("near",)
    assert plan.evidence == Evidence(plan.chosen.loss, 0.01)
    alone = _Plan(trials[:1], trials[0])
    assert measured_finalists(alone, size_of, lambda _: None) is alone


def test_finalists_of_c_are_compiled_for_the_processor(tmp_path, monkeypatch, need_tool):
    for name in ("arm-none-eabi-gcc", "unicorn", "elftools"):
        need_tool(name)
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(10, max_depth=5, random_state=0).fit(X[:300], y[:300])
    monkeypatch.setattr("forestc.search.finalists.NEARLY", 100.0)
    said: list[str] = []
    forestc.compile(
        model, X[:300], tmp_path / "d", label=y[:300], held_out=(X[300:], y[300:]), level=2, targets="c",
        tolerance=0.03, cpu="cortex-m4", progress=said.append,
    )  # fmt: skip
    assert sum(text.startswith("measuring ") and " designs: " in text for text in said) in range(2, MEASURED + 1)
