"""Connections that choose anew each period: with the future foreseen, with it drawn anew, and by a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab._native import Course, Episodes, came_to, redrawn_outcomes
from trimtab.bounds.constants import sum_up
from trimtab.bounds.store import Store
from trimtab.policy import Array
from trimtab.progress import Bar
from trimtab.train.lessons import Prices, regrets

#: Connections at a time, and so between two writes to the file.
BATCH = 20


@dataclass
class Seen:
    """What the monitors of some connections saw so far, and how many periods that is."""

    now: Array
    total: Array
    periods: int = 1
    choices: list[int] = field(default_factory=list)

    def inputs(self) -> Array:
        """Give a row for each connection: the last state, the mean of all, the number of periods."""
        count = np.full((len(self.now), 1), self.periods, np.float32)
        return np.hstack([self.now, self.total / np.float32(self.periods), count])

    @classmethod
    def of(cls, episodes: Episodes) -> Seen:
        """Begin with the first period."""
        states = states_of(episodes)
        return cls(states, states.copy(), choices=list(episodes.current()))

    def add(self, episodes: Episodes, choices: Sequence[int]) -> None:
        """Take in a period under these choices."""
        self.now = states_of(episodes)
        self.total = self.total + self.now
        self.periods += 1
        self.choices = list(choices)


def states_of(episodes: Episodes) -> Array:
    """Give what a policy sees, a row for each connection."""
    return np.asarray(episodes.states(), np.float32).reshape(len(episodes), -1)


#: Chooses for each connection; the number is that of the decision, for seeds.
Choose = Callable[[Episodes, Seen], Sequence[int]]


Tried = tuple[list[list[float]], list[list[float]], list[list[float]]]


def cheapest(tried: Tried, prices: Prices) -> list[int]:
    """Take the choice that costs least for each connection."""
    costs, lost, harm = (np.asarray(of, np.float64) for of in tried)
    return [int(choice) for choice in regrets(costs, prices.of(lost, harm)).argmin(axis=1)]


def foreseeing(horizon: int, prices: Prices) -> Choose:
    """Take what is best on forks of the world, which have its true future."""
    return lambda episodes, _: cheapest(episodes.outcomes(horizon), prices)


def averaging(horizon: int, prices: Prices, futures: int) -> Choose:
    """Take what is best on average over futures that are drawn anew."""

    def choose(episodes: Episodes, seen: Seen) -> Sequence[int]:
        return cheapest(redrawn_outcomes(episodes, horizon, futures, seen.periods), prices)

    return choose


def drive(
    kind: str, course: Course, starts: dict[int, int], *, periods: int, choose: Choose, store: Store
) -> dict[int, list[float]]:
    """Run connections, each begun with an algorithm of its own. Gives what is kept of each.

    What the store has of this kind is not run again.
    """
    missing = [seed for seed in starts if (kind, seed) not in store.rows]
    bar = Bar(kind, len(starts), len(starts) - len(missing))
    for begin in range(0, len(missing), BATCH):
        seeds = missing[begin : begin + BATCH]
        episodes = Episodes(course, seeds, [starts[seed] for seed in seeds])
        seen = Seen.of(episodes)
        for _ in range(periods - 1):
            choices = choose(episodes, seen)
            episodes.step(choices)
            seen.add(episodes, choices)
        came = zip(seeds, came_to(episodes), strict=True)
        store.add(((kind, seed), sum_up(of)) for seed, of in came)
        bar.advance(len(seeds))
    return {seed: store.rows[kind, seed] for seed in starts}
