"""Muses in Python: its flows, its LSTM, and that what the trees' file says is what was fitted."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from trimtab._native import MusesRollouts
from trimtab.muses import dagger, extract, fit, judge, lstm, options
from trimtab.muses.drive import NONE, drive, environments, oracle, taught
from trimtab.muses.trees import actions_of, decide
from trimtab.train.__main__ import main

SMALL = ["--hidden", "8", "--parallel", "8", "--decisions", "60", "--window", "30", "--epochs", "2"]
SMALL += ["--flows", "16", "--leaves", "20", "--clusters", "2-3", "--judge", "2", "--grid", "1"]
SMALL += ["--generated", "4", "--judged", "60"]


def states_of(count: int) -> NDArray[np.int16]:
    random = np.random.default_rng(5)
    return random.integers(0, 8_000, (count, lstm.SIGNALS)).astype(np.int16)


def test_the_oracle_fills_a_steady_network_and_several_flows_all_decide() -> None:
    stages = options.parse(["--decisions", "300", "--generated", "4"])
    world = environments(stages, "steady-wifi", "test")
    rollouts = MusesRollouts(world, [1, 2, 3], 2, 600)
    flows = drive(rollouts, oracle, 2, 300)
    reached = (flows.best != NONE).sum(axis=1)
    assert flows.states.shape == (6, 300, 7) and (reached > 100).all(), reached
    for utilisation, delay, loss in rollouts.outcomes():
        assert utilisation > 0.6 and delay < 0.2 and loss < 0.01
    assert min(min(row) for row in rollouts.delivered()) > 0


def test_the_memory_of_a_flow_is_its_own() -> None:
    teacher = lstm.Teacher(lstm.init(1, 8), np.zeros(7, np.float32), np.full(7, 1000, np.float32))
    seen = states_of(3)
    alone, twice = taught(teacher, 3, 1), taught(teacher, 3, 2)
    nobody, first, second = np.zeros(3, np.int64), np.zeros(3, np.int64), np.ones(3, np.int64)
    for _ in range(4):
        twice(seen[::-1].copy(), second, nobody)
        assert (alone(seen, first, nobody) == twice(seen, first, nobody)).all()


def test_an_lstm_learns_what_only_memory_tells() -> None:
    # The label is the sign of the first signal an interval ago.
    random = np.random.default_rng(2)
    seen = random.standard_normal((40, 32, 7)).astype(np.float32)
    labels = np.full((40, 32), NONE, np.int32)
    labels[1:] = np.where(seen[:-1, :, 0] > 0, 5, 1)
    import optax  # noqa: PLC0415

    optimiser = optax.adam(1e-2)
    params = lstm.init(3, 16)
    state, step = optimiser.init(params), lstm.trainer(optimiser)
    rights = []
    for _ in range(150):
        params, state, _, _, right = step(params, state, lstm.blank(params, 32), seen, labels)
        rights.append(float(right))
    assert rights[0] < 0.6, rights[0]
    assert rights[-1] > 0.9, rights[-1]


def test_a_fitted_tree_and_its_nodes_do_the_same() -> None:
    states = states_of(4_000)
    actions = ((states[:, 1] // 1_500) + (states[:, 6] > 3_000)).clip(0, 6).astype(np.int8)
    tree = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=40, random_state=1).fit(states, actions)
    nodes = fit.nodes_of(tree)
    others = np.random.default_rng(6).integers(-50, 8_200, (4_000, 7)).astype(np.int16)
    assert (actions_of(decide(nodes, others)) == tree.predict(others)).all()
    assert len(nodes) <= 79


def test_segments_are_those_of_the_file_and_hold_nearly_all() -> None:
    states = states_of(5_000)
    projection = extract.Projection.of(states)
    segments = projection.segments(states)
    assert segments.min() == 0 and segments.max() == 9
    ends = ((segments == 0) | (segments == 9)).mean(axis=0)
    assert (ends < 0.3).all(), ends


def test_the_loop_stops_by_the_papers_rule() -> None:
    assert not dagger.has_settled([1.0] * 109)
    assert dagger.has_settled([1.0] * 110)
    assert not dagger.has_settled([1.0] * 60 + [1.1] + [1.0] * 49)


def test_settings_that_know_flows_by_heart_are_not_chosen() -> None:
    # What is best depends on the second signal; in some flows the other is done; the first names flows.
    random = np.random.default_rng(7)
    flows, each = 60, 100
    states = random.integers(0, 8_000, (flows, each, 7)).astype(np.int16)
    states[:, :, 0] = random.permutation(flows)[:, None] * 100
    odd = random.random(flows) < 0.3
    actions = np.where((states[:, :, 1] > 4_000) ^ odd[:, None], 5, 1).astype(np.int8)
    for criterion in options.CHOICES["criterion"]:
        stages = options.parse(["--grid", "4", "--criterion", criterion])
        _, found = fit.fit(stages, fit.Demonstrations(states, actions), np.arange(flows))
        assert "min_samples_split 2," not in found, (criterion, found)


def test_a_tree_of_ratios_does_what_comes_to_the_same() -> None:
    # Where the first signal is low two thirds halve and a third doubles: a mean of -1/3 of a doubling.
    states = np.zeros((300, 7), np.int16)
    states[:150, 0] = 1_000
    actions = np.full(300, 5, np.int8)
    actions[150:] = np.where(np.arange(150) % 3 == 0, 6, 0)
    shown = fit.Demonstrations(states[:, None], actions[:, None])
    fitted = {
        criterion: fit.fit(options.parse(["--criterion", criterion]), shown, np.arange(300))[0]
        for criterion in options.CHOICES["criterion"]
    }
    two = states[[0, 299]]
    assert decide(fitted["ratio"], two).tolist() == [19_661, 13_004]
    assert decide(fitted["entropy"], two).tolist() == [19_661, 8_192]


def test_a_cluster_without_flows_to_judge_by_has_no_score() -> None:
    nothing = fit.agreement([(0x80, 0, 16_384)], states_of(0), np.zeros(0, np.int8))
    assert nothing == {"agreement": None, "f1": None}
    whole = {"agreement": 0.5, "f1": 0.25, "states": 9.0}
    score = {"agreement": 0.5, "f1": 0.25, "nodes": 1, "search": "-"}
    distilled = {
        "flows": 9,
        "held": 1,
        "silhouettes": {2: 0.5},
        "clusters": [{"flows": 4, **score, **nothing}],
        "treeg": score,
        "top2": 1.0,
        "bytes": (2, 1),
    }
    stages = options.parse([])
    text = judge.card(
        stages,
        {},
        learnt=None,
        distilled=distilled,
        whole=whole,
        checksum="0",
        arguments=[],
    )
    assert "| 0 | 4 | 1 | \N{EN DASH} | \N{EN DASH} | - |" in text
    assert "| global | 9 | 1 | 50.0% | 0.25 | - |" in text


def test_all_stages_and_resuming(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = ["--out", str(tmp_path)]
    assert main(["muses", *out, *SMALL, "--rounds", "2"]) == 0
    said = capsys.readouterr().out
    assert "fluctuating-wifi | treeg" in said and "of the 7 flows that nothing was fitted to" in said
    found = re.search(r"[\d.]+% of the labels right", said)
    assert found is not None and not found[0].startswith("0.0%"), said
    assert main(["muses", *out, *SMALL, "--rounds", "2", "--resume", "--stage", "lstm"]) == 0
    assert found[0] in capsys.readouterr().out, "nothing was left to learn"
    with monkeypatch.context() as patched:
        patched.setattr(dagger, "has_settled", lambda _: True)
        assert main(["muses", *out, *SMALL, "--rounds", "3", "--resume", "--stage", "lstm"]) == 0
        assert "iteration 3" not in capsys.readouterr().out
    assert main(["muses", *out, *SMALL, "--rounds", "3", "--resume", "--stage", "lstm"]) == 0
    assert "goes on after iteration 2" in capsys.readouterr().out
    assert main(["muses", *out, *SMALL, "--rounds", "4", "--resume", "--seed", "9"]) == 2
    assert "--seed was 1 and is 9" in capsys.readouterr().err


def test_what_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in [
        (["--clusters", "1-9"], "write a number or a range"),
        (["--decisions", "150"], "a multiple of --window"),
        (["--rounds", "0"], "at least 1"),
    ]:
        with pytest.raises(SystemExit):
            options.parse(arguments)
        assert said in capsys.readouterr().err
