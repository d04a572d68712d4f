"""Trees fitted to what the LSTM did (Muses, section III-E)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from trimtab.muses.drive import NONE
from trimtab.muses.options import Stages
from trimtab.muses.trees import FACTOR_ONE, FACTORS, LEAF, Node, actions_of, decide

#: The search for a tree's settings looks at no more states than this, and a tree is fitted to no more.
SEARCHED = 100_000
FITTED = 500_000
#: The logarithm of what each action multiplies the window by.
RATIOS = np.log2([1 / 2, 1 / 1.2, 1 / 1.05, 1.0, 1.05, 1.2, 2.0])
SPLITS = (2, 200, 50, 1_000)
DECREASES = (0.0, 1e-5, 1e-4, 1e-6)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class Demonstrations:
    """What the LSTM did: a row for each flow; an action of NONE is an interval that was not reached."""

    inputs: NDArray[np.int16]
    actions: NDArray[np.int8]

    def of(self, rows: Ints) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
        """Give the inputs and actions of these flows, one after the other."""
        actions = self.actions[rows]
        return self.inputs[rows][actions != NONE], actions[actions != NONE]

    def with_more(self, more: Demonstrations) -> Demonstrations:
        """Give these and those."""
        return Demonstrations(
            np.concatenate([self.inputs, more.inputs]), np.concatenate([self.actions, more.actions])
        )


def fit(
    stages: Stages,
    shown: Demonstrations,
    rows: Ints,
    others: tuple[NDArray[np.int16], NDArray[np.int8]] | None = None,
) -> tuple[list[Node], str]:
    """Fit a tree to these flows, its settings by a search on a part of their states; gives both.

    The search judges by other flows than it fits to: states of one flow are too alike to tell anything.
    """
    random = np.random.default_rng((stages.seed, 3))
    mixed = random.permutation(rows)
    # Of a single flow there is nothing to judge by but itself.
    apart = max(1, len(mixed) // 5)
    judged = some(random, *shown.of(mixed[:apart]), SEARCHED // 5)
    fitted = some(random, *shown.of(mixed[apart:] if len(mixed) > 1 else mixed), SEARCHED - SEARCHED // 5)
    best: tuple[float, dict[str, Any]] = (-np.inf, {})
    for split, decrease in product(SPLITS[: stages.grid], DECREASES[: stages.grid]):
        wanted: dict[str, Any] = {"min_samples_split": split, "min_impurity_decrease": decrease}
        tree = nodes_of(_fitted(stages, wanted, *fitted))
        score = _score(stages, decide(tree, judged[0]), judged[1])
        if score > best[0]:
            best = (score, wanted)
    states, actions = some(random, *shown.of(rows), FITTED)
    weights = np.ones(len(states))
    if others is not None:
        each = stages.others * len(states) / max(1, len(others[0]))
        weights = np.concatenate([weights, np.full(len(others[0]), each)])
        states, actions = np.concatenate([states, others[0]]), np.concatenate([actions, others[1]])
    tree = _fitted(stages, best[1], states, actions, weights)
    return nodes_of(tree), ", ".join(f"{name} {value}" for name, value in best[1].items())


def _score(stages: Stages, done: Ints, actions: NDArray[np.int8]) -> float:
    """Score these factors against those of the LSTM; more is better."""
    if stages.criterion == "entropy":
        return float((actions_of(done) == actions).mean())
    return -float(((np.log2(done / FACTOR_ONE) - RATIOS[actions]) ** 2).mean())


def some(
    random: np.random.Generator, states: NDArray[np.int16], actions: NDArray[np.int8], most: int
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Give so many of these states with their actions, or all."""
    chosen = random.permutation(len(states))[:most]
    return states[chosen], actions[chosen]


def _fitted(
    stages: Stages,
    settings: dict[str, Any],
    seen: NDArray[np.int16],
    actions: NDArray[np.int8],
    weights: Floats | None = None,
) -> Any:
    """Fit a tree to actions, or to the logarithms of what they multiply the window by.

    To an entropy all actions but the right one are equally wrong, be it a step of 5 % or a halving.
    """
    common: dict[str, Any] = {"max_leaf_nodes": stages.leaves, "random_state": stages.seed, **settings}
    if stages.criterion == "entropy":
        return DecisionTreeClassifier(criterion="entropy", **common).fit(seen, actions, weights)
    return DecisionTreeRegressor(**common).fit(seen, RATIOS[actions], weights)


def nodes_of(fitted: Any) -> list[Node]:
    """Write a tree as nodes, parents first; parts that all do the same are one leaf."""
    tree = fitted.tree_
    if isinstance(fitted, DecisionTreeClassifier):
        done = FACTORS[fitted.classes_[tree.value[:, 0].argmax(axis=1)]]
    else:
        done = np.rint(np.exp2(tree.value[:, 0, 0]) * FACTOR_ONE).astype(np.int64)
    nodes: list[Node] = []

    def leaf_of(at: int) -> int | None:
        """Give the factor of all leaves below, if it is one."""
        left, right = tree.children_left[at], tree.children_right[at]
        if left < 0:
            return int(done[at])
        both = leaf_of(left), leaf_of(right)
        return both[0] if both[0] == both[1] else None

    def write(at: int) -> None:
        factor = leaf_of(at)
        if factor is not None:
            nodes.append((LEAF, 0, factor))
            return
        here = len(nodes)
        nodes.append((0, 0, 0))
        write(tree.children_left[at])
        # States are whole numbers: at most the threshold is at most its whole part.
        nodes[here] = (int(tree.feature[at]), int(np.floor(tree.threshold[at])), len(nodes))
        write(tree.children_right[at])

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    write(0)
    sys.setrecursionlimit(limit)
    return nodes


def agreement(
    tree: list[Node], states: NDArray[np.int16], actions: NDArray[np.int8]
) -> dict[str, float | None]:
    """Give how often a tree does what the LSTM did, and the F1 score, the mean over actions."""
    if not len(states):
        return {"agreement": None, "f1": None}
    done = actions_of(decide(tree, states))
    return {
        "agreement": float((done == actions).mean()),
        "f1": float(f1_score(actions, done, average="macro", zero_division=0.0)),
    }
