"""Policies of trees: what they score, and that a file keeps it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimtab import Policy
from trimtab.forest import Forest

sklearn = pytest.importorskip("sklearn.ensemble", reason="pip install './python[antelope]'")

NAMES = ("cubic", "bbr", "copa")


def lessons(seed: int = 1, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Draw states of four features, the first three of which are the worths of the algorithms."""
    states = np.random.default_rng(seed).random((count, 4)).astype(np.float32)
    return states, states[:, :3]


def forest(leaves: int = 64, members: int = 3, **changes: object) -> Forest:
    """Fit a small one."""
    about: dict[str, Any] = {"features": ("busy", "loss_rate", "rtt_min", "candidate_0"), "algorithms": NAMES}
    about |= {"period_ms": 12_000, "first": "bbr", "caution": 0.0, "margin": 0.0}
    limits = {"low": np.zeros(4, np.float32), "high": np.ones(4, np.float32)}
    random = np.random.default_rng(3)
    samples = [lessons(seed) for seed in range(members)]
    return Forest.fit(samples, trees=4, leaves=leaves, random=random, **(about | limits | changes))


def test_trees_prefer_what_is_worth_most() -> None:
    states, worths = lessons(9)
    learnt = forest()
    chosen = learnt.choose(states)
    assert (chosen == worths.argmax(axis=1)).mean() > 0.8, "each alone is best in a third"
    assert learnt.choose(states + np.float32(2.0)).tolist() == [1] * len(states), (
        "of such states it knows nothing"
    )


def test_a_tree_scores_as_the_library_does() -> None:
    states, worths = lessons()
    fitted = sklearn.ExtraTreesRegressor(5, max_leaf_nodes=50, random_state=1).fit(states, worths)
    ours = Forest.fit(
        [(states, worths)],
        trees=5,
        leaves=50,
        random=np.random.default_rng(0),
        low=states.min(axis=0),
        high=states.max(axis=0),
        features=("a",) * 4,
        algorithms=NAMES,
        period_ms=1,
        first="bbr",
    )
    ours.members = [[type(ours.members[0][0]).of(tree.tree_) for tree in fitted.estimators_]]
    some, _ = lessons(5, 1_000)
    # States at a threshold, too: what is at most the threshold goes the first way.
    thresholds = [tree.tree_.threshold[0] for tree in fitted.estimators_]
    some[: len(thresholds)] = np.asarray(thresholds, np.float32)[:, None]
    assert np.allclose(ours.logits(some), fitted.predict(some), atol=1e-6)


def test_a_file_keeps_all_of_it(tmp_path: Path) -> None:
    # With one leaf more than a split has ways; and trees of one leaf alone, where all is the same.
    same = np.zeros((9, 3), np.float32)
    flat = Forest.fit(
        [(np.zeros((9, 4), np.float32), same)] * 2,
        trees=2,
        leaves=2,
        random=np.random.default_rng(0),
        low=np.zeros(4, np.float32),
        high=np.ones(4, np.float32),
        features=("busy", "loss_rate", "rtt_min", "rtt_rate"),
        algorithms=NAMES,
        period_ms=1,
        first="bbr",
        caution=1.5,
        margin=0.25,
    )
    states, _ = lessons(4)
    for number, written in enumerate((forest(), flat)):
        path = tmp_path / f"{number}.safetensors"
        checksum = written.save(path)
        read = Policy.load(path)
        assert isinstance(read, Forest)
        assert np.array_equal(read.scores(states), written.scores(states))
        assert (read.caution, read.margin, read.first) == (written.caution, written.margin, "bbr")
        assert np.array_equal(read.trusted(), written.trusted())
        assert read.shape() == written.shape()
        assert read.save(path) == checksum
