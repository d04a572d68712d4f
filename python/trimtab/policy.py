"""The policy: one hidden layer of 200 units, leaky ReLU, softmax (Floo, appendix D), in a safetensors file.

An ensemble has several of them, or of trees (`forest.py`). It leaves what runs only for a choice whose
advantage, less `caution` standard deviations over the members, is above `margin`.

The file is what `trimtab` reads (docs/reference/selection.md): tensors `fc1.weight`, `fc1.bias`,
`fc2.weight`, `fc2.bias` and, for each feature, `norm.mean`, `norm.scale`, `norm.low`, `norm.high`; strings in
its metadata name the rest.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from trimtab.tensors import save_file

#: Units of the hidden layer, and the slope of the leaky ReLU below zero (not given by Floo).
HIDDEN = 200
SLOPE = 0.01
#: The version of the file of an ensemble; that of a single actor is `Selector.VERSION`.
ENSEMBLE = "2"
#: The tensors of the file, in its order. The first four have an axis of members first in an ensemble's.
TENSORS = (
    *("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"),
    *("norm.mean", "norm.scale", "norm.low", "norm.high"),
)

Array = NDArray[np.float32]


def join_names(names: tuple[str, ...]) -> str:
    """Write a list of algorithms, with semicolons where a comma is part of a name, between knobs."""
    return (";" if any("," in name for name in names) else ",").join(names)


def split_names(text: str) -> tuple[str, ...]:
    """Read a list of algorithms, as `Model::parse` in crates/steer does."""
    names = (name.strip() for name in text.split(";" if ";" in text else ","))
    return tuple(name for name in names if name)


def leaky(x: Array) -> Array:
    """Leaky ReLU."""
    return np.where(x > 0, x, np.float32(SLOPE) * x)


def known_range(inputs: Array) -> tuple[Array, Array]:
    """Give the least and the most of each input that a model is trusted with, from those it saw."""
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    # Half as far again counts as known: the range is that of a finite sample.
    margin = np.float32(0.5) * np.maximum(high - low, np.float32(1e-3))
    return low - margin, high + margin


@dataclass
class Scaler:
    """Standardises states by constants, and knows the range that training saw."""

    mean: Array
    scale: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, states: Array) -> Scaler:
        """Take the constants from states that were seen, one in a row."""
        # A feature that never moved says nothing: it is divided by one.
        scale = states.std(axis=0)
        scale = np.where(scale > 1e-6, scale, 1.0).astype(np.float32)
        return cls(states.mean(axis=0), scale, *known_range(states))

    def __call__(self, states: Array) -> Array:
        """Standardise."""
        return ((states - self.mean) / self.scale).astype(np.float32)


@dataclass(kw_only=True)
class Selector:
    """What every model that selects algorithms has: the metadata of its file."""

    FORMAT: ClassVar[str]
    VERSION: ClassVar[str] = "1"

    features: tuple[str, ...]
    algorithms: tuple[str, ...]
    period_ms: int
    first: str
    """The algorithm that connections start with, and that runs where the inputs are not to be trusted."""
    notes: dict[str, str] = field(default_factory=dict)

    def write(
        self, path: Path, tensors: dict[str, NDArray[Any]], version: str | None = None, **about: str
    ) -> str:
        """Write the file. Gives its checksum, by which the model is known."""
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {
            **self.notes,
            **about,
            "format": self.FORMAT,
            "version": version or self.VERSION,
            "features": ",".join(self.features),
            "algorithms": join_names(self.algorithms),
            "period_ms": str(self.period_ms),
            "first": self.first,
        }
        checksum = checksum_of(metadata, tensors)
        save_file(tensors, path, {**metadata, "sha256": checksum})
        return checksum

    @classmethod
    def read(
        cls, path: Path, names: Sequence[str], version: str | None = None
    ) -> tuple[list[NDArray[Any]], dict[str, Any]]:
        """Read the tensors of these names, and the fields above.

        Raises ValueError when the file is another kind or version.
        """
        with safe_open(path, "numpy") as file:
            about: dict[str, str] = file.metadata() or {}
            if about.get("format") != cls.FORMAT or about.get("version") != (version or cls.VERSION):
                raise ValueError(f"{path} is no {cls.FORMAT} model of version {cls.VERSION}: train it again")
            fields = {
                "features": tuple(about["features"].split(",")),
                "algorithms": split_names(about["algorithms"]),
                "period_ms": int(about["period_ms"]),
                "first": about["first"],
            }
            return [file.get_tensor(name) for name in names], fields


@dataclass(kw_only=True)
class Policy(Selector):
    """Maps states to algorithms."""

    FORMAT: ClassVar[str] = "trimtab-select"

    caution: float | None = None
    """Standard deviations taken off an advantage; none of a policy that takes the highest score at once."""
    margin: float = 0.0
    """What a switch costs, in units of the scores."""

    @abstractmethod
    def scores(self, states: Array) -> Array:
        """Scores of the algorithms by each member, a row for each state."""

    @abstractmethod
    def trusted(self) -> tuple[Array, Array]:
        """Give the least and the most of each feature that it is trusted with."""

    @abstractmethod
    def shape(self) -> str:
        """Say what it is made of, for its card."""

    @abstractmethod
    def save(self, path: Path) -> str:
        """Write the file. Gives its checksum, by which the model is known."""

    def logits(self, states: Array) -> Array:
        """Mean scores of the algorithms, a row for each state."""
        return np.asarray(self.scores(states).mean(axis=0), np.float32)

    def running(self, states: Array) -> NDArray[np.int64]:
        """Give the number of the candidate that runs in each state; -1 where it is none, or not known."""
        names = [f"candidate_{i}" for i in range(len(self.algorithms))]
        if not set(names) <= set(self.features):
            return np.full(len(states), -1)
        runs = states[:, [self.features.index(name) for name in names]] > 0
        return np.where(runs.any(axis=1), runs.argmax(axis=1), -1)

    def best(self, states: Array) -> NDArray[np.int64]:
        """Choose for each state as if it could be trusted."""
        scores = self.scores(states)
        best: NDArray[np.int64] = scores.mean(axis=0).argmax(axis=1)
        if self.caution is None:
            return best
        running, rows = self.running(states), np.arange(len(states))
        advantage = scores - scores[:, rows, running][:, :, None]
        lower = advantage.mean(axis=0) - self.caution * advantage.std(axis=0)
        leaves = lower.max(axis=1) > self.margin
        return np.where(running < 0, best, np.where(leaves, lower.argmax(axis=1), running))

    def choose(self, states: Array) -> NDArray[np.int64]:
        """Choose the algorithm with the highest score, by its number, for each state.

        A state outside the range that training saw is not trusted: there it is `first`.
        """
        low, high = self.trusted()
        known = ((states >= low) & (states <= high)).all(axis=1)
        return np.where(known, self.best(states), self.algorithms.index(self.first)).astype(np.int64)

    def write_ensemble(self, path: Path, tensors: dict[str, NDArray[Any]], version: str) -> str:
        """Write the file of an ensemble, with what it goes by to switch."""
        about = {"caution": f"{self.caution:g}", "margin": f"{self.margin:g}"}
        return self.write(path, tensors, version=version, **about)

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read a file that `save` wrote. Raises ValueError when it is another kind or version."""
        from trimtab.forest import Forest  # noqa: PLC0415 - that is a policy itself

        with safe_open(path, "numpy") as file:
            metadata: dict[str, str] = file.metadata() or {}
        version = metadata.get("version")
        kind = Forest if version == Forest.VERSION else Networks
        about = {}
        if version in {Forest.VERSION, ENSEMBLE}:
            about = {"caution": float(metadata["caution"]), "margin": float(metadata["margin"])}
        return kind.read_tensors(path, about)

    @classmethod
    @abstractmethod
    def read_tensors(cls, path: Path, about: dict[str, float]) -> Policy:
        """Read the rest of the file of such a policy, which is `about` this."""


@dataclass(kw_only=True)
class Networks(Policy):
    """Actors of one hidden layer. The first axis of the weights is the members."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array
    scaler: Scaler

    def scores(self, states: Array) -> Array:
        """Scores of the algorithms by each member, a row for each state."""
        inputs = self.scaler(states)
        members = zip(self.w1, self.b1, self.w2, self.b2, strict=True)
        of = [leaky(inputs @ w1.T + b1) @ w2.T + b2 for w1, b1, w2, b2 in members]
        return np.asarray(of, np.float32)

    def trusted(self) -> tuple[Array, Array]:
        """Give the least and the most of each feature that it is trusted with."""
        return self.scaler.low, self.scaler.high

    def shape(self) -> str:
        """Say what it is made of, for its card."""
        members, units, inputs = self.w1.shape
        if self.caution is None:
            return f"One hidden layer of {units} units, leaky ReLU; {inputs} features."
        each = f"each with one hidden layer of {units} units, leaky ReLU"
        return f"An ensemble of {members}, {each}; {inputs}\nfeatures."

    def save(self, path: Path) -> str:
        """Write the file. Gives its checksum, by which the model is known."""
        scaler = self.scaler
        tensors = (self.w1, self.b1, self.w2, self.b2, scaler.mean, scaler.scale, scaler.low, scaler.high)
        ready = {
            name: np.ascontiguousarray(tensor, "<f4") for name, tensor in zip(TENSORS, tensors, strict=True)
        }
        if self.caution is None:
            # One actor, as the first version has it.
            one = {name: ready[name][0] for name in TENSORS[:4]}
            return self.write(path, ready | one)
        return self.write_ensemble(path, ready, ENSEMBLE)

    @classmethod
    def read_tensors(cls, path: Path, about: dict[str, float]) -> Networks:
        """Read the rest of the file of such a policy."""
        (*weights, mean, scale, low, high), fields = cls.read(
            path, TENSORS, ENSEMBLE if about else cls.VERSION
        )
        w1, b1, w2, b2 = weights if about else [tensor[None] for tensor in weights]
        return cls(w1=w1, b1=b1, w2=w2, b2=b2, scaler=Scaler(mean, scale, low, high), **(fields | about))


def checksum_of(metadata: dict[str, str], tensors: Mapping[str, NDArray[Any]]) -> str:
    """Sum up the metadata by key, then the tensors in the order in which they are listed."""
    digest = hashlib.sha256()
    for key, value in sorted(metadata.items()):
        digest.update(f"{key}={value}\n".encode())
    for tensor in tensors.values():
        digest.update(tensor.tobytes())
    return digest.hexdigest()
