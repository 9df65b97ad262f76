"""Runs the search of a study: chooses trials, synthesizes or measures designs near the front, and finishes it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from forestc.exploration.candidate import Job, Stage, costs_of
from forestc.exploration.choice import choice, shown, size_goal, unpruned
from forestc.exploration.correction import Correction, corrected, corrections
from forestc.exploration.goals import spelled
from forestc.exploration.material import Material
from forestc.exploration.pool import Pool
from forestc.exploration.sampling import Sampler
from forestc.exploration.study import Rung, Score, Study, Trial, open_study, write_trial
from forestc.system.deadline import LateError

# A trial is near the front if it would be on the front with 0.9 times its costs and one standard error more accuracy.
NEAR = (0.9, 1.0)
CHECKPOINTS = 4  # divides the trials into parts; after each, designs near the front are synthesized
KEPT_FOR_LAST = 1.3  # reserves time for the last recommendation, in times that of the first
LEVELS_SHARE = 1 / 8  # share of --seconds for the search of -O2 or of -O3
SEARCHED = 0.75  # share of --seconds for trying designs; the rest is for finishing the front
SENT = 6  # designs that are synthesized or measured before estimates are corrected again
# Limits the designs that are synthesized, placed or measured at a time; more take longer.
MOST_SENT = 48
Ended = Literal["whole", "late", "stopped"]  # all trials done; out of time; ended by Ctrl-C


class StudySearch:
    """The search of one study. say: shows progress. until: end of the current part, a time of time.monotonic()."""

    def __init__(self, material: Material, sampler: Sampler, pool: Pool, say: Callable[[str], None]) -> None:
        self.material, self.request, self.sampler, self.pool, self.say = material, material.request, sampler, pool, say
        self.trials: dict[int, Trial] = {}
        self.corrections: dict[str, Correction] = {}
        self.until = math.inf
        self.late = False  # True if the time limit has ended some part

    def begin(self) -> None:
        self.trials = self.sampler.resume({trial.number: trial for trial in open_study(self.material.folder).trials})
        self.corrections = corrections(self.trials.values())

    def run(self, start: float) -> Ended:
        """Searches, finishes the front, and returns how it ended. start: the time of time.monotonic() from which the
        time limit counts."""
        seconds = math.inf if self.request.seconds is None else self.request.seconds
        try:
            try:
                self.until = start + SEARCHED * seconds
                self.explore()
            except LateError:
                self.late = True
                self.pool.drop()
            try:
                self.until = start + seconds
                self.finish()
            except LateError:
                self.late = True
        except KeyboardInterrupt:
            return "stopped"
        return "late" if self.late else "whole"

    # --- trials

    def explore(self) -> None:
        """Tries the requested number of trials. Raises LateError if the time ends."""
        under_way: set[int] = set()
        began, before = time.monotonic(), len(self.trials)
        checkpoints = [self.request.trials * part // CHECKPOINTS for part in range(1, CHECKPOINTS)]
        while True:
            self._look_at_the_clock()
            number, remaining = self.sampler.number, self.sampler.has_next
            if remaining and self.sampler.may_ask(self.trials) and self.pool.free() > 0:
                if self.request.top != "estimate" and number in checkpoints and not under_way:
                    self.climb(SENT)
                    checkpoints.remove(number)
                elif self.request.top == "estimate" or number not in checkpoints:
                    under_way.add(self._ask())
                    continue
            if not under_way:
                if remaining:
                    continue
                break
            for trial in self._taken():
                under_way.discard(trial.number)
                self._keep(trial)
                done, all_of_them = len(self.trials), self.request.trials
                left = (all_of_them - done) * (time.monotonic() - began) / (done - before)
                self._show(f"{done} of {all_of_them} trials", left)
        self.sampler.tell(self.trials, max(self.sampler.identities, default=-1))

    def _look_at_the_clock(self) -> None:
        if time.monotonic() >= self.until:
            raise LateError

    def _taken(self) -> list[Trial]:
        trials = self.pool.take(self.until)
        if not trials:
            self._look_at_the_clock()
        return trials

    def _ask(self) -> int:
        started = self.sampler.ask(self.trials)
        write_trial(self.material.folder, started)
        address = (str(self.material.folder), self.request.storage or "", self.sampler.identities[started.number])
        seconds = math.inf if self.request.seconds is None else LEVELS_SHARE * self.request.seconds
        self.pool.give(Job("estimate", started, self._rivals(), address, seconds))
        return started.number

    def _rivals(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Returns (costs, accuracy) of each trial on the front; empty if accuracy is no goal."""
        if "accuracy" not in {goal.figure for goal in self.request.goals}:
            return ()
        return tuple(
            (costs_of(self.request.goals, trial.figures["estimate"]), trial.validation.value)
            for trial in self.sampler.reported(self.trials).front
            if trial.validation is not None
        )

    def _keep(self, trial: Trial) -> None:
        """Records a trial, with corrected estimates and the limits that it breaks."""
        if trial.state == "complete":
            trial = corrected(trial, self.corrections)
            broken = [limit for limit in self.request.limits if not limit.holds(trial.figure(limit.figure))]
            why = (f"{_shown(trial.figure(limit.figure))} breaks {spelled(limit)}" for limit in broken)
            trial = replace(trial, reason=", ".join(why))
        self.trials[trial.number] = trial
        write_trial(self.material.folder, trial)

    # --- rungs

    def view(self) -> Study:
        request = {"device": self.request.device, "tolerance": self.request.tolerance, "unfinished": self.late}
        return Study(
            self.material.folder, self.request.goals, self.request.limits, request, tuple(self.trials.values())
        )

    def climb(self, most: int | None = None) -> None:
        """Synthesizes, places and measures designs on and near the front, at most MOST_SENT at each of these stages.
        most: if given, at most this many designs are synthesized, and none is placed or measured."""
        for index, rung in enumerate(self.request.climbed[1:], 1):
            top = index > 1 or rung == "measured"
            if most and top:
                return
            left = most or MOST_SENT
            while left > 0 and (sent := self._sent(rung, exactly=top, most=min(left, SENT))):
                left -= len(sent)
                self._all(rung, sent)
                self.refit()

    def _sent(self, rung: Rung, *, exactly: bool, most: int) -> list[Trial]:
        """Returns at most `most` designs that lack this kind of measurement: from the front first, then near it."""
        view = self.view()
        front, near = (
            [trial for trial in some if rung not in trial.figures and view.fits(trial)]
            for some in (self._outward(view.front), _near(view))
        )
        if exactly:
            near = near[: max(0, self.request.jobs - len(front))] if front else []
        return [*front, *near][:most]

    def _outward(self, trials: Sequence[Trial]) -> list[Trial]:
        taken, size = self._recommended(), size_goal(self.request.goals).figure

        def sized(trial: Trial) -> float:
            return math.log(max(1.0, trial.figure(size) or 1.0))

        return sorted(trials, key=lambda trial: 0.0 if taken is None else abs(sized(trial) - sized(taken)))

    def _all(self, stage: Stage, trials: Sequence[Trial]) -> None:
        waiting, under_way, began = list(trials), 0, time.monotonic()
        while waiting or under_way:
            self._look_at_the_clock()
            while waiting and self.pool.free() > 0:
                self.pool.give(Job(stage, waiting.pop(0)))
                under_way += 1
            for trial in self._taken():
                under_way -= 1
                self._keep(trial)
                left = len(waiting) + under_way
                done = len(trials) - left
                self._show(f"{stage}: {done} of {len(trials)}", left * (time.monotonic() - began) / done)

    def refit(self) -> None:
        self.corrections = corrections(self.trials.values())
        for trial in list(self.trials.values()):
            if trial.state == "complete":
                self._keep(trial)

    def finish(self) -> None:
        """Compiles, checks and scores the front. Under a time limit, it begins with the recommended design. Raises
        LateError."""
        end, began = self.until, time.monotonic()
        if end < math.inf:
            self._finish_recommended()
        if self.request.top != "estimate":
            self.until = end - KEPT_FOR_LAST * (time.monotonic() - began) if end < math.inf else end
            try:
                self.climb()
            except LateError:
                self.late = True
                self.pool.drop()
            self.until = end
        if end < math.inf:
            self._finish_recommended()
        while sent := [trial for trial in shown(self.view()) if not self._finished(trial)]:
            self._all("finish", self._outward(sent))
        self._build_unpruned()

    def _finish_recommended(self) -> None:
        """Builds, checks and scores the recommended design. If that fails, the next one is tried."""
        while (taken := self._recommended()) is not None and not self._finished(taken):
            taken = self._built(taken.number)
            if taken.state == "complete" and taken == self._recommended():
                self._all("finish", [taken])
            self.refit()

    def _built(self, number: int) -> Trial:
        """Synthesizes or measures a trial's design, if the study needs it and the design fits. Returns the trial."""
        for rung in ("synthesis", "measured"):
            trial = self.trials[number]
            if rung in self.request.climbed and rung not in trial.figures and self.view().fits(trial):
                self._all(rung, [trial])
        return self.trials[number]

    def _recommended(self) -> Trial | None:
        chosen = choice(self.view())
        return None if chosen is None else self.trials[chosen.taken.number]

    def _finished(self, trial: Trial) -> bool:
        checked = trial.has_design and "check" in trial.seconds
        return checked and (self.request.test is None or trial.test is not None)

    def end(self, *, early: bool) -> dict[str, int] | None:
        """Records which trials are on the front. early: True if the search ended early. Returns how many trials and
        designs are unfinished, by kind; None if all are finished."""
        started, unfinished = len(self.sampler.identities), None
        if early:
            lacks = {
                "untried": max(0, self.request.trials - started),
                "begun": started - len(self.trials),
                "designs": sum(not self._finished(trial) for trial in shown(self.view())),
            }
            unfinished = lacks if any(lacks.values()) else None
        on_front = {trial.number for trial in self.view().front}
        for trial in list(self.trials.values()):
            if trial.on_front != (trial.number in on_front):
                self._keep(replace(trial, on_front=trial.number in on_front))
        return unfinished

    def _build_unpruned(self) -> None:
        """Builds and scores the model at -O1 for comparison."""
        first = unpruned(self.trials.values())
        if first is None:
            return
        built = self._built(first.number)
        first = built if built.state == "complete" else first
        self._keep(first)
        if not self._finished(first):
            self._all("finish", [first])
            if self.trials[first.number].state != "complete":
                self._keep(first)

    # --- progress

    def _show(self, doing: str, left: float) -> None:
        front = self.view().front
        failed = sum(trial.state == "failed" for trial in self.trials.values())
        left = min(left, self.until - time.monotonic())
        parts = [doing]
        parts += [f"about {_time(left)} left"] if left > 0 else []
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{len(front)} on the front"]
        for goal in self.request.goals if front else ():
            values = [value for trial in front if (value := trial.figure(goal.figure)) is not None]
            ends = f"{_shown(min(values))} to {_shown(max(values))}" if values else "not known"
            parts.append(f"{goal.figure} {ends}")
        self.say(", ".join(parts))


def _near(study: Study) -> list[Trial]:
    """Returns the trials that would be on the front if they were better by `NEAR`."""
    share, errors = NEAR

    def costs(trial: Trial, accuracy: Score) -> Iterator[float]:
        for goal in study.goals:
            value = trial.figure(goal.figure)
            if goal.figure == "accuracy":
                value = accuracy.value + errors * accuracy.standard_error
            elif value is not None:
                value = value / share if goal.maximize else value * share
            yield goal.cost(value)

    near = []
    for trial in study.trials:
        if trial in study.front or not study.kept(trial) or trial.validation is None:
            continue
        better = tuple(costs(trial, trial.validation))
        if not any(all(a <= b for a, b in zip(study.costs(other), better, strict=True)) for other in study.front):
            near.append(trial)
    return near


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _shown(value: float | None) -> str:
    if value is None:
        return "not known"
    if abs(value) <= 1 and value != int(value):
        return f"{value:.4f}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
