"""The search: asks for designs, gives them to workers, sends those near the front up the rungs, finishes the front."""

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

NEAR = (0.9, 1.0)  # near the front: on it at this share of the costs, and with this many standard errors more accuracy
CHECKPOINTS = 4  # how often designs near the front are sent up while the search goes on
KEPT_FOR_LAST = 1.3  # times what the recommended design took, kept for the one that is recommended after the climb
LEVELS_SHARE = 1 / 8  # share of --seconds that the search of -O2, or of -O3, may take
SEARCHED = 0.75  # share of --seconds in which designs are tried; the rest is for the front
SENT = 6  # designs each time
MOST_SENT = 48  # to a rung in the end; those of the front that are left are estimates then, and their row says so
Ended = Literal["whole", "late", "stopped"]  # all that was asked; out of time; by Ctrl-C


class StudySearch:
    """One study in this process. say: shows progress. until: a time of time.monotonic() at which it ends."""

    def __init__(self, material: Material, sampler: Sampler, pool: Pool, say: Callable[[str], None]) -> None:
        self.material, self.asked, self.sampler, self.pool, self.say = material, material.asked, sampler, pool, say
        self.trials: dict[int, Trial] = {}
        self.known: dict[str, Correction] = {}
        self.until = math.inf
        self.late = False  # whether its time has ended something

    def begin(self) -> None:
        """Takes up what is in the folder and the storage."""
        self.trials = self.sampler.resume({trial.number: trial for trial in open_study(self.material.folder).trials})
        self.known = corrections(self.trials.values())

    def run(self, start: float) -> Ended:
        """Searches, and finishes the front, within the seconds that were asked for. start: the time of time.monotonic()
        from which they count. Returns what ended it."""
        seconds = math.inf if self.asked.seconds is None else self.asked.seconds
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
        """Tries designs until there are as many as were asked for. Raises LateError."""
        under_way: set[int] = set()
        began, before = time.monotonic(), len(self.trials)
        checkpoints = [self.asked.trials * part // CHECKPOINTS for part in range(1, CHECKPOINTS)]
        while True:
            self._look_at_the_clock()
            number, wanted = self.sampler.number, self.sampler.wants
            if wanted and self.sampler.may_ask(self.trials) and self.pool.free() > 0:
                if self.asked.top != "estimate" and number in checkpoints and not under_way:
                    self.climb(SENT)
                    checkpoints.remove(number)
                elif self.asked.top == "estimate" or number not in checkpoints:
                    under_way.add(self._ask())
                    continue
            if not under_way:
                if wanted:
                    continue
                break
            for trial in self._taken():
                under_way.discard(trial.number)
                self._keep(trial)
                done, all_of_them = len(self.trials), self.asked.trials
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
        address = (str(self.material.folder), self.asked.storage or "", self.sampler.identities[started.number])
        seconds = math.inf if self.asked.seconds is None else LEVELS_SHARE * self.asked.seconds
        self.pool.give(Job("estimate", started, self._rivals(), address, seconds))
        return started.number

    def _rivals(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """The costs and the accuracy of the trials on the front, among those that the sampler knows."""
        if "accuracy" not in {goal.figure for goal in self.asked.goals}:
            return ()
        return tuple(
            (costs_of(self.asked.goals, trial.figures["estimate"]), trial.validation.value)
            for trial in self.sampler.known(self.trials).front
            if trial.validation is not None
        )

    def _keep(self, trial: Trial) -> None:
        """Takes a trial in, with its estimates corrected and the limit that it breaks."""
        if trial.state == "complete":
            trial = corrected(trial, self.known)
            broken = [limit for limit in self.asked.limits if not limit.holds(trial.figure(limit.figure))]
            why = (f"{_shown(trial.figure(limit.figure))} breaks {spelled(limit)}" for limit in broken)
            trial = replace(trial, reason=", ".join(why))
        self.trials[trial.number] = trial
        write_trial(self.material.folder, trial)

    # --- rungs

    def view(self) -> Study:
        """The study as it is now, with what recommendations depend on."""
        asked = {"device": self.asked.device, "tolerance": self.asked.tolerance, "unfinished": self.late}
        return Study(self.material.folder, self.asked.goals, self.asked.limits, asked, tuple(self.trials.values()))

    def climb(self, most: int | None = None) -> None:
        """Sends designs up: to each rung those near the front, or at the top on it, until the front stays.

        most: how many at each rung, once; None for as long as the front changes.
        """
        for place, rung in enumerate(self.asked.climbed[1:], 1):
            top = place > 1 or rung == "measured"
            if most and top:
                return
            left = most or MOST_SENT
            while left > 0 and (sent := self._sent(rung, exactly=top, most=min(left, SENT))):
                left -= len(sent)
                self._all(rung, sent)
                self.refit()

    def _sent(self, rung: Rung, *, exactly: bool, most: int) -> list[Trial]:
        """The next that go up to a rung: of the front, and near it as far as workers would be idle. What does not fit
        the device stays."""
        view = self.view()
        front, near = (
            [trial for trial in some if rung not in trial.figures and view.fits(trial)]
            for some in (self._outward(view.front), _near(view))
        )
        if exactly:
            near = near[: max(0, self.asked.jobs - len(front))] if front else []
        return [*front, *near][:most]

    def _outward(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials by how many times larger or smaller they are than the recommended one, nearest first."""
        taken, size = self._recommended(), size_goal(self.asked.goals).figure

        def sized(trial: Trial) -> float:
            return math.log(max(1.0, trial.figure(size) or 1.0))

        return sorted(trials, key=lambda trial: 0.0 if taken is None else abs(sized(trial) - sized(taken)))

    def _all(self, stage: Stage, trials: Sequence[Trial]) -> None:
        """Carries out a stage of several trials."""
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
        """Corrects all estimates by what is known now."""
        self.known = corrections(self.trials.values())
        for trial in list(self.trials.values()):
            if trial.state == "complete":
                self._keep(trial)

    def finish(self) -> None:
        """Compiles, checks and scores the front; a design that fails leaves it, and others may come to it. Raises
        LateError. If time is limited, the recommended design comes first, and again after the climb, for which as
        much time is kept as that took."""
        end, began = self.until, time.monotonic()
        if end < math.inf:
            self._finish_recommended()
        if self.asked.top != "estimate":
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
        """Builds, checks and scores the design that the study recommends now; if it fails, the next."""
        while (taken := self._recommended()) is not None and not self._finished(taken):
            taken = self._built(taken.number)
            if taken.state == "complete" and taken == self._recommended():
                self._all("finish", [taken])
            self.refit()

    def _built(self, number: int) -> Trial:
        """The trial, synthesized or measured if the study does that and the device is large enough."""
        for rung in ("synthesis", "measured"):
            trial = self.trials[number]
            if rung in self.asked.climbed and rung not in trial.figures and self.view().fits(trial):
                self._all(rung, [trial])
        return self.trials[number]

    def _recommended(self) -> Trial | None:
        chosen = choice(self.view())
        return None if chosen is None else self.trials[chosen.taken.number]

    def _finished(self, trial: Trial) -> bool:
        """Whether a design of the front is compiled, checked and scored."""
        checked = trial.has_design and "check" in trial.seconds
        return checked and (self.asked.test is None or trial.test is not None)

    def end(self, *, early: bool) -> dict[str, int] | None:
        """Writes which trials are on the front. early: whether the search ended before all was done. Returns how many
        trials were not tried, how many had begun, and how many designs of the front are not finished; None if there are
        none of these."""
        asked, unfinished = len(self.sampler.identities), None
        if early:
            lacks = {
                "untried": max(0, self.asked.trials - asked),
                "begun": asked - len(self.trials),
                "designs": sum(not self._finished(trial) for trial in shown(self.view())),
            }
            unfinished = lacks if any(lacks.values()) else None
        on_front = {trial.number for trial in self.view().front}
        for trial in list(self.trials.values()):
            if trial.on_front != (trial.number in on_front):
                self._keep(replace(trial, on_front=trial.number in on_front))
        return unfinished

    def _build_unpruned(self) -> None:
        """Builds and scores the model as it is, which the front is compared with. It keeps its estimate where that
        fails, or where the device is too small for it."""
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
        """Shows what is done, how many seconds are left of it, and the front."""
        front = self.view().front
        failed = sum(trial.state == "failed" for trial in self.trials.values())
        left = min(left, self.until - time.monotonic())
        parts = [doing]
        parts += [f"about {_time(left)} left"] if left > 0 else []
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{len(front)} on the front"]
        for goal in self.asked.goals if front else ():
            values = [value for trial in front if (value := trial.figure(goal.figure)) is not None]
            ends = f"{_shown(min(values))} to {_shown(max(values))}" if values else "not known"
            parts.append(f"{goal.figure} {ends}")
        self.say(", ".join(parts))


def _near(study: Study) -> list[Trial]:
    """The trials that would be on the front if they were a little better."""
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
