"""The converters of rivals' weights, and what NumPy makes of the networks of Indigo and Aurora."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trimtab.checkpoint_file import MAGIC, CheckpointError, tensors
from trimtab.rivals import ACTIONS, AURORA, HIDDEN, INPUTS, aurora, indigo, save

ROOT = Path(__file__).parents[2]
#: What Rust reads and reproduces (`crates/steer/src/rival`).
DRAWN = ROOT / "fuzz/seeds/indigo/drawn"
GOLDEN = ROOT / "crates/steer/src/rival/indigo_actions.txt"
AURORA_DRAWN = ROOT / "fuzz/seeds/aurora/drawn"
AURORA_GOLDEN = ROOT / "crates/steer/src/rival/aurora_changes.txt"
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


def drawn_aurora() -> dict[str, Floats]:
    """Draw weights of the shapes of Aurora's checkpoint."""
    random = np.random.default_rng(6)
    sizes = itertools.pairwise(AURORA)
    weights: dict[str, Floats] = {}
    for name, (inputs, outputs) in zip(["pi_fc0", "pi_fc1", "pi"], sizes, strict=True):
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


def changes(weights: dict[str, Floats], steps: int) -> list[float]:
    """Run the network on the checkpoint's own weights, in 64 bits."""
    said = []
    for step in range(steps):
        x = np.array(history(step))
        for name in ["pi_fc0", "pi_fc1", "pi"]:
            x = x @ weights[f"model/{name}/w"].astype(float) + weights[f"model/{name}/b"]
            x = x if name == "pi" else np.tanh(x)
        said.append(float(x[0]))
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
    write_checkpoint(drawn_aurora(), tmp_path / "variables")
    save("aurora", aurora(tensors(tmp_path / "variables")), tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == AURORA_DRAWN.read_bytes()


def test_the_actions_that_rust_reproduces_are_those_of_numpy() -> None:
    """Rust has the converted weights; this has the checkpoint's, in TensorFlow's order."""
    assert actions(drawn(), STATES) == GOLDEN.read_text().strip()
    golden = [float(line) for line in AURORA_GOLDEN.read_text().split()]
    assert np.allclose(changes(drawn_aurora(), STATES), golden, rtol=0, atol=1e-6)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """Another file, a cut one, and one of other tensors."""
    path = tmp_path / "model"
    write_checkpoint(drawn(), path)
    with pytest.raises(CheckpointError, match="is it Indigo's"):
        indigo({"w": np.zeros(3, np.float32)})
    with pytest.raises(CheckpointError, match="is it Aurora's"):
        aurora(drawn())
    data = tmp_path / "model.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="shorter than its index"):
        tensors(path)
    (tmp_path / "model.index").write_bytes(b"nothing at all")
    with pytest.raises(CheckpointError, match=r"without \.index"):
        tensors(path)
