"""The table that compares several trees with one."""

from pathlib import Path

import numpy as np
import pytest

from trimtab.muses import leaves, lstm


def test_a_row_for_each_recipe_and_number_of_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher = lstm.Teacher(lstm.init(1, 8), np.full(7, 3000, np.float32), np.full(7, 900, np.float32))
    teacher.save(tmp_path / "lstm", whole=True)
    small = {
        "leaves": "2,9",
        "flows": 20,
        "passes": 1,
        "clusters": 2,
        "decisions": 100,
        "judge": 2,
        "generated": 4,
        "judged": 300,
    }
    given = [f"--{name}={value}" for name, value in small.items()]
    assert leaves.main(["--lstm", str(tmp_path / "lstm"), "--out", str(tmp_path), *given]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [(row[0].strip(), row[1].strip()) for row in rows[2:]] == [
        ("the LSTM", ""),
        ("the paper's", "2"),
        ("the paper's", "9"),
        ("ours, where the LSTM drives", "2"),
        ("ours, where the LSTM drives", "9"),
        ("ours", "2"),
        ("ours", "9"),
    ]
    # A tree of nine leaves is larger than one of two, and three trees than one.
    size = {path.relative_to(tmp_path).as_posix(): path.stat().st_size for path in tmp_path.glob("*/*.trees")}
    assert size["ours-2/treeg.trees"] < size["ours-9/treeg.trees"] < size["ours-9/muses.trees"]
    assert len(size) == 12
    assert leaves.main(["--lstm", str(tmp_path / "none")]) == 2
    assert leaves.main(["--lstm", str(tmp_path / "lstm"), "--leaves", "1"]) == 2
