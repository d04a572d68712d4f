"""What a memory per destination learns, and the command that measures it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trimtab._native import Arms, Course, Episodes
from trimtab.course import Settings
from trimtab.memory.learnt import Learnt, learn
from trimtab.memory.measure import main
from trimtab.memory.options import Visits, problem
from trimtab.memory.visits import Seen
from trimtab.memory.ways import Row, compare, follow, preferred

ARMS = 3


def world(paths: int, visits: int, seed: int) -> Seen:
    """Make paths on which one number of the state tells whether the second arm or the third is best."""
    random = np.random.default_rng(seed)
    kind = random.normal(size=(paths, 1, 1))
    worths = np.concatenate([np.zeros_like(kind), 0.3 * kind, -0.3 * kind], axis=2)
    level = random.normal(size=(paths, 1, 1), scale=2.0)
    sizes = random.normal(size=(paths, visits, ARMS)) + 10.0
    shared = random.normal(size=(paths, visits, 1), scale=0.3)
    own = random.normal(size=(paths, visits, ARMS), scale=0.05)
    told = (
        np.repeat(np.repeat(kind, visits, axis=1), ARMS, axis=2)
        + random.normal(size=(paths, visits, ARMS)) / 9
    )
    return Seen(level + worths - 0.8 * sizes + shared + own, sizes, told[..., None])


@pytest.fixture(scope="module")
def learnt() -> Learnt:
    """Learn from a hundred paths."""
    return learn(world(100, 2, 1), 1)


def test_what_is_learnt_is_what_the_world_has(learnt: Learnt) -> None:
    assert learnt.slope == pytest.approx(-0.8, abs=0.05)
    assert learnt.prior.noise == pytest.approx(np.hypot(0.3, 0.05), abs=0.05)
    # The second and the third arm vary against each other, by 0.3, and the first not at all.
    spread = np.sqrt(np.diag(learnt.prior.covariance))
    assert spread == pytest.approx([0.0, 0.3, 0.3], abs=0.06)
    assert learnt.prior.covariance[1, 2] == pytest.approx(-0.09, abs=0.03)
    assert (np.sqrt(np.diag(learnt.errors))[1:] < 0.15).all(), "states tell most of it"


def test_a_memory_closes_most_of_the_gap_from_the_second_visit_on(learnt: Learnt) -> None:
    rows = compare(world(60, 10, 2), 5, learnt, 0.01)

    def share(who: str, visit: int) -> float:
        found: list[Row] = [row for row in rows if (row.who, row.visit) == (who, visit)]
        return found[0].closed[0]

    assert share("states, times", 1) == pytest.approx(share("times alone", 1))
    assert share("states, times", 5) > 0.8
    assert share("states, times", 5) > share("times alone", 5) + 0.3
    assert share("clairvoyant", 5) >= share("second bound", 5) > 0.8


def test_every_visit_knows_the_visits_before_it(learnt: Learnt) -> None:
    asked: list[tuple[int, list[int]]] = []

    def prior(path: int, chosen: np.ndarray) -> object:
        asked.append((path, chosen.tolist()))
        return learnt.prior

    rewards = np.zeros((2, 3, ARMS))
    rewards[..., 1] = 9.0
    chosen = follow(rewards, prior, 0.0, lambda _, draw: draw % ARMS)  # type: ignore[arg-type]
    assert chosen.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert asked == [(path, [0, 1, 2][:visit]) for path in range(2) for visit in range(3)]


def test_a_policy_prefers_by_the_end_of_the_visit_before() -> None:
    # The state of each arm at each visit is the arm that the policy then prefers.
    wishes = np.asarray([[[1, 0, 0], [2, 2, 1], [0, 0, 0]], [[0, 1, 2], [0, 0, 0], [0, 0, 0]]], np.float64)
    chosen = preferred(wishes[..., None], lambda states: states[:, 0].astype(np.int64), 0)
    assert chosen.tolist() == [[0, 1, 2], [0, 0, 0]]


def test_arms_refuse_what_makes_no_sense() -> None:
    arms = Arms([0.0, 0.1], [0.04, 0.0, 0.0, 0.04], noise=0.1, drift=0.0)
    assert (arms.best(), arms.draw(3)) == (1, arms.draw(3))
    arms.observe(0, 1.0)
    arms.observe(1, 0.5)
    assert arms.best() == 0
    assert arms.worths()[0][0] == pytest.approx(-arms.worths()[1][0])
    with pytest.raises(ValueError, match="arm 2: there are 2"):
        arms.observe(2, 0.0)
    with pytest.raises(ValueError, match="the size of covariance = 3"):
        Arms([0.0, 0.1], [0.04, 0.0, 0.04], noise=0.1, drift=0.0)


def test_a_visit_is_to_the_same_path_at_another_time() -> None:
    course: Course = Settings(algorithms=("cubic", "bbr"), periods=2, generated=2, start="bbr").course()
    first, again, later = (Episodes.visits(course, [5, 6], visit) for visit in (0, 0, 1))
    assert first.completions() == again.completions() == Episodes(course, [5, 6]).completions()
    assert later.completions() != first.completions()
    assert all(size > 0 for size in later.sizes())


def test_the_command_measures_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "memory.json"
    words = (
        "--algorithms cubic;bbr --paths 3 --fitted 10 --visits 2 --periods 2 --generated 20 --conditions 9"
    )
    assert main([*words.split(), "--json", str(figures)]) == 0
    said = capsys.readouterr().out
    assert "states, times" in said
    assert "for validation" in said
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert {row["visit"] for row in written["rows"]} == {1, 2}
    assert main([*words.split(), "--json", str(tmp_path / "none" / "memory.json")]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_settings_that_cannot_be_are_named() -> None:
    assert problem(Visits()) is None
    assert "--algorithms" in (problem(Visits(algorithms="cubic;cubic")) or "")
    assert "--flows" in (problem(Visits(flows="1,x")) or "")
    assert "--drift" in (problem(Visits(drift=2.0)) or "")
