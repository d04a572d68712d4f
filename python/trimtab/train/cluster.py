"""Connections on a Ray cluster: the same batches, in workers on other machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trimtab._native import Course, Episodes
from trimtab.cluster import Cluster, Workers
from trimtab.envs import SelectVectorEnv
from trimtab.policy import Array
from trimtab.train.lessons import Lessons, lessons
from trimtab.train.options import Training
from trimtab.train.teacher import Teacher, Tried


class Worker:
    """A batch of connections on one machine of the cluster. It makes the course itself: courses are large."""

    def __init__(self, settings: Training) -> None:
        self.course = settings.course().course()
        self.episodes: Episodes | None = None
        self.teacher = Teacher(settings, self.course) if settings.method == "counterfactual" else None

    def begin(self, seeds: list[int]) -> list[float]:
        """Begin connections; gives their states."""
        self.episodes = Episodes(self.course, seeds)
        if self.teacher is not None:
            self.teacher.begin(self.episodes, seeds)
        return self.episodes.states()

    def outcomes(self, decision: int) -> list[Tried]:
        """Try every choice."""
        assert self.episodes is not None and self.teacher is not None
        return self.teacher.outcomes(self.episodes, decision)

    def step(self, actions: list[int]) -> tuple[Any, ...]:
        """Choose, run a period; gives the states after it last."""
        assert self.episodes is not None
        stepped = self.episodes.step(actions)
        if self.teacher is not None:
            self.teacher.observe(self.episodes)
        return (*stepped, self.episodes.states())


class Connections:
    """The connections of a training, over workers with an even share each."""

    def __init__(self, settings: Training, cluster: Cluster | None = None) -> None:
        cluster = cluster or Cluster(settings.ray)
        self.workers = Workers(cluster, min(settings.parallel, cluster.cpus), Worker, settings)

    def share(self, items: Sequence[Any]) -> list[tuple[list[Any]]]:
        """Deal out so that each worker has neighbours; those of the last may be fewer."""
        return [(part.tolist(),) for part in np.array_split(np.asarray(items), len(self.workers))]

    def begin(self, seeds: list[int]) -> list[Any]:
        """Begin connections; gives their states, worker by worker."""
        return self.workers.ask("begin", self.share(seeds), begins=True)

    def step(self, actions: Sequence[int]) -> list[Any]:
        """Choose for all connections, run a period; gives what each worker's `step` gives."""
        return self.workers.ask("step", self.share(actions))

    def collect(
        self,
        _course: Course,
        seeds: list[int],
        tries: list[bool],
        _teacher: Teacher,
        choose: Callable[[Array], list[int]],
    ) -> Lessons:
        """Do what `counterfactual.collect` does, on the cluster."""
        now = self.begin(seeds)
        states, outcomes = [], []
        for decision, is_tried in enumerate(tries):
            seen = _joined(now, len(seeds))
            if is_tried:
                tried = self.workers.ask("outcomes", [(decision,)] * len(self.workers))
                for parts in zip(*tried, strict=True):
                    states.append(seen)
                    outcomes.append([[row for part in parts for row in part[i]] for i in range(3)])
            now = [part[-1] for part in self.step(choose(seen))]
        return lessons(seeds, states, outcomes)


class ClusterEnv(SelectVectorEnv):
    """The vectorised environment with its connections on a cluster."""

    def __init__(self, settings: Training, course: Course, cluster: Cluster | None = None) -> None:
        super().__init__(settings.parallel, settings.course(), course)
        self._spread = _Spread(Connections(settings, cluster))

    def _begin(self, numbers: list[int]) -> None:
        self._spread.begin(numbers)
        self._episodes = self._spread  # type: ignore[assignment]


class _Spread:
    """Looks like `Episodes`, and is many of them."""

    def __init__(self, over: Connections) -> None:
        self.over = over
        self.now: list[list[float]] = []
        self.connections = 0

    def begin(self, seeds: list[int]) -> None:
        self.connections = len(seeds)
        self.now = self.over.begin(seeds)

    def states(self) -> list[float]:
        return [number for part in self.now for number in part]

    def step(self, actions: list[int]) -> tuple[list[Any], ...]:
        parts = self.over.step(actions)
        self.now = [part[-1] for part in parts]
        return tuple([value for part in parts for value in part[i]] for i in range(6))

    def reset(self, which: list[int], seeds: list[int]) -> None:
        # All connections of an environment are as long as each other, so all begin anew together.
        assert which == list(range(self.connections)), "connections end together"
        self.begin(seeds)


def _joined(parts: list[list[float]], count: int) -> Array:
    flat = [number for part in parts for number in part]
    return np.asarray(flat, np.float32).reshape(count, -1)
