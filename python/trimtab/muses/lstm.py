"""The heavy policy: an LSTM of two layers and a softmax over the seven actions (Muses, section II-C).

In JAX, as the project's PPO is, and not in PyTorch: what an ordinary install gets of PyTorch for Linux comes
with CUDA, 3 GB of it. JAX's build for CPUs is a fiftieth, and the same program runs on a GPU where the
machine's JAX has one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray
from safetensors import safe_open

from trimtab.tensors import save_file

FORMAT = "trimtab-muses-lstm"
VERSION = "1"
LAYERS = 2
SIGNALS = 7
ACTIONS = 7
#: The tensors that may be whole numbers in a file, the most that one of them is, and the name of its scales.
WHOLE = ("layer0.hidden", "layer1.hidden", "layer1.input")
WHOLE_MOST = 127
SCALE = ".scale"
#: A direction in which standardised states vary less than this, by variance, is not blown up.
SPREAD_MIN = 1e-4

#: Weights: layerN.input [4H, inputs], layerN.hidden [4H, H], layerN.bias [4H], head.weight and head.bias.
#: The four blocks of a layer are those of the input, forget, cell and output gate.
Params = dict[str, Any]
#: The two states of each layer, for each flow.
Carry = Any
Floats = NDArray[np.float32]


def init(seed: int, hidden: int) -> Params:
    """Draw weights to begin with, evenly within one over the square root of the number of units."""
    random = np.random.default_rng(seed)
    bound = 1.0 / np.sqrt(hidden)

    def draw(*shape: int) -> jax.Array:
        return jnp.asarray(random.uniform(-bound, bound, shape), jnp.float32)

    params: Params = {}
    for layer in range(LAYERS):
        inputs = SIGNALS if layer == 0 else hidden
        params[f"layer{layer}.input"] = draw(4 * hidden, inputs)
        params[f"layer{layer}.hidden"] = draw(4 * hidden, hidden)
        bias = np.zeros(4 * hidden, np.float32)
        # A cell that keeps what it has is where to begin (Jozefowicz et al., 2015).
        bias[hidden : 2 * hidden] = 1.0
        params[f"layer{layer}.bias"] = jnp.asarray(bias)
    params["head.weight"] = draw(ACTIONS, hidden)
    params["head.bias"] = jnp.zeros(ACTIONS, jnp.float32)
    return params


def blank(params: Params, flows: int) -> Carry:
    """Give the states of flows that have seen nothing."""
    hidden = params["head.weight"].shape[1]
    return jnp.zeros((LAYERS, 2, flows, hidden), jnp.float32)


def step(params: Params, carry: Carry, seen: jax.Array) -> tuple[Carry, jax.Array]:
    """Take one state of each flow; gives the scores of the actions."""
    layers = []
    for layer in range(LAYERS):
        short, long = carry[layer]
        gates = (
            seen @ params[f"layer{layer}.input"].T
            + short @ params[f"layer{layer}.hidden"].T
            + params[f"layer{layer}.bias"]
        )
        enter, forget, cell, leave = jnp.split(gates, 4, axis=-1)
        long = jax.nn.sigmoid(forget) * long + jax.nn.sigmoid(enter) * jnp.tanh(cell)
        seen = jax.nn.sigmoid(leave) * jnp.tanh(long)
        layers.append(jnp.stack([seen, long]))
    return jnp.stack(layers), seen @ params["head.weight"].T + params["head.bias"]


@jax.jit
def choose(params: Params, carry: Carry, seen: jax.Array) -> tuple[Carry, jax.Array]:
    """Take one state of each flow; gives the number of its best action."""
    carry, scores = step(params, carry, seen)
    return carry, scores.argmax(axis=-1)


@partial(jax.jit, donate_argnums=1)
def choose_of_many(
    params: Params, carries: Carry, flows: jax.Array, seen: jax.Array
) -> tuple[Carry, jax.Array]:
    """As choose, where each network has several flows and this one of them decides."""
    rows = jnp.arange(seen.shape[0])
    carry, best = choose(params, carries[:, :, rows, flows], seen)
    return carries.at[:, :, rows, flows].set(carry), best


def _gates(sums: jax.Array) -> list[jax.Array]:
    enter, forget, cell, leave = jnp.split(sums, 4, axis=-1)
    return [jax.nn.sigmoid(enter), jax.nn.sigmoid(forget), jnp.tanh(cell), jax.nn.sigmoid(leave)]


@jax.custom_vjp
def _layer(hidden: jax.Array, sums: jax.Array, carry: Carry) -> tuple[Carry, jax.Array]:
    """Run a layer over what its inputs add to its gates, time first; gives its states after, and its outputs.

    As `step` does. Its slope is written out, since the one that JAX derives adds to the slope of the weights
    at each interval; here that is one product at the end, which takes a sixth less time.
    """
    (carry, outputs), _ = _layer_forward(hidden, sums, carry)
    return carry, outputs


def _layer_forward(hidden: jax.Array, sums: jax.Array, carry: Carry) -> Any:
    def forward(carry: Carry, part: jax.Array) -> Any:
        short, long = carry
        enter, forget, cell, leave = gates = _gates(part + short @ hidden.T)
        long = forget * long + enter * cell
        short = leave * jnp.tanh(long)
        return jnp.stack([short, long]), (short, long, gates)

    after, (shorts, longs, gates) = lax.scan(forward, carry, sums)
    return (after, shorts), (hidden, carry, shorts, longs, gates)


def _layer_backward(kept: Any, slopes: Any) -> Any:
    hidden, carry, shorts, longs, gates = kept
    before = [jnp.concatenate([carry[i][None], all_[:-1]]) for i, all_ in enumerate((shorts, longs))]

    def backward(slope: Carry, part: Any) -> Any:
        of_output, long, long_before, (enter, forget, cell, leave) = part
        of_short, of_long = slope[0] + of_output, slope[1]
        bent = jnp.tanh(long)
        of_long = of_long + of_short * leave * (1 - bent * bent)
        of_sums = jnp.concatenate(
            [
                of_long * cell * enter * (1 - enter),
                of_long * long_before * forget * (1 - forget),
                of_long * enter * (1 - cell * cell),
                of_short * bent * leave * (1 - leave),
            ],
            axis=-1,
        )
        return jnp.stack([of_sums @ hidden, of_long * forget]), of_sums

    first, of_sums = lax.scan(backward, slopes[0], (slopes[1], longs, before[1], gates), reverse=True)
    return jnp.einsum("tbg,tbh->gh", of_sums, before[0]), of_sums, first


_layer.defvjp(_layer_forward, _layer_backward)


def run(params: Params, carry: Carry, seen: jax.Array) -> tuple[Carry, jax.Array]:
    """Take many states of each flow, time first; gives the scores of the actions in each."""
    layers = []
    for layer in range(LAYERS):
        sums = seen @ params[f"layer{layer}.input"].T + params[f"layer{layer}.bias"]
        after, seen = _layer(params[f"layer{layer}.hidden"], sums, carry[layer])
        layers.append(after)
    return jnp.stack(layers), seen @ params["head.weight"].T + params["head.bias"]


def loss(
    params: Params, carry: Carry, seen: jax.Array, labels: jax.Array
) -> tuple[jax.Array, tuple[Carry, jax.Array]]:
    """Cross entropy of a batch, time first; labels below 0 do not count. Also how many were right."""
    after, scores = run(params, carry, seen)
    counts = labels >= 0
    right = (scores.argmax(axis=-1) == labels) & counts
    picked = jnp.take_along_axis(jax.nn.log_softmax(scores), jnp.maximum(labels, 0)[..., None], axis=-1)
    total = jnp.maximum(counts.sum(), 1)
    return -(picked[..., 0] * counts).sum() / total, (after, right.sum() / total)


def trainer(optimiser: Any) -> Callable[..., Any]:
    """Give the function that makes one step of the optimiser on a batch."""

    @jax.jit
    def train(params: Params, state: Any, carry: Carry, seen: jax.Array, labels: jax.Array) -> Any:
        slope = jax.value_and_grad(loss, has_aux=True)
        (value, (after, right)), gradient = slope(params, carry, seen, labels)
        update, state = optimiser.update(gradient, state, params)
        params = jax.tree.map(jnp.add, params, update)
        return params, state, lax.stop_gradient(after), value, right

    return train


@dataclass
class Teacher:
    """Weights, and the constants that states are standardised by."""

    params: Params
    mean: Floats
    scale: Floats
    turn: Floats = field(default_factory=lambda: np.eye(SIGNALS, dtype=np.float32))
    """What standardised states are multiplied by while it learns; the file's weights have it in them."""

    def see(self, states: NDArray[np.int16]) -> Floats:
        """Standardise and turn states."""
        return (((states - self.mean) / self.scale) @ self.turn.T).astype(np.float32)

    def turned(self, states: NDArray[np.int16]) -> Teacher:
        """Give the same policy in the coordinates in which these states vary equally in every direction.

        What says most is a small difference of large signals: the window over what the path carries, say.
        Seen signal by signal it is a hundredth of their range, and takes long to learn.
        """
        plain = self.turn @ ((states - self.mean) / self.scale).T
        spread, directions = np.linalg.eigh(np.cov(plain))
        length = np.sqrt(spread + SPREAD_MIN)
        params = dict(self.params)
        params["layer0.input"] = jnp.asarray(np.asarray(params["layer0.input"]) @ (directions * length))
        turn = ((directions / length).T @ self.turn).astype(np.float32)
        return Teacher(params, self.mean, self.scale, turn)

    def widened(self, seed: int, hidden: int) -> Teacher:
        """Give an LSTM of more units that decides the same, to go on from (Net2Net, Chen et al., 2016).

        A unit is copied, with all that comes in; what goes out of it is divided among the copies, unevenly,
        so that they learn different things. Raises ValueError where it has more units already.
        """
        old = self.params["head.weight"].shape[1]
        if hidden < old:
            raise ValueError(f"the LSTM to start from has {old} units: give --hidden {old} or more")
        random = np.random.default_rng((seed, old, hidden))
        copied = np.concatenate([np.arange(old), np.resize(random.permutation(old), hidden - old)])

        def outgoing(weights: Any) -> Floats:
            parts = random.uniform(0.5, 1.5, (len(weights), hidden))
            whole = parts @ np.eye(old)[copied]
            return np.asarray(np.asarray(weights)[:, copied] * parts / whole[:, copied], np.float32)

        rows = np.concatenate([gate * old + copied for gate in range(4)])
        params: Params = {}
        for layer in range(LAYERS):
            first = np.asarray(self.params[f"layer{layer}.input"])
            params[f"layer{layer}.input"] = (outgoing(first) if layer else first)[rows]
            params[f"layer{layer}.hidden"] = outgoing(self.params[f"layer{layer}.hidden"])[rows]
            params[f"layer{layer}.bias"] = np.asarray(self.params[f"layer{layer}.bias"])[rows]
        params["head.weight"] = outgoing(self.params["head.weight"])
        params["head.bias"] = self.params["head.bias"]
        return Teacher({name: jnp.asarray(value) for name, value in params.items()}, self.mean, self.scale)

    def save(self, path: Path, *, whole: bool = False) -> str:
        """Write the file. Gives its checksum, by which the model is known.

        With `whole`, the weights of the large tensors are whole numbers of eight bits with a scale for each
        row, which takes a quarter. Those of the signals and of the actions stay as they are: there a small
        difference of large numbers counts.
        """
        params = self.params | {"layer0.input": np.asarray(self.params["layer0.input"]) @ self.turn}
        tensors = {name: np.ascontiguousarray(value, "<f4") for name, value in sorted(params.items())}
        for name in WHOLE if whole else ():
            scale = np.maximum(np.abs(tensors[name]).max(axis=1) / WHOLE_MOST, np.finfo("<f4").tiny)
            tensors[name + SCALE] = scale.astype("<f4")
            tensors[name] = np.rint(tensors[name] / tensors[name + SCALE][:, None]).astype(np.int8)
        tensors |= {"norm.mean": self.mean.astype("<f4"), "norm.scale": self.scale.astype("<f4")}
        digest = hashlib.sha256()
        for name, tensor in sorted(tensors.items()):
            digest.update(name.encode() + tensor.tobytes())
        about = {"format": FORMAT, "version": VERSION, "sha256": digest.hexdigest()}
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, path, about)
        return about["sha256"]

    @classmethod
    def load(cls, path: Path) -> Teacher:
        """Read a file that `save` wrote. Raises ValueError when it is another kind or version."""
        if not path.exists():
            raise ValueError(f"there is no LSTM {path}: train it first, with --stage lstm")
        with safe_open(path, "numpy") as file:
            about: dict[str, str] = file.metadata() or {}
            if about.get("format") != FORMAT or about.get("version") != VERSION:
                raise ValueError(f"{path} is no {FORMAT} model of version {VERSION}: train it again")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name in [name for name in tensors if name + SCALE in tensors]:
            tensors[name] = tensors[name].astype(np.float32) * tensors.pop(name + SCALE)[:, None]
        mean, scale = tensors.pop("norm.mean"), tensors.pop("norm.scale")
        return cls({name: jnp.asarray(value) for name, value in tensors.items()}, mean, scale)
