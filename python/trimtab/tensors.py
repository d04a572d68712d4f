"""Tensors in a safetensors file whose bytes follow from what is in it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save


def save_file(tensors: dict[str, np.ndarray], path: Path, about: dict[str, str]) -> None:
    """Write a file. The library puts the metadata in any order, another one each time; here it is sorted."""
    data = save(tensors, about)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    # The tensors stay where they are: the library fills the header up with spaces, too.
    path.write_bytes(data[:8] + text.ljust(length) + data[8 + length :])
