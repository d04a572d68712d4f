"""A network that learns what each choice costs, by Adam, in NumPy since it is tiny."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.policy import HIDDEN, SLOPE, Array, leaky

#: Adam's own constants (Kingma and Ba, 2015, algorithm 1).
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Actor:
    """One hidden layer, with Adam's state: foretells minus what each choice costs, up to a constant.

    It learns by squared errors, so that it comes to what a choice costs on average where the state does not
    tell: what is best mostly may be much worse at times.
    """

    def __init__(self, inputs: int, outputs: int, random: np.random.Generator) -> None:
        def normal(*shape: int) -> Array:
            return random.standard_normal(shape, np.float32)

        # He's initialisation below; nearly even preferences above.
        self.weights: list[Array] = [
            normal(HIDDEN, inputs) * np.float32(np.sqrt(2.0 / inputs)),
            np.zeros(HIDDEN, np.float32),
            normal(outputs, HIDDEN) * np.float32(0.01),
            np.zeros(outputs, np.float32),
        ]
        self.first = [np.zeros_like(w) for w in self.weights]
        self.second = [np.zeros_like(w) for w in self.weights]
        self.steps = 0

    def preferences(self, inputs: Array) -> Array:
        """Give minus the foretold cost of each choice, a row for each input."""
        w1, b1, w2, b2 = self.weights
        return np.asarray(leaky(inputs @ w1.T + b1) @ w2.T + b2, np.float32)

    def learn(self, inputs: Array, costs: Array, rate: float) -> float:
        """Take one step towards what choices cost. Gives the mean cost of the preferred ones before it."""
        w1, b1, w2, b2 = self.weights
        below = inputs @ w1.T + b1
        hidden = leaky(below)
        preferences = hidden @ w2.T + b2
        # What choices cost relative to each other is to be told, and not what all of them cost.
        wanted = costs.mean(axis=1, keepdims=True) - costs
        slope = np.asarray((preferences - wanted) / np.float32(len(inputs)), np.float32)
        back = (slope @ w2) * np.where(below > 0, np.float32(1.0), np.float32(SLOPE))
        gradients = [back.T @ inputs, back.sum(axis=0), slope.T @ hidden, slope.sum(axis=0)]
        self._adam(gradients, rate)
        return float(costs[np.arange(len(costs)), preferences.argmax(axis=1)].mean())

    def _adam(self, gradients: list[NDArray[Any]], rate: float) -> None:
        self.steps += 1
        for i, gradient in enumerate(gradients):
            self.first[i] = (BETA_1 * self.first[i] + (1 - BETA_1) * gradient).astype(np.float32)
            self.second[i] = (BETA_2 * self.second[i] + (1 - BETA_2) * gradient**2).astype(np.float32)
            mean = self.first[i] / (1 - BETA_1**self.steps)
            spread = np.sqrt(self.second[i] / (1 - BETA_2**self.steps)) + EPSILON
            self.weights[i] = (self.weights[i] - rate * mean / spread).astype(np.float32)
