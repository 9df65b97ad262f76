"""Defines the checked options of an `explore` call, which study.json stores and workers receive."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from forestc.backends.base import Gives
from forestc.backends.c.choice import check
from forestc.backends.c.options import COptions
from forestc.backends.table import TARGETS
from forestc.compilation.synthesis import need_tools
from forestc.costs.devices import DEVICES
from forestc.costs.estimate import estimated
from forestc.costs.fitted import fitted
from forestc.errors import OptionError, opt
from forestc.exploration.goals import FIGURES, spelled
from forestc.exploration.study import RUNGS, Goal, Limit, Rung
from forestc.fields.amounts import tolerance_of
from forestc.options.explore import ExploreOptions

# Fields that `as_dict` leaves out.
_NOT_STORED = {"goals", "limits", "out", "resume", "progress", "seconds", "take"}
HIDDEN = "***"  # replaces the password in an address
FEW_ROWS = 2000  # rows; with fewer, candidates are cross-validated unless validation rows are given
FOLDS = 5  # folds of the cross-validation; without it, only the first fold is scored
HELD_OUT = 0.2  # share of the rows that `compile` holds out for a design


@dataclass(frozen=True, kw_only=True)
class ExploreRequest(ExploreOptions):
    """The checked options of an `explore` call. Either `model` or `train` is given."""

    train: tuple[str, ...] | Callable[[Any], Any] = ()
    classes: tuple[str, ...] = ()
    goals: tuple[Goal, ...] = ()
    limits: tuple[Limit, ...] = ()
    tolerance: float | None = None
    jobs: int = 1
    rungs: Rung | None = "estimate"  # highest rung that designs may reach; None follows the goals

    def __post_init__(self) -> None:
        if (self.model is None) == (not self.train):
            raise OptionError(
                "a model or a trainer is needed",
                where=f"MODEL, {opt.train}",
                do=f"give MODEL, or {opt.train:NAME}, and not both",
            )
        for given, what, do in (
            (self.classes, "classes are named", f"leave {opt.classes} out: labels have names"),
            (self.iterations is not None, "iterations are a model's", f"leave {opt.iterations} out"),
            (self.missing != "auto", "missing values are asked for", f"leave {opt.missing} out"),
        ):
            if given and self.model is None:
                raise OptionError(f"{what}, and no model is given", where="MODEL", do=do)
        if self.rows is None:
            raise OptionError("no rows are given", where=opt.rows, do=f"add {opt.rows:FILE}")
        if self.device and not estimated(self.device):
            known = ", ".join(filter(estimated, DEVICES))
            raise OptionError(f"no estimates for {self.device!r}", where=opt.device, do=f"known: {known}")
        check(COptions(cpu=self.cpu or ""))
        timed = self.device and DEVICES[self.device].family.timed_on in fitted().paths_ns
        for name in self.figures:
            if name == "fmax_mhz" and not timed:
                timed_devices = [device for device in DEVICES if estimated(device) and DEVICES[device].family.timed_on]
                raise OptionError(
                    f"nothing here tells the clock rate on {self.device}",
                    where=opt.goal,
                    do="limit or minimize latency instead, and let your vendor's tool time the front; or give a device "
                    f"whose clock rate is known: {', '.join(timed_devices)}",
                )
        self._check_amounts()
        tolerance_of(self.tolerance)
        if self.top not in self.reachable:
            what = "no goal or limit has figures of the rung" if self.top in RUNGS else "unknown rung"
            raise OptionError(f"{what} {self.top!r}", where=opt.rungs, do=f"known: {', '.join(self.reachable)}")
        if self.device and self.top in ("synthesis", "placed"):
            need_tools(self.device, self.native)

    def _check_amounts(self) -> None:
        for name, least in (("trials", 1), ("jobs", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(
                    f"{name}={value}", where="the search's options", do=f"give a whole number from {least} on"
                )
        if not self.trial_seconds > 0 or (self.trial_mb is not None and self.trial_mb < 1):
            raise OptionError(
                "a trial may take no time or memory",
                where=f"{opt.trial_seconds}, {opt.trial_mb}",
                do="give seconds and megabytes above 0",
            )
        if self.seconds is not None and not self.seconds > 0:
            raise OptionError(f"{self.seconds} s", where=opt.seconds, do="give a number above 0, or leave it out")

    @property
    def figures(self) -> tuple[str, ...]:
        return (*(goal.figure for goal in self.goals), *(limit.figure for limit in self.limits))

    @property
    def top(self) -> Rung:
        return self.rungs or self.reachable[-1]

    @property
    def climbed(self) -> tuple[Rung, ...]:
        return self.reachable[: self.reachable.index(self.top) + 1]

    @property
    def reachable(self) -> tuple[Rung, ...]:
        """The rungs (kinds of measurement) that give figures of the goals and limits, lowest first."""
        needed = {FIGURES[name].needs for name in self.figures}
        rungs: list[Rung] = ["estimate"]
        if self.device and "device" in needed:
            rungs += ["synthesis", "placed"] if DEVICES[self.device].nextpnr else ["synthesis"]
        if self.cpu and "cpu" in needed:
            rungs += ["measured"]
        return tuple(rungs)

    @property
    def targets(self) -> str:
        wanted = [Gives.VERILOG] * bool(self.device) + [Gives.HEADER] * bool(self.cpu)
        return ",".join(name for name, target in TARGETS.items() if target.gives in wanted)

    def as_dict(self) -> dict[str, Any]:
        """Returns the options for study.json. Python objects that it can't hold become None."""
        renamed = {"rungs": "top"}
        record = {renamed.get(option.name, option.name): _plain(getattr(self, option.name)) for option in fields(self)}
        record["top"] = self.top
        record["storage"] = None if self.storage is None else masked(self.storage)
        record["label"] = self.label if isinstance(self.label, str | int) else None  # a list of labels is not stored
        return {name: value for name, value in record.items() if name not in _NOT_STORED}

    def same(self, before: Mapping[str, Any], goals: tuple[Goal, ...], limits: tuple[Limit, ...]) -> None:
        """Raises OptionError if a resumed study has other goals, limits or options.
        before: the study's recorded options.
        goals, limits: the study's own."""
        if goals != self.goals:
            names = ",".join(goal.figure for goal in goals)
            raise OptionError("the study has other goals", where=names, do="resume with those, or begin another study")
        if limits != self.limits:
            names = ", ".join(map(spelled, limits)) or "none"
            raise OptionError("the study has other limits", where=names, do="resume with those, or begin another study")
        if self.storage is not None and f":{HIDDEN}@" in self.storage:
            raise OptionError(
                "the study does not keep the storage's password",
                where=opt.storage,
                do=f"give {opt.storage:ADDRESS} again",
            )
        mine = self.as_dict()
        compared = "model train label device cpu seed regression classes iterations missing"
        for name in compared.split():
            if name in before and before[name] != mine[name]:
                raise OptionError(
                    f"the study has another {name}: {before[name]}",
                    where="study.json",
                    do="resume with that, or begin another study",
                )


def masked(address: str) -> str:
    """Returns the address of a database with `***` in place of its password."""
    return re.sub(r"(://[^/@:]*):[^@]*@", rf"\1:{HIDDEN}@", address)


def _plain(value: object) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list) and all(isinstance(item, str | int | float) for item in value):
        return list(value)
    return value if isinstance(value, str | int | float | bool | None) else None
