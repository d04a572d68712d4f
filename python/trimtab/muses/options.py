"""Settings of the stages, each with its help: the command line is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtab.muses.trees import FILE_MAX, TREES_MAX, file_size
from trimtab.options import option, out_of_range, read

#: Kinds of recordings that Table II's column for LTE and 3G takes, where a folder of recordings is given.
KINDS = "cellular-lte,cellular-3g"


@dataclass(frozen=True)
class Stages:
    """An LSTM learnt from the oracle by imitation, and the trees distilled from it (Muses)."""

    stage: str = option("all", "lstm (stage 1), trees (stage 2, from the LSTM in --out) or all")
    out: Path = option(Path("out/muses"), "folder for the models, their cards, checkpoints and logs")
    seed: int = option(1, "seed of everything that is drawn")
    hidden: int = option(256, "units of each of the LSTM's two layers (Muses, section II-C: 256)")
    start: Path | None = option(None, "folder of an earlier run to go on from: its flows, its LSTM widened")
    rounds: int = option(300, "most iterations: drive, label, train")
    parallel: int = option(128, "networks at a time, one of them for each flow of an iteration")
    decisions: int = option(1_000, "control intervals of a flow (Muses, section III-C: 1000)")
    epochs: int = option(12, "epochs of an iteration (Muses: dozens)")
    sample: int = option(1_024, "most flows that an epoch of an iteration takes from all that were seen")
    batch: int = option(32, "flows of a batch")
    window: int = option(100, "intervals over which gradients go back")
    rate: float = option(1e-3, "learning rate at the start; it falls to nothing in the last iteration")
    sharing: float = option(
        0.4, "share of the iterations, and of the trees' flows, with several flows on each link"
    )
    flows: int = option(5_000, "flows that the trees are distilled from (Muses, section III-E: 5000)")
    far: float = option(
        0.15,
        "share of the trees' flows with one-way delays of up to 500 ms, which the LSTM did not learn on; "
        "0 is the paper's",
    )
    passes: int = option(1, "passes in which the global tree drives and the LSTM is asked; 0 is the paper's")
    inputs: str = option(
        "memory", "what trees are asked with: paper, Table I's signals, or memory, what follows from them too"
    )
    criterion: str = option(
        "ratio", "what trees are fitted by: entropy of the actions (the paper's) or the ratio of the windows"
    )
    leaves: int = option(500, "most leaves of a tree (Muses, section III-E: 500)")
    clusters: str = option("2-40", "numbers of clusters to choose from; the silhouette decides")
    others: float = option(
        0.2,
        "weight of all flows together in the fit of a group's tree, relative to its own; 0: as in the paper",
    )
    grid: int = option(2, "values that the search tries for each of a tree's two other settings, 1 to 4")
    traces: Path | None = option(None, "folder of recordings: a folder of Mahimahi traces for each kind")
    kinds: str = option(KINDS, "the kinds to take from it")
    generated: int = option(128, "cellular links that are generated where no recordings are given")
    delay_max_ms: int = option(
        0, "largest one-way delay to learn on, in place of Table II's 150 ms; 0: the table's"
    )
    oracle: str = option(
        "ahead",
        "the round trip that the oracle goes by: past, the last one (Muses, Eq. 1), or ahead, about now",
    )
    alpha: float = option(1.25, "by how much it is larger than that (Muses, section III-D: 1.2)")
    even_at: float = option(
        24.0,
        "rate of a flow, in Mbit/s, for which alpha is that; what it is above one falls with the root of the "
        "rate, so that flows which share a link can tell who has too much of it; 0: the same for all (Muses)",
    )
    judge: int = option(100, "networks of each setting of Table III to judge by, unseen in training")
    judged: int = option(3_000, "control intervals of a flow that is judged: the trees choose every 1000")
    part: str = option("test", "the networks to judge by: validation, while there is to choose, or test")
    resume: bool = option(False, "go on from the last checkpoint in the folder")


#: What these options may be.
CHOICES = {
    "stage": ("lstm", "trees", "all"),
    "oracle": ("past", "ahead"),
    "inputs": ("paper", "memory"),
    "criterion": ("entropy", "ratio"),
    "part": ("validation", "test"),
}
#: The least of these numbers.
LEAST = {
    "hidden": 1,
    "rounds": 1,
    "parallel": 1,
    "decisions": 1,
    "epochs": 1,
    "sample": 1,
    "batch": 1,
    "window": 1,
    "flows": 2,
    "leaves": 2,
    "generated": 1,
    "judge": 1,
    "judged": 1,
    "seed": 0,
    "delay_max_ms": 0,
    "passes": 0,
}
#: The ranges of these.
RANGES = {
    "alpha": (0.01, 10.0),
    "sharing": (0.0, 1.0),
    "far": (0.0, 1.0),
    "others": (0.0, 1.0),
    "even_at": (0.0, 100_000.0),
    "grid": (1, 4),
    "leaves": (2, 5_000),
}


def parse(arguments: list[str]) -> Stages:
    """Read the command line; ends the program where it makes no sense."""
    return read(Stages, arguments, problem, CHOICES, command="muses")


def numbers(clusters: str) -> list[int]:
    """List the numbers of clusters that a text like 2-40 or 15 names. Raises ValueError for another."""
    low, _, high = clusters.partition("-")
    return list(range(int(low), int(high or low) + 1))


def problem(stages: Stages) -> str | None:
    """Say what cannot be; none when nothing is wrong."""
    wrong = out_of_range(stages, {name: (least, None) for name, least in LEAST.items()})
    if wrong is not None:
        return wrong
    if stages.decisions % stages.window:
        return f"--decisions is {stages.decisions}; it must be a multiple of --window, {stages.window}"
    return out_of_range(stages, RANGES) or _problem_of_trees(stages)


def _problem_of_trees(stages: Stages) -> str | None:
    try:
        several = numbers(stages.clusters)
    except ValueError:
        several = []
    # Besides the trees of the clusters there is the global one.
    most = TREES_MAX - 1
    if not several or not 2 <= several[0] <= several[-1] <= most:
        return f"--clusters is {stages.clusters}; write a number or a range like 2-40 within 2 to {most}"
    if (largest := file_size(several[-1] + 1, stages.leaves)) > FILE_MAX:
        return (
            f"{several[-1]} --clusters and a global tree of {stages.leaves} --leaves each may make a file of "
            f"{largest} bytes, and {FILE_MAX} is the most that is read: give fewer of either"
        )
    return None
