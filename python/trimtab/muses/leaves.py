"""Compare several trees with one, by how many leaves a tree may have.

The LSTM drives flows over networks of Table II; one tree for all and a tree for each group of flows are
distilled from it, by the paper's recipe (Muses, section III-E) and by ours, with each number of leaves, and
drive over networks of Table III that are for validation. The LSTM's results are given, too.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trimtab._native import MusesRollouts, muses_outcomes
from trimtab.muses import extract, lstm, options
from trimtab.muses.drive import drive, environments, taught
from trimtab.muses.fit import Demonstrations
from trimtab.muses.inputs import SIGNALS
from trimtab.muses.judge import SETTINGS, Outcomes
from trimtab.muses.options import Stages

#: Half of a 95 % interval in standard errors.
HALF = 1.96


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trimtab.muses.leaves", description=__doc__)
    parser.add_argument("--lstm", type=Path, default=Path("models/muses.safetensors"), help="the LSTM's file")
    parser.add_argument("--leaves", default="50,100,200,500,2000", help="most leaves of a tree [%(default)s]")
    parser.add_argument("--flows", type=int, default=2_400, help="flows of a pass [%(default)s]")
    parser.add_argument(
        "--passes", type=int, default=2, help="passes of ours that one tree drives [%(default)s]"
    )
    parser.add_argument(
        "--clusters", default="12", help="groups, or a range for the silhouette [%(default)s]"
    )
    parser.add_argument("--decisions", type=int, default=1_000, help="intervals of a flow [%(default)s]")
    parser.add_argument("--seed", type=int, default=3, help="seed of everything that is drawn [%(default)s]")
    parser.add_argument("--judge", type=int, default=40, help="networks of each setting [%(default)s]")
    parser.add_argument("--judged", type=int, default=3_000, help="intervals of a flow there [%(default)s]")
    parser.add_argument("--traces", type=Path, help="folder of recordings, as for train-muses")
    parser.add_argument("--generated", type=int, default=128, help="cellular links without [%(default)s]")
    parser.add_argument("--out", type=Path, help="write the models into folders in this one")
    given = parser.parse_args(arguments)
    try:
        teacher = lstm.Teacher.load(given.lstm)
        sizes = [int(part) for part in given.leaves.split(",")]
        stages = stages_of(given)
        for leaves in sizes:
            if (wrong := options.problem(replace(stages, leaves=leaves))) is not None:
                raise ValueError(wrong)
        table(teacher, stages, sizes, given.out)
    except (ValueError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


def stages_of(given: argparse.Namespace) -> Stages:
    """Give the settings that all trees have in common: those of the trees that ship (models/muses.md)."""
    return Stages(
        seed=given.seed,
        parallel=150,
        decisions=given.decisions,
        flows=given.flows,
        passes=given.passes,
        clusters=given.clusters,
        grid=1,
        traces=given.traces,
        generated=given.generated,
        judge=given.judge,
        judged=given.judged,
        part="validation",
    )


def table(teacher: lstm.Teacher, stages: Stages, sizes: list[int], out: Path | None) -> None:
    """Print a row for each recipe and number of leaves, when all are there."""
    first, _ = extract.gather(stages, teacher, None, 0)
    recipes = {
        # Table I's signals, the entropy of the actions, and each tree of its own group's flows alone.
        "the paper's": (
            replace(stages, inputs="paper", criterion="entropy", others=0.0),
            Demonstrations(first.inputs[:, :, :SIGNALS], first.actions),
        ),
        "ours, where the LSTM drives": (stages, first),
        "ours": (stages, extract.corrected(stages, teacher, first)),
    }
    worlds = {name: environments(stages, name, stages.part, stages.judged) for name in SETTINGS}
    random = np.random.default_rng((stages.seed, 4))
    seeds = [int(seed) for seed in random.integers(2**62, size=stages.judge)]
    columns = [f"{name}: {what}" for name in SETTINGS for what in ("one tree", "several, more or less")]
    lines = ["| recipe | leaves | " + " | ".join(columns) + " |", "|---|---:|" + "---|" * len(columns)]
    cells = [cell(heavy(teacher, world, seeds, stages.judged)) + " |" for world in worlds.values()]
    lines.append("| the LSTM | | " + " | ".join(cells) + " |")
    for recipe, (settings, shown) in recipes.items():
        groups = extract.grouped(settings, shown)
        for leaves in sizes:
            with_leaves = replace(settings, leaves=leaves)
            many, one, _ = extract.fit_groups(with_leaves, shown, groups.kept, groups.labels, groups)
            if out is not None:
                folder = out / f"{recipe.replace(',', '').replace(' ', '-')}-{leaves}"
                many.save(folder / "muses.trees")
                one.save(folder / "treeg.trees")
            cells = []
            for world in worlds.values():
                alone, several = (
                    np.array(
                        muses_outcomes(world, seeds, flows=1, length_ms=stages.judged * 10, trees=m.pack())
                    )
                    for m in (one, many)
                )
                cells += [cell(alone), difference(several - alone)]
            lines.append(f"| {recipe} | {leaves} | " + " | ".join(cells) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))


def heavy(teacher: lstm.Teacher, world: Any, seeds: list[int], judged: int) -> Outcomes:
    """Let the LSTM drive over these networks."""
    rollouts = MusesRollouts(world, seeds, 1, length_ms=judged * 10)
    drive(rollouts, taught(teacher, len(seeds), 1), 1, judged)
    return rollouts.outcomes()


def cell(outcomes: Any) -> str:
    """Write means: utilisation, 95th percentile of the queueing delay, loss."""
    used, delay, loss = np.mean(np.array(outcomes), axis=0)
    return f"{used:.1%}, {1_000 * delay:.0f} ms, {loss:.2%}"


def difference(differences: Any) -> str:
    """Write what several trees have more on the same networks, with half the 95 % interval."""
    mean = differences.mean(axis=0)
    half = HALF * differences.std(axis=0) / np.sqrt(len(differences))
    return (
        f"{100 * mean[0]:+.1f} ± {100 * half[0]:.1f}, "
        f"{1_000 * mean[1]:+.1f} ± {1_000 * half[1]:.1f} ms, {100 * mean[2]:+.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
