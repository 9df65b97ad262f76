"""Large neighbourhood search for covers: some columns leave the best cover, and new ones are priced for the open rows.

The columns that the relaxation asks for need not be those of the best cover: on breast cancer (WDBC, budget 10) all
that column generation finds in 20 seconds hold no cover of a loss below 16, and this search finds 13 in two. The dual
of an open row is its penalty here, that of a covered row 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from forestc.algorithms.covers.covers import Column, Cover, Pricer, Selection

MOST_DROPPED = 3
MOST_IN_VAIN = 100  # tries in a row that better nothing, after which the search ends
PRICES = (0.0, 0.5, 1.0)  # shares of the relaxation's price of the budget


def refill(
    cover: Cover,
    pricer: Pricer,
    selection: Selection,
    columns: Sequence[Column],
    add: Callable[[Column], int],
    price: float,
    *,
    tries: int,
    until: float,
    random: np.random.Generator,
) -> None:
    """Betters `selection.best` by so many tries, until a time (of time.monotonic()), or until many tries were in vain.

    columns: those that the selection chooses from; add puts one more there and returns its place.
    """
    vain = 0
    for _ in range(tries):
        if time.monotonic() > until or vain == MOST_IN_VAIN:
            return
        before = selection.best
        chosen = random.permutation(np.array(selection.best[1], dtype=np.int64))
        kept = chosen[random.integers(0, min(MOST_DROPPED, len(chosen)) + 1) :].tolist()
        asked = price * float(random.choice(PRICES))
        open_ = cover.penalty.copy()
        room = cover.budget
        for place in kept:
            open_[columns[place].rows] = 0.0
            room -= columns[place].size
        while room >= cover.least_size:
            found = [column for column in pricer.fitting(open_, asked, room) if column.size <= room]
            gains = [float(open_[column.rows].sum()) - column.cost - asked * column.size for column in found]
            if not found or max(gains) <= 0:
                break
            best = found[int(np.argmax(gains))]
            kept.append(add(best))
            open_[best.rows] = 0.0
            room -= best.size
        selection.offer(kept)
        vain = vain + 1 if selection.best == before else 0
