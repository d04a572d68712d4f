"""Which candidates to choose from: a greedy search by what the best one of each path gains, path known.

For every time of a path the candidate is chosen that is best at the other times of the same path: it is known
what the path is like, and not what is to come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab.bounds.constants import KEPT, Floats, Table

#: Samples of paths, drawn with replacement, that an interval is made of, and their seed.
SAMPLES, SEED = 2_000, 1
#: What steers an algorithm and is none: it can be a fixed setting, but nothing switches to it.
STEERED = "mortise"


def known(logs: Floats, members: list[int]) -> Floats:
    """Give the logarithm of the completion time of each path with the best of a set, the path known.

    `logs` is by path, time and algorithm. Each time is the truth once, and the others tell of it.
    """
    of = logs[:, :, members]
    others = (of.sum(axis=1, keepdims=True) - of) / (of.shape[1] - 1)
    chosen = others.argmin(axis=2)
    return np.asarray(np.take_along_axis(of, chosen[:, :, None], axis=2)[:, :, 0].mean(axis=1))


def hindsight(logs: Floats, members: list[int]) -> Floats:
    """Give the same with the best of each time, which nobody knows before."""
    return np.asarray(logs[:, :, members].min(axis=2).mean(axis=1))


def best_fixed(logs: Floats) -> int:
    """Give the number of the algorithm that is best over all paths, by ratio."""
    return int(logs.mean(axis=(0, 1)).argmin())


def interval(per_path: Floats) -> tuple[float, float, float]:
    """Give the mean change by ratio and its 95% interval, by resampling paths."""
    random = np.random.default_rng(SEED)
    means = per_path[random.integers(len(per_path), size=(SAMPLES, len(per_path)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(np.expm1(per_path.mean())), float(np.expm1(low)), float(np.expm1(high))


@dataclass
class Step:
    """A set, and its change vs. the best fixed setting: by the path known, and in hindsight."""

    members: list[int]
    known: tuple[float, float, float]
    hindsight: tuple[float, float, float]
    unseen: tuple[float, float, float]
    """Of sets that were chosen on other paths, in the same steps."""


def _order(logs: Floats, most: int, eligible: list[int]) -> list[int]:
    """Choose candidates one after another, each the one that gains most together with those before."""
    members: list[int] = []
    while len(members) < most:
        rest = [i for i in eligible if i not in members]
        gains = {i: float(known(logs, [*members, i]).mean()) for i in rest}
        if not gains:
            break
        members.append(min(gains, key=lambda i: gains[i]))
    return members


def greedy(table: Table, most: int, kept: str = "mean") -> list[Step]:
    """Search; gives a step for each size from one to `most`."""
    logs = table.of(kept)
    fixed = best_fixed(logs)
    base = logs[:, :, fixed].mean(axis=1)
    eligible = [i for i, name in enumerate(table.names) if not name.startswith(STEERED)]
    order = _order(logs, most, eligible)
    halves = np.arange(len(logs)) % 2 == 0
    orders = [(~half, _order(logs[half], most, eligible)) for half in (halves, ~halves)]
    steps = []
    for size in range(1, len(order) + 1):
        members = order[:size]
        unseen = np.empty(len(logs))
        for judged, chosen in orders:
            unseen[judged] = known(logs[judged], chosen[:size]) - base[judged]
        steps.append(
            Step(
                members,
                interval(known(logs, members) - base),
                interval(hindsight(logs, members) - base),
                interval(unseen),
            )
        )
    return steps


def gain_of(
    table: Table, names: tuple[str, ...], kept: str = "mean"
) -> tuple[tuple[float, float, float], ...]:
    """Give the change of one set, the path known and in hindsight, vs. the best fixed setting of all."""
    logs = table.of(kept)
    members = [table.names.index(name) for name in names]
    base = logs[:, :, best_fixed(logs)].mean(axis=1)
    return interval(known(logs, members) - base), interval(hindsight(logs, members) - base)


@dataclass
class Fixed:
    """A fixed setting next to the best one, all paths and times together."""

    name: str
    change: float
    """With what loss and harm cost."""
    time: float
    """Of completion times alone."""
    harm: float
    """Mean share of what rivals receive next to CUBIC that they do not."""


def ranked(table: Table, kept: str = "mean") -> list[Fixed]:
    """List the fixed settings from the best."""
    costs = table.of(kept).mean(axis=(0, 1))
    times = table.times[KEPT.index(kept)].mean(axis=(0, 1))
    harm = table.harm.mean(axis=(0, 1))
    order: NDArray[np.int64] = np.argsort(costs)

    def fixed(i: int) -> Fixed:
        change, time = (float(np.expm1(of[i] - of[order[0]])) for of in (costs, times))
        return Fixed(table.names[i], change, time, float(harm[i]))

    return [fixed(int(i)) for i in order]
