"""Words the recommendation of a study in a few sentences: a design, its savings, and the alternatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from forestc.exploration.choice import Recommendation, against_model, choice, counted
from forestc.exploration.goals import FIGURES
from forestc.exploration.study import Study, Trial

Words: TypeAlias = tuple[str | Trial, ...]  # a trial stands for its number, which a page may make a link

MODEL_AS_IT_IS = "the model as it is (-O1)"
WITHOUT_PRUNING = "a model without pruning (-O1)"  # names what designs are compared with if the study trains models


@dataclass(frozen=True)
class Advice:
    """The advice on a study, as sentences."""

    first: tuple[Words, ...]  # sentences on the recommended design
    beside: tuple[Words, ...]  # sentences on the next smaller and the next more accurate design


def answer(study: Study) -> Advice | None:
    """Returns the advice on a study; None if it has no front or no accuracies."""
    chosen = choice(study)
    if chosen is None:
        return None
    luts, first = chosen.taken.figure("lut"), list[Words]()
    if not chosen.fits:
        first.append((f"No design that was tried fits {study.asked.get('device')} ({study.room:,} LUTs).",))
    first.append(_of(chosen, _head(study, chosen), chosen.taken))
    if chosen.fits and study.room is not None and luts is not None:
        about = "about " if chosen.taken.known_by("lut") == "estimate" else ""
        first.append((f"It fits {study.asked['device']}: {about}{luts:,.0f} of {study.room:,} LUTs.",))
    beside = [("Next smaller: ", chosen.smaller), ("Next more accurate: ", chosen.better)]
    return Advice(
        (*first, *_compared(study, chosen)),
        tuple(_of(chosen, head, trial) for head, trial in beside if trial is not None),
    )


def _head(study: Study, chosen: Recommendation) -> str:
    """Returns the beginning of a sentence that recommends a design: by which rule it was chosen."""
    which = "Smallest" if not chosen.size.maximize else f"Highest {chosen.size.figure.removesuffix('_mhz')}"
    tolerance = study.asked.get("tolerance")
    if not chosen.fits:
        return "The smallest: "
    if tolerance is None and not chosen.within:
        return f"No design is within a standard error of the model's {study.measure}. The one that loses least: "
    if tolerance is None:
        of = f"the model's {study.measure}, or better" if against_model(study) else "the best"
        return f"{which} within a standard error of {of}: "
    loses = f"loses at most {_points(tolerance, study.measure)} of {study.measure}, a standard error counted"
    if chosen.within:
        return f"{which} that {loses}: "
    least = round(counted(chosen.taken, chosen.best), 3)
    return f"No design {loses}. The one that loses least, {_points(least, study.measure)}: "


def _points(loss: float, measure: str) -> str:
    """Returns a loss as text: in points, or in units of R squared."""
    return f"{loss:g}" if measure == "R squared" else f"{100 * loss:.3g} point{'' if loss == 0.01 else 's'}"


def _of(chosen: Recommendation, head: str, trial: Trial) -> Words:
    return (head, trial, f", {_figures(chosen, trial)}.")


def as_text(words: Words) -> str:
    return "".join(part if isinstance(part, str) else f"trial {part.number}" for part in words)


def unpruned_name(study: Study) -> str:
    return MODEL_AS_IT_IS if study.asked.get("model") or not study.asked.get("train") else WITHOUT_PRUNING


def _compared(study: Study, chosen: Recommendation) -> list[Words]:
    """Returns a list with a sentence that compares the design with the unpruned model; [] without a trial of it."""
    unpruned = chosen.unpruned
    if unpruned is None:
        return []
    name = unpruned_name(study)
    if unpruned is chosen.taken:
        return [(f"It is {name}.",)]
    times = chosen.times_smaller()
    more = ""
    if times is not None and times >= 1.05:
        more = f" {times:,.0f} times smaller." if times >= 10 else f" {times:.1f} times smaller."
    return [(f"{name[0].upper()}{name[1:-1]}, ", unpruned, f"): {_figures(chosen, unpruned)}.{more}")]


def _figures(chosen: Recommendation, trial: Trial) -> str:
    value = trial.figure(chosen.size.figure)
    about = "about " if trial.known_by(chosen.size.figure) == "estimate" else ""
    parts = (
        [] if value is None or chosen.size.figure == "accuracy" else [about + figure_text(value, chosen.size.figure)]
    )
    if trial.validation is not None:
        test = "" if trial.test is None else f" (test {trial.test.shown})"
        parts.append(f"{trial.validation.shown}{test}")
    return ", ".join(parts)


def figure_text(value: float, figure: str) -> str:
    """Returns a figure with its unit, such as 14 LUTs or 72.8 %."""
    if figure == "accuracy":
        return f"{100 * value:.1f} %"
    unit = FIGURES[figure].unit if figure in FIGURES else ""
    return f"{number_text(value, figure)} {unit[:-1] if value == 1 and unit.endswith('s') else unit}".strip()


def number_text(value: float, figure: str = "") -> str:
    """Returns a number as text: counts without decimals, other figures with at most one."""
    counted = figure in FIGURES and figure != "fmax_mhz"
    return f"{value:,.0f}" if counted or float(value).is_integer() or abs(value) >= 1000 else f"{value:,.1f}"
