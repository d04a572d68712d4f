"""Bounds: sets of candidates by what the path tells, resumption, and the commands from end to end."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from trimtab._native import Episodes, TwinPrior, Twins, came_to, constants, redrawn_outcomes
from trimtab.bounds import candidates, three
from trimtab.bounds.constants import Table, harm
from trimtab.bounds.drive import Seen, averaging, drive
from trimtab.bounds.options import Bounding, problem
from trimtab.bounds.search import best_fixed, greedy, hindsight, known
from trimtab.bounds.store import Store
from trimtab.bounds.three import share
from trimtab.bounds.twin import sure
from trimtab.course import Settings
from trimtab.train.evaluate import run as alone
from trimtab.train.lessons import Prices

SETTINGS = Settings(
    algorithms=("cubic", "bbr"), period_ms=2_000, periods=3, conditions=20, generated=10, split="validate"
)
PRICES = Prices(0.05, 5.0, 1.0)
SMALL = {
    "paths": "6",
    "futures": "3",
    "pool": "copa:mvfst;vegas",
    "algorithms": "copa:mvfst;copa:mvfst,delta=0.3",
    "most": "2",
    "traffic": "web-burst",
    "flows": "1",
    "horizon": "1",
    "fitted": "60",
    "particles": "3",
    "period_ms": "1000",
    "periods": "3",
    "conditions": "20",
    "generated": "10",
}


def table(logs: np.ndarray, names: tuple[str, ...]) -> Table:
    both, nothing = np.stack([logs, logs]), np.zeros_like(logs)
    return Table(names, list(range(len(logs))), both, both, nothing, nothing[:, :, 0])


def test_what_is_known_is_chosen_by_the_other_times() -> None:
    # One path, three times, two algorithms: at each time the other two speak for the other one.
    logs = np.asarray([[[0.0, 1.0], [1.0, 0.0], [2.0, 0.5]]])
    by_hand = np.mean([1.0, 0.0, 2.0])  # means of the others: (1.5, .25), (1, .75), (.5, .5)
    assert known(logs, [0, 1])[0] == pytest.approx(by_hand)
    assert hindsight(logs, [0, 1])[0] == pytest.approx(np.mean([0.0, 0.0, 0.5]))
    assert known(logs, [0])[0] == pytest.approx(1.0)


def test_the_search_finds_those_that_complement_each_other() -> None:
    random = np.random.default_rng(1)
    kind = np.arange(60) % 2
    # `a` is fair everywhere; `b` and `c` are each good on one half of the paths; `d` is nearly `a`.
    means = np.stack(
        [np.zeros(60), np.where(kind, -1, 1), np.where(kind, 1.5, -1), np.full(60, 0.01)], axis=1
    )
    logs = means[:, None, :] + 0.01 * random.standard_normal((60, 5, 4))
    steps = greedy(table(logs, ("a", "b", "c", "d")), 3)
    assert best_fixed(logs) == 0
    assert [step.members for step in steps] in ([[0], [0, 1], [0, 1, 2]], [[0], [0, 2], [0, 2, 1]])
    middle, low, high = steps[2].known
    assert low < middle < high and middle == pytest.approx(np.expm1(-1.0), abs=0.01)
    assert steps[2].unseen[0] == pytest.approx(middle, abs=0.01)
    assert steps[0].known[0] == 0.0
    # What only steers an algorithm is compared with, and no candidate.
    steered = greedy(table(logs, ("mortise", "b", "c", "d")), 1)[0]
    assert steered.members == [1] and steered.known[0] == pytest.approx(0.0, abs=0.005)


def test_shares_are_of_the_gap() -> None:
    gap = np.asarray([-0.2, -0.4, -0.3, -0.1])
    assert share(gap / 2, gap) == pytest.approx((0.5, 0.5, 0.5))
    assert share(gap, np.zeros(4)) is None


def test_runs_under_one_algorithm_are_those_of_episodes() -> None:
    course = SETTINGS.course()
    names = ("cubic", "bbr", "mortise")
    came = constants(course, names, [(4, 0, 1), (4, 1, 1), (4, 0, 0), (4, 0, 2)])
    episodes = Episodes(course, [4], [1])
    for _ in range(2):
        episodes.step([1])
    assert came_to(episodes) == [came[0]]
    assert came[1] != came[0] != came[2] != came[3]
    times, lost, rivals = came[0]
    assert episodes.completions() == [times] and 0 <= lost < 1 and rivals == 0
    begun = dataclasses.replace(SETTINGS, start="bbr").course()
    assert alone(begun, lambda e, _: [1] * len(e), 5, 3).times[4] == pytest.approx(np.mean(times))
    with pytest.raises(ValueError, match="setting 2: there are 1"):
        constants(course, ["cubic"], [(4, 0, 2)])
    with pytest.raises(ValueError, match="no fixed setting"):
        constants(course, ["floo"], [])


def test_futures_drawn_anew_differ_and_change_nothing() -> None:
    episodes = Episodes(SETTINGS.course(), [1, 2], [0, 1])
    before = episodes.states()
    one, other = (redrawn_outcomes(episodes, 1, 3, seed) for seed in (1, 2))
    assert one != other and one == redrawn_outcomes(episodes, 1, 3, 1)
    assert np.asarray(one).shape == (3, 2, 2) and one != episodes.outcomes(1)
    assert episodes.states() == before
    assert Seen.of(episodes).inputs().shape[0] == 2
    with pytest.raises(ValueError, match="no futures"):
        redrawn_outcomes(episodes, 1, 0, 1)


def never(episodes: Episodes, seen: Seen) -> list[int]:
    raise AssertionError("it was run before")


def test_what_was_stored_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "driven.jsonl"
    course = SETTINGS.course()
    store = Store(path, {"a": "1"})
    first = drive("known", course, {1: 0, 2: 1}, periods=3, choose=averaging(1, PRICES, 2), store=store)
    store.close()
    # Killed in the middle of a line.
    path.write_text(path.read_text() + '["known", 3, [0.')
    again = Store(path, {"a": "1"})
    assert drive("known", course, {1: 0, 2: 1}, periods=3, choose=never, store=again) == first
    again.add([(("x", 9), [1.5])])
    again.close()
    assert Store(path, {"a": "1"}).rows["x", 9] == [1.5]
    with pytest.raises(ValueError, match="--a was 1 and is 2"):
        Store(path, {"a": "2"})


def test_the_commands_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [word for name, value in SMALL.items() for word in (f"--{name}", value)]
    arguments += ["--out", str(tmp_path)]
    assert candidates.main(arguments) == 0
    found = json.loads((tmp_path / "candidates.json").read_text())
    assert {each["name"] for each in found["fixed"]} == {
        "copa:mvfst",
        "copa:mvfst,delta=0.3",
        "vegas",
        "cubic",
    }
    assert [len(each["names"]) for each in found["sets"]] == [1, 2]
    simulated = (tmp_path / "constants.jsonl").read_text()
    assert three.main(arguments) == 0
    assert (tmp_path / "constants.jsonl").read_text() == simulated, "one simulation for both"
    bounds = json.loads((tmp_path / "bounds.json").read_text())
    who = bounds["who"]
    assert who["clairvoyant"]["change"][0] <= who["constant, foreseen"]["change"][0] <= 0
    assert who["clairvoyant"]["share"][0] == pytest.approx(1.0)
    assert bounds["paths"] <= 6 and bounds["futures"] == 2
    assert "twin" in who and 0 < bounds["seconds"] < 60
    said = capsys.readouterr().out
    assert "| path known: each period" in said and "A decision of the twin takes" in said
    # Again, from what is there.
    assert three.main(arguments) == 0
    assert json.loads((tmp_path / "bounds.json").read_text()) == bounds
    assert three.main([*arguments, "--period_ms", "1500"]) == 2
    capsys.readouterr()
    assert three.main([*arguments, "--particles", "0"]) == 0
    assert "digital twin" not in capsys.readouterr().out


def test_a_twin_sees_states_and_requests_and_chooses_by_its_worlds() -> None:
    course = SETTINGS.course()
    prior = TwinPrior(dataclasses.replace(SETTINGS, split="train").course(), 4)
    episodes = Episodes(course, [1, 2], [0, 1])
    twins = Twins(prior, episodes, 3, 1)
    before = episodes.states()
    worlds = twins.worlds(episodes, 1)
    assert len(worlds) == 6 and worlds.current() == [0, 0, 0, 1, 1, 1]
    tried = worlds.outcomes(1)
    assert tried == Twins(prior, episodes, 3, 1).worlds(episodes, 1).outcomes(1)
    assert tried != twins.worlds(episodes, 2).outcomes(1) and episodes.states() == before
    episodes.step([1, 0])
    twins.observe(episodes)
    assert twins.worlds(episodes, 1).current() == [1, 1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="2 twins of 1 episodes"):
        twins.observe(Episodes(course, [1]))
    with pytest.raises(ValueError, match="no particles"):
        Twins(prior, episodes, 0, 1)
    with pytest.raises(ValueError, match="no connections"):
        TwinPrior(course, 0)


def test_a_switch_must_be_surely_better() -> None:
    # Two connections, three worlds, two choices. The second is better by 0.5 each, or once by 3.
    costs = np.asarray([[[0.5, 0.0]] * 3, [[0.0, 0.5], [0.0, 0.5], [3.0, 0.0]]])
    assert sure(costs, [0, 0]) == [1, 0]
    assert sure(costs[:, 2:], [0, 0]) == [1, 1], "of one world there is no error"
    assert sure(np.asarray([[[0.01, 0.0]] * 3]), [0]) == [0], "a switch costs more"
    assert sure(costs, [1, 1]) == [1, 1]


def test_harm_is_what_rivals_receive_less_than_next_to_cubic() -> None:
    rivals, cubic = np.asarray([[5.0, 10.0, 12.0], [0.0, 0.0, 0.0]]), np.asarray([[10.0], [0.0]])
    assert harm(rivals, cubic).tolist() == [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    among = Bounding(rivals="2", flows="1", paths=2, generated=10, conditions=20, periods=2, period_ms=2_000)
    came = constants(among.course(("cubic",)).course(), ["cubic", "bbr"], [(3, 0, 0), (3, 0, 1)])
    assert came[0][2] > 0 and came[0][2] != came[1][2]


def test_settings_that_make_no_sense_are_refused() -> None:
    assert problem(Bounding()) is None
    assert "--flows" in str(problem(Bounding(flows="0")))
    assert "--rivals" in str(problem(Bounding(rivals="-1")))
    assert "--algorithms" in str(problem(Bounding(algorithms="cubic")))
    assert "--futures" in str(problem(Bounding(futures=1)))
