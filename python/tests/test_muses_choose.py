"""The search for the size of a tree."""

from dataclasses import replace
from pathlib import Path

import pytest

from trimtab.muses import choose, direct

MODELS = Path(__file__).parents[2] / "models"


def test_it_takes_the_best_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    direct.learn(
        direct.Direct(
            out=tmp_path, start=MODELS / "treeg.trees", passes=1, flows=40, length=3, leaves=8, generated=8
        )
    )
    settings = choose.Choose(out=tmp_path, leaves="2,60", depths="0,3", networks=2, length=5)
    path = choose.choose(settings)
    assert path.parent == tmp_path / "grid"
    assert path.name.startswith("leaves-60"), "two leaves cannot tell when to grow and when to shrink"
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| 2", "any"],
        ["| 2", "3"],
        ["| 60", "any"],
        ["| 60", "3"],
    ]
    shallow = tmp_path / "grid" / "leaves-60-depth-3.trees"
    assert shallow.stat().st_size < (tmp_path / "grid" / "leaves-60-depth-0.trees").stat().st_size
    before = shallow.stat().st_mtime_ns
    assert choose.choose(settings) == path
    assert shallow.stat().st_mtime_ns == before, "what is there is not fitted again"
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:] == rows


def test_loss_and_delay_have_their_prices() -> None:
    settings = choose.Choose(delay_price=0.5, loss_price=5.0)
    assert choose.score(settings, [[1.0, 0.0, 0.0]]) == 0.0
    assert choose.score(settings, [[1.0, 0.1, 0.01]]) == pytest.approx(-0.1)


def test_what_cannot_be_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert choose.problem(choose.Choose()) is None
    assert "commas" in (choose.problem(choose.Choose(leaves="many")) or "")
    assert "--leaves" in (choose.problem(replace(choose.Choose(), leaves="1")) or "")
    assert choose.main(["--out", str(tmp_path)]) == 2
    assert "muses.direct" in capsys.readouterr().err
