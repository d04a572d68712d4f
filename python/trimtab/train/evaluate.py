"""Judging a policy on the same connections as each algorithm alone and the best choice by forks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab._native import Course, Episodes
from trimtab.course import Settings
from trimtab.policy import Array, Policy
from trimtab.train.lessons import regrets
from trimtab.train.options import Training

#: Three minutes of periods of 12 s, as in Floo's section 5.1.
PERIODS = 15
#: Links of the test. A quarter as many generated Wi-Fi ones, of which no policy has learnt any.
GENERATED, WIFI = 48, 12
WIFI_KIND = "wifi"
#: Connections on which each choice is tried, and at one decision of how many.
TRIED_MOST, TRIED_EACH = 100, 3
#: Connections at a time.
BATCH = 50
#: What harm to others is measured by, and up to which share an algorithm counts as doing no more of it.
CUBIC, HARMLESS = "cubic", 0.01
#: How many rivals there are where a policy is judged next to them.
RIVALS = (1, 2, 4, 8)
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


def _samples(count: int) -> NDArray[np.int64]:
    """Draw samples of so many connections, the same each time."""
    return np.random.default_rng(SAMPLES_SEED).integers(count, size=(SAMPLES, count))


def _middle(values: Floats) -> tuple[float, float]:
    """Give what the middle 95% are between; of no values nothing is known."""
    low, high = np.percentile(values, [2.5, 97.5]) if len(values) else (np.nan, np.nan)
    return float(low), float(high)


@dataclass
class Ran:
    """What connections came to, one number for each that had a request."""

    times: Floats
    """Completion time in seconds, summed up over its requests."""
    lost: Floats
    """Share of its packets lost, mean over its periods."""
    rivals: Floats
    """MB that rivals received."""


@dataclass
class Judged:
    """Completion time in seconds of each connection, summed up by the training's objective, by who chose.

    `algorithms` are those that ran alone: the candidates, and others to compare with.
    """

    times: dict[str, Floats]
    algorithms: tuple[str, ...]
    lost: dict[str, Floats] = field(default_factory=dict)
    rivals: dict[str, Floats] = field(default_factory=dict)

    def harm(self, name: str) -> float:
        """Say what rivals receive less than next to CUBIC, as a share of it, over all connections."""
        cubic, own = self.rivals[CUBIC].sum(), self.rivals[name].sum()
        return float(1.0 - own / cubic) if cubic > 0 else 0.0

    def harm_of_each(self, name: str) -> float:
        """Say the same as a mean over connections, in which slow paths weigh as much as fast ones."""
        return float(self._shares_taken(name).mean())

    def harm_intervals(self, name: str) -> tuple[tuple[float, float], tuple[float, float]]:
        """Give the 95% intervals of `harm` and of `harm_of_each`, by resampling connections."""
        cubic, own, each = self.rivals[CUBIC], self.rivals[name], self._shares_taken(name)
        drawn = _samples(len(cubic))
        of_all = cubic[drawn].sum(axis=1)
        bytes_taken = 1.0 - own[drawn].sum(axis=1)[of_all > 0] / of_all[of_all > 0]
        return _middle(bytes_taken), _middle(each[drawn].mean(axis=1))

    def _shares_taken(self, name: str) -> Floats:
        cubic, own = self.rivals[CUBIC], self.rivals[name]
        return np.where(cubic > 0, 1.0 - own / np.where(cubic > 0, cubic, 1.0), 0.0)

    def best_harmless(self) -> str:
        """Name the best of the algorithms that do no more harm than CUBIC, by either count of it."""
        names = [
            name
            for name in dict.fromkeys((*self.algorithms, CUBIC))
            if max(self.harm(name), self.harm_of_each(name)) <= HARMLESS
        ]
        return min(names, key=lambda name: float(np.log(self.times[name]).mean()))

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

    def intervals(
        self, name: str, baseline: str | None = None
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Give the 95% intervals of the change from a baseline and of the share of the gap.

        The baseline is the best single algorithm unless one is named.

        They are by resampling connections. Samples in which the oracle gains nothing have no share.
        """
        best = np.log(self.times[baseline or self.best_single()])
        oracle = self.times.get("oracle", self.times[name])
        less, gap = best - np.log(self.times[name]), best - np.log(oracle)
        drawn = _samples(len(best))
        lesses, gaps = less[drawn].mean(axis=1), gap[drawn].mean(axis=1)
        shares = lesses[gaps > 0] / gaps[gaps > 0]
        return _middle(np.expm1(-lesses)), _middle(shares)


def judge_settings(settings: Training, periods: int = PERIODS, **changes: Any) -> Settings:
    """Draw links and conditions that training did not see: those for validation, or those of the test.

    Generated Wi-Fi is in the test alone; of recorded Wi-Fi the test has some where there are recordings.
    """
    if not settings.final:
        given = {"split": "validate", "periods": periods, "start": settings.first}
        return settings.course(**(given | changes))
    kinds = tuple(settings.kinds.split(","))
    if settings.traces is not None and (settings.traces / WIFI_KIND).is_dir() and WIFI_KIND not in kinds:
        kinds = (*kinds, WIFI_KIND)
    given = {"split": "test", "periods": periods, "start": settings.first, "generated": GENERATED}
    return settings.course(**(given | {"wifi": WIFI, "kinds": kinds} | changes))


def judge_course(settings: Training, periods: int = PERIODS) -> Course:
    """Give the course of `judge_settings`.

    Raises ValueError when a name is unknown or a recording cannot be read.
    """
    return judge_settings(settings, periods).course()


def evaluate(policy: Policy, settings: Training, course: Course) -> Judged:
    """Judge a policy on `settings.judge` connections, the same for everyone.

    Raises ValueError when none of them had a request.
    """
    ran = baselines(settings, course)
    ran["policy"] = run(
        course, by_policy(policy, course), settings.judge, sum_up=SUMMARIES[settings.objective]
    )
    return judged(ran, settings)


def by_policy(policy: Policy, course: Course) -> Chooser:
    """Choose as a policy does, by those features that it names.

    Raises ValueError when it names one that states do not have.
    """
    unknown = sorted({*policy.features} - {*course.features})
    if unknown:
        raise ValueError(f"the policy goes by {unknown[0]}, which states do not have: train it again")
    named = [course.features.index(name) for name in policy.features]
    return lambda _, states: [int(choice) for choice in policy.choose(states[:, named])]


def regret(policy: Policy, settings: Training, course: Course) -> tuple[float, float, float]:
    """Say how much worse than the best choice the policy's is, on connections that it chooses for.

    Gives the mean, as ln(waiting time) with the prices of loss and harm, and its 95% interval by
    resampling connections. At one decision of `TRIED_EACH` each choice is tried, for the horizon of
    the training.

    Raises ValueError when the policy names a feature that states do not have.
    """
    choose, count = by_policy(policy, course), min(settings.judge, TRIED_MOST)
    of_each: list[Floats] = []
    for begin in range(0, count, BATCH):
        seeds = list(range(begin, min(begin + BATCH, count)))
        episodes = Episodes(course, seeds)
        worse = []
        for period in range(PERIODS - 1):
            states = np.asarray(episodes.states(), np.float32).reshape(len(seeds), -1)
            choices = choose(episodes, states)
            if period % TRIED_EACH == 0:
                costs, lost, harm = (np.asarray(of) for of in episodes.outcomes(settings.horizon))
                priced = regrets(costs, settings.prices().of(lost, harm))
                worse.append(priced[np.arange(len(seeds)), choices])
            episodes.step(choices)
        of_each.append(np.mean(worse, axis=0, dtype=np.float64))
    each = np.concatenate(of_each)
    return (float(each.mean()), *_middle(each[_samples(len(each))].mean(axis=1)))


def always(number: int) -> Chooser:
    """Choose the same for all connections."""
    return lambda episodes, _: [number] * len(episodes)


def judged(ran: dict[str, Ran], settings: Training) -> Judged:
    """Compare what was run."""
    names = settings.singles()
    times = {name: of.times for name, of in ran.items()}
    times["static-best"] = np.min([times[name] for name in names], axis=0)
    lost = {name: of.lost for name, of in ran.items()}
    return Judged(times, names, lost, {name: of.rivals for name, of in ran.items()})


def baselines(settings: Training, course: Course) -> dict[str, Ran]:
    """Judge all that a policy is compared with: each algorithm alone, random choices, the oracle.

    Raises ValueError when none of the connections had a request.
    """
    random = np.random.default_rng(settings.seed)
    count = len(settings.names())
    sum_up = SUMMARIES[settings.objective]
    ran = singles(settings, settings.judge, sum_up)
    choosers: dict[str, Chooser] = {
        "random": lambda episodes, _: random.integers(count, size=len(episodes)).tolist(),
        "oracle": lambda episodes, _: np.argmin(episodes.costs(2), axis=1).tolist(),
    }
    ran |= {name: run(course, chooser, settings.judge, sum_up=sum_up) for name, chooser in choosers.items()}
    if not len(ran["random"].times):
        raise ValueError("none of the connections had a request: judge by more of them, or of longer periods")
    return ran


def singles(
    settings: Training, count: int, sum_up: Callable[[Floats], float], **changes: Any
) -> dict[str, Ran]:
    """Judge each algorithm alone, from the first packet on: candidates, those to compare with, and CUBIC."""
    names = dict.fromkeys((*settings.singles(), CUBIC))

    def alone(name: str) -> Ran:
        course = judge_settings(settings, algorithms=(name,), start=name, **changes).course()
        return run(course, always(0), count, sum_up=sum_up)

    return {name: alone(name) for name in names}


def next_to(policy: Policy, settings: Training, kind: str, count: int) -> Judged:
    """Judge a policy next to 1 to 8 rivals of one kind."""
    sum_up = SUMMARIES[settings.objective]
    among: dict[str, Any] = {"rivals": RIVALS, "rival_kinds": (kind,)}
    ran = singles(settings, count, sum_up, **among)
    course = judge_settings(settings, **among).course()
    ran["policy"] = run(course, by_policy(policy, course), count, sum_up=sum_up)
    return judged(ran, settings)


def next_to_each(policy: Policy, settings: Training) -> dict[str, Judged]:
    """Judge a policy that learnt among rivals next to each kind of them; the others not."""
    if not any(settings.course().rivals):
        return {}
    kinds = settings.course().rival_kinds
    count = max(1, settings.judge // len(kinds))
    return {kind: next_to(policy, settings, kind, count) for kind in kinds}


def run(
    course: Course,
    choose: Chooser,
    count: int,
    periods: int = PERIODS,
    sum_up: Callable[[Floats], float] = _mean,
) -> Ran:
    """Run `count` connections. One without any request says nothing, and says it of everyone."""
    means: list[float] = []
    lost: list[Floats] = []
    rivals: list[Floats] = []
    for begin in range(0, count, BATCH):
        seeds = list(range(begin, min(begin + BATCH, count)))
        episodes = Episodes(course, seeds)
        steps = []
        for _ in range(periods - 1):
            states = np.asarray(episodes.states(), np.float32).reshape(len(seeds), -1)
            steps.append(episodes.step(choose(episodes, states))[-2:])
        lost.append(np.mean([of for of, _ in steps], axis=0))
        rivals.append(np.sum([of for _, of in steps], axis=0))
        means += [sum_up(np.asarray(times)) if times else float("nan") for times in episodes.completions()]
    done = np.asarray(means)
    asked = ~np.isnan(done)
    return Ran(done[asked], np.concatenate(lost)[asked], np.concatenate(rivals)[asked])
