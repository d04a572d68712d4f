"""A tree that learns from the oracle without an LSTM."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trimtab._native import MusesEnvironments, muses_outcomes
from trimtab.muses import direct

MODELS = Path(__file__).parents[2] / "models"
SMALL = direct.Direct(start=MODELS / "treeg.trees", passes=2, flows=40, length=3, leaves=60, generated=8)


def test_it_learns_to_use_a_link_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = replace(SMALL, out=tmp_path)
    path = direct.learn(settings)
    assert path == tmp_path / "pass-1.trees"
    world = MusesEnvironments(
        setting="steady-wifi",
        part="validation",
        length_ms=8_000,
        traces=None,
        kinds=[],
        generated=1,
        delay_max_ms=None,
        alpha_percent=120,
        ahead=False,
        even_at_mbps=None,
    )
    outcomes = muses_outcomes(world, [1, 2, 3], flows=1, length_ms=6_000, trees=path.read_bytes())
    used, delay, _ = np.mean(outcomes, axis=0)
    assert used > 0.7
    assert delay < 0.2
    first = (tmp_path / "pass-0.npy").stat().st_mtime_ns
    path.unlink()
    assert direct.learn(settings) == path
    assert path.exists()
    assert (tmp_path / "pass-0.npy").stat().st_mtime_ns == first, "what is there is not run again"
    assert "pass 2: " in capsys.readouterr().out


def test_small_steps_are_made_smaller_and_large_ones_hardly() -> None:
    steps = direct.damped(np.array([-1.0, -0.1, 0.0, 0.3, 1.0]), SMALL)
    assert np.allclose(steps, [-1 / 1.1, -0.05, 0.0, 0.15, 1 / 1.3])


def test_what_cannot_be_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert direct.problem(SMALL) is None
    assert "--leaves" in (direct.problem(replace(SMALL, leaves=1)) or "")
    assert direct.main(["--start", "none.trees", "--out", "/proc/none"]) == 2
    assert "error: " in capsys.readouterr().err
