"""Learning from what each choice would have cost.

The simulator forks, so at every decision each algorithm is tried for the next periods on a copy of the world.
The states are those of the learner's own runs, and all that was seen so far is learnt from (DAgger: Ross,
Gordon and Bagnell, AISTATS 2011); what the policy is to prefer goes by the cost, so that a wrong choice
counts by how much worse it is (cost-sensitive classification).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorboard.summary import Writer

from trimtab._native import Course, Episodes
from trimtab.envs import SEEDS
from trimtab.policy import Array, Policy, Scaler
from trimtab.train import checkpoint as checkpoints
from trimtab.train.actor import Actor
from trimtab.train.options import Training

#: A choice is compared by the logarithm of what it costs, so that slow paths do not outweigh all others.
#: Below this many seconds of waiting in all, differences do not matter; no choice is worse than e^3 times.
COST_FLOOR_S = 0.002
REGRET_MAX = 3.0
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


@dataclass
class Lessons:
    """What was seen: states, and what each choice would have cost in seconds of waiting."""

    states: Array
    costs: NDArray[np.float64]


def regrets(costs: NDArray[np.float64]) -> Array:
    """Say how much worse than the best each choice is, as the logarithm of the ratio."""
    logs = np.log(costs + COST_FLOOR_S)
    worse = logs - logs.min(axis=1, keepdims=True)
    return np.asarray(np.minimum(worse, REGRET_MAX), np.float32)


def collect(
    course: Course, seeds: list[int], tries: list[bool], horizon: int, choose: Callable[[Array], list[int]]
) -> Lessons:
    """Run connections by `choose`, a period for each of `tries`, and try every choice where it is true."""
    episodes = Episodes(course, seeds)
    states, costs = [], []
    for is_tried in tries:
        seen = np.asarray(episodes.states(), np.float32).reshape(len(seeds), -1)
        if is_tried:
            states.append(seen)
            costs.append(np.asarray(episodes.costs(horizon)))
        episodes.step(choose(seen))
    return Lessons(np.concatenate(states), np.concatenate(costs))


class Explorer:
    """Chooses for the connections of one round: by the actor with excursions; at random without an actor."""

    def __init__(
        self,
        learnt: tuple[Actor, Scaler] | None,
        outputs: int,
        connections: int,
        random: np.random.Generator,
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
        actor, scaler = self.learnt
        best = actor.preferences(scaler(states)).argmax(axis=1)
        return [int(a) for a in np.where(self.astray, self.choice, best)]


def train(settings: Training) -> tuple[Policy, dict[str, Any]]:
    """Learn a policy. Gives it, and what the card says of the training.

    Raises ValueError when a setting makes no sense.
    """
    chosen = settings.course()
    course = chosen.course()
    outputs = len(chosen.algorithms)
    random = np.random.default_rng(settings.seed)
    rounds = max(2, math.ceil(settings.count() / settings.parallel))
    workers = _workers(settings)
    lessons: list[Lessons] = []
    actor, scaler, done, seconds, tried = None, None, 0, 0.0, 0
    checkpoint = settings.out / "checkpoint.npz"
    if settings.resume:
        lessons, done, seconds, tried = _load(checkpoint, settings)
        checkpoints.must_not_be_past(checkpoint, done, rounds)
        random = np.random.default_rng((settings.seed, done))
        actor, scaler = _fit(lessons, outputs, random, ROUND_BATCHES * done)
        print(f"goes on after round {done} of {rounds}")
    settings.out.mkdir(parents=True, exist_ok=True)
    writer = Writer(str(settings.out / "logs"))
    for number in range(done, rounds):
        start = time.perf_counter()
        learnt = (actor, scaler) if actor is not None and scaler is not None else None
        choose = Explorer(learnt, outputs, settings.parallel, random)
        seeds = [int(s) for s in random.integers(SEEDS, size=settings.parallel)]
        tries = random.random(chosen.periods - 1) < TRIED
        tries[random.integers(len(tries))] = True
        tried += settings.parallel * (len(tries) + int(tries.sum()) * outputs * settings.horizon)
        lessons.append(workers(course, seeds, tries.tolist(), settings.horizon, choose))
        loss = float("nan")
        if number + 1 >= WARM_UP * rounds:
            if actor is None or scaler is None:
                actor, scaler = _fit(lessons, outputs, random, ROUND_BATCHES)
            loss = _batches(actor, scaler, lessons, random, ROUND_BATCHES, fade=False)
        seconds += time.perf_counter() - start
        _log(writer, number, lessons, loss, seconds)
        if (number + 1) % CHECKPOINT == 0 or number + 1 == rounds:
            _save(checkpoint, lessons, (number + 1, seconds, tried), settings)
            count = sum(len(lesson.states) for lesson in lessons)
            so_far = f"{count} decisions, expected regret {loss:.4f}, {seconds:.0f} s"
            print(f"round {number + 1} of {rounds}: {so_far}")
    start = time.perf_counter()
    actor, scaler = _fit(lessons, outputs, random, min(LAST_BATCHES, ROUND_BATCHES * rounds))
    seconds += time.perf_counter() - start
    writer.close()
    w1, b1, w2, b2 = actor.weights
    policy = Policy(
        w1,
        b1,
        w2,
        b2,
        scaler,
        features=tuple(course.features),
        algorithms=chosen.algorithms,
        period_ms=chosen.period_ms,
        first=settings.first,
    )
    decisions = sum(len(lesson.states) for lesson in lessons)
    return policy, {"seconds": seconds, "decisions": decisions, "periods": tried}


def _workers(settings: Training) -> Callable[..., Lessons]:
    if not settings.ray:
        return collect
    from trimtab.train.cluster import Cluster  # noqa: PLC0415 - an extra

    return Cluster(settings).collect


def _fit(
    lessons: list[Lessons], outputs: int, random: np.random.Generator, batches: int
) -> tuple[Actor, Scaler]:
    """Learn anew from everything."""
    states = np.concatenate([lesson.states for lesson in lessons])
    scaler = Scaler.of(states)
    actor = Actor(states.shape[1], outputs, random)
    _batches(actor, scaler, lessons, random, batches, fade=True)
    return actor, scaler


def _batches(
    actor: Actor,
    scaler: Scaler,
    lessons: list[Lessons],
    random: np.random.Generator,
    batches: int,
    *,
    fade: bool,
) -> float:
    """Take so many steps; gives the mean expected regret over them."""
    inputs = scaler(np.concatenate([lesson.states for lesson in lessons]))
    costs = regrets(np.concatenate([lesson.costs for lesson in lessons]))
    total = 0.0
    for step in range(batches):
        some = random.integers(len(inputs), size=BATCH)
        rate = RATE * 0.5 * (1 + math.cos(math.pi * step / batches)) if fade else RATE
        noise = BLUR * random.standard_normal((BATCH, inputs.shape[1]), np.float32)
        total += actor.learn(inputs[some] + noise, costs[some], rate)
    return total / max(batches, 1)


def _log(writer: Any, number: int, lessons: list[Lessons], loss: float, seconds: float) -> None:
    last = regrets(lessons[-1].costs)
    writer.add_scalar("seconds", seconds, number)
    writer.add_scalar("regret/best_constant", float(last.mean(axis=0).min()), number)
    if not math.isnan(loss):
        writer.add_scalar("regret/expected", loss, number)


def _save(path: Path, lessons: list[Lessons], progress: tuple[int, float, int], settings: Training) -> None:
    # Whole or not at all: a training may be stopped at any time.
    part = path.with_suffix(".part.npz")
    np.savez(
        part,
        states=np.concatenate([lesson.states for lesson in lessons]),
        costs=np.concatenate([lesson.costs for lesson in lessons]),
        progress=np.asarray(progress),
        settings=np.asarray(checkpoints.write_settings(settings)),
    )
    part.replace(path)


def _load(path: Path, settings: Training) -> tuple[list[Lessons], int, float, int]:
    checkpoints.must_exist(path)
    with np.load(path) as saved:
        checkpoints.must_fit(path, str(saved["settings"]) if "settings" in saved else None, settings)
        done, seconds, periods = saved["progress"].tolist()
        return [Lessons(saved["states"], saved["costs"])], int(done), seconds, int(periods)
