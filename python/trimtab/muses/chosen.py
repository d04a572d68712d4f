"""Trees that drive many flows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.muses.drive import Policy
from trimtab.muses.inputs import SIGNALS, Past
from trimtab.muses.trees import BINS, COMPONENTS, WEIGHT_POINT, Node, Trees, decide

Ints = NDArray[np.int64]
States = NDArray[np.int16]


def by_one(tree: list[Node]) -> Policy:
    """Let one tree decide, for one flow of each network."""
    past = Past()

    def policy(states: States, _flows: Ints, _best: Ints) -> Ints:
        return decide(tree, past.see(states))

    return policy


class Several:
    """Several trees: each flow begins with the first, and after so many states has its own for good."""

    def __init__(self, model: Trees, flows: int, states: int) -> None:
        self.model, self.states = model, states
        self.past = Past()
        self.counts = np.zeros((flows, COMPONENTS, BINS), np.int64)
        self.trees = np.full(flows, model.first, np.int64)
        self.seen = 0

    def act(self, states: States, _flows: Ints, _best: Ints) -> Ints:
        """Decide for one flow of each network."""
        model, rows = self.model, np.arange(len(states))
        along = (states[:, :SIGNALS].astype(np.int64) @ model.weights.T) >> WEIGHT_POINT
        cells = np.clip((along - model.origin) // model.width, 0, BINS - 1)
        for component in range(COMPONENTS):
            self.counts[rows, component, cells[:, component]] += 1
        self.seen += 1
        if self.seen == self.states:
            counts = self.counts.reshape(len(states), -1)
            self.trees = (model.norms * self.seen - counts @ model.centres.T).argmin(axis=1)
        inputs = self.past.see(states)
        actions = np.zeros(len(states), np.int64)
        for tree in np.unique(self.trees):
            mine = self.trees == tree
            actions[mine] = decide(model.nodes[tree], inputs[mine])
        return actions
