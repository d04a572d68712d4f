"""The model file of the trees is what the Rust side reads: its tests have the same file."""

from pathlib import Path

import numpy as np

from trimtab.muses.trees import BINS, COMPONENTS, LEAF, SIGNALS, Trees, decide

SMALL = Path(__file__).parents[2] / "fuzz" / "seeds" / "trees" / "small"


def small() -> Trees:
    """Two trees, told apart by the first component, which is qdelay / 100."""
    weights = np.zeros((COMPONENTS, SIGNALS), np.int64)
    weights[:, 1] = 1 << 16
    centres = np.zeros((2, COMPONENTS * BINS), np.int64)
    # Centre 0 lies in the first segment, centre 1 in the last.
    centres[0, 0] = centres[1, BINS - 1] = 2000
    grows: list[tuple[int, int, int]] = [
        (1, 100, 2),
        (LEAF | 6, 0, 0),
        (1, 500, 4),
        (LEAF | 3, 0, 0),
        (LEAF | 1, 0, 0),
    ]
    return Trees(
        low=np.zeros(SIGNALS, np.int64),
        high=np.array([16000, 3000, 16000, 16000, 16000, 1024, 16000]),
        weights=weights,
        origin=np.zeros(COMPONENTS, np.int64),
        width=np.array([100, 100, 100]),
        norms=np.array([1000, 1000]),
        centres=centres,
        nodes=[grows, [(LEAF | 2, 0, 0)]],
        first=1,
        states=4,
    )


def test_the_file_is_the_one_that_rust_reads() -> None:
    assert small().pack() == SMALL.read_bytes()


def test_trees_are_walked_by_their_thresholds() -> None:
    states = np.zeros((4, SIGNALS), np.int16)
    states[:, 1] = [100, 101, 500, 501]
    assert decide(small().nodes[0], states).tolist() == [6, 3, 3, 1]
    assert decide(small().nodes[1], states).tolist() == [2, 2, 2, 2]
