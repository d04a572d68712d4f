"""What learns, learns; what is written can be read; what makes no sense is refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from trimtab import Policy
from trimtab.policy import Scaler
from trimtab.train import options
from trimtab.train.__main__ import main
from trimtab.train.actor import Actor
from trimtab.train.counterfactual import regrets
from trimtab.train.evaluate import Judged

SMALL = ["--episodes", "12", "--parallel", "4", "--periods", "4", "--period_ms", "2000"]
SMALL += ["--generated", "8", "--conditions", "20", "--judge", "4"]


def policy() -> Policy:
    random = np.random.default_rng(0)
    scaler = Scaler.of(random.random((50, 3), np.float32))
    actor = Actor(3, 2, random)
    w1, b1, w2, b2 = actor.weights
    return Policy(w1, b1, w2, b2, scaler, ("thpt_max", "rtt_min", "busy"), ("cubic", "bbr"), 12_000, "bbr")


def test_the_actor_learns_which_choice_is_cheap() -> None:
    random = np.random.default_rng(1)
    inputs = random.standard_normal((400, 2), np.float32)
    # The first choice is cheap to the left, the second to the right.
    costs = np.stack([inputs[:, 0] > 0, inputs[:, 0] <= 0], axis=1).astype(np.float32)
    actor = Actor(2, 2, random)
    before = actor.learn(inputs, costs, 1e-2)
    for _ in range(60):
        after = actor.learn(inputs, costs, 1e-2)
    assert before == pytest.approx(0.5, abs=0.02)
    assert after < 0.05
    right = actor.preferences(inputs).argmax(axis=1) == (inputs[:, 0] > 0)
    assert right.mean() > 0.95


def test_regret_is_the_log_of_how_many_times_worse() -> None:
    got = regrets(np.asarray([[1.0, 2.0, 1e6], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(got[0], [0.0, np.log(2.002 / 1.002), 3.0], atol=1e-6)
    np.testing.assert_array_equal(got[1], 0.0)


def test_a_policy_comes_back_from_its_file(tmp_path: Path) -> None:
    made = policy()
    made.save(tmp_path / "model.safetensors")
    read = Policy.load(tmp_path / "model.safetensors")
    states = np.random.default_rng(2).random((20, 3), np.float32)
    np.testing.assert_array_equal(made.logits(states), read.logits(states))
    assert (read.algorithms, read.features, read.first) == (made.algorithms, made.features, made.first)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    policy().save(path)
    bytes_ = path.read_bytes()
    length = int.from_bytes(bytes_[:8], "little")
    header = json.loads(bytes_[8 : 8 + length])
    header["__metadata__"]["version"] = "7"
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes_[8 + length :])
    with pytest.raises(ValueError, match="train it again"):
        Policy.load(path)


def test_a_strange_state_gets_the_first_algorithm() -> None:
    made = policy()
    # Prefers the other one everywhere.
    made = dataclasses.replace(made, b2=np.asarray([50.0, 0.0], np.float32))
    usual, strange = np.full((1, 3), 0.5, np.float32), np.full((1, 3), 9.0, np.float32)
    assert made.choose(usual).tolist() == [0]
    assert made.choose(strange).tolist() == [1], "bbr is first"


def test_shares_of_the_gap() -> None:
    times = {"cubic": [4.0, 4.0], "bbr": [2.0, 2.0], "oracle": [1.0, 1.0], "policy": [1.0, 2.0]}
    judged = Judged({name: np.asarray(t) for name, t in times.items()}, ("cubic", "bbr"))
    assert judged.best_single() == "bbr"
    assert judged.change("oracle", "bbr") == pytest.approx(-0.5)
    assert judged.closed("policy") == pytest.approx(0.5)


@pytest.mark.parametrize("method", ["counterfactual", "ppo"])
def test_a_training_ends_with_a_model_and_a_card_and_goes_on(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if method == "ppo":
        pytest.importorskip("skrl", reason="the extra ppo is not installed")
    out = ["--out", str(tmp_path)]
    assert main(["floo", "--method", method, *SMALL, *out]) == 0
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert f"--method {method}" in card and "| static-best |" in card
    # Twelve connections have three decisions each; by counterfactuals some of them are learnt from.
    decisions = int(card.split("| decisions | ")[1].split()[0])
    assert decisions == 36 if method == "ppo" else 12 <= decisions <= 36
    assert any((tmp_path / "logs").iterdir())
    model = Policy.load(tmp_path / "model.safetensors")
    assert model.first == "bbr" and model.period_ms == 2000
    more = ["--episodes", "20", *SMALL[2:], "--resume"]
    assert main(["floo", "--method", method, *more, *out]) == 0
    assert "goes on after" in capsys.readouterr().out


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["floo", "--method", "counterfactual", *SMALL, "--out", str(tmp_path)]
    assert main([*arguments, "--resume"]) == 2
    assert main([*arguments, "--traces", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "leave out --resume" in said and "nowhere" in said
    with pytest.raises(SystemExit):
        options.parse(["floo", "--method", "guess"])
