"""What counterfactual learning has seen: states, what each choice came to, and what that costs by a price.

A choice's own cost and what it does to others are kept apart until a policy is fitted, so that other prices
need no new simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.policy import Array

Floats = NDArray[np.float64]

#: A choice is compared by the logarithm of what it costs, so that slow paths do not outweigh all others.
#: Below this many seconds of waiting in all, differences do not matter; no choice is worse than e^3 times.
COST_FLOOR_S = 0.002
REGRET_MAX = 3.0


@dataclass
class Lessons:
    """A row for each decision, with a column for each choice."""

    states: Array
    costs: Floats
    """Seconds that its own requests wait."""
    lost: Floats
    """Share of its packets lost."""
    harm: Floats
    """Share of what rivals would have received next to CUBIC that they do not."""
    connection: NDArray[np.int64]
    """Of which connection each row is, by its seed."""

    @classmethod
    def joined(cls, parts: Sequence[Lessons]) -> Lessons:
        """Join them."""
        names = cls.__dataclass_fields__
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def save(self, path: Path, **others: Any) -> None:
        """Write the file whole or not at all: a training may be stopped at any time."""
        part = path.with_suffix(".part.npz")
        np.savez(part, **{name: getattr(self, name) for name in self.__dataclass_fields__}, **others)
        part.replace(path)


def lessons(seeds: Sequence[int], states: Sequence[Array], outcomes: Sequence[Sequence[Any]]) -> Lessons:
    """Make lessons of a batch: at each decision all states, and all costs, losses and harms."""
    costs, lost, harm = (np.concatenate([np.asarray(of[i], np.float64) for of in outcomes]) for i in range(3))
    connection = np.tile(np.asarray(seeds, np.int64), len(states))
    return Lessons(np.concatenate(states), costs, lost, harm, connection)


@dataclass(frozen=True)
class Prices:
    """What loss and harm cost: a Lagrangian with fixed multipliers, in units of ln(own cost)."""

    loss_budget: float
    """Share of packets that may be lost for nothing."""
    loss_price: float
    """Cost of each share of packets lost beyond it."""
    harm_price: float
    """Cost of each share of the rivals' throughput taken beyond what CUBIC takes."""

    def of(self, lost: Floats, harm: Floats) -> Floats:
        """Price what choices lose and what they take from others."""
        beyond = np.maximum(np.asarray(lost) - self.loss_budget, 0.0)
        return np.asarray(self.loss_price * beyond + self.harm_price * np.asarray(harm), np.float64)


def regrets(costs: Floats, priced: Floats | float = 0.0) -> Array:
    """Say how much worse than the best each choice is: the logarithm of the ratio of costs, with prices."""
    logs = np.log(costs + COST_FLOOR_S) + priced
    worse = logs - logs.min(axis=1, keepdims=True)
    return np.asarray(np.minimum(worse, REGRET_MAX), np.float32)
