"""How policies do on recordings that they learnt from, on those held out, and on other kinds of links.

`trimtab compare --json FILE` writes what this reads. `models/recordings.csv` says which recordings the
policies that ship have learnt from:

    python -m trimtab.seen FILE --recordings models/recordings.csv
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Within this share of the best single algorithm of a path counts as good as it.
NEAR = 0.02
#: Samples of paths, drawn with replacement, that an interval is made of, and their seed.
SAMPLES, SEED = 2_000, 1
GROUPS = ("learnt from", "held out", "other kinds", "all")
#: What says that a scheme chooses among others.
POLICIES = ("floo", "select:", "oracle", "static-best")


def read_recordings(path: Path) -> dict[str, str]:
    """Give for each recording, by its name without folder and ending, whether it was learnt from."""
    with path.open(encoding="utf-8", newline="") as file:
        return {Path(row["file"]).name.split(".")[0]: row["use"] for row in csv.DictReader(file)}


def ratios(runs: Iterable[dict[str, Any]]) -> tuple[list[str], dict[str, Floats]]:
    """Give the trace of each path and, of everyone, its best single algorithm's completion time over its own.

    Raises ValueError when a run has no completion times, or someone did not run on some path.
    """
    paths: dict[str, dict[str, float]] = {}
    traces: dict[str, str] = {}
    for run in runs:
        key = json.dumps([run["app"], run["trace"], run["cell"], run["seed"]])
        if "rct_ms" not in run:
            raise ValueError(f"the run of {run['cc']} over {run['trace']} has no completion times")
        paths.setdefault(key, {})[run["cc"]] = run["rct_ms"]["mean"]
        traces[key] = run["trace"]
    names = sorted({name for of in paths.values() for name in of})
    if any(len(of) < len(names) for of in paths.values()):
        raise ValueError("not everyone ran on every path")
    singles = [name for name in names if not name.startswith(POLICIES)]
    if not singles:
        raise ValueError("there is no single algorithm to compare with")
    best = np.asarray([min(of[name] for name in singles) for of in paths.values()])
    of_all = {name: best / np.asarray([of[name] for of in paths.values()]) for name in names}
    return list(traces.values()), of_all


def row(name: str, of: Floats, groups: dict[str, NDArray[np.bool_]]) -> str:
    """Give a row of the table."""
    random = np.random.default_rng(SEED)
    cells = []
    for group in groups.values():
        some = of[group]
        if not len(some):
            cells.append("")
            continue
        means = some[random.integers(len(some), size=(SAMPLES, len(some)))].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        near = int((some >= 1 / (1 + NEAR)).sum())
        cells.append(f"{near} of {len(some)}, {some.mean():.2f} [{low:.2f}, {high:.2f}]")
    return f"| `{name}` | {' | '.join(cells)} |"


def table(runs: Iterable[dict[str, Any]], recordings: dict[str, str]) -> str:
    """Give the table: of each group of paths how many are within 2%, and the mean ratio with its interval."""
    traces, of_all = ratios(runs)
    uses = np.asarray([recordings.get(trace, "other kinds") for trace in traces])
    groups = {name: uses == name for name in GROUPS[:-1]} | {"all": np.ones(len(uses), np.bool_)}
    order = sorted(of_all, key=lambda name: -float(of_all[name].mean()))
    head = f"| | {' | '.join(groups)} |\n|{'---|' * (len(groups) + 1)}"
    return "\n".join([head, *(row(name, of_all[name], groups) for name in order)])


def main(arguments: list[str]) -> int:
    """Print the table. Gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trimtab.seen", description=__doc__.split("\n")[0])
    parser.add_argument("json", type=Path, help="what `trimtab compare --json` wrote")
    parser.add_argument(
        "--recordings", type=Path, default=Path("models/recordings.csv"), help="which were learnt from"
    )
    given = parser.parse_args(arguments)
    try:
        runs = json.loads(given.json.read_text(encoding="utf-8"))["runs"]
        print(table(runs, read_recordings(given.recordings)))
    except (OSError, ValueError, KeyError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
