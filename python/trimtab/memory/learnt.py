"""What paths to learn on teach of a path before the next connection on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from trimtab._native import Arms
from trimtab.memory.visits import Floats, Seen


@dataclass(frozen=True)
class Prior:
    """What is known of the arms of a path before a connection on it."""

    worths: Floats
    covariance: Floats
    noise: float

    def arms(self, drift: float) -> Arms:
        """Make the arms of a destination."""
        return Arms(self.worths.tolist(), self.covariance.ravel().tolist(), noise=self.noise, drift=drift)


@dataclass(frozen=True)
class Learnt:
    """What paths to learn on taught of all paths."""

    slope: float
    """What a response that is e times larger adds to a reward."""
    prior: Prior
    """Before the first connection."""
    forest: ExtraTreesRegressor
    """What the state at the end of a connection says of the worths on its path."""
    errors: Floats
    """Covariance of what it is wrong by, on paths that it did not learn from."""

    def adjusted(self, seen: Seen) -> Floats:
        """Give the rewards without what their sizes explain."""
        return seen.rewards - self.slope * seen.sizes

    def said(self, states: Floats) -> Floats:
        """Foretell the worth of each arm, for each state along the last axis."""
        flat = states.reshape(-1, states.shape[-1])
        return np.asarray(self.forest.predict(flat), np.float64).reshape(*states.shape[:-1], -1)

    def after(self, said: Floats) -> Prior:
        """Give the prior of a path of whose connections the states said this."""
        return Prior(said.mean(axis=0), self.errors, self.prior.noise)


def learn(seen: Seen, seed: int) -> Learnt:
    """Learn by an analysis of variance of paths and arms, and by a forest of their states.

    The slope is by visits of one path and arm, and so is the noise. Visits have a part of the noise in
    common, which differences of arms on the same visits do not have. The rest is in the arms' means by path.
    The covariances are without it; what is left of them below 0 is none.
    """
    paths, visits, count = seen.rewards.shape
    within = seen.rewards - seen.rewards.mean(axis=1, keepdims=True)
    sizes = seen.sizes - seen.sizes.mean(axis=1, keepdims=True)
    slope = float((within * sizes).sum() / max((sizes**2).sum(), 1e-12))
    within = within - slope * sizes
    free = paths * (visits - 1)
    noise = max(float((within**2).sum() / (free * count)), 1e-6) ** 0.5
    apart = (within - within.mean(axis=2, keepdims=True)).reshape(-1, count)
    own = apart.T @ apart / free / visits

    def without(covariance: Floats) -> Floats:
        values, vectors = np.linalg.eigh(covariance - own)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    mean = (seen.rewards - slope * seen.sizes).mean(axis=1)
    effects = mean - mean.mean(axis=1, keepdims=True)
    worths = effects.mean(axis=0)
    prior = Prior(worths, without((effects - worths).T @ (effects - worths) / (paths - 1)), noise)

    def forest() -> ExtraTreesRegressor:
        return ExtraTreesRegressor(300, min_samples_leaf=4, max_features=0.5, n_jobs=-1, random_state=seed)

    rows = seen.states.reshape(paths * visits * count, -1)
    targets = np.repeat(effects, visits * count, axis=0)
    groups = np.repeat(np.arange(paths), visits * count)
    foretold = cross_val_predict(forest(), rows, targets, groups=groups, cv=GroupKFold(5))
    off = (foretold - targets).reshape(paths, -1, count)
    errors = np.einsum("pva,pvb->ab", off, off) / (off.shape[0] * off.shape[1])
    return Learnt(slope, prior, forest().fit(rows, targets), without(errors))
