"""A policy of trees: extremely randomised trees whose leaves score every algorithm (Geurts et al., 2006).

Each member of the ensemble is some trees, fitted to a sample of the connections. In the file the trees of all
members follow one another (docs/reference/selection.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trimtab.policy import Array, Policy

#: The tensors of the file, in its order.
TENSORS = (
    *("tree.splits", "split.input", "split.threshold", "split.next", "leaf.score"),
    *("norm.low", "norm.high"),
)
#: A leaf has so many rows at least, and a split looks at so many of the features.
LEAF_MIN, FEATURES_LOOKED_AT = 4, 0.5


@dataclass
class Tree:
    """A tree in the form of the file. A place below 0 is -1 less the number of a leaf."""

    inputs: NDArray[np.uint8]
    thresholds: Array
    next: NDArray[np.int16]
    scores: Array

    @classmethod
    def of(cls, fitted: Any) -> Tree:
        """Take over a tree of scikit-learn, whose nodes are splits and leaves mixed."""
        is_leaf = fitted.children_left < 0
        place = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
        ways = np.stack([fitted.children_left[~is_leaf], fitted.children_right[~is_leaf]], axis=1)
        thresholds = fitted.threshold[~is_leaf]
        # The largest number in single precision that is not above it asks the same of such numbers.
        single = thresholds.astype(np.float32)
        single = np.where(single > thresholds, np.nextafter(single, np.float32(-np.inf)), single)
        return cls(
            fitted.feature[~is_leaf].astype(np.uint8),
            single.astype(np.float32),
            place[ways].astype(np.int16).reshape(-1, 2),
            fitted.value[is_leaf, :, 0].astype(np.float32),
        )

    def score(self, states: Array) -> Array:
        """Score the algorithms, a row for each state."""
        at = np.full(len(states), 0 if len(self.inputs) else -1)
        while (on := np.flatnonzero(at >= 0)).size:
            split = at[on]
            is_above = states[on, self.inputs[split]] > self.thresholds[split]
            at[on] = self.next[split, is_above.astype(np.int64)]
        scores: Array = self.scores[-1 - at]
        return scores


@dataclass(kw_only=True)
class Forest(Policy):
    """Trees in the place of networks."""

    VERSION: ClassVar[str] = "3"

    members: list[list[Tree]]
    low: Array
    high: Array

    @classmethod
    def fit(
        cls,
        samples: list[tuple[Array, Array]],
        *,
        trees: int,
        leaves: int,
        random: np.random.Generator,
        **about: Any,
    ) -> Forest:
        """Fit a member to each sample of states and scores."""
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 - an extra, only to learn

        def member(states: Array, scores: Array) -> list[Tree]:
            fitted = ExtraTreesRegressor(
                trees,
                min_samples_leaf=LEAF_MIN,
                max_leaf_nodes=leaves,
                max_features=FEATURES_LOOKED_AT,
                random_state=int(random.integers(2**31)),
            ).fit(states, scores)
            return [Tree.of(tree.tree_) for tree in fitted.estimators_]

        return cls(members=[member(states, scores) for states, scores in samples], **about)

    def scores(self, states: Array) -> Array:
        """Scores of the algorithms by each member, a row for each state."""
        states = np.asarray(states, np.float32)
        of = [np.mean([tree.score(states) for tree in trees], axis=0) for trees in self.members]
        return np.asarray(of, np.float32)

    def trusted(self) -> tuple[Array, Array]:
        """Give the least and the most of each feature that it is trusted with."""
        return self.low, self.high

    def shape(self) -> str:
        """Say what it is made of, for its card."""
        trees = [tree for member in self.members for tree in member]
        leaves = max(len(tree.scores) for tree in trees)
        return (
            f"An ensemble of {len(self.members)}, each of {len(self.members[0])} trees with at most {leaves} "
            f"leaves;\n{len(self.features)} features."
        )

    def save(self, path: Path) -> str:
        """Write the file. Gives its checksum, by which the model is known."""
        trees = [tree for member in self.members for tree in member]
        splits = np.asarray([[len(tree.inputs) for tree in member] for member in self.members])

        def joined(of: Callable[[Tree], NDArray[Any]], kind: str) -> NDArray[Any]:
            return np.ascontiguousarray(np.concatenate([of(tree) for tree in trees]), kind)

        tensors = (
            splits.astype("<u2"),
            joined(lambda tree: tree.inputs, "u1"),
            joined(lambda tree: tree.thresholds, "<f4"),
            joined(lambda tree: tree.next, "<i2"),
            joined(lambda tree: tree.scores, "<f4"),
            np.ascontiguousarray(self.low, "<f4"),
            np.ascontiguousarray(self.high, "<f4"),
        )
        return self.write_ensemble(path, dict(zip(TENSORS, tensors, strict=True)), self.VERSION)

    @classmethod
    def read_tensors(cls, path: Path, about: dict[str, float]) -> Forest:
        """Read the rest of the file of such a policy."""
        (splits, inputs, thresholds, following, scores, low, high), fields = cls.read(path, TENSORS)
        members: list[list[Tree]] = []
        split = leaf = 0
        for sizes in splits.astype(np.int64):
            members.append([])
            for size in sizes:
                of, to = slice(split, split + size), slice(leaf, leaf + size + 1)
                members[-1].append(Tree(inputs[of], thresholds[of], following[of], scores[to]))
                split, leaf = of.stop, to.stop
        return cls(members=members, low=low, high=high, **(fields | about))
