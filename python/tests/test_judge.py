"""Harm is counted in two ways, and a policy is judged alone and next to rivals."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimtab._native import Episodes
from trimtab.course import Settings
from trimtab.policy import Networks, Scaler
from trimtab.train.__main__ import main
from trimtab.train.evaluate import Judged, by_policy
from trimtab.train.judge import table


def next_to_rivals() -> Judged:
    """Judge on a fast path, where BBR takes a hundredth, and a slow one, where it takes the half."""
    times = {"cubic": [4.0, 4.0], "bbr": [1.0, 1.0], "policy": [2.0, 2.0], "static-best": [1.0, 1.0]}
    rivals = {"cubic": [100.0, 1.0], "bbr": [99.5, 0.5], "policy": [100.0, 1.0]}
    return Judged(
        {name: np.asarray(of) for name, of in times.items()},
        ("bbr",),
        {name: np.asarray([0.01, 0.03]) for name in rivals},
        {name: np.asarray(of) for name, of in rivals.items()},
    )


def test_a_slow_path_counts_in_the_mean_of_connections() -> None:
    found = next_to_rivals()
    assert found.harm("bbr") == pytest.approx(1.0 / 101.0)
    assert found.harm_of_each("bbr") == pytest.approx((0.005 + 0.5) / 2)
    (low, high), (least, most) = found.harm_intervals("bbr")
    assert low == pytest.approx(0.005) and high == pytest.approx(0.5), "either path, twice"
    assert least == pytest.approx(0.005) and most == pytest.approx(0.5)
    assert found.harm_intervals("policy") == ((0.0, 0.0), (0.0, 0.0))


def test_who_harms_slow_rivals_is_not_harmless() -> None:
    found = next_to_rivals()
    assert found.harm("bbr") < 0.01, "of all bytes it is hardly anything"
    assert found.best_harmless() == "cubic", "though it is no candidate"
    text = table(found)
    assert "| `bbr` | +100.0% [+100.0%, +100.0%] | 2.0% | +1.0% [+0.5%, +50.0%] | +25.2%" in text
    assert "and\nas the mean of connections, is `cubic`: the policy's time is -50.0%" in text


def test_rivals_that_received_nothing_were_not_harmed() -> None:
    found = next_to_rivals()
    found.rivals = {name: np.zeros(2) for name in found.rivals}
    assert (found.harm("bbr"), found.harm_of_each("bbr")) == (0.0, 0.0)
    text = table(found)
    assert "the policy's time is" not in text and "| 2.0% |  |  |" in text, "alone there is no harm to tell"


def test_a_policy_is_judged_alone_and_next_to_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--generated", "8", "--conditions", "20"]
    training = ["--method", "counterfactual", "--episodes", "8", "--parallel", "4"]
    training += ["--periods", "4", "--period_ms", "2000", "--judge", "4", "--out", str(tmp_path)]
    assert main(["floo", *training, *small]) == 0
    capsys.readouterr()
    judging = ["--policy", str(tmp_path / "model.safetensors"), "--alone", "4", "--each", "4"]
    assert main(["judge", *judging, *small, "--rival_kinds", "cubic,web", "--against", "vegas"]) == 0
    said = capsys.readouterr().out
    titles = [line for line in said.splitlines() if line.startswith("## ")]
    assert titles == ["## Alone", "## Next to 1, 2, 4, 8 of cubic", "## Next to 1, 2, 4, 8 of web"]
    assert said.count("| `vegas` |") == 3 and said.count("the policy's time is") == 2
    assert "The test was not\nopened" in said and not (tmp_path / "test-opened.txt").exists()


def test_a_policy_is_asked_with_the_features_that_it_names() -> None:
    course = Settings(algorithms=("cubic", "bbr"), generated=8, conditions=20).course()
    names = ("busy", "rtt_min")
    scaler = Scaler(*(np.full(2, x, np.float32) for x in (0.0, 1.0, -9.0, 9.0)))
    # One unit is the first input, and speaks for the second algorithm where it is above 0.
    weights = [
        np.asarray(of, np.float32) for of in ([[[1.0, 0.0]]], [[0.0]], [[[-1.0], [1.0]]], [[0.0, 0.0]])
    ]
    w1, b1, w2, b2 = weights
    about: dict[str, Any] = {"algorithms": ("cubic", "bbr"), "period_ms": 12_000, "first": "cubic"}
    policy = Networks(w1=w1, b1=b1, w2=w2, b2=b2, scaler=scaler, features=names, **about)
    states = np.zeros((2, len(course.features)), np.float32)
    states[1, course.features.index("busy")] = 1.0
    episodes = Episodes(course, [1])
    assert by_policy(policy, course)(episodes, states) == [0, 1]
    with pytest.raises(ValueError, match="the policy goes by mood"):
        by_policy(dataclasses.replace(policy, features=("busy", "mood")), course)


def test_what_cannot_be_judged_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = str(tmp_path / "none.safetensors")
    assert main(["judge", "--policy", none]) == 2
    assert "none.safetensors" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["judge", "--rival_kinds", "cubic,reno"])
    assert "--rival_kinds has reno" in capsys.readouterr().err
