"""The actor as something that learns from the cost of each choice, by Adam, in NumPy since it is tiny."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.policy import HIDDEN, SLOPE, Array, leaky

#: Adam's own constants (Kingma and Ba, 2015, algorithm 1).
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
#: A choice that costs so much more than the best one has 1/e of its share in what the actor is to prefer.
#: Going down the expected cost itself gives up what is bad on average before it sees where it is good.
TEMPERATURE = 0.1
#: A decision counts by how far its choices are apart, up to this: where all cost the same, none is wrong.
SPREAD_MAX = 1.0


class Actor:
    """One hidden layer and a softmax, with Adam's state."""

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
        """Give the probability of each choice, a row for each input."""
        w1, b1, w2, b2 = self.weights
        return _softmax(leaky(inputs @ w1.T + b1) @ w2.T + b2)

    def learn(self, inputs: Array, costs: Array, rate: float) -> float:
        """Take one step towards preferring cheap choices. Gives the expected cost before the step."""
        w1, b1, w2, b2 = self.weights
        below = inputs @ w1.T + b1
        hidden = leaky(below)
        chances = _softmax(hidden @ w2.T + b2)
        spread = np.minimum(costs.max(axis=1, keepdims=True), np.float32(SPREAD_MAX))
        weight = spread / max(float(spread.sum()), 1e-6)
        # d(cross-entropy)/d(logits).
        slope = (chances - _softmax(-costs / np.float32(TEMPERATURE))) * weight
        back = (slope @ w2) * np.where(below > 0, 1.0, SLOPE)
        gradients = [back.T @ inputs, back.sum(axis=0), slope.T @ hidden, slope.sum(axis=0)]
        self._adam(gradients, rate)
        return float((chances * costs).sum(axis=1).mean())

    def _adam(self, gradients: list[NDArray[Any]], rate: float) -> None:
        self.steps += 1
        for i, gradient in enumerate(gradients):
            self.first[i] = (BETA_1 * self.first[i] + (1 - BETA_1) * gradient).astype(np.float32)
            self.second[i] = (BETA_2 * self.second[i] + (1 - BETA_2) * gradient**2).astype(np.float32)
            mean = self.first[i] / (1 - BETA_1**self.steps)
            spread = np.sqrt(self.second[i] / (1 - BETA_2**self.steps)) + EPSILON
            self.weights[i] = (self.weights[i] - rate * mean / spread).astype(np.float32)


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)
