"""Connections under a fixed setting each, at several times of their path: what sets of candidates share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab._native import constants
from trimtab.bounds.options import CUBIC, Bounding
from trimtab.bounds.store import Store
from trimtab.progress import Bar

Floats = NDArray[np.float64]

#: Runs between two writes to the file.
BATCH = 32
#: How a run's completion times are summed up. Of a run these are kept, its share of packets lost, and the MB
#: that rivals received.
KEPT = ("mean", "p90")
#: Settings that change nothing of one run.
FREE = (
    *("out", "seed", "paths", "futures", "pool", "algorithms", "most", "horizon", "fitted"),
    "particles",
    *("loss_budget", "loss_price", "harm_price"),
)


def settings_of(bounding: Bounding) -> dict[str, str]:
    """Give the settings that a run is worth something with only."""
    said = {name: str(value) for name, value in vars(bounding).items() if name not in FREE}
    # Where recordings are does not matter, but whether there are any.
    return said | {"traces": str(bounding.traces is not None)}


def sum_up(came: tuple[list[float], float, float]) -> list[float]:
    """Give what is kept of a run: NaN where it had no request."""
    times, lost, rivals = came
    if not times:
        return [float("nan")] * len(KEPT) + [lost, rivals]
    return [float(np.mean(times)), float(np.percentile(times, 90)), lost, rivals]


def harm(rivals: Floats, cubic: Floats) -> Floats:
    """Give the share of what rivals receive next to CUBIC that they do not."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(cubic > 0, np.maximum(1.0 - rivals / cubic, 0.0), 0.0))


@dataclass
class Table:
    """What runs came to, by path, time of the path and fixed setting."""

    names: tuple[str, ...]
    paths: list[int]
    logs: Floats
    """Logarithms of completion times in seconds: the mean's, then the 90th percentile's along the first axis.
    What loss and harm cost is added."""
    times: Floats
    """The same without that."""
    harm: Floats
    """The share of what rivals receive next to CUBIC that they do not."""
    cubic: Floats
    """The MB that they receive then, by path and time."""

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
        store.add(((p, f, names[i]), sum_up(came)) for (p, f, i), came in done)
        bar.advance(len(some))
    store.close()
    flat = np.asarray([store.rows[p, f, names[i]] for p, f, i in wanted], np.float64)
    shape = (bounding.paths, bounding.futures, len(names), -1)
    mean, p90, lost, rivals = np.moveaxis(flat.reshape(shape), -1, 0)
    times = np.log(np.stack([mean, p90]))
    cubic = rivals[:, :, names.index(CUBIC)]
    harms = harm(rivals, cubic[:, :, None])
    full = np.flatnonzero(~np.isnan(times).any(axis=(0, 2, 3)))
    return Table(
        names,
        [paths[i] for i in full],
        (times + bounding.prices().of(lost, harms))[:, full],
        times[:, full],
        harms[full],
        cubic[full],
    )
