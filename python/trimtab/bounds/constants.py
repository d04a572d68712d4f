"""Connections under a fixed setting each, at several times of their path: what sets of candidates share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab._native import constants
from trimtab.bounds.options import Bounding
from trimtab.bounds.progress import Bar
from trimtab.bounds.store import Store

Floats = NDArray[np.float64]

#: Runs between two writes to the file.
BATCH = 128
#: What is kept of a run's completion times.
KEPT = ("mean", "p90")
#: Settings that change nothing of one run.
FREE = ("out", "seed", "paths", "futures", "pool", "algorithms", "most", "horizon", "fitted")


def settings_of(bounding: Bounding) -> dict[str, str]:
    """Give the settings that a run is worth something with only."""
    said = {name: str(value) for name, value in vars(bounding).items() if name not in FREE}
    # Where recordings are does not matter, but whether there are any.
    return said | {"traces": str(bounding.traces is not None)}


def sum_up(times: list[float]) -> list[float]:
    """Give what is kept of completion times: NaN of none."""
    if not times:
        return [float("nan")] * len(KEPT)
    return [float(np.mean(times)), float(np.percentile(times, 90))]


@dataclass
class Table:
    """Completion times by path, time of the path and algorithm: logarithms of seconds."""

    names: tuple[str, ...]
    paths: list[int]
    logs: Floats
    """The mean's, then the 90th percentile's along the first axis."""

    def of(self, kept: str) -> Floats:
        """Give the logarithms of one of `KEPT`."""
        return np.asarray(self.logs[KEPT.index(kept)])


def simulate(bounding: Bounding, names: tuple[str, ...]) -> Table:
    """Run what is missing, and give the table. Paths on which someone had no request are left out.

    Raises ValueError when a name or file is wrong, or what was simulated before had other settings.
    """
    course = bounding.course(bounding.names()).course()
    store = Store(bounding.out / "constants.jsonl", settings_of(bounding))
    paths = range(bounding.seed, bounding.seed + bounding.paths)
    # Path by path, so that the first hundred are done for every algorithm.
    wanted = [(p, f, i) for p in paths for f in range(bounding.futures) for i in range(len(names))]
    missing = [(p, f, i) for p, f, i in wanted if (p, f, names[i]) not in store.rows]
    bar = Bar("runs", len(wanted), len(wanted) - len(missing))
    for begin in range(0, len(missing), BATCH):
        some = missing[begin : begin + BATCH]
        done = zip(some, constants(course, names, some), strict=True)
        store.add(((p, f, names[i]), sum_up(times)) for (p, f, i), times in done)
        bar.advance(len(some))
    store.close()
    flat = np.asarray([store.rows[p, f, names[i]] for p, f, i in wanted], np.float64)
    shape = (bounding.paths, bounding.futures, len(names), len(KEPT))
    logs = np.moveaxis(np.log(flat.reshape(shape)), -1, 0)
    full = np.flatnonzero(~np.isnan(logs).any(axis=(0, 2, 3)))
    return Table(names, [paths[i] for i in full], logs[:, full])
