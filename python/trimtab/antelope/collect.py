"""What is learnt from: at decisions of connections under way, what each algorithm would be worth next.

The paper runs connections under one algorithm after another and keeps what each interval was worth to the one
that ran. The simulator forks, so here every algorithm runs the same next interval on a copy of the world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trimtab._native import Course, Episodes
from trimtab.antelope.boosted import Boosted, Chooser, Floats
from trimtab.envs import SEEDS
from trimtab.policy import Array
from trimtab.train.options import Training

#: Decisions of a connection at which the algorithms are tried, on average: those of one resemble each other.
TRIED = 15
#: How often a connection leaves what it runs for a random choice: six times in three minutes, so that the
#: models know the states that other algorithms lead to.
LEAVES_PER_SECOND = 1 / 30

Choose = Callable[[Episodes, Array], list[int]]


@dataclass
class Lessons:
    """What was seen: inputs, and what each algorithm was worth."""

    inputs: Array
    rewards: Floats

    @classmethod
    def join(cls, parts: list[Lessons]) -> Lessons:
        """Put them together."""
        return cls(np.concatenate([p.inputs for p in parts]), np.concatenate([p.rewards for p in parts]))


class Wanderer:
    """Chooses for the connections of one round: by the models with excursions; at random without any."""

    def __init__(self, model: Boosted | None, count: int, stray: float, random: np.random.Generator) -> None:
        self.learnt = None if model is None else Chooser(model)
        self.count, self.stray, self.random = count, stray, random
        self.astray: dict[int, int] = {}

    def __call__(self, episodes: Episodes, states: Array) -> list[int]:
        """Choose for each."""
        choices = list(episodes.current()) if self.learnt is None else self.learnt(episodes, states)
        for i in range(len(choices)):
            if self.random.random() < self.stray:
                self.astray[i] = int(self.random.integers(self.count))
            elif self.learnt is not None and self.random.random() < self.stray:
                self.astray.pop(i, None)
            choices[i] = self.astray.get(i, choices[i])
        return choices


def collect(
    course: Course,
    training: Training,
    connections: int,
    random: np.random.Generator,
    model: Boosted | None = None,
) -> Lessons:
    """Run new connections of a course, and try all algorithms here and there."""
    periods, count = training.periods, len(training.names())
    episodes = Episodes(course, [int(seed) for seed in random.integers(SEEDS, size=connections)])
    choose = Wanderer(model, count, LEAVES_PER_SECOND * training.period_ms / 1000, random)
    tries = random.random(periods - 1) < TRIED / (periods - 1)
    tries[random.integers(len(tries))] = True
    inputs, rewards = [], []
    nothing = np.zeros((connections, 0), np.float32)
    for is_tried in tries:
        if is_tried:
            flat, enough = episodes.measured()
            seen = np.asarray(flat, np.float32).reshape(connections, -1)
            worth = episodes.rewards()
            kept = [i for i in range(connections) if enough[i] and worth[i]]
            inputs.append(seen[kept])
            rewards.append(np.asarray([worth[i] for i in kept], np.float64).reshape(len(kept), count))
        episodes.step(choose(episodes, nothing))
    return Lessons(np.concatenate(inputs), np.concatenate(rewards))
