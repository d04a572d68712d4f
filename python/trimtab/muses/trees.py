"""The model file of the trees: what crates/cc/src/muses/trees.rs reads (docs/reference/trees.md)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimtab.muses.inputs import SIGNALS

MAGIC = b"TRIMTREE"
VERSION = 2
ACTIONS = 7
COMPONENTS = 3
BINS = 10
INTERVAL_MS = 10
#: Bits after the point of a projection's weights.
WEIGHT_POINT = 16
LEAF = 0x80
#: What the seven actions multiply the window by, in 1/16384, as the file's reader does.
FACTORS = np.array([8_192, 13_653, 15_604, 16_384, 17_203, 19_661, 32_768])
FACTOR_ONE = 1 << 14
#: What the reader takes at most: bytes of a file, and trees in it.
FILE_MAX = 1 << 20
TREES_MAX = 64
#: Bytes before the trees' centres; of a centre and its tree's entry; and of a node.
BEFORE = 32 + SIGNALS * 4 + COMPONENTS * (SIGNALS * 4 + 8)
EACH = 8 + COMPONENTS * BINS * 4 + 8
NODE = 6

Ints = NDArray[np.int64]
#: Input, threshold, node to go on with where the input is above it; a leaf: LEAF, 0, factor in 1/16384.
Node = tuple[int, int, int]


@dataclass
class Trees:
    """Trees, and what says which of them to ask."""

    low: Ints
    """Least value of each signal in training."""
    high: Ints
    weights: Ints
    """A row for each component, with WEIGHT_POINT bits after the point."""
    origin: Ints
    """Where the first segment of each component begins."""
    width: Ints
    """Width of its segments."""
    norms: Ints
    """|c|^2 of each cluster's centre, in any unit."""
    centres: Ints
    """2 Q^T c of each, in the same unit: a row of COMPONENTS * BINS."""
    nodes: list[list[Node]]
    """The nodes of each tree: one that goes on does so to the next one and a later one."""
    first: int
    states: int
    inputs: int = SIGNALS
    """How many inputs the nodes may compare: the signals alone, or all of trimtab.muses.inputs."""

    def pack(self) -> bytes:
        """Give the bytes of the file. Raises ValueError where it or a number is too large."""
        size = BEFORE + len(self.nodes) * EACH + NODE * sum(map(len, self.nodes))
        if size > FILE_MAX or len(self.nodes) > TREES_MAX:
            raise ValueError(
                f"{len(self.nodes)} trees in {size} bytes are more than the {TREES_MAX} in {FILE_MAX} that "
                "are read: give fewer --leaves or --clusters"
            )
        try:
            return self._packed()
        except struct.error as problem:
            raise ValueError(
                f"a number of the trees does not fit their file ({problem}): give more --flows or fewer "
                "--leaves"
            ) from problem

    def _packed(self) -> bytes:
        ranges = np.stack([self.low, self.high], axis=1).astype("<i2")
        body = struct.pack(
            "<4BHHI", self.inputs, ACTIONS, COMPONENTS, BINS, self.first, INTERVAL_MS, self.states
        )
        body += ranges.tobytes()
        for weights, origin, width in zip(self.weights, self.origin, self.width, strict=True):
            body += struct.pack(f"<{SIGNALS}iii", *map(int, weights), int(origin), int(width))
        for norm, centre in zip(self.norms, self.centres, strict=True):
            body += struct.pack(f"<ii{COMPONENTS * BINS}i", int(norm), 0, *map(int, centre))
        start = 0
        for tree in self.nodes:
            body += struct.pack("<IHH", start, len(tree), 0)
            start += len(tree)
        for tree in self.nodes:
            for kind, threshold, right in tree:
                body += struct.pack("<BBhH", kind, 0, threshold, right)
        length = len(MAGIC) + 12 + len(body)
        head = struct.pack("<HHII", VERSION, len(self.nodes), length, zlib.crc32(body))
        return MAGIC + head + body

    def save(self, path: Path) -> None:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.pack())


def file_size(trees: int, leaves: int) -> int:
    """Give the most bytes that a file of so many trees with so many leaves each can have."""
    return BEFORE + trees * (EACH + NODE * (2 * leaves - 1))


def decide(tree: list[Node], inputs: NDArray[np.int16]) -> NDArray[np.int64]:
    """Give what a tree multiplies the window by for the inputs in each row, as the file's reader does."""
    kind, threshold, right = (np.array(column) for column in zip(*tree, strict=True))
    at = np.zeros(len(inputs), np.int64)
    while (going := (kind[at] & LEAF) == 0).any():
        rows = np.nonzero(going)[0]
        here = at[rows]
        below = inputs[rows, kind[here]] <= threshold[here]
        at[rows] = np.where(below, here + 1, right[here])
    return np.asarray(right[at], np.int64)


def actions_of(factors: Ints) -> Ints:
    """Give the action that is nearest to each factor."""
    apart = np.abs(np.log2(factors / FACTOR_ONE)[:, None] - np.log2(FACTORS / FACTOR_ONE))
    return np.asarray(apart.argmin(axis=1), np.int64)
