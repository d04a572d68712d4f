"""What a monitor's states tell of the candidates' costs: boosted trees, fitted on paths to learn on.

What this chooses any policy could that sees the same. So what it gains bounds from below what a policy can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from trimtab._native import Course, Episodes
from trimtab.bounds.constants import Floats
from trimtab.bounds.drive import Choose, Seen
from trimtab.bounds.store import Store
from trimtab.policy import Array
from trimtab.progress import Bar
from trimtab.train.counterfactual import RETURN, TRIED
from trimtab.train.lessons import Prices, regrets

#: Connections at a time.
BATCH = 50
#: The first half of the connections chooses at random, the second by what the first told, with excursions.
STRAY = 0.1
#: Boosting: few leaves and slow steps, for costs are noisy.
BOOSTING: dict[str, Any] = {
    "learning_rate": 0.05,
    "max_iter": 200,
    "max_leaf_nodes": 12,
    "min_samples_leaf": 40,
    "l2_regularization": 1.0,
    "random_state": 1,
}


@dataclass
class Foretold:
    """A regression of each candidate's cost, vs. the mean of all."""

    models: list[HistGradientBoostingRegressor]

    @classmethod
    def fit(cls, inputs: Array, worse: Array) -> Foretold:
        """Fit on decisions: what was seen, and how much worse than the best each candidate was."""
        relative = worse - worse.mean(axis=1, keepdims=True)
        # Few lessons: where other programs run, too, several threads spend their time waiting for each other.
        with threadpool_limits(1):
            return cls([HistGradientBoostingRegressor(**BOOSTING).fit(inputs, of) for of in relative.T])

    def costs(self, inputs: Array) -> Floats:
        """Foretell."""
        with threadpool_limits(1):
            return np.stack([model.predict(inputs) for model in self.models], axis=1)

    def chooser(self) -> Choose:
        """Choose by what is foretold."""
        return lambda _, seen: [int(choice) for choice in self.costs(seen.inputs()).argmin(axis=1)]


@dataclass
class Lessons:
    """What is tried, and where it is kept."""

    course: Course
    candidates: int
    periods: int
    horizon: int
    prices: Prices
    store: Store

    def collect(self, count: int) -> Foretold:
        """Run `count` connections, try every candidate here and there, and fit.

        What the store has is not run again.
        """
        ends = [(begin, min(begin + BATCH, count)) for begin in range(0, count, BATCH)]
        missing = [of for of in ends if ("done", *of) not in self.store.rows]
        bar = Bar("lessons", count, count - sum(end - begin for begin, end in missing))
        model: Foretold | None = None
        for begin, end in missing:
            if begin >= count // 2 and model is None:
                model = self._fitted(begin)
            self._run(list(range(begin, end)), model)
            self.store.add([(("done", begin, end), [])])
            bar.advance(end - begin)
        return self._fitted(count)

    def _fitted(self, before: int) -> Foretold:
        rows = [value for key, value in self.store.rows.items() if key[0] != "done" and key[0] < before]
        inputs = np.asarray([row[0] for row in rows], np.float32)
        costs, lost, harm = (np.asarray([row[i] for row in rows], np.float64) for i in (1, 2, 3))
        return Foretold.fit(inputs, regrets(costs, self.prices.of(lost, harm)))

    def _run(self, seeds: list[int], model: Foretold | None) -> None:
        random = np.random.default_rng((1, seeds[0]))
        tries = random.random(self.periods - 1) < TRIED
        tries[random.integers(len(tries))] = True
        episodes = Episodes(self.course, seeds)
        seen = Seen.of(episodes)
        astray = np.full(len(seeds), model is None)
        choices = np.asarray(episodes.current())
        for period, is_tried in enumerate(tries):
            if is_tried:
                tried, inputs = episodes.outcomes(self.horizon), seen.inputs()
                rows = zip(seeds, inputs.tolist(), *tried, strict=True)
                self.store.add(((seed, period), list(row)) for seed, *row in rows)
            leaves = random.random(len(seeds)) < (RETURN if model is None else STRAY)
            back = random.random(len(seeds)) < RETURN
            choices = np.where(leaves, random.integers(self.candidates, size=len(seeds)), choices)
            if model is not None:
                astray = leaves | (astray & ~back)
                choices = np.where(astray, choices, model.chooser()(episodes, seen))
            episodes.step(choices.tolist())
            seen.add(episodes, choices.tolist())
