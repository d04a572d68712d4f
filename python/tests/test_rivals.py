"""The converters of rivals' weights, and what NumPy makes of their networks.

`TRIMTAB_CHECKPOINTS="orca:CHECKPOINT:OUT"`, parted by spaces, does the same for weights that the user has: a
test converts each and writes OUT.actions, which tests of crates/steer/src/rival compare.
"""

from __future__ import annotations

import itertools
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trimtab.checkpoint_file import MAGIC, CheckpointError, tensors
from trimtab.rivals import (
    ACTIONS,
    ASTRAEA,
    AURORA,
    CONVERTERS,
    EPSILON,
    HIDDEN,
    INPUTS,
    MOCC,
    ORCA,
    aurora,
    indigo,
    save,
)

ROOT = Path(__file__).parents[2]
#: What Rust reads and reproduces (`crates/steer/src/rival`).
DRAWN = ROOT / "fuzz/seeds/indigo/drawn"
GOLDEN = ROOT / "crates/steer/src/rival/indigo_actions.txt"
AURORA_GOLDEN = ROOT / "crates/steer/src/rival/aurora_changes.txt"
MOCC_GOLDEN = ROOT / "crates/steer/src/rival/mocc_changes.txt"
STATES = 2000

Floats = NDArray[np.float32]


def drawn() -> dict[str, Floats]:
    """Draw weights of the shapes of Indigo's checkpoint."""
    random = np.random.default_rng(32)
    cell = "global/rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
    shapes: dict[str, tuple[int, ...]] = {
        "global/fully_connected/biases": (ACTIONS,),
        "global/fully_connected/weights": (HIDDEN, ACTIONS),
        f"{cell}/bias": (4 * HIDDEN,),
        f"{cell}/kernel": (INPUTS + HIDDEN, 4 * HIDDEN),
    }
    scale = {name: 1.5 if "connected" in name else 0.3 for name in shapes}
    return {name: random.normal(0, scale[name], shape).astype(np.float32) for name, shape in shapes.items()}


def state(step: int) -> list[float]:
    """Give the state of a step; the same stands in Rust."""

    def part(a: int, m: int) -> float:
        return float(step * a % m)

    return [part(37, 400), part(53, 211) / 2, part(71, 223) / 2, 2 + part(97, 900)]


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


def actions(weights: dict[str, Floats], steps: int) -> str:
    """Run the network as TensorFlow does, in 64 bits, on the checkpoint's own weights."""
    cell = "global/rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
    kernel, bias = weights[f"{cell}/kernel"].astype(float), weights[f"{cell}/bias"].astype(float)
    head = weights["global/fully_connected/weights"].astype(float)
    c, h, last, said = np.zeros(HIDDEN), np.zeros(HIDDEN), ACTIONS - 1, ""
    for step in range(steps):
        values = np.array(state(step)) / [200, 200, 200, 5000]
        i, j, f, o = np.split(np.concatenate([values, np.eye(ACTIONS)[last], h]) @ kernel + bias, 4)
        c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
        h = np.tanh(c) * sigmoid(o)
        last = int(np.argmax(h @ head + weights["global/fully_connected/biases"]))
        said += str(last)
    return said


def drawn_tanh(sizes: tuple[int, ...]) -> dict[str, Floats]:
    """Draw weights of the shapes of Aurora's checkpoint, or MOCC's."""
    random = np.random.default_rng(6)
    weights: dict[str, Floats] = {}
    for name, (inputs, outputs) in zip(["pi_fc0", "pi_fc1", "pi"], itertools.pairwise(sizes), strict=True):
        weights[f"model/{name}/w"] = random.normal(0, 0.4, (inputs, outputs)).astype(np.float32)
        weights[f"model/{name}/b"] = random.normal(0, 0.4, outputs).astype(np.float32)
    return weights


def history(step: int) -> list[float]:
    """Give the history of a step; the same stands in Rust."""
    values = []
    for i in range(AURORA[0]):
        rise, ratio, sent = (
            step * (i + 7) % 41 / 100 - 0.2,
            step * (i + 3) % 53 / 25,
            step * (i + 5) % 37 / 30,
        )
        values.append([rise, 1 + ratio, 1 + sent][i % 3])
    return values


def preference(step: int) -> list[float]:
    """Give what throughput, delay and loss are worth in a step; the same stands in Rust."""
    throughput = (1 + step % 8) / 10
    return [throughput, 0.9 - throughput, 0.1]


def changes(weights: dict[str, Floats], steps: int) -> list[float]:
    """Run the network on the checkpoint's own weights, in 64 bits."""
    said = []
    for step in range(steps):
        values = history(step) + preference(step)
        x = np.array(values[: weights["model/pi_fc0/w"].shape[0]])
        for name in ["pi_fc0", "pi_fc1", "pi"]:
            x = x @ weights[f"model/{name}/w"].astype(float) + weights[f"model/{name}/b"]
            x = x if name == "pi" else np.tanh(x)
        said.append(float(x[0]))
    return said


#: Orca and Astraea with few units: values of a history, and the units of each layer.
SMALL = {"orca": (ORCA[0], 12, 9), "astraea": (ASTRAEA[0], 12, 9, 5)}
#: The highest of each number of a state in a course; the same stands in Rust.
MOST = {
    "orca": [1, 2, 0.1, 0.5, 0.03, 1, 1],
    "astraea": [1, 2, 2, 2, 1, 0.2, 0.05, 1, 2, 0.05],
}


def norm(number: int) -> str:
    """Name the batch normalisation of a layer, as TensorFlow does."""
    return "actor/batch_normalization" + (f"_{number}" if number else "")


def drawn_leaky(rival: str) -> dict[str, Floats]:
    """Draw weights of the shapes of a checkpoint with few units."""
    random = np.random.default_rng(20)
    weights: dict[str, Floats] = {}

    def draw(name: str, *shape: int, scale: float = 0.3) -> None:
        weights[name] = random.normal(0, scale, shape).astype(np.float32)

    for number, (inputs, units) in enumerate(itertools.pairwise(SMALL[rival])):
        draw(f"actor/fc{number + 1}/kernel", inputs, units)
        draw(f"actor/fc{number + 1}/bias", units)
        draw(f"{norm(number)}/beta", units)
        draw(f"{norm(number)}/moving_mean", units)
        weights[f"{norm(number)}/moving_variance"] = random.uniform(0.5, 3, units).astype(np.float32)
    draw("actor/dense/kernel", SMALL[rival][-1], 1, scale=0.5)
    draw("actor/dense/bias", 1)
    return weights


def leaky_actions(weights: dict[str, Floats], rival: str, steps: int) -> list[float]:
    """Run an actor of Orca's kind on the checkpoint's own weights, in 64 bits; the same course is in Rust."""
    layers, most = len(SMALL[rival]) - 1, MOST[rival]
    said = []
    for step in range(steps):
        x = np.array(
            [step * (i + 7) % (31 + i) / (31 + i) * most[i % len(most)] for i in range(SMALL[rival][0])]
        )
        for number in range(layers):
            fc = f"actor/fc{number + 1}"
            x = x @ weights[f"{fc}/kernel"].astype(float) + weights[f"{fc}/bias"]
            mean, variance = (weights[f"{norm(number)}/moving_{part}"] for part in ("mean", "variance"))
            x = (x - mean) / np.sqrt(variance.astype(float) + EPSILON) + weights[f"{norm(number)}/beta"]
            x = np.where(x > 0, x, 0.2 * x)
        x = x @ weights["actor/dense/kernel"].astype(float) + weights["actor/dense/bias"]
        said.append(float(np.tanh(x[0])))
    return said


def write_checkpoint(weights: dict[str, Floats], path: Path) -> None:
    """Write a checkpoint as TensorFlow lays it out, keys without shared beginnings."""

    def number(n: int) -> bytes:
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def block(entries: list[tuple[bytes, bytes]]) -> bytes:
        body = b"".join(
            number(0) + number(len(key)) + number(len(value)) + key + value for key, value in entries
        )
        return body + struct.pack("<II", 0, 1)

    data, entries = b"", [(b"", b"\x08\x01")]
    for name in sorted(weights):
        raw = weights[name].tobytes()
        shape = b"".join(
            b"\x12" + number(len(number(n)) + 1) + b"\x08" + number(n) for n in weights[name].shape
        )
        entry = b"\x08\x01\x12" + number(len(shape)) + shape + b"\x20" + number(len(data))
        entries.append((name.encode(), entry + b"\x28" + number(len(raw)) + b"\x35\0\0\0\0"))
        data += raw
    body = block(entries)
    index = block([(b"z", number(0) + number(len(body)))])
    footer = number(0) + number(0) + number(len(body) + 5) + number(len(index))
    file = body + bytes(5) + index + bytes(5) + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)
    path.with_name(f"{path.name}.index").write_bytes(file)
    path.with_name(f"{path.name}.data-00000-of-00001").write_bytes(data)


def test_a_checkpoint_is_read_and_converted(tmp_path: Path) -> None:
    """The file that Rust is tested with is that of the drawn weights, by way of a checkpoint."""
    write_checkpoint(drawn(), tmp_path / "model")
    read = tensors(tmp_path / "model")
    assert read.keys() == drawn().keys()
    assert all(np.array_equal(read[name], tensor) for name, tensor in drawn().items())
    save("indigo", indigo(read), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == DRAWN.read_bytes()
    for rival, sizes in [("aurora", AURORA), ("mocc", MOCC)]:
        write_checkpoint(drawn_tanh(sizes), tmp_path / "variables")
        save(rival, CONVERTERS[rival](tensors(tmp_path / "variables")), tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == (ROOT / f"fuzz/seeds/{rival}/drawn").read_bytes()


@pytest.mark.parametrize("rival", sorted(SMALL))
def test_a_checkpoint_of_orcas_kind_is_read_and_converted(rival: str, tmp_path: Path) -> None:
    """The files and actions that Rust is tested with are those of the drawn weights."""
    write_checkpoint(drawn_leaky(rival), tmp_path / "model")
    save(rival, CONVERTERS[rival](tensors(tmp_path / "model")), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == (ROOT / f"fuzz/seeds/{rival}/drawn").read_bytes()
    golden = (ROOT / f"crates/steer/src/rival/{rival}_actions.txt").read_text().split()
    actions = [float(line) for line in golden]
    assert np.allclose(leaky_actions(drawn_leaky(rival), rival, STATES), actions, rtol=0, atol=1e-6)


def test_checkpoints_of_the_users_are_converted() -> None:
    """What NumPy makes of the authors' weights, for Rust to compare."""
    for given in os.environ.get("TRIMTAB_CHECKPOINTS", "").split():
        rival, checkpoint, out = given.split(":")
        weights = tensors(Path(checkpoint))
        save(rival, CONVERTERS[rival](weights), Path(out))
        said = leaky_actions(weights, rival, STATES) if rival in SMALL else changes(weights, STATES)
        Path(f"{out}.actions").write_text("".join(f"{action:.7f}\n" for action in said))
        assert len(set(said)) > STATES / 2, "it answers what it sees"


def test_the_actions_that_rust_reproduces_are_those_of_numpy() -> None:
    """Rust has the converted weights; this has the checkpoint's, in TensorFlow's order."""
    assert actions(drawn(), STATES) == GOLDEN.read_text().strip()
    for sizes, file in [(AURORA, AURORA_GOLDEN), (MOCC, MOCC_GOLDEN)]:
        golden = [float(line) for line in file.read_text().split()]
        assert np.allclose(changes(drawn_tanh(sizes), STATES), golden, rtol=0, atol=1e-6)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """Another file, a cut one, and one of other tensors."""
    path = tmp_path / "model"
    write_checkpoint(drawn(), path)
    with pytest.raises(CheckpointError, match="is it Indigo's"):
        indigo({"w": np.zeros(3, np.float32)})
    with pytest.raises(CheckpointError, match="is it Aurora's"):
        aurora(drawn())
    with pytest.raises(CheckpointError, match="is it MOCC's"):
        CONVERTERS["mocc"](drawn_tanh(AURORA))
    with pytest.raises(CheckpointError, match="is it Orca's"):
        CONVERTERS["orca"](drawn_leaky("astraea"))
    with pytest.raises(CheckpointError, match="is it Astraea's"):
        CONVERTERS["astraea"](drawn_leaky("orca"))
    data = tmp_path / "model.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="shorter than its index"):
        tensors(path)
    (tmp_path / "model.index").write_bytes(b"nothing at all")
    with pytest.raises(CheckpointError, match=r"without \.index"):
        tensors(path)
