import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import trimtab

SMALL = {
    "app": "download",
    "cc": ["cubic", "copa:mit"],
    "traces": "constant:8Mbit/s",
    "duration": "4s",
    "seeds": 2,
}


def command() -> Path | None:
    """Find the command as built in the repository, else on the path."""
    root = Path(__file__).parents[2]
    built = [root / "target" / kind / "trimtab" for kind in ("release", "debug")]
    there = sorted((path for path in built if path.exists()), key=lambda path: path.stat().st_mtime)
    found = shutil.which("trimtab")
    return there[-1] if there else Path(found) if found else None


def test_pandas_and_polars_take_the_tables() -> None:
    runs = trimtab.compare(**SMALL, details=True)  # type: ignore[arg-type]
    assert runs.height == 4
    for table in (runs, runs.summary, runs.requests, runs.series):
        frame = pd.DataFrame(table)
        assert list(frame.columns) == list(table)
        assert len(frame) == table.height > 0
        other = pl.DataFrame(table)
        assert other.columns == list(table)
        assert other.height == table.height
        assert other.to_dicts()[0].keys() == table.keys()
    assert pl.DataFrame(runs).schema["qoe_mean"] == pl.Float64
    assert pl.DataFrame(runs).schema["seed"] == pl.Int64
    assert pl.DataFrame(runs).schema["cc"] == pl.String
    assert pd.DataFrame(runs)["qoe_mean"].dtype == float
    assert "bitrate_kbps_mean" not in runs, "a download has no bitrate"
    # Without competitors, Jain's index of a single flow means nothing, and the table has no such column.
    assert "jain" not in runs
    assert sum(runs["requests"]) == len(runs.requests["qoe"])


def test_without_details_their_tables_are_empty() -> None:
    runs = trimtab.compare(**SMALL)  # type: ignore[arg-type]
    assert runs.requests.height == runs.series.height == 0
    assert runs.requests["qoe"] == [], "its columns are there"
    assert repr(runs).startswith("<Comparison of 4 rows: run, cc, app")


def test_means_over_runs_are_those_of_the_summary() -> None:
    runs = trimtab.compare(**SMALL)  # type: ignore[arg-type]
    means = pd.DataFrame(runs).groupby("cc")["qoe_mean"].mean()
    for cc, mean in zip(runs.summary["cc"], runs.summary["qoe_mean"], strict=True):
        assert means[cc] == pytest.approx(mean, rel=1e-12)


def test_the_same_numbers_as_the_command() -> None:
    binary = command()
    if binary is None:
        pytest.skip("the command trimtab is neither built nor installed: cargo build -p trimtab")
    flags = "--app download --cc cubic --cc copa:mit --traces constant:8Mbit/s --duration 4s --seeds 2"
    done = subprocess.run(
        [binary, "compare", *flags.split(), "--loss", "0.5%", "--quiet", "--json", "-"],
        check=True,
        capture_output=True,
        text=True,
    )
    printed = json.loads(done.stdout)
    own = trimtab.compare(**SMALL, loss="0.5%").record  # type: ignore[arg-type]
    assert own["runs"] == printed["runs"]
    assert own["summary"] == printed["summary"]
    assert own["provenance"]["scenario"] == printed["provenance"]["scenario"]
    assert own["provenance"]["command"].startswith("trimtab.compare(app='download', cc=['cubic', 'copa:mit']")


def test_the_table_has_the_numbers_of_the_record() -> None:
    runs = trimtab.compare(**SMALL, jobs=1)  # type: ignore[arg-type]
    for row, run in enumerate(runs.record["runs"]):
        assert runs["run"][row] == row
        assert runs["qoe_p5"][row] == run["qoe"]["p5"]
        assert runs["rct_ms_p99"][row] == run["rct_ms"]["p99"]
        assert runs["cell_buffer_bytes"][row] == run["cell"]["buffer_bytes"]
    assert runs == trimtab.compare(**SMALL), "on any number of cores"  # type: ignore[arg-type]


def test_axes_may_have_one_value_or_several() -> None:
    grid = {**SMALL, "cc": "cubic", "seeds": 1}
    runs = trimtab.compare(**grid, rtt=["20ms", "40ms"], flows=[1, 2])  # type: ignore[arg-type]
    assert sorted(zip(runs["cell_rtt_ms"], runs["cell_flows"], strict=True)) == [
        (20, 1),
        (20, 2),
        (40, 1),
        (40, 2),
    ]
    assert runs["jain"][0] is None or runs["cell_flows"][0] == 2, "a flow alone has no index"
    jain = [j for j, n in zip(runs["jain"], runs["cell_flows"], strict=True) if n == 1]
    assert jain == [None, None]
    assert trimtab.compare(**grid, flows=2)["cell_flows"] == [2]  # type: ignore[arg-type]


def test_axes_take_any_iterable(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("1\n2\n")
    grid = {**SMALL, "cc": (cc for cc in ["cubic"]), "seeds": 1, "traces": trace}
    runs = trimtab.compare(**grid, flows=pd.Series([1, 2]), rtt=pd.Series(["20ms"]))  # type: ignore[arg-type]
    assert runs["cell_flows"] == [1, 2]
    command = runs.record["provenance"]["command"]
    assert f"traces={str(trace)!r}" in command, "the call can be repeated"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"cc": "cubik"}, ValueError, "cubic"),
        ({"app": "dowload"}, ValueError, '"dowload": unknown application: use download'),
        ({"rtt": "20"}, ValueError, 'rtt="20"'),
        ({"rtt": 20}, TypeError, "rtt=20 is no text: write it with its unit"),
        ({"duration": 4}, TypeError, "duration=4 is no text"),
        ({"jobs": 0}, ValueError, "jobs=0 is out of range: give 1 to 65535"),
        ({"transport": "sctp"}, ValueError, "write quic, noq or tcp"),
        ({"scenario": "missing.toml"}, ValueError, "cannot read the scenario missing.toml"),
        ({"traces": "missing.trace"}, ValueError, "missing.trace"),
        ({"seed": 3}, TypeError, "unexpected keyword argument 'seed'"),
        ({"datapath": "kernel"}, TypeError, "unexpected keyword argument 'datapath'"),
        ({"rtt": ["20ms", None]}, TypeError, "rtt=None is no text"),
        ({"cc": None}, TypeError, "cc=None is no text"),
        ({"seeds": -1}, ValueError, "seeds=-1 is out of range: give 0 to 4294967295"),
        ({"jobs": 2**16}, ValueError, "jobs=65536 is out of range: give 1 to 65535"),
        ({"flows": [1, -1]}, ValueError, "flows=-1 is out of range"),
        ({"flows": "2"}, TypeError, "flows='2' is no whole number"),
        ({"seeds": 1.5}, TypeError, "seeds=1.5 is no whole number"),
    ],
)
def test_mistakes_say_what_to_do(given: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as raised:
        trimtab.compare(**{**SMALL, **given})  # type: ignore[arg-type]
    assert says in str(raised.value)


def test_figures_and_tables_are_written(tmp_path: Path) -> None:
    runs = trimtab.compare(**SMALL, details=True)  # type: ignore[arg-type]
    for end, begins in ((".svg", b"<svg"), (".pdf", b"%PDF"), (".png", b"\x89PNG")):
        file = tmp_path / f"cdf{end}"
        runs.plot("cdf", file)
        assert file.read_bytes().startswith(begins)
    runs.write(tmp_path / "all")
    parquet = pl.read_parquet(tmp_path / "all" / "runs.parquet")
    assert parquet["qoe_mean"].to_list() == runs["qoe_mean"]
    assert set(runs) <= set(parquet.columns)
    assert (tmp_path / "all" / "figures" / "download-tradeoff.pdf").exists()
    assert "</html>" in runs.html()
    assert runs.svg("qoe").startswith("<svg")
    with pytest.raises(ValueError, match=r"ends in \.svg, \.pdf or \.png"):
        runs.plot("cdf", tmp_path / "cdf.gif")
    with pytest.raises(ValueError, match='no figure "pie"'):
        runs.svg("pie")


def test_what_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    runs = trimtab.compare(**SMALL)  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="a file is in the way of the folder; choose another name"):
        runs.write(tmp_path / "file" / "folder")
    (tmp_path / "qoe.svg").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file"):
        runs.plot("qoe", tmp_path / "qoe.svg")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_is_an_os_error(tmp_path: Path) -> None:
    runs = trimtab.compare(**SMALL)  # type: ignore[arg-type]
    (tmp_path / "qoe.png").symlink_to("/dev/full")
    with pytest.raises(OSError, match="the disk is full"):
        runs.plot("qoe", tmp_path / "qoe.png")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_comparison_and_the_next_one_runs() -> None:
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        trimtab.compare(**{**SMALL, "duration": "60s", "seeds": 5000})  # type: ignore[arg-type]
    assert time.monotonic() - begun < 30, "runs that have begun end, and no further one begins"
    timer.join()
    assert trimtab.compare(**SMALL).height == 4  # type: ignore[arg-type]


def test_schemes_are_those_of_the_command() -> None:
    listed = trimtab.schemes()
    names = {scheme["name"]: scheme for scheme in listed}
    assert names["mortise"]["kind"] == "steering" and names["omniscient"]["kind"] == "bound"
    delta = next(knob for knob in names["copa"]["knobs"] if knob["name"] == "delta")
    assert delta["min"] <= delta["default"] <= delta["max"]
    program = command()
    if program is None:
        pytest.skip("no trimtab command is built or installed, so there is nothing to compare with")
    said = subprocess.run([program, "cc", "list", "--json"], capture_output=True, check=True)
    assert json.loads(said.stdout) == listed
