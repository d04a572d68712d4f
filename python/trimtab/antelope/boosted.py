"""The models: one sum of regression trees for each algorithm, in a safetensors file.

The file is what `trimtab` reads (docs/reference/selection.md): `split.input`, `split.threshold`,
`leaf.value`, `base`, `norm.low`, `norm.high`; strings in its metadata name the rest. A tree is a whole one:
the root, the two nodes below it, and so on; where the library's tree ends sooner, all leaves below have its
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

from trimtab._native import Episodes
from trimtab.policy import Array, Selector, known_range

#: ModelTrain.py of the published code.
TREES, DEPTH, RATE, GAMMA = 40, 3, 0.15, 1.0
#: Rewards are learnt and predicted in percent. With labels between 0 and 1, gamma would forbid nearly
#: every split.
PERCENT = 100.0
#: What the library writes for a node that asks nothing.
LEAF = -1

Floats = NDArray[np.float64]


def fit(inputs: Array, rewards: Floats, seed: int) -> list[Any]:
    """Fit one model for each algorithm, a column of `rewards` each, with the published settings.

    XGBoost splits where half the squared error that goes away is above gamma; the library here counts the
    whole one, for each sample. The published script fits a classifier, for which each reward is a class of
    its own; rewards are numbers, so these are regressions.
    """
    models = []
    for column in rewards.T:
        model = GradientBoostingRegressor(
            n_estimators=TREES,
            max_depth=DEPTH,
            learning_rate=RATE,
            subsample=1.0,
            min_impurity_decrease=2.0 * GAMMA / len(column),
            random_state=seed,
        )
        models.append(model.fit(inputs, PERCENT * column))
    return models


@dataclass
class Boosted(Selector):
    """Foretells what each algorithm would be worth."""

    FORMAT: ClassVar[str] = "trimtab-antelope"

    asked: NDArray[np.uint8]
    """By algorithm, tree and node: the number of the input that the node asks for."""
    thresholds: Floats
    """What it is compared with: above it goes on to the right."""
    leaves: Floats
    """By algorithm, tree and leaf."""
    base: Floats
    """What the sum of each algorithm begins with."""
    low: Array
    high: Array

    @classmethod
    def of(cls, models: Sequence[Any], inputs: Array, **about: Any) -> Boosted:
        """Take the trees of fitted models, and the range that they have seen from their inputs."""
        whole = [[_whole(tree.tree_) for tree in model.estimators_[:, 0]] for model in models]
        asked, thresholds, leaves = (np.asarray([[t[i] for t in m] for m in whole]) for i in range(3))
        rates = np.asarray([model.learning_rate for model in models])
        return cls(
            asked.astype(np.uint8),
            thresholds,
            leaves * rates[:, None, None],
            np.asarray([model.init_.constant_.item() for model in models]),
            *known_range(inputs),
            **about,
        )

    def rewards(self, inputs: Array) -> Floats:
        """Foretell the rewards in percent: a row for each row of inputs, a number for each algorithm."""
        rows, count, trees = len(inputs), len(self.base), self.asked.shape[1]
        nodes = self.asked.shape[2]
        algorithm, tree = np.arange(count)[None, :, None], np.arange(trees)[None, None, :]
        row = np.arange(rows)[:, None, None]
        node = np.zeros((rows, count, trees), np.int64)
        while (node < nodes).all():
            given = inputs[row, self.asked[algorithm, tree, node]].astype(np.float64)
            node = 2 * node + 1 + (given > self.thresholds[algorithm, tree, node])
        values = self.leaves[algorithm, tree, node - nodes]
        # One after another, as Rust adds them up.
        total = np.repeat(self.base[None, :], rows, axis=0)
        for i in range(trees):
            total = total + values[:, :, i]
        return np.asarray(total, np.float64)

    def knows(self, inputs: Array) -> NDArray[np.bool_]:
        """Say of each row of inputs whether it is like those that were learnt from."""
        return np.asarray(((inputs >= self.low) & (inputs <= self.high)).all(axis=1))

    def save(self, path: Path) -> str:
        """Write the file. Gives its checksum, by which the model is known."""
        tensors: dict[str, NDArray[Any]] = {
            "split.input": np.ascontiguousarray(self.asked, np.uint8),
            "split.threshold": np.ascontiguousarray(self.thresholds, "<f8"),
            "leaf.value": np.ascontiguousarray(self.leaves, "<f8"),
            "base": np.ascontiguousarray(self.base, "<f8"),
            "norm.low": np.ascontiguousarray(self.low, "<f4"),
            "norm.high": np.ascontiguousarray(self.high, "<f4"),
        }
        return self.write(path, tensors)

    @classmethod
    def load(cls, path: Path) -> Boosted:
        """Read a file that `save` wrote. Raises ValueError when it is another kind or version."""
        names = ("split.input", "split.threshold", "leaf.value", "base", "norm.low", "norm.high")
        tensors, about = cls.read(path, names)
        return cls(*tensors, **about)


def _whole(tree: Any) -> tuple[list[int], list[float], list[float]]:
    """Give the inputs, thresholds and leaves of a library's tree, as a tree of full depth."""
    asked, thresholds, leaves = [], [], []
    level = [0]
    for _ in range(DEPTH):
        below = []
        for node in level:
            ends = tree.children_left[node] == LEAF
            asked.append(0 if ends else int(tree.feature[node]))
            thresholds.append(0.0 if ends else float(tree.threshold[node]))
            below += [node, node] if ends else [tree.children_left[node], tree.children_right[node]]
        level = below
    leaves = [float(tree.value[node, 0, 0]) for node in level]
    return asked, thresholds, leaves


class Chooser:
    """Chooses as `trimtab` does: the highest reward wins, and a new winner has to win twice in a row."""

    def __init__(self, model: Boosted) -> None:
        self.model = model
        self.safe = model.algorithms.index(model.first)
        self.of: Episodes | None = None
        self.applied: list[int | None] = []
        self.last: list[int | None] = []

    def __call__(self, episodes: Episodes, _: Array) -> list[int]:
        """Choose for each."""
        if self.of is not episodes:
            self.of, self.applied, self.last = episodes, [None] * len(episodes), [None] * len(episodes)
        flat, enough = episodes.measured()
        inputs = np.asarray(flat, np.float32).reshape(len(episodes), -1)
        known, winners = self.model.knows(inputs), self.model.rewards(inputs).argmax(axis=1)
        choices = list(episodes.current())
        for i, is_enough in enumerate(enough):
            if is_enough:
                choices[i] = self.settle(i, int(winners[i]) if known[i] else None)
        return choices

    def settle(self, i: int, winner: int | None) -> int:
        """Take the winner of connection `i`, none where its inputs are strange; give what is to run."""
        if winner is None:
            self.applied[i] = self.last[i] = None
            return self.safe
        applied, before = self.applied[i], self.last[i]
        self.last[i] = winner
        if applied is not None and before != winner:
            return applied
        self.applied[i] = winner
        return winner
