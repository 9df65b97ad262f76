"""The search: asks for designs, gives them to workers, sends those near the front up the rungs, and finishes the front.

Trial n is chosen knowing the trials up to n - LAG, in their order, whatever else has ended by then; so a search
with one seed gives the same trials on one worker as on several.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from forestc.exploration import sampling
from forestc.exploration.candidate import Job, Stage, costs_of
from forestc.exploration.choice import choice, size_goal, unpruned
from forestc.exploration.correction import Correction, corrected, corrections
from forestc.exploration.goals import spelled
from forestc.exploration.material import Material
from forestc.exploration.mutation import mutated
from forestc.exploration.pool import Pool
from forestc.exploration.space import LEVEL, starts
from forestc.exploration.study import Goal, Limit, Rung, Study, Trial, open_study, write_trial

LAG = 6  # trials under way that a choice does not know; more only where there are more workers
NEAR = (0.9, 1.0)  # near the front: on it at this share of the costs, and with this many standard errors more accuracy
CHECKPOINTS = 4  # how often designs near the front are sent up while the search goes on
BESIDE = 2  # every n-th choice changes one of the front; the others are the sampler's
BESIDE_FROM = 60  # trials before; a front of few trials leads choices beside it away from better ways to shrink
KEPT_FOR_LAST = 1.3  # times what the recommended design took, kept for the one that is recommended after the climb
LEVELS_SHARE = 1 / 8  # share of --seconds that the search of -O2, or of -O3, may take
SENT = 6  # designs each time
MOST_SENT = 48  # to a rung in the end; those of the front that are left are estimates then, and their row says so


class OutOfTimeError(Exception):
    """The time that a search was given is over. What was under way goes on when the study is resumed."""


class Search:
    """One study in this process. say: shows progress. until: a time of time.monotonic() at which it ends."""

    def __init__(self, material: Material, study: Any, pool: Pool, say: Callable[[str], None]) -> None:
        self.material, self.asked, self.study, self.pool, self.say = material, material.asked, study, pool, say
        self.space = material.space
        self.starts = starts(self.space, material.training_starts)
        self.trials: dict[int, Trial] = {}
        self.known: dict[str, Correction] = {}
        self.until = math.inf
        self.late = False  # whether its time has ended something
        self._identities: dict[int, int] = {}
        self._in_sampler: set[int] = set()
        self._next: list[Any] = []  # trials that a killed search left under way
        self._waiting = False  # whether it left one that was enqueued and not asked for

    def begin(self) -> None:
        """Takes up what is in the folder and the storage."""
        kept = {trial.number: trial for trial in open_study(self.material.folder).trials}
        finished = {"COMPLETE", "FAIL", "PRUNED"}
        for attempt in self.study.get_trials(deepcopy=False):
            if attempt.state.name == "WAITING":
                self._waiting = True
                continue
            self._identities[attempt.number] = attempt._trial_id
            trial = kept.get(attempt.number)
            if attempt.state.name in finished:
                self._in_sampler.add(attempt.number)
                self.trials[attempt.number] = trial or Trial(attempt.number, "failed", reason="its folder is not there")
            elif trial is not None and trial.state != "running":
                self.trials[attempt.number] = trial
            elif attempt.state.name == "RUNNING":
                self._next.append(sampling.optuna().trial.Trial(self.study, attempt._trial_id))
        self.known = corrections(self.trials.values())

    # --- trials

    def explore(self) -> None:
        """Tries designs until there are as many as were asked for. Raises OutOfTimeError."""
        under_way: set[int] = set()
        pace = _Pace(self.asked.trials - len(self.trials))
        checkpoints = [self.asked.trials * part // CHECKPOINTS for part in range(1, CHECKPOINTS)]
        while True:
            self._look_at_the_clock()
            number = self._next[0].number if self._next else len(self._identities)
            wanted = bool(self._next) or number < self.asked.trials
            if wanted and self._may_ask(number) and self.pool.free() > 0:
                if self.asked.top != "estimate" and number in checkpoints and not under_way:
                    self.climb(SENT)
                    checkpoints.remove(number)
                elif self.asked.top == "estimate" or number not in checkpoints:
                    under_way.add(self._ask(number))
                    continue
            if not under_way:
                if wanted:
                    continue
                break
            for trial in self._taken():
                under_way.discard(trial.number)
                self._keep(trial)
                self._show(f"{len(self.trials)} of {self.asked.trials} trials", pace.done())
        self._tell(max(self._identities, default=-1))

    def _look_at_the_clock(self) -> None:
        if time.monotonic() >= self.until:
            raise OutOfTimeError

    def _taken(self) -> list[Trial]:
        trials = self.pool.take(self.until)
        if not trials:
            self._look_at_the_clock()
        return trials

    def _may_ask(self, number: int) -> bool:
        """Whether all trials that the choice is to know have ended."""
        if number < len(self.starts):
            return True
        lag = max(LAG, self.asked.jobs)
        return all(done in self.trials for done in range(number - lag + 1))

    def _ask(self, number: int) -> int:
        if number < len(self.starts):
            start: dict[str, Any] | None = self.starts[number]
        else:
            self._tell(number - max(LAG, self.asked.jobs))
            start = self._beside(number) if number >= BESIDE_FROM and number % BESIDE else None
        self.study.sampler = sampling.sampler(self.asked.seed, number)
        if self._next:
            trial = self._next.pop(0)
        else:
            if start is not None and not self._waiting:
                self.study.enqueue_trial({key: value for key, value in start.items() if key != LEVEL})
            trial, self._waiting = self.study.ask(), False
        self._identities[trial.number] = trial._trial_id
        options = sampling.chosen(trial, self.space, start)
        started = Trial(trial.number, "running", options)
        write_trial(self.material.folder, started)
        address = (str(self.material.folder), self.asked.storage or "", int(trial._trial_id))
        seconds = math.inf if self.asked.seconds is None else LEVELS_SHARE * self.asked.seconds
        self.pool.give(Job("estimate", started, self._rivals(), address, seconds))
        return int(trial.number)

    def _beside(self, number: int) -> dict[str, Any] | None:
        """A choice beside one of the front, by the trials that the sampler knows; None without one."""
        known = self.view([trial for trial in self.trials.values() if trial.number in self._in_sampler])
        parents = [trial for trial in known.front if LEVEL not in trial.options]
        if not parents:
            return None
        random = np.random.default_rng((self.asked.seed, number))
        return mutated(self.space, parents[int(random.integers(len(parents)))].options, random)

    def _rivals(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """The costs and the accuracy of the trials on the front, among those that the sampler knows."""
        if "accuracy" not in {goal.figure for goal in self.asked.goals}:
            return ()
        known = self.view([trial for number, trial in self.trials.items() if number in self._in_sampler])
        return tuple(
            (costs_of(self.asked.goals, trial.figures["estimate"]), trial.validation.value)
            for trial in known.front
            if trial.validation is not None
        )

    def _tell(self, last: int) -> None:
        """Tells the sampler all trials up to one, in their order."""
        for number in sorted(self.trials):
            if number <= last and number not in self._in_sampler:
                trial, identity = self.trials[number], self._identities[number]
                sampling.tell(self.study, trial, self.asked.goals, self.asked.limits, identity)
                self._in_sampler.add(number)

    def _keep(self, trial: Trial) -> None:
        """Takes a trial in, with its estimates corrected and the limit that it breaks."""
        if trial.state == "complete":
            trial = corrected(trial, self.known)
            trial = replace(trial, reason=self._broken(trial))
        self.trials[trial.number] = trial
        write_trial(self.material.folder, trial)

    def _broken(self, trial: Trial) -> str:
        broken = [limit for limit in self.asked.limits if not limit.holds(trial.figure(limit.figure))]
        return ", ".join(f"{_shown(trial.figure(limit.figure))} breaks {spelled(limit)}" for limit in broken)

    # --- rungs

    def view(self, trials: Sequence[Trial] | None = None, asked: Mapping[str, Any] | None = None) -> Study:
        """The study as it is now."""
        some = self.trials.values() if trials is None else trials
        return Study(self.material.folder, self.asked.goals, self.asked.limits, asked or {}, tuple(some))

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
        front = [trial for trial in self._near(exactly=True) if rung not in trial.figures and self._fits(trial)]
        near = [trial for trial in self._near(exactly=False) if rung not in trial.figures and self._fits(trial)]
        front, near = self._outward(front), [trial for trial in near if trial not in front]
        if exactly:
            near = near[: max(0, self.asked.jobs - len(front))] if front else []
        return [*front, *near][:most]

    def _outward(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials by how many times larger or smaller they are than the recommended one, nearest first."""
        taken, size = self._recommended(), size_goal(self.asked.goals).figure

        def sized(trial: Trial) -> float:
            return math.log(max(1.0, trial.figure(size) or 1.0))

        return sorted(trials, key=lambda trial: 0.0 if taken is None else abs(sized(trial) - sized(taken)))

    def _near(self, *, exactly: bool) -> list[Trial]:
        """The front, then the trials that would be on it if they were a little better."""
        front = list(self.view().front)
        near = front[:]
        share, errors = (1.0, 0.0) if exactly else NEAR
        goals = self.asked.goals
        for trial in [] if exactly else self.view().trials:
            if trial in near or not self.view().kept(trial) or trial.validation is None:
                continue
            costs = _costs(trial, goals, share, errors)
            if not any(all(a <= b for a, b in zip(_costs(better, goals), costs, strict=True)) for better in front):
                near.append(trial)
        return near

    def _all(self, stage: Stage, trials: Sequence[Trial]) -> None:
        """Carries out a stage of several trials."""
        waiting, under_way, pace = list(trials), 0, _Pace(len(trials))
        while waiting or under_way:
            self._look_at_the_clock()
            while waiting and self.pool.free() > 0:
                self.pool.give(Job(stage, waiting.pop(0)))
                under_way += 1
            for trial in self._taken():
                under_way -= 1
                self._keep(trial)
                self._show(f"{stage}: {len(trials) - len(waiting) - under_way} of {len(trials)}", pace.done())

    def refit(self) -> None:
        """Corrects all estimates by what is known now."""
        self.known = corrections(self.trials.values())
        for trial in list(self.trials.values()):
            if trial.state == "complete":
                self._keep(trial)

    def finish(self) -> None:
        """Compiles, checks and scores the front; a design that fails leaves it, and others may come to it. Raises
        OutOfTimeError. If time is limited, the recommended design comes first, and again after the climb, for which as
        much time is kept as that took."""
        end, began = self.until, time.monotonic()
        if end < math.inf:
            self._finish_recommended()
        if self.asked.top != "estimate":
            self.until = end - KEPT_FOR_LAST * (time.monotonic() - began) if end < math.inf else end
            try:
                self.climb()
            except OutOfTimeError:
                self.late = True
                self.pool.drop()
            self.until = end
        if end < math.inf:
            self._finish_recommended()
        while sent := [trial for trial in self._wanted() if not self._finished(trial)]:
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
            if rung in self.asked.climbed and rung not in trial.figures and self._fits(trial):
                self._all(rung, [trial])
        return self.trials[number]

    def _recommended(self) -> Trial | None:
        chosen = choice(self._judged())
        return None if chosen is None else self.trials[chosen.taken.number]

    def _judged(self) -> Study:
        """The study as it is now, with what recommendations depend on."""
        asked = {"device": self.asked.device, "tolerance": self.asked.tolerance, "unfinished": self.late}
        return self.view(asked=asked)

    def _wanted(self) -> list[Trial]:
        """The designs of the front, and the one that the study recommends."""
        view = self._judged()
        chosen = choice(view)
        front = list(view.front)
        return front if chosen is None or chosen.taken in front else [*front, chosen.taken]

    def _finished(self, trial: Trial) -> bool:
        """Whether a design of the front is compiled, checked and scored."""
        checked = trial.has_design and "check" in trial.seconds
        return checked and (self.asked.test is None or trial.test is not None)

    def end(self, *, early: bool) -> dict[str, int] | None:
        """Writes which trials are on the front. early: whether the search ended before all was done. Returns how many
        trials were not tried, how many had begun, and how many designs of the front are not finished; None if there are
        none of these."""
        asked, unfinished = len(self._identities), None
        if early:
            lacks = {
                "untried": max(0, self.asked.trials - asked),
                "begun": asked - len(self.trials),
                "designs": sum(not self._finished(trial) for trial in self._wanted()),
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

    def _fits(self, trial: Trial) -> bool:
        return self._judged().fits(trial)

    def as_dict(self) -> dict[str, Any]:
        """Corrections, for study.json."""
        return {name: asdict(line) for name, line in self.known.items()}

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


def unreachable(study: Study) -> tuple[Limit, float | None] | None:
    """A limit that no trial keeps, and the nearest value; None if each is kept by some trial."""
    for limit in study.limits:
        values = [value for trial in study.complete if (value := trial.figure(limit.figure)) is not None]
        if not any(map(limit.holds, values)):
            return limit, (max(values) if limit.at_least else min(values)) if values else None
    return None


def _costs(trial: Trial, goals: Sequence[Goal], share: float = 1.0, errors: float = 0.0) -> tuple[float, ...]:
    """One number a goal, smaller is better, a little better than it is."""
    costs = []
    for goal in goals:
        value = trial.figure(goal.figure)
        if goal.figure == "accuracy" and trial.validation is not None:
            value = trial.validation.value + errors * trial.validation.standard_error
        elif value is not None:
            value = value / share if goal.maximize else value * share
        costs.append(goal.cost(value))
    return tuple(costs)


class _Pace:
    """How fast tasks are done. count: how many there are to do."""

    def __init__(self, count: int) -> None:
        self.count, self.number, self.began = count, 0, time.monotonic()

    def done(self) -> float:
        """Counts a task that is done. Returns the seconds that the others will take."""
        self.number += 1
        return (self.count - self.number) * (time.monotonic() - self.began) / self.number


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
