"""Connections on a cluster are those of one machine.

Ray itself is stood in for: what goes to a worker and comes back is copied.
"""

import dataclasses
import importlib
import pickle
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trimtab.envs import INFO, SelectVectorEnv
from trimtab.policy import Array
from trimtab.train import counterfactual
from trimtab.train.options import Training
from trimtab.train.teacher import Teacher

#: Five connections over three workers: uneven shares.
SETTINGS = Training(
    parallel=5, periods=4, period_ms=2_000, generated=8, conditions=20, rivals="2", ray="stand-in"
)
LEARNING = dataclasses.replace(SETTINGS, method="counterfactual", horizon=2)


def copied(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


class Handle:
    """An actor: its methods have `remote`, and give what `get` takes."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *given: pickle.dumps(getattr(self.made, name)(*copied(given))))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    ray: Any = ModuleType("ray")
    ray.init = lambda **_: None
    ray.cluster_resources = lambda: {"CPU": 3.0}
    ray.remote = lambda kind: SimpleNamespace(remote=lambda *given: Handle(kind(*copied(given))))
    ray.get = lambda calls: [pickle.loads(call) for call in calls]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delitem(sys.modules, "trimtab.train.cluster", raising=False)
    module = importlib.import_module("trimtab.train.cluster")
    monkeypatch.delitem(sys.modules, "trimtab.train.cluster")
    return module


def test_what_a_cluster_collects_is_what_one_machine_does(cluster: ModuleType) -> None:
    def chooser() -> Callable[[Array], list[int]]:
        random = np.random.default_rng(5)
        return lambda states: [int(a) for a in random.integers(4, size=len(states))]

    course = SETTINGS.course().course()
    seeds, tries = [3, 1, 4, 1, 5], [True, False, True]
    there = cluster.Cluster(LEARNING)
    assert len(there.workers) == 3
    teacher = Teacher(LEARNING, course)
    far = there.collect(course, seeds, tries, teacher, chooser())
    near = counterfactual.collect(course, seeds, tries, teacher, chooser())
    np.testing.assert_array_equal(far.states, near.states)
    for name in ("costs", "lost", "harm", "connection"):
        np.testing.assert_array_equal(getattr(far, name), getattr(near, name))
    assert far.states.shape[0] == 10
    taught = cluster.Cluster(dataclasses.replace(LEARNING, teacher="twin", futures=2))
    among = taught.collect(course, seeds, tries, teacher, chooser())
    np.testing.assert_array_equal(among.states, np.concatenate([far.states[:5]] * 2 + [far.states[5:]] * 2))
    assert (among.costs[:5] != among.costs[5:10]).any()


def test_the_environment_on_a_cluster_is_that_of_one_machine(cluster: ModuleType) -> None:
    course = SETTINGS.course().course()
    far, near = cluster.ClusterEnv(SETTINGS, course), SelectVectorEnv(5, SETTINGS.course(), course)
    with pytest.raises(RuntimeError, match="reset"):
        far.step(np.zeros(5, np.int64))
    for seed in (np.int64(7), [1, 2, 3, 4, 5]):
        np.testing.assert_array_equal(far.reset(seed=seed)[0], near.reset(seed=seed)[0])
        # The third step ends all connections, the fourth is one of new ones.
        for actions in ([0, 1, 2, 3, 0], [1, 1, 2, 0, 3], [2, 0, 0, 1, 1], [3, 3, 1, 0, 2]):
            mine, other = far.step(np.asarray(actions)), near.step(np.asarray(actions))
            for i in range(4):
                np.testing.assert_array_equal(mine[i], other[i])
            for name in INFO:
                np.testing.assert_array_equal(mine[4][name], other[4][name])
