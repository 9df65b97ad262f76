"""Tests links in fixed point: their bounds hold for scores of any size, and are not far above the real error."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from thinned import only

from forestc.backends.c.header import emit
from forestc.backends.c.options import COptions
from forestc.backends.c.types import score_type
from forestc.backends.c.values import shown
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Aggregate, Decision, Feature, Link
from forestc.forest.numbers import Fixed
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler, sanitizers

LEAVES = 400


def chain(link, scale, outputs, seed=0, decided=True, largest=10_000):
    """Makes a forest of one tree that is a chain: word w reaches leaf w. Its scores are small, large and in between."""
    random = np.random.default_rng(seed)
    n = LEAVES - 1
    left = [i for k in range(n) for i in (2 * k + 1, -1)] + [-1]
    right = [i for k in range(n) for i in (2 * k + 2, -1)] + [-1]
    # Inner node k sends word k to its leaf.
    left, right = right, left
    threshold = [v for k in range(n) for v in (k + 1, 0)] + [0]
    values = random.choice([-1, 1], (LEAVES, outputs)) * np.exp(random.uniform(0, np.log(largest), (LEAVES, outputs)))
    values = values.astype(int)
    if link.kind == "identity" and decided:
        values = np.abs(values)
    tree = make_tree(
        where="chain", feature=[v for _ in range(n) for v in (0, -1)] + [-1], threshold=threshold, left=left,
        right=right, values=values, outputs=range(outputs), quantized=True,
    )  # fmt: skip
    threshold = round(0.5 / scale) if link.kind == "identity" else 0
    decision = Decision("none") if not decided else Decision("argmax" if outputs > 1 else "threshold", threshold)
    return make_forest(
        name="chain", features=[Feature("a", Fixed(12), 0)], columns=1, trees=[tree], n_outputs=outputs,
        bias=[0] * outputs, aggregate=Aggregate(), link=link, decision=decision, scale=scale,
        classes=range(max(2, outputs)) if decided else (),
    )  # fmt: skip


def values_of_words(forest, kind, folder):
    """Runs the header on every word; returns its values."""
    made = shown(forest, "chain", kind)
    ((name, text),) = emit(forest, COptions(c_values=kind)).items()
    (folder / name).write_text(text)
    call = "out[0] = chain_value(&x);" if made.single else "chain_values(&x, out);"
    call = "chain_probabilities(&x, out);" if made.probabilities else call
    (folder / "main.c").write_text(
        f'''#include <stdio.h>
#include "{name}"
int main(void) {{
    chain_word x; {made.kind} out[{made.count}];
    for (x = 0; x < {LEAVES}; x++) {{
        {call}
        fwrite(out, sizeof out[0], {made.count}, stdout);
    }}
    return 0;
}}
'''
    )
    flags = [*STRICT, *sanitizers(c_compiler())]
    subprocess.run([c_compiler(), *flags, "main.c", "-o", "m"], cwd=folder, check=True)
    cxx = [flag for flag in STRICT if not flag.startswith("-std")]
    subprocess.run([cxx_compiler(), "-std=c++14", *cxx, "-x", "c++", "-fsyntax-only", "main.c"], cwd=folder, check=True)
    out = subprocess.run([folder / "m"], capture_output=True, check=True).stdout
    kinds = np.dtype("f4" if kind == "float" else made.kind.removesuffix("_t"))
    return made, np.frombuffer(out, kinds).reshape(LEAVES, made.count).astype(np.float64) * made.step


CASES = [
    (Link("sigmoid"), 0.001, 1, True, 10_000),
    (Link("sigmoid", 2.0), 0.7, 1, True, 100),
    (Link("logistic", -1.0), 1e-7, 1, True, 1 << 28),
    (Link("sigmoid"), 0.01, 4, True, 1000),
    (Link("softmax"), 0.003, 3, True, 10_000),
    (Link("softmax", 0.5), 3e-9, 10, True, 1 << 31),
    (Link("softmax"), 40.0, 2, True, 300),
    (Link("identity"), 1 / 9999, 1, True, 9999),
    (Link("identity"), 1 / (1 << 30), 3, True, 1 << 30),
    (Link("identity"), 0.37, 1, False, 1 << 20),
    (Link("identity", 1.0, 1e5), 1e-5, 2, False, 1 << 20),
    (Link("exp"), 0.001, 1, False, 10_000),
    (Link("exp", 2.0, 0.5), 1e-6, 2, False, 1 << 22),
    (Link("exp", -1.0), 0.002, 1, False, 4000),
    (Link("exp2"), 0.001, 1, False, 10_000),
    (Link("isolation", 1.0, -0.5), 0.001, 1, False, 3000),
]


@pytest.mark.parametrize(
    ("case", "kind"),
    only(
        [(case, kind) for case in range(len(CASES)) for kind in ("q15", "q31", "float")],
        *(3 * case + case % 3 for case in range(len(CASES))),
    ),
)
def test_every_link_keeps_its_bound(case, kind, tmp_path):
    link, scale, outputs, decided, largest = CASES[case]
    forest = chain(link, scale, outputs, case, decided, largest)
    made, got = values_of_words(forest, kind, tmp_path)
    assert made.probabilities == decided
    exact = evaluate_words(forest, np.arange(LEAVES)[:, np.newaxis]).values
    if decided and outputs == 1:
        exact = np.concatenate([1 - exact, exact], axis=1)
    error = np.abs(got - exact).max()
    assert error <= made.bound
    if kind != "float" and link.kind not in ("softmax", "identity"):  # Other links may be exact on some scores.
        assert made.bound <= 60 * error
    if decided:
        assert got.min() >= 0 and got.max() <= 1
        assert made.bound < {"q15": 2.0**-15, "q31": 2.0**-25, "float": 2.0**-22}[kind]
    text = (tmp_path / "chain.h").read_text()
    assert f"by at most {made.bound}." in text
    if kind != "float":
        assert ("float " in text.replace("const float ", "").split("chain_tree_0")[1]) is False


def test_links_without_a_function_give_scores_alone():
    for link in (Link("softplus"), Link("square"), Link("probit"), Link("sigmoid", 1.0, 0.5), Link("exp", 1e3)):
        assert shown(chain(link, 0.1, 1, decided=False), "chain", "q31") is None
    assert shown(chain(Link("softmax", -1.0), 0.1, 3), "chain", "q31") is None
    assert shown(chain(Link("identity"), 0.1, 1), "chain", "q31") is None  # A margin is no probability.
    assert score_type(chain(Link(), 0.1, 1)) == "int16_t"


def test_scores_are_as_narrow_as_every_partial_sum_allows():
    def kind(bias, *leaves):
        trees = [
            make_tree(
                where="t", feature=[0, -1, -1], threshold=[3, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
                values=np.array(own)[:, None], outputs=[0], quantized=True,
            )
            for own in leaves
        ]  # fmt: skip
        forest = make_forest(
            name="f", features=[Feature("a", Fixed(4), 0)], columns=1, trees=trees, n_outputs=1, bias=[bias],
            aggregate=Aggregate(), link=Link(), decision=Decision("none"), scale=1.0, classes=(),
        )  # fmt: skip
        return score_type(forest)

    assert kind(0, (0, 1), (-1, 2)) == "int8_t"
    assert kind(7, (60, 0), (60, 0)) == "int8_t" and kind(8, (60, 0), (60, 0)) == "int16_t"
    assert kind(-8, (-60, 0), (-60, 0)) == "int8_t" and kind(-9, (-60, 0), (-60, 0)) == "int16_t"
    assert kind(0, (100, 120), (-120, -100)) == "int8_t"  # Sums lie within -20..20, but reach 120 on the way.
    assert kind(20, (100, 120), (-120, -100)) == "int16_t"  # The sum reaches 140 on the way.
    assert kind(0, (1 << 30, 0), (1 << 30, 5)) == "int64_t"
