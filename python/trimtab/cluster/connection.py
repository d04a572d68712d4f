"""A connection to a Ray cluster, and work on it that needs nothing but its arguments."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from trimtab.progress import Bar

#: How often Ray does work again that was lost with its worker or node.
RETRIES = 5
#: Seconds in which a cluster must answer, and each of its nodes. Ray itself tries for minutes.
ANSWER_S, NODE_ANSWER_S = 5.0, 120.0

INSTALL = "pip install 'trimtab[ray]' here and on every node"


class ClusterError(OSError):
    """The cluster cannot be used, or lost work for good."""


class Cluster:
    """A Ray cluster whose nodes have this package.

    A connection that the process has already, by ``ray.init``, is taken and left open. ``send`` has Ray copy
    the working directory to the nodes. Without it they work in the folder of the same path, if they have it.

    Raises:
        ClusterError: Ray is not installed, no cluster answers, or a node lacks this version of Trimtab.

    """

    def __init__(self, address: str = "auto", *, send: bool = False) -> None:
        self.ray = _ray()
        self._is_own = not self.ray.is_initialized()
        if self._is_own:
            self._connect(address, send)
        sent = self.ray.get_runtime_context().runtime_env.get("working_dir")
        self.folder = None if sent else str(Path.cwd())
        try:
            self._check_nodes()
        except BaseException:
            self.close()
            raise

    @classmethod
    def at(cls, where: str | Cluster) -> AbstractContextManager[Cluster]:
        """Give the cluster at an address for a `with`; one that is connected stays so after it."""
        return nullcontext(where) if isinstance(where, Cluster) else cls(where)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. The cluster ends what still runs of this connection."""
        if self._is_own:
            self.ray.shutdown()

    @property
    def cpus(self) -> int:
        """How many CPUs the cluster has now, at least 1."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 0)))

    def results(
        self, work: Callable[..., Any], items: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Call `work` with each tuple of arguments, on a CPU of some node; gives results with their places.

        They come as they are done. What a worker or a node loses is done again elsewhere. What still runs
        when the caller stops is ended.

        Raises:
            ValueError: The work refused its arguments.
            ClusterError: It failed otherwise, or was lost too often.

        """
        task = self.ray.remote(num_cpus=1, max_retries=RETRIES)(on_node)
        places = {task.remote(self.folder, work, *item): place for place, item in enumerate(items)}
        waiting = list(places)
        try:
            while waiting:
                done, waiting = self.ray.wait(waiting)
                for ref in done:
                    yield places[ref], self.get(ref)
        finally:
            for ref in waiting:
                self.ray.cancel(ref, force=True)

    def map(
        self, work: Callable[..., Any], items: Sequence[tuple[Any, ...]], progress: Bar | None
    ) -> list[Any]:
        """Give the `results` in the order of the items. The bar advances by one for each."""
        results: list[Any] = [None] * len(items)
        for place, result in self.results(work, items):
            results[place] = result
            if progress is not None:
                progress.advance(1)
        return results

    def get(self, ref: Any) -> Any:
        """Wait for a result. Raises as `map`, and what Ray raises for an actor that is lost."""
        errors = self.ray.exceptions
        try:
            return self.ray.get(ref)
        except errors.RayTaskError as problem:
            if isinstance(problem.cause, ValueError):
                raise problem.cause from None
            raise ClusterError(f"work on the cluster failed: {problem}") from None
        except errors.RayActorError:
            raise
        except errors.RayError as problem:
            raise ClusterError(
                f"the cluster lost the same work {RETRIES + 1} times: {problem}; "
                "see the logs of its nodes, and whether they have memory enough"
            ) from None

    def _connect(self, address: str, send: bool) -> None:
        asked = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
        _must_listen(asked)
        try:
            self.ray.init(
                address=asked,
                logging_level="warning",
                runtime_env={"working_dir": str(Path.cwd())} if send else None,
            )
        except (ConnectionError, RuntimeError, ValueError) as problem:
            where = "on this machine" if asked == "auto" else f"at {asked}"
            raise ClusterError(
                f"cannot use a Ray cluster {where}: {problem}; start one with `ray start --head`, "
                "and name its address (--ray, or RAY_ADDRESS)"
            ) from None

    def _check_nodes(self) -> None:
        """Ask each node that does work for its version, by the standard library: it may lack our package."""
        on = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        ask = self.ray.remote(num_cpus=0)(metadata.version)
        nodes = [n for n in self.ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0) > 0]
        if not nodes:
            raise ClusterError("no node of the cluster has a CPU for work: add one with `ray start`")
        calls = [
            ask.options(scheduling_strategy=on(node["NodeID"], soft=False)).remote("trimtab")
            for node in nodes
        ]
        for node, call in zip(nodes, calls, strict=True):
            name = node["NodeManagerHostname"]
            try:
                version = self.ray.get(call, timeout=NODE_ANSWER_S)
            except metadata.PackageNotFoundError:
                raise ClusterError(f"node {name} has no Trimtab: {INSTALL}") from None
            except self.ray.exceptions.TaskUnschedulableError:
                # It left the cluster meanwhile.
                continue
            except self.ray.exceptions.RayError as problem:
                raise ClusterError(
                    f"node {name} does not answer: {problem}; mend it or take it out of the cluster"
                ) from None
            if version != own_version():
                raise ClusterError(
                    f"node {name} has Trimtab {version}, and this is {own_version()}: "
                    "install the same version everywhere, since another may give other numbers"
                )


def own_version() -> str:
    """Give the version that every node must have, too."""
    return metadata.version("trimtab")


def on_node(folder: str | None, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do work on a node."""
    settle(folder)
    return named(work, *arguments)


def named(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call, and name this node where the work refuses its arguments."""
    try:
        return work(*arguments)
    except ValueError as problem:
        raise ValueError(f"on node {socket.gethostname()}: {problem}") from None


def settle(folder: str | None) -> None:
    """Make a process of the cluster like the one that asks: its folder, and no more than its one CPU."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    if folder is not None and Path(folder).is_dir():
        os.chdir(folder)


def _ray() -> ModuleType:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as problem:
        raise ClusterError(f"there is no Python module {problem.name}: {INSTALL}") from None


def _must_listen(address: str) -> None:
    """Raise at once where nobody listens at `HOST:PORT`."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except OSError as problem:
        raise ClusterError(
            f"no Ray cluster answers at {address}: {problem}; start one with `ray start --head`, "
            "and name its address (--ray, or RAY_ADDRESS)"
        ) from None
