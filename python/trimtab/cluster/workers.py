"""Objects that live on a cluster and remember what they were asked, such as connections under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.cluster.connection import RETRIES, Cluster, ClusterError, named, settle

#: A call: a method, and its arguments.
Call = tuple[str, tuple[Any, ...]]


class Held:
    """An object in a process of its own on some node."""

    def __init__(self, folder: str | None, kind: Any, *arguments: Any) -> None:
        settle(folder)
        self.held = named(kind, *arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the object."""
        return named(getattr(self.held, method), *arguments)


class Workers:
    """`count` objects of a class, each made on the cluster from the same arguments.

    The class must be deterministic: an object that is lost is made again elsewhere, and is asked again what
    the lost one was asked since it began.
    """

    def __init__(self, cluster: Cluster, count: int, kind: Any, *arguments: Any) -> None:
        self.cluster, self.arguments = cluster, (cluster.folder, kind, *arguments)
        self.actors = [self._actor() for _ in range(count)]
        self.asked: list[list[Call]] = [[] for _ in range(count)]

    def __len__(self) -> int:
        return len(self.actors)

    def ask(self, method: str, each: Sequence[tuple[Any, ...]], *, begins: bool = False) -> list[Any]:
        """Call a method of every object with arguments of its own, and wait for all.

        Where it `begins`, the answers from now on do not depend on earlier calls.

        Raises:
            ValueError: An object refused its arguments.
            ClusterError: The method failed otherwise, or objects were lost too often.

        """
        for asked, arguments in zip(self.asked, each, strict=True):
            if begins:
                asked.clear()
            asked.append((method, arguments))
        pending = [
            actor.call.remote(method, *arguments) for actor, arguments in zip(self.actors, each, strict=True)
        ]
        return [self._answer(number, ref) for number, ref in enumerate(pending)]

    def _answer(self, number: int, ref: Any) -> Any:
        for _ in range(RETRIES):
            try:
                return self.cluster.get(ref)
            except self.cluster.ray.exceptions.RayActorError as problem:
                lost = problem
            # One that is only out of reach must not come back.
            self.cluster.ray.kill(self.actors[number])
            self.actors[number] = self._actor()
            for method, arguments in self.asked[number]:
                ref = self.actors[number].call.remote(method, *arguments)
        raise ClusterError(
            f"the cluster lost the same worker {RETRIES} times: {lost}; "
            "see the logs of its nodes, and whether they have memory enough"
        )

    def _actor(self) -> Any:
        # Ray's own restart would begin with an object that knows nothing. No CPU is taken for good: where a
        # node is lost, the others must have room.
        make = self.cluster.ray.remote(max_restarts=0, scheduling_strategy="SPREAD")(Held)
        return make.remote(*self.arguments)
