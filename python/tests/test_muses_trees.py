"""The model file of the trees is what the Rust side reads: its tests have the same file."""

from pathlib import Path

import numpy as np
import pytest

from trimtab._native import muses_outcomes
from trimtab.muses import options
from trimtab.muses.chosen import Several
from trimtab.muses.drive import environments
from trimtab.muses.extract import NEVER, STATES
from trimtab.muses.inputs import SIGNALS
from trimtab.muses.trees import BINS, COMPONENTS, LEAF, Node, Trees, decide, file_size

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
        (LEAF, 0, 32_768),
        (1, 500, 4),
        (LEAF, 0, 16_384),
        (LEAF, 0, 13_653),
    ]
    return Trees(
        low=np.zeros(SIGNALS, np.int64),
        high=np.array([16000, 3000, 16000, 16000, 16000, 1024, 16000]),
        weights=weights,
        origin=np.zeros(COMPONENTS, np.int64),
        width=np.array([100, 100, 100]),
        norms=np.array([1000, 1000]),
        centres=centres,
        nodes=[grows, [(LEAF, 0, 15_604)]],
        first=1,
        states=4,
    )


def test_the_file_is_the_one_that_rust_reads() -> None:
    assert small().pack() == SMALL.read_bytes()


def test_trees_are_walked_by_their_thresholds() -> None:
    states = np.zeros((4, SIGNALS), np.int16)
    states[:, 1] = [100, 101, 500, 501]
    assert decide(small().nodes[0], states).tolist() == [32_768, 16_384, 16_384, 13_653]
    assert decide(small().nodes[1], states).tolist() == [15_604] * 4


def of_leaves(count: int) -> list[Node]:
    """A tree with so many leaves, all to the left of one another's parents."""
    inner: list[Node] = []
    for at in range(count - 1):
        inner += [(1, at, 2 * at + 2), (LEAF, 0, 16_384)]
    return [*inner, (LEAF, 0, 15_604)]


def test_the_largest_file_is_as_large_as_its_settings_say() -> None:
    model = small()
    model.nodes = [of_leaves(500), of_leaves(500)]
    assert len(model.pack()) == file_size(2, 500)
    model.nodes = [of_leaves(30_000)] * 2
    model.pack()
    model.nodes = [of_leaves(30_000)] * 3
    with pytest.raises(ValueError, match="fewer --leaves"):
        model.pack()


def test_a_number_that_does_not_fit_is_said() -> None:
    model = small()
    model.norms = np.array([1 << 31, 0])
    with pytest.raises(ValueError, match="does not fit their file"):
        model.pack()


def test_what_makes_too_large_a_file_is_refused_before_training(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in [
        (["--clusters", "2-40", "--leaves", "5000"], "most that is read"),
        (["--clusters", "64"], "within 2 to 63"),
    ]:
        with pytest.raises(SystemExit):
            options.parse(arguments)
        assert said in capsys.readouterr().err
    options.parse(["--clusters", "2-63", "--leaves", "1000"])


def test_flows_that_are_judged_last_long_enough_for_a_tree_to_be_selected() -> None:
    stages = options.parse(["--generated", "4"])
    world = environments(stages, "steady-wifi", "test", stages.judged)
    selecting, fixed = small(), small()
    selecting.states = fixed.states = STATES
    # It begins with the tree that grows the window, as a model begins with the global tree, which is never
    # the nearest; the other shrinks it.
    for model in (selecting, fixed):
        model.first, model.norms = 0, np.array([NEVER, 0])
    fixed.nodes = [fixed.nodes[0]] * 2

    def outcomes(model: Trees, length_ms: int) -> list[tuple[float, float, float]]:
        return muses_outcomes(world, [1, 2], flows=1, length_ms=length_ms, trees=model.pack())

    assert outcomes(selecting, 9_900) == outcomes(fixed, 9_900), "nothing is known of the path yet"
    length = stages.judged * 10
    for selected, kept in zip(outcomes(selecting, length), outcomes(fixed, length), strict=True):
        assert selected[0] < 0.8 * kept[0], (selected, kept)


def test_several_trees_drive_as_the_file_says() -> None:
    # Tree 1 first; after four states without a queue the other (tests of crates/cc have the same file).
    model = small()
    several = Several(model, 2, 1, 4)
    nobody = np.zeros(2, np.int64)
    states = np.zeros((2, 7), np.int16)
    states[1, 1] = 950
    done = [several.act(states, nobody, nobody).tolist() for _ in range(5)]
    assert done == [[15_604] * 2] * 3 + [[32_768, 15_604]] * 2
    assert several.trees.tolist() == [0, 1]
