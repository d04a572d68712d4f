"""Tensors of a TensorFlow checkpoint (`NAME.index`, `NAME.data-00000-of-00001`), without TensorFlow.

The index is a table of LevelDB (`table_format.md` of its documentation) whose values are messages of
`tensorflow/core/protobuf/tensor_bundle.proto`. Compressed blocks are
refused: TensorFlow writes none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: The last bytes of an index.
MAGIC = 0xDB4775248B80FB57
FOOTER = 48
#: `DT_FLOAT` of `types.proto`, the only type that is read.
FLOAT = 1


class CheckpointError(ValueError):
    """A file is no checkpoint that can be read."""


def tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Read all tensors of floats of the checkpoint with this name."""
    index = path.with_name(f"{path.name}.index").read_bytes()
    data = path.with_name(f"{path.name}.data-00000-of-00001").read_bytes()
    if len(index) < FOOTER or struct.unpack("<Q", index[-8:])[0] != MAGIC:
        raise CheckpointError(f"{path}.index is no index of a checkpoint: give the name without .index")
    footer = index[-FOOTER:]
    _, at = _handle(footer, 0)
    (start, size), _ = _handle(footer, at)
    found = {}
    for _, value in _block(index, start, size):
        for name, entry in _block(index, *_handle(value, 0)[0]):
            tensor = _tensor(entry, data) if name else None
            if tensor is not None:
                found[name.decode()] = tensor
    return found


def _tensor(entry: bytes, data: bytes) -> NDArray[np.float32] | None:
    """Read the tensor of a `BundleEntryProto`; None where it holds no floats."""
    numbers, parts = _fields(entry)
    if numbers.get(1) != FLOAT:
        return None
    # A tensor has one shape, whose sizes repeat: `TensorShapeProto`.
    sizes = [
        _fields(size)[0].get(1, 0) for shape in parts.get(2, []) for size in _fields(shape)[1].get(2, [])
    ]
    start, size = numbers.get(4, 0), numbers.get(5, 0)
    if start + size > len(data):
        raise CheckpointError("the data file is shorter than its index says: get it again")
    return np.frombuffer(data[start : start + size], "<f4").reshape(sizes)


def _number(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        if at >= len(data):
            raise CheckpointError("the index is cut: get it again")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Read where a block begins, and its size."""
    start, at = _number(data, at)
    size, at = _number(data, at)
    return (start, size), at


def _block(index: bytes, start: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Give the keys and values of a block, which ends with a list of restarts."""
    if start + size >= len(index) or index[start + size] != 0:
        raise CheckpointError("the index has a block that is compressed or cut: save it by TensorFlow again")
    block = index[start : start + size]
    end = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0]
    at, key = 0, b""
    while at < end:
        shared, at = _number(block, at)
        own, at = _number(block, at)
        length, at = _number(block, at)
        key = key[:shared] + block[at : at + own]
        yield key, block[at + own : at + own + length]
        at += own + length


def _fields(message: bytes) -> tuple[dict[int, int], dict[int, list[bytes]]]:
    """Give the fields of a message of Protocol Buffers: numbers, and what has a length."""
    numbers: dict[int, int] = {}
    parts: dict[int, list[bytes]] = {}
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        kind, field = tag & 7, tag >> 3
        if kind == 0:
            numbers[field], at = _number(message, at)
        elif kind == 2:
            length, at = _number(message, at)
            parts.setdefault(field, []).append(message[at : at + length])
            at += length
        elif kind == 5:
            at += 4
        else:
            raise CheckpointError(f"the index has a field of kind {kind}: it is no checkpoint")
    return numbers, parts
