"""What is foretold is what scikit-learn foretells; what learns beats chance; what is written can be read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from trimtab._native import Course, Episodes
from trimtab.antelope import options, train
from trimtab.antelope.boosted import Boosted, Chooser, fit
from trimtab.antelope.collect import Lessons, collect
from trimtab.antelope.options import Boosting
from trimtab.antelope.train import gather, worth_of
from trimtab.train.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
FEATURES = tuple(Course.antelope_features())
SMALL = ["--connections", "8", "--parallel", "4", "--periods_ms", "6000,12000", "--generated", "10"]
SMALL += [
    "--conditions",
    "20",
    "--validate",
    "4",
    "--judge",
    "4",
    "--algorithms",
    "cubic,bbr",
    "--first",
    "bbr",
]


def model(rows: int = 300) -> tuple[Boosted, list[object], np.ndarray]:
    random = np.random.default_rng(3)
    inputs = random.random((rows, len(FEATURES)), np.float32)
    rewards = np.stack([np.sin(9 * inputs[:, 0]), inputs[:, 3], 0.5 + 0 * inputs[:, 1]], axis=1)
    models = fit(inputs, 3.0 * rewards, 1)
    about = {"features": FEATURES, "algorithms": ("cubic", "bbr", "vegas"), "period_ms": 2000, "first": "bbr"}
    return Boosted.of(models, inputs, **about), models, inputs


def test_rewards_are_those_of_the_library() -> None:
    made, models, inputs = model()
    foretold = np.stack([m.predict(inputs) for m in models], axis=1)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(made.rewards(inputs), foretold)
    assert made.asked.shape == (3, 40, 7) and made.leaves.shape == (3, 40, 8)
    assert np.ptp(foretold[:, 0]) > 1.0 and np.ptp(foretold[:, 2]) == 0.0, "the last one has nothing to ask"


def test_gamma_keeps_trees_from_splitting_for_little() -> None:
    random = np.random.default_rng(4)
    inputs = random.random((400, len(FEATURES)), np.float32)
    # A step of d percent takes 400 (d / 2)^2 of squared error away from 400 samples; XGBoost wants 2 gamma.
    for step, is_split in ((0.13e-2, False), (0.15e-2, True)):
        rewards = np.where(np.arange(400) % 2 == 0, step, 0.0)
        inputs[:, 0] = np.arange(400) % 2
        (only,) = fit(inputs, rewards[:, None], 1)
        assert (only.estimators_[0, 0].tree_.node_count > 1) == is_split, step


def test_rust_is_held_to_what_the_library_says() -> None:
    made = Boosted.load(ROOT / "fuzz/seeds/antelope/small")
    with safe_open(ROOT / "crates/steer/tests/data/antelope.safetensors", "numpy") as file:
        rewards = made.rewards(file.get_tensor("inputs"))
        np.testing.assert_allclose(rewards, file.get_tensor("rewards"), rtol=0, atol=1e-12)


def test_models_come_back_from_their_file(tmp_path: Path) -> None:
    made, _, inputs = model()
    path = tmp_path / "model.safetensors"
    made.save(path)
    read = Boosted.load(path)
    np.testing.assert_array_equal(made.rewards(inputs), read.rewards(inputs))
    assert (read.algorithms, read.features) == (made.algorithms, made.features)
    assert (read.period_ms, read.first) == (2000, "bbr")
    assert read.knows(inputs).all() and not read.knows(inputs + 9).any()
    with pytest.raises(ValueError, match="train it again"):
        Boosted.load(ROOT / "models/floo.safetensors")


def test_a_new_winner_has_to_win_twice_in_a_row() -> None:
    chooser = Chooser(model()[0])
    chooser.applied, chooser.last = [None], [None]
    # As crates/steer/src/select/antelope/tests.rs has it; then strange inputs, and a first prediction again.
    winners = [2, 1, 2, 1, 1, 0, 2, 2, 2, 1, 0, 0, None, 2]
    settled = [chooser.settle(0, winner) for winner in winners]
    assert settled == [2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 0, 1, 2]


def test_a_short_training_beats_random_choices(tmp_path: Path) -> None:
    settings = Boosting(
        out=tmp_path, connections=80, parallel=20, generated=24, conditions=100, traffic="web-burst"
    )
    training = settings.training(12_000)
    lessons = gather(settings, training)
    assert lessons.inputs.shape[1] == len(FEATURES) and len(lessons.inputs) > 400
    made = Boosted.of(
        fit(lessons.inputs, lessons.rewards, 1),
        lessons.inputs,
        features=FEATURES,
        algorithms=training.names(),
        period_ms=12_000,
        first=training.first,
    )
    unseen = training.course(split="test").course()
    seen = collect(unseen, training, 30, np.random.default_rng(5))
    by_model, at_random, at_best = worth_of(made, seen)
    assert by_model > at_random + 0.25 * (at_best - at_random), (by_model, at_random, at_best)
    # And it goes on choosing: connections do not all stay with what they began with.
    episodes, chooser = Episodes(unseen, list(range(20))), Chooser(made)
    before = episodes.current()
    for _ in range(4):
        episodes.step(chooser(episodes, np.zeros((20, 0), np.float32)))
    assert episodes.current() != before


def test_a_training_ends_with_a_model_and_a_card_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path)]
    assert main(["antelope", *SMALL, *out]) == 0
    first = (tmp_path / "model.safetensors").read_bytes()
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "python -m trimtab.train antelope" in card and "| 6 s |" in card and "| static-best |" in card
    capsys.readouterr()
    assert main(["antelope", *SMALL, *out, "--resume"]) == 0
    said = capsys.readouterr().out
    assert said.count("goes on from") == 2 and " round 1 " not in said and " round 2 " not in said
    assert (tmp_path / "model.safetensors").read_bytes() == first, "nothing more was drawn"
    assert main(["antelope", *SMALL, *out, "--resume", "--seed", "2"]) == 2
    assert "--seed was 1 and is 2" in capsys.readouterr().err


def test_an_interrupted_training_goes_on_as_it_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settings(name: str) -> Boosting:
        (tmp_path / name).mkdir(exist_ok=True)
        return options.parse([*SMALL, "--out", str(tmp_path / name), "--resume"])

    whole = gather(settings("whole"), settings("whole").training(12_000))
    calls = []

    def interrupted(*arguments: Any) -> Lessons:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return collect(*arguments)

    monkeypatch.setattr(train, "CHECKPOINT", 1)
    monkeypatch.setattr(train, "collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gather(settings("parts"), settings("parts").training(12_000))
    parts = gather(settings("parts"), settings("parts").training(12_000))
    assert len(calls) == 3, "the first round was kept"
    np.testing.assert_array_equal(parts.inputs, whole.inputs)
    np.testing.assert_array_equal(parts.rewards, whole.rewards)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--periods_ms", "0"], "--periods_ms is 0; it must be different numbers from 1 to 90000"),
        (["--periods_ms", "12000,12000"], "different numbers"),
        (["--periods_ms", "soon"], "--periods_ms is soon"),
        (["--validate", "0"], "--validate is 0; it must be at least 1"),
        (["--generated", "4"], "--generated is 4; it must be at least 5"),
        (["--first", "reno"], "--first is reno; it must be one of --algorithms"),
        (["--flows", "0"], "--flows is 0"),
    ],
)
def test_what_cannot_be_is_refused_before_a_training(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["antelope", *given, "--out", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
