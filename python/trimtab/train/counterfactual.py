"""Learning from what each choice would have cost.

The simulator forks, so at every decision each algorithm is tried for the next periods on a copy of the world.
The states are those of the learner's own runs, and all that was seen so far is learnt from (DAgger: Ross,
Gordon and Bagnell, AISTATS 2011); what the policy is to prefer goes by the cost, so that a wrong choice
counts by how much worse it is (cost-sensitive learning). What choices lose and what they take from rivals is
measured, too, and priced when the policy is fitted: `lessons.py`.

An ensemble is fitted, each member on a bootstrap sample of the connections. It leaves what runs only where
the advantage is sure: `policy.py`. While it explores it is of networks, which learn on from what they were.
In the end trees may be fitted in their place: `forest.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorboard.summary import Writer

from trimtab._native import Course, Episodes
from trimtab.envs import SEEDS
from trimtab.forest import Forest
from trimtab.policy import Array, Networks, Policy, Scaler, known_range
from trimtab.train import checkpoint as checkpoints
from trimtab.train.actor import Actor
from trimtab.train.cluster import Connections
from trimtab.train.lessons import Lessons, lessons, regrets
from trimtab.train.options import Training
from trimtab.train.teacher import Teacher

#: How often a connection leaves the learner's choices for a random one, and how often it comes back: the
#: learner must know the states that other algorithms lead to. In the first rounds all choices are random.
STRAY, RETURN = 0.1, 0.3
WARM_UP = 0.1
#: Share of the decisions at which the choices are tried. Decisions of one connection resemble each other, so
#: the same effort tells more on more connections.
TRIED = 1 / 3
#: Minibatches after each round, their size, and the step; and those of the last fit, whose step fades out.
ROUND_BATCHES, LAST_BATCHES, BATCH = 40, 5_000, 512
RATE = 1e-3
#: Noise on the inputs while learning, relative to their spread of 1: what is best here is best nearby.
BLUR = 0.3
#: Rounds between two checkpoints.
CHECKPOINT = 20


def collect(
    course: Course,
    seeds: list[int],
    tries: list[bool],
    teacher: Teacher,
    choose: Callable[[Array], list[int]],
) -> Lessons:
    """Run connections by `choose`, a period for each of `tries`, and try every choice where it is true."""
    episodes = Episodes(course, seeds)
    teacher.begin(episodes, seeds)
    states, outcomes = [], []
    for decision, is_tried in enumerate(tries):
        seen = np.asarray(episodes.states(), np.float32).reshape(len(seeds), -1)
        if is_tried:
            for tried in teacher.outcomes(episodes, decision):
                states.append(seen)
                outcomes.append(tried)
        episodes.step(choose(seen))
        teacher.observe(episodes)
    return lessons(seeds, states, outcomes)


class Ensemble:
    """Members that learn the same, each from its own sample of the connections."""

    def __init__(self, seen: Lessons, settings: Training, random: np.random.Generator, batches: int) -> None:
        self.settings, self.random = settings, random
        self.scaler = Scaler.of(seen.states)
        inputs, outputs = seen.states.shape[1], seen.costs.shape[1]
        self.members = [Actor(inputs, outputs, random) for _ in range(settings.members)]
        #: A connection counts in a member as often as a bootstrap sample has it: by a seed of both.
        self.seeds = random.integers(2**32, size=settings.members)
        self.learn(seen, batches, fade=True)

    def learn(self, seen: Lessons, batches: int, *, fade: bool) -> float:
        """Take so many steps with each member; gives the mean regret of what they prefer, over them."""
        inputs, costs = self.scaler(seen.states), self._priced(seen)
        total = 0.0
        for member, seed in zip(self.members, self.seeds, strict=True):
            rows = self._sample(seen, int(seed))
            for step in range(batches):
                some = rows[self.random.integers(len(rows), size=BATCH)]
                rate = RATE * 0.5 * (1 + math.cos(math.pi * step / batches)) if fade else RATE
                noise = BLUR * self.random.standard_normal((BATCH, inputs.shape[1]), np.float32)
                total += member.learn(inputs[some] + noise, costs[some], rate)
        return total / max(batches * len(self.members), 1)

    def _priced(self, seen: Lessons) -> Array:
        return regrets(seen.costs, self.settings.prices().of(seen.lost, seen.harm))

    def _sample(self, seen: Lessons, seed: int) -> NDArray[np.int64]:
        """Give the rows of a bootstrap sample of the connections; all of them to a single member."""
        if len(self.members) == 1:
            return np.arange(len(seen.states))
        known, which = np.unique(seen.connection, return_inverse=True)
        # The same connection counts alike however many come after it.
        often = np.asarray([np.random.default_rng((seed, int(c))).poisson() for c in known])
        rows = np.repeat(np.arange(len(seen.states)), often[which])
        return rows if len(rows) else np.arange(len(seen.states))

    def best(self, states: Array) -> NDArray[np.int64]:
        """Choose what they prefer on average."""
        inputs = self.scaler(states)
        of_members = np.asarray([member.preferences(inputs) for member in self.members])
        best: NDArray[np.int64] = of_members.mean(axis=0).argmax(axis=1)
        return best

    def policy(self, seen: Lessons, features: tuple[str, ...]) -> Policy:
        """Give what is used: these networks, or trees that learn the same from the same samples."""
        settings = self.settings
        about: dict[str, Any] = {
            "caution": settings.caution,
            "margin": settings.margin,
            "features": features,
            "algorithms": settings.names(),
            "period_ms": settings.period_ms,
            "first": settings.first,
        }
        if not settings.trees:
            w1, b1, w2, b2 = (np.stack([m.weights[i] for m in self.members]) for i in range(4))
            return Networks(w1=w1, b1=b1, w2=w2, b2=b2, scaler=self.scaler, **about)
        costs = self._priced(seen)
        # What a choice is worth compared with all, so that leaves tell choices apart and not paths.
        worths = costs.mean(axis=1, keepdims=True) - costs
        rows = [self._sample(seen, int(seed)) for seed in self.seeds]
        low, high = known_range(seen.states)
        return Forest.fit(
            [(seen.states[of], worths[of]) for of in rows],
            trees=settings.trees,
            leaves=settings.leaves,
            random=self.random,
            low=low,
            high=high,
            **about,
        )


class Explorer:
    """Chooses for the connections of one round: by the learner with excursions; at random without one."""

    def __init__(
        self, learnt: Ensemble | None, outputs: int, connections: int, random: np.random.Generator
    ) -> None:
        self.learnt, self.outputs, self.random = learnt, outputs, random
        self.astray = np.full(connections, learnt is None)
        self.choice = random.integers(outputs, size=connections)

    def __call__(self, states: Array) -> list[int]:
        """Choose."""
        count = len(states)
        leaves = self.random.random(count) < (RETURN if self.learnt is None else STRAY)
        returns = self.random.random(count) < RETURN
        self.choice = np.where(leaves, self.random.integers(self.outputs, size=count), self.choice)
        self.astray = leaves | (self.astray & ~returns)
        if self.learnt is None:
            return [int(a) for a in self.choice]
        return [int(a) for a in np.where(self.astray, self.choice, self.learnt.best(states))]


def train(settings: Training) -> tuple[Policy, dict[str, Any]]:
    """Learn a policy. Gives it, and what the card says of the training.

    Raises ValueError when a setting makes no sense.
    """
    chosen = settings.course()
    course = chosen.course()
    teacher = Teacher(settings, course)
    outputs = len(chosen.algorithms)
    random = np.random.default_rng(settings.seed)
    rounds = max(2, math.ceil(settings.count() / settings.parallel))
    workers = _workers(settings)
    seen: Lessons | None = None
    learnt: Ensemble | None = None
    done, seconds, tried = 0, 0.0, 0
    checkpoint = settings.out / "checkpoint.npz"
    if settings.resume:
        seen, done, seconds, tried = _load(checkpoint, settings)
        checkpoints.must_not_be_past(checkpoint, done, rounds)
        random = np.random.default_rng((settings.seed, done))
        print(f"goes on after round {done} of {rounds}")
        if done < rounds:
            learnt = Ensemble(seen, settings, random, min(LAST_BATCHES, ROUND_BATCHES * done))
    settings.out.mkdir(parents=True, exist_ok=True)
    writer = Writer(str(settings.out / "logs"))
    for number in range(done, rounds):
        start = time.perf_counter()
        choose = Explorer(learnt, outputs, settings.parallel, random)
        seeds = [int(s) for s in random.integers(SEEDS, size=settings.parallel)]
        tries = random.random(chosen.periods - 1) < TRIED
        tries[random.integers(len(tries))] = True
        tried += settings.parallel * (
            len(tries) + int(tries.sum()) * outputs * settings.horizon * settings.futures
        )
        last = workers(course, seeds, tries.tolist(), teacher, choose)
        seen = last if seen is None else Lessons.joined([seen, last])
        regret = float("nan")
        if number + 1 >= WARM_UP * rounds:
            if learnt is None:
                learnt = Ensemble(seen, settings, random, ROUND_BATCHES)
            regret = learnt.learn(seen, ROUND_BATCHES, fade=False)
        seconds += time.perf_counter() - start
        _log(writer, number, last, regret, seconds)
        if (number + 1) % CHECKPOINT == 0 or number + 1 == rounds:
            about = checkpoints.write_settings(settings)
            seen.save(
                checkpoint, progress=np.asarray((number + 1, seconds, tried)), settings=np.asarray(about)
            )
            so_far = f"{len(seen.states)} decisions, expected regret {regret:.4f}, {seconds:.0f} s"
            print(f"round {number + 1} of {rounds}: {so_far}", flush=True)
    assert seen is not None, "there are two rounds at least"
    seen = Lessons.joined([seen, *_others(settings)])
    start = time.perf_counter()
    batches = 0 if settings.trees else min(LAST_BATCHES, ROUND_BATCHES * rounds)
    policy = Ensemble(seen, settings, random, batches).policy(seen, tuple(course.features))
    seconds += time.perf_counter() - start
    writer.close()
    return policy, {"seconds": seconds, "decisions": len(seen.states), "periods": tried}


def _workers(settings: Training) -> Callable[..., Lessons]:
    if not settings.ray:
        return collect
    return Connections(settings).collect


def _log(writer: Any, number: int, last: Lessons, regret: float, seconds: float) -> None:
    writer.add_scalar("seconds", seconds, number)
    writer.add_scalar("regret/best_constant", float(regrets(last.costs).mean(axis=0).min()), number)
    writer.add_scalar("lost", float(last.lost.mean()), number)
    writer.add_scalar("harm", float(last.harm.mean()), number)
    if not math.isnan(regret):
        writer.add_scalar("regret/expected", regret, number)


def _others(settings: Training) -> list[Lessons]:
    """Read the lessons of other trainings."""
    others = []
    for folder in settings.also.split(",") if settings.also else []:
        path = Path(folder) / "checkpoint.npz"
        checkpoints.must_exist(path)
        with np.load(path) as saved:
            written = str(saved["settings"]) if "settings" in saved else None
            checkpoints.must_fit_together(path, written, settings)
            others.append(Lessons(**{name: saved[name] for name in Lessons.__dataclass_fields__}))
    return others


def _load(path: Path, settings: Training) -> tuple[Lessons, int, float, int]:
    checkpoints.must_exist(path)
    with np.load(path) as saved:
        checkpoints.must_fit(path, str(saved["settings"]) if "settings" in saved else None, settings)
        done, seconds, periods = saved["progress"].tolist()
        seen = Lessons(**{name: saved[name] for name in Lessons.__dataclass_fields__})
        return seen, int(done), seconds, int(periods)
