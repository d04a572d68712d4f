"""Search for the size of a tree that `muses.direct` learnt: leaves and depth, on networks for validation.

Each tree is fitted to all that the passes saw, drives over the same networks, and has a score. What is in
the folder is not run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np

from trimtab._native import MusesEnvironments, muses_outcomes
from trimtab.muses.direct import Direct, fit
from trimtab.muses.direct import problem as direct_problem
from trimtab.muses.options import KINDS
from trimtab.options import option, out_of_range, read

#: Networks to choose by: the setting, and kinds of recordings.
JUDGED = (
    ("steady-wifi", KINDS),
    ("fluctuating-wifi", KINDS),
    ("shared-wifi", KINDS),
    ("recorded", "wifi"),
    ("recorded", "cellular-lte"),
    ("recorded", "cellular-5g"),
)
#: Less use than this counts as this much.
USED_MIN = 0.01
HEAD = (
    "| leaves | depth | bytes | score | "
    + " | ".join(f"{s} {k}" if s == "recorded" else s for s, k in JUDGED)
) + " |"


@dataclass(frozen=True)
class Choose:
    """Search for leaves and depth of a tree that muses.direct learnt, on networks for validation."""

    out: Path = option(Path("out/direct"), "the folder of muses.direct")
    leaves: str = option("500,1000,2000,4000", "most leaves of a tree, each of these")
    depths: str = option("0,12,16", "most comparisons that lead to a leaf, each of these; 0 for any")
    seed: int = option(1, "seed of everything that is drawn")
    networks: int = option(40, "networks of each kind")
    length: int = option(20, "seconds of a flow")
    delay_price: float = option(0.5, "what a second of the 95th percentile of the queueing delay costs")
    loss_price: float = option(
        5.0, "what losing everything costs; the logarithm of the utilisation is the gain"
    )
    traces: Path | None = option(None, "folder of recordings, of which those of the part validate are taken")


def numbers(text: str) -> list[int]:
    """Give the whole numbers of a list. Raises ValueError where one is none."""
    return [int(each) for each in text.split(",")]


def problem(settings: Choose) -> str | None:
    """Say what cannot be; none when nothing is wrong."""
    try:
        pairs = list(product(numbers(settings.leaves), numbers(settings.depths)))
    except ValueError as wrong:
        return f"--leaves and --depths: write whole numbers with commas between ({wrong})"
    for leaves, depth in pairs:
        wrong_pair = direct_problem(Direct(leaves=leaves, depth=depth))
        if wrong_pair is not None:
            return wrong_pair
    least = {"networks": (1, None), "length": (1, 600), "delay_price": (0.0, None), "loss_price": (0.0, None)}
    return out_of_range(settings, least)


def main(arguments: list[str] | None = None) -> int:
    """Search. Gives the exit code."""
    settings = read(Choose, sys.argv[1:] if arguments is None else arguments, problem, command="muses.choose")
    try:
        path = choose(settings)
    except (ValueError, OSError) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 2
    print(f"\nthe best is {path}")
    return 0


def choose(settings: Choose) -> Path:
    """Fit and judge each tree that is not there yet; gives the file of the best."""
    seen = sorted(settings.out.glob("pass-*.npy"))
    if not seen:
        raise ValueError(f"{settings.out}: there is no pass of muses.direct in it; run that first")
    folder = settings.out / "grid"
    folder.mkdir(exist_ok=True)
    rows = np.concatenate([np.load(path) for path in seen])
    best: tuple[float, Path] = (-np.inf, folder)
    print(f"{HEAD}\n|---:|---:|---:|---:|" + "---|" * len(JUDGED))
    for leaves, depth in product(numbers(settings.leaves), numbers(settings.depths)):
        path = folder / f"leaves-{leaves}-depth-{depth}.trees"
        if not path.exists():
            fit(replace(Direct(), leaves=leaves, depth=depth, seed=settings.seed), rows).save(path)
        found = judged(settings, path)
        value = float(np.mean([score(settings, outcomes) for outcomes in found]))
        best = max(best, (value, path))
        means = [np.mean(outcomes, axis=0) for outcomes in found]
        cells = [f"{100 * u:.1f}%, {1e3 * d:.0f} ms, {100 * lost:.2f}%" for u, d, lost in means]
        cells = [str(leaves), str(depth or "any"), str(path.stat().st_size), f"{value:.4f}", *cells]
        print(f"| {' | '.join(cells)} |", flush=True)
    return best[1]


def judged(settings: Choose, path: Path) -> list[list[list[float]]]:
    """Let a tree drive over the networks of each kind, or read what came of it before."""
    known = path.with_suffix(".json")
    same = {each.name: str(getattr(settings, each.name)) for each in fields(settings)}
    same = {name: same[name] for name in ("seed", "networks", "length", "traces")}
    if known.exists():
        before = json.loads(known.read_text())
        if before["settings"] == same:
            return list(before["outcomes"])
    found = []
    for place, (setting, kinds) in enumerate(JUDGED):
        world = MusesEnvironments(
            setting=setting,
            part="validation",
            length_ms=settings.length * 1_000 + 2_000,
            traces=settings.traces,
            kinds=kinds.split(","),
            generated=32,
            delay_max_ms=None,
            alpha_percent=120,
            ahead=False,
            even_at_mbps=None,
        )
        seeds = np.random.default_rng((settings.seed, place)).integers(2**62, size=settings.networks).tolist()
        length_ms = settings.length * 1_000
        outcomes = muses_outcomes(world, seeds, flows=1, length_ms=length_ms, trees=path.read_bytes())
        found.append([list(outcome) for outcome in outcomes])
    known.write_text(json.dumps({"settings": same, "outcomes": found}))
    return found


def score(settings: Choose, outcomes: list[list[float]]) -> float:
    """Score flows: the logarithm of the utilisation, less the prices of delay and loss."""
    used, delay, lost = np.array(outcomes).T
    logs = np.log(np.maximum(used, USED_MIN))
    return float(np.mean(logs - settings.delay_price * delay - settings.loss_price * lost))


if __name__ == "__main__":
    sys.exit(main())
