"""Runs jobs in processes, either on this machine or on a Dask cluster. A process that dies loses only its own job."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Protocol

from forestc.errors import ForestcError, OptionError, ToolError, opt
from forestc.exploration.candidate import Bench, Job
from forestc.exploration.study import Trial, write_trial
from forestc.rows.cluster import connected
from forestc.system.calls import resident_mb
from forestc.system.interrupts import Interrupted, interruptible, raise_if_ending

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WITHOUT_WORKERS = 60  # seconds to wait for a worker of a cluster that has none
LOOK = 0.25  # seconds between two looks at the workers' time and memory
UNGUARDED = """ as it started; a script that defines what workers call needs `if __name__ == "__main__":`"""
# A worker process sends this message once its modules are imported. The job's time limit starts then.
_READY = "ready"
GRACE = 3.0  # seconds for a worker to end its external tools before it is killed


class Pool(Protocol):
    """Workers that run jobs. Trials are returned in the order in which they end."""

    def free(self) -> int:
        """Returns how many more jobs the workers can take now."""

    def give(self, job: Job) -> None: ...

    def take(self, until: float = math.inf) -> list[Trial]:
        """Waits for jobs to end and returns their trials. Returns an empty list if no job runs, or at `until`, a time
        of time.monotonic()."""

    def drop(self) -> None:
        """Ends the running jobs."""

    def close(self) -> None: ...


def carried_out(bench: Bench, job: Job) -> Trial:
    """Runs a job, writes its trial to the study's folder and returns it; an error marks the trial as failed. Raises
    Interrupted if a signal ends the worker."""
    try:
        trial = bench.run(job)
    except (Interrupted, KeyboardInterrupt):
        raise
    except ForestcError as error:
        trial = failed(job, str(error))
    except MemoryError:
        trial = failed(job, "out of memory")
    except Exception as error:  # noqa: BLE001 - whatever training libraries and passes raise loses this trial alone
        trial = failed(job, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    raise_if_ending()
    write_trial(bench.material.folder, trial)
    return trial


def failed(job: Job, reason: str) -> Trial:
    return replace(job.trial, state="failed", reason=reason if job.stage == "estimate" else f"{job.stage}: {reason}")


def _said_unless_interrupted(failure: sys.UnraisableHookArgs) -> None:
    """Reports an exception that Python can't pass on, except Interrupted."""
    if not isinstance(failure.exc_value, Interrupted):
        sys.__unraisablehook__(failure)


def _work(pipe: Connection, speaks: bool) -> None:
    """Runs a worker process. speaks: True to log warnings."""
    if not speaks:
        logging.getLogger("forestc").setLevel(logging.ERROR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The main process decides what Ctrl-C ends.
    sys.unraisablehook = _said_unless_interrupted
    with suppress(EOFError, OSError, Interrupted), interruptible():
        bench: Bench = pickle.loads(pipe.recv_bytes())
        pipe.send(_READY)
        while True:
            pipe.send(carried_out(bench, pipe.recv()))


class _Worker:
    """A worker process and its job."""

    def __init__(self, bench: bytes, job: Job, speaks: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, speaks), daemon=True)
        with _single_threaded(), nullcontext() if b"__main__" in bench else _without_main():
            self.process.start()
        other.close()
        self.job: Job | None = job
        self.since = time.monotonic()
        self.ready = False
        self.sender = threading.Thread(target=self._send, args=(bench, job), daemon=True)
        self.sender.start()

    def _send(self, bench: bytes, job: Job) -> None:
        with suppress(OSError, ValueError):  # If the process ends before it has read, `take` notices.
            self.pipe.send_bytes(bench)
            self.pipe.send(job)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    until = time.monotonic() + GRACE
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.sender.join(GRACE)  # The thread ends with the process that reads from it.
        worker.pipe.close()


class LocalPool:
    """A pool of single-threaded processes. Unlike pools of concurrent.futures and joblib, it can end one job."""

    def __init__(self, bench: Bench, jobs: int) -> None:
        material = bench.material
        if material.request.trial_mb is not None and resident_mb(os.getpid()) is None:
            raise OptionError(
                "this system does not tell how much memory a process takes",
                where=opt.trial_mb,
                do="leave it out",
            )
        try:
            self._bench = pickle.dumps(bench)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise OptionError(
                f"the workers can't be given what was asked ({error})",
                where=opt.scheduler,
                do="define the function in a module of its own",
            ) from None
        self._limits = material.request.trial_seconds, material.request.trial_mb
        self._folder = material.folder
        self._jobs = jobs
        self._workers: list[_Worker] = []

    def free(self) -> int:
        return self._jobs - sum(worker.job is not None for worker in self._workers)

    def give(self, job: Job) -> None:
        worker = next((worker for worker in self._workers if worker.job is None), None)
        if worker is None:
            speaks = not self._workers and logging.getLogger("forestc").isEnabledFor(logging.WARNING)
            self._workers.append(_Worker(self._bench, job, speaks))
            return
        worker.job, worker.since = job, time.monotonic()
        try:
            worker.pipe.send(job)
        except OSError:  # The idle worker has died.
            self._workers.remove(worker)
            _end([worker])
            self.give(job)

    def take(self, until: float = math.inf) -> list[Trial]:
        busy = [worker for worker in self._workers if worker.job is not None]
        trials: list[Trial] = []
        while busy and not trials and time.monotonic() < until:
            ready = wait([end for worker in busy for end in (worker.pipe, worker.process.sentinel)], LOOK)
            for worker in busy:
                if worker.pipe in ready or worker.process.sentinel in ready:
                    trials += self._taken(worker)
                elif (why := self._beyond(worker)) != "":
                    trials.append(self._lost(worker, why))
        return trials

    def _taken(self, worker: _Worker) -> list[Trial]:
        """Returns a list with the trial that a worker has ended or lost; empty if the worker has only become ready."""
        try:
            message: Trial | str = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(GRACE)
            code = worker.process.exitcode
            how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit status {code}"
            return [self._lost(worker, f"its process ended with {how}{'' if worker.ready else UNGUARDED}")]
        if isinstance(message, str):
            worker.ready, worker.since = True, time.monotonic()
            return []
        worker.job = None
        return [message]

    def _beyond(self, worker: _Worker) -> str:
        seconds, mb = self._limits
        if worker.ready and time.monotonic() - worker.since > seconds:
            return f"it took more than {seconds:g} s"
        if mb is None or (taken := resident_mb(worker.process.pid or 0) or 0.0) <= mb:
            return ""
        return f"it took {taken:.0f} MB, more than {mb}"

    def _lost(self, worker: _Worker, reason: str) -> Trial:
        assert worker.job is not None
        trial = failed(worker.job, reason)
        self._workers.remove(worker)
        _end([worker])
        write_trial(self._folder, trial)
        return trial

    def drop(self) -> None:
        busy = [worker for worker in self._workers if worker.job is not None]
        self._workers = [worker for worker in self._workers if worker.job is None]
        _end(busy)

    def close(self) -> None:
        workers, self._workers = self._workers, []
        _end(workers)


@contextmanager
def _single_threaded() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_main() -> Iterator[None]:
    """Hides the user's script from new processes, which would run it again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_benches: dict[str, Bench] = {}  # caches the bench of a study in a cluster's worker process


def _on_worker(key: str, bench: bytes, job: Job) -> Trial:
    if key not in _benches:
        _benches.clear()
        _benches[key] = pickle.loads(bench)
    return carried_out(_benches[key], job)


class DaskPool:
    """A pool of the workers of a Dask cluster. All workers must see the same files at the same paths."""

    def __init__(self, bench: Bench, scheduler: str) -> None:
        self._folder = bench.material.folder
        self._client = connected(scheduler)
        self._key = f"{self._folder}-{time.time_ns()}"
        self._bench = self._client.scatter(pickle.dumps(bench), broadcast=True, hash=False)
        self._jobs: dict[Any, Job] = {}

    def free(self) -> int:
        """Returns the number of threads without a job. Raises ToolError if no worker joins an empty cluster in
        `WITHOUT_WORKERS` seconds."""
        threads = sum(self._client.nthreads().values())
        if not threads:
            try:
                self._client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
            except TimeoutError:
                raise ToolError(
                    "the cluster has no workers left", where=opt.scheduler, do=f"start some, then add {opt.resume}"
                ) from None
        return int(threads) - len(self._jobs)

    def give(self, job: Job) -> None:
        future = self._client.submit(_on_worker, self._key, self._bench, job, pure=False, retries=0)
        self._jobs[future] = job

    def take(self, until: float = math.inf) -> list[Trial]:
        if not self._jobs:
            return []
        from distributed import wait as wait_for

        left = None if until == math.inf else max(0.0, until - time.monotonic())
        with self._client.as_current(), suppress(TimeoutError):
            wait_for(list(self._jobs), timeout=left, return_when="FIRST_COMPLETED")
        trials = []
        for future in [future for future in self._jobs if future.done()]:
            job = self._jobs.pop(future)
            try:
                trials.append(future.result())
            except Exception as error:  # noqa: BLE001 - whatever Dask raises for a worker that died
                trial = failed(job, f"its worker was lost ({type(error).__name__})")
                write_trial(self._folder, trial)
                trials.append(trial)
        return trials

    def drop(self) -> None:
        with suppress(Exception):
            self._client.cancel(list(self._jobs))
        self._jobs = {}

    def close(self) -> None:
        self.drop()
        self._client.close()


def pool_of(bench: Bench) -> Pool:
    """Returns a pool on the cluster that the options name, otherwise on this machine. Raises ForestcError if it can't
    be started."""
    request = bench.material.request
    try:
        return DaskPool(bench, request.scheduler) if request.scheduler else LocalPool(bench, request.jobs)
    except OSError as error:
        raise ToolError(
            f"no workers can be started ({error})", where="this machine", do=f"give fewer {opt.jobs}"
        ) from None
