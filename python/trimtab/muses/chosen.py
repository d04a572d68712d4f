"""Trees that drive many flows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.muses.drive import Policy
from trimtab.muses.inputs import SIGNALS, Past
from trimtab.muses.trees import BINS, COMPONENTS, WEIGHT_POINT, Node, Trees, decide

Ints = NDArray[np.int64]
States = NDArray[np.int16]


def by_one(tree: list[Node], networks: int, flows: int) -> Policy:
    """Let one tree decide, for so many flows of each network."""
    past, first = Past(networks * flows), np.arange(networks) * flows

    def policy(states: States, which: Ints, _best: Ints) -> Ints:
        return decide(tree, past.see(states, first + which))

    return policy


class Several:
    """Several trees: each flow begins with the first, and after so many states has its own for good."""

    def __init__(self, model: Trees, networks: int, flows: int, states: int) -> None:
        self.model, self.states = model, states
        count = networks * flows
        self.first = np.arange(networks) * flows
        self.past = Past(count)
        self.counts = np.zeros((count, COMPONENTS, BINS), np.int64)
        self.trees = np.full(count, model.first, np.int64)
        self.seen = np.zeros(count, np.int64)

    def act(self, states: States, which: Ints, _best: Ints) -> Ints:
        """Decide for one flow of each network."""
        model, rows = self.model, self.first + which
        along = (states[:, :SIGNALS].astype(np.int64) @ model.weights.T) >> WEIGHT_POINT
        cells = np.clip((along - model.origin) // model.width, 0, BINS - 1)
        for component in range(COMPONENTS):
            self.counts[rows, component, cells[:, component]] += 1
        self.seen[rows] += 1
        due = rows[self.seen[rows] == self.states]
        if len(due):
            counts = self.counts[due].reshape(len(due), -1)
            self.trees[due] = (model.norms * self.states - counts @ model.centres.T).argmin(axis=1)
        inputs = self.past.see(states, rows)
        factors = np.zeros(len(states), np.int64)
        for tree in np.unique(self.trees[rows]):
            mine = self.trees[rows] == tree
            factors[mine] = decide(model.nodes[tree], inputs[mine])
        return factors
