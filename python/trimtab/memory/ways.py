"""Ways to choose the algorithm of the next connection, compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab._native import Arms
from trimtab.memory.learnt import Learnt, Prior
from trimtab.memory.visits import Floats, Seen
from trimtab.policy import Array

#: Samples of paths, drawn with replacement, that an interval is made of, and their seed.
SAMPLES, SAMPLES_SEED = 2_000, 1
#: The visits that the table has.
SHOWN = (1, 2, 3, 5, 10, 20)


def follow(
    rewards: Floats,
    prior: Callable[[int, NDArray[np.int64]], Prior],
    drift: float,
    pick: Callable[[Arms, int], int],
) -> NDArray[np.int64]:
    """Give the arm of each visit to each path, chosen by what the visits before it brought.

    `prior` is asked for that of a path after the arms of the visits so far.
    """
    paths, visits, _ = rewards.shape
    chosen = np.zeros((paths, visits), np.int64)
    for path in range(paths):
        for visit in range(visits):
            known = prior(path, chosen[path, :visit]).arms(drift)
            for before, arm in enumerate(chosen[path, :visit]):
                known.observe(int(arm), float(rewards[path, before, arm]))
            chosen[path, visit] = pick(known, path * visits + visit)
    return chosen


@dataclass(frozen=True)
class Row:
    """One way to choose at one visit, compared with the best single arm, with intervals."""

    who: str
    visit: int
    change: tuple[float, float, float]
    closed: tuple[float, float, float]


def preferred(states: Floats, prefer: Callable[[Array], NDArray[np.int64]], first: int) -> NDArray[np.int64]:
    """Give the arm of each visit to each path that a policy prefers in the last state of the visit before."""
    paths, visits, _, _ = states.shape
    chosen = np.full((paths, visits), first, np.int64)
    for visit in range(1, visits):
        last = states[np.arange(paths), visit - 1, chosen[:, visit - 1]]
        chosen[:, visit] = prefer(last.astype(np.float32))
    return chosen


def compare(
    seen: Seen,
    visits: int,
    learnt: Learnt,
    drift: float,
    policy: Callable[[Floats], NDArray[np.int64]] | None = None,
) -> list[Row]:
    """Compare ways to choose at the first visits. By the others, the second bound chooses.

    `policy` gives the arms that a policy chooses, by the states at the ends of those visits.
    """
    adjusted = learnt.adjusted(seen)
    values, redrawn, adjusted = seen.rewards[:, :visits], adjusted[:, visits:], adjusted[:, :visits]
    said = learnt.said(seen.states[:, :visits])

    def by_states(path: int, chosen: NDArray[np.int64]) -> Prior:
        return learnt.after(said[path, np.arange(len(chosen)), chosen]) if len(chosen) else learnt.prior

    single = int(values.mean(axis=(0, 1)).argmax())
    bound = redrawn.mean(axis=1).argmax(axis=1)
    ways = {
        "times alone": follow(adjusted, lambda *_: learnt.prior, drift, lambda known, _: known.best()),
        "states, times": follow(adjusted, by_states, drift, lambda known, _: known.best()),
        **({} if policy is None else {"the policy": policy(seen.states[:, :visits])}),
        "Thompson": follow(adjusted, by_states, drift, lambda known, draw: known.draw(draw)),
        "second bound": np.repeat(bound[:, None], values.shape[1], axis=1),
        "clairvoyant": values.argmax(axis=2),
    }
    index = np.arange(len(values))
    drawn = np.random.default_rng(SAMPLES_SEED).integers(len(values), size=(SAMPLES, len(values)))
    # The gap is the same for all visits, so it is of all of them: that of a single one is mostly noise.
    gap = (values[index, :, bound] - values[:, :, single]).mean(axis=1)
    gaps = gap[drawn].mean(axis=1)
    rows = []
    for who, chosen in ways.items():
        for visit in (shown for shown in SHOWN if shown <= values.shape[1]):
            # A visit with its neighbours, for the same reason: from half of it on.
            span = range((visit - 1) // 2 if visit > 3 else visit - 1, visit)
            gains = np.mean([values[index, v, chosen[:, v]] - values[:, v, single] for v in span], axis=0)
            resampled = gains[drawn].mean(axis=1)
            low, high = np.percentile(resampled, [2.5, 97.5])
            shares = resampled[gaps > 0] / gaps[gaps > 0]
            ends = np.percentile(shares, [2.5, 97.5]) if len(shares) else (np.nan, np.nan)
            share = gains.mean() / gap.mean() if gap.mean() > 0 else np.nan
            change = (float(np.expm1(-gains.mean())), float(np.expm1(-high)), float(np.expm1(-low)))
            rows.append(Row(who, visit, change, (float(share), float(ends[0]), float(ends[1]))))
    return rows


def table(rows: list[Row], single: str) -> str:
    """Write the rows for people."""
    lines = [f"completion time vs. {single} on every path, and the share of the second bound's gain", ""]
    lines += [f"{'who chooses':14} {'visit':>5}  {'change [95% interval]':26} share [95% interval]"]
    for row in rows:
        change, low, high = (f"{100 * value:+.1f}" for value in row.change)
        share, least, most = (f"{100 * value:.0f}" for value in row.closed)
        changed = f"{change}% [{low}, {high}]"
        lines.append(f"{row.who:14} {row.visit:5}  {changed:26} {share}% [{least}, {most}]")
    return "\n".join(lines)
