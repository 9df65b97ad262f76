"""Tests mutated choices: always valid, never the same, with numbers near the previous ones."""

from __future__ import annotations

import numpy as np

from forestc.exploration.mutation import mutated
from forestc.fields.parameters import Choice, Real, Whole, used

SPACE = (
    Choice("shrink", ("some", "none")),
    Real("price", 0.02, 30.0, log=True, when={"shrink": ("some",)}),
    Whole("bits", 1, 8),
    Whole("size", 4, 64, log=True),
    Choice("copies", (0, 2, 8), when={"shrink": ("some",)}),
    Choice("mix", (0.05, 0.1), when={"copies": (2, 8)}),
    Choice("only", (1,)),
)


def test_what_is_chosen_is_valid_and_only_what_is_in_use():
    random = np.random.default_rng(0)
    chosen = {"shrink": "some", "price": 30.0, "bits": 1, "size": 4, "copies": 2, "mix": 0.1, "only": 1, "level": 3}
    seen = set()
    for _ in range(500):
        chosen = mutated(SPACE, chosen, random)
        assert list(chosen) == [one.name for one in SPACE if used(one, chosen)]
        for one in SPACE:
            if one.name in chosen:
                value = chosen[one.name]
                assert value in one.values if isinstance(one, Choice) else one.low <= value <= one.high
        assert type(chosen["bits"]) is type(chosen["size"]) is int
        seen.add((chosen["shrink"], chosen["bits"], chosen.get("copies")))
    assert len(seen) > 20


def test_numbers_move_a_little_and_most_options_stay():
    random = np.random.default_rng(0)
    before = {"shrink": "some", "price": 1.0, "bits": 4, "size": 16, "copies": 0, "only": 1}
    made = [mutated(SPACE, before, random) for _ in range(300)]
    prices = np.array([one["price"] for one in made if one["shrink"] == "some"])
    assert 0.3 < (prices == 1.0).mean() < 0.95 and np.median(prices[prices != 1.0]) < 3
    assert np.mean([sum(one.get(name) != value for name, value in before.items()) for one in made]) < 3
    assert sum(one["shrink"] == "some" for one in made) > 150
