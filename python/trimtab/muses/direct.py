"""One tree learnt from the oracle itself, without an LSTM between; not the paper's.

A tree drives over many networks, the oracle says in each state how far the window is from the best one,
a new tree is fitted to all that was seen, and drives next (Ross et al., 2011). Networks are those of Tables
II and III, recordings over wider paths, 5G among them, links of 1 to 800 Mbit/s with round trips of 5 to
800 ms, and links that several flows share. A pass that is in the folder is not run again.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from trimtab._native import MusesEnvironments, muses_shown
from trimtab.muses.drive import SHARING
from trimtab.muses.fit import nodes_of
from trimtab.muses.inputs import INPUTS, SIGNALS
from trimtab.muses.options import KINDS
from trimtab.muses.trees import BINS, COMPONENTS, FILE_MAX, Trees, file_size
from trimtab.options import option, out_of_range, read

#: Parts of a doubling of the window in which the oracle's answers are given.
DOUBLING = 4_096
#: Where the tree's splits begin to count ratios by their logarithm: a twentieth of a doubling. Squared
#: errors alone spend all leaves on outages, and leave none for a window that is a few percent off.
BEND = 0.05
#: The most states that a tree is fitted to.
FITTED = 1_000_000
#: Share of the networks that the oracle drives, in the first pass and in the others.
BY_ORACLE = (0.25, 0.03)
#: Networks: the setting, kinds of recordings, the largest one-way delay in ms (0: the table's), and the
#: share of all flows. Those of the last two are shared by several flows each.
NETWORKS = (
    ("global", KINDS, 0, 0.16),
    ("global", KINDS, 500, 0.05),
    ("recorded", "cellular-5g", 0, 0.15),
    ("lte", "cellular-lte", 0, 0.09),
    ("recorded", "wifi", 0, 0.07),
    ("steady-wifi", KINDS, 0, 0.06),
    ("fluctuating-wifi", KINDS, 0, 0.12),
    ("shared-wifi", KINDS, 0, 0.06),
    ("wide", KINDS, 0, 0.12),
    ("wired", KINDS, 0, 0.06),
    ("global", KINDS, 0, 0.06),
)
SHARED = len(NETWORKS) - 2

Floats = NDArray[np.float64]
States = NDArray[np.int16]


@dataclass(frozen=True)
class Direct:
    """A tree learnt from the oracle without an LSTM between, on wider networks than Muses'."""

    out: Path = option(Path("out/direct"), "folder for the tree of each pass and what it was fitted to")
    start: Path = option(Path("models/treeg.trees"), "the trees whose first one drives in the first pass")
    seed: int = option(1, "seed of everything that is drawn")
    passes: int = option(5, "passes: drive, ask the oracle, fit")
    flows: int = option(800, "networks of a pass")
    length: int = option(10, "seconds of a flow")
    leaves: int = option(2_000, "most leaves of the tree")
    depth: int = option(0, "most comparisons that lead to a leaf; 0 for any")
    least: int = option(40, "states of a leaf at least")
    rise: float = option(
        0.3,
        "a leaf that grows the window by this many doublings does half of it: a step's effect is seen late",
    )
    fall: float = option(0.1, "the same where it shrinks the window")
    alpha: float = option(1.25, "the oracle's window over what the link carries, at --even_at")
    even_at: float = option(24.0, "rate of a flow in Mbit/s at which alpha is that; less above it")
    span: int = option(200, "ms that the oracle looks ahead of a round trip: for the most, fit for the least")
    room: int = option(25, "percent of the link's buffer that the oracle fills at most")
    traces: Path | None = option(None, "folder of recordings, of which those of the part train are taken")
    generated: int = option(128, "cellular links that are generated where no recordings are given")


def problem(settings: Direct) -> str | None:
    """Say what cannot be; none when nothing is wrong."""
    most = next(n for n in range(5_000, 0, -1) if file_size(1, n) <= FILE_MAX)
    return out_of_range(
        settings,
        {
            "seed": (0, None),
            "passes": (1, 100),
            "flows": (1, None),
            "length": (1, 600),
            "leaves": (2, most),
            "depth": (0, 1_000),
            "least": (1, None),
            "rise": (0.0, 10.0),
            "fall": (0.0, 10.0),
            "alpha": (0.01, 10.0),
            "even_at": (0.1, 100_000.0),
            "span": (0, 10_000),
            "room": (1, 100),
            "generated": (1, None),
        },
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the passes. Gives the exit code."""
    settings = read(Direct, sys.argv[1:] if arguments is None else arguments, problem, command="muses.direct")
    try:
        path = learn(settings)
    except (ValueError, OSError) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 2
    print(f"the tree is {path}")
    return 0


def learn(settings: Direct) -> Path:
    """Run the passes that are not there yet; gives the last one's file."""
    settings.out.mkdir(parents=True, exist_ok=True)
    path = settings.start
    rows: list[States] = []
    for number in range(settings.passes):
        started = time.monotonic()
        seen, tree = settings.out / f"pass-{number}.npy", settings.out / f"pass-{number}.trees"
        if not seen.exists():
            part = settings.out / "part.npy"
            np.save(part, gather(settings, path.read_bytes(), number))
            part.replace(seen)
        rows.append(np.load(seen))
        if not tree.exists():
            fit(settings, np.concatenate(rows)).save(tree)
        path = tree
        states = sum(len(each) for each in rows)
        print(f"pass {number + 1}: {states} states; {time.monotonic() - started:.0f} s", flush=True)
    return path


def gather(settings: Direct, trees: bytes, number: int) -> States:
    """Let a tree drive over new networks; gives the inputs and the oracle's answer in each state."""
    random = np.random.default_rng((settings.seed, number))
    shown = []
    for place, (setting, kinds, delay_max_ms, share) in enumerate(NETWORKS):
        world = MusesEnvironments(
            setting=setting,
            part="train",
            length_ms=settings.length * 1_000 + 2_000,
            traces=settings.traces,
            kinds=kinds.split(","),
            generated=settings.generated,
            delay_max_ms=delay_max_ms or None,
            alpha_percent=round(settings.alpha * 100),
            ahead=True,
            even_at_mbps=settings.even_at,
            room_percent=settings.room,
            span_ms=settings.span,
        )
        count = max(1, round(settings.flows * share))
        by_oracle = random.random(count) < BY_ORACLE[min(number, 1)]
        flows = random.choice(SHARING, count) if place >= SHARED else np.ones(count, np.int64)
        seeds = random.integers(2**62, size=count)
        for key in sorted(set(zip(flows.tolist(), by_oracle.tolist(), strict=True))):
            mine = (flows == key[0]) & (by_oracle == key[1])
            shown.append(
                muses_shown(
                    world,
                    seeds[mine].tolist(),
                    flows=key[0],
                    length_ms=settings.length * 1_000,
                    trees=trees,
                    by_oracle=key[1],
                )
            )
    return np.frombuffer(b"".join(shown), "<i2").reshape(-1, INPUTS + 1)


def fit(settings: Direct, rows: States) -> Trees:
    """Fit a tree to these states."""
    random = np.random.default_rng((settings.seed, 1_000))
    some = rows[random.permutation(len(rows))[:FITTED]]
    inputs, wanted = some[:, :INPUTS].astype(np.float32), some[:, INPUTS] / DOUBLING
    fitted = DecisionTreeRegressor(
        max_leaf_nodes=settings.leaves,
        max_depth=settings.depth or None,
        min_samples_leaf=settings.least,
        random_state=settings.seed,
    ).fit(inputs, np.arcsinh(wanted / BEND))
    leaf = fitted.apply(inputs)
    nodes = fitted.tree_.node_count
    states = np.bincount(leaf, minlength=nodes)
    means = np.bincount(leaf, wanted, minlength=nodes) / np.maximum(states, 1)
    fitted.tree_.value[:, 0, 0] = damped(means, settings)
    signals = rows[:, :SIGNALS].astype(np.int64)
    return Trees(
        low=signals.min(axis=0),
        high=signals.max(axis=0),
        # With one tree there is nothing to choose.
        weights=np.ones((COMPONENTS, SIGNALS), np.int64),
        origin=np.zeros(COMPONENTS, np.int64),
        width=np.ones(COMPONENTS, np.int64),
        norms=np.zeros(1, np.int64),
        centres=np.zeros((1, COMPONENTS * BINS), np.int64),
        nodes=[nodes_of(fitted)],
        first=0,
        states=1_000,
        inputs=INPUTS,
    )


def damped(ratios: Floats, settings: Direct) -> Floats:
    """Make small steps smaller.

    Several decisions fall into a round trip, and each would correct the same error once more before the
    first shows. What is far off is corrected as it is.
    """
    half = np.where(ratios > 0, settings.rise, settings.fall)
    size = np.abs(ratios)
    return np.asarray(ratios * size / np.maximum(size + half, 1e-9), np.float64)


if __name__ == "__main__":
    sys.exit(main())
