"""Which recordings were learnt from is distinguished from which were not."""

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab import seen


def runs(trace: str, times: dict[str, float]) -> list[dict[str, Any]]:
    common = {"app": "download", "trace": trace, "cell": {"rtt_ms": 20.0, "flows": 1}, "seed": 1}
    return [{**common, "cc": cc, "rct_ms": {"mean": time}} for cc, time in times.items()]


ALL = [
    *runs("seen-1", {"bbr": 100.0, "copa": 200.0, "floo": 100.0}),
    *runs("seen-2", {"bbr": 300.0, "copa": 100.0, "floo": 101.0}),
    *runs("kept-1", {"bbr": 100.0, "copa": 100.0, "floo": 125.0}),
    *runs("wifi-1", {"bbr": 100.0, "copa": 100.0, "floo": 50.0}),
]


def test_paths_are_told_apart_by_what_was_learnt_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "compare.json").write_text(json.dumps({"runs": ALL}), encoding="utf-8")
    recordings = "file,use\nlte/seen-1.trace.gz,learnt from\nlte/seen-2.trace,learnt from\n"
    (tmp_path / "r.csv").write_text(recordings + "lte/kept-1.trace.gz,held out\n", encoding="utf-8")
    given = [str(tmp_path / "compare.json"), "--recordings", str(tmp_path / "r.csv")]
    assert seen.main(given) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| | learnt from | held out | other kinds | all |"
    (floo,) = [row for row in rows if row.startswith("| `floo`")]
    cells = [cell.strip() for cell in floo.strip("|").split("|")]
    assert cells[1].startswith("2 of 2, 1.00 [0.99, 1.00]")
    assert cells[2:4] == ["0 of 1, 0.80 [0.80, 0.80]", "1 of 1, 2.00 [2.00, 2.00]"]
    assert cells[4].startswith("3 of 4, 1.20 ")
    (bbr,) = [row for row in rows if row.startswith("| `bbr`")]
    assert "| 1 of 2, 0.67 " in bbr


def test_what_cannot_be_compared_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="every path"):
        seen.ratios(ALL[:-1])
    with pytest.raises(ValueError, match="no single algorithm"):
        seen.ratios([run for run in ALL if run["cc"] == "floo"])
    with pytest.raises(ValueError, match="no completion times"):
        seen.ratios([{key: value for key, value in ALL[0].items() if key != "rct_ms"}])
    assert seen.main([str(tmp_path / "nothing.json")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_the_recordings_that_ship_are_listed() -> None:
    path = Path(__file__).resolve().parents[2] / "models/recordings.csv"
    uses = seen.read_recordings(path)
    counts = [sum(of == use for of in uses.values()) for use in ("learnt from", "held out")]
    assert counts == [119, 37] and sum(counts) == len(uses)
