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
from trimtab.policy import Networks, Scaler
from trimtab.train import options
from trimtab.train.__main__ import main
from trimtab.train.actor import Actor
from trimtab.train.counterfactual import Ensemble
from trimtab.train.evaluate import WIFI, Judged
from trimtab.train.lessons import Lessons, Prices, regrets
from trimtab.train.options import Training

SMALL = ["--episodes", "12", "--parallel", "4", "--periods", "4", "--period_ms", "2000"]
SMALL += ["--generated", "8", "--conditions", "20", "--judge", "4"]


def policy() -> Networks:
    random = np.random.default_rng(0)
    scaler = Scaler.of(random.random((50, 3), np.float32))
    actor = Actor(3, 2, random)
    w1, b1, w2, b2 = actor.weights
    return Networks(
        w1=w1[None],
        b1=b1[None],
        w2=w2[None],
        b2=b2[None],
        scaler=scaler,
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
    assert before > 0.2, "it knows nothing yet"
    assert after < 0.05
    right = actor.preferences(inputs).argmax(axis=1) == (inputs[:, 0] > 0)
    assert right.mean() > 0.95


def test_what_a_choice_costs_on_average_decides() -> None:
    # Nine times of ten the first choice is a bit cheaper, once the second one is by far: that one is right.
    inputs = np.ones((10, 2), np.float32)
    costs = np.asarray([[0.0, 0.05]] * 9 + [[1.0, 0.0]], np.float32)
    actor = Actor(2, 2, np.random.default_rng(1))
    for _ in range(200):
        actor.learn(inputs, costs, 1e-2)
    first, second = actor.preferences(inputs)[0]
    # On average 0.1 and 0.045.
    assert second - first == pytest.approx(0.055, abs=0.005)


def test_loss_beyond_the_budget_and_harm_have_prices() -> None:
    prices = Prices(loss_budget=0.05, loss_price=5.0, harm_price=1.0)
    of = prices.of(np.asarray([[0.01, 0.05, 0.15]]), np.asarray([[0.0, 0.2, 0.5]]))
    np.testing.assert_allclose(of, [[0.0, 0.2, 1.0]])
    # Twice as long is cheaper than to take the half of others' bytes at a tenth of loss too much.
    np.testing.assert_allclose(
        regrets(np.asarray([[2.0, 2.0, 1.0]]), of), [[0.0, 0.2, 1.0 - np.log(2.002 / 1.002)]], atol=1e-6
    )


def lessons(connections: int) -> Lessons:
    """Decisions at which the second choice costs the half where the first input is high."""
    random = np.random.default_rng(3)
    states = random.random((connections * 4, 5), np.float32)
    costs = np.where(states[:, :1] > 0.5, [[1.0, 0.5]], [[0.5, 1.0]])
    none = np.zeros_like(costs)
    return Lessons(states, costs, none, none, np.repeat(np.arange(connections), 4))


def test_members_learn_from_samples_of_the_connections_and_agree_on_what_is_clear() -> None:
    seen = lessons(60)
    settings = Training(method="counterfactual", algorithms="cubic,bbr", first="bbr", members=3)
    ensemble = Ensemble(seen, settings, np.random.default_rng(1), 150)
    samples = [ensemble._sample(seen, int(seed)) for seed in ensemble.seeds]
    for sample in samples:
        assert 0.4 < len(np.unique(seen.connection[sample])) / 60 < 0.8, "1 - 1/e of them"
        np.testing.assert_array_equal(np.bincount(sample, minlength=240).reshape(60, 4).std(axis=1), 0)
    assert not np.array_equal(samples[0], samples[1])
    features = ("thpt_max", "rtt_min", "busy", "candidate_0", "candidate_1")
    made = ensemble.policy(seen, features)
    states = np.full((2, 5), 0.5, np.float32)
    states[:, 0] = [0.9, 0.1]
    for runs in (0, 1):
        states[:, 3:] = np.eye(2, dtype=np.float32)[runs]
        np.testing.assert_array_equal(made.running(states), runs)
        assert made.choose(states).tolist() == [1, 0]
    # What is not worth a switch is left alone.
    careful = dataclasses.replace(made, margin=2.0)
    states[:, 3:] = [[1, 0], [0, 1]]
    assert careful.choose(states).tolist() == [0, 1]


def test_an_ensemble_comes_back_from_its_file(tmp_path: Path) -> None:
    settings = Training(method="counterfactual", algorithms="cubic,bbr", first="bbr", members=2, margin=0.125)
    ensemble = Ensemble(lessons(9), settings, np.random.default_rng(1), 5)
    made = ensemble.policy(lessons(9), ("thpt_max", "rtt_min", "busy", "candidate_0", "candidate_1"))
    assert isinstance(made, Networks)
    made.save(tmp_path / "model.safetensors")
    read = Policy.load(tmp_path / "model.safetensors")
    assert isinstance(read, Networks)
    assert (read.caution, read.margin, read.w1.shape) == (1.0, 0.125, made.w1.shape)
    states = np.random.default_rng(2).random((20, 5), np.float32)
    np.testing.assert_array_equal(made.scores(states), read.scores(states))


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
    made = dataclasses.replace(made, b2=np.asarray([[50.0, 0.0]], np.float32))
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
    assert ("A choice of the policy is worse than the best one by 0." in card) == (method != "ppo")
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


def test_a_training_among_rivals_is_judged_next_to_each_kind(tmp_path: Path) -> None:
    arguments = ["--rivals", "0,2", "--rival_kinds", "cubic,web", "--against", "vegas", "--judge", "6"]
    out = ["--out", str(tmp_path)]
    assert main(["floo", "--method", "counterfactual", *SMALL, *arguments, *out]) == 0
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "| rivals | 0,2: cubic,web |" in card and "An ensemble of 5" in card
    single = [line.split(" | ") for line in card.splitlines() if line.startswith(("| vegas |", "| cubic |"))]
    assert [cells[0] for cells in single[:2]] == ["| cubic", "| vegas"], "compared with, and no candidate"
    # Harm is measured by CUBIC.
    assert single[0][-1] == "+0.0% |"
    assert "vegas" not in Policy.load(tmp_path / "model.safetensors").algorithms
    next_to = card[card.index("Next to rivals") :]
    assert next_to.count("\n| cubic | `") == 1 and next_to.count("\n| web | `") == 1
    with np.load(tmp_path / "checkpoint.npz") as saved:
        assert saved["harm"].max() > 0, "rivals are there"
    # Other prices need no other lessons.
    assert (
        main(
            ["floo", "--method", "counterfactual", *SMALL, *arguments, *out, "--resume", "--harm_price", "9"]
        )
        == 0
    )


def test_lessons_of_several_trainings_are_fitted_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["floo", "--method", "counterfactual", *SMALL]
    assert main([*arguments, "--rivals", "1", "--out", str(tmp_path / "among")]) == 0
    assert main([*arguments, "--out", str(tmp_path / "alone")]) == 0
    of = {}
    for name in ("among", "alone"):
        with np.load(tmp_path / name / "checkpoint.npz") as saved:
            of[name] = len(saved["states"])
    both = [*arguments, "--resume", "--out", str(tmp_path / "alone"), "--also", str(tmp_path / "among")]
    assert main(both) == 0
    card = (tmp_path / "alone/card.md").read_text(encoding="utf-8")
    assert f"| decisions | {of['among'] + of['alone']} |" in card
    with np.load(tmp_path / "alone/checkpoint.npz") as saved:
        assert len(saved["states"]) == of["alone"], "they stay those of the other training"
    capsys.readouterr()
    assert main([*both, "--horizon", "2"]) == 2
    assert (
        main([*arguments, "--horizon", "2", "--out", str(tmp_path / "x"), "--also", str(tmp_path / "among")])
        == 2
    )
    assert "the same choices" in capsys.readouterr().err


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
        (["--rivals", "1,x"], "--rivals is 1,x; it must be numbers from 0 to 64 with commas between"),
        (["--loss_budget", "1.5"], "--loss_budget is 1.5; it must be 0 to 1"),
        (["--members", "0"], "--members is 0; it must be 1 to 16"),
        (["--caution", "-1"], "--caution is -1"),
        (["--objective", "p99"], "--objective is p99; it must be one of mean, p90"),
        (["--against", "copa:mvfst,delta=0.1"], "delta=0.1 is a knob"),
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
    assert {split for split, _ in splits} == {"train", "validate"}
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
