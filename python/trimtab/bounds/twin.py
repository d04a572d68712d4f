"""A digital twin that chooses: by what choices come to in the worlds that a connection may run in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab._native import Course, Episodes, TwinPrior, Twins
from trimtab.bounds.constants import Floats
from trimtab.bounds.drive import Seen
from trimtab.bounds.store import Store
from trimtab.train.lessons import Prices, regrets
from trimtab.train.teacher import MEASURED

#: Standard errors over the worlds that are taken off a switch's advantage, and what a switch costs, as
#: ln(completion time).
CAUTION, MARGIN = 1.0, 0.02


def sure(costs: Floats, now: Sequence[int]) -> list[int]:
    """Choose for each connection, by logarithms of costs by connection, world and choice.

    What runs `now` goes on, unless another choice is better by more than a switch costs, less `CAUTION`
    standard errors.
    """
    running = np.asarray(now)
    better = np.take_along_axis(costs, running[:, None, None], axis=2) - costs
    worlds = costs.shape[1]
    errors = better.std(axis=1, ddof=1) / np.sqrt(worlds) if worlds > 1 else 0.0
    advantage = better.mean(axis=1) - CAUTION * errors
    best = advantage.argmax(axis=1)
    is_sure = np.take_along_axis(advantage, best[:, None], axis=1)[:, 0] > MARGIN
    return [int(choice) for choice in np.where(is_sure, best, running)]


@dataclass
class TwinChooser:
    """Chooses by a twin of each connection."""

    course: Course
    """What the worlds are drawn from: paths to learn on."""
    particles: int
    horizon: int
    prices: Prices
    seconds: float = 0.0
    """CPU time that was spent on choosing."""
    decisions: int = 0
    prior: TwinPrior | None = None
    twins: Twins | None = field(default=None, repr=False)

    def __call__(self, episodes: Episodes, seen: Seen) -> list[int]:
        """Take in what was seen, and choose."""
        if self.prior is None:
            self.prior = TwinPrior(self.course, MEASURED)
        began = time.process_time()
        if self.twins is None or seen.periods == 1:
            self.twins = Twins(self.prior, episodes, self.particles, 1)
        else:
            self.twins.observe(episodes)
        worlds = self.twins.worlds(episodes, seen.periods)
        costs, lost, harm = (np.asarray(of, np.float64) for of in worlds.outcomes(self.horizon))
        worse = regrets(costs, self.prices.of(lost, harm)).astype(np.float64)
        choices = sure(worse.reshape(len(episodes), self.particles, -1), seen.choices)
        self.seconds += time.process_time() - began
        self.decisions += len(episodes)
        return choices

    def seconds_each(self, kind: str, store: Store) -> float:
        """Give the CPU time of a decision in seconds, over all times that the command ran; keep it."""
        kept = [value for key, value in store.rows.items() if key[0] == f"{kind}, seconds"]
        if self.decisions:
            row = [self.seconds, float(self.decisions)]
            store.add([((f"{kind}, seconds", len(kept)), row)])
            kept.append(row)
        seconds, decisions = np.asarray(kept, np.float64).reshape(-1, 2).sum(axis=0)
        return float(seconds / max(decisions, 1.0))
