"""Judging a policy on the same connections as each algorithm alone and the best choice by forks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab._native import Course, Episodes
from trimtab.policy import Array, Policy
from trimtab.train.options import Training

#: Three minutes of periods of 12 s, as in Floo's section 5.1.
PERIODS = 15
#: Links of the test. A quarter as many generated Wi-Fi ones, of which no policy has learnt any.
GENERATED, WIFI = 48, 12
WIFI_KIND = "wifi"
#: Connections at a time.
BATCH = 50
#: Samples of connections, drawn with replacement, that an interval is made of, and their seed.
SAMPLES, SAMPLES_SEED = 2_000, 1

Floats = NDArray[np.float64]
Chooser = Callable[[Episodes, Array], Sequence[int]]


def _mean(times: Floats) -> float:
    return float(times.mean())


def _p90(times: Floats) -> float:
    return float(np.percentile(times, 90))


#: By the objective of a training, what its policy is judged by.
SUMMARIES: dict[str, Callable[[Floats], float]] = {"mean": _mean, "p90": _p90}


@dataclass
class Judged:
    """Completion time in seconds of each connection, summed up by the training's objective, by who chose."""

    times: dict[str, Floats]
    algorithms: tuple[str, ...]

    def best_single(self) -> str:
        """Name the algorithm that is best over all connections, by ratio."""
        return min(self.algorithms, key=lambda name: float(np.log(self.times[name]).mean()))

    def change(self, name: str, baseline: str) -> float:
        """Compare completion times by ratio, on average: -0.1 is a tenth less."""
        ratio = np.log(self.times[name]) - np.log(self.times[baseline])
        return float(np.exp(ratio.mean()) - 1.0)

    def closed(self, name: str) -> float:
        """Say how much of the gap between the best single algorithm and the oracle is closed, by ratio."""
        logs = {key: float(np.log(self.times[key]).mean()) for key in (name, self.best_single(), "oracle")}
        gap = logs[self.best_single()] - logs["oracle"]
        return (logs[self.best_single()] - logs[name]) / gap if gap > 0 else float("nan")

    def intervals(self, name: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Give the 95% intervals of the change from the best single algorithm and of the share of the gap.

        They are by resampling connections. Samples in which the oracle gains nothing have no share.
        """
        best = np.log(self.times[self.best_single()])
        less, gap = best - np.log(self.times[name]), best - np.log(self.times["oracle"])
        random = np.random.default_rng(SAMPLES_SEED)
        drawn = random.integers(len(best), size=(SAMPLES, len(best)))
        lesses, gaps = less[drawn].mean(axis=1), gap[drawn].mean(axis=1)
        shares = lesses[gaps > 0] / gaps[gaps > 0]

        def middle(values: Floats) -> tuple[float, float]:
            low, high = np.percentile(values, [2.5, 97.5]) if len(values) else (np.nan, np.nan)
            return float(low), float(high)

        return middle(np.expm1(-lesses)), middle(shares)


def judge_course(settings: Training, periods: int = PERIODS) -> Course:
    """Draw links and conditions that training did not see: those for validation, or those of the test.

    Wi-Fi is in the test alone; recorded Wi-Fi where there are recordings.
    """
    if not settings.final:
        return settings.course(split="validate", periods=periods, start=settings.first).course()
    kinds = tuple(settings.kinds.split(","))
    if settings.traces is not None and (settings.traces / WIFI_KIND).is_dir():
        kinds = (*kinds, WIFI_KIND)
    changes = {"split": "test", "periods": periods, "start": settings.first, "generated": GENERATED}
    return settings.course(**changes, wifi=WIFI, kinds=kinds).course()


def evaluate(policy: Policy, settings: Training, course: Course) -> Judged:
    """Judge a policy on `settings.judge` connections, the same for everyone.

    Raises ValueError when none of them had a request.
    """
    times = baselines(settings, course)

    def choose(_: Episodes, states: Array) -> Sequence[int]:
        return [int(choice) for choice in policy.choose(states)]

    times["policy"] = run(course, choose, settings.judge, sum_up=SUMMARIES[settings.objective])
    return Judged(times, policy.algorithms)


def baselines(settings: Training, course: Course) -> dict[str, Floats]:
    """Judge all that a policy is compared with: each algorithm alone, random choices, the bounds.

    Raises ValueError when none of the connections had a request.
    """
    random = np.random.default_rng(settings.seed)
    names = settings.names()

    def always(number: int) -> Chooser:
        return lambda episodes, _: [number] * len(episodes)

    choosers: dict[str, Chooser] = {name: always(i) for i, name in enumerate(names)}
    choosers["random"] = lambda episodes, _: random.integers(len(names), size=len(episodes)).tolist()
    choosers["oracle"] = lambda episodes, _: np.argmin(episodes.costs(2), axis=1).tolist()
    sum_up = SUMMARIES[settings.objective]
    times = {name: run(course, chooser, settings.judge, sum_up=sum_up) for name, chooser in choosers.items()}
    if not len(times["random"]):
        raise ValueError("none of the connections had a request: judge by more of them, or of longer periods")
    times["static-best"] = np.min([times[name] for name in names], axis=0)
    return times


def run(
    course: Course,
    choose: Chooser,
    count: int,
    periods: int = PERIODS,
    sum_up: Callable[[Floats], float] = _mean,
) -> Floats:
    """Give the completion time of each of `count` connections, summed up over its requests."""
    means: list[float] = []
    for begin in range(0, count, BATCH):
        seeds = list(range(begin, min(begin + BATCH, count)))
        episodes = Episodes(course, seeds)
        for _ in range(periods - 1):
            states = np.asarray(episodes.states(), np.float32).reshape(len(seeds), -1)
            episodes.step(choose(episodes, states))
        means += [sum_up(np.asarray(times)) if times else float("nan") for times in episodes.completions()]
    done = np.asarray(means)
    # A connection without any request says nothing, and says it of everyone.
    return np.asarray(done[~np.isnan(done)], np.float64)
