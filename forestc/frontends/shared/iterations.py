"""Decides how many boosting iterations of a model are read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from forestc.errors import ModelError, OptionError, opt

BEST: Literal["best"] = "best"
# A number of iterations; BEST for those up to the best one; None for the library's default.
Iterations: TypeAlias = int | Literal["best"] | None


def parsed(given: object) -> Iterations:
    """Parses the user's number of iterations. Raises OptionError."""
    if given is None:
        return None
    text = str(given).strip()
    if text == BEST:
        return BEST
    number = int(text) if isinstance(given, int | str) and text.isdecimal() and len(text) < 10 else 0
    if isinstance(given, bool) or number < 1:
        raise OptionError(
            f"{given!r} is no number of iterations", where=opt.iterations, do="give a whole number from 1 on, or best"
        )
    return number


def taken(
    requested: Iterations, total: int, best: int | None, where: str, *, stops: bool, unknown: str
) -> tuple[int, tuple[str, ...]]:
    """Returns the number of iterations to read, and notes. Raises ForestcError.

    stops: True if the library predicts with the first `best` iterations only.
    unknown: advice if `best` is None.
    """
    if requested == BEST and best is None:
        raise ModelError("the model does not say which iteration is the best", where=where, do=unknown)
    if isinstance(requested, int) and requested > total:
        raise OptionError(
            f"{requested} are asked for, and the model has {total}", where=opt.iterations, do=f"give 1 to {total}"
        )
    if requested is None:
        count = min(best or total, total) if stops else total
    else:
        count = min(best or total, total) if requested == BEST else requested
    if count < total:
        why = "as for its own predictions" if requested is None else "as asked for"
        return count, (f"the first {count} of the model's {total} boosting iterations are read, {why}",)
    if best is not None and best < total and requested is None:
        what = f"all {total} boosting iterations are read, as for the model's own predictions"
        note = f"{what}; it says that the first {best} are the best: {opt.iterations:best} reads those"
        return count, (note,)
    return count, ()


def refuse_cut(iterations: Iterations) -> None:
    """Raises OptionError if the user asked for a number of iterations."""
    if iterations is not None:
        raise OptionError(
            "the model's iterations are not counted",
            where=opt.iterations,
            do="leave it out; it is for models of XGBoost, LightGBM and CatBoost that stand alone",
        )
