"""F1 of a tree, of several and of the LSTM as the range of delays widens (Muses, Fig. 1b).

For each range the LSTM drives over networks of Table II whose delays are in it, and the oracle says what
would have been best. Trees are fitted to the oracle's answers on networks for learning, and all are compared
with them on networks for validation. The LSTM is the same for all ranges; the paper trains one for each.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from trimtab._native import MusesRollouts
from trimtab.muses import chart, extract, fit, lstm
from trimtab.muses.drive import NONE, Flows, drive, environments, taught
from trimtab.muses.inputs import inputs
from trimtab.muses.options import Stages
from trimtab.muses.trees import Node, actions_of, decide

NAMES = ("LSTM", "trees", "one tree", "one tree of the seven signals")
#: So many clusters, each with its tree: the paper's.
CLUSTERS = 15
#: Flows that are driven at a time.
PARALLEL = 100


def main(arguments: list[str] | None = None) -> int:
    """Print the table and draw the figure. Gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trimtab.muses.delays", description=__doc__)
    parser.add_argument("--lstm", type=Path, default=Path("models/muses.safetensors"), help="the LSTM's file")
    parser.add_argument(
        "--flows", type=int, default=300, help="flows to fit trees to; half as many judge [300]"
    )
    parser.add_argument(
        "--most", default="10,25,50,100,150", help="largest one-way delays in ms [%(default)s]"
    )
    parser.add_argument("--decisions", type=int, default=1_000, help="intervals of a flow [%(default)s]")
    parser.add_argument("--traces", type=Path, help="folder of recordings, as for train-muses")
    parser.add_argument("--svg", type=Path, help="draw the figure into this file")
    given = parser.parse_args(arguments)
    try:
        teacher = lstm.Teacher.load(given.lstm)
        most = [int(part) for part in given.most.split(",")]
        if min(most) < 5 or given.flows < 2 * CLUSTERS:
            raise ValueError(f"delays are at least 5 ms, and --flows at least {2 * CLUSTERS}")
        rows = [scores(teacher, stages_of(given, delay), given.flows) for delay in most]
    except (ValueError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print("| delays up to | " + " | ".join(NAMES) + " |\n|---:|" + "---:|" * len(NAMES))
    for delay, row in zip(most, rows, strict=True):
        print(f"| {delay} ms | " + " | ".join(f"{value:.3f}" for value in row) + " |")
    if given.svg is not None:
        lines = dict(zip(NAMES, np.array(rows).T.tolist(), strict=True))
        given.svg.write_text(chart.draw("largest one-way delay, ms", "F1", most, lines), encoding="utf-8")
    return 0


def stages_of(given: argparse.Namespace, delay_ms: int) -> Stages:
    """Give the settings of networks with delays up to this one, and of the trees."""
    return Stages(
        delay_max_ms=delay_ms,
        decisions=given.decisions,
        traces=given.traces,
        criterion="entropy",
        clusters=str(CLUSTERS),
        grid=1,
    )


def scores(teacher: lstm.Teacher, stages: Stages, flows: int) -> list[float]:
    """Give the scores of each of NAMES."""
    learnt, judged = (
        _flows(stages, teacher, part, n) for part, n in (("train", flows), ("validation", flows // 2))
    )
    shown, held = (fit.Demonstrations(inputs(f.states), f.best) for f in (learnt, judged))
    rows = np.arange(len(shown.inputs))
    one, _ = fit.fit(stages, shown, rows)
    few = fit.Demonstrations(learnt.states, learnt.best)
    seven, _ = fit.fit(stages, few, rows)

    projection = extract.Projection.of(shown.of(rows)[0])
    points, margins = extract.distributions(shown, projection)
    centres, labels, _ = extract.cluster(stages, points)
    matrix = np.linalg.lstsq(margins, points, rcond=None)[0].T
    others = fit.some(np.random.default_rng(1), *shown.of(rows), extract.OTHERS)
    trees = [
        fit.fit(stages, shown, rows[labels == j] if (labels == j).any() else rows, others)[0]
        for j in range(len(centres))
    ]
    _, seen = extract.distributions(held, projection)
    nearest = extract.distances(seen @ matrix.T, centres).argmin(axis=1)

    counts = judged.best != NONE

    def f1(actions: NDArray[np.int64]) -> float:
        return float(f1_score(judged.best[counts], actions[counts], average="macro", zero_division=0.0))

    chosen = np.stack(
        [actions_of(decide(trees[tree], flow)) for tree, flow in zip(nearest, held.inputs, strict=True)]
    )
    row = [
        f1(judged.actions.astype(np.int64)),
        f1(chosen),
        f1(_by(one, held.inputs)),
        f1(_by(seven, judged.states)),
    ]
    print(
        f"delays up to {stages.delay_max_ms} ms: " + ", ".join(f"{v:.3f}" for v in row),
        file=sys.stderr,
        flush=True,
    )
    return row


def _by(tree: list[Node], seen: NDArray[np.int16]) -> NDArray[np.int64]:
    return actions_of(decide(tree, seen.reshape(-1, seen.shape[2]))).reshape(seen.shape[:2])


def _flows(stages: Stages, teacher: lstm.Teacher, part: str, count: int) -> Flows:
    world = environments(stages, "global", part)
    found = []
    for first in range(0, count, PARALLEL):
        seeds = list(range(first, min(first + PARALLEL, count)))
        rollouts = MusesRollouts(world, seeds, 1, stages.decisions)
        found.append(drive(rollouts, taught(teacher, len(seeds), 1), 1, stages.decisions))
    return Flows(
        *(np.concatenate([getattr(f, name) for f in found]) for name in ("states", "actions", "best"))
    )


if __name__ == "__main__":
    sys.exit(main())
