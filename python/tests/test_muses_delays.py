"""The table and the figure of Muses' Fig. 1b, and flows that share links while they are learnt from."""

from pathlib import Path

import numpy as np
import pytest

from trimtab.muses import chart, delays, extract, lstm, options
from trimtab.muses.drive import NONE
from trimtab.muses.inputs import MIN_RTT


def teacher() -> lstm.Teacher:
    return lstm.Teacher(lstm.init(1, 8), np.full(7, 3000, np.float32), np.full(7, 900, np.float32))


def test_a_row_for_each_range_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    teacher().save(tmp_path / "lstm", whole=True)
    given = [
        "--lstm",
        str(tmp_path / "lstm"),
        "--flows",
        "30",
        "--most",
        "10",
        "--decisions",
        "300",
        "--svg",
        str(tmp_path / "svg"),
    ]
    assert delays.main(given) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    values = [float(part) for part in row.split("|")[2:-1]]
    assert row.startswith("| 10 ms |") and len(values) == len(delays.NAMES)
    # Trees are fitted to the oracle's answers; this LSTM has learnt nothing.
    assert 0.0 < values[0] < values[2] < 1.0
    assert (tmp_path / "svg").read_text().count("<polyline") == len(delays.NAMES)
    assert delays.main(["--lstm", str(tmp_path / "none")]) == 2


def test_a_figure_has_each_line_within_its_frame() -> None:
    drawn = chart.draw("x", "y", [1, 2, 3], {"up": [0.1, 0.2, 0.5], "down": [0.5, 0.3, 0.0]})
    points = [
        line.split('points="')[1].split('"')[0].split() for line in drawn.splitlines() if "points" in line
    ]
    assert [len(line) for line in points] == [3, 3]
    heights = [float(point.split(",")[1]) for line in points for point in line]
    assert chart.TOP <= min(heights) < max(heights) <= chart.HEIGHT - chart.BOTTOM


def test_trees_are_distilled_from_flows_that_share_links_too() -> None:
    small = ["--decisions", "100", "--window", "50", "--flows", "12", "--parallel", "6", "--generated", "4"]
    stages = options.parse([*small, "--sharing", "1"])
    shown, _ = extract.gather(stages, teacher(), None, 0)
    alone, _ = extract.gather(options.parse([*small, "--sharing", "0"]), teacher(), None, 0)
    assert len(alone.inputs) == 12 and len(shown.inputs) >= 12
    decided = (shown.actions != NONE).sum(axis=1)
    assert decided.min() > 0 and decided.mean() > 30, decided


def test_trees_are_distilled_from_networks_that_are_farther_too() -> None:
    small = ["--decisions", "100", "--window", "50", "--flows", "12", "--parallel", "6", "--generated", "4"]
    given = [*small, "--sharing", "0", "--far"]
    near, far = (
        extract.gather(options.parse([*given, share]), teacher(), None, 0)[0].inputs[:, :, MIN_RTT]
        for share in ("0", "1")
    )
    # 300 ms are the most of Table II; 256 steps are a doubling.
    doubled = far.max() - near.max()
    assert 128 < doubled < 512, doubled
