"""A cluster gives what one machine does, to the byte, also when workers and nodes die.

Two nodes of Ray with a CPU each run on this machine.
"""

import dataclasses
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trimtab
from trimtab.cluster import Cluster, ClusterError, connection
from trimtab.cluster.__main__ import main
from trimtab.comparison import share
from trimtab.envs import INFO, SelectVectorEnv
from trimtab.policy import Array
from trimtab.progress import Bar
from trimtab.train import counterfactual
from trimtab.train.cluster import ClusterEnv, Connections
from trimtab.train.options import Training
from trimtab.train.teacher import Teacher

if importlib.util.find_spec("ray") is None and not os.environ.get("CI"):
    pytest.skip("Ray is not installed: pip install './python[ray]'", allow_module_level=True)

#: Five connections over two workers: uneven shares.
SETTINGS = Training(parallel=5, periods=4, period_ms=2_000, generated=8, conditions=20, rivals="2")
LEARNING = dataclasses.replace(SETTINGS, method="counterfactual", horizon=2)
#: Twelve runs.
GRID: dict[str, Any] = {
    "app": "download",
    "cc": ["cubic", "copa:mit", "mortise"],
    "traces": ["constant:8Mbit/s", "cellular:seed=1"],
    "duration": "4s",
    "seeds": 2,
    "loss": "0.5%",
}
SCENARIOS = Path(__file__).parents[2] / "scenarios"
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


@contextmanager
def first() -> Iterator[None]:
    """Start what does not give way to other tests: Ray gives up on helpers that take 15 s. Its workers do."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, niceness)


class Nodes:
    """The nodes, and how to lose one."""

    def __init__(self, local: Any) -> None:
        self.local = local
        self.address: str = local.address
        self.other = self.add()

    def add(self) -> Any:
        with first():
            return self.local.add_node(**NODE)

    def lose(self) -> None:
        """Kill a node with its workers, and put another in its place."""
        self.local.remove_node(self.other, allow_graceful=False)
        self.other = self.add()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with first():
        local = importlib.import_module("ray.cluster_utils").Cluster(
            initialize_head=True, head_node_args={"include_dashboard": False, **NODE}
        )
    yield Nodes(local)
    local.shutdown()


@pytest.fixture(scope="module")
def cluster(nodes: Nodes) -> Iterator[Cluster]:
    with Cluster(nodes.address) as connected:
        # Nodes do not have this file.
        importlib.import_module("ray.cloudpickle").register_pickle_by_value(sys.modules[__name__])
        yield connected


def test_a_comparison_on_a_cluster_has_the_bytes_of_one_machine(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    near = trimtab.compare(**GRID, progress=True)
    far = trimtab.compare(**GRID, ray=cluster, progress=True)
    assert json.dumps(far.record) == json.dumps(near.record)
    assert (far, far.summary, far.html()) == (near, near.summary, near.html())
    assert far.record["provenance"]["command"].endswith("progress=True)"), "the call on one machine"
    assert "12 of 12" in capfd.readouterr().err


def dies_once(mark: str, number: int) -> int:
    """Kill the process the first time that 3 comes."""
    if number == 3 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01 * (5 - number))
    return number


def test_work_whose_worker_dies_is_done_again_and_results_keep_their_order(
    cluster: Cluster, tmp_path: Path
) -> None:
    bar = Bar("numbers", 6)
    assert cluster.map(dies_once, [(str(tmp_path / "died"), n) for n in range(6)], bar) == [*range(6)]
    assert (tmp_path / "died").exists() and bar.done == 6


def test_what_the_work_refuses_names_the_node(cluster: Cluster) -> None:
    nowhere = 'cc = ["cubic"]\ntraces = ["none.trace"]\n[[app]]\nkind = "bulk"'
    with pytest.raises(ValueError, match=r"on node .+: no trace file matches none\.trace"):
        cluster.map(share, [(nowhere, 0, 1)], None)


def chooser() -> Callable[[Array], list[int]]:
    random = np.random.default_rng(5)
    return lambda states: [int(a) for a in random.integers(4, size=len(states))]


def same(far: Any, near: Any) -> None:
    for name in ("states", "costs", "lost", "harm", "connection"):
        np.testing.assert_array_equal(getattr(far, name), getattr(near, name))


def test_what_a_cluster_collects_is_what_one_machine_does_also_when_a_worker_dies(cluster: Cluster) -> None:
    course = SETTINGS.course().course()
    seeds, tries = [3, 1, 4, 1, 5], [True, False, True]
    teacher = Teacher(LEARNING, course)
    there = Connections(LEARNING, cluster)
    assert len(there.workers) == 2
    near = counterfactual.collect(course, seeds, tries, teacher, chooser())
    assert near.states.shape[0] == 10
    same(there.collect(course, seeds, tries, teacher, chooser()), near)
    # In the middle of a round: the new worker must learn what the old one had been through.
    choose, steps = chooser(), []

    def deadly(states: Array) -> list[int]:
        steps.append(len(states))
        if len(steps) == 2:
            cluster.ray.kill(there.workers.actors[1])
        return choose(states)

    same(there.collect(course, seeds, tries, teacher, deadly), near)
    assert steps == [5, 5, 5]


def test_the_environment_on_a_cluster_is_that_of_one_machine(cluster: Cluster, nodes: Nodes) -> None:
    course = SETTINGS.course().course()
    far, near = ClusterEnv(SETTINGS, course, cluster), SelectVectorEnv(5, SETTINGS.course(), course)
    with pytest.raises(RuntimeError, match="reset"):
        far.step(np.zeros(5, np.int64))
    for seed in (np.int64(7), [1, 2, 3, 4, 5]):
        np.testing.assert_array_equal(far.reset(seed=seed)[0], near.reset(seed=seed)[0])
        # The third step ends all connections, the fourth is one of new ones.
        for number, actions in enumerate(
            ([0, 1, 2, 3, 0], [1, 1, 2, 0, 3], [2, 0, 0, 1, 1], [3, 3, 1, 0, 2])
        ):
            if number == 1 and isinstance(seed, list):
                nodes.lose()
            mine, other = far.step(np.asarray(actions)), near.step(np.asarray(actions))
            for i in range(4):
                np.testing.assert_array_equal(mine[i], other[i])
            for name in INFO:
                np.testing.assert_array_equal(mine[4][name], other[4][name])


def test_a_node_with_another_version_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "own_version", lambda: "9.9.9")
    with pytest.raises(ClusterError, match=r"has Trimtab [0-9.]+, and this is 9\.9\.9: install the same"):
        Cluster()


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"no Python module ray: pip install 'trimtab\[ray\]' here"):
        trimtab.compare(**GRID, ray="auto")


def test_without_a_cluster_the_error_comes_at_once() -> None:
    with pytest.raises(ClusterError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: .*ray start --head"):
        connection._must_listen("127.0.0.1:1")


def test_a_figure_on_a_cluster_leaves_the_files_of_one_machine(cluster: Cluster, tmp_path: Path) -> None:
    names = ("mortise/fig19",)
    given: dict[str, Any] = {"quick": True, "scenarios": SCENARIOS}
    near = trimtab.reproduce(*names, out=tmp_path / "near", **given)
    far = trimtab.reproduce(*names, out=tmp_path / "far", ray=cluster, **given)
    assert far == near and [verdict["name"] for verdict in far] == [*names]
    files = [path.relative_to(tmp_path / "near") for path in (tmp_path / "near").rglob("*.*")]
    assert len(files) == 4
    for file in files:
        assert (tmp_path / "far" / file).read_bytes() == (tmp_path / "near" / file).read_bytes()


def test_the_command_has_the_record_of_the_command_for_one_machine(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--app", "download", "--cc", "cubic", "--cc", "copa:mit", "--traces", "constant:8Mbit/s"]
    flags += ["--duration", "4s", "--seeds", "2", "--loss", "0.5%", "--json", "out.json"]
    assert main(["compare", *flags, "--ray", "auto"]) == 0
    printed, written = capsys.readouterr().out, Path("out.json").read_text()
    assert "copa:mit" in printed
    record = json.loads(written)
    assert record["provenance"]["command"] == f"trimtab compare {' '.join(flags)}"
    grid = {"app": "download", "cc": ["cubic", "copa:mit"], "traces": "constant:8Mbit/s", "duration": "4s"}
    near = trimtab.compare(**grid, seeds=2, loss="0.5%").record  # type: ignore[arg-type]
    near["provenance"]["command"] = record["provenance"]["command"]
    assert written == json.dumps(near, indent=2, ensure_ascii=False) + "\n"
    assert main(["compare", "--cc", "cubik"]) == 2
    assert "error: " in capsys.readouterr().err
