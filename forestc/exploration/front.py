"""Writes the trials of a study as tables: front.csv, study.parquet and the figures of `--json`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from forestc.exploration.choice import choice, counted, shown
from forestc.exploration.study import Study, Trial

FRONT, ALL = "front.csv", "study.parquet"


def equals(study: Study) -> dict[int, int]:
    """Returns {trial's number: number of another trial} for the front. The other trial loses less than a standard error
    of accuracy and is no worse in other goals."""
    equal: dict[int, int] = {}
    others = [goal for goal in study.goals if goal.figure != "accuracy"]

    def costs(trial: Trial) -> list[float]:
        return [goal.cost(trial.figure(goal.figure)) for goal in others]

    numbered = {trial.number: trial for trial in study.front}
    for trial in study.front:
        for other in study.front:
            if trial is other or trial.validation is None or other.validation is None:
                continue
            error = max(trial.validation.standard_error, other.validation.standard_error)
            near = 0 <= trial.validation.value - other.validation.value < error
            smaller = all(a >= b for a, b in zip(costs(trial), costs(other), strict=True))
            best = equal.get(trial.number)
            if near and smaller and (best is None or costs(other) < costs(numbered[best])):
                equal[trial.number] = other.number
    return equal


def write_front(study: Study) -> None:
    """Writes front.csv (the front and the recommended design; no times, so that it repeats) and study.parquet (all
    trials). Columns of scores are named by what they are, such as r_squared."""
    rows = _named(study, _shown_rows(study))
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if key != "seconds"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (study.folder / FRONT).write_text(text.getvalue(), encoding="utf-8")
    rows = _named(study, [_row(study, trial) for trial in study.trials])
    names = list(dict.fromkeys(key for row in rows for key in row))
    table = {name: _column([row.get(name) for row in rows]) for name in names}
    pyarrow.parquet.write_table(pa.table(table), study.folder / ALL)


def _named(study: Study, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    measure = study.measure.lower().replace(" ", "_")
    names = {f"{of}accuracy{error}": f"{of}{measure}{error}" for of in ("", "test_") for error in ("", "_se")}
    return [{names.get(key, key): value for key, value in row.items()} for row in rows]


def _shown_rows(study: Study) -> list[dict[str, Any]]:
    chosen = choice(study)
    taken = None if chosen is None else chosen.recommended
    return [_row(study, trial) | {"recommended": trial is taken} for trial in shown(study)]


def _row(study: Study, trial: Trial) -> dict[str, Any]:
    both_known = study.room is not None and trial.figure("lut") is not None
    return trial.row() | ({"fits": study.fits(trial)} if both_known else {})


def _column(values: list[Any]) -> pa.Array:
    """Returns an Arrow array. Integers mixed with floats become floats; other mixed types become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) == 2:
        return pa.array([None if value is None else float(value) for value in values])
    if len(kinds) > 1:
        return pa.array([None if value is None else str(value) for value in values])
    return pa.array(values)


def summary(study: Study) -> dict[str, Any]:
    """Returns the figures of `forestc explore --json`."""
    same = equals(study)
    states: Mapping[str, int] = {
        state: sum(trial.state == state for trial in study.trials) for state in ("complete", "failed", "running")
    }
    front = [{"fits": None} | row | {"equal_to": same.get(row["trial"])} for row in _shown_rows(study)]
    chosen = choice(study)
    taken = chosen and {
        "trial": chosen.taken.number, "fits": chosen.fits, "within": chosen.within,
        "counted_lost": counted(chosen.taken, chosen.best),
    }  # fmt: skip
    names = "tolerance device cpu seed validation corrections notes stopped unfinished finish command"
    record = {name: study.asked.get(name) for name in names.split()}
    failure = next((trial.reason or "unknown" for trial in study.trials if trial.state == "failed"), None)
    record["first_failure"] = failure
    return {"out": str(study.folder), "trials": dict(states), "front": front, "taken": taken, **record}
