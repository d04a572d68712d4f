"""`python -m trimtab.train bounds`: what choosing among some algorithms can gain, by what is known.

Three bounds, from above to below: the future is foreseen; the path is known and its future drawn anew; what
the monitor saw is all that is known, and boosted trees or a digital twin decide by that. All on the same
connections, vs. the best fixed setting of all.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import numpy as np

from trimtab.bounds.candidates import percents
from trimtab.bounds.constants import KEPT, Floats, Table, harm, settings_of, simulate
from trimtab.bounds.drive import averaging, drive, foreseeing
from trimtab.bounds.foretell import Lessons
from trimtab.bounds.options import Bounding, parse
from trimtab.bounds.search import SAMPLES, SEED, best_fixed, interval
from trimtab.bounds.store import Store
from trimtab.bounds.twin import TwinChooser
from trimtab.policy import join_names

#: Logarithms of completion times by who chose.
Rows = dict[str, Floats]


def driven(bounding: Bounding, table: Table) -> tuple[dict[str, Rows], float]:
    """Run everyone on the first time of each path; gives logarithms by what is kept and who chose.

    The second number is the CPU time in seconds that the twin took for a decision; 0 without a twin.
    """
    names = bounding.names()
    members = [table.names.index(name) for name in names]
    course = bounding.course(names, objective="mean").course()
    tail = bounding.course(names, objective="p90").course()
    said = settings_of(bounding) | {"algorithms": join_names(names), "horizon": str(bounding.horizon)}
    prices = bounding.prices()
    priced = said | {"prices": str(prices), "futures": str(bounding.futures)}
    store = Store(bounding.out / "driven.jsonl", priced)
    lessons = Store(bounding.out / "lessons.jsonl", said | {"split": "train", "prices": str(prices)})
    logs = {kept: table.of(kept)[:, :, members] for kept in KEPT}
    first = int(logs["mean"].mean(axis=(0, 1)).argmin())
    starts = {
        "first": np.full(len(table.paths), first),
        "foreseen": logs["mean"][:, 0].argmin(axis=1),
        "foreseen by p90": logs["p90"][:, 0].argmin(axis=1),
        "path known": logs["mean"][:, 1:].mean(axis=1).argmin(axis=1),
    }
    horizon, drawn = bounding.horizon, bounding.futures - 1

    def run(kind: str, start: str, on: Any, choose: Any) -> list[list[float]]:
        begun = {seed: int(i) for seed, i in zip(table.paths, starts[start], strict=True)}
        done = drive(kind, on, begun, periods=bounding.periods, choose=choose, store=store)
        return [done[seed] for seed in table.paths]

    fit = bounding.course(names, split="train").course()
    learnt = Lessons(fit, len(names), bounding.periods, horizon, prices, lessons)
    foretold = learnt.collect(bounding.fitted)
    kinds = {
        "foreseen": run("foreseen", "foreseen", course, foreseeing(horizon, prices)),
        "foreseen by p90": run("foreseen by p90", "foreseen by p90", tail, foreseeing(horizon, prices)),
        "path known": run("path known", "path known", course, averaging(horizon, prices, drawn)),
        "monitor": run("monitor", "first", course, foretold.chooser()),
    }
    took = 0.0
    if bounding.particles:
        kind = f"twin of {bounding.particles}"
        twin = TwinChooser(fit, bounding.particles, horizon, prices)
        kinds["twin"] = run(kind, "first", course, twin)
        took = twin.seconds_each(kind, store)
    store.close()
    lessons.close()
    came = {kind: np.asarray(done) for kind, done in kinds.items()}
    cost = {kind: prices.of(of[:, 2], harm(of[:, 3], table.cubic[:, 0])) for kind, of in came.items()}
    rows: dict[str, Rows] = {}
    for k, kept in enumerate(KEPT):
        rows[kept] = {kind: np.log(of[:, k]) + cost[kind] for kind, of in came.items()}
        of = logs[kept][:, 0]
        everyone = np.arange(len(of))
        rows[kept] |= {f"constant, {kind}": of[everyone, chosen] for kind, chosen in starts.items()}
        rows[kept]["best fixed of the set"] = rows[kept].pop("constant, first")
        rows[kept]["best fixed"] = table.of(kept)[:, 0, best_fixed(table.of("mean"))]
        # The better of the two in each connection: both were foreseen.
        rows[kept]["clairvoyant"] = np.where(
            rows["mean"]["foreseen"] < rows["mean"]["constant, foreseen"],
            rows[kept]["foreseen"],
            rows[kept]["constant, foreseen"],
        )
    return rows, took


def share(gained: Floats, gap: Floats) -> tuple[float, float, float] | None:
    """Give the share of a gap that is gained, with its 95% interval by resampling paths; none of no gap."""
    if gap.mean() >= 0:
        return None
    random = np.random.default_rng(SEED)
    some = random.integers(len(gap), size=(SAMPLES, len(gap)))
    gaps, gains = gap[some].mean(axis=1), gained[some].mean(axis=1)
    low, high = np.percentile(gains[gaps < 0] / gaps[gaps < 0], [2.5, 97.5])
    return float(gained.mean() / gap.mean()), float(low), float(high)


#: What the table says of who chose, in its order.
WHO = {
    "clairvoyant": "clairvoyant: each period on forks, or the best constant in hindsight",
    "foreseen": "each period on forks that foresee all",
    "constant, foreseen": "the best constant in hindsight",
    "path known": "path known: each period, on average over futures drawn anew",
    "constant, path known": "path known: the constant that is best at other times",
    "monitor": "by what the monitor saw (boosted trees)",
    "twin": "by a digital twin",
    "best fixed of the set": "the best fixed one of the set",
    "best fixed": "the best fixed one of all",
}


def bound(bounding: Bounding) -> dict[str, Any]:
    """Simulate what is missing. Gives what the JSON has."""
    table = simulate(bounding, bounding.all_names())
    rows, took = driven(bounding, table)
    mean, p90 = rows["mean"], rows["p90"]
    base, tail = mean["best fixed"], p90["best fixed"]
    single = mean["best fixed of the set"]
    gap = mean["clairvoyant"] - base
    who = {
        kind: {
            "change": interval(mean[kind] - base),
            "share": share(mean[kind] - base, gap),
            "p90": interval(p90[kind] - tail),
        }
        for kind in WHO
        if kind in mean
    }
    return {
        "paths": len(table.paths),
        "futures": bounding.futures - 1,
        "particles": bounding.particles,
        "seconds": took,
        "closed": {
            kind: share(mean[kind] - single, mean["path known"] - single)
            for kind in ("monitor", "twin")
            if kind in mean
        },
        "horizon": bounding.horizon,
        "algorithms": list(bounding.names()),
        "best fixed": table.names[best_fixed(table.of("mean"))],
        "who": who,
        "p90": {
            "of the oracle for the mean": interval(p90["foreseen"] - tail),
            "of the oracle for p90": interval(p90["foreseen by p90"] - tail),
            "difference": interval(p90["foreseen by p90"] - p90["foreseen"]),
            "constants": interval(p90["constant, foreseen by p90"] - p90["constant, foreseen"]),
            "mean": interval(mean["foreseen by p90"] - mean["foreseen"]),
        },
    }


def report(found: dict[str, Any], arguments: list[str]) -> str:
    """Give the tables as Markdown."""
    tail = found["p90"]
    lines = [
        f"`{shlex.join(['python', '-m', 'trimtab.train', 'bounds', *arguments])}`",
        "",
        f"Among {', '.join(f'`{name}`' for name in found['algorithms'])}, on {found['paths']} paths: mean "
        f"completion time by ratio vs. `{found['best fixed']}`, the best fixed setting of all, its share of "
        "the clairvoyant's gain, and the 90th percentile likewise, all with the prices of loss and harm to "
        "rivals. Intervals (95%) are by resampling paths. "
        f"Each choice is tried for {found['horizon']} periods; {found['futures']} futures are drawn anew.",
        "",
        "| who chooses | mean | share | p90 |",
        "|---|---:|---:|---:|",
    ]
    for kind, row in found["who"].items():
        shares = "" if row["share"] is None else "{:.0%} [{:.0%}, {:.0%}]".format(*row["share"])
        lines.append(f"| {WHO[kind]} | {percents(row['change'])} | {shares} | {percents(row['p90'])} |")
    names = {"monitor": "boosted trees", "twin": f"a digital twin of {found['particles']} worlds"}
    closed = [
        f"{names[kind]} close{'s' if kind == 'twin' else ''} " + "{:.0%} [{:.0%}, {:.0%}]".format(*of)
        for kind, of in found["closed"].items()
        if of is not None
    ]
    if closed:
        lines += [
            "",
            "Of what the path known gains each period vs. the best fixed one of the set, "
            + ", and ".join(closed)
            + ".",
        ]
    if found["seconds"]:
        lines.append(f"A decision of the twin takes {found['seconds']:.2f} s of CPU time.")
    lines += [
        "",
        f"The 90th percentile under the oracle that chooses by it is {percents(tail['difference'])} vs. the "
        f"oracle that chooses by the mean; the mean under it {percents(tail['mean'])}. Of the best constants "
        f"in hindsight the one by the 90th percentile has {percents(tail['constants'])} at that.",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Bound as the command line says. Gives the exit code."""
    bounding = parse(arguments, "bounds")
    try:
        found = bound(bounding)
        text = report(found, arguments)
        (bounding.out / "bounds.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (bounding.out / "bounds.md").write_text(text + "\n", encoding="utf-8")
    except (ValueError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(text)
    return 0
