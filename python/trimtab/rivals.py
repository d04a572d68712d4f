"""Convert the published weights of a rival to the file that `trimtab compare --cc NAME:model=FILE` reads.

No weights ship with Trimtab. Indigo's are in the repository StanfordSNR/indigo, Aurora's in the history of
PCCproject/PCC-RL (commit 74db5c32), MOCC's in swz21/MOCC, all under the Apache License 2.0. Orca's are in
Soheil-ab/Orca (MIT License), Astraea's in xudongliao/astraea-open-source, which states no licence. All are
checkpoints of TensorFlow:

    python -m trimtab.rivals indigo indigo/dagger/model/model out/indigo.safetensors
    python -m trimtab.rivals aurora PCC-RL/icml_paper_model/variables/variables out/aurora.safetensors
    python -m trimtab.rivals mocc MOCC/PCC-RL/src/gym/model/variables/variables out/mocc.safetensors
    python -m trimtab.rivals orca Orca/models/model.ckpt-1283529 out/orca.safetensors
    python -m trimtab.rivals astraea astraea-open-source/models/py/model-299 out/astraea.safetensors
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimtab.checkpoint_file import CheckpointError, tensors
from trimtab.tensors import save_file

FORMATS = {
    "indigo": "trimtab-indigo-lstm",
    "aurora": "trimtab-aurora-mlp",
    "mocc": "trimtab-mocc-mlp",
    "orca": "trimtab-orca-mlp",
    "astraea": "trimtab-astraea-mlp",
}
VERSION = "1"
#: Values of a state with the last action (`run_sender.py`), units, actions.
INPUTS = 9
HIDDEN = 32
ACTIONS = 5
#: What TensorFlow's `BasicLSTMCell` adds to the forget gate.
FORGET = 1.0

#: Aurora's layers: values of a history, units, the change.
AURORA = (30, 32, 16, 1)
#: MOCC's: values of a history and the weights, units, the change.
MOCC = (33, 64, 32, 1)

#: Values of a history, and layers before the output, of Orca and Astraea.
ORCA = (70, 2)
ASTRAEA = (50, 3)
#: What `tf.layers.batch_normalization` adds to a variance.
EPSILON = 1e-3

Floats = NDArray[np.float32]


def checked(weights: dict[str, Floats], shapes: dict[str, tuple[int, ...]], whose: str) -> list[Floats]:
    """Take tensors by name; each has its shape."""
    for name, shape in shapes.items():
        if name not in weights or weights[name].shape != shape:
            raise CheckpointError(f"the checkpoint has no tensor {name} of shape {shape}: is it {whose}'s?")
    return [weights[name] for name in shapes]


def tanh(weights: dict[str, Floats], sizes: tuple[int, ...], whose: str) -> dict[str, Floats]:
    """Name the weights of a policy of Aurora's kind; the value function and the old policy are left out."""
    theirs = ["model/pi_fc0", "model/pi_fc1", "model/pi"]
    converted: dict[str, Floats] = {}
    for number, (name, ours) in enumerate(zip(theirs, ["layer0", "layer1", "head"], strict=True)):
        inputs, outputs = sizes[number], sizes[number + 1]
        shapes: dict[str, tuple[int, ...]] = {f"{name}/w": (inputs, outputs), f"{name}/b": (outputs,)}
        weight, bias = checked(weights, shapes, whose)
        converted |= {f"{ours}.weight": np.ascontiguousarray(weight.T), f"{ours}.bias": bias}
    return converted


def aurora(weights: dict[str, Floats]) -> dict[str, Floats]:
    """Name the weights of Aurora's checkpoint."""
    return tanh(weights, AURORA, "Aurora")


def mocc(weights: dict[str, Floats]) -> dict[str, Floats]:
    """Name the weights of MOCC's checkpoint."""
    return tanh(weights, MOCC, "MOCC")


def indigo(weights: dict[str, Floats]) -> dict[str, Floats]:
    """Name and order the weights of Indigo's checkpoint as our LSTMs have them.

    `BasicLSTMCell` has the blocks input, cell, forget and output; ours are input, forget, cell and output.
    """
    cell = "global/rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
    shapes: dict[str, tuple[int, ...]] = {
        f"{cell}/kernel": (INPUTS + HIDDEN, 4 * HIDDEN),
        f"{cell}/bias": (4 * HIDDEN,),
        "global/fully_connected/weights": (HIDDEN, ACTIONS),
        "global/fully_connected/biases": (ACTIONS,),
    }
    kernel, bias, head, head_bias = checked(weights, shapes, "Indigo")
    blocks = [slice(block * HIDDEN, (block + 1) * HIDDEN) for block in (0, 2, 1, 3)]
    order = np.concatenate([np.arange(4 * HIDDEN)[block] for block in blocks])
    forget = np.zeros(4 * HIDDEN, np.float32)
    forget[HIDDEN : 2 * HIDDEN] = FORGET
    kernel = kernel[:, order]
    return {
        "layer0.input": np.ascontiguousarray(kernel[:INPUTS].T),
        "layer0.hidden": np.ascontiguousarray(kernel[INPUTS:].T),
        "layer0.bias": bias[order] + forget,
        "head.weight": np.ascontiguousarray(head.T),
        "head.bias": head_bias,
    }


def leaky(weights: dict[str, Floats], inputs: int, layers: int, whose: str) -> dict[str, Floats]:
    """Name the weights of an actor of Orca's kind, each batch normalisation folded into its layer.

    The critics and the targets are left out.
    """
    converted: dict[str, Floats] = {}
    for number in range(layers):
        fc, norm = f"actor/fc{number + 1}", "actor/batch_normalization" + (f"_{number}" if number else "")
        units = weights[f"{fc}/bias"].size if f"{fc}/bias" in weights else 0
        of_units = [f"{fc}/bias"] + [f"{norm}/{name}" for name in ("beta", "moving_mean", "moving_variance")]
        shapes: dict[str, tuple[int, ...]] = {f"{fc}/kernel": (inputs, units)}
        shapes |= dict.fromkeys(of_units, (units,))
        kernel, bias, beta, mean, variance = (
            part.astype(np.float64) for part in checked(weights, shapes, whose)
        )
        scale = 1 / np.sqrt(variance + EPSILON)
        converted[f"layer{number}.weight"] = np.ascontiguousarray((kernel * scale).T, np.float32)
        converted[f"layer{number}.bias"] = ((bias - mean) * scale + beta).astype(np.float32)
        inputs = units
    head = checked(weights, {"actor/dense/kernel": (inputs, 1), "actor/dense/bias": (1,)}, whose)
    return converted | {"head.weight": np.ascontiguousarray(head[0].T), "head.bias": head[1]}


def orca(weights: dict[str, Floats]) -> dict[str, Floats]:
    """Name the weights of Orca's checkpoint."""
    return leaky(weights, *ORCA, "Orca")


def astraea(weights: dict[str, Floats]) -> dict[str, Floats]:
    """Name the weights of Astraea's checkpoint."""
    return leaky(weights, *ASTRAEA, "Astraea")


CONVERTERS = {"indigo": indigo, "aurora": aurora, "mocc": mocc, "orca": orca, "astraea": astraea}


def save(rival: str, converted: dict[str, Floats], path: Path) -> None:
    """Write a rival's file."""
    digest = hashlib.sha256()
    for name in sorted(converted):
        digest.update(name.encode())
        digest.update(converted[name].tobytes())
    save_file(converted, path, {"format": FORMATS[rival], "version": VERSION, "sha256": digest.hexdigest()})


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rival", choices=sorted(CONVERTERS), help="whose weights they are")
    parser.add_argument("checkpoint", type=Path, help="the checkpoint's name, without .index")
    parser.add_argument("out", type=Path, help="the file to write, e.g. out/indigo.safetensors")
    options = parser.parse_args()
    try:
        converted = CONVERTERS[options.rival](tensors(options.checkpoint))
        save(options.rival, converted, options.out)
    except (OSError, CheckpointError) as problem:
        parser.exit(2, f"{options.checkpoint} cannot be converted: {problem}\n")
    print(f"{options.out} written: trimtab compare --cc {options.rival}:model={options.out}")


if __name__ == "__main__":
    main()
