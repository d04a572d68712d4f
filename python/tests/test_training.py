"""What learns, learns; what is written can be read; what makes no sense is refused."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from trimtab import Policy
from trimtab.course import Settings
from trimtab.policy import Scaler
from trimtab.train import options
from trimtab.train.__main__ import main
from trimtab.train.actor import Actor
from trimtab.train.counterfactual import regrets
from trimtab.train.evaluate import WIFI, Judged
from trimtab.train.options import Training

SMALL = ["--episodes", "12", "--parallel", "4", "--periods", "4", "--period_ms", "2000"]
SMALL += ["--generated", "8", "--conditions", "20", "--judge", "4"]


def policy() -> Policy:
    random = np.random.default_rng(0)
    scaler = Scaler.of(random.random((50, 3), np.float32))
    actor = Actor(3, 2, random)
    w1, b1, w2, b2 = actor.weights
    return Policy(
        w1,
        b1,
        w2,
        b2,
        scaler,
        features=("thpt_max", "rtt_min", "busy"),
        algorithms=("cubic", "bbr"),
        period_ms=12_000,
        first="bbr",
    )


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


def test_a_decision_counts_by_how_far_its_choices_are_apart() -> None:
    # Nine times of ten the first choice is a bit cheaper, once the second one is by far: that one is right.
    inputs = np.ones((10, 2), np.float32)
    costs = np.asarray([[0.0, 0.05]] * 9 + [[1.0, 0.0]], np.float32)
    actor = Actor(2, 2, np.random.default_rng(1))
    for _ in range(60):
        actor.learn(inputs, costs, 1e-2)
    # (0.45 softmax(0, -0.5) + 1 softmax(-10, 0)) / 1.45, for the second one.
    assert actor.preferences(inputs)[0, 1] == pytest.approx(0.807, abs=0.02)


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


@pytest.mark.parametrize(
    ("names", "written"),
    [(("cubic", "bbr"), "cubic,bbr"), (("copa:delta=0.5,mode=off", "bbr"), "copa:delta=0.5,mode=off;bbr")],
)
def test_names_with_commas_come_back(names: tuple[str, ...], written: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    dataclasses.replace(policy(), algorithms=names).save(path)
    with safe_open(path, "numpy") as file:
        assert file.metadata()["algorithms"] == written
    assert Policy.load(path).algorithms == names
    assert Training(algorithms=written).course().algorithms == names


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
    assert "connections of 30 s" in card, "15 periods of 2 s"
    more = ["--episodes", "20", *SMALL[2:], "--resume"]
    # Those of another training, and those that ask for less than there is.
    others = (["--algorithms", "cubic,bbr"], ["--seed", "2"], ["--parallel", "3"], ["--episodes", "4"])
    for other in others:
        assert main(["floo", "--method", method, *more, *out, *other]) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ") and other[0] in said
    assert Policy.load(tmp_path / "model.safetensors").algorithms == model.algorithms
    assert main(["floo", "--method", method, *more, *out]) == 0
    assert "goes on after" in capsys.readouterr().out


def test_the_slowest_requests_of_connections_that_share_a_path(tmp_path: Path) -> None:
    arguments = ["--objective", "p90", "--flows", "1,3", "--out", str(tmp_path)]
    assert main(["floo", "--method", "counterfactual", *SMALL, *arguments]) == 0
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "| on one path | 1,3 |" in card and "| objective | p90 |" in card
    assert "the 90th percentile of the completion time of each" in card


def test_a_model_outlives_its_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Judged:
        raise IndexError("out of paper")

    monkeypatch.setattr("trimtab.train.__main__.evaluate", fail)
    assert main(["floo", "--method", "counterfactual", *SMALL, "--out", str(tmp_path)]) == 1
    path = tmp_path / "model.safetensors"
    said = capsys.readouterr().err
    assert said == f"error: the model is saved as {path}, but has no card: out of paper\n"
    assert Policy.load(path).period_ms == 2000


def test_a_checkpoint_that_does_not_say_its_settings_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "checkpoint.npz", progress=np.asarray((1, 1.0, 1)))
    assert main(["floo", "--method", "counterfactual", *SMALL, "--out", str(tmp_path), "--resume"]) == 2
    assert "does not say its settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--first", "vegas"],
            "--first is vegas; it must be one of --algorithms: cubic, bbr, copa, westwood",
        ),
        (["--algorithms", "bbr"], "--algorithms is bbr; it must be 2 to 16 different ones"),
        (["--algorithms", "bbr,bbr"], "2 to 16 different ones"),
        (["--parallel", "0"], "--parallel is 0; it must be at least 1"),
        (["--periods", "1"], "--periods is 1; it must be at least 2"),
        (["--periods", "-3"], "--periods is -3"),
        (["--judge", "0"], "--judge is 0; it must be at least 1"),
        (["--episodes", "-1"], "--episodes is -1; it must be at least 0"),
        (["--period_ms", "0"], "--period_ms is 0; it must be 1 to 3600000"),
        (["--horizon", "0"], "--horizon is 0"),
        (["--conditions", "0"], "--conditions is 0"),
        (["--seed", "-1"], "--seed is -1"),
        (["--flows", "1,0"], "--flows is 1,0; it must be numbers from 1 to 64 with commas between"),
        (["--flows", "many"], "--flows is many"),
        (["--objective", "p99"], "--objective is p99; it must be one of mean, p90"),
    ],
)
def test_what_cannot_be_is_refused_before_a_training(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["floo", *given, "--out", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["floo", "--method", "counterfactual", *SMALL, "--out", str(tmp_path)]
    assert main([*arguments, "--resume"]) == 2
    assert main([*arguments, "--traces", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "leave out --resume" in said and "nowhere" in said
    with pytest.raises(SystemExit):
        options.parse(["floo", "--method", "guess"])


def test_the_test_is_opened_only_at_the_end_and_that_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits: list[tuple[str, int]] = []
    course = options.Training.course

    def asked(training: Training, **changes: Any) -> Settings:
        settings = course(training, **changes)
        splits.append((settings.split, settings.wifi))
        return settings

    monkeypatch.setattr(options.Training, "course", asked)
    arguments = ["floo", "--method", "counterfactual", *SMALL, "--out", str(tmp_path)]
    assert main(arguments) == 0
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert {split for split, _ in splits} == {"fit", "validate"}
    assert "The test was not\nopened" in card and not (tmp_path / "test-opened.txt").exists()
    splits.clear()
    for _ in range(2):
        assert main([*arguments, "--resume", "--final"]) == 0
    assert ("test", WIFI) in splits and ("validate", 0) not in splits
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    opened = (tmp_path / "test-opened.txt").read_text(encoding="utf-8").splitlines()
    assert len(opened) == 2 and "opened 2 times" in card and all(line in card for line in opened)
    with safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert file.metadata()["sha256"] in opened[1]


def test_intervals_of_the_gap_are_by_resampling_connections() -> None:
    random = np.random.default_rng(3)
    best, gap = np.exp(random.standard_normal(400)), random.random(400) + 0.5
    noise = random.standard_normal(400)
    times = {"bbr": best, "cubic": 3 * best, "oracle": best * np.exp(-gap)}
    judged = Judged({**times, "policy": best * np.exp(-0.5 * gap + noise)}, ("bbr", "cubic"))
    (least, most), (low, high) = judged.intervals("policy")
    assert least < judged.change("policy", "bbr") < most
    assert low < judged.closed("policy") < high
    # The standard error of the noise is 0.05, that of a gap of 1 on average.
    assert high - low == pytest.approx(2 * 1.96 * 0.05, rel=0.2)
    assert judged.intervals("oracle")[1] == (1.0, 1.0) and judged.intervals("bbr")[0] == (0.0, 0.0)
